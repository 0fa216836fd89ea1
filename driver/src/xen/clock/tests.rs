use super::*;
use crate::xen::fake::FakeXen;

fn params(tsc: u64, ns: u64, mul: u32, shift: i8) -> VcpuTimeInfo {
    VcpuTimeInfo {
        tsc_timestamp: tsc,
        system_time_ns: ns,
        tsc_to_system_mul: mul,
        tsc_shift: shift,
        ..VcpuTimeInfo::default()
    }
}

#[test]
fn time_is_scaled() {
    // 1 GHz: half of 2^32, twice the ticks.
    let ghz = params(1000, 5_000, 1 << 31, 1);
    assert_eq!(ghz.ns_at(1000), 5_000);
    assert_eq!(ghz.ns_at(1000 + 123_456), 5_000 + 123_456);
    // 2 GHz.
    let fast = params(0, 0, 1 << 31, 0);
    assert_eq!(fast.ns_at(2_000_000_000), 1_000_000_000);
    // 4 GHz.
    let faster = params(0, 0, 1 << 31, -1);
    assert_eq!(faster.ns_at(4_000_000_000), 1_000_000_000);
    // A century of ticks does not overflow on the way.
    let century = 3_155_760_000_u64 * 2_000_000_000;
    assert_eq!(fast.ns_at(century), century / 2);
}

#[test]
fn frequencies_follow_from_the_scale() {
    assert_eq!(params(0, 0, 1 << 31, 1).tsc_hz(), 1_000_000_000);
    assert_eq!(params(0, 0, 1 << 31, 0).tsc_hz(), 2_000_000_000);
    assert_eq!(params(0, 0, 1 << 31, -1).tsc_hz(), 4_000_000_000);
    assert_eq!(params(0, 0, 0, 0).tsc_hz(), 0);
    assert_eq!(params(0, 0, 1, i8::MIN).tsc_hz(), u64::MAX);
    assert_eq!(params(0, 0, 1, i8::MAX).tsc_hz(), 0);
}

#[test]
fn garbage_does_not_overflow() {
    for shift in [i8::MIN, -64, -63, 0, 63, 64, i8::MAX] {
        let garbage = params(7, u64::MAX, u32::MAX, shift);
        let _ = garbage.ns_at(u64::MAX);
        // Before the timestamp no time has passed.
        assert_eq!(garbage.ns_at(6), u64::MAX);
    }
    assert_eq!(params(0, 0, 1, -64).ns_at(u64::MAX), 0);
}

#[test]
fn the_clock_reads_the_shared_page_and_never_goes_back() {
    let xen = FakeXen::new();
    // SAFETY: the page lives as long as `xen`.
    let info = unsafe { SharedInfo::time_info(xen.shared_info(), 0) }.unwrap();
    // SAFETY: likewise.
    let clock = unsafe { PvClock::new(info) };
    xen.set_time_ns(1000);
    assert_eq!(clock.now_ns(|| 0), 1000);
    xen.set_time_ns(900);
    assert_eq!(clock.now_ns(|| 0), 1000);
    xen.set_time_ns(1100);
    assert_eq!(clock.now_ns(|| 0), 1100);
    assert_eq!(clock.params().unwrap().system_time_ns, 1100);
    // SAFETY: the page lives as long as `xen`.
    assert!(unsafe { SharedInfo::time_info(xen.shared_info(), 32) }.is_none());
}

#[test]
fn parameters_that_change_are_read_again() {
    let xen = FakeXen::new();
    // SAFETY: the page lives as long as `xen`.
    let info = unsafe { SharedInfo::time_info(xen.shared_info(), 0) }.unwrap();
    // SAFETY: likewise.
    let clock = unsafe { PvClock::new(info) };
    let set = |version, system_time_ns| {
        // SAFETY: likewise; all is one thread.
        unsafe {
            info.write_volatile(VcpuTimeInfo {
                version,
                system_time_ns,
                ..VcpuTimeInfo::default()
            });
        }
    };
    set(2, 50);
    let reads = Cell::new(0);
    let now = clock.now_ns(|| {
        // The hypervisor updates them between our copy and the TSC.
        reads.set(reads.get() + 1);
        if reads.get() == 1 {
            set(4, 70);
        }
        0
    });
    assert_eq!((now, reads.get()), (70, 2));

    // Never consistent: bounded, and time stands still.
    set(5, 1_000_000);
    assert_eq!(clock.now_ns(|| 0), 70);
    let version = Cell::new(6);
    let endless = || {
        version.set(version.get() + 2);
        set(version.get(), 2_000_000);
        0
    };
    set(6, 2_000_000);
    assert_eq!(clock.now_ns(endless), 70);
    assert_eq!(version.get(), 6 + 2 * MAX_ATTEMPTS as u32);
}

#[test]
fn the_wall_clock_is_read() {
    let xen = FakeXen::new();
    let info = xen.shared_info();
    // SAFETY: the page lives as long as `xen`; all is one thread.
    let wall = unsafe { &raw mut (*info.as_ptr()).wall_clock };
    // SAFETY: likewise.
    unsafe {
        (*wall).version = 2;
        (*wall).sec = 5;
        (*wall).nsec = 7;
        (*wall).sec_hi = 1;
    }
    // SAFETY: likewise.
    let read = || unsafe { WallClock::read(info) };
    let expected = WallClock {
        secs: (1 << 32) + 5,
        nanos: 7,
    };
    assert_eq!(read(), Some(expected));
    // SAFETY: likewise.
    unsafe { (*wall).version = 3 };
    assert_eq!(read(), None);
}
