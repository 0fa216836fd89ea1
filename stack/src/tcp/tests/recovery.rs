//! What the sender makes of acknowledgments, and of their lack, segment by segment.

use super::{
    super::{ConnectionId, Counters},
    harness::{Harness, MSS, OUR_PORT, PEER, PEER_PORT, US, peer, sack},
    *,
};
use crate::{
    ip::{IcmpError, IcmpErrorKind},
    wire::tcp::{Flags, Timestamps},
};

const RTT: Duration = Duration::from_millis(20);

/// A connection of ours over a path of 20 ms.
struct Flow {
    h: Harness,
    id: ConnectionId,
    iss: u32,
}

impl Flow {
    /// With as many segments written; ten of them have gone.
    fn new(segments: u32, change: impl FnOnce(&mut Harness)) -> Self {
        let mut h = Harness::new();
        change(&mut h);
        let (id, iss) = h.established_after(RTT);
        let mut f = Self { h, id, iss };
        f.write(segments);
        f
    }

    fn write(&mut self, segments: u32) {
        let bytes = vec![1; (segments * MSS) as usize];
        assert_eq!(self.h.write(self.id, &bytes), bytes.len());
    }

    /// What was sent since the last call: segments from and to, packets that follow each other
    /// joined.
    fn sent(&mut self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = vec![];
        for out in &self.h.sent() {
            let start = out.header.seq.wrapping_sub(self.iss + 1);
            let end = (start + out.payload.len() as u32).div_ceil(MSS);
            match ranges.last_mut() {
                Some(last) if last.1 * MSS == start => last.1 = end,
                _ => ranges.push((start / MSS, end)),
            }
        }
        ranges
    }

    /// An acknowledgment of so many segments, with SACK blocks.
    fn ack(&mut self, segments: u32, blocks: &[(u32, u32)]) {
        self.ack_echoing(segments, blocks, None);
    }

    fn ack_echoing(&mut self, segments: u32, blocks: &[(u32, u32)], echo: Option<u32>) {
        let iss = self.iss;
        let ack = iss.wrapping_add(1 + segments * MSS);
        self.h.input_with(Flags::ACK, peer(0), ack, &[], |header| {
            for &(start, end) in blocks {
                let block = sack(iss, start * MSS, end * MSS);
                header.options.sack.push(block).expect("few blocks");
            }
            if let (Some(echo), Some(own)) = (echo, &mut header.options.timestamps) {
                *own = Timestamps { echo, ..*own };
            }
        });
    }

    fn counters(&self) -> &Counters {
        self.h.tcp.counters()
    }

    /// Congestion window in segments.
    fn cwnd(&self) -> u32 {
        self.h.info(self.id).cwnd_bytes / MSS
    }
}

/// RFC 8985 §3: a retransmission that is lost in its turn is found by what was sent after it.
#[test]
fn a_lost_retransmission_needs_no_timeout() {
    let mut f = Flow::new(40, |_| {});
    assert_eq!(f.sent(), [(0, 10)]);
    f.h.pass(RTT);
    f.ack(0, &[(1, 4)]);
    assert_eq!(f.sent()[0], (0, 1), "the fast retransmission");
    f.h.pass(Duration::from_millis(1));
    f.ack(0, &[(1, 10)]);
    let new = f.sent();
    assert_eq!(new[0].0, 10, "{new:?}");
    f.h.pass(RTT);
    f.sent();
    f.ack(0, &[(1, 11)]);
    assert_eq!(f.sent()[0], (0, 1), "once more");
    let counters = f.counters();
    assert_eq!((counters.lost_retransmit, counters.timeouts), (1, 0));
    assert_eq!(counters.sack_recovery, 1, "and no new event");
}

/// The retransmission does not wait until the device is done with the original.
#[test]
fn a_retransmission_is_not_refused_because_the_device_holds_the_original() {
    let mut f = Flow::new(10, |h| h.keeps = true);
    f.sent();
    assert_eq!(f.h.info(f.id).in_device_bytes, 10 * MSS);
    f.h.pass(RTT);
    f.ack(0, &[(1, 4)]);
    assert_eq!(f.sent(), [(0, 1)]);
    assert_eq!(f.counters().spurious_rtx_host_queues, 1);
}

#[test]
fn the_patience_with_one_overtaken_segment_ends_by_a_timer() {
    let mut f = Flow::new(10, |_| {});
    f.sent();
    f.h.pass(RTT);
    f.ack(0, &[(1, 2)]);
    assert_eq!(f.sent(), []);
    f.h.pass((RTT / 4).saturating_sub(Duration::from_millis(1)));
    assert_eq!(f.sent(), []);
    f.h.pass(Duration::from_millis(1));
    assert_eq!(f.sent(), [(0, 1)]);
}

/// RFC 8985 §7: the last segment is repeated, and its acknowledgment shows what was lost before.
#[test]
fn a_lost_tail_is_probed_for() {
    let mut f = Flow::new(5, |_| {});
    f.sent();
    f.h.pass(RTT);
    f.ack(3, &[]);
    f.h.pass(2 * RTT + Duration::from_millis(1));
    assert_eq!(f.sent(), []);
    f.h.pass(Duration::from_millis(2));
    assert_eq!(f.sent(), [(4, 5)], "the probe");
    f.h.pass(RTT);
    assert_eq!(f.sent(), [], "one at a time");
    f.ack(3, &[(4, 5)]);
    f.h.pass(RTT / 2);
    assert_eq!(f.sent(), [(3, 4)]);
    f.ack(5, &[]);
    let counters = f.counters();
    assert_eq!((counters.loss_probes, counters.timeouts), (1, 0));
}

#[test]
fn a_probe_is_new_data_where_there_is_any() {
    let mut f = Flow::new(40, |_| {});
    assert_eq!(f.sent(), [(0, 10)]);
    f.h.pass(2 * RTT + Duration::from_millis(3));
    assert_eq!(f.sent(), [(10, 11)], "whatever the congestion window says");
    assert_eq!(f.counters().retrans_segs, 0);
}

/// RFC 8985 §7.4: the probe was the retransmission; the loss that it hid is answered.
#[test]
fn a_loss_that_the_probe_repaired_reduces_the_window() {
    let mut f = Flow::new(5, |_| {});
    f.sent();
    f.h.pass(RTT);
    f.ack(4, &[]);
    f.h.pass(Duration::from_millis(400));
    assert_eq!(f.sent(), [(4, 5)]);
    f.h.pass(RTT);
    f.ack(5, &[]);
    assert_eq!(f.counters().loss_probe_recovery, 0, "not known yet");
    f.write(1);
    f.h.pass(RTT);
    f.ack(6, &[]);
    assert_eq!(f.counters().loss_probe_recovery, 1);
    assert_eq!(f.counters().timeouts, 0);
    assert!(f.h.info(f.id).ssthresh_bytes < 10 * MSS);
}

/// RFC 3522: the timestamp of the first answer is that of the original.
#[test]
fn eifel_undoes_a_spurious_timeout() {
    let mut f = Flow::new(9, |h| {
        h.tcp.config_mut().tail_loss_probe = false;
        h.tcp.config_mut().timestamps = true;
        h.timestamps = true;
    });
    let original = f.h.sent()[0].header.options.timestamps.unwrap().value;
    let before = f.h.info(f.id);
    f.h.pass(Duration::from_millis(400));
    assert_eq!(f.sent()[0], (0, 1));
    assert_eq!(f.h.info(f.id).cwnd_bytes, before.snd_mss);
    f.ack_echoing(1, &[], Some(original));
    let after = f.h.info(f.id);
    assert!(after.cwnd_bytes >= before.cwnd_bytes);
    assert_eq!(after.ssthresh_bytes, before.ssthresh_bytes);
    assert_eq!((after.lost_bytes, after.retransmits), (0, 0));
    assert_eq!(f.sent(), [], "nothing is sent again");
    assert_eq!(f.counters().loss_undo, 1);
}

/// RFC 5682 §3.1: without timestamps, new data tells.
#[test]
fn frto_undoes_a_spurious_timeout() {
    let mut f = Flow::new(40, |h| h.tcp.config_mut().tail_loss_probe = false);
    let before = f.cwnd();
    f.sent();
    f.h.pass(Duration::from_millis(400));
    assert_eq!(f.sent()[0], (0, 1));
    f.ack(1, &[]);
    let new = f.sent();
    assert!(new.iter().all(|&(start, _)| start >= 10), "{new:?}");
    assert!(!new.is_empty());
    f.ack(2, &[]);
    assert_eq!(f.counters().spurious_rtos, 1);
    assert!(f.cwnd() >= before);
    assert!(f.sent().iter().all(|&(start, _)| start >= 10));
}

/// RFC 5682 §3.1, step 3a: the new data arrived, the old did not.
#[test]
fn frto_lets_a_true_timeout_be() {
    let mut f = Flow::new(40, |h| h.tcp.config_mut().tail_loss_probe = false);
    f.sent();
    f.h.pass(Duration::from_millis(400));
    f.sent();
    f.ack(1, &[]);
    let new = f.sent();
    f.h.pass(RTT);
    f.ack(1, &[new[0]]);
    assert_eq!(f.sent()[0].0, 1, "the second segment goes again");
    assert_eq!(f.counters().spurious_rtos, 0);
    assert!(f.cwnd() < 10);
}

/// RFC 3708: what was sent again arrived twice.
#[test]
fn dsack_undoes_a_spurious_fast_retransmission() {
    let mut f = Flow::new(10, |_| {});
    f.sent();
    let before = (f.cwnd(), f.h.info(f.id).ssthresh_bytes);
    f.h.pass(RTT);
    f.ack(0, &[(1, 4)]);
    assert_eq!(f.sent(), [(0, 1)]);
    f.ack(10, &[]);
    assert!(f.cwnd() < before.0);
    f.write(1);
    f.h.pass(RTT);
    f.ack(10, &[(0, 1)]);
    assert_eq!((f.cwnd(), f.h.info(f.id).ssthresh_bytes), before);
    assert_eq!((f.counters().dsack_recv, f.counters().dsack_undo), (1, 1));
    assert!(f.h.info(f.id).reord_seen > 0);
}

/// More duplicates than retransmissions: the network made them, or the peer lies.
#[test]
fn duplicates_of_what_was_sent_once_undo_nothing() {
    let mut f = Flow::new(20, |_| {});
    f.sent();
    f.h.pass(RTT);
    f.ack(4, &[]);
    f.ack(4, &[(0, 1)]);
    f.ack(4, &[(1, 2)]);
    assert_eq!(f.counters().dsack_ignored_dubious, 2);
    assert_eq!(f.counters().dsack_undo, 0);
}

/// RFC 2018 §8: the peer threw away what it had reported.
#[test]
fn a_peer_that_reneges_gets_everything_again_soon() {
    let mut f = Flow::new(10, |h| h.tcp.config_mut().tail_loss_probe = false);
    f.sent();
    f.h.pass(RTT);
    f.ack(0, &[(3, 10)]);
    f.sent();
    f.h.pass(RTT);
    f.ack(3, &[]);
    f.sent();
    f.h.pass(Duration::from_millis(11));
    assert_eq!(f.counters().sack_reneging, 1);
    assert_eq!(f.sent()[0].0, 3);
}

/// RFC 1191 §6.4: packets too big for the path are no congestion.
#[test]
fn a_smaller_path_mtu_is_no_congestion() {
    let mut f = Flow::new(10, |_| {});
    f.sent();
    let before = (f.h.info(f.id).cwnd_bytes, f.h.info(f.id).ssthresh_bytes);
    let mut route = f.h.wire.route.unwrap();
    route.mtu_bytes = 1000;
    f.h.wire.route = Ok(route);
    let error = IcmpError {
        local: US,
        remote: PEER,
        local_port: OUR_PORT,
        remote_port: PEER_PORT,
        seq: f.iss.wrapping_add(1),
        kind: IcmpErrorKind::PacketTooBig { mtu_bytes: 1000 },
    };
    assert!(f.h.tcp.icmp_error(f.h.now, &error));
    f.h.poll();
    let again = f.h.sent();
    let bytes: u32 = again.iter().map(|out| out.payload.len() as u32).sum();
    assert_eq!(bytes, 10 * MSS, "all of it again, at once");
    assert!(
        again
            .iter()
            .all(|out| out.segment_bytes.is_none_or(|each| each <= 960))
    );
    let info = f.h.info(f.id);
    assert_eq!((info.cwnd_bytes, info.ssthresh_bytes), before);
    assert_eq!(f.counters().sack_recovery, 0);
    f.ack(10, &[]);
    assert!(f.h.info(f.id).cwnd_bytes >= before.0);
}

/// Savage et al.: a hundred acknowledgments of one segment, a few bytes each, are worth one.
#[test]
fn splitting_acknowledgments_gains_nothing() {
    let grown = |splits: u32| {
        let mut f = Flow::new(20, |_| {});
        f.h.pass(RTT);
        let before = f.h.info(f.id).cwnd_bytes;
        for part in 1..=splits {
            let ack = f.iss.wrapping_add(1 + MSS * part / splits);
            f.h.input(Flags::ACK, peer(0), ack, &[]);
        }
        f.h.info(f.id).cwnd_bytes - before
    };
    assert_eq!(grown(100), grown(1));
}

/// An acknowledgment of what was never sent moves nothing.
#[test]
fn optimistic_acknowledgments_of_unsent_data_are_refused() {
    let mut f = Flow::new(20, |_| {});
    f.sent();
    let before = f.h.info(f.id);
    f.ack(11, &[]);
    f.ack(0, &[(12, 13)]);
    let after = f.h.info(f.id);
    assert_eq!(after.bytes_acked, before.bytes_acked);
    assert_eq!(
        (after.sacked_bytes, after.cwnd_bytes),
        (0, before.cwnd_bytes)
    );
    assert_eq!(f.counters().sack_discard, 1);
}
