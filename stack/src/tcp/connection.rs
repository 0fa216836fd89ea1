//! One connection: its state machine's variables (RFC 9293 §3.3) and what the application does to
//! them. Segments in are [`super::input`]'s, segments out [`super::output`]'s.

use super::{
    ack_policy::AckPolicy,
    challenge::ChallengeLimit,
    chrono::Chrono,
    config::{Config, Options},
    congestion::{Congestion, CongestionWindow},
    cwnd_usage::CwndUsage,
    delivery_rate::DeliveryRate,
    demux::{ConnectionId, Tuple},
    device_share::DeviceShare,
    ecn::Ecn,
    fairness::Turn,
    out_of_order::OutOfOrder,
    pacing::Pacer,
    rack::Rack,
    rate::Rate,
    receive_buffer::ReceiveBuffer,
    recovery::Recovery,
    recv_queue::RecvQueue,
    retransmit_queue::RetransmitQueue,
    rtt::RttEstimator,
    send_buffer::SendBuffer,
    send_queue::SendQueue,
    seq::{SeqNum, WindowScale},
    stats::Counters,
    timers::Timers,
    tlp::Tlp,
    write_space::WriteSpace,
};
use crate::{device::Page, time::Instant};
use core::{fmt, task::Waker};

/// Segment size to assume of a peer that names none (RFC 9293 §3.7.1).
pub(super) const DEFAULT_MSS: u16 = 536;

/// The states of RFC 9293 §3.3.2; LISTEN is a listener's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// We sent a SYN.
    SynSent,
    /// Both sent a SYN; ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// We closed, and the peer knows.
    FinWait2,
    /// The peer closed.
    CloseWait,
    /// Both closed at once; our FIN is not acknowledged.
    Closing,
    /// The peer closed, then we; our FIN is not acknowledged.
    LastAck,
    /// Both closed, we first.
    TimeWait,
    /// There is no connection any more.
    Closed,
}

impl State {
    /// Whether both sides know each other's sequence numbers.
    pub(super) fn is_synchronized(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// Whether data of the peer can still come.
    pub(super) fn can_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Whether data, or a FIN, may have to be sent.
    pub(super) fn can_send(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }
}

impl fmt::Display for State {
    /// As `ss` shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECV",
            Self::Established => "ESTAB",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
            Self::Closed => "CLOSED",
        })
    }
}

/// Why a connection ended otherwise than by both sides closing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// We aborted it.
    Aborted,
    /// The peer answered the SYN with a reset.
    Refused,
    /// The peer reset it.
    Reset,
    /// The peer did not answer in time.
    TimedOut,
    /// No way leads to the peer.
    Unreachable,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aborted => "connection aborted",
            Self::Refused => "connection refused",
            Self::Reset => "connection reset by peer",
            Self::TimedOut => "connection timed out",
            Self::Unreachable => "peer unreachable",
        })
    }
}

/// Variables of the sending side (RFC 9293 §3.3.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Snd {
    /// Initial send sequence number.
    pub(super) iss: SeqNum,
    /// First number not acknowledged.
    pub(super) una: SeqNum,
    /// Next number to send.
    pub(super) nxt: SeqNum,
    /// The peer's window in bytes, from `una` on.
    pub(super) wnd: u32,
    /// Segment sequence number of the last window update.
    pub(super) wl1: SeqNum,
    /// Segment acknowledgment number of the last window update.
    pub(super) wl2: SeqNum,
    /// The largest window the peer ever gave.
    pub(super) max_wnd: u32,
    /// Shift of the peer's window fields.
    pub(super) wscale: WindowScale,
    /// What the peer's SYN said it takes in a segment.
    pub(super) peer_mss: u16,
    /// Payload bytes of a full segment, options and path considered.
    pub(super) mss: u32,
    /// The application has closed its side: a FIN follows the last byte.
    pub(super) closed: bool,
    /// End of the last segment sent that was not full (Minshall's variant of Nagle's rule).
    pub(super) small_end: Option<SeqNum>,
    /// When data was last sent.
    pub(super) last_data_at: Instant,
    /// Whether the SYN, or SYN and ACK, waits to be sent.
    pub(super) syn_pending: bool,
    /// Whether a zero-window or keepalive probe waits to be sent.
    pub(super) probe: Option<Probe>,
}

/// A segment sent to draw an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// The window is closed, or too small for what waits.
    Window,
    /// Nothing came for long.
    Keepalive,
}

/// Variables of the receiving side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rcv {
    /// Initial receive sequence number.
    pub(super) irs: SeqNum,
    /// Next number expected.
    pub(super) nxt: SeqNum,
    /// Right edge of the window the peer was told; it never moves left.
    pub(super) adv: SeqNum,
    /// `nxt` as of the last acknowledgment sent.
    pub(super) acked: SeqNum,
    /// Shift of our window fields.
    pub(super) wscale: WindowScale,
    /// Payload bytes of the largest segment received.
    pub(super) mss: u32,
    /// Segment size our SYN asked for.
    pub(super) advmss: u16,
    /// Number of the peer's FIN, once it came, in order or not.
    pub(super) fin: Option<SeqNum>,
    /// Whether the application has read the end of the stream, or wants no more.
    pub(super) shut: bool,
    /// Whether an acknowledgment must go at the next chance.
    pub(super) ack_now: bool,
    /// When the last segment came.
    pub(super) last_at: Instant,
    /// Whether the last window told was zero.
    pub(super) zero_window: bool,
}

/// Timestamps of a connection (RFC 7323 §3).
#[derive(Clone, Copy, Debug)]
pub(super) struct TimestampState {
    /// What is added to the clock.
    pub(super) offset: u32,
    /// The peer's value to echo: TS.Recent.
    pub(super) recent: u32,
    /// When that came.
    pub(super) recent_at: Instant,
}

impl TimestampState {
    /// The clock's value now: milliseconds.
    pub(super) fn value(&self, now: Instant) -> u32 {
        ((now.as_micros() / 1000) as u32).wrapping_add(self.offset)
    }
}

/// What one connection has counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnectionStats {
    pub(super) bytes_acked: u64,
    pub(super) bytes_received: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_retrans: u64,
    pub(super) segs_in: u64,
    pub(super) segs_out: u64,
    pub(super) data_segs_in: u64,
    pub(super) data_segs_out: u64,
    pub(super) total_retrans: u64,
    pub(super) dsack_dups: u64,
    pub(super) rcv_ooopack: u64,
    /// Largest packet the path takes, in bytes.
    pub(super) path_mtu: u16,
}

/// Who waits for what.
#[derive(Debug, Default)]
pub(super) struct Wakers {
    pub(super) read: Option<Waker>,
    pub(super) write: Option<Waker>,
}

impl Wakers {
    pub(super) fn wake_reader(&mut self) {
        if let Some(waker) = self.read.take() {
            waker.wake();
        }
    }

    pub(super) fn wake_writer(&mut self) {
        if let Some(waker) = self.write.take() {
            waker.wake();
        }
    }

    pub(super) fn wake_all(&mut self) {
        self.wake_reader();
        self.wake_writer();
    }
}

/// What every step of a connection may use.
pub(super) struct Context<'a> {
    pub(super) now: Instant,
    pub(super) config: &'a Config,
    pub(super) counters: &'a mut Counters,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection<P> {
    pub(super) id: ConnectionId,
    pub(super) tuple: Tuple,
    pub(super) state: State,
    /// The listener it came from, until it is accepted.
    pub(super) listener: Option<usize>,
    /// Whether the application holds it.
    pub(super) held: bool,
    pub(super) failure: Option<Failure>,
    pub(super) snd: Snd,
    pub(super) rcv: Rcv,
    pub(super) timestamps: Option<TimestampState>,
    pub(super) sack: bool,
    /// Whether the SYN offers, or the peer agreed to, scaled windows.
    pub(super) scaling: bool,
    pub(super) send_queue: SendQueue<P>,
    pub(super) send_buffer: SendBuffer,
    pub(super) recv_queue: RecvQueue<P>,
    pub(super) receive_buffer: ReceiveBuffer,
    pub(super) ack_policy: AckPolicy,
    pub(super) out_of_order: OutOfOrder<P>,
    pub(super) retransmits: RetransmitQueue,
    pub(super) rack: Rack,
    pub(super) tlp: Tlp,
    pub(super) delivery: DeliveryRate,
    pub(super) recovery: Recovery,
    pub(super) window: CongestionWindow,
    pub(super) congestion: Congestion,
    pub(super) ecn: Ecn,
    pub(super) rtt: RttEstimator,
    pub(super) timers: Timers,
    /// Retransmission timeouts, or window probes, in a row.
    pub(super) timeouts: u8,
    /// Keepalive probes in a row.
    pub(super) keepalive_probes: u8,
    pub(super) usage: CwndUsage,
    /// Since when nothing sent has been acknowledged.
    pub(super) stalled_since: Instant,
    pub(super) challenge: ChallengeLimit,
    pub(super) options: Options,
    pub(super) device: DeviceShare,
    pub(super) pacer: Pacer,
    /// The rate that data left with, or should have, when output last looked.
    pub(super) pacing_rate: Rate,
    pub(super) turn: Turn,
    pub(super) wakers: Wakers,
    pub(super) write_space: WriteSpace,
    pub(super) chrono: Chrono,
    pub(super) stats: ConnectionStats,
    /// Whether it stands in the queue for output.
    pub(super) queued: bool,
    /// Whether a reset waits to be sent, after which it is gone.
    pub(super) reset_pending: bool,
}

/// What a new connection starts from.
pub(super) struct Start {
    pub(super) id: ConnectionId,
    pub(super) tuple: Tuple,
    pub(super) iss: SeqNum,
    pub(super) timestamp_offset: u32,
    pub(super) options: Options,
}

impl<P: Page> Connection<P> {
    /// A connection that sends a SYN (RFC 9293 §3.10.1).
    pub(super) fn new(start: Start, config: &Config, now: Instant) -> Self {
        let Start {
            id,
            tuple,
            iss,
            timestamp_offset,
            options,
        } = start;
        let rcvbuf = options.rcvbuf_bytes.unwrap_or(config.rcvbuf_bytes);
        let scale = window_scale(rcvbuf, config.max_rcvbuf_bytes);
        Self {
            id,
            tuple,
            state: State::SynSent,
            listener: None,
            held: true,
            failure: None,
            snd: Snd {
                iss,
                una: iss,
                nxt: iss,
                wnd: 0,
                wl1: SeqNum(0),
                wl2: SeqNum(0),
                max_wnd: 0,
                wscale: WindowScale::ZERO,
                peer_mss: DEFAULT_MSS,
                mss: u32::from(DEFAULT_MSS),
                closed: false,
                small_end: None,
                last_data_at: now,
                syn_pending: true,
                probe: None,
            },
            rcv: Rcv {
                irs: SeqNum(0),
                nxt: SeqNum(0),
                adv: SeqNum(0),
                acked: SeqNum(0),
                wscale: scale,
                mss: u32::from(DEFAULT_MSS),
                advmss: DEFAULT_MSS,
                fin: None,
                shut: false,
                ack_now: false,
                last_at: now,
                zero_window: false,
            },
            timestamps: config.timestamps.then_some(TimestampState {
                offset: timestamp_offset,
                recent: 0,
                recent_at: now,
            }),
            sack: config.sack,
            scaling: config.window_scaling,
            send_queue: SendQueue::new(),
            send_buffer: SendBuffer::new(config.sndbuf_bytes),
            recv_queue: RecvQueue::new(),
            receive_buffer: ReceiveBuffer::new(rcvbuf, now),
            ack_policy: AckPolicy::new(config.delayed_ack),
            out_of_order: OutOfOrder::new(),
            retransmits: RetransmitQueue::default(),
            rack: Rack::default(),
            tlp: Tlp::default(),
            delivery: DeliveryRate::default(),
            recovery: Recovery::default(),
            window: CongestionWindow::new(u32::from(DEFAULT_MSS)),
            congestion: Congestion::new(options.congestion_control, config),
            ecn: Ecn::active(config.ecn),
            rtt: RttEstimator::new(config.rto_min, config.rto_max),
            timers: Timers::default(),
            timeouts: 0,
            keepalive_probes: 0,
            usage: CwndUsage::default(),
            stalled_since: now,
            challenge: ChallengeLimit::default(),
            options,
            device: DeviceShare::default(),
            pacer: Pacer::default(),
            pacing_rate: Rate::UNLIMITED,
            turn: Turn::default(),
            wakers: Wakers::default(),
            write_space: WriteSpace::default(),
            chrono: Chrono::default(),
            stats: ConnectionStats::default(),
            queued: false,
            reset_pending: false,
        }
    }

    /// The number behind the last byte written: the FIN's.
    pub(super) fn data_end(&self) -> SeqNum {
        self.snd.iss + 1 + self.send_queue.end() as u32
    }

    /// The position in the stream of `seq`, which is not before snd_una.
    pub(super) fn position_of(&self, seq: SeqNum) -> u64 {
        let start = self.send_queue.start();
        start + u64::from(seq.distance_from(self.snd.iss + 1 + start as u32))
    }

    /// Bytes written and not yet sent.
    pub(super) fn notsent_bytes(&self) -> u32 {
        self.data_end().bytes_since(self.snd.nxt)
    }

    /// Whether our FIN has been acknowledged.
    pub(super) fn fin_acked(&self) -> bool {
        self.snd.closed && self.snd.una.after(self.data_end())
    }

    /// Whether the peer has closed and everything before has been read.
    pub(super) fn is_at_end(&self) -> bool {
        self.recv_queue.len() == 0
            && (self.rcv.shut || self.rcv.fin.is_some_and(|fin| self.rcv.nxt.after(fin)))
    }

    /// Closes the sending side: a FIN follows what has been written (RFC 9293 §3.10.4).
    pub(super) fn close(&mut self) {
        if self.snd.closed {
            return;
        }
        match self.state {
            State::Established => {
                self.snd.closed = true;
                self.state = State::FinWait1;
            }
            State::CloseWait => {
                self.snd.closed = true;
                self.state = State::LastAck;
            }
            // Nothing is acknowledged yet; the FIN follows once the handshake is done.
            State::SynSent | State::SynReceived => self.snd.closed = true,
            _ => {}
        }
    }

    /// Ends the connection at once; a reset tells the peer, if it knows of us.
    pub(super) fn abort(&mut self, failure: Failure) {
        if matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        // RFC 9293 §3.10.5: not in SYN-SENT, nor when the peer has closed everything.
        let tell = !matches!(self.state, State::SynSent);
        self.fail(failure);
        self.reset_pending = tell;
    }

    /// Ends the connection without a word.
    pub(super) fn fail(&mut self, failure: Failure) {
        if self.failure.is_none() {
            self.failure = Some(failure);
        }
        self.finish(State::Closed);
    }

    /// Ends the connection in good order.
    pub(super) fn finish(&mut self, state: State) {
        self.state = state;
        self.timers = Timers::default();
        self.send_queue.clear();
        self.retransmits.clear();
        self.tlp.clear();
        self.out_of_order.clear();
        self.snd.syn_pending = false;
        self.snd.probe = None;
        self.rcv.ack_now &= state == State::TimeWait;
        self.wakers.wake_all();
    }

    /// The keepalive timer starts anew, if the application wants one.
    pub(super) fn restart_keepalive(&mut self, now: Instant) {
        self.timers.keepalive = match self.options.keepalive {
            Some(keepalive) if self.state.is_synchronized() => Some(now + keepalive.time),
            _ => None,
        };
    }
}

/// The shift to ask for: enough for the largest buffer there may be, as long as the steps it makes
/// stay small against the buffer there is.
fn window_scale(rcvbuf_bytes: u32, max_rcvbuf_bytes: u32) -> WindowScale {
    let most = WindowScale::for_window(rcvbuf_bytes.max(max_rcvbuf_bytes));
    let fine = WindowScale::new((rcvbuf_bytes / 64).checked_ilog2().unwrap_or(0) as u8);
    let least = WindowScale::for_window(rcvbuf_bytes);
    WindowScale::new(most.shift().min(fine.shift()).max(least.shift()))
}
