//! smoltcp on the cable.

use super::{
    CHUNK_BYTES, Pair,
    cable::{self, Direction, End, Frame, Wire},
};
use smoltcp::{
    iface::{Config, Interface, SocketHandle, SocketSet},
    phy::{Checksum, ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken},
    socket::tcp::{Socket, SocketBuffer},
    time::{Duration, Instant},
    wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr},
};
use std::{cell::RefCell, rc::Rc};

const PORT: u16 = 9;
/// Room of a socket in each direction.
const BUFFER_BYTES: usize = 1 << 20;

struct Phy {
    end: End,
    wire: Wire,
}

struct Received {
    frame: Frame,
    direction: Rc<RefCell<Direction>>,
}

struct Sender {
    direction: Rc<RefCell<Direction>>,
}

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        let result = f(self.frame.bytes());
        self.direction.borrow_mut().end(self.frame);
        result
    }
}

impl TxToken for Sender {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = self
            .direction
            .borrow_mut()
            .begin()
            .expect("there was room when the token was made");
        let result = f(frame.resize(len));
        self.direction.borrow_mut().send(frame);
        result
    }
}

impl Phy {
    fn sender(&self) -> Option<Sender> {
        let direction = Rc::clone(&self.end.outgoing);
        let has_room = direction.borrow().has_room();
        has_room.then_some(Sender { direction })
    }
}

impl Device for Phy {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sender;

    fn receive(&mut self, _now: Instant) -> Option<(Received, Sender)> {
        if self.end.incoming.borrow().is_empty() {
            return None;
        }
        let sender = self.sender()?;
        let frame = self.end.incoming.borrow_mut().receive()?;
        let received = Received {
            frame,
            direction: Rc::clone(&self.end.incoming),
        };
        Some((received, sender))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Sender> {
        self.sender()
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = usize::from(self.wire.mtu_bytes) + 14;
        if !self.wire.checksums {
            let mut checksum = ChecksumCapabilities::ignored();
            // The device leaves the IP header alone, ours as well.
            checksum.ipv4 = Checksum::Both;
            capabilities.checksum = checksum;
        }
        capabilities
    }
}

/// One station.
struct Station {
    phy: Phy,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

impl Station {
    fn new(end: End, wire: Wire, last: u8) -> Self {
        let mut phy = Phy { end, wire };
        let mac = EthernetAddress([2, 0, 0, 0, 0, last]);
        let config = Config::new(HardwareAddress::Ethernet(mac));
        let mut interface = Interface::new(config, &mut phy, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let address = IpCidr::new(IpAddress::v4(192, 0, 2, last), 24);
            addresses.push(address).expect("room for one address");
        });
        let buffer = || SocketBuffer::new(vec![0; BUFFER_BYTES]);
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(Socket::new(buffer(), buffer()));
        Self {
            phy,
            interface,
            sockets,
            socket,
        }
    }

    fn poll(&mut self, now: Instant) {
        self.interface.poll(now, &mut self.phy, &mut self.sockets);
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }
}

/// Two of them, connected.
pub(super) struct Smoltcp {
    sender: Station,
    receiver: Station,
    now: Instant,
    data: Vec<u8>,
    buffer: Vec<u8>,
}

impl Smoltcp {
    pub(super) fn new(wire: Wire) -> Self {
        let (a, b) = cable::cable();
        let mut pair = Self {
            sender: Station::new(a, wire, 1),
            receiver: Station::new(b, wire, 2),
            now: Instant::ZERO,
            data: vec![7; CHUNK_BYTES],
            buffer: vec![0; BUFFER_BYTES],
        };
        pair.receiver.socket().listen(PORT).expect("a free port");
        let Station {
            interface,
            sockets,
            socket,
            ..
        } = &mut pair.sender;
        sockets
            .get_mut::<Socket<'_>>(*socket)
            .connect(
                interface.context(),
                (IpAddress::v4(192, 0, 2, 2), PORT),
                40_000,
            )
            .expect("a valid address");
        for _ in 0..1000 {
            pair.tick();
            pair.sender.poll(pair.now);
            pair.receiver.poll(pair.now);
            if pair.sender.socket().may_send() {
                return pair;
            }
        }
        panic!("it does not connect");
    }

    fn tick(&mut self) {
        self.now += Duration::from_micros(10);
    }
}

impl Pair for Smoltcp {
    fn send(&mut self) {
        self.tick();
        let socket = self
            .sender
            .sockets
            .get_mut::<Socket<'_>>(self.sender.socket);
        if socket.can_send() {
            socket.send_slice(&self.data).expect("it is connected");
        }
        self.sender.poll(self.now);
    }

    fn receive(&mut self) -> usize {
        self.tick();
        self.receiver.poll(self.now);
        let socket = self
            .receiver
            .sockets
            .get_mut::<Socket<'_>>(self.receiver.socket);
        if socket.can_recv() {
            socket
                .recv_slice(&mut self.buffer)
                .expect("it is connected")
        } else {
            0
        }
    }
}
