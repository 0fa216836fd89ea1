//! Answers to segments that belong to no connection: resets, and acknowledgments from TIME-WAIT.

use super::{demux::Tuple, seq::SeqNum, time_wait::Closed};
use crate::{
    device::Owner,
    ip::{IpPacket, IpSender, SendError},
    time::Instant,
    wire::tcp::{Flags, Header, MAX_HEADER_BYTES, PROTOCOL, Timestamps},
};
use alloc::collections::VecDeque;

/// Most answers that wait for the device. What is more is dropped: the peer will ask again, and a
/// storm of strays must not fill memory.
const MAX_WAITING: usize = 64;

#[derive(Debug)]
struct Reply {
    tuple: Tuple,
    header: Header,
}

/// The answers that wait for the device.
#[derive(Debug, Default)]
pub(super) struct Replies {
    waiting: VecDeque<Reply>,
}

impl Replies {
    /// Answers a segment with a reset (RFC 9293 §3.10.7.1); never one that is a reset itself.
    pub(super) fn reset(&mut self, tuple: &Tuple, header: &Header, payload_bytes: u32) -> bool {
        if header.flags.contains(Flags::RST) {
            return false;
        }
        let (seq, ack, flags) = if header.flags.contains(Flags::ACK) {
            (header.ack, 0, Flags::RST)
        } else {
            let len = payload_bytes
                + u32::from(header.flags.contains(Flags::SYN))
                + u32::from(header.flags.contains(Flags::FIN));
            let ack = SeqNum(header.seq) + len;
            (0, ack.0, Flags::RST | Flags::ACK)
        };
        self.push(
            tuple,
            Header {
                seq,
                ack,
                flags,
                ..Header::default()
            },
        )
    }

    /// Acknowledges for a connection in TIME-WAIT.
    pub(super) fn acknowledge(&mut self, closed: &Closed, now: Instant) {
        let mut header = Header {
            seq: closed.snd_nxt.0,
            ack: closed.rcv_nxt.0,
            flags: Flags::ACK,
            window: closed.window_field,
            ..Header::default()
        };
        header.options.timestamps = closed.timestamps.map(|(recent, offset)| Timestamps {
            value: ((now.as_micros() / 1000) as u32).wrapping_add(offset),
            echo: recent,
        });
        self.push(&closed.tuple, header);
    }

    fn push(&mut self, tuple: &Tuple, header: Header) -> bool {
        if self.waiting.len() >= MAX_WAITING {
            return false;
        }
        self.waiting.push_back(Reply {
            tuple: *tuple,
            header: Header {
                src_port: tuple.local_port,
                dst_port: tuple.remote_port,
                ..header
            },
        });
        true
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends what waits, until the device is full; returns how many resets went.
    pub(super) fn send<P>(&mut self, ip: &mut impl IpSender<P>) -> u64 {
        let mut sent = 0;
        while let Some(Reply { tuple, header }) = self.waiting.front() {
            let mut bytes = [0; MAX_HEADER_BYTES];
            let len = header.emit(&mut bytes);
            let packet = IpPacket {
                src: tuple.local,
                dst: tuple.remote,
                protocol: PROTOCOL,
                traffic_class: 0,
                transport: &bytes[..len],
                payload: &[],
                segment_bytes: None,
                owner: Owner::NONE,
            };
            match ip.send(&packet) {
                Err(SendError::Busy) => break,
                Ok(()) => sent += u64::from(header.flags.contains(Flags::RST)),
                Err(_) => {}
            }
            self.waiting.pop_front();
        }
        sent
    }
}
