use super::*;

#[test]
fn nothing_missing_needs_nothing() {
    assert_eq!(plan(&[], false, false, false), Plan::Nothing);
}

#[test]
fn root_installs_by_itself() {
    let expected = Plan::Apt {
        prefix: &[],
        packages: vec!["qemu-system-x86", "iperf3"],
    };
    assert_eq!(plan(&[MACHINE, CLIENT], true, false, true), expected);
}

#[test]
fn others_use_sudo_when_it_asks_no_password() {
    let expected = Plan::Apt {
        prefix: &["sudo", "-n"],
        packages: vec!["qemu-system-x86"],
    };
    assert_eq!(plan(&[MACHINE], false, true, true), expected);
}

#[test]
fn without_either_the_user_is_told_the_command() {
    let Plan::Ask(text) = plan(&[MACHINE, CLIENT], false, false, true) else {
        panic!("must ask");
    };
    assert!(text.contains("apt-get install --yes"), "{text}");
    assert!(text.contains("qemu-system-x86 iperf3"), "{text}");
}

#[test]
fn without_apt_the_programs_are_named() {
    let Plan::Ask(text) = plan(&[MACHINE], true, true, false) else {
        panic!("must ask");
    };
    assert!(text.contains("qemu-system-x86_64"), "{text}");
}

#[test]
fn qemu_versions_are_read() {
    let debian = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright\n";
    assert_eq!(
        parse_qemu_version(debian).unwrap(),
        (7, "7.2.22".to_owned())
    );
    assert_eq!(
        parse_qemu_version("QEMU emulator version 10.0.2")
            .unwrap()
            .0,
        10
    );
    assert!(parse_qemu_version("something else").is_err());
}
