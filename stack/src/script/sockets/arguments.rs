//! Arguments of system calls, evaluated.

use super::Attempting;
use crate::script::{
    Problem,
    ast::{Call, Expr},
    constants,
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

impl Attempting<'_> {
    pub(super) fn unsupported(&self, what: impl Into<String>) -> Problem {
        Problem::unsupported(self.line, what)
    }

    /// The argument at `index`.
    pub(super) fn argument(&self, index: usize) -> Result<&Expr, Problem> {
        let arguments = &self.call.arguments;
        arguments.get(index).ok_or_else(|| {
            let expected = format!("argument {} of {}", index + 1, self.call.name);
            Problem::syntax(
                self.line,
                expected,
                format!("{} arguments", arguments.len()),
            )
        })
    }

    /// The argument at `index` as a number.
    pub(super) fn integer(&self, index: usize) -> Result<i64, Problem> {
        self.value(self.argument(index)?)
    }

    /// The argument at `index`, in `[…]` or not, as a number.
    pub(super) fn boxed_integer(&self, index: usize) -> Result<i64, Problem> {
        match self.argument(index)? {
            Expr::List(list) => match &list[..] {
                [inner] => self.value(inner),
                _ => Err(self.not_a(self.argument(index)?, "one number")),
            },
            other => self.value(other),
        }
    }

    /// The argument at `index` as a length in bytes.
    pub(super) fn length(&self, index: usize) -> Result<usize, Problem> {
        self.checked_length(self.integer(index)?)
    }

    /// A length that memory can be had for.
    pub(super) fn checked_length(&self, length: i64) -> Result<usize, Problem> {
        const MAX_BYTES: i64 = 64 << 20;
        usize::try_from(length)
            .ok()
            .filter(|_| length <= MAX_BYTES)
            .ok_or_else(|| {
                let expected = format!("a length from 0 to {MAX_BYTES}");
                Problem::syntax(self.line, expected, format!("{length}"))
            })
    }

    fn not_a(&self, expr: &Expr, what: &str) -> Problem {
        Problem::syntax(self.line, what, expr_text(expr))
    }

    /// An expression's number.
    pub(super) fn value(&self, expr: &Expr) -> Result<i64, Problem> {
        match expr {
            Expr::Integer(value) => Ok(*value),
            Expr::Or(left, right) => Ok(self.value(left)? | self.value(right)?),
            Expr::Word(word) => {
                constants::value(word).ok_or_else(|| self.unsupported(format!("constant {word}")))
            }
            Expr::Apply(name, arguments) if name == "htons" => match &arguments[..] {
                [port] => self.value(port),
                _ => Err(self.not_a(expr, "htons of one number")),
            },
            _ => Err(self.not_a(expr, "a number")),
        }
    }

    /// The value of a record's entry; none: there is no such entry.
    pub(super) fn entry<'e>(entries: &'e [(String, Expr)], name: &str) -> Option<&'e Expr> {
        let entry = entries.iter().find(|(known, _)| known == name)?;
        Some(&entry.1)
    }

    /// An address: none of `...`.
    pub(super) fn address(&self, index: usize) -> Result<Option<SocketAddr>, Problem> {
        let expr = self.argument(index)?;
        let entries = match expr {
            Expr::Ellipsis => return Ok(None),
            Expr::Record(entries) => entries,
            _ => return Err(self.not_a(expr, "a socket address or '...'")),
        };
        if let Some(family) = Self::entry(entries, "sa_family")
            && self.value(family)? != constants::AF_INET
        {
            return Err(self.unsupported("IPv6"));
        }
        let port = Self::entry(entries, "sin_port");
        let port = port.map_or(Ok(0), |port| self.value(port))?;
        let port = u16::try_from(port)
            .map_err(|_| Problem::syntax(self.line, "a port", format!("{port}")))?;
        let ip = match Self::entry(entries, "sin_addr") {
            None => Ipv4Addr::UNSPECIFIED,
            Some(Expr::Apply(name, arguments)) if name == "inet_addr" => match &arguments[..] {
                [Expr::Text(text)] => text
                    .parse()
                    .map_err(|_| Problem::syntax(self.line, "an IPv4 address", text.as_str()))?,
                _ => return Err(self.not_a(expr, "an IPv4 address")),
            },
            Some(Expr::Word(word)) if word == "INADDR_ANY" => Ipv4Addr::UNSPECIFIED,
            Some(other) => return Err(self.not_a(other, "an IPv4 address")),
        };
        Ok(Some(SocketAddr::new(IpAddr::V4(ip), port)))
    }

    /// Compares a result that the call puts into an argument with what the script has there.
    pub(super) fn check_integer(&self, expected: &Expr, got: i64) -> Result<(), Problem> {
        let expr = match expected {
            Expr::Ellipsis => return Ok(()),
            Expr::List(list) => match &list[..] {
                [Expr::Ellipsis] => return Ok(()),
                [inner] => inner,
                _ => return Err(self.not_a(expected, "one number")),
            },
            other => other,
        };
        if self.value(expr)? == got {
            return Ok(());
        }
        let expected = format!("{} from {}", expr_text(expr), self.call.name);
        Err(Problem::unexpected(self.line, expected, format!("{got}")))
    }
}

/// A call as a script would write it.
pub(in crate::script) fn describe(call: &Call) -> String {
    let arguments: Vec<_> = call.arguments.iter().map(expr_text).collect();
    format!("{}({})", call.name, arguments.join(", "))
}

/// An expression as a script would write it.
pub(in crate::script) fn expr_text(expr: &Expr) -> String {
    let join = |list: &[Expr]| list.iter().map(expr_text).collect::<Vec<_>>().join(", ");
    match expr {
        Expr::Apply(name, arguments) => format!("{name}({})", join(arguments)),
        Expr::Ellipsis => "...".to_string(),
        Expr::Integer(value) => value.to_string(),
        Expr::List(list) => format!("[{}]", join(list)),
        Expr::Or(left, right) => format!("{}|{}", expr_text(left), expr_text(right)),
        Expr::Record(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|(name, value)| match name.as_str() {
                    "" => expr_text(value),
                    name => format!("{name}={}", expr_text(value)),
                })
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Expr::Text(text) => format!("\"{text}\""),
        Expr::Word(word) => word.clone(),
    }
}
