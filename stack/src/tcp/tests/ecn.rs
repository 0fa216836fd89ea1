//! Explicit congestion notification between two stacks, and by hand.

use super::{
    super::EcnMode,
    harness::{Harness, MSS, peer},
    transfer::exchange,
    *,
};
use crate::{
    sim::{Fate, Frame},
    wire::tcp::Flags,
};

/// The ECN field of an IPv4 frame.
fn field(frame: &Frame) -> Option<u8> {
    (frame.bytes.get(12..14)? == [0x08, 0x00]).then(|| frame.bytes[15] & 0b11)
}

/// Puts "congestion experienced" into an IPv4 frame, checksum and all.
fn mark(frame: &mut Frame) {
    frame.bytes[15] |= 0b11;
    frame.bytes[24..26].fill(0);
    let sum: u32 = frame.bytes[14..34]
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    frame.bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
}

/// The flags of a TCP frame without IP options.
fn flags(frame: &Frame) -> Flags {
    Flags::from_bits_retain(frame.bytes[47])
}

#[test]
fn marks_bring_the_window_down_without_loss() {
    let (mut network, a, b) = Network::pair(NicConfig::plain(), lan());
    a.net
        .with(|stack| stack.tcp_and_device().0.config_mut().ecn = EcnMode::On);
    let (marked, marks) = shared(0);
    let (announced, announcements) = shared(0);
    let mut count = 0;
    network.hook(&a, move |_, frame| {
        if field(frame) == Some(0b10) {
            count += 1;
            announced.set(announced.get() + u32::from(flags(frame).contains(Flags::CWR)));
            if count % 200 == 0 {
                mark(frame);
                marked.set(marked.get() + 1);
            }
        }
        Fate::Deliver
    });
    exchange(&mut network, &a, &b, 2_000_000);
    let counters = a.net.with(|stack| stack.tcp().counters().clone());
    assert_eq!(counters.retrans_segs, 0);
    assert!(marks.get() >= 5, "{} marks", marks.get());
    // One reduction a window of data, each announced by one segment.
    let expected = 2..=marks.get();
    assert!(
        expected.contains(&announcements.get()),
        "{} announcements of {} marks",
        announcements.get(),
        marks.get()
    );
}

#[test]
fn nothing_is_marked_unless_asked() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    network.hook(&a, move |_, frame| {
        assert_ne!(field(frame), Some(0b10));
        Fate::Deliver
    });
    exchange(&mut network, &a, &b, 100_000);
}

/// RFC 3168 §6.1.2: one reduction a window of data, however often the mark is echoed.
#[test]
fn rfc_3168_one_reduction_a_window() {
    let mut h = Harness::new();
    h.tcp.config_mut().ecn = EcnMode::On;
    let id = h.connect();
    let syn = h.one();
    assert!(syn.header.flags.contains(Flags::ECE | Flags::CWR));
    let first = syn.header.seq.wrapping_add(1);
    let answer = Flags::SYN | Flags::ACK | Flags::ECE;
    h.input_with(answer, peer(u32::MAX), first, &[], |header| {
        header.options.mss = Some(MSS as u16);
        header.options.sack_permitted = true;
    });
    h.sent();
    assert!(h.info(id).options.ecn);
    h.write(id, &vec![1; 100_000]);
    h.sent();
    let echo = Flags::ACK | Flags::ECE;
    h.input(echo, peer(0), first.wrapping_add(2 * MSS), &[]);
    let ssthresh = h.info(id).ssthresh_bytes;
    assert_eq!(ssthresh, 7 * MSS, "in slow start, as after a loss");
    for segments in 3..=10 {
        h.input(echo, peer(0), first.wrapping_add(segments * MSS), &[]);
    }
    assert_eq!(h.info(id).ssthresh_bytes, ssthresh);
    let sent = h.sent();
    let announcing: Vec<_> = sent
        .iter()
        .filter(|out| out.header.flags.contains(Flags::CWR))
        .collect();
    assert_eq!(announcing.len(), 1);
    assert_eq!(announcing[0].payload.len() as u32, MSS, "it goes alone");
    assert_eq!(h.info(id).total_retrans, 0);
}

/// Only the first of two SYNs asks.
#[test]
fn a_syn_unanswered_is_sent_without_ecn() {
    let mut h = Harness::new();
    h.tcp.config_mut().ecn = EcnMode::On;
    h.connect();
    assert!(h.one().header.flags.contains(Flags::ECE));
    h.pass(Duration::from_secs(1));
    assert_eq!(h.one().header.flags, Flags::SYN);
}
