use super::*;
use crate::clock::Clock;

#[test]
fn xen_gets_the_kernel_and_its_initramfs_as_modules() {
    let files = BootFiles {
        xen: "/t/xen".into(),
        kernel: "/t/a,b/vmlinuz".into(),
        initrd: "/t/dom0.initrd".into(),
    };
    let accel = Accel::Tcg {
        old: true,
        clock: Clock::Host,
    };
    let args = XenRig::args(&files, accel);
    let after = |name: &str| {
        let at = args.iter().position(|arg| arg == name).unwrap();
        args[at + 1].as_str()
    };
    assert_eq!(after("-kernel"), "/t/xen");
    let modules = after("-initrd");
    assert!(
        modules.starts_with("/t/a,,b/vmlinuz console=hvc0"),
        "{modules}"
    );
    assert!(modules.ends_with(",/t/dom0.initrd"), "{modules}");
    assert!(after("-append").contains("com1=115200"));
}

#[test]
fn a_missing_file_of_the_user_is_named() {
    let error = identity(&[&"/nonexistent/xen".into()]).unwrap_err();
    assert!(format!("{error:#}").contains("/nonexistent/xen"));
}
