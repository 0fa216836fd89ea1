//! The stack and the guest's servers as a process of Linux, on a TAP interface.

use crate::device::{Mode, Tap};
use embedded_io_async::{BufRead, Write};
use paceline_guest::executor::{Executor, Spawner, Timers};
use paceline_guest::iperf3;
use paceline_stack::device::Device;
use paceline_stack::net::Net;
use paceline_stack::socket::{TcpListener, TcpStream};
use paceline_stack::stack::{Config, Stack};
use paceline_stack::time::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::Ipv4Addr;

/// The name of the interface.
pub(crate) const INTERFACE: &str = "tap0";

/// Our address, in a /24.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// Where everything that comes is sent back.
pub(crate) const ECHO_PORT: u16 = 7;

/// Where the number of pages in use is told.
pub(crate) const PAGES_PORT: u16 = 79;

/// What the endpoint says once it can be connected to.
pub(crate) const READY: &str = "ready";

/// Runs the endpoint until its standard input ends.
pub(crate) fn run(mode: Mode) -> io::Result<()> {
    log::set_logger(&Console).expect("nobody else sets it");
    log::set_max_level(log::LevelFilter::Info);
    let started = std::time::Instant::now();
    let now = || Instant::from_micros(started.elapsed().as_micros() as u64);

    let tap = Tap::create(INTERFACE, mode)?;
    let config = Config {
        address: ADDRESS,
        prefix: 24,
        gateway: None,
        secret: [0x5a; 16],
    };
    let stack = Stack::new(tap, &config).map_err(io::Error::other)?;
    let net = Net::new(stack);
    let (mut executor, timers) = (Executor::new(), Timers::new());
    let spawner = executor.spawner();
    spawner.spawn(iperf3::run(net.clone(), timers.clone()));
    spawner.spawn(echo(net.clone(), spawner.clone()));
    spawner.spawn(tell_pages(net.clone()));
    // As the guest's own loop.
    net.poll(now());
    executor.run();
    println!("{READY}");
    loop {
        let at = now();
        let polled = net.poll(at);
        timers.advance(at);
        let more = executor.run() || net.poll_wanted() || polled.more;
        if more || net.with(|stack| stack.device_mut().arm()) {
            continue;
        }
        let deadlines = [polled.deadline, timers.next_deadline()];
        let deadline = deadlines.into_iter().flatten().min();
        let timeout = deadline.map(|deadline| deadline.since(now()));
        if rest(&net, timeout)? {
            return Ok(());
        }
    }
}

/// Waits until there is something to do; true when that is to stop.
fn rest(net: &Net<Tap>, timeout: Option<Duration>) -> io::Result<bool> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    });
    net.with(|stack| {
        let stdin = io::stdin();
        let mut fds = [
            PollFd::from_borrowed_fd(stack.device().fd(), PollFlags::IN),
            PollFd::new(&stdin, PollFlags::IN),
        ];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!fds[1].revents().is_empty()),
            Err(error) => Err(error.into()),
        }
    })
}

/// Sends back what comes, on any number of connections.
async fn echo<D: Device + 'static>(net: Net<D>, spawner: Spawner) {
    let listener = TcpListener::bind_port(&net, ECHO_PORT, 128).expect("the port is free");
    while let Ok((stream, _)) = listener.accept().await {
        spawner.spawn(async move {
            // A peer that goes away ends it.
            let _ = send_back(stream).await;
        });
    }
}

async fn send_back<D: Device>(
    stream: TcpStream<D>,
) -> Result<(), paceline_stack::socket::StreamError> {
    use paceline_stack::socket::StreamError;

    let (mut reader, mut writer) = stream.into_split();
    loop {
        let bytes = reader.fill_buf().await.map_err(StreamError::Read)?;
        let len = bytes.len();
        if len == 0 {
            writer.shutdown();
            return writer.flush().await.map_err(StreamError::Write);
        }
        let len = writer.write(bytes).await.map_err(StreamError::Write)?;
        reader.consume(len);
    }
}

/// Tells how many of the NIC's pages are in use, on one connection after another.
async fn tell_pages(net: Net<Tap>) {
    let listener = TcpListener::bind_port(&net, PAGES_PORT, 8).expect("the port is free");
    while let Ok((mut stream, _)) = listener.accept().await {
        let pages = net.with(|stack| stack.device().pages_in_use());
        // A peer that goes away does not want to know.
        let _ = stream.write_all(pages.to_string().as_bytes()).await;
    }
}

/// The log, on standard error.
struct Console;

impl log::Log for Console {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        eprintln!("{}", record.args());
    }

    fn flush(&self) {}
}
