//! Every state against resets, SYNs, FINs and acknowledgments (RFC 9293 §3.10.7, RFC 5961).

use super::{super::State, harness::*};
use crate::wire::tcp::Flags;
use alloc::vec::Vec;

/// A connection of ours in `state`; returns it, our next number and the peer's.
fn in_state(state: State) -> (Harness, super::super::ConnectionId, u32, u32) {
    let mut h = Harness::new();
    if state == State::SynSent {
        let id = h.connect();
        let iss = h.one().header.seq;
        return (h, id, iss.wrapping_add(1), PEER_ISS);
    }
    if state == State::SynReceived {
        let id = h.connect();
        let iss = h.one().header.seq;
        h.input(Flags::SYN, PEER_ISS, 0, &[]);
        assert_eq!(h.one().header.flags, Flags::SYN | Flags::ACK);
        return (h, id, iss.wrapping_add(1), peer(0));
    }
    let (id, iss) = h.established();
    let next = iss.wrapping_add(1);
    let (close, fin) = (
        |h: &mut Harness| h.shutdown(id),
        |h: &mut Harness, ack| h.input(Flags::FIN | Flags::ACK, peer(0), ack, &[]),
    );
    let (ours, theirs) = match state {
        State::Established => (next, peer(0)),
        State::FinWait1 => {
            close(&mut h);
            (next.wrapping_add(1), peer(0))
        }
        State::FinWait2 => {
            close(&mut h);
            h.input(Flags::ACK, peer(0), next.wrapping_add(1), &[]);
            (next.wrapping_add(1), peer(0))
        }
        State::CloseWait => {
            fin(&mut h, next);
            (next, peer(1))
        }
        State::Closing => {
            close(&mut h);
            fin(&mut h, next);
            (next.wrapping_add(1), peer(1))
        }
        State::LastAck => {
            fin(&mut h, next);
            close(&mut h);
            (next.wrapping_add(1), peer(1))
        }
        state => panic!("not a state to begin in: {state}"),
    };
    assert_eq!(h.state(id), state);
    h.sent();
    (h, id, ours, theirs)
}

const SYNCHRONIZED: [State; 6] = [
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
];

fn flags(h: &mut Harness) -> Vec<Flags> {
    h.sent().iter().map(|out| out.header.flags).collect()
}

#[test]
fn exact_reset_ends_every_state() {
    for state in SYNCHRONIZED {
        let (mut h, id, ours, theirs) = in_state(state);
        h.input(Flags::RST, theirs, ours, &[]);
        assert_eq!(h.state(id), State::Closed, "{state}");
        h.silent();
    }
}

#[test]
fn reset_elsewhere_in_the_window_is_challenged() {
    for state in SYNCHRONIZED {
        let (mut h, id, ours, theirs) = in_state(state);
        h.input(Flags::RST, theirs.wrapping_add(1), ours, &[]);
        assert_eq!(h.state(id), state);
        let challenge = h.one();
        assert_eq!(challenge.header.flags, Flags::ACK, "{state}");
        assert_eq!(challenge.header.ack, theirs, "{state}");
        // The limit of RFC 5961 §7.
        h.input(Flags::RST, theirs.wrapping_add(1), ours, &[]);
        h.silent();
    }
}

#[test]
fn reset_outside_the_window_is_ignored() {
    for state in SYNCHRONIZED {
        let (mut h, id, ours, theirs) = in_state(state);
        h.input(Flags::RST, theirs.wrapping_sub(2), ours, &[]);
        h.input(Flags::RST, theirs.wrapping_add(1 << 30), ours, &[]);
        assert_eq!(h.state(id), state);
        h.silent();
    }
}

#[test]
fn syn_is_challenged_whatever_its_number() {
    for state in SYNCHRONIZED {
        for offset in [0, 1, 1000, 1 << 30] {
            let (mut h, id, ours, theirs) = in_state(state);
            h.input(Flags::SYN, theirs.wrapping_add(offset), ours, &[]);
            assert_eq!(h.state(id), state);
            let challenge = h.one();
            assert_eq!(challenge.header.flags, Flags::ACK, "{state} {offset}");
            assert_eq!(challenge.header.ack, theirs);
        }
    }
}

#[test]
fn fin_moves_on_the_states_that_wait_for_it() {
    let cases = [
        (State::Established, State::CloseWait),
        (State::FinWait1, State::Closing),
        (State::FinWait2, State::Closed),
        (State::CloseWait, State::CloseWait),
        (State::Closing, State::Closing),
        (State::LastAck, State::LastAck),
    ];
    for (before, after) in cases {
        let (mut h, id, ours, theirs) = in_state(before);
        let is_new = before != after;
        let (ack, seq) = match before {
            State::FinWait1 | State::Closing | State::LastAck => (ours.wrapping_sub(1), theirs),
            _ => (ours, theirs),
        };
        let seq = if is_new { seq } else { seq.wrapping_sub(1) };
        h.input(Flags::FIN | Flags::ACK, seq, ack, &[]);
        assert_eq!(h.state(id), after, "{before}");
        let answer = h.one();
        let next = if is_new {
            theirs.wrapping_add(1)
        } else {
            theirs
        };
        assert_eq!(answer.header.ack, next, "{before}");
        // What remains of TIME-WAIT answers for the closed one.
        assert_eq!(h.tcp.count().1, usize::from(before == State::FinWait2));
    }
}

#[test]
fn acknowledgment_of_our_fin_moves_on() {
    let cases = [
        (State::FinWait1, State::FinWait2),
        (State::Closing, State::Closed),
        (State::LastAck, State::Closed),
    ];
    for (before, after) in cases {
        let (mut h, id, ours, theirs) = in_state(before);
        h.input(Flags::ACK, theirs, ours, &[]);
        assert_eq!(h.state(id), after, "{before}");
        h.silent();
        assert_eq!(h.tcp.count().1, usize::from(before == State::Closing));
    }
}

#[test]
fn acknowledgment_of_what_was_never_sent_is_challenged() {
    for state in SYNCHRONIZED {
        let (mut h, id, ours, theirs) = in_state(state);
        h.input(Flags::ACK, theirs, ours.wrapping_add(1), b"evil");
        assert_eq!(h.state(id), state);
        assert_eq!(flags(&mut h), [Flags::ACK], "{state}");
        assert_eq!(h.info(id).bytes_received, 0);
    }
}

#[test]
fn acknowledgment_of_the_distant_past_is_challenged() {
    for state in SYNCHRONIZED {
        let (mut h, id, ours, theirs) = in_state(state);
        h.input(Flags::ACK, theirs, ours.wrapping_sub(70_000), b"evil");
        assert_eq!(h.state(id), state);
        assert_eq!(flags(&mut h), [Flags::ACK], "{state}");
        assert_eq!(h.info(id).bytes_received, 0);
    }
}

#[test]
fn segments_without_acknowledgment_are_dropped() {
    for state in SYNCHRONIZED {
        let (mut h, id, _, theirs) = in_state(state);
        h.input(Flags::PSH, theirs, 0, b"evil");
        h.input(Flags::FIN, theirs, 0, &[]);
        assert_eq!(h.state(id), state);
        h.silent();
    }
}

#[test]
fn data_before_the_window_is_acknowledged_and_not_taken() {
    for state in SYNCHRONIZED {
        let (mut h, id, ours, theirs) = in_state(state);
        h.input(
            Flags::ACK,
            theirs.wrapping_sub(100),
            ours.wrapping_sub(1),
            &[9; 50],
        );
        assert_eq!(h.state(id), state);
        let answer = h.one();
        assert_eq!(answer.header.ack, theirs);
        assert_eq!(h.info(id).bytes_received, 0);
    }
}

#[test]
fn data_that_nobody_will_read_is_reset() {
    for state in [State::FinWait1, State::FinWait2] {
        let (mut h, id, ours, theirs) = in_state(state);
        h.tcp.release(id, false, h.now);
        let ack = if state == State::FinWait1 {
            ours.wrapping_sub(1)
        } else {
            ours
        };
        h.input(Flags::ACK, theirs, ack, b"late");
        assert!(h.one().header.flags.contains(Flags::RST), "{state}");
        assert_eq!(h.tcp.count(), (0, 0));
    }
}

#[test]
fn syn_sent() {
    // An acknowledgment of something else is reset, and changes nothing.
    for wrong in [-1i32, 1, 1000] {
        let (mut h, id, ours, _) = in_state(State::SynSent);
        let ack = ours.wrapping_add_signed(wrong);
        h.input(Flags::SYN | Flags::ACK, PEER_ISS, ack, &[]);
        let reset = h.one();
        assert_eq!((reset.header.flags, reset.header.seq), (Flags::RST, ack));
        assert_eq!(h.state(id), State::SynSent);
    }
    // A reset counts only with the right acknowledgment.
    let (mut h, id, ours, _) = in_state(State::SynSent);
    h.input(Flags::RST, 0, ours, &[]);
    h.input(Flags::RST | Flags::ACK, 0, ours.wrapping_add(1), &[]);
    assert_eq!(h.state(id), State::SynSent);
    h.input(Flags::RST | Flags::ACK, 0, ours, &[]);
    assert_eq!(h.state(id), State::Closed);
    h.silent();
    // Neither data nor FIN alone does anything.
    let (mut h, id, ours, _) = in_state(State::SynSent);
    h.input(Flags::ACK, PEER_ISS, ours, b"data");
    h.input(Flags::FIN | Flags::ACK, PEER_ISS, ours, &[]);
    assert_eq!(h.state(id), State::SynSent);
    h.silent();
}

#[test]
fn simultaneous_open() {
    let (mut h, id, ours, _) = in_state(State::SynReceived);
    // The peer's answer to our SYN.
    h.input(Flags::SYN | Flags::ACK, PEER_ISS, ours, &[]);
    assert_eq!(h.state(id), State::Established);
    h.sent();
    // Or just the acknowledgment of our SYN and ACK.
    let (mut h, id, ours, theirs) = in_state(State::SynReceived);
    h.input(Flags::ACK, theirs, ours, b"data");
    assert_eq!(h.state(id), State::Established);
    assert_eq!(h.read(id), b"data");
}

#[test]
fn syn_received() {
    // A wrong acknowledgment is reset.
    let (mut h, id, ours, theirs) = in_state(State::SynReceived);
    h.input(Flags::ACK, theirs, ours.wrapping_add(5), &[]);
    assert_eq!(flags(&mut h), [Flags::RST]);
    assert_eq!(h.state(id), State::SynReceived);
    // The SYN again: our answer was lost.
    h.input(Flags::SYN, PEER_ISS, 0, &[]);
    assert_eq!(flags(&mut h), [Flags::SYN | Flags::ACK]);
    // A reset ends it.
    h.input(Flags::RST, theirs, 0, &[]);
    assert_eq!(h.state(id), State::Closed);
}

#[test]
fn simultaneous_close() {
    let (mut h, id, ours, theirs) = in_state(State::Closing);
    h.input(Flags::ACK, theirs, ours, &[]);
    assert_eq!(h.state(id), State::Closed);
    assert_eq!(h.tcp.count().1, 1);
}

#[test]
fn closed_ports_are_reset() {
    let mut h = Harness::new();
    h.input(Flags::SYN, 100, 0, &[]);
    let reset = h.one().header;
    assert_eq!(
        (reset.flags, reset.seq, reset.ack),
        (Flags::RST | Flags::ACK, 0, 101)
    );
    h.input(Flags::ACK, 100, 777, b"data");
    let reset = h.one().header;
    assert_eq!((reset.flags, reset.seq), (Flags::RST, 777));
    h.input(Flags::FIN, 100, 0, b"data");
    assert_eq!(h.one().header.ack, 105);
    h.input(Flags::RST, 100, 777, &[]);
    h.input(Flags::RST | Flags::ACK, 100, 777, &[]);
    h.silent();
}
