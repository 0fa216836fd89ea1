use super::*;

const ABSENT: CpuidResult = CpuidResult {
    eax: 0,
    ebx: 0,
    ecx: 0,
    edx: 0,
};

fn leaf(eax: u32, ebx: u32, ecx: u32, edx: u32) -> CpuidResult {
    CpuidResult { eax, ebx, ecx, edx }
}

fn xen_at(base: u32, last: u32, leaf_number: u32) -> CpuidResult {
    match leaf_number.wrapping_sub(base) {
        _ if leaf_number == 1 => leaf(0, 0, 1 << 31, 0),
        0 => leaf(base + last, 0x566e_6558, 0x6558_4d4d, 0x4d4d_566e),
        1 => leaf(0x0004_0014, 0, 0, 0),
        2 => leaf(1, 0x4000_0000, 0, 0),
        4 => leaf((1 << 3) | (1 << 4), 7, 42, 0),
        _ => ABSENT,
    }
}

#[test]
fn xen_is_found_wherever_its_leaves_are() {
    for base in [0x4000_0000, 0x4000_0100, 0x4000_ff00] {
        let found = XenCpuid::scan(|n| xen_at(base, 5, n)).unwrap();
        assert_eq!(
            found.version,
            Version {
                major: 4,
                minor: 20
            }
        );
        assert_eq!(found.hypercall_msr, 0x4000_0000);
        assert_eq!(found.vcpu, Some(VcpuId(7)));
        assert_eq!(found.domid, Some(DomId(42)));
    }
}

#[test]
fn leaves_that_xen_does_not_have_are_not_read() {
    let found = XenCpuid::scan(|n| xen_at(0x4000_0000, 2, n)).unwrap();
    assert_eq!((found.vcpu, found.domid), (None, None));
    assert_eq!(XenCpuid::scan(|n| xen_at(0x4000_0000, 1, n)), None);
}

#[test]
fn other_hypervisors_and_bare_metal_are_not_xen() {
    let kvm = |n| match n {
        1 => leaf(0, 0, 1 << 31, 0),
        0x4000_0000 => leaf(0x4000_0001, 0x4b4d_564b, 0x564b_4d56, 0x4d),
        _ => ABSENT,
    };
    assert_eq!(XenCpuid::scan(kvm), None);
    // Bare metal may answer any range with the highest basic leaf, whatever that holds.
    let metal = |n| match n {
        1 => ABSENT,
        _ => xen_at(0x4000_0000, 5, n),
    };
    assert_eq!(XenCpuid::scan(metal), None);
}

#[test]
fn the_hypercall_page_is_a_page_of_breakpoints_until_xen_fills_it() {
    assert_eq!(hypercall_page().addr() % 4096, 0);
    assert!(HYPERCALL_PAGE.iter().all(|byte| *byte == 0xcc));
}

#[test]
fn argument_layouts_are_those_of_the_public_headers() {
    use core::mem::{offset_of, size_of};
    assert_eq!(size_of::<AddToPhysmap>(), 24);
    assert_eq!(offset_of!(AddToPhysmap, idx), 8);
    assert_eq!(offset_of!(AddToPhysmap, gpfn), 16);
    assert_eq!(size_of::<XenHvmParam>(), 16);
    assert_eq!(offset_of!(XenHvmParam, value), 8);
    assert_eq!(size_of::<EvtchnUpcallVector>(), 8);
    assert_eq!(offset_of!(EvtchnUpcallVector, vector), 4);
    assert_eq!(size_of::<SetSingleshotTimer>(), 16);
    assert_eq!(offset_of!(SetSingleshotTimer, flags), 8);
}
