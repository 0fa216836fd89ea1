//! What a script says, parsed.

use crate::wire::tcp::Flags;
use alloc::{boxed::Box, string::String, vec::Vec};

/// A whole script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// Its `--name=value` lines.
    pub(super) options: Vec<ScriptOption>,
    /// The command before the first event.
    pub(super) init: Option<Command>,
    pub(super) events: Vec<Event>,
    /// The command behind the last event.
    pub(super) cleanup: Option<Command>,
}

/// A `--name=value` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptOption {
    pub(super) line: u32,
    pub(super) name: String,
    pub(super) value: Option<String>,
}

/// A line in backquotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) line: u32,
    pub(super) text: String,
}

/// Something that happens at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) line: u32,
    pub(super) time: EventTime,
    pub(super) action: Action,
}

/// When an event happens, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventTime {
    /// So long after the script's start.
    Absolute(u64),
    /// Between two times after the script's start.
    AbsoluteRange(u64, u64),
    /// Whenever it does.
    Any,
    /// So long after the event before.
    Relative(u64),
    /// Between two times after the event before.
    RelativeRange(u64, u64),
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The application calls.
    Call(Call),
    /// A `%{ … }%` block.
    Code(String),
    /// A command line.
    Command(String),
    /// An ICMP message, inbound.
    Icmp(IcmpSpec),
    /// A TCP segment.
    Segment(SegmentSpec),
}

/// Which way a packet goes, as the stack sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// `<`: handed to the stack.
    Inbound,
    /// `>`: expected of the stack.
    Outbound,
}

/// What a packet's ECN field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ecn {
    /// CE.
    Ce,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// One of the two ECT.
    Ect01,
    /// Not ECT.
    None,
}

/// A segment's sequence numbers as the script has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SeqSpec {
    pub(super) start: u32,
    pub(super) payload_bytes: u32,
}

/// A TCP segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentSpec {
    pub(super) direction: Direction,
    pub(super) ecn: Option<Ecn>,
    /// Source and destination port, where the script names them.
    pub(super) ports: Option<(u16, u16)>,
    pub(super) flags: Flags,
    pub(super) seq: SeqSpec,
    pub(super) ack: Option<u32>,
    pub(super) window: Option<u16>,
    pub(super) urgent: u16,
    /// None: `<...>`, whatever they are.
    pub(super) options: Option<Vec<OptionSpec>>,
}

/// A TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OptionSpec {
    EndOfList,
    Mss(u16),
    Nop,
    Sack(Vec<(u32, u32)>),
    SackPermitted,
    Timestamps { value: u32, echo: u32 },
    WindowScale(u8),
}

/// An ICMP message about a segment of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IcmpSpec {
    pub(super) kind: u8,
    pub(super) code: u8,
    pub(super) mtu: Option<u16>,
    /// The quoted segment.
    pub(super) quoted: SeqSpec,
}

/// A system call with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: String,
    /// When it returns, if it blocks: microseconds, in the same sense as the event's time.
    pub(super) end_us: Option<u64>,
    pub(super) arguments: Vec<Expr>,
    pub(super) result: Expr,
    /// The error's name.
    pub(super) errno: Option<String>,
}

/// An argument or result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expr {
    /// `name(…)`.
    Apply(String, Vec<Expr>),
    /// `...`
    Ellipsis,
    Integer(i64),
    /// `[…]`
    List(Vec<Expr>),
    /// Several `|`.
    Or(Box<Expr>, Box<Expr>),
    /// `{name = value, …}`; entries without a name have an empty one.
    Record(Vec<(String, Expr)>),
    Text(String),
    Word(String),
}
