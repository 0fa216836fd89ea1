//! One test, from the client's parameters to its farewell.

use super::net::{Network, OptionError, Stream, StreamError, with_timeout};
use super::params::{MAX_PARAMS_BYTES, Params, ParamsError};
use super::protocol::{Control, ControlError, Cookie, ErrorCode, State};
use super::reception::Reception;
use super::report::Report;
use super::results::{self, CpuShare, PeerResults, PeerStream, StreamTotals};
use super::stream::{DataStream, Plan};
use super::{INTERVAL, Limits};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;
use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use paceline_stack::time::{Duration, Instant};

/// How a test ended early.
#[derive(Debug)]
pub(crate) enum SessionError {
    /// The control connection failed, or carried what it should not.
    Control(ControlError),
    /// The client was interrupted.
    ClientTerminated,
    /// The parameters cannot be met.
    Params(ParamsError),
    /// The asked socket buffer is too large.
    Buffer { got: usize, max: usize },
    /// Not all data connections came.
    Connections { wanted: usize },
    /// A data connection failed.
    Stream {
        id: u32,
        sends: bool,
        error: StreamError,
    },
    /// The client did not end the test when its time was over.
    Overdue(Duration),
    /// No byte moved for this long.
    Idle(Duration),
    /// The client's results make no sense.
    Results(serde_json::Error),
    /// The client's results are longer than they can be.
    ResultsTooLong { got: u32, max: usize },
    /// The client's results are not about this test's streams.
    ResultStreams { got: usize, expected: usize },
}

impl SessionError {
    /// What to tell the client; none when nobody listens.
    fn code(&self) -> Option<ErrorCode> {
        Some(match self {
            Self::Control(ControlError::Closed | ControlError::Stream(_))
            | Self::ClientTerminated => return None,
            Self::Control(ControlError::TooLong { .. }) => ErrorCode::RecvParams,
            Self::Control(ControlError::TimedOut(_)) | Self::Overdue(_) | Self::Idle(_) => {
                ErrorCode::CtrlRead
            }
            Self::Control(ControlError::UnknownState(_) | ControlError::Unexpected { .. }) => {
                ErrorCode::Message
            }
            Self::Params(error) => error.code(),
            Self::Buffer { .. } => ErrorCode::BufferSize,
            Self::Connections { .. } => ErrorCode::StreamAccept,
            Self::Stream { sends: true, .. } => ErrorCode::StreamWrite,
            Self::Stream { sends: false, .. } => ErrorCode::StreamRead,
            Self::Results(_) | Self::ResultsTooLong { .. } | Self::ResultStreams { .. } => {
                ErrorCode::RecvResults
            }
        })
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control(error) => error.fmt(f),
            Self::ClientTerminated => f.write_str("the client has terminated"),
            Self::Params(error) => error.fmt(f),
            Self::Buffer { got, max } => {
                write!(
                    f,
                    "socket buffer of {got} bytes asked, at most {max} possible"
                )
            }
            Self::Connections { wanted } => {
                write!(f, "the client did not open its {wanted} data connections")
            }
            Self::Stream { id, error, .. } => write!(f, "stream {id}: {error}"),
            Self::Overdue(span) => {
                write!(f, "the client did not end its test in {} s", span.as_secs())
            }
            Self::Idle(span) => write!(f, "no data for {} s", span.as_secs()),
            Self::Results(error) => write!(f, "bad results: {error}"),
            Self::ResultsTooLong { got, max } => {
                write!(f, "results of {got} bytes, expected at most {max}")
            }
            Self::ResultStreams { got, expected } => {
                write!(f, "results of {got} streams, expected {expected}")
            }
        }
    }
}

impl From<ControlError> for SessionError {
    fn from(error: ControlError) -> Self {
        Self::Control(error)
    }
}

/// Runs the test that `stream` controls.
pub(crate) async fn run<N: Network>(
    net: &N,
    limits: &Limits,
    reception: &Reception<N::Stream>,
    cookie: Cookie,
    stream: N::Stream,
) {
    let peer = stream.peer_addr();
    log::info!(
        target: "iperf3",
        "Accepted connection from {}, port {}",
        peer.ip(),
        peer.port()
    );
    let mut control = Control::new(net, stream, limits.patience);
    let session = Session {
        net,
        limits,
        reception,
        cookie,
    };
    if let Err(error) = session.test(&mut control).await {
        log::warn!(target: "iperf3", "test ended: {error}");
        if let Some(code) = error.code() {
            // It may be this connection that failed: then there is nobody to tell.
            let _ = control.send_error(code).await;
        }
    }
    reception.see_off(control.into_stream());
}

/// What a test is run with.
struct Session<'a, N: Network> {
    net: &'a N,
    limits: &'a Limits,
    reception: &'a Reception<N::Stream>,
    cookie: Cookie,
}

impl<N: Network> Session<'_, N> {
    async fn test(&self, control: &mut Control<'_, N>) -> Result<(), SessionError> {
        control.send_state(State::ParamExchange).await?;
        let json = control.read_message(MAX_PARAMS_BYTES).await?;
        let params = Params::parse(&json).map_err(SessionError::Params)?;
        drop(json);

        let streams = self.create_streams(control, &params).await?;
        let mut report = Report::new(params.direction, params.server_output);
        report.streams(&streams);
        control.send_state(State::TestStart).await?;
        control.send_state(State::TestRunning).await?;

        let cpu = CpuMeter::start(self.net);
        let (end, span) = self.transfer(control, &params, &streams, &mut report).await;
        let totals = streams.iter().map(DataStream::totals).collect::<Vec<_>>();
        let congestion = streams.first().map(|stream| stream.info().congestion);
        // Closes them.
        drop(streams);
        report.totals(&totals, span.counted());
        match end? {
            State::TestEnd => {}
            State::ClientTerminate => return Err(SessionError::ClientTerminated),
            got => {
                let expected = State::TestEnd;
                return Err(ControlError::Unexpected { got, expected }.into());
            }
        }

        let own = results::encode(
            cpu.share(self.net),
            congestion,
            span.counted(),
            &totals,
            report.kept(),
        );
        control.send_state(State::ExchangeResults).await?;
        let theirs = control
            .read_message(results::max_results_bytes(totals.len()))
            .await
            .map_err(|error| match error {
                ControlError::TooLong { got, max } => SessionError::ResultsTooLong { got, max },
                error => error.into(),
            })?;
        let theirs = results::decode(&theirs).map_err(SessionError::Results)?;
        check(&theirs, &totals)?;
        control.send_message(&own).await?;
        control.send_state(State::DisplayResults).await?;
        control.expect_state(State::IperfDone).await?;
        Ok(())
    }

    /// Has the client open its data connections.
    async fn create_streams(
        &self,
        control: &mut Control<'_, N>,
        params: &Params,
    ) -> Result<Vec<DataStream<N::Stream>>, SessionError> {
        let wanted = params.connections();
        // The door must be open before the client hears of it.
        let collection = self.reception.collect(self.cookie, wanted);
        control.send_state(State::CreateStreams).await?;
        let arrival = with_timeout(self.net, self.limits.arrival, collection.all());
        let sockets = match select(pin!(arrival), pin!(control.next_state())).await {
            Either::Left((Some(sockets), _)) => sockets,
            Either::Left((None, _)) => return Err(SessionError::Connections { wanted }),
            Either::Right((Ok(State::ClientTerminate), _)) => {
                return Err(SessionError::ClientTerminated);
            }
            Either::Right((Ok(got), _)) => {
                let expected = State::ClientTerminate;
                return Err(ControlError::Unexpected { got, expected }.into());
            }
            Either::Right((Err(error), _)) => return Err(error.into()),
        };
        let mut streams = Vec::with_capacity(sockets.len());
        for (index, mut socket) in sockets.into_iter().enumerate() {
            match socket.configure(&params.options()) {
                Ok(()) => {}
                Err(OptionError::Congestion) => {
                    // The stock server warns and goes on, too; the results say what was used.
                    log::warn!(
                        target: "iperf3",
                        "TCP congestion control algorithm not supported"
                    );
                }
                Err(OptionError::Buffer { max_bytes }) => {
                    return Err(SessionError::Buffer {
                        got: params.buffer_bytes.unwrap_or_default(),
                        max: max_bytes,
                    });
                }
            }
            streams.push(DataStream::new(index, params.sends(index), socket));
        }
        Ok(streams)
    }

    /// Moves data until the client says something or the test fails.
    async fn transfer(
        &self,
        control: &mut Control<'_, N>,
        params: &Params,
        streams: &[DataStream<N::Stream>],
        report: &mut Report,
    ) -> (Result<State, SessionError>, Span) {
        let start = self.net.now();
        for stream in streams {
            stream.reset();
        }
        let mut span = Span {
            start,
            counted_from: start,
            end: start,
        };
        let plan = Plan::new(params, start);
        let mut running = FuturesUnordered::new();
        for stream in streams {
            running.push(async {
                let Err(error) = stream.run(self.net, &plan).await;
                SessionError::Stream {
                    id: stream.id(),
                    sends: stream.sends(),
                    error,
                }
            });
        }
        let end = {
            let moving = poll_fn(|cx| match running.poll_next_unpin(cx) {
                Poll::Ready(Some(error)) => Poll::Ready(error),
                // A stream that is done waits for the client; there is always one.
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            });
            let watching = self.watch(params, streams, report, &mut span);
            let (moving, watching) = (pin!(moving), pin!(watching));
            match select(pin!(control.next_state()), select(moving, watching)).await {
                Either::Left((state, _)) => state.map_err(SessionError::Control),
                Either::Right((Either::Left((error, _)) | Either::Right((Err(error), _)), _)) => {
                    Err(error)
                }
            }
        };
        drop(running);
        span.end = self.net.now();
        poll_fn(|cx| {
            for stream in streams.iter().filter(|stream| !stream.sends()) {
                stream.receive_rest(cx);
            }
            Poll::Ready(())
        })
        .await;
        (end, span)
    }

    /// Prints a report each second, ends the omitted time, and ends the test when the client has
    /// forgotten it.
    async fn watch(
        &self,
        params: &Params,
        streams: &[DataStream<N::Stream>],
        report: &mut Report,
        span: &mut Span,
    ) -> Result<Infallible, SessionError> {
        let start = span.start;
        let omitted_until = start + params.omit;
        let overdue = params.duration.map(|duration| {
            let allowed = duration + params.omit + self.limits.overtime;
            (start + allowed, allowed)
        });
        let mut omitting = !params.omit.is_zero();
        let mut from = start;
        let mut next = start + INTERVAL;
        let mut moved = 0;
        let mut moved_at = start;
        loop {
            let until = if omitting {
                next.min(omitted_until)
            } else {
                next
            };
            self.net.sleep_until(until).await;
            let now = self.net.now();

            if let Some((deadline, allowed)) = overdue
                && now >= deadline
            {
                return Err(SessionError::Overdue(allowed));
            }
            let bytes = streams.iter().map(DataStream::bytes).sum::<u64>();
            if bytes != moved {
                (moved, moved_at) = (bytes, now);
            } else if now.since(moved_at) >= self.limits.idle {
                return Err(SessionError::Idle(self.limits.idle));
            }

            if now >= next {
                let base = span.counted_from;
                report.interval(streams, (from.since(base), now.since(base)), omitting);
                from = now;
                // After a stall, one line stands for all the seconds missed.
                while next <= now {
                    next = next + INTERVAL;
                }
            }
            if omitting && now >= omitted_until {
                omitting = false;
                for stream in streams {
                    stream.reset();
                }
                span.counted_from = now;
                from = now;
                next = now + INTERVAL;
            }
        }
    }
}

/// When a test ran.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: Instant,
    /// Where the omitted time ended.
    counted_from: Instant,
    end: Instant,
}

impl Span {
    /// The time that counts.
    fn counted(self) -> Duration {
        self.end.since(self.counted_from)
    }
}

/// Processor time since a point in time.
struct CpuMeter {
    since: Instant,
    busy: Option<Duration>,
}

impl CpuMeter {
    fn start<N: Network>(net: &N) -> Self {
        Self {
            since: net.now(),
            busy: net.busy(),
        }
    }

    fn share<N: Network>(self, net: &N) -> CpuShare {
        let busy = match (self.busy, net.busy()) {
            (Some(then), Some(now)) => now.saturating_sub(then),
            _ => Duration::ZERO,
        };
        CpuShare {
            busy,
            wall: net.now().since(self.since),
        }
    }
}

/// Whether the client's results are about these streams.
fn check(theirs: &PeerResults, own: &[StreamTotals]) -> Result<(), SessionError> {
    let known = |stream: &PeerStream| own.iter().any(|own| i64::from(own.id) == stream.id.0);
    let got = theirs.streams.iter().filter(|stream| known(stream)).count();
    if theirs.streams.len() != own.len() || got != own.len() {
        let expected = own.len();
        return Err(SessionError::ResultStreams { got, expected });
    }
    for stream in &theirs.streams {
        log::debug!(
            target: "iperf3",
            "[{:3}] the client counted {} bytes and {} retransmits",
            stream.id.0,
            stream.bytes.unsigned(),
            stream.retransmits.0,
        );
    }
    Ok(())
}
