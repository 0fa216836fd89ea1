use super::*;

#[test]
fn module_files_are_named_with_underscores() {
    for file in [
        "xen-netback.ko",
        "xen-netback.ko.xz",
        "net/xen-netback.ko.zst",
    ] {
        assert_eq!(module_name(file).as_deref(), Some("xen_netback"), "{file}");
    }
    for file in ["modules.dep", "xen-netback.ko.partial", "readme"] {
        assert_eq!(module_name(file), None, "{file}");
    }
}

#[test]
fn builtin_modules_need_no_file_and_others_do() {
    let folder = ModuleFolder {
        files: BTreeMap::new(),
        builtin: "kernel/net/llc/llc.ko\nkernel/fs/xen-fs.ko\n".to_owned(),
    };
    let tools = RootFs::new("/nonexistent".into());
    assert!(
        folder
            .in_load_order(&["llc", "xen-fs"], &tools)
            .unwrap()
            .is_empty()
    );
    let error = folder
        .in_load_order(&["stp"], &tools)
        .unwrap_err()
        .to_string();
    assert!(error.contains("no module stp"), "{error}");
}
