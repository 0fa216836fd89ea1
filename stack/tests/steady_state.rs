//! Between a connection's first packet and its last, the stack allocates nothing.
//!
//! Two stacks are joined by a cable that passes pages from one to the other.

mod pool;

use paceline_stack::{
    device::{
        Capabilities, Completion, Device, Page, RxChecksum, RxFrame, RxMemory, Slice, TxError,
        TxFrame, TxOffload,
    },
    net::Net,
    socket::{TcpListener, TcpStream, UdpSocket},
    stack::{Config, Stack},
    time::{Duration, Instant},
};
use pool::{Pool, PoolPage};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::{Cell, RefCell},
    collections::VecDeque,
    net::SocketAddr,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, Waker},
};

/// Frames that fit on the cable.
const RING: usize = 64;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Inbox = Rc<RefCell<VecDeque<RxFrame<PoolPage>>>>;

/// One end of the cable.
struct Cable {
    mac: [u8; 6],
    pool: Pool,
    inbox: Inbox,
    peer: Inbox,
    done: VecDeque<Completion>,
}

impl Device for Cable {
    type Page = PoolPage;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            mtu_bytes: 1500,
            max_tso4_bytes: 65_535,
            max_tso6_bytes: 0,
            max_tx_slices: 17,
            tx_ring_bytes: RING as u32 * 65_535,
            tx_checksum4: true,
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
        self.inbox.borrow_mut().pop_front()
    }

    fn transmit(&mut self, frame: &TxFrame<'_, PoolPage>) -> Result<(), TxError> {
        let mut peer = self.peer.borrow_mut();
        if peer.len() == RING {
            return Err(TxError::Full);
        }
        let mut header = PoolPage::alloc(&self.pool).ok_or(TxError::Full)?;
        header.append(frame.header);
        let mut slices = heapless::Vec::new();
        let header = Slice::whole(header.clone());
        slices.push(header).map_err(|_| TxError::Unsendable)?;
        let mut bytes = 0;
        for slice in frame.payload {
            bytes += slice.len() as u32;
            let start = slice.offset();
            let slice = Slice::new(slice.page().clone(), start..start + slice.len());
            slices.push(slice).map_err(|_| TxError::Unsendable)?;
        }
        let segment_bytes = match frame.offload {
            TxOffload::Tso { mss_bytes, .. } => Some(mss_bytes),
            TxOffload::None | TxOffload::Checksum { .. } => None,
        };
        peer.push_back(RxFrame {
            slices,
            checksum: RxChecksum::Good,
            segment_bytes,
        });
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
        !self.inbox.borrow().is_empty()
    }
}

/// Two stacks and the time.
struct Pair {
    a: Net<Cable>,
    b: Net<Cable>,
    now: Instant,
}

impl Pair {
    fn new() -> Self {
        let pool = pool::pool(20_000);
        let inbox = || Rc::new(RefCell::new(VecDeque::with_capacity(RING)));
        let (inbox_a, inbox_b) = (inbox(), inbox());
        let net = |last: u8, inbox: &Inbox, peer: &Inbox| {
            let device = Cable {
                mac: [2, 0, 0, 0, 0, last],
                pool: Rc::clone(&pool),
                inbox: Rc::clone(inbox),
                peer: Rc::clone(peer),
                done: VecDeque::with_capacity(RING),
            };
            let config = Config {
                address: [192, 0, 2, last].into(),
                prefix: 24,
                gateway: None,
                secret: [last; 16],
            };
            Net::new(Stack::new(device, &config).expect("a valid configuration"))
        };
        Self {
            a: net(1, &inbox_a, &inbox_b),
            b: net(2, &inbox_b, &inbox_a),
            now: Instant::ZERO,
        }
    }

    /// One step of both, 20 us apart.
    fn step(&mut self) {
        for net in [&self.a, &self.b] {
            self.now = self.now + Duration::from_micros(10);
            net.poll(self.now);
        }
    }

    /// Steps until `future` is done.
    fn run<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        for _ in 0..1_000_000 {
            if let Poll::Ready(output) = poll_once(future.as_mut()) {
                return output;
            }
            self.step();
        }
        panic!("it hangs");
    }
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn address(last: u8, port: u16) -> SocketAddr {
    SocketAddr::new([192, 0, 2, last].into(), port)
}

/// How many allocations `f` makes.
fn allocations(f: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    f();
    ALLOCATIONS.get() - before
}

#[test]
fn udp_allocates_nothing() {
    let mut pair = Pair::new();
    let sender = UdpSocket::bind(&pair.a, address(1, 0)).expect("a free port");
    let receiver = UdpSocket::bind(&pair.b, address(2, 9)).expect("a free port");
    let data = [7; 1472];
    let mut buffer = [0; 2000];
    let mut exchange = |pair: &mut Pair, len: usize| {
        pair.run(sender.send_to(&data[..len], address(2, 9)))
            .expect("it is sent");
        let (got, _) = pair
            .run(receiver.recv_from(&mut buffer))
            .expect("it arrives");
        assert_eq!(got, len);
    };
    for _ in 0..100 {
        exchange(&mut pair, 1472);
    }
    let count = allocations(|| {
        for len in (0..1472).step_by(7).cycle().take(10_000) {
            exchange(&mut pair, len);
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn tcp_allocates_nothing() {
    let mut pair = Pair::new();
    let listener = TcpListener::bind(&pair.b, address(2, 9), 4).expect("a free port");
    let net = pair.a.clone();
    let mut sender = pair
        .run(TcpStream::connect(&net, address(2, 9)))
        .expect("it connects");
    let (mut receiver, _) = pair.run(listener.accept()).expect("it connects");
    let data = vec![7; 65_536];
    let mut buffer = vec![0; 262_144];
    let mut transfer = |pair: &mut Pair, total: usize| {
        let mut received = 0;
        while received < total {
            let _full = poll_once(pin!(embedded_io_async::Write::write(&mut sender, &data)));
            pair.step();
            while let Poll::Ready(read) = poll_once(pin!(embedded_io_async::Read::read(
                &mut receiver,
                &mut buffer
            ))) {
                received += read.expect("it is connected");
            }
        }
    };
    transfer(&mut pair, 64 << 20);
    let count = allocations(|| transfer(&mut pair, 64 << 20));
    assert_eq!(count, 0);
}
