use super::*;

#[test]
fn one_rig_at_a_time_works_in_a_folder() {
    let target = env::temp_dir().join(format!("paceline-lock-{}", std::process::id()));
    let workspace = Workspace {
        root: target.clone(),
        target: target.clone(),
    };
    let lock = workspace.lock().unwrap();
    let error = workspace.lock().unwrap_err().to_string();
    assert!(error.contains("another `cargo qemu`"), "{error}");
    drop(lock);
    assert!(workspace.lock().is_ok());
    fs::remove_dir_all(target).unwrap();
}
