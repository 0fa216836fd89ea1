//! Loss, reordering and duplicates.

use super::{
    harness::{Harness, MSS, peer, sack},
    transfer::exchange,
    *,
};
use crate::{
    sim::{Fate, Frame},
    wire::tcp::Flags,
};
use proptest::prelude::*;

/// Round-trip time of the paths to hand-made peers.
const RTT: Duration = Duration::from_millis(20);

/// Whether a frame is TCP with data.
fn has_data(frame: &Frame) -> bool {
    frame.bytes.get(23) == Some(&6) && frame.bytes.len() > 14 + 20 + 32
}

#[test]
fn every_nth_data_segment_lost() {
    for n in [3, 7, 20, 100] {
        let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
        for host in [&a, &b] {
            let mut count = 0;
            network.hook(host, move |_, frame| {
                count += usize::from(has_data(frame));
                if has_data(frame) && count % n == 0 {
                    Fate::Drop
                } else {
                    Fate::Deliver
                }
            });
        }
        exchange(&mut network, &a, &b, 500_000);
    }
}

/// One segment lost of a stream is repaired within a round trip or so, without the timer.
#[test]
fn single_losses_need_no_timeout() {
    for sack in [true, false] {
        for lost in [5, 50, 400] {
            let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
            a.net
                .with(|stack| stack.tcp_and_device().0.config_mut().sack = sack);
            let mut count = 0;
            network.hook(&a, move |_, frame| {
                count += usize::from(has_data(frame));
                if has_data(frame) && count == lost {
                    count += 1;
                    Fate::Drop
                } else {
                    Fate::Deliver
                }
            });
            exchange(&mut network, &a, &b, 1_000_000);
            let counters = a.net.with(|stack| stack.tcp().counters().clone());
            assert_eq!(counters.timeouts, 0, "sack {sack}, lost {lost}");
            assert_eq!(counters.retrans_segs, 1, "sack {sack}, lost {lost}");
            assert_eq!(counters.sack_recovery, u64::from(sack));
            assert_eq!(counters.reno_recovery, u64::from(!sack));
        }
    }
}

/// A burst of losses is repaired in one recovery with SACK.
#[test]
fn bursts_are_repaired_by_the_scoreboard() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let mut count = 0;
    network.hook(&a, move |_, frame| {
        count += usize::from(has_data(frame));
        match count {
            100..110 | 115 | 120..123 if has_data(frame) => Fate::Drop,
            _ => Fate::Deliver,
        }
    });
    exchange(&mut network, &a, &b, 1_000_000);
    let counters = a.net.with(|stack| stack.tcp().counters().clone());
    assert_eq!((counters.timeouts, counters.sack_recovery), (0, 1));
    assert_eq!(counters.retrans_segs, 14);
}

#[test]
fn a_wire_of_whole_segments_loses_them_whole() {
    let link = Link {
        whole_segments: true,
        ..lan()
    };
    let (mut network, a, b) = Network::pair(NicConfig::default(), link);
    let mut count = 0;
    network.hook(&a, move |_, frame| {
        count += usize::from(has_data(frame));
        if has_data(frame) && count % 20 == 0 {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    exchange(&mut network, &a, &b, 10_000_000);
}

#[test]
fn duplicates_and_reordering_lose_nothing() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    for host in [&a, &b] {
        let mut count = 0u64;
        network.hook(host, move |_, _| {
            count += 1;
            match count % 11 {
                3 => Fate::Duplicate,
                7 => Fate::Delay(Duration::from_micros(count % 300)),
                _ => Fate::Deliver,
            }
        });
    }
    exchange(&mut network, &a, &b, 2_000_000);
    let dsacks = b.net.with(|stack| stack.tcp().counters().dsack_old_sent);
    assert!(dsacks > 0);
}

#[test]
fn rfc_3042_limited_transmit() {
    let mut h = Harness::new();
    let (id, iss) = h.established_after(RTT);
    let first = iss.wrapping_add(1);
    h.write(id, &vec![1; 100_000]);
    let sent: u32 = h.sent().iter().map(|out| out.payload.len() as u32).sum();
    assert_eq!(sent, 10 * MSS);
    h.pass(RTT);
    for count in 1..=2 {
        h.input_with(Flags::ACK, peer(0), first, &[], |header| {
            let block = sack(iss, MSS, MSS + count * MSS);
            header.options.sack = [block].into_iter().collect();
        });
        let new = h.one();
        assert_eq!(new.header.seq, first.wrapping_add((9 + count) * MSS));
        assert_eq!(new.payload.len() as u32, MSS);
    }
    // The third one makes it a loss.
    h.input_with(Flags::ACK, peer(0), first, &[], |header| {
        let block = sack(iss, MSS, 4 * MSS);
        header.options.sack = [block].into_iter().collect();
    });
    assert_eq!(h.sent()[0].header.seq, first);
    assert_eq!(h.info(id).lost_bytes, MSS);
    assert_eq!(
        h.info(id).ssthresh_bytes,
        7 * MSS,
        "of the window; what limited transmit adds does not count (RFC 5681 §3.2)"
    );
}

#[test]
fn timeout_sends_the_first_segment_and_backs_off() {
    let mut h = Harness::new();
    h.tcp.config_mut().tail_loss_probe = false;
    let (id, iss) = h.established();
    h.write(id, &vec![1; 20_000]);
    h.sent();
    let mut waits = Vec::new();
    for _ in 0..4 {
        let start = h.now;
        while h.wire.sent.is_empty() {
            h.pass(Duration::from_millis(1));
        }
        waits.push(h.now.since(start).as_millis());
        let again = h.one();
        assert_eq!(again.header.seq, iss.wrapping_add(1));
        assert_eq!(
            again.payload.len() as u32,
            MSS,
            "one segment after a timeout"
        );
    }
    for pair in waits.windows(2) {
        assert!(pair[1].abs_diff(2 * pair[0]) <= 2, "{waits:?}");
    }
    assert_eq!(h.info(id).cwnd_bytes, MSS);
    // The answer brings it all back, in slow start.
    let ack = iss.wrapping_add(1 + 10 * MSS);
    h.input(Flags::ACK, peer(0), ack, &[]);
    let more: u32 = h.sent().iter().map(|out| out.payload.len() as u32).sum();
    assert_eq!(more, 20_000 - 10 * MSS);
    assert_eq!(h.info(id).backoff, 0);
}

#[test]
fn acknowledgments_tell_of_gaps_and_their_filling_at_once() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    let ack = iss.wrapping_add(1);
    // Through the quick start.
    for i in 0..20 {
        h.input(Flags::ACK, peer(i * 10), ack, &[0; 10]);
    }
    h.pass(Duration::from_millis(50));
    h.sent();
    h.input(Flags::ACK, peer(210), ack, &[2; 10]);
    let gap = h.one().header;
    assert_eq!(gap.ack, peer(200));
    assert_eq!(
        (gap.options.sack[0].left, gap.options.sack[0].right),
        (peer(210), peer(220))
    );
    h.input(Flags::ACK, peer(200), ack, &[1; 10]);
    let filled = h.one().header;
    assert_eq!(filled.ack, peer(220));
    assert!(filled.options.sack.is_empty());
    // A duplicate is reported, once (RFC 2883).
    h.input(Flags::ACK, peer(200), ack, &[1; 10]);
    let again = h.one().header;
    assert_eq!(
        (again.options.sack[0].left, again.options.sack[0].right),
        (peer(200), peer(210))
    );
    assert_eq!(h.read(id).len(), 220);
}

/// What the network does to the frames of a run, drawn from a seed.
fn trace(
    seed: u64,
    loss: u64,
    duplicate: u64,
    delay: u64,
) -> impl FnMut(Instant, &mut Frame) -> Fate {
    let mut state = seed | 1;
    move |_, frame| {
        if frame.bytes.get(23) != Some(&6) {
            // Three lost ARP requests would be an unreachable peer.
            return Fate::Deliver;
        }
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match (state >> 20) % 1000 {
            x if x < loss => Fate::Drop,
            x if x < loss + duplicate => Fate::Duplicate,
            x if x < loss + duplicate + delay => {
                Fate::Delay(Duration::from_micros((state >> 40) % 5000))
            }
            _ => Fate::Deliver,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// All bytes arrive once and in order, whatever the network does; a stall would show as a
    /// task that never ends.
    #[test]
    fn all_bytes_arrive_once_and_in_order(
        seed: u64,
        loss in 0u64..200,
        duplicate in 0u64..100,
        delay in 0u64..300,
        len in 1usize..200_000,
        sack: bool,
        timestamps: bool,
        plain: bool,
        rcvbuf in 1000u32..300_000,
    ) {
        let nic = if plain { NicConfig::plain() } else { NicConfig::default() };
        let (mut network, a, b) = Network::pair(nic, lan());
        for (host, salt) in [(&a, 0), (&b, 0x5555)] {
            host.net.with(|stack| {
                let config = stack.tcp_and_device().0.config_mut();
                config.sack = sack;
                config.timestamps = timestamps;
                config.rcvbuf_bytes = rcvbuf;
                // This is not about how long one tries.
                config.retries2 = 100;
                config.orphan_retries = 100;
            });
            network.hook(host, trace(seed ^ salt, loss, duplicate, delay));
        }
        exchange(&mut network, &a, &b, len);
    }
}
