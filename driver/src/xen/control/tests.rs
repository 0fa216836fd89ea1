use super::*;
use crate::xen::errno::Errno;
use crate::xen::fake::{FakeXen, block_on};
use core::pin::pin;
use core::task::{Context, Waker};

#[test]
fn requests_are_returned_and_acknowledged() {
    let xen = FakeXen::new();
    let (store, client) = (xen.store(), xen.xenstore());
    let run = |requests: &mut ShutdownRequests| {
        block_on(&store, &client, || {}, requests.next()).expect("stuck")
    };
    let listen = ShutdownRequests::listen(&client);
    let mut requests = block_on(&store, &client, || {}, listen).unwrap().unwrap();
    assert_eq!(store.read("control/feature-poweroff").as_deref(), Some("1"));
    assert_eq!(store.read("control/feature-reboot").as_deref(), Some("1"));

    for (text, expected) in [
        ("poweroff", ShutdownRequest::Poweroff),
        ("reboot", ShutdownRequest::Reboot),
        ("halt", ShutdownRequest::Halt),
        ("suspend", ShutdownRequest::Suspend),
        ("crash", ShutdownRequest::Crash),
    ] {
        store.write(SHUTDOWN, text);
        assert_eq!(run(&mut requests), Ok(expected));
        assert_eq!(store.read(SHUTDOWN).as_deref(), Some(""));
    }
}

#[test]
fn nonsense_is_acknowledged_and_the_next_request_heeded() {
    let xen = FakeXen::new();
    let (store, client) = (xen.store(), xen.xenstore());
    store.refuse_next(Errno::EACCES);
    store.refuse_next(Errno::EACCES);
    store.write(SHUTDOWN, "explode");
    let listen = ShutdownRequests::listen(&client);
    let mut requests = block_on(&store, &client, || {}, listen).unwrap().unwrap();
    {
        let mut next = pin!(requests.next());
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..50 {
            assert!(next.as_mut().poll(&mut cx).is_pending());
            store.run();
            client.poll();
        }
    }
    assert_eq!(store.read(SHUTDOWN).as_deref(), Some(""));
    store.write(SHUTDOWN, "reboot");
    let next = block_on(&store, &client, || {}, requests.next());
    assert_eq!(next, Some(Ok(ShutdownRequest::Reboot)));
}

#[test]
fn a_request_that_was_there_before_is_heeded() {
    let xen = FakeXen::new();
    let (store, client) = (xen.store(), xen.xenstore());
    store.write(SHUTDOWN, "poweroff");
    store.fail_commits(2);
    let next = block_on(&store, &client, || {}, async {
        ShutdownRequests::listen(&client).await?.next().await
    });
    assert_eq!(next, Some(Ok(ShutdownRequest::Poweroff)));
}
