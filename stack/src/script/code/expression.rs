//! Integer expressions with Python's operators and precedence.

use super::{Names, Problem};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// Deepest nesting.
const MAX_DEPTH: u32 = 64;

/// What an expression came to.
#[derive(Debug)]
pub(super) struct Evaluated {
    pub(super) value: i64,
    /// The names in it that are no constants, with their values.
    pub(super) seen: Vec<(String, i64)>,
}

/// Evaluates an expression.
pub(super) fn evaluate(line: u32, text: &str, names: Names<'_>) -> Result<Evaluated, Problem> {
    let mut evaluator = Evaluator {
        line,
        text,
        rest: text,
        names,
        seen: Vec::new(),
        depth: 0,
    };
    let value = evaluator.or()?;
    evaluator.skip_blanks();
    if !evaluator.rest.is_empty() {
        return Err(evaluator.odd("an operator or the end"));
    }
    Ok(Evaluated {
        value,
        seen: evaluator.seen,
    })
}

struct Evaluator<'a> {
    line: u32,
    text: &'a str,
    rest: &'a str,
    names: Names<'a>,
    seen: Vec<(String, i64)>,
    depth: u32,
}

impl Evaluator<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Something else stands in the text than may.
    fn odd(&self, expected: &str) -> Problem {
        let got = match self.rest {
            "" => "the end".to_string(),
            rest => format!("'{rest}'"),
        };
        let text = self.text;
        Problem::syntax(self.line, format!("{expected} in '{text}'"), got)
    }

    fn overflow(&self) -> Problem {
        Problem::unsupported(self.line, format!("Python: large numbers in {}", self.text))
    }

    /// Takes an operator, unless it is the start of one of `longer`.
    fn accept(&mut self, operator: &str, longer: &[&str]) -> bool {
        self.skip_blanks();
        if longer.iter().any(|longer| self.rest.starts_with(longer)) {
            return false;
        }
        match self.rest.strip_prefix(operator) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn accept_word(&mut self, word: &str) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(word) {
            Some(rest) if !rest.starts_with(is_name) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn deeper(&mut self) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.odd("less nesting"));
        }
        Ok(())
    }

    fn or(&mut self) -> Result<i64, Problem> {
        let mut value = self.and()?;
        while self.accept_word("or") {
            let right = self.and()?;
            value = if value == 0 { right } else { value };
        }
        Ok(value)
    }

    fn and(&mut self) -> Result<i64, Problem> {
        let mut value = self.not()?;
        while self.accept_word("and") {
            let right = self.not()?;
            value = if value == 0 { value } else { right };
        }
        Ok(value)
    }

    fn not(&mut self) -> Result<i64, Problem> {
        if !self.accept_word("not") {
            return self.comparison();
        }
        self.deeper()?;
        let value = i64::from(self.not()? == 0);
        self.depth -= 1;
        Ok(value)
    }

    /// `a < b <= c` holds when both do.
    fn comparison(&mut self) -> Result<i64, Problem> {
        let mut left = self.bit_or()?;
        let mut chain = None;
        loop {
            let test: fn(&i64, &i64) -> bool = if self.accept("==", &[]) {
                i64::eq
            } else if self.accept("!=", &[]) {
                i64::ne
            } else if self.accept("<=", &[]) {
                i64::le
            } else if self.accept(">=", &[]) {
                i64::ge
            } else if self.accept("<", &["<<"]) {
                i64::lt
            } else if self.accept(">", &[">>"]) {
                i64::gt
            } else {
                return Ok(chain.map_or(left, i64::from));
            };
            let right = self.bit_or()?;
            chain = Some(chain.unwrap_or(true) && test(&left, &right));
            left = right;
        }
    }

    fn bit_or(&mut self) -> Result<i64, Problem> {
        let mut value = self.bit_xor()?;
        while self.accept("|", &[]) {
            value |= self.bit_xor()?;
        }
        Ok(value)
    }

    fn bit_xor(&mut self) -> Result<i64, Problem> {
        let mut value = self.bit_and()?;
        while self.accept("^", &[]) {
            value ^= self.bit_and()?;
        }
        Ok(value)
    }

    fn bit_and(&mut self) -> Result<i64, Problem> {
        let mut value = self.shift()?;
        while self.accept("&", &[]) {
            value &= self.shift()?;
        }
        Ok(value)
    }

    fn shift(&mut self) -> Result<i64, Problem> {
        let mut value = self.sum()?;
        loop {
            let left = if self.accept("<<", &[]) {
                true
            } else if self.accept(">>", &[]) {
                false
            } else {
                return Ok(value);
            };
            let bits = self.sum()?;
            let shifted = u32::try_from(bits)
                .ok()
                .filter(|&bits| bits < 63)
                .and_then(|bits| {
                    if left {
                        value.checked_mul(1 << bits)
                    } else {
                        Some(value >> bits)
                    }
                });
            value = shifted.ok_or_else(|| self.overflow())?;
        }
    }

    fn sum(&mut self) -> Result<i64, Problem> {
        let mut value = self.product()?;
        loop {
            let sum = if self.accept("+", &[]) {
                value.checked_add(self.product()?)
            } else if self.accept("-", &[]) {
                value.checked_sub(self.product()?)
            } else {
                return Ok(value);
            };
            value = sum.ok_or_else(|| self.overflow())?;
        }
    }

    fn product(&mut self) -> Result<i64, Problem> {
        let mut value = self.unary()?;
        loop {
            if self.accept("*", &["**"]) {
                let product = value.checked_mul(self.unary()?);
                value = product.ok_or_else(|| self.overflow())?;
            } else if self.accept("//", &[]) {
                let right = self.divisor()?;
                // Python rounds towards minus infinity.
                let quotient = value.checked_div(right).ok_or_else(|| self.overflow())?;
                let inexact = quotient * right != value;
                value = quotient - i64::from(inexact && (value < 0) != (right < 0));
            } else if self.accept("/", &[]) {
                let right = self.divisor()?;
                if value.checked_rem(right) != Some(0) {
                    let what = format!("Python: fractions in {}", self.text);
                    return Err(Problem::unsupported(self.line, what));
                }
                value /= right;
            } else if self.accept("%", &[]) {
                let right = self.divisor()?;
                let rem = value.checked_rem(right).ok_or_else(|| self.overflow())?;
                let wrong_sign = rem != 0 && (rem < 0) != (right < 0);
                value = if wrong_sign { rem + right } else { rem };
            } else {
                return Ok(value);
            }
        }
    }

    fn divisor(&mut self) -> Result<i64, Problem> {
        match self.unary()? {
            0 => Err(self.odd("a divisor that is not 0")),
            value => Ok(value),
        }
    }

    fn unary(&mut self) -> Result<i64, Problem> {
        self.deeper()?;
        let value = if self.accept("-", &[]) {
            let value = self.unary()?;
            value.checked_neg().ok_or_else(|| self.overflow())?
        } else if self.accept("+", &[]) {
            self.unary()?
        } else if self.accept("~", &[]) {
            !self.unary()?
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn primary(&mut self) -> Result<i64, Problem> {
        if self.accept("(", &[]) {
            let value = self.or()?;
            if !self.accept(")", &[]) {
                return Err(self.odd("')'"));
            }
            return Ok(value);
        }
        let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let Some(first) = word.chars().next() else {
            return Err(self.odd("a number or name"));
        };
        if first.is_ascii_digit() {
            if rest.starts_with('.') {
                let what = format!("Python: fractions in {}", self.text);
                return Err(Problem::unsupported(self.line, what));
            }
            let number = match word.strip_prefix("0x") {
                Some(hex) => i64::from_str_radix(hex, 16),
                None => word.parse(),
            };
            let Ok(number) = number else {
                return Err(self.odd("a number of 63 bits"));
            };
            self.rest = rest;
            return Ok(number);
        }
        self.rest = rest;
        match word {
            "True" => return Ok(1),
            "False" => return Ok(0),
            "abs" | "max" | "min" if rest.starts_with('(') => return self.function(word),
            _ => {}
        }
        let Some(value) = (self.names)(word) else {
            return Err(Problem::unsupported(self.line, format!("name {word}")));
        };
        let is_constant = word.chars().all(|c| !c.is_ascii_lowercase()) || word.starts_with("TCP_");
        if !is_constant && !self.seen.iter().any(|(known, _)| known == word) {
            self.seen.push((word.to_string(), value));
        }
        Ok(value)
    }

    fn function(&mut self, name: &str) -> Result<i64, Problem> {
        self.accept("(", &[]);
        let mut value = self.or()?;
        while self.accept(",", &[]) {
            let next = self.or()?;
            value = match name {
                "max" => value.max(next),
                "min" => value.min(next),
                _ => return Err(self.odd("one argument")),
            };
        }
        if !self.accept(")", &[]) {
            return Err(self.odd("')'"));
        }
        match name {
            "abs" => value.checked_abs().ok_or_else(|| self.overflow()),
            _ => Ok(value),
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
