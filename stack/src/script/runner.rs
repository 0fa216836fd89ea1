//! Runs a script's events against the stack, in virtual time.

mod expect;

use super::{
    Problem,
    ast::{Action, Call, Direction, Event, EventTime, Expr, IcmpSpec, Script, SegmentSpec},
    code, command, compare,
    device::Wire,
    errno::Errno,
    frames, live,
    live::{LiveSegment, Sent},
    options::{Flavor, Plan, Settings},
    sockets::{Attempt, Current, Machine, Progress, Sockets, describe},
    tcp_info,
};
use crate::{
    stack::{Config, Stack},
    sysctl,
    time::{Duration, Instant},
    wire::tcp::Flags,
};
use alloc::{
    collections::VecDeque,
    format,
    string::{String, ToString},
};

/// When the script begins, on the stack's clock.
const START: Instant = Instant::from_micros(10_000_000);
/// Most times that the stack is polled in one script: more means that it would never end.
const MAX_STEPS: u32 = 100_000;
/// How long a packet is waited for whose time may be any.
const ANY_TIME: Duration = Duration::from_hours(3);

/// A script being run.
pub(super) struct Runner<'a> {
    script: &'a Script,
    machine: Machine,
    wire: Wire,
    sockets: Sockets,
    /// What the stack sent and the script has not yet looked at.
    sent: VecDeque<LiveSegment>,
    /// When the stack wants to be polled next.
    deadline: Option<Instant>,
    blocked: Option<Blocked<'a>>,
    /// The time of the event before, if that was an inbound packet.
    last_inbound_us: Option<u64>,
    /// The line of the event that runs.
    line: u32,
    steps: u32,
    trace: &'a mut dyn FnMut(&str),
}

/// A call that has not returned.
#[derive(Debug)]
struct Blocked<'a> {
    line: u32,
    call: &'a Call,
    end: Instant,
    progress: Progress,
}

impl<'a> Runner<'a> {
    /// Sets the stack up for a script.
    pub(super) fn new(
        script: &'a Script,
        settings: &Settings,
        trace: &'a mut dyn FnMut(&str),
    ) -> Result<Self, Problem> {
        let plan = Plan::new(settings, &script.options)?;
        let (wire, device) = Wire::new(&plan);
        let config = Config {
            address: plan.local,
            prefix: plan.prefix,
            gateway: Some(plan.gateway),
            secret: *b"a script's stack",
        };
        let stack = Stack::new(device, &config).map_err(|error| {
            let got = format!("{} with gateway {}", plan.local, plan.gateway);
            Problem::syntax(1, format!("addresses that a stack can have ({error})"), got)
        })?;
        let machine = Machine {
            plan,
            stack,
            now: START,
            flows: alloc::vec::Vec::new(),
            current: Current::Nothing,
        };
        let mut runner = Self {
            script,
            machine,
            wire,
            sockets: Sockets::default(),
            sent: VecDeque::new(),
            deadline: None,
            blocked: None,
            last_inbound_us: None,
            line: 1,
            steps: 0,
            trace,
        };
        // As where the scripts come from: Linux paces no CUBIC by itself.
        runner.machine.tcp().config_mut().pacing = false;
        if plan.flavor == Flavor::FreeBsd {
            let config = runner.machine.tcp().config_mut();
            for (name, value) in [
                ("net.ipv4.tcp_rmem", "1 65536 2097152"),
                ("net.ipv4.tcp_wmem", "1 32768 2097152"),
                ("net.ipv4.tcp_pacing", "0"),
            ] {
                // All are settings there are, with values they can have.
                let _ = sysctl::write(config, name, value);
            }
        }
        runner.settle()?;
        Ok(runner)
    }

    /// Runs all events. The command behind the last event would undo settings, which end with the
    /// stack.
    pub(super) fn run(mut self) -> Result<(), Problem> {
        if let Some(init) = &self.script.init {
            self.line = init.line;
            self.command(&init.text)?;
        }
        for event in &self.script.events {
            self.line = event.line;
            self.event(event)?;
        }
        if let Some(blocked) = &self.blocked {
            let latest = blocked.end + self.tolerance();
            self.advance_to(latest)?;
            self.check_not_blocked()?;
        }
        if self.machine.plan.flavor == Flavor::Own
            && let Some(live) = self.sent.front()
        {
            let got = format!("{} at {}", self.describe(live), script_time(live.at));
            return Err(Problem::unexpected(
                self.line,
                "no packet that the script does not look at",
                got,
            ));
        }
        Ok(())
    }

    fn event(&mut self, event: &'a Event) -> Result<(), Problem> {
        let is_inbound = match &event.action {
            Action::Icmp(_) => true,
            Action::Segment(spec) => spec.direction == Direction::Inbound,
            _ => false,
        };
        // Inbound packets one after the other keep their distances whatever the stack does.
        let base_us = match self.last_inbound_us {
            Some(us) if is_inbound => us,
            _ => us_since(START, self.machine.now),
        };
        let (from_us, to_us) = match event.time {
            EventTime::Absolute(us) => (us, us),
            EventTime::AbsoluteRange(from, to) => (from, to),
            EventTime::Any => (0, 0),
            EventTime::Relative(us) => (base_us + us, base_us + us),
            EventTime::RelativeRange(from, to) => (base_us + from, base_us + to),
        };
        let is_relative = matches!(event.time, EventTime::Relative(_));
        self.last_inbound_us = is_inbound.then_some(from_us);
        if let Action::Segment(spec) = &event.action
            && spec.direction == Direction::Outbound
        {
            let window = match event.time {
                EventTime::Any => None,
                _ => Some((after_start(from_us), after_start(to_us))),
            };
            return self.expect(spec, window);
        }
        self.advance_to(after_start(from_us))?;
        if self.machine.now > after_start(from_us) + self.tolerance() {
            return Err(Problem::unexpected(
                event.line,
                "times in order",
                format!(
                    "an event in the past, before {}",
                    script_time(self.machine.now)
                ),
            ));
        }
        match &event.action {
            Action::Call(call) => {
                let end = call.end_us.map(|us| {
                    let base = if is_relative { base_us } else { 0 };
                    after_start(base + us)
                });
                self.call(call, end)
            }
            Action::Code(text) => self.code(text),
            Action::Command(text) => self.command(text),
            Action::Icmp(spec) => self.icmp(spec),
            Action::Segment(spec) => self.inject(spec),
        }
    }

    fn tolerance(&self) -> Duration {
        Duration::from_micros(self.machine.plan.tolerance_us)
    }

    /// Lets time pass until `target`; the stack runs when it wants to.
    fn advance_to(&mut self, target: Instant) -> Result<(), Problem> {
        while let Some(next) = self.next_step().filter(|next| *next <= target) {
            self.step_to(next)?;
        }
        self.machine.now = self.machine.now.max(target);
        Ok(())
    }

    /// When something happens next.
    fn next_step(&self) -> Option<Instant> {
        let now = self.machine.now;
        let blocked_end = self.blocked.as_ref().map(|blocked| blocked.end);
        [
            self.deadline,
            self.wire.next_completion(),
            blocked_end.filter(|end| *end > now),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn step_to(&mut self, next: Instant) -> Result<(), Problem> {
        self.machine.now = self.machine.now.max(next);
        self.settle()
    }

    /// Lets the stack and a call that waits do all there is to do now.
    fn settle(&mut self) -> Result<(), Problem> {
        loop {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                let at = script_time(self.machine.now);
                return Err(Problem::unexpected(
                    self.line,
                    "a script that ends",
                    format!("{MAX_STEPS} steps of the stack by {at}"),
                ));
            }
            let now = self.machine.now;
            let polled = self.machine.stack.poll(now);
            self.deadline = polled.deadline;
            self.capture()?;
            self.sockets.watch(&mut self.machine);
            let more = polled.more || self.wire.is_due(now) || self.machine.stack.poll_wanted();
            if !more && !self.try_blocked()? {
                return Ok(());
            }
        }
    }

    /// Tries a call again that waits; whether that got on.
    fn try_blocked(&mut self) -> Result<bool, Problem> {
        let Some(mut blocked) = self.blocked.take() else {
            return Ok(false);
        };
        let before = blocked.progress;
        let attempt = self.sockets.attempt(
            &mut self.machine,
            blocked.line,
            blocked.call,
            &mut blocked.progress,
        )?;
        match attempt {
            Attempt::Blocks => {
                let got_on = blocked.progress.differs(&before);
                self.blocked = Some(blocked);
                Ok(got_on)
            }
            Attempt::Returned(value, errno) => {
                let Blocked {
                    line, call, end, ..
                } = blocked;
                self.check_return(line, call, end)?;
                check_result(line, call, value, errno)?;
                Ok(true)
            }
        }
    }

    /// A call returns now, and should at `end`.
    fn check_return(&self, line: u32, call: &Call, end: Instant) -> Result<(), Problem> {
        let now = self.machine.now;
        if now + self.tolerance() >= end && now <= end + self.tolerance() {
            return Ok(());
        }
        let expected = format!("{} to return at {}", call.name, script_time(end));
        let got = format!("its return at {}", script_time(now));
        Err(Problem::unexpected(line, expected, got))
    }

    fn check_not_blocked(&self) -> Result<(), Problem> {
        let Some(blocked) = &self.blocked else {
            return Ok(());
        };
        let end = script_time(blocked.end);
        let expected = format!("{} to return at {end}", describe(blocked.call));
        let now = script_time(self.machine.now);
        let got = format!("none by {now}");
        Err(Problem::unexpected(blocked.line, expected, got))
    }

    fn call(&mut self, call: &'a Call, end: Option<Instant>) -> Result<(), Problem> {
        // The stack hears of the time when it is polled; the call must find it right.
        self.settle()?;
        self.check_not_blocked()?;
        let line = self.line;
        let mut progress = Progress::new(self.machine.now);
        let attempt = self
            .sockets
            .attempt(&mut self.machine, line, call, &mut progress)?;
        let now = script_time(self.machine.now);
        (self.trace)(&format!("{now} {} {attempt:?}", describe(call)));
        match (attempt, end) {
            (Attempt::Blocks, None) => {
                let expected = format!("{} to return at once", describe(call));
                return Err(Problem::unexpected(line, expected, "a call that waits"));
            }
            (Attempt::Blocks, Some(end)) => {
                self.blocked = Some(Blocked {
                    line,
                    call,
                    end,
                    progress,
                });
            }
            (Attempt::Returned(value, errno), end) => {
                if let Some(end) = end {
                    self.check_return(line, call, end)?;
                }
                check_result(line, call, value, errno)?;
            }
        }
        self.settle()
    }

    fn command(&mut self, text: &str) -> Result<(), Problem> {
        let (line, flavor) = (self.line, self.machine.plan.flavor);
        command::run(line, text, flavor, self.machine.tcp().config_mut())
    }

    fn code(&mut self, text: &str) -> Result<(), Problem> {
        let info = self.sockets.latest_info(&self.machine);
        let stack = &self.machine.stack;
        let names = |name: &str| {
            let field = || tcp_info::field(info.as_ref()?, name);
            let counter = || {
                let (_, value) = stack.nstat().find(|(known, _)| *known == name)?;
                i64::try_from(value).ok()
            };
            tcp_info::constant(name).or_else(field).or_else(counter)
        };
        code::run(self.line, text, &names)
    }

    /// The flow of an inbound segment; one is begun where there is none.
    fn inbound_flow(&mut self, ports: Option<(u16, u16)>, is_syn: bool) -> usize {
        let machine = &mut self.machine;
        if let Some((peer_port, local_port)) = ports {
            let known = machine
                .flows
                .iter()
                .rposition(|flow| (flow.peer_port, flow.local_port) == (peer_port, local_port));
            let index = known.unwrap_or_else(|| {
                let index = machine.add_flow(local_port);
                machine.flows[index].peer_port = peer_port;
                index
            });
            machine.current = Current::Flow(index);
            return index;
        }
        match machine.current {
            Current::Flow(index) => index,
            Current::Listening(port) => {
                let index = machine.add_flow(port);
                if is_syn {
                    machine.current = Current::Flow(index);
                }
                index
            }
            Current::Nothing => {
                let index = machine.add_flow(machine.plan.bind_port);
                machine.current = Current::Flow(index);
                index
            }
        }
    }

    fn inject(&mut self, spec: &SegmentSpec) -> Result<(), Problem> {
        let is_syn = spec.flags.contains(Flags::SYN);
        let begins = is_syn && !spec.flags.contains(Flags::ACK);
        let index = self.inbound_flow(spec.ports, begins);
        let flow = &mut self.machine.flows[index];
        if is_syn {
            flow.peer_syn(spec.seq.start);
        }
        let frame = frames::segment(&self.machine.plan, flow, spec);
        let now = script_time(self.machine.now);
        (self.trace)(&format!("{now} < {}", compare::describe_spec(spec)));
        self.wire.inject(frame);
        self.settle()
    }

    fn icmp(&mut self, spec: &IcmpSpec) -> Result<(), Problem> {
        let index = self.inbound_flow(None, false);
        let frame = frames::icmp(&self.machine.plan, &self.machine.flows[index], spec);
        let now = script_time(self.machine.now);
        (self.trace)(&format!("{now} < icmp {} {}", spec.kind, spec.code));
        self.wire.inject(frame);
        self.settle()
    }

    /// Takes in what the stack has sent.
    fn capture(&mut self) -> Result<(), Problem> {
        while let Some(frame) = self.wire.take() {
            let parsed = live::parse(&self.machine.plan, &frame);
            let odd = |got: String| {
                Problem::unexpected(self.line, "well-formed packets of known connections", got)
            };
            let (segment, payload_at) = match parsed.map_err(odd)? {
                (Sent::Segment(segment), payload_at) => (segment, payload_at),
                (Sent::Other(text), _) => {
                    let at = script_time(frame.at);
                    (self.trace)(&format!("{at} > {text}"));
                    continue;
                }
            };
            let Some(index) = self.flow_of(&segment) else {
                let header = &segment.header;
                let (from, to) = (header.src_port, header.dst_port);
                return Err(odd(format!("one from port {from} to {to}")));
            };
            let header = &segment.header;
            let flow = &mut self.machine.flows[index];
            if header.flags.contains(Flags::SYN) {
                flow.learn_local_isn(header.seq);
                if header.flags.contains(Flags::ACK) {
                    flow.peer_syn_taken(header.ack.wrapping_sub(1));
                }
            } else if let Some(offset) =
                live::wrong_byte(flow, header.seq, &frame.bytes[payload_at..])
            {
                let expected = format!("byte {offset} of the stream as it was written");
                return Err(Problem::unexpected(self.line, expected, "another"));
            }
            let at = script_time(segment.at);
            let text = self.describe(&segment);
            (self.trace)(&format!("{at} > {text}"));
            self.sent.push_back(segment);
        }
        Ok(())
    }

    fn flow_of(&self, segment: &LiveSegment) -> Option<usize> {
        let ports = (segment.header.src_port, segment.header.dst_port);
        self.machine
            .flows
            .iter()
            .rposition(|flow| (flow.local_port, flow.peer_port) == ports)
    }

    fn describe(&self, segment: &LiveSegment) -> String {
        match self.flow_of(segment) {
            Some(index) => compare::describe(&self.machine.flows[index], segment),
            None => "a packet of no connection".to_string(),
        }
    }
}

/// A time as the script counts it.
fn script_time(at: Instant) -> String {
    Instant::from_micros(us_since(START, at)).to_string()
}

/// The time so many microseconds after the script's start.
fn after_start(us: u64) -> Instant {
    START + Duration::from_micros(us)
}

fn us_since(start: Instant, at: Instant) -> u64 {
    at.as_micros().saturating_sub(start.as_micros())
}

/// Compares what a call returned with what the script says.
fn check_result(line: u32, call: &Call, value: i64, errno: Option<Errno>) -> Result<(), Problem> {
    let expected = match &call.result {
        Expr::Ellipsis => return Ok(()),
        Expr::Integer(expected) => *expected,
        Expr::Word(word) => super::constants::value(word)
            .ok_or_else(|| Problem::unsupported(line, format!("constant {word}")))?,
        other => {
            let got = super::sockets::expr_text(other);
            return Err(Problem::syntax(line, "a number as result", got));
        }
    };
    let same_error = match (&call.errno, errno) {
        (None, None) => true,
        (Some(expected), Some(errno)) => Errno::number_of(expected) == Some(errno.number),
        _ => false,
    };
    if expected == value && same_error {
        return Ok(());
    }
    let name = call.errno.as_deref().unwrap_or("");
    let expected = format!("{} = {expected} {name}", describe(call));
    let name = errno.map_or("", |errno| errno.name);
    let got = format!("{value} {name}");
    Err(Problem::unexpected(line, expected.trim(), got.trim()))
}
