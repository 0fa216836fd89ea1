//! Segments that nearly fit a connection.

use super::{super::source::Source, OURS, PEER, peer::MAX_SEGMENT_BYTES};
use crate::{
    time::Instant,
    wire::{
        checksum::Checksum,
        tcp::{self, Flags, Header, Options, SackBlock, Timestamps},
    },
};
use alloc::vec::Vec;
use core::net::IpAddr;

/// The peer's first sequence number: it wraps soon.
const ISN: u32 = 0xffff_f000;
/// Bytes of a large segment at most, so that its packet's length fits its field.
const MAX_LARGE_BYTES: usize = 65_000;

/// A connection as it can be seen from outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    local_port: u16,
    remote_port: u16,
    /// Behind the last sequence number that the stack has sent.
    snd_nxt: u32,
    /// What it waits for.
    rcv_nxt: u32,
    /// Its clock, if it uses timestamps.
    clock: Option<u32>,
}

impl Flow {
    pub(super) fn new(local_port: u16, remote_port: u16) -> Self {
        Self {
            local_port,
            remote_port,
            snd_nxt: 0,
            rcv_nxt: ISN,
            clock: None,
        }
    }

    /// The stack's port, and the peer's.
    pub(super) fn ports(&self) -> (u16, u16) {
        (self.local_port, self.remote_port)
    }

    /// Takes in what a segment from the stack tells.
    pub(super) fn note(&mut self, tcp: &Header, payload_bytes: usize) {
        let length = payload_bytes as u32
            + u32::from(tcp.flags.contains(Flags::SYN))
            + u32::from(tcp.flags.contains(Flags::FIN));
        let end = tcp.seq.wrapping_add(length);
        if tcp.flags.contains(Flags::SYN) || end.wrapping_sub(self.snd_nxt) < 1 << 31 {
            self.snd_nxt = end;
        }
        if tcp.flags.contains(Flags::ACK) {
            self.rcv_nxt = tcp.ack;
        }
        self.clock = tcp.options.timestamps.map(|timestamps| timestamps.value);
    }
}

/// A SYN, mostly.
pub(super) fn opening(
    source: &mut Source<'_>,
    flow: &Flow,
    now: Instant,
) -> (Vec<u8>, Option<u16>) {
    let mut header = Header {
        flags: Flags::SYN,
        options: syn_options(source, now),
        ..header(flow)
    };
    if source.chance(30) {
        header.flags = flags(source);
    }
    (emit(&header, &[], 0), None)
}

/// What the connection waits for, or nearly so; and the bytes of each part of a large segment.
pub(super) fn next(source: &mut Source<'_>, flow: &Flow, now: Instant) -> (Vec<u8>, Option<u16>) {
    let mut header = header(flow);
    header.flags = flags(source);
    header.seq = beside(source, header.seq);
    header.ack = beside(source, header.ack);
    header.window = match source.upto(3) {
        0 | 1 => u16::MAX,
        2 => 0,
        _ => (source.magnitude(16) - 1).min(u64::from(u16::MAX)) as u16,
    };
    header.urgent = source.byte().into();
    if header.flags.contains(Flags::SYN) {
        header.options = syn_options(source, now);
    }
    if flow.clock.is_some() && !source.chance(20) {
        header.options.timestamps = Some(timestamps(source, flow, now));
    }
    for _ in 0..source.upto(8).saturating_sub(4) {
        let left = flow.snd_nxt.wrapping_sub(source.magnitude(17) as u32);
        let length = source.magnitude(13) as u32;
        let right = beside(source, left.wrapping_add(length));
        // More than fit are left out.
        let _ = header.options.sack.push(SackBlock { left, right });
    }
    let raw = if source.chance(20) {
        source.bytes(40)
    } else {
        &[]
    };
    let (bytes, segment_bytes) = match source.upto(7) {
        0..=2 => (0, None),
        3 | 4 => (source.magnitude(10) as usize, None),
        5 | 6 => (MAX_SEGMENT_BYTES, None),
        _ => {
            let all = (source.magnitude(16) as usize).min(MAX_LARGE_BYTES);
            (all, Some((source.magnitude(12) as u16).max(1)))
        }
    };
    (emit(&header, raw, bytes), segment_bytes)
}

/// The plain header of what comes next.
fn header(flow: &Flow) -> Header {
    Header {
        src_port: flow.remote_port,
        dst_port: flow.local_port,
        seq: flow.rcv_nxt,
        ack: flow.snd_nxt,
        window: u16::MAX,
        ..Header::default()
    }
}

fn flags(source: &mut Source<'_>) -> Flags {
    match source.upto(31) {
        0..=19 => Flags::ACK,
        20..=22 => Flags::ACK | Flags::PSH,
        23 => Flags::ACK | Flags::ECE,
        24 => Flags::ACK | Flags::CWR,
        25 => Flags::SYN,
        26 | 27 => Flags::SYN | Flags::ACK,
        28 => Flags::FIN | Flags::ACK,
        29 => Flags::RST,
        _ => Flags::from_bits_retain(source.byte()),
    }
}

/// `seq`, or a number near it, or any.
fn beside(source: &mut Source<'_>, seq: u32) -> u32 {
    match source.upto(23) {
        0..=16 => seq,
        17 => seq.wrapping_add(source.magnitude(3) as u32),
        18 | 19 => seq.wrapping_sub(source.magnitude(3) as u32),
        20 => seq.wrapping_add(source.magnitude(17) as u32),
        21 | 22 => seq.wrapping_sub(source.magnitude(17) as u32),
        _ => seq.wrapping_add((source.upto(0xffff) as u32) << 16),
    }
}

fn timestamps(source: &mut Source<'_>, flow: &Flow, now: Instant) -> Timestamps {
    Timestamps {
        value: beside(source, clock(now)),
        echo: beside(source, flow.clock.unwrap_or(0)),
    }
}

/// The peer's clock, in milliseconds.
fn clock(now: Instant) -> u32 {
    (now.as_micros() / 1000) as u32
}

fn syn_options(source: &mut Source<'_>, now: Instant) -> Options {
    let mss = source.pick(&[Some(1460), None, Some(0), Some(1), Some(536), Some(65_535)]);
    Options {
        mss,
        window_scale: (!source.chance(60)).then(|| source.upto(20) as u8),
        sack_permitted: !source.chance(60),
        timestamps: (!source.chance(128)).then_some(Timestamps {
            value: clock(now),
            echo: 0,
        }),
        ..Options::default()
    }
}

/// The segment with a right checksum; `raw` options follow those of the header.
fn emit(header: &Header, raw: &[u8], payload_bytes: usize) -> Vec<u8> {
    let mut out = [0; tcp::MAX_HEADER_BYTES];
    let len = header.emit(&mut out);
    let raw = &raw[..raw.len().min(tcp::MAX_HEADER_BYTES - len)];
    let mut bytes = out[..len].to_vec();
    bytes.extend_from_slice(raw);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes[12] = (bytes.len() as u8 / 4) << 4;
    bytes.resize(bytes.len() + payload_bytes, b'p');
    let (src, dst) = (IpAddr::V4(PEER), IpAddr::V4(OURS));
    let mut sum = Checksum::pseudo_header(src, dst, tcp::PROTOCOL, bytes.len() as u32);
    sum.add(&bytes);
    let at = usize::from(tcp::CHECKSUM_OFFSET);
    bytes[at..at + 2].copy_from_slice(&sum.finish().to_be_bytes());
    bytes
}
