use super::*;

#[test]
fn dependencies_are_read_from_apt_cache() {
    let text = "iperf3\n  Depends: libc6\n |Depends: debconf\n  Depends: <debconf-2.0>\n    \
                cdebconf\n  PreDepends: libiperf0\n  Depends: python3:any\n  Depends: libc6\n";
    assert_eq!(
        parse_depends(text),
        ["debconf", "libc6", "libiperf0", "python3"]
    );
}

#[test]
fn only_libraries_are_followed() {
    for name in ["libc6", "zlib1g", "libxenmisc4.17", "libssl3t64"] {
        assert!(is_library(name), "{name}");
    }
    for name in ["python3", "libpython3-stdlib", "libperl5.36", "udev"] {
        assert!(!is_library(name), "{name}");
    }
}

#[test]
fn the_lock_is_read_from_apt_get() {
    let text = "Reading package lists...\n'http://mirror/p/b.deb' b_1%3a1.0_amd64.deb 12 \
                SHA256:00ff\n";
    let expected = LockEntry {
        file: "b_1%3a1.0_amd64.deb".to_owned(),
        sha256: "00ff".to_owned(),
    };
    assert_eq!(parse_uris(text).unwrap(), [expected]);
}

#[test]
fn weak_hashes_are_refused() {
    let error = parse_uris("'http://mirror/b.deb' b.deb 12 MD5Sum:00ff\n").unwrap_err();
    assert!(error.to_string().contains("SHA256"), "{error}");
    assert!(parse_uris("'http://mirror/b.deb' b.deb\n").is_err());
}

#[test]
fn a_complete_tree_needs_no_apt() {
    let rig = std::env::temp_dir().join(format!("paceline-packages-{}", std::process::id()));
    let folder = rig.join(Release::Bookworm.folder());
    fs::create_dir_all(folder.join("root")).unwrap();
    let identity = format!("list {LIST_VERSION}\n00  a.deb\n");
    fs::write(folder.join(STAMP), &identity).unwrap();
    let tree = tree(&rig, Release::Bookworm).unwrap();
    assert_eq!(tree.identity, identity);
    assert_eq!(tree.root, folder.join("root"));
    fs::remove_dir_all(&rig).unwrap();
}
