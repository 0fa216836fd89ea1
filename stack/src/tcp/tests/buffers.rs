//! Buffers that follow the path and the reader, and windows when memory is short.

use super::{
    super::{ConnectionId, Info, connection::Connection, testing::TestPage},
    harness::{Harness, MSS, peer},
    *,
};
use crate::{device::RxMemory, sim::apps, wire::tcp::Flags};
use proptest::prelude::*;

fn connection(h: &mut Harness, id: ConnectionId) -> &mut Connection<TestPage> {
    h.tcp.table.get(id).expect("a connection")
}

#[test]
fn send_buffer_follows_the_window() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    let ack = iss.wrapping_add(1);
    let initial = h.info(id).sndbuf_bytes;
    assert_eq!(initial, h.tcp.config().sndbuf_bytes);
    connection(&mut h, id).window.cwnd = 1 << 20;
    h.input(Flags::ACK, peer(0), ack, &[]);
    let grown = (2 << 20) + (128 << 10);
    assert_eq!(h.info(id).sndbuf_bytes, grown);
    connection(&mut h, id).window.cwnd = 10 * MSS;
    h.input(Flags::ACK, peer(0), ack, &[]);
    assert_eq!(h.info(id).sndbuf_bytes, grown, "kept");
    h.tcp.config_mut().max_sndbuf_bytes = 3 << 20;
    connection(&mut h, id).window.cwnd = 1 << 29;
    h.memory = RxMemory::Scarce;
    h.input(Flags::ACK, peer(0), ack, &[]);
    assert_eq!(h.info(id).sndbuf_bytes, grown, "not while memory is short");
    h.memory = RxMemory::Plenty;
    h.input(Flags::ACK, peer(0), ack, &[]);
    assert_eq!(h.info(id).sndbuf_bytes, 3 << 20);
    let now = h.now;
    h.tcp
        .set_options(id, now, |options| options.sndbuf_bytes = Some(5000));
    h.input(Flags::ACK, peer(0), ack, &[]);
    assert_eq!(h.info(id).sndbuf_bytes, 5000, "the application's word");
}

#[test]
fn windows_close_while_memory_is_short_and_open_again() {
    let mut h = Harness::new();
    let (id, iss) = h.established_with(|header| header.options.window_scale = Some(7));
    let ack = iss.wrapping_add(1);
    let mut at = 0;
    let mut give = |h: &mut Harness, memory| {
        h.memory = memory;
        h.input(Flags::ACK, peer(at), ack, &[1; 2 * MSS as usize]);
        at += 2 * MSS;
        h.read(id);
        h.sent();
        h.info(id).rcv_wnd
    };
    let wide = give(&mut h, RxMemory::Plenty);
    assert!(wide > 250_000, "{wide}");
    let next = give(&mut h, RxMemory::Scarce);
    assert!(next + 2 * MSS >= wide, "the edge stays");
    let mut narrow = next;
    for _ in 0..60 {
        narrow = give(&mut h, RxMemory::Scarce);
    }
    assert!((100_000..=136_000).contains(&narrow), "{narrow}");
    give(&mut h, RxMemory::Plenty);
    assert!(give(&mut h, RxMemory::Plenty) > 250_000);
}

/// One flow of 100 Mb/s over 50 ms; returns what it carried in the last second, in Mb/s, and what
/// the two sides tell of it.
fn long_path(change: impl Fn(&mut super::super::Config)) -> (u64, Info, Info) {
    let link = Link {
        rate_bps: Some(100_000_000),
        delay: Duration::from_millis(25),
        ..Link::default()
    };
    let (mut network, a, b) = Network::pair(NicConfig::default(), link);
    for host in [&a, &b] {
        host.net
            .with(|stack| change(stack.tcp_and_device().0.config_mut()));
    }
    let meter = apps::sink(&mut network, &b, PORT, |_| {});
    apps::bulk(&mut network, &a, (&b, PORT), |_| {});
    network.run_for(Duration::from_secs(4));
    let before = meter.bytes();
    network.run_for(Duration::from_secs(1));
    let mbps = (meter.bytes() - before) * 8 / 1_000_000;
    let (sender, receiver) = (infos(&a).remove(0), infos(&b).remove(0));
    (mbps, sender, receiver)
}

#[test]
fn buffers_grow_until_the_path_is_full() {
    let (mbps, sender, receiver) = long_path(|_| {});
    assert!(mbps >= 94, "{mbps} Mb/s, {sender:?}, {receiver:?}");
    assert!(receiver.rcvbuf_bytes > 625_000);
    assert!(receiver.rcvbuf_bytes < 8 << 20, "{}", receiver.rcvbuf_bytes);
    assert!(
        (50_000..120_000).contains(&receiver.rcv_rtt_us),
        "{receiver:?}"
    );
    let (mbps, sender, receiver) = long_path(|config| config.timestamps = false);
    assert!(
        mbps >= 94,
        "by the window alone: {mbps} Mb/s, {sender:?}, {receiver:?}"
    );
}

#[test]
fn buffers_that_may_not_grow_limit_the_path() {
    let (mbps, sender, receiver) = long_path(|config| config.moderate_rcvbuf = false);
    assert!((25..=43).contains(&mbps), "{mbps}: 256 KiB a round trip");
    assert_eq!(receiver.rcvbuf_bytes, 256 << 10);
    assert!(sender.rwnd_limited_us > 3_000_000, "{sender:?}");
    let (mbps, sender, _) = long_path(|config| config.max_sndbuf_bytes = 256 << 10);
    assert!((25..=43).contains(&mbps), "{mbps}: 256 KiB a round trip");
    assert!(sender.sndbuf_limited_us > 3_000_000, "{sender:?}");
}

#[derive(Clone, Debug)]
enum Step {
    Data { len: usize, gap: u32 },
    Read(usize),
    Memory(RxMemory),
    Pass(u64),
    Rcvbuf(Option<u32>),
}

fn step() -> impl Strategy<Value = Step> {
    let memory = prop_oneof![
        Just(RxMemory::Plenty),
        Just(RxMemory::Scarce),
        Just(RxMemory::Spent)
    ];
    prop_oneof![
        (1..40_000_usize, prop_oneof![4 => Just(0), 1 => 1..5000_u32])
            .prop_map(|(len, gap)| Step::Data { len, gap }),
        (1..8_usize).prop_map(Step::Read),
        memory.prop_map(Step::Memory),
        (0..100_u64).prop_map(Step::Pass),
        prop::option::of(1..2_000_000_u32).prop_map(Step::Rcvbuf),
    ]
}

proptest! {
    /// The right edge never moves left, and what is held stays within what may be held.
    #[test]
    fn windows_never_shrink(steps in prop::collection::vec(step(), 1..80), scale in 0..8_u8) {
        let mut h = Harness::new();
        let (id, iss) = h.established_with(|header| header.options.window_scale = Some(scale));
        let ack = iss.wrapping_add(1);
        let mut edge = connection(&mut h, id).rcv.adv;
        for step in steps {
            match step {
                Step::Data { len, gap } => {
                    let next = connection(&mut h, id).rcv.nxt + gap;
                    h.input(Flags::ACK, next.0, ack, &vec![1; len]);
                }
                Step::Read(chunks) => for _ in 0..chunks {
                    h.chunk(id);
                },
                Step::Memory(memory) => h.memory = memory,
                Step::Pass(ms) => h.pass(Duration::from_millis(ms)),
                Step::Rcvbuf(bytes) => {
                    let now = h.now;
                    h.tcp.set_options(id, now, |options| options.rcvbuf_bytes = bytes);
                }
            }
            h.poll();
            let shift = connection(&mut h, id).rcv.wscale;
            for out in h.sent() {
                let field = super::super::seq::UnscaledWindow(out.header.window);
                let told = super::super::seq::SeqNum(out.header.ack) + shift.expand(field);
                prop_assert!(told.after_or_eq(edge), "{told} after {edge}");
                edge = told;
            }
            let connection = connection(&mut h, id);
            prop_assert!(connection.rcv.nxt.before_or_eq(connection.rcv.adv));
        }
    }
}
