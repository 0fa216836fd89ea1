//! The grammar of packets.

use super::Parser;
use crate::{
    script::{
        Problem,
        ast::{Action, Direction, Ecn, IcmpSpec, OptionSpec, SegmentSpec, SeqSpec},
        lexer::Token,
    },
    wire::{icmpv4, tcp::Flags},
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// Type names of ICMP messages.
const ICMP_TYPES: [(&str, u8); 8] = [
    ("echo_reply", icmpv4::ECHO_REPLY),
    ("echo_request", icmpv4::ECHO),
    ("parameter_problem", icmpv4::PARAMETER_PROBLEM),
    ("redirect", 5),
    ("source_quench", 4),
    ("time_exceeded", icmpv4::TIME_EXCEEDED),
    ("timestamp_request", 13),
    ("unreachable", icmpv4::UNREACHABLE),
];

/// Code names of "destination unreachable", in the order of their numbers.
const UNREACHABLE_CODES: [&str; 16] = [
    "net_unreachable",
    "host_unreachable",
    "protocol_unreachable",
    "port_unreachable",
    "frag_needed",
    "source_route_failed",
    "net_unknown",
    "host_unknown",
    "source_host_isolated",
    "net_prohibited",
    "host_prohibited",
    "net_unreachable_for_tos",
    "host_unreachable_for_tos",
    "packet_filtered",
    "precedence_violation",
    "precedence_cutoff",
];

impl Parser {
    /// A packet, behind its direction.
    pub(super) fn packet(&mut self, direction: Direction) -> Result<Action, Problem> {
        for encapsulation in ["ipv4", "ipv6", "gre", "GREv0", "mpls"] {
            if self.is_word(encapsulation) {
                return Err(self.unsupported(format!("encapsulation '{encapsulation}'")));
            }
        }
        let ecn = self.ip_info()?;
        if self.is_word("udp") {
            return Err(self.unsupported("UDP packets"));
        }
        if self.accept_word("icmp") {
            if direction == Direction::Outbound {
                return Err(self.unsupported("outbound ICMP"));
            }
            return Ok(Action::Icmp(self.icmp()?));
        }
        Ok(Action::Segment(self.segment(direction, ecn)?))
    }

    /// `[ect0]` and the like.
    fn ip_info(&mut self) -> Result<Option<Ecn>, Problem> {
        let close = if self.accept('[') {
            ']'
        } else if self.accept('(') {
            ')'
        } else {
            return Ok(None);
        };
        let ecn = match self.peek() {
            Token::Word(word) => match word.as_str() {
                "noecn" => Ecn::None,
                "ect0" => Ecn::Ect0,
                "ect1" => Ecn::Ect1,
                "ect01" => Ecn::Ect01,
                "ce" => Ecn::Ce,
                other @ ("tos" | "flowlabel" | "ttl") => {
                    return Err(self.unsupported(format!("IP field '{other}'")));
                }
                _ => return Err(self.expected("noecn, ect0, ect1, ect01 or ce")),
            },
            _ => return Err(self.expected("noecn, ect0, ect1, ect01 or ce")),
        };
        self.advance();
        self.expect(close)?;
        Ok(Some(ecn))
    }

    fn segment(&mut self, direction: Direction, ecn: Option<Ecn>) -> Result<SegmentSpec, Problem> {
        let line = self.line();
        if ecn == Some(Ecn::Ect01) && direction == Direction::Inbound {
            return Err(Problem::syntax(
                line,
                "one codepoint in an inbound packet".to_string(),
                "'ect01'".to_string(),
            ));
        }
        let ports = self.ports()?;
        let flags = self.flags()?;
        let seq = self.seq()?;
        let ack = if self.accept_word("ack") {
            Some(self.integer("an acknowledgment number of 32 bits")?)
        } else {
            None
        };
        let window = if self.accept_word("win") {
            Some(self.integer("a window of 16 bits")?)
        } else {
            None
        };
        let urgent = if self.accept_word("urg") {
            self.integer("an urgent pointer of 16 bits")?
        } else {
            0
        };
        let options = self.options()?;
        if options.is_none() && direction == Direction::Inbound {
            return Err(Problem::syntax(
                line,
                "the options of an inbound packet".to_string(),
                "'<...>'".to_string(),
            ));
        }
        if *self.peek() == Token::Punct('{') {
            return Err(self.unsupported("fuzzed packets"));
        }
        Ok(SegmentSpec {
            direction,
            ecn,
            ports,
            flags,
            seq,
            ack,
            window,
            urgent,
            options,
        })
    }

    /// `source > destination`.
    fn ports(&mut self) -> Result<Option<(u16, u16)>, Problem> {
        if !matches!(self.peek(), Token::Integer(_)) {
            return Ok(None);
        }
        let from = self.integer("a port")?;
        self.expect('>')?;
        Ok(Some((from, self.integer("a port")?)))
    }

    /// `SEW.`, `.`, `-` and the like.
    fn flags(&mut self) -> Result<Flags, Problem> {
        if self.accept('-') {
            return Ok(Flags::empty());
        }
        let mut flags = Flags::empty();
        let letters = match self.peek() {
            Token::Word(word) => word.clone(),
            Token::Punct('.') => String::new(),
            Token::Decimal(_) => return Err(self.unsupported("AccECN")),
            _ => return Err(self.expected("TCP flags")),
        };
        for letter in letters.chars() {
            flags |= match letter {
                'F' => Flags::FIN,
                'S' => Flags::SYN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                'U' => Flags::URG,
                'E' => Flags::ECE,
                'W' | 'C' => Flags::CWR,
                'A' => return Err(self.unsupported("AccECN")),
                _ => return Err(self.expected("TCP flags out of F, S, R, P, U, E, W and '.'")),
            };
        }
        if !letters.is_empty() {
            self.advance();
        }
        if let Token::Decimal(_) = self.peek() {
            return Err(self.unsupported("AccECN"));
        }
        if self.accept('.') {
            flags |= Flags::ACK;
        }
        Ok(flags)
    }

    /// `start:end(length)`.
    fn seq(&mut self) -> Result<SeqSpec, Problem> {
        let line = self.line();
        let start: u32 = self.integer("a sequence number of 32 bits")?;
        self.expect(':')?;
        let end: u32 = self.integer("a sequence number of 32 bits")?;
        self.expect('(')?;
        let payload_bytes: u32 = self.integer("a length")?;
        self.expect(')')?;
        let is_short = u16::try_from(payload_bytes).is_ok();
        if !is_short || start.wrapping_add(payload_bytes) != end {
            return Err(Problem::syntax(
                line,
                "start:end(length) that agree, at most 65535 long".to_string(),
                format!("{start}:{end}({payload_bytes})"),
            ));
        }
        Ok(SeqSpec {
            start,
            payload_bytes,
        })
    }

    /// `<option, …>`, `<...>`, or nothing.
    fn options(&mut self) -> Result<Option<Vec<OptionSpec>>, Problem> {
        let mut options = Vec::new();
        if *self.peek() != Token::Punct('<') {
            return Ok(Some(options));
        }
        self.advance();
        if *self.peek() == Token::Ellipsis {
            self.advance();
            self.expect('>')?;
            return Ok(None);
        }
        let line = self.line();
        let mut bytes = 0;
        loop {
            let option = self.tcp_option()?;
            bytes += match &option {
                OptionSpec::EndOfList | OptionSpec::Nop => 1,
                OptionSpec::Mss(_) => 4,
                OptionSpec::Sack(blocks) => 2 + 8 * blocks.len(),
                OptionSpec::SackPermitted => 2,
                OptionSpec::Timestamps { .. } => 10,
                OptionSpec::WindowScale(_) => 3,
            };
            options.push(option);
            if !self.accept(',') {
                break;
            }
        }
        self.expect('>')?;
        if bytes > 40 {
            return Err(Problem::syntax(
                line,
                "at most 40 bytes of options".to_string(),
                bytes.to_string(),
            ));
        }
        Ok(Some(options))
    }

    fn tcp_option(&mut self) -> Result<OptionSpec, Problem> {
        let Token::Word(name) = self.peek() else {
            return Err(self.expected("a TCP option"));
        };
        let name = name.clone();
        match name.as_str() {
            "md5" => return Err(self.unsupported("TCP option md5")),
            "FO" | "FOEXP" => return Err(self.unsupported("TCP Fast Open")),
            "ECN" => return Err(self.unsupported("AccECN")),
            "add_address" | "dss" => return Err(self.unsupported("MPTCP")),
            _ if name.starts_with("mp_") => return Err(self.unsupported("MPTCP")),
            _ => {}
        }
        let line = self.line();
        self.advance();
        Ok(match name.as_str() {
            "nop" => OptionSpec::Nop,
            "eol" => OptionSpec::EndOfList,
            "mss" => OptionSpec::Mss(self.integer("a segment size of 16 bits")?),
            "wscale" => OptionSpec::WindowScale(self.integer("a shift of 8 bits")?),
            "sackOK" => OptionSpec::SackPermitted,
            "sack" => {
                let mut blocks = Vec::new();
                while matches!(self.peek(), Token::Integer(_)) {
                    let left = self.integer("a sequence number of 32 bits")?;
                    self.expect(':')?;
                    blocks.push((left, self.integer("a sequence number of 32 bits")?));
                }
                if blocks.is_empty() {
                    return Err(self.expected("a SACK block"));
                }
                OptionSpec::Sack(blocks)
            }
            "TS" => {
                if !self.accept_word("val") {
                    return Err(self.expected("'val'"));
                }
                let value = self.integer("a timestamp of 32 bits")?;
                if !self.accept_word("ecr") {
                    return Err(self.expected("'ecr'"));
                }
                let echo = self.integer("a timestamp of 32 bits")?;
                OptionSpec::Timestamps { value, echo }
            }
            _ => {
                let expected = "mss, sackOK, sack, TS, nop, wscale or eol";
                return Err(Problem::syntax(line, expected, format!("'{name}'")));
            }
        })
    }

    /// An ICMP message, behind `icmp`.
    fn icmp(&mut self) -> Result<IcmpSpec, Problem> {
        let Token::Word(name) = self.peek() else {
            return Err(self.expected("an ICMP type"));
        };
        let named = ICMP_TYPES.iter().find(|(known, _)| known == name);
        let number = name.strip_prefix("type_").and_then(|n| n.parse().ok());
        let Some(kind) = named.map(|(_, kind)| *kind).or(number) else {
            return Err(self.expected("an ICMP type"));
        };
        self.advance();
        let mut code = 0;
        if let Token::Word(name) = self.peek()
            && name != "mtu"
            && name != "id"
        {
            let named = UNREACHABLE_CODES.iter().position(|known| known == name);
            let number = name.strip_prefix("code_").and_then(|n| n.parse().ok());
            let Some(known) = named.map(|index| index as u8).or(number) else {
                return Err(self.expected("an ICMP code"));
            };
            code = known;
            self.advance();
        }
        let mtu = if self.accept_word("mtu") {
            Some(self.integer("an MTU of 16 bits")?)
        } else {
            None
        };
        if self.is_word("id") {
            return Err(self.unsupported("ICMP echo"));
        }
        let mut quoted = SeqSpec::default();
        if self.accept('[') {
            if self.is_word("udp") || self.is_word("raw") {
                return Err(self.unsupported("ICMP about other protocols than TCP"));
            }
            quoted = self.seq()?;
            self.expect(']')?;
        }
        Ok(IcmpSpec {
            kind,
            code,
            mtu,
            quoted,
        })
    }
}
