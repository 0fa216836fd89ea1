use super::*;
use proptest::prelude::*;

const MSS: u32 = 1000;

/// A flight of `flight` segments of which the first `lost` are lost; each arrival lets out what
/// may go. Returns how much was out after each acknowledgment.
fn run(flight: u32, lost: u32, ssthresh: u32) -> Vec<u32> {
    let mut prr = Prr::new(flight * MSS, 0);
    let mut in_flight = (flight - lost) * MSS;
    let mut out = vec![];
    for _ in 0..flight - lost {
        in_flight -= MSS;
        let cwnd = prr.on_ack(PrrAck {
            delivered_bytes: MSS,
            in_flight_bytes: in_flight,
            ssthresh: ssthresh * MSS,
            mss: MSS,
            is_safe: false,
        });
        let sent = (cwnd - in_flight) / MSS * MSS;
        prr.on_sent(sent);
        in_flight += sent;
        out.push(in_flight / MSS);
    }
    out
}

use alloc::{vec, vec::Vec};

#[test]
fn one_loss_halves_the_flight_evenly() {
    let out = run(20, 1, 10);
    assert_eq!(out.last(), Some(&10));
    // Never a pause of more than two acknowledgments, never a burst of more than two segments.
    for pair in out.windows(3) {
        assert!(pair[0] - pair[2].min(pair[0]) <= 2, "{out:?}");
    }
}

/// RFC 9937 §6, PRR-CRB: with more lost than the reduction takes, packets are conserved.
#[test]
fn heavy_loss_conserves_packets() {
    let out = run(20, 15, 10);
    assert!(out.iter().all(|&out| out <= 6), "{out:?}");
    assert_eq!(*out.last().unwrap(), 5, "one out for each one in");
}

#[test]
fn a_good_acknowledgment_lets_it_grow_back_by_a_segment() {
    let mut prr = Prr::new(20 * MSS, 0);
    prr.on_sent(MSS);
    let ack = PrrAck {
        delivered_bytes: MSS,
        in_flight_bytes: 3 * MSS,
        ssthresh: 10 * MSS,
        mss: MSS,
        is_safe: false,
    };
    assert_eq!(prr.on_ack(ack), 4 * MSS);
    prr.on_sent(MSS);
    assert_eq!(
        prr.on_ack(PrrAck {
            is_safe: true,
            ..ack
        }),
        5 * MSS
    );
}

#[test]
fn the_first_retransmission_goes_whatever_the_arithmetic_says() {
    let mut prr = Prr::new(100 * MSS, 3 * MSS);
    let cwnd = prr.on_ack(PrrAck {
        delivered_bytes: 10,
        in_flight_bytes: 96 * MSS,
        ssthresh: 50 * MSS,
        mss: MSS,
        is_safe: false,
    });
    assert_eq!(cwnd, 97 * MSS);
}

proptest! {
    /// Whatever is lost, the flight never rises above the threshold again once it is under it, and
    /// nothing overflows.
    #[test]
    fn never_above_the_threshold(
        recover in 1u32..1 << 30,
        acks in prop::collection::vec((0u32..1 << 20, 0u32..1 << 30, any::<bool>()), 1..50),
        ssthresh in 2 * MSS..1 << 29,
    ) {
        let mut prr = Prr::new(recover, 0);
        prr.on_sent(MSS);
        for (delivered_bytes, in_flight_bytes, is_safe) in acks {
            let cwnd = prr.on_ack(PrrAck { delivered_bytes, in_flight_bytes, ssthresh, mss: MSS, is_safe });
            if in_flight_bytes <= ssthresh {
                prop_assert!(cwnd <= ssthresh);
            }
            prr.on_sent(cwnd.saturating_sub(in_flight_bytes));
        }
    }
}
