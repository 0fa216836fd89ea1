//! The Transmission Control Protocol (RFC 9293).
//!
//! [`Tcp`] holds all connections of a stack. Segments come in by [`Tcp::input`] and go out by
//! [`Tcp::poll`] only, so that a burst of input is answered once, and connections take turns on
//! the way out. One concept a file: the state machine's variables are in `connection`, what
//! segments do to them in `input` and `ack`, what is sent in `output`.

mod ack;
mod ack_policy;
mod api;
#[cfg(any(test, feature = "sim"))]
mod audit;
mod challenge;
mod chrono;
mod completion_time;
mod config;
mod congestion;
mod connection;
mod cwnd_usage;
mod delivery_rate;
mod demux;
mod device_share;
mod drain_rate;
mod ecn;
mod error;
mod expire;
mod fairness;
mod frto;
mod info;
mod input;
mod isn;
mod listener;
mod loss;
mod new_data;
mod out_of_order;
mod output;
mod pacing;
mod prr;
mod rack;
mod rate;
#[cfg(any(test, feature = "sim"))]
mod readiness;
mod receive;
mod receive_buffer;
mod recovery;
mod recv_queue;
mod reply;
mod retransmit;
mod retransmit_queue;
mod rtt;
mod sack;
mod send_buffer;
mod send_queue;
mod sent;
mod seq;
mod starvation;
mod stats;
mod table;
#[cfg(test)]
mod testing;
mod time_wait;
mod timers;
mod tlp;
mod tso;
mod undo;
mod write_space;

pub(crate) use api::ListenerId;
pub use config::{Config, EcnMode, Keepalive, Mistakes, Options};
#[cfg(any(test, feature = "sim"))]
pub(crate) use congestion::PeriodicLoss;
pub use congestion::{CongestionAlgorithm, SlowStartMode};
pub use connection::State;
pub(crate) use demux::ConnectionId;
pub use device_share::{DeviceInfo, TsqPolicy};
pub use error::{AcceptError, ConnectError, ListenError, ReadError, WriteError};
pub use info::{CaState, Info, InfoOptions};
pub use rate::Rate;
pub(crate) use recv_queue::Chunk;
pub use stats::Counters;

use crate::{
    device::{Completion, Page},
    ip::{IcmpError, IcmpErrorKind, IpSender, RxMeta, RxSlices},
    time::{Duration, Instant},
    wire::tcp::{Flags, Header},
};
use alloc::{collections::VecDeque, vec::Vec};
use connection::{Connection, Context, Failure, Start};
use core::{net::SocketAddr, task::Waker};
use demux::{MAX_CONNECTIONS, Tuple};
use device_share::DeviceQueue;
use input::{Payload, Verdict};
use isn::Secrets;
use listener::Listener;
use output::Transmit;
use reply::Replies;
use seq::SeqNum;
use table::Table;
use time_wait::{Closed, Disposition, TimeWait};
use timers::TimerQueue;

/// All TCP connections and listeners of a stack.
#[derive(Debug)]
pub struct Tcp<P> {
    /// The time of the last input or poll.
    now: Instant,
    config: Config,
    secrets: Secrets,
    table: Table<P>,
    time_wait: TimeWait,
    listeners: Vec<Option<Listener>>,
    timers: TimerQueue,
    /// Connections that may have something to send, in the order of their turns.
    ready: VecDeque<usize>,
    /// Whether the last poll left off before all had their turn.
    left_off: bool,
    replies: Replies,
    /// The device's transmit queue.
    queue: DeviceQueue,
    counters: Counters,
    /// Tasks that wait for the device to have pages again.
    page_waiters: Vec<Waker>,
    /// Whether pages have come free since they were last woken.
    pages_freed: bool,
    /// When they are woken anyway: pages may have come free where TCP does not see it.
    page_retry: Option<Instant>,
    /// When memory may be looked for again.
    prune_at: Option<Instant>,
}

/// How long a task waits for pages before it tries again unasked.
const PAGE_RETRY: Duration = Duration::from_millis(10);
/// Least time between two searches for memory to free, which look at all connections.
const PRUNE_INTERVAL: Duration = Duration::from_millis(100);
/// Flows that may find the device full, in one poll, before the others wait for the next: it is
/// full for them too.
const MAX_BUSY: usize = 8;
/// Bytes that one poll sends before it leaves off: what came meanwhile must be looked at, and the
/// device can begin with what it was given.
const OUTPUT_BUDGET_BYTES: u64 = 256 << 10;

impl<P: Page> Tcp<P> {
    /// Takes in a segment: `slices` start at the TCP header, its checksum is good.
    pub fn input(&mut self, now: Instant, meta: &RxMeta, mut slices: RxSlices<P>) {
        self.now = now;
        let parsed = slices.first().map(|first| Header::parse(first.bytes()));
        let Some(Ok((header, header_bytes))) = parsed else {
            self.counters.in_errs += 1;
            return;
        };
        if header.src_port == 0 || header.dst_port == 0 {
            self.counters.in_errs += 1;
            return;
        }
        slices[0].advance(header_bytes);
        let payload = Payload {
            bytes: slices.iter().map(|slice| slice.len() as u32).sum(),
            slices,
            segment_bytes: meta.segment_bytes,
            memory: meta.memory,
            ecn: meta.ecn,
        };
        self.counters.in_segs += payload.segments();
        let tuple = Tuple {
            local: meta.dst,
            remote: meta.src,
            local_port: header.dst_port,
            remote_port: header.src_port,
        };
        if let Some(index) = self.table.find(&tuple, &self.secrets) {
            self.input_to(now, index, &tuple, &header, payload);
            return;
        }
        let expires = now + self.config.time_wait;
        let disposition =
            self.time_wait
                .receive(&tuple, &header, payload.bytes, now, expires, &self.secrets);
        match disposition {
            Some(Disposition::Ignore) => {}
            Some(Disposition::Acknowledge(closed)) => {
                self.replies.acknowledge(&closed, now);
            }
            Some(Disposition::Accept { after }) => {
                self.counters.time_wait_recycled += 1;
                self.input_to_listener(now, &tuple, &header, payload.bytes, Some(after));
            }
            None => self.input_to_listener(now, &tuple, &header, payload.bytes, None),
        }
    }

    /// A segment for a connection.
    fn input_to(
        &mut self,
        now: Instant,
        index: usize,
        tuple: &Tuple,
        header: &Header,
        payload: Payload<P>,
    ) {
        let Some(connection) = self.table.at(index) else {
            return;
        };
        let was = connection.state;
        if was == State::SynReceived
            && let Some(listener) = connection.listener
            && !header.flags.intersects(Flags::RST | Flags::SYN)
            && !self
                .listener(listener)
                .is_some_and(|l| l.takes_established())
        {
            // The peer believes it is connected; the SYN and ACK will come again, and by then
            // there may be room.
            self.counters.listen_overflows += 1;
            return;
        }
        let Some(connection) = self.table.at(index) else {
            return;
        };
        let payload_bytes = payload.bytes;
        let mut ctx = Context {
            now,
            config: &self.config,
            counters: &mut self.counters,
        };
        let released_before = connection.send_queue.truesize();
        let verdict = connection.on_segment(&mut ctx, header, payload);
        if connection.send_queue.truesize() < released_before {
            self.pages_freed = true;
        }
        let (id, listener, state) = (connection.id, connection.listener, connection.state);
        if verdict == Verdict::Reset {
            self.replies.reset(tuple, header, payload_bytes);
        }
        if was == State::SynReceived
            && state.is_synchronized()
            && let Some(listener) = listener.and_then(|listener| self.listener(listener))
        {
            listener.establish(id);
        }
        self.settle(index);
    }

    fn listener(&mut self, index: usize) -> Option<&mut Listener> {
        self.listeners.get_mut(index)?.as_mut()
    }

    /// A segment for no connection: LISTEN and CLOSED (RFC 9293 §3.10.7.1, §3.10.7.2).
    fn input_to_listener(
        &mut self,
        now: Instant,
        tuple: &Tuple,
        header: &Header,
        payload_bytes: u32,
        after: Option<SeqNum>,
    ) {
        let index = self.listeners.iter().position(|listener| {
            listener
                .as_ref()
                .is_some_and(|listener| listener.takes(tuple.local, tuple.local_port))
        });
        let Some(index) = index else {
            self.replies.reset(tuple, header, payload_bytes);
            return;
        };
        if header.flags.contains(Flags::RST) {
            return;
        }
        if header.flags.contains(Flags::ACK) {
            self.replies.reset(tuple, header, payload_bytes);
            return;
        }
        if !header.flags.contains(Flags::SYN) {
            return;
        }
        self.make_way(index);
        let Some(listener) = self.listeners[index].as_mut() else {
            return;
        };
        let max = self.config.max_connections.min(MAX_CONNECTIONS);
        if !listener.takes_syn() || self.table.len() >= max {
            self.counters.listen_overflows += u64::from(!listener.takes_syn());
            self.counters.listen_drops += 1;
            return;
        }
        let options = listener.options.clone();
        let mut iss = self.secrets.initial_sequence(tuple, now);
        if let Some(after) = after
            && !iss.after(after)
        {
            iss = after + 65_537;
        }
        let timestamp_offset = self.secrets.timestamp_offset(tuple);
        let ctx = Context {
            now,
            config: &self.config,
            counters: &mut self.counters,
        };
        let id = self.table.insert(&self.secrets, |id| {
            let start = Start {
                id,
                tuple: *tuple,
                iss,
                timestamp_offset,
                options,
            };
            let mut connection = Connection::new(start, ctx.config, now);
            connection.state = State::SynReceived;
            connection.listener = Some(index);
            connection.held = false;
            connection.take_syn(&ctx, header);
            connection
        });
        if let Some(listener) = self.listener(index) {
            listener.begin(id);
        }
        self.settle(id.index());
    }

    /// When half-open connections fill a listener's backlog, the oldest goes if its peer has let
    /// a first SYN and ACK go unanswered (RFC 4987 §3.4): peers that never answer, as in a flood,
    /// then shut others out for a second or so, not for as long as the retries last.
    fn make_way(&mut self, listener: usize) {
        if let Some(id) = self.listener(listener).and_then(|l| l.in_the_way())
            && let Some(connection) = self.table.get(id)
            && connection.timeouts > 0
        {
            self.counters.attempt_fails += 1;
            self.counters.listen_drops += 1;
            connection.state = State::Closed;
            self.close(id.index());
        }
    }

    /// Takes in an ICMP error; true when it concerns a connection and the quoted sequence number
    /// is one in flight (RFC 5927 §4.1), so that the path MTU may be lowered on its word.
    pub fn icmp_error(&mut self, now: Instant, error: &IcmpError) -> bool {
        self.now = now;
        let &IcmpError {
            local,
            remote,
            local_port,
            remote_port,
            seq,
            kind,
        } = error;
        let tuple = Tuple {
            local,
            remote,
            local_port,
            remote_port,
        };
        let Some(index) = self.table.find(&tuple, &self.secrets) else {
            return false;
        };
        let Some(connection) = self.table.at(index) else {
            return false;
        };
        let seq = SeqNum(seq);
        if seq.before(connection.snd.una) || !seq.before(connection.snd.nxt) {
            return false;
        }
        match kind {
            IcmpErrorKind::PacketTooBig { mtu_bytes } => connection.on_packet_too_big(mtu_bytes),
            IcmpErrorKind::Refused | IcmpErrorKind::Prohibited
                if connection.state == State::SynSent =>
            {
                self.counters.attempt_fails += 1;
                connection.fail(Failure::Refused);
            }
            // Others are soft (RFC 5461): an established connection is not ended on the word of
            // whoever can send ICMP.
            IcmpErrorKind::Refused | IcmpErrorKind::Prohibited | IcmpErrorKind::Unreachable => {}
        }
        self.settle(index);
        true
    }

    /// Frees what it may while the device has no page to keep data in: all that arrived out of
    /// order, so that peers who never fill their gaps do not stand in the way of others.
    pub(crate) fn prune(&mut self, now: Instant) {
        if self.prune_at.is_some_and(|at| now < at) {
            return;
        }
        self.prune_at = Some(now + PRUNE_INTERVAL);
        for connection in self.table.iter_mut() {
            connection.prune(&mut self.counters);
        }
    }

    /// Runs timers and sends as far as the device takes.
    pub fn poll(&mut self, now: Instant, ip: &mut impl IpSender<P>) {
        self.now = now;
        self.queue.end_pass();
        self.time_wait.expire(now, &self.secrets);
        while let Some(index) = self.timers.pop_expired(now) {
            let Some(connection) = self.table.at(index) else {
                continue;
            };
            let mut ctx = Context {
                now,
                config: &self.config,
                counters: &mut self.counters,
            };
            connection.on_timer(&mut ctx);
            self.settle(index);
        }
        self.counters.out_rsts += self.replies.send(ip);
        self.transmit(now, ip);
        if self.pages_freed || self.page_retry.is_some_and(|at| at <= now) {
            self.pages_freed = false;
            self.page_retry = None;
            for waker in self.page_waiters.drain(..) {
                waker.wake();
            }
        }
    }

    /// Connections take turns until none has anything to send or the device is full.
    ///
    /// Those that find it full keep their turn, and their place at the head of the line. The
    /// others may still send what fits, once: what they send is small, or it would not fit.
    ///
    /// After [`OUTPUT_BUDGET_BYTES`] the rest is left to the next poll, which is due at once.
    fn transmit(&mut self, now: Instant, ip: &mut impl IpSender<P>) {
        let mut busy: heapless::Vec<usize, MAX_BUSY> = heapless::Vec::new();
        let mut turns_left = usize::MAX;
        let mut budget = OUTPUT_BUDGET_BYTES;
        self.left_off = false;
        while turns_left > 0
            && !self.left_off
            && let Some(index) = self.ready.pop_front()
        {
            turns_left -= 1;
            let Some(connection) = self.table.at(index) else {
                continue;
            };
            let mut ctx = Context {
                now,
                config: &self.config,
                counters: &mut self.counters,
            };
            let sent_before = connection.stats.bytes_sent;
            let outcome = connection.take_turn(&mut ctx, &mut self.queue, ip);
            budget = budget.saturating_sub(connection.stats.bytes_sent - sent_before);
            self.left_off = budget == 0 && busy.is_empty();
            match outcome {
                Transmit::Sent => self.ready.push_back(index),
                Transmit::Idle => {
                    connection.queued = false;
                    self.after_transmit(index);
                }
                Transmit::Busy => {
                    self.counters.device_busy += 1;
                    self.watch(index);
                    if busy.is_empty() {
                        turns_left = self.ready.len();
                    }
                    // It has room: the loop ends when it is full.
                    let _ = busy.push(index);
                    if busy.is_full() {
                        break;
                    }
                }
            }
        }
        for index in busy.into_iter().rev() {
            self.ready.push_front(index);
        }
        self.left_off &= !self.ready.is_empty();
    }

    /// Whether the last [`Tcp::poll`] left some of its work to the next, which is due at once.
    pub fn has_left_off(&self) -> bool {
        self.left_off
    }

    /// When [`Tcp::poll`] must be called at the latest, if nothing happens before.
    pub fn deadline(&self) -> Option<Instant> {
        let deadlines = [
            self.timers.next(),
            self.time_wait.deadline(),
            self.page_retry,
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Credits bytes that the device is done with, as of `now`. All that it is done with at one
    /// moment must be told before the next [`Tcp::poll`].
    pub fn completed(&mut self, now: Instant, completion: Completion) {
        self.pages_freed = true;
        let Some(id) = ConnectionId::from_owner(completion.owner) else {
            return;
        };
        self.queue.completed(now, completion);
        if let Some(connection) = self.table.get(id)
            && connection.device.completed(now, completion)
        {
            self.enqueue(id.index());
        }
    }

    /// Tells that the loop slept since the last [`Tcp::poll`].
    pub fn slept(&mut self) {
        self.queue.slept();
    }

    /// What is known of the device's transmit queue.
    pub fn device_info(&self) -> DeviceInfo {
        self.queue.info()
    }

    /// Whether [`Tcp::poll`] has something to do at once.
    pub fn wants_poll(&self) -> bool {
        !self.ready.is_empty()
            || !self.replies.is_empty()
            || (self.pages_freed && !self.page_waiters.is_empty())
    }

    /// Where a connection is from.
    pub(crate) fn local_addr(&self, id: ConnectionId) -> Option<SocketAddr> {
        let connection = self.table.peek(id)?;
        Some(SocketAddr::new(
            connection.tuple.local,
            connection.tuple.local_port,
        ))
    }

    /// Puts a connection in the queue for output.
    fn enqueue(&mut self, index: usize) {
        if let Some(connection) = self.table.at(index)
            && !connection.queued
        {
            connection.queued = true;
            self.ready.push_back(index);
        }
    }

    /// Makes sure that a connection's timers are looked at.
    fn watch(&mut self, index: usize) {
        if let Some(at) = self
            .table
            .at(index)
            .and_then(|connection| connection.timers.earliest())
        {
            self.timers.set_earlier(index, at);
        }
    }

    /// After a connection has changed: queues it for output, watches its timers, and lets go of it
    /// when it is over and nobody holds it.
    fn settle(&mut self, index: usize) {
        let Some(connection) = self.table.at(index) else {
            return;
        };
        if connection.wants_output() {
            self.enqueue(index);
        }
        self.after_transmit(index);
    }

    /// The same, when there is nothing to send.
    fn after_transmit(&mut self, index: usize) {
        let Some(connection) = self.table.at(index) else {
            return;
        };
        match connection.state {
            State::TimeWait => self.enter_time_wait(index),
            State::Closed if !connection.reset_pending => self.close(index),
            _ => self.watch(index),
        }
    }

    /// A connection closed by both sides leaves a trace that answers strays; the connection itself
    /// stays only as long as there is something to read.
    fn enter_time_wait(&mut self, index: usize) {
        let Some(connection) = self.table.at(index) else {
            return;
        };
        let (window, edge) = connection.window_to_tell();
        let closed = Closed {
            tuple: connection.tuple,
            snd_nxt: connection.snd.nxt,
            rcv_nxt: connection.rcv.nxt,
            window_field: window.0,
            rcv_wnd: edge.bytes_since(connection.rcv.nxt),
            timestamps: connection.timestamps.map(|own| (own.recent, own.offset)),
        };
        if connection.rcv.ack_now {
            connection.rcv.ack_now = false;
            self.replies.acknowledge(&closed, self.now);
        }
        connection.state = State::Closed;
        self.counters.time_waited += 1;
        let expires = self.now + self.config.time_wait;
        let max = self.config.max_tw_buckets;
        if self.time_wait.insert(closed, expires, max, &self.secrets) {
            self.counters.time_wait_overflow += 1;
        }
        self.close(index);
    }

    /// A connection is over: its name is free, and its slot too, unless somebody holds it.
    fn close(&mut self, index: usize) {
        let Some(connection) = self.table.at(index) else {
            return;
        };
        connection.device.yield_ring(&mut self.queue);
        let (id, listener, held) = (connection.id, connection.listener.take(), connection.held);
        self.timers.remove(index);
        if let Some(listener) = listener.and_then(|listener| self.listener(listener)) {
            listener.lost(id);
        }
        if held {
            self.table.unname(index, &self.secrets);
        } else {
            self.table.remove(index, &self.secrets);
        }
    }
}

#[cfg(test)]
mod tests;
