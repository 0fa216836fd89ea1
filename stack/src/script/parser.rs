//! The grammar of scripts: options, events and their times.

mod call;
mod packet;

use super::{
    Problem,
    ast::{Action, Command, Direction, Event, EventTime, Script, ScriptOption},
    lexer::{Token, seconds_to_us, tokens},
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// Parses a script.
pub(super) fn parse(text: &str) -> Result<Script, Problem> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
    };
    parser.script()
}

/// Deepest nesting of expressions.
const MAX_DEPTH: u32 = 32;

struct Parser {
    /// Never empty: the last one is [`Token::End`].
    tokens: Vec<(u32, Token)>,
    at: usize,
    depth: u32,
}

impl Parser {
    fn script(&mut self) -> Result<Script, Problem> {
        let mut script = Script::default();
        while let Token::Option(name) = self.peek() {
            let name = name.clone();
            let line = self.line();
            self.advance();
            let value = if self.accept('=') {
                Some(self.option_value()?)
            } else {
                None
            };
            if name == "define" {
                self.define(value.as_deref().unwrap_or(""))?;
            }
            script.options.push(ScriptOption { line, name, value });
        }
        script.init = self.bare_command();
        loop {
            if let Some(command) = self.bare_command() {
                script.cleanup = Some(command);
                if *self.peek() != Token::End {
                    return Err(self.expected("the end of the script behind the last command"));
                }
            }
            if *self.peek() == Token::End {
                break;
            }
            script.events.push(self.event()?);
        }
        if script.events.is_empty() {
            return Err(self.expected("an event"));
        }
        Ok(script)
    }

    /// Puts a symbol's value in its place wherever the rest of the script has it.
    fn define(&mut self, definition: &str) -> Result<(), Problem> {
        let Some((symbol, value)) = definition.split_once('=') else {
            return Err(self.expected("--define=SYMBOL=VALUE before this"));
        };
        let is_symbol = |token: &Token| matches!(token, Token::Word(word) if word == symbol);
        let value = match &self.tokens[self.at - 1].1 {
            Token::Word(_) => Token::Word(value.to_string()),
            other => other.clone(),
        };
        for (_, token) in &mut self.tokens[self.at..] {
            if is_symbol(token) {
                *token = value.clone();
            }
        }
        Ok(())
    }

    /// A command that belongs to no event.
    fn bare_command(&mut self) -> Option<Command> {
        let Token::Backquoted(text) = self.peek() else {
            return None;
        };
        let text = text.clone();
        let line = self.line();
        self.advance();
        Some(Command { line, text })
    }

    fn option_value(&mut self) -> Result<String, Problem> {
        let value = match self.peek() {
            Token::Integer(value) => value.to_string(),
            Token::Word(text) | Token::Ipv4(text) | Token::Text(text) => text.clone(),
            _ => return Err(self.expected("the option's value")),
        };
        self.advance();
        if self.accept('=') {
            let inner = match self.peek() {
                Token::Integer(value) => value.to_string(),
                Token::Word(text) | Token::Text(text) | Token::Backquoted(text) => text.clone(),
                _ => return Err(self.expected("the symbol's value")),
            };
            self.advance();
            return Ok(format!("{value}={inner}"));
        }
        Ok(value)
    }

    fn event(&mut self) -> Result<Event, Problem> {
        let line = self.line();
        let time = self.event_time()?;
        let action = self.action()?;
        let is_outbound = matches!(
            &action,
            Action::Segment(segment) if segment.direction == Direction::Outbound
        );
        let needs_outbound = matches!(
            time,
            EventTime::Any | EventTime::AbsoluteRange(..) | EventTime::RelativeRange(..)
        );
        if needs_outbound && !is_outbound {
            return Err(Problem::syntax(
                line,
                "an outbound packet behind '*' or a range of times".to_string(),
                "another event".to_string(),
            ));
        }
        if let EventTime::AbsoluteRange(from, to) | EventTime::RelativeRange(from, to) = time
            && from > to
        {
            return Err(Problem::syntax(
                line,
                "a range whose end is not before its start".to_string(),
                format!("{from} to {to} microseconds"),
            ));
        }
        Ok(Event { line, time, action })
    }

    fn event_time(&mut self) -> Result<EventTime, Problem> {
        if self.accept('*') {
            return Ok(EventTime::Any);
        }
        let relative = self.accept('+');
        let from = self.time("an event's time")?;
        if !self.accept('~') {
            return Ok(if relative {
                EventTime::Relative(from)
            } else {
                EventTime::Absolute(from)
            });
        }
        if relative {
            self.expect('+')?;
        }
        let to = self.time("the range's end")?;
        Ok(if relative {
            EventTime::RelativeRange(from, to)
        } else {
            EventTime::AbsoluteRange(from, to)
        })
    }

    /// A time in seconds, returned in microseconds.
    fn time(&mut self, what: &str) -> Result<u64, Problem> {
        let us = match *self.peek() {
            Token::Decimal(us) => Some(us),
            Token::Integer(seconds) => seconds_to_us(seconds),
            _ => None,
        };
        let Some(us) = us else {
            return Err(self.expected(what));
        };
        self.advance();
        Ok(us)
    }

    fn action(&mut self) -> Result<Action, Problem> {
        match self.peek() {
            Token::Backquoted(text) => {
                let text = text.clone();
                self.advance();
                Ok(Action::Command(text))
            }
            Token::Code(text) => {
                let text = text.clone();
                self.advance();
                Ok(Action::Code(text))
            }
            Token::Punct('<') => {
                self.advance();
                self.packet(Direction::Inbound)
            }
            Token::Punct('>') => {
                self.advance();
                self.packet(Direction::Outbound)
            }
            Token::Word(_) | Token::Ellipsis => Ok(Action::Call(self.call()?)),
            _ => Err(self.expected("'<', '>', a system call, a command or a code block")),
        }
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.at].1
    }

    /// The token behind the next.
    fn peek_second(&self) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + 1).min(last)].1
    }

    fn line(&self) -> u32 {
        self.tokens[self.at].0
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    /// Takes the character, if it is next.
    fn accept(&mut self, char: char) -> bool {
        let is_next = *self.peek() == Token::Punct(char);
        if is_next {
            self.advance();
        }
        is_next
    }

    /// Takes the word, if it is next.
    fn accept_word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(text) if text == word)
    }

    fn expect(&mut self, char: char) -> Result<(), Problem> {
        if self.accept(char) {
            return Ok(());
        }
        Err(self.expected(&format!("'{char}'")))
    }

    /// A number that fits `T`.
    fn integer<T: TryFrom<i64>>(&mut self, what: &str) -> Result<T, Problem> {
        let value = match *self.peek() {
            Token::Integer(value) => T::try_from(value).ok(),
            _ => None,
        };
        let Some(value) = value else {
            return Err(self.expected(what));
        };
        self.advance();
        Ok(value)
    }

    /// The error that something else came than `what`.
    fn expected(&self, what: &str) -> Problem {
        Problem::syntax(self.line(), what.to_string(), self.peek().to_string())
    }

    fn unsupported(&self, what: impl Into<String>) -> Problem {
        Problem::unsupported(self.line(), what)
    }

    /// Goes one level deeper into nested expressions.
    fn descend<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        if self.depth >= MAX_DEPTH {
            return Err(self.expected(&format!("expressions at most {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }
}

#[cfg(test)]
mod tests;
