//! Waiting for the packet that a script expects.

use super::{ANY_TIME, LiveSegment, Problem, Runner, script_time};
use crate::{
    script::{
        ast::{OptionSpec, SegmentSpec},
        compare,
    },
    time::Instant,
    wire::tcp::Flags,
};
use alloc::format;

impl Runner<'_> {
    /// Takes the next packet and compares it with `spec`. It must be sent within `window`, or at
    /// any time.
    pub(super) fn expect(
        &mut self,
        spec: &SegmentSpec,
        window: Option<(Instant, Instant)>,
    ) -> Result<(), Problem> {
        let latest = match window {
            Some((_, to)) => to + self.tolerance(),
            None => self.machine.now + ANY_TIME,
        };
        let Some(mut live) = self.next_sent(latest)? else {
            let wanted = expected(spec, window);
            let got = format!("none by {}", script_time(latest));
            return Err(self.unexpected(wanted, got));
        };
        self.check_time(spec, window, &live)?;
        let wanted = spec.seq.payload_bytes;
        let is_data = |live: &LiveSegment| !live.header.flags.contains(Flags::SYN);
        while live.payload_bytes > 0 && live.payload_bytes < wanted && is_data(&live) {
            // One packet of the script may be several on the wire.
            let Some(next) = self.next_sent(latest)? else {
                break;
            };
            if !live.is_followed_by(&next) || next.payload_bytes == 0 {
                self.sent.push_front(next);
                break;
            }
            self.check_time(spec, window, &next)?;
            live.join(&next);
        }
        if wanted > 0 && live.payload_bytes > wanted && is_data(&live) {
            // And one on the wire several of the script.
            let first = live.split_off(wanted);
            self.sent.push_front(live);
            live = first;
        }
        self.compare(spec, window, &live)
    }

    fn compare(
        &mut self,
        spec: &SegmentSpec,
        window: Option<(Instant, Instant)>,
        live: &LiveSegment,
    ) -> Result<(), Problem> {
        let Some(index) = self.flow_of(live) else {
            return Err(self.unexpected(expected(spec, window), self.describe(live)));
        };
        let flow = &mut self.machine.flows[index];
        if spec.flags.contains(Flags::SYN) && live.header.flags.contains(Flags::SYN) {
            flow.script_syn(spec.seq.start);
        }
        let script_value = spec
            .options
            .iter()
            .flatten()
            .find_map(|option| match option {
                OptionSpec::Timestamps { value, .. } => Some(*value),
                _ => None,
            });
        let timestamps = script_value.zip(live.header.options.timestamps);
        if let Some((script, wire)) = timestamps {
            flow.note_first_timestamp(script, wire.value);
        }
        match compare::segment(&self.machine.plan, flow, spec, live) {
            Ok(()) => {
                if let Some((script, wire)) = timestamps {
                    flow.note_timestamp(script, wire.value);
                }
                Ok(())
            }
            Err(field) => {
                let expected = format!("{} [{field}]", expected(spec, window));
                let at = script_time(live.at);
                let got = format!("> {} at {at}", self.describe(live));
                Err(self.unexpected(expected, got))
            }
        }
    }

    fn check_time(
        &self,
        spec: &SegmentSpec,
        window: Option<(Instant, Instant)>,
        live: &LiveSegment,
    ) -> Result<(), Problem> {
        let Some((from, to)) = window else {
            return Ok(());
        };
        if live.at + self.tolerance() >= from && live.at <= to + self.tolerance() {
            return Ok(());
        }
        let at = script_time(live.at);
        let got = format!("> {} at {at}", self.describe(live));
        Err(self.unexpected(expected(spec, window), got))
    }

    /// The next packet that the stack sends until `latest`.
    fn next_sent(&mut self, latest: Instant) -> Result<Option<LiveSegment>, Problem> {
        loop {
            if let Some(live) = self.sent.pop_front() {
                return Ok(Some(live));
            }
            match self.next_step().filter(|next| *next <= latest) {
                Some(next) => self.step_to(next)?,
                None => return Ok(None),
            }
        }
    }

    fn unexpected(
        &self,
        expected: impl Into<alloc::string::String>,
        got: impl Into<alloc::string::String>,
    ) -> Problem {
        Problem::unexpected(self.line, expected, got)
    }
}

/// The packet expected, with its time.
fn expected(spec: &SegmentSpec, window: Option<(Instant, Instant)>) -> alloc::string::String {
    let text = compare::describe_spec(spec);
    match window {
        None => format!("> {text}"),
        Some((from, to)) if from == to => format!("> {text} at {}", script_time(from)),
        Some((from, to)) => {
            let (from, to) = (script_time(from), script_time(to));
            format!("> {text} from {from} to {to}")
        }
    }
}
