//! Peers that send what they like.

use super::harness::{Harness, peer};
use crate::{
    time::Duration,
    wire::tcp::{Flags, Header, Options, SackBlock, Timestamps},
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Segment {
        flags: u8,
        seq: i32,
        ack: i32,
        window: u16,
        len: usize,
        sack: [(i32, i32); 3],
        timestamp: Option<i32>,
        other_port: bool,
    },
    Write(usize),
    Read,
    Shutdown,
    Pass(u64),
    Room(usize),
}

fn near() -> impl Strategy<Value = i32> {
    prop_oneof![Just(0), -3i32..3, -70_000i32..70_000, any::<i32>()]
}

fn step() -> impl Strategy<Value = Step> {
    let segment = (
        any::<u8>(),
        near(),
        near(),
        any::<u16>(),
        prop_oneof![Just(0usize), 1usize..3000, Just(60_000usize)],
        [(near(), near()), (near(), near()), (near(), near())],
        proptest::option::of(near()),
        proptest::bool::weighted(0.05),
    );
    prop_oneof![
        10 => segment.prop_map(|(flags, seq, ack, window, len, sack, timestamp, other_port)| {
            // Mostly acknowledgments, seldom resets.
            let flags = match flags % 8 {
                0 => flags,
                1 => (Flags::ACK | Flags::FIN).bits(),
                2 => (Flags::ACK | Flags::SYN).bits(),
                _ => Flags::ACK.bits(),
            };
            Step::Segment { flags, seq, ack, window, len, sack, timestamp, other_port }
        }),
        3 => (1usize..100_000).prop_map(Step::Write),
        2 => Just(Step::Read),
        1 => Just(Step::Shutdown),
        2 => (0u64..3_000_000).prop_map(Step::Pass),
        1 => (0usize..5).prop_map(Step::Room),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// No segment makes the stack panic, answer without bound, or forget to set a timer while
    /// data waits.
    #[test]
    fn no_segment_hurts(
        steps in proptest::collection::vec(step(), 1..80),
        timestamps: bool,
        sack: bool,
        passive: bool,
    ) {
        let mut h = Harness::new();
        h.tcp.config_mut().timestamps = timestamps;
        h.tcp.config_mut().sack = sack;
        h.timestamps = timestamps;
        h.tcp.config_mut().rcvbuf_bytes = 50_000;
        let listener = h.listen(2);
        let (id, iss) = if passive {
            (h.connect(), 0)
        } else {
            h.established()
        };
        let mut closed = false;
        for step in steps {
            match step {
                Step::Segment { flags, seq, ack, window, len, sack, timestamp, other_port } => {
                    let next = h.tcp.info(id).map_or(0, |info| info.bytes_received as u32);
                    let blocks = sack.iter().map(|&(start, len)| {
                        let left = iss.wrapping_add_signed(start);
                        SackBlock { left, right: left.wrapping_add_signed(len) }
                    });
                    let header = Header {
                        flags: Flags::from_bits_retain(flags),
                        seq: peer(next).wrapping_add_signed(seq),
                        ack: iss.wrapping_add(1).wrapping_add_signed(ack),
                        window,
                        options: Options {
                            sack: blocks.collect(),
                            timestamps: timestamp.map(|offset| Timestamps {
                                value: ((h.now.as_micros() / 1000) as u32).wrapping_add_signed(offset),
                                echo: 3,
                            }),
                            ..Options::default()
                        },
                        ..Header::default()
                    };
                    let port = super::harness::PEER_PORT + u16::from(other_port);
                    let before = h.wire.sent.len();
                    h.input_from(port, header, &std::vec![1; len]);
                    // At most a window of data, an acknowledgment and a reset.
                    prop_assert!(h.wire.sent.len() - before < 2000);
                }
                Step::Write(len) if !closed => {
                    let alloc = &mut || Some(super::super::testing::TestPage::new());
                    let _ = h.tcp.poll_write(id, core::task::Waker::noop(), &std::vec![2; len], alloc);
                    h.poll();
                }
                Step::Write(_) => {}
                Step::Read => {
                    let mut data = std::vec![0; 100_000];
                    let _ = h.tcp.poll_read(id, core::task::Waker::noop(), &mut data);
                    h.poll();
                }
                Step::Shutdown => {
                    closed = true;
                    h.shutdown(id);
                }
                Step::Pass(us) => h.pass(Duration::from_micros(us)),
                Step::Room(room) => h.wire.room = room,
            }
            if let Some(info) = h.tcp.info(id) {
                let waits = info.notsent_bytes > 0 || info.unacked_bytes > 0;
                let is_open = info.state != super::super::State::Closed;
                prop_assert!(
                    !(waits && is_open) || h.tcp.deadline().is_some() || h.tcp.wants_poll(),
                    "forgotten: {info:?}"
                );
                prop_assert!(info.rcv_wnd <= 1 << 30);
            }
        }
        // In the end everything is given up or closed.
        h.wire.room = usize::MAX;
        h.tcp.close_listener(listener);
        h.tcp.release(id, false, h.now);
        h.pass(Duration::from_secs(5000));
        prop_assert_eq!(h.tcp.count().0, 0);
    }
}
