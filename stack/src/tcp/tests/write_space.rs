//! When writers may write, when they are told, and what it was that held a connection up.

use super::{
    super::{ConnectionId, Mistakes, connection::Connection, testing::TestPage},
    harness::{Harness, MSS, peer},
    *,
};
use crate::wire::tcp::Flags;
use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU32, Ordering},
    task::{Poll, Waker},
};
use proptest::prelude::*;
use std::task::Wake;

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A writer that waits.
struct Writer {
    count: Arc<Count>,
    waker: Waker,
}

impl Writer {
    fn new() -> Self {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        Self { count, waker }
    }

    /// Waits as `poll` does; whether there is nothing to wait for.
    fn is_ready(&self, h: &mut Harness, id: ConnectionId) -> bool {
        h.tcp.poll_writable(id, &self.waker).is_ready()
    }

    /// Tries to write; how much was taken.
    fn write(&self, h: &mut Harness, id: ConnectionId, len: usize) -> usize {
        let alloc = &mut || Some(TestPage::new());
        match h.tcp.poll_write(id, &self.waker, &vec![1; len], alloc) {
            Poll::Ready(written) => written.unwrap(),
            Poll::Pending => 0,
        }
    }

    fn woken(&self) -> u32 {
        self.count.0.load(Ordering::Relaxed)
    }
}

fn connection(h: &mut Harness, id: ConnectionId) -> &mut Connection<TestPage> {
    h.tcp.table.get(id).expect("a connection")
}

fn with_lowat(lowat: u32) -> (Harness, ConnectionId, u32) {
    let mut h = Harness::new();
    h.tcp.config_mut().notsent_lowat_bytes = lowat;
    let (id, iss) = h.established();
    (h, id, iss.wrapping_add(1))
}

#[test]
fn no_more_than_the_limit_waits_to_be_sent() {
    let (mut h, id, ack) = with_lowat(10_000);
    h.input_with(Flags::ACK, peer(0), ack, &[], |header| header.window = 0);
    let writer = Writer::new();
    assert_eq!(writer.write(&mut h, id, 7000), 7000);
    assert_eq!(writer.write(&mut h, id, 7000), 3000);
    assert_eq!(writer.write(&mut h, id, 7000), 0);
    assert_eq!(h.info(id).notsent_bytes, 10_000);
}

#[test]
fn low_limits_do_not_make_small_segments() {
    let (mut h, id, _) = with_lowat(1);
    let writer = Writer::new();
    assert_eq!(writer.write(&mut h, id, 7000), MSS as usize);
    assert_eq!(writer.write(&mut h, id, 7000), 0);
    h.poll();
    assert_eq!(h.one().payload.len(), MSS as usize);
    assert_eq!(writer.woken(), 1);
}

/// The data leaves the queue; nothing of it is acknowledged.
fn sent_without_acknowledgment(mistakes: Mistakes) -> (Harness, ConnectionId, u32, Writer) {
    let (mut h, id, ack) = with_lowat(10_000);
    h.tcp.config_mut().mistakes = mistakes;
    let writer = Writer::new();
    h.wire.room = 0;
    assert_eq!(writer.write(&mut h, id, 20_000), 10_000);
    assert_eq!(writer.write(&mut h, id, 10_000), 0);
    h.poll();
    assert_eq!(writer.woken(), 0);
    h.wire.room = usize::MAX;
    h.poll();
    assert_eq!(h.info(id).notsent_bytes, 0);
    (h, id, ack, writer)
}

/// Linux 4bfe744ff164: the queue is empty, the window is not, and nobody tells the writer.
#[test]
fn writers_are_told_when_data_is_sent() {
    let mut mistakes = Mistakes::NONE;
    let (_, _, _, writer) = sent_without_acknowledgment(mistakes);
    assert_eq!(writer.woken(), 1);
    mistakes.write_space_on_ack_only = true;
    let (mut h, _, ack, writer) = sent_without_acknowledgment(mistakes);
    assert_eq!(writer.woken(), 0);
    h.input(Flags::ACK, peer(0), ack + MSS, &[]);
    assert_eq!(writer.woken(), 1);
}

#[test]
fn window_probe_with_data_tells_the_writer() {
    let (mut h, id, ack) = with_lowat(150);
    h.input_with(Flags::ACK, peer(0), ack, &[], |header| header.window = 100);
    let writer = Writer::new();
    assert_eq!(writer.write(&mut h, id, 150), 150);
    assert_eq!(writer.write(&mut h, id, 150), 0);
    h.poll();
    h.silent();
    assert_eq!(writer.woken(), 0);
    h.pass(Duration::from_secs(1));
    assert_eq!(h.sent()[0].payload.len(), 100);
    assert_eq!(writer.woken(), 1, "50 are less than half of 150");
}

#[test]
fn waiting_writers_are_woken_at_half_the_limit() {
    let (mut h, id, ack) = with_lowat(10_000);
    h.input_with(Flags::ACK, peer(0), ack, &[], |header| header.window = 0);
    let writer = Writer::new();
    assert_eq!(writer.write(&mut h, id, 20_000), 10_000);
    assert!(!writer.is_ready(&mut h, id));
    for (window, woken) in [(2 * MSS, 0), (3 * MSS, 0), (4 * MSS, 1), (5 * MSS, 1)] {
        h.input_with(Flags::ACK, peer(0), ack, &[], |header| {
            header.window = window as u16;
        });
        assert_eq!(writer.woken(), woken, "{} wait", h.info(id).notsent_bytes);
    }
    assert!(writer.is_ready(&mut h, id));
    assert_eq!(writer.write(&mut h, id, 3000), 3000);
    assert!(
        !writer.is_ready(&mut h, id),
        "5700 wait: no news to wake for"
    );
    assert_eq!(writer.write(&mut h, id, 3000), 3000, "but room to write");
}

#[test]
fn the_limit_can_be_changed_while_a_writer_waits() {
    let (mut h, id, ack) = with_lowat(u32::MAX);
    h.input_with(Flags::ACK, peer(0), ack, &[], |header| header.window = 0);
    let writer = Writer::new();
    assert_eq!(writer.write(&mut h, id, 50_000), 50_000);
    let now = h.now;
    h.tcp
        .set_options(id, now, |options| options.notsent_lowat_bytes = 40_000);
    assert!(!writer.is_ready(&mut h, id));
    h.tcp
        .set_options(id, now, |options| options.notsent_lowat_bytes = 200_000);
    assert_eq!(writer.woken(), 1);
    assert_eq!(writer.write(&mut h, id, 1 << 20), 150_000);
}

#[test]
fn closed_windows_are_counted() {
    let (mut h, id, ack) = with_lowat(u32::MAX);
    h.input_with(Flags::ACK, peer(0), ack, &[], |header| header.window = 0);
    h.pass(Duration::from_secs(1));
    h.write(id, &[1; 3000]);
    h.pass(Duration::from_secs(3));
    h.input(Flags::ACK, peer(0), ack, &[]);
    h.pass(Duration::from_millis(10));
    h.input(Flags::ACK, peer(0), ack + 3000, &[]);
    h.pass(Duration::from_secs(1));
    let info = h.info(id);
    assert_eq!(info.rwnd_limited_us, 3_000_000);
    assert_eq!(info.busy_time_us, 3_010_000);
    assert_eq!(info.sndbuf_limited_us, 0);
}

/// Linux stops this clock when it tells the application of room, and so counts too little.
#[test]
fn small_buffers_are_counted_until_they_are_refilled() {
    let (mut h, id, ack) = with_lowat(u32::MAX);
    let now = h.now;
    h.tcp.set_options(id, now, |options| {
        options.sndbuf_bytes = Some(6000);
        options.nodelay = true;
    });
    let writer = Writer::new();
    assert_eq!(writer.write(&mut h, id, 20_000), 6000);
    assert!(!writer.is_ready(&mut h, id));
    h.poll();
    h.pass(Duration::from_millis(20));
    h.input(Flags::ACK, peer(0), ack + 2 * MSS, &[]);
    assert_eq!(writer.woken(), 1);
    h.pass(Duration::from_millis(30));
    assert_eq!(h.info(id).sndbuf_limited_us, 50_000);
    assert!(writer.write(&mut h, id, 2000) > 0);
    h.poll();
    h.pass(Duration::from_millis(5));
    let info = h.info(id);
    assert_eq!(info.sndbuf_limited_us, 50_000);
    assert_eq!(info.busy_time_us, 55_000);
    // What has been delivered whole is no limit any more.
    h.input(Flags::ACK, peer(0), ack + 8000, &[]);
    h.pass(Duration::from_secs(1));
    assert_eq!(h.info(id).busy_time_us, 55_000);
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    Wait,
    Room(usize),
    Ack { segments: u32, window: u16 },
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..40_000_usize).prop_map(Step::Write),
        Just(Step::Wait),
        (0..4_usize).prop_map(Step::Room),
        (0..20_u32, prop_oneof![Just(0), Just(3000), Just(60_000)])
            .prop_map(|(segments, window)| Step::Ack { segments, window }),
        (0..300_u64).prop_map(Step::Pass),
    ]
}

proptest! {
    /// Nobody waits for room that is there, whatever happens in between.
    #[test]
    fn no_wake_up_is_lost(
        steps in prop::collection::vec(step(), 1..60),
        lowat in prop_oneof![Just(u32::MAX), 1..50_000_u32],
        sndbuf in 1000..100_000_u32,
    ) {
        let (mut h, id, _) = with_lowat(lowat);
        let now = h.now;
        h.tcp.set_options(id, now, |options| options.sndbuf_bytes = Some(sndbuf));
        let writer = Writer::new();
        let mut waits = None;
        for step in steps {
            match step {
                Step::Write(len) => {
                    writer.write(&mut h, id, len);
                }
                Step::Wait => {
                    let woken = writer.woken();
                    waits = (!writer.is_ready(&mut h, id)).then_some(woken);
                }
                Step::Room(room) => h.wire.room = room,
                Step::Ack { segments, window } => {
                    let connection = connection(&mut h, id);
                    let una = connection.snd.una;
                    let out = connection.snd.nxt.distance_from(una);
                    let ack = (una + (segments * MSS).min(out)).0;
                    h.input_with(Flags::ACK, peer(0), ack, &[], |header| header.window = window);
                }
                Step::Pass(ms) => h.pass(Duration::from_millis(ms)),
            }
            h.poll();
            let connection = connection(&mut h, id);
            let notsent = connection.notsent_bytes();
            prop_assert!(notsent <= lowat.saturating_add(connection.snd.mss));
            if waits == Some(writer.woken()) {
                prop_assert!(!connection.is_writable(), "{notsent} wait, nobody told");
            }
        }
    }
}
