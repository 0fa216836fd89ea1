use std::os::unix::fs::symlink;

use super::*;

struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let root =
            std::env::temp_dir().join(format!("paceline-rootfs-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        Self(root)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn absolute_links_are_meant_from_the_trees_root() {
    let tree = Tree::new("links");
    fs::write(tree.0.join("usr/bin/real"), "x").unwrap();
    symlink("/usr/bin/real", tree.0.join("usr/bin/absolute")).unwrap();
    symlink("real", tree.0.join("usr/bin/relative")).unwrap();
    symlink("circle", tree.0.join("usr/bin/circle")).unwrap();
    let root = RootFs::new(tree.0.clone());
    for name in ["real", "absolute", "relative"] {
        assert_eq!(
            root.program(name).unwrap(),
            tree.0.join("usr/bin/real"),
            "{name}"
        );
    }
    assert!(root.program("circle").is_err());
    assert!(
        root.program("absent")
            .unwrap_err()
            .to_string()
            .contains("`absent`")
    );
}

#[test]
fn xens_programs_are_found_by_xenstored() {
    let tree = Tree::new("xen");
    let root = RootFs::new(tree.0.clone());
    assert!(root.xen_programs().is_err());
    fs::create_dir_all(tree.0.join("usr/lib/xen-4.17/bin")).unwrap();
    fs::create_dir_all(tree.0.join("usr/lib/xen-common/bin")).unwrap();
    fs::write(tree.0.join("usr/lib/xen-4.17/bin/xenstored"), "x").unwrap();
    assert_eq!(root.xen_programs().unwrap(), "usr/lib/xen-4.17/bin");
}

#[test]
fn a_missing_library_is_named() {
    let tree = Tree::new("libraries");
    let root = RootFs::new(tree.0.clone());
    let own = std::env::current_exe().unwrap();
    let error = root
        .add(&mut Archive::new(), "usr/bin/x", &own)
        .unwrap_err();
    assert!(format!("{error:#}").contains("no library `l"), "{error:#}");
}
