use super::*;
use core::mem::offset_of;

#[test]
fn layout_is_that_of_the_public_header() {
    assert_eq!(size_of::<VcpuTimeInfo>(), 32);
    assert_eq!(size_of::<VcpuInfo>(), 64);
    assert_eq!(offset_of!(VcpuEvents, pending_sel), 8);
    assert_eq!(offset_of!(VcpuInfo, time), 32);
    assert_eq!(offset_of!(SharedInfo, evtchn_pending), 2048);
    assert_eq!(offset_of!(SharedInfo, evtchn_mask), 2560);
    assert_eq!(offset_of!(SharedInfo, wall_clock), 3072);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn layout_is_that_of_xen_sys() {
    assert_eq!(size_of::<xen_sys::vcpu_info>(), size_of::<VcpuInfo>());
    assert_eq!(
        offset_of!(xen_sys::shared_info, evtchn_mask),
        offset_of!(SharedInfo, evtchn_mask)
    );
    assert_eq!(
        offset_of!(xen_sys::shared_info, wc_sec_hi),
        offset_of!(SharedInfo, wall_clock) + offset_of!(WallClockInfo, sec_hi)
    );
    assert_eq!(
        offset_of!(xen_sys::vcpu_time_info, tsc_shift),
        offset_of!(VcpuTimeInfo, tsc_shift)
    );
}
