//! A script's text cut into tokens.

use super::Problem;
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

/// Most characters of a script: what is more is no test.
const MAX_SCRIPT_BYTES: usize = 4 << 20;
/// Latest time a script can name: thirty years.
const MAX_TIME_US: u64 = 1_000_000_000 * 1_000_000;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// What stands in backquotes.
    Backquoted(String),
    /// What stands between `%{` and `}%`.
    Code(String),
    /// A number with a point, in millionths.
    Decimal(u64),
    /// `...`
    Ellipsis,
    /// The end of the script.
    End,
    Integer(i64),
    /// An IPv4 address.
    Ipv4(String),
    /// The name of a `--name` option.
    Option(String),
    /// Any other character.
    Punct(char),
    /// What stands in double quotes.
    Text(String),
    Word(String),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backquoted(_) => f.write_str("a command"),
            Self::Code(_) => f.write_str("a code block"),
            Self::Decimal(us) => write!(f, "'{}.{:06}'", us / 1_000_000, us % 1_000_000),
            Self::Ellipsis => f.write_str("'...'"),
            Self::End => f.write_str("the end of the script"),
            Self::Integer(value) => write!(f, "'{value}'"),
            Self::Ipv4(text) | Self::Word(text) => write!(f, "'{text}'"),
            Self::Option(name) => write!(f, "'--{name}'"),
            Self::Punct(char) => write!(f, "'{char}'"),
            Self::Text(text) => write!(f, "\"{text}\""),
        }
    }
}

/// The tokens of a script with their lines, an [`Token::End`] last.
pub(super) fn tokens(text: &str) -> Result<Vec<(u32, Token)>, Problem> {
    if text.len() > MAX_SCRIPT_BYTES {
        return Err(Problem::syntax(
            1,
            format!("at most {MAX_SCRIPT_BYTES} bytes"),
            format!("{}", text.len()),
        ));
    }
    let mut lexer = Lexer {
        rest: text,
        line: 1,
    };
    let mut tokens = Vec::new();
    loop {
        let (line, token) = lexer.token()?;
        let end = token == Token::End;
        tokens.push((line, token));
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
}

impl<'a> Lexer<'a> {
    fn token(&mut self) -> Result<(u32, Token), Problem> {
        self.skip_blanks()?;
        let line = self.line;
        Ok((line, self.token_here()?))
    }

    fn token_here(&mut self) -> Result<Token, Problem> {
        let rest = self.rest;
        let Some(first) = rest.chars().next() else {
            return Ok(Token::End);
        };
        if let Some(code) = rest.strip_prefix("%{") {
            let body = self.until(code, "}%", "'}%' at the end of the code block")?;
            return Ok(Token::Code(body.trim().to_string()));
        }
        if rest.starts_with("...") {
            self.take(3);
            return Ok(Token::Ellipsis);
        }
        if let Some(name) = rest.strip_prefix("--")
            && name.starts_with(is_word)
        {
            self.take(2);
            return Ok(Token::Option(self.take_while(is_word).to_string()));
        }
        match first {
            '`' | '"' => self.quoted(first),
            _ if is_word(first) => self.word_or_number(),
            '-' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                self.take(1);
                match self.word_or_number()? {
                    Token::Integer(value) => Ok(Token::Integer(-value)),
                    other => Err(self.syntax("a whole number behind '-'", &other)),
                }
            }
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                self.take(1);
                self.decimal("")
            }
            _ => {
                self.take(first.len_utf8());
                Ok(Token::Punct(first))
            }
        }
    }

    fn syntax(&self, expected: &str, got: &impl fmt::Display) -> Problem {
        Problem::syntax(self.line, expected.to_string(), got.to_string())
    }

    /// Moves on by `len` bytes, which end at a character's border.
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.line += taken.bytes().filter(|&byte| byte == b'\n').count() as u32;
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let len = self.rest.find(|c| !accept(c)).unwrap_or(self.rest.len());
        self.take(len)
    }

    /// Takes what stands before `end` in `body`, a part of the rest, and `end` itself.
    fn until(&mut self, body: &'a str, end: &str, expected: &str) -> Result<&'a str, Problem> {
        let Some(len) = body.find(end) else {
            return Err(self.syntax(expected, &Token::End));
        };
        let start = self.rest.len() - body.len();
        self.take(start + len + end.len());
        Ok(&body[..len])
    }

    fn skip_blanks(&mut self) -> Result<(), Problem> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest.starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                self.until(comment, "*/", "'*/' at the end of the comment")?;
            } else {
                return Ok(());
            }
        }
    }

    /// A string in `quote`, where a backslash takes the next character as it is.
    fn quoted(&mut self, quote: char) -> Result<Token, Problem> {
        let mut escaped = false;
        let end = self.rest[1..].find(|c| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let Some(len) = end else {
            let expected = format!("{quote} at the end of the string");
            return Err(self.syntax(&expected, &Token::End));
        };
        let taken = self.take(len + 2);
        let text = taken[1..=len].to_string();
        Ok(if quote == '`' {
            Token::Backquoted(text)
        } else {
            Token::Text(text)
        })
    }

    fn word_or_number(&mut self) -> Result<Token, Problem> {
        let word = self.take_while(is_word);
        if let Some(hex) = word.strip_prefix("0x") {
            return match i64::from_str_radix(hex, 16) {
                Ok(value) => Ok(Token::Integer(value)),
                Err(_) => Err(self.syntax("a hexadecimal number of 63 bits", &word)),
            };
        }
        if !word.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Token::Word(word.to_string()));
        }
        let is_digit = |c: char| c.is_ascii_digit();
        if let Some(rest) = self.rest.strip_prefix('.')
            && rest.starts_with(is_digit)
        {
            self.take(1);
            let before = self.rest;
            let token = self.decimal(word)?;
            if self.rest.starts_with('.') && self.rest[1..].starts_with(is_digit) {
                // Two points: an address.
                self.take_while(|c| is_digit(c) || c == '.');
                let len = before.len() - self.rest.len();
                return Ok(Token::Ipv4(format!("{word}.{}", &before[..len])));
            }
            return Ok(token);
        }
        match word.parse() {
            Ok(value) => Ok(Token::Integer(value)),
            Err(_) => Err(self.syntax("a number of 63 bits", &word)),
        }
    }

    /// The digits behind a decimal point.
    fn decimal(&mut self, whole: &str) -> Result<Token, Problem> {
        let fraction = self.take_while(|c| c.is_ascii_digit());
        let mut millionths = 0;
        for place in 0..6 {
            let digit = fraction.as_bytes().get(place).map_or(0, |b| b - b'0');
            millionths = millionths * 10 + u64::from(digit);
        }
        let whole: Option<u64> = if whole.is_empty() {
            Some(0)
        } else {
            whole.parse().ok()
        };
        match whole.filter(|&whole| whole <= MAX_TIME_US / 1_000_000) {
            Some(whole) => Ok(Token::Decimal(whole * 1_000_000 + millionths)),
            None => Err(self.syntax("a number up to 1000000000", &fraction)),
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A whole number of seconds as a time in microseconds.
pub(super) fn seconds_to_us(seconds: i64) -> Option<u64> {
    let us = u64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
    (us <= MAX_TIME_US).then_some(us)
}

#[cfg(test)]
mod tests;
