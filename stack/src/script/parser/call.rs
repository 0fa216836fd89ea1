//! The grammar of system calls and their arguments.

use super::Parser;
use crate::script::{
    Problem,
    ast::{Call, Expr},
    lexer::Token,
};
use alloc::{boxed::Box, string::String, vec, vec::Vec};

impl Parser {
    /// `...end name(arguments) = result ERRNO (note)`.
    pub(super) fn call(&mut self) -> Result<Call, Problem> {
        let mut end_us = None;
        if *self.peek() == Token::Ellipsis {
            self.advance();
            end_us = Some(self.time("the time the call returns")?);
        }
        let Token::Word(name) = self.peek() else {
            return Err(self.expected("a system call"));
        };
        let name = name.clone();
        self.advance();
        self.expect('(')?;
        let arguments = self.expressions(')')?;
        self.expect('=')?;
        let result = self.expression()?;
        let mut errno = None;
        if let Token::Word(word) = self.peek() {
            errno = Some(word.clone());
            self.advance();
        }
        self.note()?;
        Ok(Call {
            name,
            end_us,
            arguments,
            result,
            errno,
        })
    }

    /// `(words)`, which mean nothing.
    fn note(&mut self) -> Result<(), Problem> {
        if !self.accept('(') {
            return Ok(());
        }
        while !self.accept(')') {
            if *self.peek() == Token::End {
                return Err(self.expected("')' at the end of the note"));
            }
            self.advance();
        }
        Ok(())
    }

    /// Expressions with commas between them, up to `close`, which is taken too.
    fn expressions(&mut self, close: char) -> Result<Vec<Expr>, Problem> {
        let mut list = Vec::new();
        if self.accept(close) {
            return Ok(list);
        }
        loop {
            list.push(self.expression()?);
            if self.accept(close) {
                return Ok(list);
            }
            self.expect(',')?;
        }
    }

    fn expression(&mut self) -> Result<Expr, Problem> {
        self.descend(|parser| {
            let mut left = parser.primary()?;
            while parser.accept('|') {
                left = Expr::Or(Box::new(left), Box::new(parser.primary()?));
            }
            Ok(left)
        })
    }

    fn primary(&mut self) -> Result<Expr, Problem> {
        let token = self.peek().clone();
        match token {
            Token::Ellipsis => {
                self.advance();
                Ok(Expr::Ellipsis)
            }
            Token::Integer(value) => {
                self.advance();
                Ok(Expr::Integer(value))
            }
            Token::Text(mut text) => {
                self.advance();
                while let Token::Text(more) = self.peek() {
                    text.push_str(more);
                    self.advance();
                }
                if *self.peek() == Token::Ellipsis {
                    self.advance();
                }
                Ok(Expr::Text(text))
            }
            Token::Word(word) => {
                self.advance();
                if self.accept('(') {
                    return Ok(Expr::Apply(word, self.expressions(')')?));
                }
                if self.accept('=') {
                    // "symbol = value": the value with its name.
                    let value = self.expression()?;
                    return Ok(Expr::Record(vec![(word, value)]));
                }
                Ok(Expr::Word(word))
            }
            Token::Punct('[') => {
                self.advance();
                Ok(Expr::List(self.expressions(']')?))
            }
            Token::Punct('{') => {
                self.advance();
                self.record()
            }
            _ => Err(self.expected("an expression")),
        }
    }

    /// `name = value, name(…) = value, value, …}`.
    fn record(&mut self) -> Result<Expr, Problem> {
        let mut entries = Vec::new();
        if self.accept('}') {
            return Ok(Expr::Record(entries));
        }
        loop {
            match self.entry_name()? {
                Some(name) => {
                    self.expect('=')?;
                    entries.push((name, self.expression()?));
                }
                None => entries.push((String::new(), self.expression()?)),
            }
            if self.accept('}') {
                return Ok(Expr::Record(entries));
            }
            self.expect(',')?;
        }
    }

    /// The name in front of an entry's `=`.
    fn entry_name(&mut self) -> Result<Option<String>, Problem> {
        let Token::Word(word) = self.peek() else {
            return Ok(None);
        };
        let word = word.clone();
        match self.peek_second() {
            Token::Punct('=') => self.advance(),
            // "msg_iov(1) = [...]": the count says what the list says.
            Token::Punct('(') if word.starts_with("msg_") => {
                self.advance();
                self.advance();
                self.expressions(')')?;
            }
            _ => return Ok(None),
        }
        Ok(Some(word))
    }
}
