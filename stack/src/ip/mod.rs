//! The network layer: what transports see of it.
//!
//! A transport hands in a message by [`IpSender::send`] and gets received ones with [`RxMeta`].
//! Addresses are [`IpAddr`]s throughout, so that a second version adds no second path through the
//! transports.

pub(crate) mod arp;
pub(crate) mod interface;
mod outbox;
pub(crate) mod output;
pub(crate) mod pmtu;
pub(crate) mod rate_limit;
pub(crate) mod reassembly;

pub use interface::ConfigError;

use crate::{
    device::{MAX_RX_SLICES, Owner, Page, RxMemory, Slice, SliceRef},
    siphash::siphash24,
    time::Instant,
};
use arp::Neighbours;
use core::{
    fmt,
    net::{IpAddr, Ipv4Addr},
};
use interface::Interface;
use outbox::Outbox;
use pmtu::PathMtus;
use rate_limit::RateLimit;
use reassembly::Reassembly;

/// Longest transport header, with the small payload that may follow it, in bytes.
pub const MAX_TRANSPORT_BYTES: usize = crate::device::MAX_HEADER_BYTES - 14 - 20;

/// A received message in pieces: no empty slice among them.
pub type RxSlices<P> = heapless::Vec<Slice<P>, MAX_RX_SLICES>;

/// What the network layer says of a received transport message. Its checksum is good: the
/// device or the network layer has seen to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxMeta {
    /// The sender's address: of one host, never multicast, broadcast or unspecified.
    pub src: IpAddr,
    /// The address it was sent to: one of ours.
    pub dst: IpAddr,
    /// The ECN field (RFC 3168 §5): 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// Of a message made of several TCP segments: the payload bytes of each.
    pub segment_bytes: Option<u16>,
    /// What the device has left to keep it in.
    pub memory: RxMemory,
}

/// The way to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Our address on that way.
    pub src: IpAddr,
    /// Largest IP packet that gets there in one piece: the interface's MTU or the path's, when
    /// that is known to be smaller. In bytes, IP header included.
    pub mtu_bytes: u16,
    /// Largest IP packet that may be given with [`IpPacket::segment_bytes`], headers included; 0:
    /// the device cannot segment.
    pub max_tso_bytes: u32,
    /// Most payload slices of one packet.
    pub max_slices: u8,
    /// About how many payload bytes the device's transmit queue has room for.
    pub ring_bytes: u32,
}

/// Why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The device queue is full or the neighbour's address not known yet. Nothing was taken; try
    /// again at a later poll, which comes when the cause is gone.
    Busy,
    /// The device is not connected. Nothing was taken.
    Down,
    /// No way leads to the destination.
    NoRoute,
    /// The neighbour on the way does not answer.
    Unreachable,
    /// The packet breaks a limit of [`Route`] or of the protocol; it can never be sent.
    Unsendable,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "device queue full or neighbour not resolved yet",
            Self::Down => "device not connected",
            Self::NoRoute => "no route to the destination",
            Self::Unreachable => "neighbour does not answer",
            Self::Unsendable => "packet breaks a limit of the route",
        })
    }
}

impl core::error::Error for SendError {}

/// A transport message on its way out.
#[derive(Debug)]
pub struct IpPacket<'a, P> {
    /// From: [`Route::src`].
    pub src: IpAddr,
    /// To.
    pub dst: IpAddr,
    /// IP protocol number of the transport.
    pub protocol: u8,
    /// DSCP and ECN as they stand in the header: `dscp << 2 | ecn`.
    pub traffic_class: u8,
    /// Transport header, its checksum field zero; a small payload may follow it here instead of
    /// in a slice. At most [`MAX_TRANSPORT_BYTES`].
    pub transport: &'a [u8],
    /// The payload behind: no empty slice, at most [`Route::max_slices`].
    pub payload: &'a [SliceRef<'a, P>],
    /// Payload bytes of each TCP segment that the device cuts this packet into; none when it
    /// is one segment.
    pub segment_bytes: Option<u16>,
    /// Whom to credit when the device is done with the payload.
    pub owner: Owner,
}

/// The way out, as a transport sees it.
pub trait IpSender<P> {
    /// The way to `dst`. Cheap enough to ask for every packet.
    fn route(&self, dst: IpAddr) -> Result<Route, SendError>;

    /// Sends a packet that must not be fragmented. The network layer fills in the checksum or has
    /// the device do it.
    fn send(&mut self, packet: &IpPacket<'_, P>) -> Result<(), SendError>;
}

/// Tidings of a packet of ours that did not arrive, from an ICMP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// Our address, from the quoted packet.
    pub local: IpAddr,
    /// The address the quoted packet was sent to.
    pub remote: IpAddr,
    /// The port it came from.
    pub local_port: u16,
    /// The port it was sent to.
    pub remote_port: u16,
    /// Of a TCP segment: its sequence number, for the check of RFC 5927 §4.1.
    pub seq: u32,
    /// What happened.
    pub kind: IcmpErrorKind,
}

/// What an ICMP error says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpErrorKind {
    /// Too large for a link on the way. [`IpSender::route`] tells the new size, if the transport
    /// holds the error for genuine.
    PacketTooBig {
        /// What the router says fits, in bytes of IP packet, but no less than is believed of any
        /// path; it may lie.
        mtu_bytes: u16,
    },
    /// The port is closed or the protocol unknown there: a hard error (RFC 1122 §4.2.3.9).
    Refused,
    /// Administratively prohibited.
    Prohibited,
    /// The host or network is unreachable, or time ran out on the way: a soft error.
    Unreachable,
}

/// Least time between two announcements against another claimant (RFC 5227 §1.1,
/// `DEFEND_INTERVAL`).
const DEFEND_INTERVAL_SECS: u32 = 10;

/// State of the network layer.
#[derive(Debug)]
pub(crate) struct Ip<P> {
    pub(crate) interface: Interface,
    pub(crate) neighbours: Neighbours,
    pub(crate) path_mtus: PathMtus,
    pub(crate) reassembly: Reassembly<P>,
    pub(crate) outbox: Outbox<P>,
    /// ICMP errors sent: as many as Linux allows by `net.ipv4.icmp_msgs_per_sec` and `_burst`.
    pub(crate) icmp_errors: RateLimit,
    /// Announcements made because another station claims our address (RFC 5227 §2.4).
    pub(crate) defences: RateLimit,
    secret: [u8; 16],
    datagrams: u16,
}

impl<P: Page> Ip<P> {
    pub(crate) fn new(interface: Interface, secret: [u8; 16]) -> Self {
        Self {
            interface,
            neighbours: Neighbours::new(),
            path_mtus: PathMtus::default(),
            reassembly: Reassembly::new(),
            outbox: Outbox::new(),
            icmp_errors: RateLimit::new(1000, 50),
            defences: RateLimit::every_secs(DEFEND_INTERVAL_SECS),
            secret,
            datagrams: 0,
        }
    }

    /// Identification of the next fragmented datagram to `dst`: a sequence per destination whose
    /// start others cannot guess (RFC 7739 §5).
    fn next_id(&mut self, dst: Ipv4Addr) -> u16 {
        self.datagrams = self.datagrams.wrapping_add(1);
        (siphash24(&self.secret, &dst.octets()) as u16).wrapping_add(self.datagrams)
    }

    /// When the layer has something to do next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [
            self.neighbours.deadline(),
            self.reassembly.deadline(),
            self.outbox.deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
