//! A server for stock iperf3 clients, over TCP.
//!
//! [`serve`] runs for ever: it accepts connections, runs one test at a time and tells other clients
//! meanwhile that it is busy. It does `-R`, `-P`, `--bidir`, `-t`, `-n`, `-k`, `-b`, `-l`, `-w`,
//! `-M`, `-N`, `-O`, `-C` and `--get-server-output`. Nothing that a client does or leaves undone
//! keeps it from the next test: each step has a time limit, each message a size limit.
//!
//! It performs no I/O of its own: what it needs of a network is stated in [`Network`], which
//! [`Port`] is for Paceline's stack.

mod json;
mod net;
mod params;
mod protocol;
mod reception;
mod report;
mod results;
mod session;
mod stack;
mod stream;
#[cfg(test)]
mod testing;
mod units;

pub use net::{Info, Network, OptionError, Options, Stream, StreamError};
pub use stack::{Connection, OpenError, Port, run};

use core::convert::Infallible;
use core::pin::pin;
use futures_util::future::{Either, select};
use paceline_stack::time::Duration;
use reception::Reception;

/// The port of iperf3.
pub const PORT: u16 = 5201;

/// Time between two lines of a stream's report.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long the server waits for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For a cookie or a message.
    pub patience: Duration,
    /// For all data connections of a test.
    pub arrival: Duration,
    /// For the end of a test, beyond the time that the client asked for.
    pub overtime: Duration,
    /// For any byte to move while a test runs.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(10),
            arrival: Duration::from_secs(30),
            overtime: Duration::from_secs(10),
            idle: Duration::from_mins(2),
        }
    }
}

/// Serves one client after another, for ever.
pub async fn serve<N: Network>(net: &N, limits: &Limits) -> Infallible {
    let reception = Reception::new();
    let tests = async {
        let mut number = 1_u64;
        loop {
            log::info!(target: "iperf3", "Server listening on {PORT} (test #{number})");
            number += 1;
            let (cookie, control) = reception.next_client().await;
            session::run(net, limits, &reception, cookie, control).await;
        }
    };
    let receiving = reception::receive(net, &reception, limits.patience);
    // Tests come first: a client that comes as another ends is let in.
    match select(pin!(tests), pin!(receiving)).await {
        Either::Left((never, _)) | Either::Right((never, _)) => never,
    }
}

#[cfg(test)]
mod tests;
