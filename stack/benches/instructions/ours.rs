//! This stack on the cable.

use super::{
    CHUNK_BYTES, Pair,
    cable::{self, End, Wire},
    pool::{self, PAGE_BYTES, Pool, PoolPage},
};
use embedded_io_async::{Read, Write};
use paceline_stack::{
    device::{
        Capabilities, Completion, Device, Page, RxChecksum, RxFrame, RxMemory, Slice, TxError,
        TxFrame, TxOffload,
    },
    net::Net,
    socket::{TcpListener, TcpStream},
    stack::{Config, Stack},
    time::{Duration, Instant},
};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

const PAGES: usize = 8192;
const PORT: u16 = 9;
/// Room of a socket in each direction.
const BUFFER_BYTES: u32 = 1 << 20;

/// One end of the cable.
pub(super) struct Nic {
    end: End,
    wire: Wire,
    mac: [u8; 6],
    pool: Pool,
    done: VecDeque<Completion>,
}

impl Device for Nic {
    type Page = PoolPage;

    fn capabilities(&self) -> Capabilities {
        let Wire {
            name: _,
            mtu_bytes,
            checksums,
            segments,
        } = self.wire;
        Capabilities {
            mtu_bytes,
            max_tso4_bytes: u32::from(segments) * 65_535,
            max_tso6_bytes: 0,
            max_tx_slices: 17,
            tx_ring_bytes: u32::MAX,
            tx_checksum4: !checksums,
            tx_checksum6: false,
        }
    }

    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn link_up(&self) -> bool {
        true
    }

    fn alloc_page(&mut self) -> Option<PoolPage> {
        PoolPage::alloc(&self.pool)
    }

    fn rx_memory(&self) -> RxMemory {
        RxMemory::Plenty
    }

    fn receive(&mut self, _now: Instant) -> Option<RxFrame<PoolPage>> {
        let frame = self.end.incoming.borrow_mut().receive()?;
        let mut slices = heapless::Vec::new();
        for part in frame.bytes().chunks(PAGE_BYTES) {
            let mut page = PoolPage::alloc(&self.pool)?;
            page.append(part);
            let _ = slices.push(Slice::whole(page));
        }
        let received = RxFrame {
            slices,
            checksum: if self.wire.checksums {
                RxChecksum::Unverified
            } else {
                RxChecksum::Good
            },
            segment_bytes: frame.segment_bytes,
        };
        self.end.incoming.borrow_mut().end(frame);
        Some(received)
    }

    fn transmit(&mut self, frame: &TxFrame<'_, PoolPage>) -> Result<(), TxError> {
        let mut outgoing = self.end.outgoing.borrow_mut();
        let mut buffer = outgoing.begin().ok_or(TxError::Full)?;
        buffer.append(frame.header);
        let mut bytes = 0;
        for slice in frame.payload {
            bytes += slice.len() as u32;
            buffer.append(slice.bytes());
        }
        if let TxOffload::Tso { mss_bytes, .. } = frame.offload {
            buffer.segment_bytes = Some(mss_bytes);
        }
        outgoing.send(buffer);
        if bytes > 0 {
            self.done.push_back(Completion {
                owner: frame.owner,
                bytes,
                held: Duration::ZERO,
            });
        }
        Ok(())
    }

    fn flush(&mut self, _now: Instant) {}

    fn complete(&mut self, _now: Instant, sink: &mut dyn FnMut(Completion)) {
        while let Some(completion) = self.done.pop_front() {
            sink(completion);
        }
    }

    fn arm(&mut self) -> bool {
        !self.end.incoming.borrow().is_empty()
    }
}

fn station(end: End, wire: Wire, last: u8) -> Net<Nic> {
    let nic = Nic {
        end,
        wire,
        mac: [2, 0, 0, 0, 0, last],
        pool: pool::pool(PAGES),
        done: VecDeque::with_capacity(256),
    };
    let config = Config {
        address: [192, 0, 2, last].into(),
        prefix: 24,
        gateway: None,
        secret: [last; 16],
    };
    Net::new(Stack::new(nic, &config).expect("a valid configuration"))
}

/// Two of them, connected.
pub(super) struct Paceline {
    sender: Net<Nic>,
    receiver: Net<Nic>,
    writer: TcpStream<Nic>,
    reader: TcpStream<Nic>,
    now: Instant,
    data: Vec<u8>,
    buffer: Vec<u8>,
}

impl Paceline {
    pub(super) fn new(wire: Wire) -> Self {
        let (a, b) = cable::cable();
        let (sender, receiver) = (station(a, wire, 1), station(b, wire, 2));
        let address = SocketAddr::new([192, 0, 2, 2].into(), PORT);
        let listener = TcpListener::bind_with(&receiver, address, 1, |options| {
            options.rcvbuf_bytes = Some(BUFFER_BYTES);
        })
        .expect("a free port");
        let mut now = Instant::ZERO;
        let mut poll = || {
            for net in [&sender, &receiver] {
                now = now + Duration::from_micros(10);
                net.poll(now);
            }
        };
        let connect = TcpStream::connect_with(&sender, None, address, |options| {
            options.sndbuf_bytes = Some(BUFFER_BYTES);
        });
        let writer = run(connect, &mut poll).expect("it connects");
        let (reader, _) = run(listener.accept(), &mut poll).expect("it connects");
        Self {
            now,
            sender,
            receiver,
            writer,
            reader,
            data: vec![7; CHUNK_BYTES],
            buffer: vec![0; BUFFER_BYTES as usize],
        }
    }

    fn tick(&mut self) {
        self.now = self.now + Duration::from_micros(10);
    }
}

impl Pair for Paceline {
    fn send(&mut self) {
        self.tick();
        // When the buffer is full, nothing is written.
        let _full = poll_once(pin!(self.writer.write(&self.data)));
        self.sender.poll(self.now);
    }

    fn receive(&mut self) -> usize {
        self.tick();
        self.receiver.poll(self.now);
        match poll_once(pin!(self.reader.read(&mut self.buffer))) {
            Poll::Ready(len) => len.expect("it is connected"),
            Poll::Pending => 0,
        }
    }
}

/// Polls until `future` is done.
fn run<F: Future>(future: F, poll: &mut impl FnMut()) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..1000 {
        if let Poll::Ready(output) = poll_once(future.as_mut()) {
            return output;
        }
        poll();
    }
    panic!("it does not connect");
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
