use super::*;
use crate::xen::grant::{Access, StillMapped};
use crate::xen::types::GrantRef;

#[test]
fn grants_are_checked_as_xen_checks_them() {
    let xen = FakeXen::new();
    let table = xen.grant_table(1);
    let (page, gfn) = xen.alloc_pages(1);
    let dom0 = DomId::DOM0;
    let ro = table.grant(dom0, gfn, Access::ReadOnly).unwrap();
    let refusal = |dom, gref, write| xen.map_grant(dom, gref, write).err();

    assert_eq!(
        refusal(DomId(9), ro, false),
        Some(MapGrantError::WrongDomain { granted_to: dom0 })
    );
    assert_eq!(refusal(dom0, ro, true), Some(MapGrantError::ReadOnly));
    assert_eq!(
        refusal(dom0, GrantRef(500), false),
        Some(MapGrantError::NotGranted)
    );
    assert_eq!(
        refusal(dom0, GrantRef(u32::MAX), false),
        Some(MapGrantError::BadReference)
    );
    let nowhere = table.grant(dom0, Gfn(77), Access::ReadOnly).unwrap();
    assert_eq!(
        refusal(dom0, nowhere, false),
        Some(MapGrantError::NoSuchFrame(Gfn(77)))
    );
    let mapping = xen.map_grant(dom0, ro, false).unwrap();
    assert_eq!((mapping.page(), mapping.gfn()), (page, gfn));
}

#[test]
fn a_grant_counts_as_mapped_until_its_last_mapping_goes() {
    let xen = FakeXen::new();
    let table = xen.grant_table(1);
    let (_, gfn) = xen.alloc_pages(1);
    let gref = table.grant(DomId::DOM0, gfn, Access::ReadWrite).unwrap();
    let reader = xen.map_grant(DomId::DOM0, gref, false).unwrap();
    let writer = xen.map_grant(DomId::DOM0, gref, true).unwrap();
    writer.write(4090, b"sixth!");
    let mut seen = [0; 6];
    reader.read(4090, &mut seen);
    assert_eq!(&seen, b"sixth!");

    assert_eq!(table.end_access(gref), Err(StillMapped { gref }));
    drop(writer);
    assert_eq!(table.end_access(gref), Err(StillMapped { gref }));
    assert_eq!(xen.mapped_grants(), 1);
    drop(reader);
    assert_eq!(table.end_access(gref), Ok(()));
    assert_eq!(
        xen.map_grant(DomId::DOM0, gref, false).err(),
        Some(MapGrantError::NotGranted)
    );
}

#[test]
fn ports_have_the_states_of_xen() {
    let xen = FakeXen::new();
    let port = xen.evtchn_alloc_unbound(DomId(5)).unwrap();
    assert_eq!(xen.raise(port), Err(Errno::EINVAL));
    xen.evtchn_send(port).unwrap();
    assert_eq!(xen.take_sends(port), 0);
    assert_eq!(xen.bind(DomId(6), port), Err(Errno::EINVAL));
    xen.bind(DomId(5), port).unwrap();
    assert_eq!(xen.bind(DomId(5), port), Err(Errno::EINVAL));
    xen.evtchn_send(port).unwrap();
    xen.evtchn_send(port).unwrap();
    assert_eq!(xen.take_sends(port), 2);
    assert_eq!(xen.take_sends(port), 0);
    xen.unbind(DomId(5), port).unwrap();
    xen.evtchn_close(port).unwrap();
    assert_eq!(xen.evtchn_send(port), Err(Errno::EINVAL));
    assert_eq!(xen.evtchn_close(port), Err(Errno::EINVAL));
    // The lowest free port is the next.
    assert_eq!(xen.evtchn_alloc_unbound(DomId(5)), Ok(port));
}

#[test]
fn the_timer_raises_its_interrupt() {
    let xen = FakeXen::new();
    let events = xen.event_channels();
    let port = xen.evtchn_bind_virq(Virq::Timer, VcpuId(0)).unwrap();
    events.unmask(&xen, port).unwrap();
    assert_eq!(
        xen.evtchn_bind_virq(Virq::Timer, VcpuId(0)),
        Err(Errno::EEXIST)
    );
    let vcpu = VcpuId(0);
    xen.set_singleshot_timer(vcpu, 500, PastDeadline::Refuse)
        .unwrap();
    xen.set_time_ns(499);
    assert!(!events.any_pending());
    xen.set_time_ns(500);
    assert!(events.is_pending(port));
    assert_eq!(xen.timer_deadline_ns(), None);
    events.dispatch(|_| {});

    let late = xen.set_singleshot_timer(vcpu, 400, PastDeadline::Refuse);
    assert_eq!(late, Err(Errno::ETIME));
    assert!(!events.is_pending(port));
    xen.set_singleshot_timer(vcpu, 400, PastDeadline::Fire)
        .unwrap();
    assert!(events.is_pending(port));
}

#[test]
fn frames_and_addresses_match() {
    let xen = FakeXen::new();
    let (base, gfn) = xen.alloc_pages(3);
    let inside = base.map_addr(|addr| addr.saturating_add(2 * PAGE_BYTES + 5));
    assert_eq!(xen.gfn_of(inside), Some(Gfn(gfn.0 + 2)));
    assert_eq!(xen.gfn_of(NonNull::dangling()), None);
    assert_eq!(xen.translate(Gfn(gfn.0 + 3)), None);
    let store = Gfn(xen.hvm_param(HvmParam::StorePfn).unwrap());
    assert!(xen.translate(store).is_some());
}
