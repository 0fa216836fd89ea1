use super::*;
use crate::xen::fake::FakeXen;
use crate::xen::types::DomId;
use alloc::vec::Vec;

/// A port that a backend has bound, unmasked.
fn open(xen: &FakeXen, events: &EventChannels) -> EventPort {
    let port = xen.evtchn_alloc_unbound(DomId::DOM0).unwrap();
    xen.bind(DomId::DOM0, port).unwrap();
    events.unmask(xen, port).unwrap();
    port
}

fn dispatch(events: &EventChannels) -> Vec<EventPort> {
    let mut ports = Vec::new();
    events.dispatch(|port| ports.push(port));
    ports
}

#[test]
fn an_event_is_dispatched_once() {
    let xen = FakeXen::new();
    let events = xen.event_channels();
    let port = open(&xen, &events);
    assert_eq!(dispatch(&events), []);
    xen.raise(port).unwrap();
    assert!(events.any_pending() && events.is_pending(port));
    assert_eq!(xen.upcalls(), 1);
    // A second one before the first is handled is the same to the guest.
    xen.raise(port).unwrap();
    assert_eq!(xen.upcalls(), 1);
    assert_eq!(dispatch(&events), [port]);
    assert!(!events.any_pending() && !events.is_pending(port));
    assert_eq!(dispatch(&events), []);
}

#[test]
fn ports_are_dispatched_across_words() {
    let xen = FakeXen::new();
    let events = xen.event_channels();
    let ports: Vec<_> = (0..200).map(|_| open(&xen, &events)).collect();
    for port in &ports {
        xen.raise(*port).unwrap();
    }
    assert_eq!(dispatch(&events), ports);
}

#[test]
fn a_masked_port_waits_and_the_edge_is_not_lost() {
    let xen = FakeXen::new();
    let events = xen.event_channels();
    let port = open(&xen, &events);
    events.mask(port);
    xen.raise(port).unwrap();
    assert!(!events.any_pending());
    assert_eq!(dispatch(&events), []);
    assert!(events.is_pending(port));

    let calls = xen.hypercalls();
    events.unmask(&xen, port).unwrap();
    assert_eq!(xen.hypercalls(), calls + 1);
    assert_eq!(xen.upcalls(), 1);
    assert_eq!(dispatch(&events), [port]);
}

#[test]
fn unmasking_without_an_event_is_no_hypercall() {
    let xen = FakeXen::new();
    let events = xen.event_channels();
    let port = open(&xen, &events);
    events.mask(port);
    let calls = xen.hypercalls();
    events.unmask(&xen, port).unwrap();
    assert_eq!(xen.hypercalls(), calls);
    xen.raise(port).unwrap();
    assert_eq!(dispatch(&events), [port]);
}

#[test]
fn an_event_that_comes_in_while_its_own_is_handled_is_dispatched() {
    let xen = FakeXen::new();
    let events = xen.event_channels();
    let port = open(&xen, &events);
    xen.raise(port).unwrap();
    let mut seen = 0;
    let done = events.dispatch(|port| {
        seen += 1;
        if seen == 1 {
            xen.raise(port).unwrap();
        }
    });
    assert_eq!(
        done,
        Dispatched {
            events: 2,
            more: false
        }
    );
}

#[test]
fn a_storm_of_events_ends_the_dispatch() {
    let xen = FakeXen::new();
    let events = xen.event_channels();
    let port = open(&xen, &events);
    xen.raise(port).unwrap();
    let done = events.dispatch(|port| xen.raise(port).unwrap());
    assert_eq!(
        done,
        Dispatched {
            events: MAX_PASSES,
            more: true
        }
    );
}

#[test]
fn all_bits_set_by_someone_are_bounded_work() {
    let xen = FakeXen::new();
    let events = xen.event_channels();
    let info = xen.shared_info().as_ptr();
    for word in 0..EVENT_WORDS {
        // SAFETY: the page lives as long as `xen`; the fields are atomics.
        unsafe {
            (*info).evtchn_pending[word].store(u64::MAX, Ordering::SeqCst);
            (*info).evtchn_mask[word].store(0, Ordering::SeqCst);
        }
    }
    // SAFETY: likewise.
    let vcpu = unsafe { &(*info).vcpu_info[0].events };
    vcpu.pending_sel.store(u64::MAX, Ordering::SeqCst);
    vcpu.upcall_pending.store(0xff, Ordering::SeqCst);
    let ports = dispatch(&events);
    assert_eq!(ports.len(), MAX_PORTS as usize);
    assert_eq!(ports.last(), Some(&EventPort(MAX_PORTS - 1)));
}

#[test]
fn an_acknowledged_upcall_is_dispatched_all_the_same() {
    let xen = FakeXen::new();
    let events = xen.event_channels();
    let port = open(&xen, &events);
    xen.raise(port).unwrap();
    events.acknowledge_upcall();
    assert!(events.any_pending());
    // The next event interrupts again although the first was not dispatched.
    let other = open(&xen, &events);
    xen.raise(other).unwrap();
    assert_eq!(dispatch(&events), [port, other]);
    assert!(!events.any_pending());
}

#[test]
fn ports_and_vcpus_out_of_range_are_refused() {
    let xen = FakeXen::new();
    let events = xen.event_channels();
    for port in [EventPort(MAX_PORTS), EventPort(u32::MAX)] {
        events.mask(port);
        events.clear(port);
        assert!(!events.is_pending(port));
        assert_eq!(events.unmask(&xen, port), Err(Errno::EINVAL));
    }
    // SAFETY: the page lives as long as `xen`.
    assert!(unsafe { EventChannels::new(xen.shared_info(), VcpuId(32)) }.is_none());
}

#[test]
fn a_cleared_event_is_not_dispatched() {
    let xen = FakeXen::new();
    let events = xen.event_channels();
    let port = open(&xen, &events);
    xen.raise(port).unwrap();
    events.clear(port);
    assert_eq!(dispatch(&events), []);
}

#[test]
fn the_upcall_falls_back_to_the_domain_wide_vector() {
    let xen = FakeXen::new();
    let upcall = Upcall::register(&xen, VcpuId(0), 0xf3);
    assert_eq!(upcall, Ok(Upcall::PerVcpu));
    assert_eq!(xen.upcall_vector(), Some(0xf3));

    let qemu = FakeXen::new();
    qemu.fail_next("set_evtchn_upcall_vector", Errno::EFAULT);
    let upcall = Upcall::register(&qemu, VcpuId(0), 0xf3);
    assert_eq!(upcall, Ok(Upcall::Domain));
    assert_eq!(
        qemu.hvm_param(HvmParam::CallbackIrq),
        Ok(0x0200_0000_0000_00f3)
    );

    let neither = FakeXen::new();
    neither.fail_next("set_evtchn_upcall_vector", Errno::ENOSYS);
    neither.fail_next("set_hvm_param", Errno::EPERM);
    let upcall = Upcall::register(&neither, VcpuId(0), 0xf3);
    assert_eq!(upcall, Err(Errno::EPERM));
}

/// Two CPUs: one is Xen and raises, the other dispatches and masks. Whatever the interleaving, the
/// guest sees the last event of each port.
mod concurrent {
    extern crate std;

    use super::*;
    use crate::xen::fake::Pages;
    use crate::xen::hypercall::{
        HvmParam, PastDeadline, Resumed, ShutdownReason, SpecialFrame, Version, Virq,
    };
    use crate::xen::types::Gfn;
    use core::sync::atomic::AtomicU32;
    use std::thread;

    const PORTS: usize = 3;
    const ROUNDS: u32 = if cfg!(miri) { 50 } else { 20_000 };

    /// Xen's side of a shared info page, as `evtchn_2l_set_pending` and `evtchn_2l_unmask` have it.
    #[derive(Clone, Copy)]
    struct MiniXen(NonNull<SharedInfo>);

    // SAFETY: the page outlives the threads, and all its accessed fields are atomics.
    unsafe impl Send for MiniXen {}

    impl MiniXen {
        fn words(&self, port: EventPort) -> (&AtomicU64, &AtomicU64, u64) {
            let (word, bit) = locate(port).unwrap();
            let info = self.0.as_ptr();
            // SAFETY: as for `Send`.
            unsafe {
                (
                    &(*info).evtchn_pending[word],
                    &(*info).evtchn_mask[word],
                    bit,
                )
            }
        }

        fn select(self, port: EventPort) {
            // SAFETY: as for `Send`.
            let vcpu = unsafe { &(*self.0.as_ptr()).vcpu_info[0].events };
            let selected = 1 << (port.0 / 64);
            if vcpu.pending_sel.fetch_or(selected, Ordering::SeqCst) & selected == 0 {
                vcpu.upcall_pending.store(1, Ordering::SeqCst);
            }
        }

        fn raise(self, port: EventPort) {
            let (pending, mask, bit) = self.words(port);
            if pending.fetch_or(bit, Ordering::SeqCst) & bit == 0
                && mask.load(Ordering::SeqCst) & bit == 0
            {
                self.select(port);
            }
        }
    }

    impl Hypervisor for MiniXen {
        fn evtchn_unmask(&self, port: EventPort) -> Result<(), Errno> {
            let (pending, mask, bit) = self.words(port);
            if mask.fetch_and(!bit, Ordering::SeqCst) & bit != 0
                && pending.load(Ordering::SeqCst) & bit != 0
            {
                self.select(port);
            }
            Ok(())
        }

        fn version(&self) -> Result<Version, Errno> {
            Err(Errno::ENOSYS)
        }

        fn evtchn_send(&self, _: EventPort) -> Result<(), Errno> {
            Err(Errno::ENOSYS)
        }

        fn evtchn_alloc_unbound(&self, _: DomId) -> Result<EventPort, Errno> {
            Err(Errno::ENOSYS)
        }

        fn evtchn_bind_virq(&self, _: Virq, _: VcpuId) -> Result<EventPort, Errno> {
            Err(Errno::ENOSYS)
        }

        fn evtchn_close(&self, _: EventPort) -> Result<(), Errno> {
            Err(Errno::ENOSYS)
        }

        fn add_to_physmap(&self, _: SpecialFrame, _: Gfn) -> Result<(), Errno> {
            Err(Errno::ENOSYS)
        }

        fn hvm_param(&self, _: HvmParam) -> Result<u64, Errno> {
            Err(Errno::ENOSYS)
        }

        fn set_hvm_param(&self, _: HvmParam, _: u64) -> Result<(), Errno> {
            Err(Errno::ENOSYS)
        }

        fn set_evtchn_upcall_vector(&self, _: VcpuId, _: u8) -> Result<(), Errno> {
            Err(Errno::ENOSYS)
        }

        fn shutdown(&self, _: ShutdownReason) -> Result<Resumed, Errno> {
            Err(Errno::ENOSYS)
        }

        fn set_singleshot_timer(&self, _: VcpuId, _: u64, _: PastDeadline) -> Result<(), Errno> {
            Err(Errno::ENOSYS)
        }

        fn stop_singleshot_timer(&self, _: VcpuId) -> Result<(), Errno> {
            Err(Errno::ENOSYS)
        }

        fn stop_periodic_timer(&self, _: VcpuId) -> Result<(), Errno> {
            Err(Errno::ENOSYS)
        }

        fn console_write(&self, _: &[u8]) -> Result<(), Errno> {
            Err(Errno::ENOSYS)
        }
    }

    #[test]
    fn no_event_is_lost() {
        let page = Pages::new(1);
        let xen = MiniXen(page.base().cast());
        // SAFETY: the page outlives the value.
        let events = unsafe { EventChannels::new(xen.0, VcpuId(0)) }.unwrap();
        let ports = [EventPort(1), EventPort(2), EventPort(100)];
        // The round whose events are about to be raised, were raised, and were handled.
        let (round, raised, handled) = (&AtomicU32::new(0), &AtomicU32::new(0), &AtomicU32::new(0));
        thread::scope(|scope| {
            scope.spawn(move || {
                // The whole value moves in, not its pointer alone, which is not `Send`.
                let xen = { xen };
                for r in 1..=ROUNDS {
                    round.store(r, Ordering::SeqCst);
                    for port in ports {
                        xen.raise(port);
                    }
                    raised.store(r, Ordering::SeqCst);
                    while handled.load(Ordering::SeqCst) < r {
                        thread::yield_now();
                    }
                }
            });
            let mut seen = [0; PORTS];
            let (mut done, mut idle_turns) = (0, 0);
            for turn in 0_u64.. {
                let all_raised = raised.load(Ordering::SeqCst) > done;
                events.dispatch(|port| {
                    let i = ports.iter().position(|p| *p == port).unwrap();
                    seen[i] = round.load(Ordering::SeqCst);
                });
                if seen == [done + 1; PORTS] {
                    (done, idle_turns) = (done + 1, 0);
                    handled.store(done, Ordering::SeqCst);
                    if done == ROUNDS {
                        break;
                    }
                } else if all_raised {
                    idle_turns += 1;
                    if idle_turns > 20 {
                        // Lets the other thread end before the panic.
                        handled.store(ROUNDS, Ordering::SeqCst);
                        panic!("round {}: saw but {seen:?}", done + 1);
                    }
                }
                // As a driver that polls for a while and an interrupt handler would.
                match turn % 7 {
                    3 => events.mask(ports[1]),
                    4 => events.unmask(&xen, ports[1]).unwrap(),
                    5 => events.acknowledge_upcall(),
                    _ => {}
                }
                if turn % 5 == 0 {
                    thread::yield_now();
                }
            }
        });
    }
}
