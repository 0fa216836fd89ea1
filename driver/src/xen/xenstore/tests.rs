use super::*;
use crate::xen::errno::Errno;
use crate::xen::fake::{FakeStore, FakeXen, block_on};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use wire::Kind;

struct Fixture {
    xen: FakeXen,
    store: FakeStore,
    client: Xenstore,
}

impl Fixture {
    fn new() -> Self {
        let xen = FakeXen::new();
        let (store, client) = (xen.store(), xen.xenstore());
        Self { xen, store, client }
    }

    /// Runs a future to its end.
    fn run<T>(&self, future: impl Future<Output = T>) -> T {
        block_on(&self.store, &self.client, || {}, future).expect("stuck")
    }

    /// Lets xenstored and the client exchange what they have.
    fn settle(&self) {
        for _ in 0..100 {
            self.store.run();
            self.client.poll();
        }
    }
}

/// Polls once, without a waker that does anything.
fn poll_once<T>(future: core::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn requests() {
    let f = Fixture::new();
    f.store.write("device/vif/0/mac", "00:16:3e:00:00:01");
    f.store.write("device/vif/0/backend-id", 0);
    f.store.write("device/vif/1/backend-id", 0);
    let c = &f.client;
    f.run(async {
        let vif = "device/vif/0";
        let mac = c.read_string(format_args!("{vif}/mac")).await;
        assert_eq!(mac.as_deref(), Ok("00:16:3e:00:00:01"));
        assert_eq!(c.read("device/vif/0/mac").await.unwrap().len(), 17);
        assert_eq!(c.read_u32(format_args!("{vif}/backend-id")).await, Ok(0));
        assert_eq!(c.directory("device/vif").await.unwrap(), ["0", "1"]);
        assert_eq!(c.directory(vif).await.unwrap(), ["backend-id", "mac"]);
        let empty: Vec<String> = c.directory("device/vif/0/mac").await.unwrap();
        assert!(empty.is_empty());

        c.write("device/vif/0/state", 4).await.unwrap();
        assert_eq!(f.store.read("device/vif/0/state").as_deref(), Some("4"));
        c.mkdir("data/new").await.unwrap();
        assert_eq!(f.store.read("data/new").as_deref(), Some(""));
        c.rm("device/vif/0/state").await.unwrap();
        assert_eq!(f.store.read("device/vif/0/state"), None);

        let absent = c.read("device/vif/9").await;
        assert_eq!(absent, Err(Error::Refused(Errno::ENOENT)));
        assert_eq!(optional(absent), Ok(None));
        assert_eq!(optional(c.read_u32("domid").await), Ok(Some(1)));
    });
}

#[test]
fn replies_find_their_requests_in_any_order() {
    let f = Fixture::new();
    f.store.write("a", "1");
    f.store.write("b", "2");
    let (a, b) = (f.client.read_u32("a"), f.client.read_u32("b"));
    assert_eq!(f.run(b), Ok(2));
    assert_eq!(f.run(a), Ok(1));
}

#[test]
fn numbers_are_digits_and_nothing_else() {
    let f = Fixture::new();
    for bad in ["", " 1", "1 ", "+1", "-1", "0x10", "4294967296", "1\n"] {
        f.store.write("n", bad);
        let result = f.run(f.client.read_u32("n"));
        assert!(matches!(result, Err(Error::BadValue { .. })), "{bad:?}");
    }
    f.store.write("n", "4294967295");
    assert_eq!(f.run(f.client.read_u32("n")), Ok(u32::MAX));
}

#[test]
fn text_with_zero_bytes_cannot_become_part_of_a_path() {
    let f = Fixture::new();
    f.store.write("backend", "/local/domain/0\0evil");
    let error = f.run(f.client.read_string("backend")).unwrap_err();
    assert_eq!(
        format!("{error}"),
        "xenstore: expected text without zero bytes, found \"/local/domain/0\\0evil\""
    );
}

#[test]
fn messages_longer_than_the_ring_pass_in_pieces() {
    let f = Fixture::new();
    let value = "v".repeat(4000);
    f.run(f.client.write("long", &value)).unwrap();
    assert_eq!(f.run(f.client.read_string("long")), Ok(value));
    let error = f.run(f.client.write("long", "v".repeat(4096))).unwrap_err();
    assert_eq!(error, Error::TooLong { bytes: 4101 });
    // The connection is as it was.
    assert_eq!(f.run(f.client.read_u32("domid")), Ok(1));
}

#[test]
fn indices_may_start_anywhere_and_wrap() {
    let xen = FakeXen::new();
    let store = xen.store();
    store.set_all_indices(u32::MAX - 700);
    let client = xen.xenstore();
    let f = Fixture { xen, store, client };
    let value = "v".repeat(3000);
    f.run(f.client.write("long", &value)).unwrap();
    assert_eq!(f.run(f.client.read_string("long")), Ok(value));
}

#[test]
fn the_client_waits_for_xenstored_to_be_ready() {
    let xen = FakeXen::new();
    let store = xen.store();
    store.set_connecting();
    let client = xen.xenstore();
    let request = client.read_u32("domid");
    let f = Fixture { xen, store, client };
    assert_eq!(f.run(request), Ok(1));
}

#[test]
fn a_request_notifies_and_so_does_a_reply_taken() {
    let f = Fixture::new();
    let port = f.client.port();
    let reply = f.client.read("domid");
    assert_eq!(f.xen.take_sends(port), 1);
    f.store.run();
    f.client.poll();
    assert_eq!(f.xen.take_sends(port), 1);
    f.client.poll();
    assert_eq!(f.xen.take_sends(port), 0);
    drop(reply);
}

#[test]
fn too_many_requests_are_refused() {
    let f = Fixture::new();
    f.store.hang(true);
    let replies: Vec<_> = (0..64).map(|_| f.client.read("domid")).collect();
    let one_more = f.run(f.client.read("domid"));
    assert_eq!(one_more, Err(Error::TooManyRequests));
    f.store.hang(false);
    for reply in replies {
        assert_eq!(f.run(reply).as_deref(), Ok(&b"1"[..]));
    }
}

#[test]
fn dropped_requests_leave_nothing_behind() {
    let f = Fixture::new();
    for _ in 0..if cfg!(miri) { 70 } else { 1000 } {
        let mut reply = pin!(f.client.read("domid"));
        assert!(poll_once(reply.as_mut()).is_pending());
        f.settle();
    }
    for _ in 0..if cfg!(miri) { 70 } else { 1000 } {
        drop(f.client.read("domid"));
        f.settle();
    }
    assert_eq!(f.run(f.client.read_u32("domid")), Ok(1));
}

// Transactions.

#[test]
fn a_transaction_commits_all_or_nothing() {
    let f = Fixture::new();
    let c = &f.client;
    f.run(c.transaction(async |t| {
        t.write("a", 1).await?;
        t.write("b", 2).await?;
        assert_eq!(f.store.read("a"), None);
        assert_eq!(t.read_u32("a").await, Ok(1));
        Ok(())
    }))
    .unwrap();
    assert_eq!(f.store.read("b").as_deref(), Some("2"));

    let failed: Result<(), _> = f.run(c.transaction(async |t| {
        t.write("c", 3).await?;
        t.read("absent").await?;
        Ok(())
    }));
    assert!(failed.unwrap_err().is_absent());
    f.settle();
    assert_eq!(f.store.read("c"), None);
    assert_eq!(f.store.open_transactions(), 0);
}

#[test]
fn a_conflict_starts_the_transaction_over() {
    let f = Fixture::new();
    f.store.write("counter", 10);
    let mut runs = 0;
    let result = f.run(f.client.transaction(async |t| {
        let value = t.read_u32("counter").await?;
        runs += 1;
        if runs < 3 {
            f.store.write("counter", value + 100);
        }
        t.write("counter", value + 1).await?;
        Ok(value)
    }));
    assert_eq!(result, Ok(210));
    assert_eq!(runs, 3);
    assert_eq!(f.store.read("counter").as_deref(), Some("211"));
}

#[test]
fn conflicts_without_end_are_given_up() {
    let f = Fixture::new();
    f.store.fail_commits(MAX_COMMIT_ATTEMPTS - 1);
    let once = |t: &Transaction| t.write("a", 1);
    f.run(f.client.transaction(async |t| once(t).await))
        .unwrap();
    f.store.fail_commits(usize::MAX);
    let result = f.run(f.client.transaction(async |t| once(t).await));
    assert_eq!(result, Err(Error::Refused(Errno::EAGAIN)));
}

#[test]
fn a_transaction_dropped_at_any_point_is_aborted() {
    for polls in 0..12 {
        let f = Fixture::new();
        {
            let mut transaction = pin!(f.client.transaction(async |t| {
                t.write("a", 1).await?;
                t.write("b", 1).await
            }));
            for _ in 0..polls {
                if poll_once(transaction.as_mut()).is_ready() {
                    break;
                }
                if polls % 2 == 0 {
                    f.settle();
                } else {
                    f.store.run();
                }
            }
        }
        f.settle();
        assert_eq!(f.store.open_transactions(), 0, "after {polls} polls");
        assert_eq!(f.store.read("a"), f.store.read("b"));
    }
}

#[test]
fn a_commit_that_cannot_be_sent_aborts() {
    let f = Fixture::new();
    let mut replies = Vec::new();
    let result = f.run(f.client.transaction(async |t| {
        t.write("a", 1).await?;
        f.store.hang(true);
        replies.extend((0..64).map(|_| f.client.read("domid")));
        Ok(())
    }));
    assert_eq!(result, Err(Error::TooManyRequests));
    f.store.hang(false);
    f.settle();
    assert_eq!(f.store.open_transactions(), 0);
    assert_eq!(f.store.read("a"), None);
}

// Watches.

#[test]
fn a_watch_reports_the_start_and_every_change() {
    let f = Fixture::new();
    f.store.write("device/vif/0/state", 1);
    let mut watch = f.run(f.client.watch("device/vif")).unwrap();
    assert_eq!(f.run(watch.changed()).as_deref(), Ok("device/vif"));
    f.store.write("device/vif/0/state", 2);
    assert_eq!(f.run(watch.changed()).as_deref(), Ok("device/vif/0/state"));
    f.store.write("device/vifx", 2);
    f.store.remove("device");
    assert_eq!(f.run(watch.changed()).as_deref(), Ok("device/vif"));

    let path = "/local/domain/0/backend/vif/1/0/state";
    let mut absolute = f.run(f.client.watch(path)).unwrap();
    f.run(absolute.changed()).unwrap();
    f.store.write(path, 4);
    assert_eq!(f.run(absolute.changed()).as_deref(), Ok(path));
}

#[test]
fn a_dropped_watch_is_removed() {
    let f = Fixture::new();
    let watch = f.run(f.client.watch("control")).unwrap();
    assert_eq!(f.store.watches(), 1);
    f.store.write("control/shutdown", "late");
    drop(watch);
    f.settle();
    assert_eq!(f.store.watches(), 0);
    assert_eq!(f.client.broken(), None);
    // Dropped before it was set up.
    {
        let mut watch = pin!(f.client.watch("control"));
        assert!(poll_once(watch.as_mut()).is_pending());
    }
    f.settle();
    assert_eq!(f.store.watches(), 0);
}

#[test]
fn a_refused_watch_is_an_error() {
    let f = Fixture::new();
    f.store.refuse_next(Errno::EACCES);
    let result = f.run(f.client.watch("/secret"));
    assert_eq!(result.err(), Some(Error::Refused(Errno::EACCES)));
    f.settle();
    assert_eq!(f.client.broken(), None);
}

#[test]
fn watch_events_that_nobody_reads_are_bounded() {
    let f = Fixture::new();
    let mut watch = f.run(f.client.watch("d")).unwrap();
    f.run(watch.changed()).unwrap();
    for _ in 0..100 {
        f.store.write("d/same", 1);
    }
    f.settle();
    assert_eq!(f.run(watch.changed()).as_deref(), Ok("d/same"));
    assert!(poll_once(pin!(watch.changed())).is_pending());

    for i in 0..if cfg!(miri) { 40 } else { 1000 } {
        f.store.write(format_args!("d/{i}"), 1);
        f.settle();
    }
    let mut events = Vec::new();
    while let Poll::Ready(path) = poll_once(pin!(watch.changed())) {
        events.push(path.unwrap());
    }
    assert!(events.len() <= 32);
    // What was dropped is stood for by the watched path.
    assert_eq!(events[0], "d");
}

// A xenstored that cannot be trusted.

/// Lets `attack` happen while request 2 is under way and returns how the connection broke. All
/// waits must have ended with the same error.
fn break_with(attack: impl FnOnce(&FakeStore)) -> ProtocolError {
    let f = Fixture::new();
    let mut watch = f.run(f.client.watch("device")).unwrap();
    f.run(watch.changed()).unwrap();
    f.settle();
    let under_way = f.client.read("domid");
    attack(&f.store);
    f.settle();
    let broken = f.client.broken().expect("still up");
    let error = Error::Protocol(broken);
    assert_eq!(f.run(under_way), Err(error.clone()));
    assert_eq!(f.run(watch.changed()), Err(error.clone()));
    assert_eq!(f.run(f.client.read("domid")), Err(error));
    broken
}

#[test]
fn garbage_breaks_the_connection_cleanly() {
    let message = |kind: u32, req_id, claimed, payload: &'static [u8]| {
        break_with(move |s| s.inject_message(kind, req_id, claimed, payload))
    };
    assert_eq!(
        break_with(|s| s.inject(&[0xff; 64])),
        ProtocolError::Oversize { bytes: u32::MAX }
    );
    assert_eq!(
        message(Kind::Read as u32, 2, 4097, b""),
        ProtocolError::Oversize { bytes: 4097 }
    );
    assert_eq!(
        message(Kind::Read as u32, 77, 1, b"x"),
        ProtocolError::UnknownRequest { req_id: 77 }
    );
    assert_eq!(
        message(Kind::Write as u32, 2, 3, b"OK\0"),
        ProtocolError::BadReplyType {
            expected: 2,
            found: 11
        }
    );
    for payload in [&b""[..], b"ENOENT", b"\xff\0"] {
        assert_eq!(
            message(Kind::Error as u32, 2, payload.len() as u32, payload),
            ProtocolError::BadPayload { kind: 16 }
        );
    }
    for payload in [
        &b"path"[..],
        b"",
        b"\0",
        b"p\0x\0",
        b"p\x001\0x\0",
        b"\xff\x001\0",
    ] {
        assert_eq!(
            message(Kind::WatchEvent as u32, 0, payload.len() as u32, payload),
            ProtocolError::BadPayload { kind: 15 }
        );
    }
    assert_eq!(
        break_with(|s| s.set_ring_error(2)),
        ProtocolError::Reported(2)
    );
}

#[test]
fn unknown_errors_are_refusals() {
    for (name, errno) in [
        (&b"EQUOTA\0"[..], Errno::ENOSPC),
        (b"EWHAT\0", Errno::EIO),
        (b"\0", Errno::EIO),
    ] {
        let f = Fixture::new();
        f.store.hang(true);
        let reply = f.client.read("domid");
        f.store
            .inject_message(Kind::Error as u32, 1, name.len() as u32, name);
        f.store.hang(false);
        f.store.run();
        f.client.poll();
        assert_eq!(f.run(reply), Err(Error::Refused(errno)));
    }
}

#[test]
fn the_same_reply_twice_breaks_the_connection() {
    let f = Fixture::new();
    let reply = f.client.read("domid");
    f.store.inject_message(Kind::Read as u32, 1, 1, b"7");
    f.settle();
    assert_eq!(
        f.client.broken(),
        Some(ProtocolError::UnknownRequest { req_id: 1 })
    );
    // The first came before the violation.
    assert_eq!(f.run(reply).as_deref(), Ok(&b"7"[..]));
}

#[test]
fn indices_that_jump_break_the_connection() {
    let far = |value: u32| {
        assert!(matches!(
            break_with(|s| s.set_rsp_prod(value)),
            ProtocolError::RingIndex { name: "rsp_prod", theirs, .. } if theirs == value
        ));
    };
    far(100_000);
    far(u32::MAX);

    let f = Fixture::new();
    f.store.set_req_cons(5000);
    let error = f.run(f.client.read("domid")).unwrap_err();
    assert!(matches!(
        error,
        Error::Protocol(ProtocolError::RingIndex {
            name: "req_cons",
            theirs: 5000,
            ours: 0
        })
    ));
}

#[test]
fn random_bytes_never_panic() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for _ in 0..if cfg!(miri) { 5 } else { 500 } {
        let f = Fixture::new();
        let _reply = f.client.read("domid");
        for _ in 0..8 {
            // Mostly plausible headers, so that the payloads are reached.
            let kind = (random() % 18) as u32;
            let bytes: Vec<u8> = (0..random() % 40).map(|_| (random() % 4) as u8).collect();
            let claimed = bytes.len() as u32 + (random() % 16 / 15) as u32;
            f.store
                .inject_message(kind, (random() % 3) as u32, claimed, &bytes);
        }
        f.settle();
        drop(f.client.write("a", 1));
    }
}

// Ends of waits, and new beginnings.

#[test]
fn a_caller_that_lost_patience_ends_all_waits() {
    let f = Fixture::new();
    let mut watch = f.run(f.client.watch("device")).unwrap();
    f.run(watch.changed()).unwrap();
    f.store.hang(true);
    let reply = f.client.read("domid");
    f.client.fail_all(&Error::TimedOut);
    assert_eq!(f.run(reply), Err(Error::TimedOut));
    assert_eq!(f.run(watch.changed()), Err(Error::TimedOut));
    // The late reply is not mistaken for anything else's.
    f.store.hang(false);
    f.settle();
    assert_eq!(f.client.broken(), None);
    assert_eq!(f.run(f.client.read_u32("domid")), Ok(1));
    f.store.write("device/x", 1);
    assert_eq!(f.run(watch.changed()).as_deref(), Ok("device/x"));
}

#[test]
fn a_transaction_that_starts_after_the_wait_for_it_ended_is_aborted() {
    let f = Fixture::new();
    let mut transaction = pin!(f.client.transaction(async |_| Ok(())));
    assert!(poll_once(transaction.as_mut()).is_pending());
    f.client.fail_all(&Error::TimedOut);
    f.settle();
    assert_eq!(f.store.open_transactions(), 0);
    assert_eq!(f.run(transaction), Err(Error::TimedOut));
}

#[test]
fn reconnection_restores_the_watches() {
    let f = Fixture::new();
    assert_eq!(f.client.reconnect(), Err(Error::ReconnectUnsupported));
    f.store.offer_reconnection();
    let mut watch = f.run(f.client.watch("device")).unwrap();
    f.run(watch.changed()).unwrap();
    f.store.inject(&[0xff; 16]);
    f.settle();
    assert!(f.client.broken().is_some());
    assert!(matches!(f.run(watch.changed()), Err(Error::Protocol(_))));

    f.client.reconnect().unwrap();
    assert_eq!(f.client.broken(), None);
    assert_eq!(f.run(f.client.read_u32("domid")), Ok(1));
    assert_eq!(f.store.watches(), 1);
    // The wait ended with the connection, and then the watch reports its path anew.
    assert_eq!(f.run(watch.changed()), Err(Error::Disconnected));
    assert_eq!(f.run(watch.changed()).as_deref(), Ok("device"));
    f.store.write("device/y", 1);
    assert_eq!(f.run(watch.changed()).as_deref(), Ok("device/y"));
}

#[test]
fn a_new_ring_restores_the_watches() {
    let f = Fixture::new();
    let mut watch = f.run(f.client.watch("device")).unwrap();
    f.run(watch.changed()).unwrap();
    let reply = f.client.read("domid");

    let (other, ring) = {
        let xen = FakeXen::new();
        let gfn = xen.hvm_param(crate::xen::hypercall::HvmParam::StorePfn);
        let ring = xen.translate(crate::xen::Gfn(gfn.unwrap())).unwrap();
        (xen, ring)
    };
    let store = other.store();
    // SAFETY: `other` outlives the client's use of its page.
    unsafe { f.client.reset(ring, EventPort(1)) };
    assert_eq!(f.run(reply), Err(Error::Disconnected));
    for _ in 0..10 {
        store.run();
        f.client.poll();
    }
    assert_eq!(store.watches(), 1);
    let value = block_on(&store, &f.client, || {}, f.client.read_u32("domid"));
    assert_eq!(value, Some(Ok(1)));
    assert_eq!(f.run(watch.changed()), Err(Error::Disconnected));
    assert_eq!(f.run(watch.changed()).as_deref(), Ok("device"));
    // The old page is left alone: its client is gone before `other` is.
    let Fixture { client, .. } = f;
    drop((watch, client));
}

#[test]
fn a_request_that_cannot_be_notified_is_not_lost() {
    let f = Fixture::new();
    f.xen.fail_next("evtchn_send", Errno::EINVAL);
    assert_eq!(f.run(f.client.read_u32("domid")), Ok(1));
}
