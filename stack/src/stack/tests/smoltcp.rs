//! smoltcp as the other station: a stack written by others.

use super::*;
use ::smoltcp::{
    iface::{Config as IfaceConfig, Interface, SocketSet},
    phy::{Device as Phy, DeviceCapabilities, Medium, RxToken, TxToken},
    socket::{icmp, udp},
    time::Instant as SmolInstant,
    wire::{
        EthernetAddress, HardwareAddress, Icmpv4Packet, Icmpv4Repr, IpAddress, IpCidr, IpEndpoint,
    },
};
use alloc::collections::VecDeque;

/// smoltcp's NIC: frames that came, and frames to go.
#[derive(Default)]
struct Wire {
    incoming: VecDeque<Vec<u8>>,
    outgoing: Vec<Vec<u8>>,
}

struct Received(Vec<u8>);

struct Sender<'a>(&'a mut Vec<Vec<u8>>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Sender<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        self.0.push(frame);
        result
    }
}

impl Phy for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sender<'a>;

    fn receive(&mut self, _now: SmolInstant) -> Option<(Received, Sender<'_>)> {
        let frame = self.incoming.pop_front()?;
        Some((Received(frame), Sender(&mut self.outgoing)))
    }

    fn transmit(&mut self, _now: SmolInstant) -> Option<Sender<'_>> {
        Some(Sender(&mut self.outgoing))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}

/// Both stations, joined.
struct Pair {
    bench: Bench,
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
}

impl Pair {
    fn new(nic: NicConfig) -> Self {
        let mut wire = Wire::default();
        let mac = HardwareAddress::Ethernet(EthernetAddress(PEER_MAC));
        let mut interface = Interface::new(IfaceConfig::new(mac), &mut wire, SmolInstant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let address = IpCidr::new(IpAddress::Ipv4(PEER), 24);
            addresses.push(address).unwrap();
        });
        Self {
            bench: Bench::new(nic),
            wire,
            interface,
            sockets: SocketSet::new(Vec::new()),
        }
    }

    /// Lets both talk until they have nothing more to say.
    fn settle(&mut self) {
        loop {
            self.wire.incoming.extend(self.bench.poll());
            let now = SmolInstant::from_micros(self.bench.now.as_micros() as i64);
            self.interface.poll(now, &mut self.wire, &mut self.sockets);
            if self.wire.outgoing.is_empty() {
                return;
            }
            for frame in core::mem::take(&mut self.wire.outgoing) {
                self.bench.receive(&frame);
            }
        }
    }

    /// Lets a second pass, as often as ARP may need it.
    fn run(&mut self) {
        for _ in 0..3 {
            self.settle();
            self.bench.advance(Duration::from_secs(1));
        }
        self.settle();
    }
}

#[test]
fn answers_its_pings() {
    for nic in [NicConfig::default(), NicConfig::plain()] {
        let mut pair = Pair::new(nic);
        let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY], vec![0; 2000]);
        let mut socket = icmp::Socket::new(buffer(), buffer());
        socket.bind(icmp::Endpoint::Ident(77)).unwrap();
        let handle = pair.sockets.add(socket);
        let payload = bytes(1001);
        let echo = Icmpv4Repr::EchoRequest {
            ident: 77,
            seq_no: 3,
            data: &payload,
        };
        let checksums = ::smoltcp::phy::ChecksumCapabilities::default();
        let socket = pair.sockets.get_mut::<icmp::Socket>(handle);
        let room = socket
            .send(echo.buffer_len(), IpAddress::Ipv4(OURS))
            .unwrap();
        echo.emit(&mut Icmpv4Packet::new_unchecked(room), &checksums);
        pair.run();
        let socket = pair.sockets.get_mut::<icmp::Socket>(handle);
        let (message, from) = socket.recv().unwrap();
        assert_eq!(from, IpAddress::Ipv4(OURS));
        let expected = Icmpv4Repr::EchoReply {
            ident: 77,
            seq_no: 3,
            data: &payload,
        };
        let packet = Icmpv4Packet::new_checked(message).unwrap();
        assert_eq!(Icmpv4Repr::parse(&packet, &checksums), Ok(expected));
    }
}

#[test]
fn exchanges_datagrams_both_ways() {
    for nic in [NicConfig::default(), NicConfig::plain()] {
        let mut pair = Pair::new(nic);
        let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 8], vec![0; 9000]);
        let mut socket = udp::Socket::new(buffer(), buffer());
        socket.bind(5000).unwrap();
        let handle = pair.sockets.add(socket);
        let id = pair.bench.stack.udp_mut().bind(9).unwrap();
        for len in [0, 1, 86, 87, 1472] {
            let data = bytes(len);
            let to = IpEndpoint::new(IpAddress::Ipv4(OURS), 9);
            let socket = pair.sockets.get_mut::<udp::Socket>(handle);
            socket.send_slice(&data, to).unwrap();
            pair.run();
            let socket = pair.bench.stack.udp_mut().socket(id).unwrap();
            let (from, slices) = socket.pop().unwrap();
            let got: Vec<u8> = slices.flat_map(|s| s.bytes().to_vec()).collect();
            assert_eq!(got, data);
            pair.bench.stack.udp_send(9, &data, from).unwrap();
            pair.run();
            let socket = pair.sockets.get_mut::<udp::Socket>(handle);
            let (got, from) = socket.recv().unwrap();
            assert_eq!((got, from.endpoint.port), (&data[..], 9));
        }
    }
}
