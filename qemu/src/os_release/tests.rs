use super::*;

#[test]
fn debian_12_and_13_are_known() {
    let text = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n";
    assert_eq!(Release::parse(text).unwrap(), Release::Bookworm);
    let text = "ID=debian\nVERSION_ID='13'\n";
    assert_eq!(Release::parse(text).unwrap(), Release::Trixie);
}

#[test]
fn other_systems_are_told_what_to_give() {
    for text in [
        "ID=debian\nVERSION_ID=\"11\"\n",
        "ID=ubuntu\nVERSION_ID=\"12\"\n",
        "",
    ] {
        let error = Release::parse(text).unwrap_err().to_string();
        assert!(error.contains("expected Debian 12 or 13"), "{error}");
        assert!(error.contains("--xen"), "{error}");
    }
}

#[test]
fn each_release_has_its_own_xen_and_folder() {
    assert_ne!(Release::Bookworm.xen(), Release::Trixie.xen());
    assert_ne!(Release::Bookworm.folder(), Release::Trixie.folder());
}
