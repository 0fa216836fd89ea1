//! One stack's TCP against hand-made segments.

use super::super::{Chunk, ConnectionId, Info, ListenerId, Options, State, Tcp, testing::TestPage};
use crate::{
    device::{Completion, Owner, Page, RxMemory, Slice},
    ip::{IpPacket, IpSender, Route, RxMeta, SendError},
    time::{Duration, Instant},
    wire::tcp::{Flags, Header, MAX_HEADER_BYTES, SackBlock, Timestamps},
};
use alloc::{vec, vec::Vec};
use core::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    task::{Poll, Waker},
};

pub(in crate::tcp) const US: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
pub(in crate::tcp) const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
pub(in crate::tcp) const OUR_PORT: u16 = 80;
pub(in crate::tcp) const PEER_PORT: u16 = 40_000;
/// The peer's initial sequence number: near the wrap.
pub(in crate::tcp) const PEER_ISS: u32 = u32::MAX - 100;
/// Payload of a full segment.
pub(in crate::tcp) const MSS: u32 = 1460;

/// A segment that the stack sent.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Out {
    pub(in crate::tcp) header: Header,
    pub(in crate::tcp) payload: Vec<u8>,
    pub(in crate::tcp) segment_bytes: Option<u16>,
    pub(in crate::tcp) owner: Owner,
}

/// The way out: records what is sent.
#[derive(Debug)]
pub(in crate::tcp) struct Wire {
    pub(in crate::tcp) sent: Vec<Out>,
    /// Packets the device still takes.
    pub(in crate::tcp) room: usize,
    pub(in crate::tcp) route: Result<Route, SendError>,
}

impl IpSender<TestPage> for Wire {
    fn route(&self, _dst: IpAddr) -> Result<Route, SendError> {
        self.route
    }

    fn send(&mut self, packet: &IpPacket<'_, TestPage>) -> Result<(), SendError> {
        let route = self.route?;
        if self.room == 0 {
            return Err(SendError::Busy);
        }
        self.room -= 1;
        let (header, header_bytes) = Header::parse(packet.transport).expect("a header");
        let mut payload = packet.transport[header_bytes..].to_vec();
        assert!(packet.payload.iter().all(|part| !part.is_empty()));
        for part in packet.payload {
            payload.extend_from_slice(part.bytes());
        }
        let ip_bytes = 20 + header_bytes + payload.len();
        match packet.segment_bytes {
            Some(_) => assert!(ip_bytes <= route.max_tso_bytes as usize),
            None => assert!(ip_bytes <= usize::from(route.mtu_bytes), "{ip_bytes}"),
        }
        self.sent.push(Out {
            header,
            payload,
            segment_bytes: packet.segment_bytes,
            owner: packet.owner,
        });
        Ok(())
    }
}

/// TCP, its peer, and the time.
pub(in crate::tcp) struct Harness {
    pub(in crate::tcp) tcp: Tcp<TestPage>,
    pub(in crate::tcp) wire: Wire,
    pub(in crate::tcp) now: Instant,
    /// Whether the peer's segments carry timestamps.
    pub(in crate::tcp) timestamps: bool,
    /// What the device has left for received data.
    pub(in crate::tcp) memory: RxMemory,
    /// Whether the device keeps what it is given until [`Harness::complete`].
    pub(in crate::tcp) keeps: bool,
}

impl Harness {
    pub(in crate::tcp) fn new() -> Self {
        let route = Route {
            src: US,
            mtu_bytes: 1500,
            max_tso_bytes: 65_535,
            max_slices: 17,
            ring_bytes: 13 * 65_160,
        };
        let mut tcp = Tcp::new([5; 16]);
        tcp.config_mut().timestamps = false;
        Self {
            tcp,
            wire: Wire {
                sent: Vec::new(),
                room: usize::MAX,
                route: Ok(route),
            },
            now: Instant::from_micros(1_000_000),
            timestamps: false,
            memory: RxMemory::Plenty,
            keeps: false,
        }
    }

    pub(in crate::tcp) fn us() -> SocketAddr {
        SocketAddr::new(US, OUR_PORT)
    }

    pub(in crate::tcp) fn options(&self) -> Options {
        Options::new(self.tcp.config())
    }

    pub(in crate::tcp) fn listen(&mut self, backlog: usize) -> ListenerId {
        let options = self.options();
        self.tcp.listen(Self::us(), backlog, options).unwrap()
    }

    /// Hands in a segment from `port` and lets the stack answer.
    pub(in crate::tcp) fn input_from(&mut self, port: u16, mut header: Header, payload: &[u8]) {
        header.src_port = port;
        header.dst_port = OUR_PORT;
        let mut bytes = [0; MAX_HEADER_BYTES];
        let len = header.emit(&mut bytes);
        let mut page = TestPage::with_capacity(70_000);
        page.append(&bytes[..len]);
        page.append(payload);
        // Slices hold at most 4 KiB.
        let total = page.bytes().len();
        let mut slices = heapless::Vec::new();
        let mut at = 0;
        while at < total {
            let end = total.min(at + 4096);
            let mut part = TestPage::new();
            part.append(&page.bytes()[at..end]);
            slices.push(Slice::whole(part)).expect("a slice");
            at = end;
        }
        let segment_bytes = (payload.len() > MSS as usize).then_some(MSS as u16);
        let meta = RxMeta {
            src: PEER,
            dst: US,
            ecn: 0,
            segment_bytes,
            memory: self.memory,
        };
        self.tcp.input(self.now, &meta, slices);
        self.poll();
    }

    /// The same from the usual peer.
    pub(in crate::tcp) fn input(&mut self, flags: Flags, seq: u32, ack: u32, payload: &[u8]) {
        self.input_with(flags, seq, ack, payload, |_| {});
    }

    pub(in crate::tcp) fn input_with(
        &mut self,
        flags: Flags,
        seq: u32,
        ack: u32,
        payload: &[u8],
        change: impl FnOnce(&mut Header),
    ) {
        let mut header = Header {
            flags,
            seq,
            ack,
            window: 65_535,
            ..Header::default()
        };
        if self.timestamps {
            header.options.timestamps = Some(Timestamps {
                value: (self.now.as_micros() / 1000) as u32,
                echo: 0,
            });
        }
        change(&mut header);
        self.input_from(PEER_PORT, header, payload);
    }

    pub(in crate::tcp) fn poll(&mut self) {
        let mut done = self.wire.sent.len();
        self.tcp.poll(self.now, &mut self.wire);
        while !self.keeps && done < self.wire.sent.len() {
            for at in done..self.wire.sent.len() {
                let out = self.wire.sent[at].clone();
                self.complete(&out);
            }
            done = self.wire.sent.len();
            self.tcp.poll(self.now, &mut self.wire);
        }
    }

    /// Lets time pass; timers run when they are due.
    pub(in crate::tcp) fn pass(&mut self, span: Duration) {
        self.poll();
        let end = self.now + span;
        while let Some(at) = self.tcp.deadline()
            && at <= end
        {
            self.now = at.max(self.now);
            self.poll();
        }
        self.now = end;
        self.poll();
    }

    /// What was sent since the last call.
    pub(in crate::tcp) fn sent(&mut self) -> Vec<Out> {
        core::mem::take(&mut self.wire.sent)
    }

    /// The one segment sent since the last call.
    pub(in crate::tcp) fn one(&mut self) -> Out {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:#?}");
        sent.remove(0)
    }

    /// Nothing was sent since the last call.
    pub(in crate::tcp) fn silent(&mut self) {
        let sent = self.sent();
        assert!(sent.is_empty(), "{sent:#?}");
    }

    /// Begins a connection to the usual peer, from the usual port.
    pub(in crate::tcp) fn connect(&mut self) -> ConnectionId {
        let options = self.options();
        let peer = SocketAddr::new(PEER, PEER_PORT);
        let id = self
            .tcp
            .connect(self.now, Self::us(), peer, options)
            .unwrap();
        self.poll();
        id
    }

    /// A connection begun by us, established; returns it and our initial sequence number.
    pub(in crate::tcp) fn established(&mut self) -> (ConnectionId, u32) {
        self.established_with(|_| {})
    }

    /// The same over a path with this round-trip time.
    pub(in crate::tcp) fn established_after(&mut self, rtt: Duration) -> (ConnectionId, u32) {
        self.handshake(rtt, |_| {})
    }

    pub(in crate::tcp) fn established_with(
        &mut self,
        change: impl FnOnce(&mut Header),
    ) -> (ConnectionId, u32) {
        self.handshake(Duration::ZERO, change)
    }

    fn handshake(
        &mut self,
        rtt: Duration,
        change: impl FnOnce(&mut Header),
    ) -> (ConnectionId, u32) {
        let id = self.connect();
        self.pass(rtt);
        let iss = self.one().header.seq;
        self.input_with(
            Flags::SYN | Flags::ACK,
            PEER_ISS,
            iss.wrapping_add(1),
            &[],
            |header| {
                header.options.mss = Some(MSS as u16);
                header.options.sack_permitted = true;
                change(header);
            },
        );
        let ack = self.one();
        assert_eq!(ack.header.flags, Flags::ACK);
        assert_eq!(self.state(id), State::Established);
        (id, iss)
    }

    pub(in crate::tcp) fn info(&self, id: ConnectionId) -> Info {
        self.tcp.info(id).expect("a connection")
    }

    pub(in crate::tcp) fn state(&self, id: ConnectionId) -> State {
        self.tcp.info(id).map_or(State::Closed, |info| info.state)
    }

    /// Writes as much of `data` as is taken.
    pub(in crate::tcp) fn write(&mut self, id: ConnectionId, data: &[u8]) -> usize {
        let alloc = &mut || Some(TestPage::new());
        let written = self.tcp.poll_write(id, Waker::noop(), data, alloc);
        self.poll();
        match written {
            Poll::Ready(Ok(len)) => len,
            Poll::Ready(Err(error)) => panic!("{error}"),
            Poll::Pending => 0,
        }
    }

    /// Reads what there is.
    pub(in crate::tcp) fn read(&mut self, id: ConnectionId) -> Vec<u8> {
        let mut data = vec![0; 1 << 20];
        let len = match self.tcp.poll_read(id, Waker::noop(), &mut data) {
            Poll::Ready(Ok(len)) => len,
            Poll::Ready(Err(error)) => panic!("{error}"),
            Poll::Pending => 0,
        };
        data.truncate(len);
        self.poll();
        data
    }

    /// Takes one chunk of what there is by reference.
    pub(in crate::tcp) fn chunk(&mut self, id: ConnectionId) -> Option<Chunk<TestPage>> {
        match self.tcp.poll_chunk(id, Waker::noop()) {
            Poll::Ready(Ok(chunk)) => chunk,
            _ => None,
        }
    }

    pub(in crate::tcp) fn shutdown(&mut self, id: ConnectionId) {
        self.tcp.shutdown(id);
        self.poll();
    }

    pub(in crate::tcp) fn complete(&mut self, out: &Out) {
        let completion = Completion {
            owner: out.owner,
            bytes: out.payload.len() as u32,
            held: Duration::ZERO,
        };
        self.tcp.completed(self.now, completion);
    }
}

/// A number `offset` after the peer's SYN.
pub(in crate::tcp) fn peer(offset: u32) -> u32 {
    PEER_ISS.wrapping_add(1).wrapping_add(offset)
}

/// A SACK block of our data.
pub(in crate::tcp) fn sack(iss: u32, start: u32, end: u32) -> SackBlock {
    let base = iss.wrapping_add(1);
    SackBlock {
        left: base.wrapping_add(start),
        right: base.wrapping_add(end),
    }
}
