//! The stack and the guest's servers as a process of Linux, on a TAP interface.

use embedded_io_async::{BufRead, Write};
use paceline_guest::executor::{Executor, Spawner, Timers};
use paceline_guest::iperf3;
use paceline_host::{Mode, Namespace, Nic, READY};
use paceline_stack::device::Device;
use paceline_stack::net::Net;
use paceline_stack::socket::{TcpListener, TcpStream};
use paceline_stack::stack::{Config, Stack};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

/// The name of the interface.
const INTERFACE: &str = "tap0";

/// Linux's address.
const LINUX: &str = "10.77.0.1/24";

/// Our address, in a /24.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// Where everything that comes is sent back.
pub(crate) const ECHO_PORT: u16 = 7;

/// Where the number of pages in use is told.
pub(crate) const PAGES_PORT: u16 = 79;

/// Our address, as programs take it.
pub(crate) fn address() -> String {
    ADDRESS.to_string()
}

/// Starts the endpoint's process, with Linux's TCP on the other side of its interface.
pub(crate) fn start(mode: Mode) -> io::Result<Namespace> {
    let namespace = Namespace::start(std::env::current_exe()?, &["endpoint", mode.name()])?;
    namespace.set_up(INTERFACE, LINUX)?;
    Ok(namespace)
}

/// Runs the endpoint until its standard input ends.
pub(crate) fn run(mode: Mode) -> io::Result<()> {
    log::set_logger(&Console).expect("nobody else sets it");
    log::set_max_level(log::LevelFilter::Info);
    let nic = Nic::tap(INTERFACE, mode)?;
    let config = Config {
        address: ADDRESS,
        prefix: 24,
        gateway: None,
        secret: [0x5a; 16],
    };
    let stack = Stack::new(nic, &config).map_err(io::Error::other)?;
    let net = Net::new(stack);
    let (mut executor, timers) = (Executor::new(), Timers::new());
    let spawner = executor.spawner();
    spawner.spawn(iperf3::run(net.clone(), timers.clone()));
    spawner.spawn(echo(net.clone(), spawner.clone()));
    spawner.spawn(tell_pages(net.clone()));
    paceline_host::run(&net, &mut executor, &timers, io::stdin().as_fd(), || {
        println!("{READY}");
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
async fn tell_pages(net: Net<Nic>) {
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
