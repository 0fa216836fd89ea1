//! The part of Python that `%{ … }%` blocks need: `assert` of integer expressions.
//!
//! `print` is passed over. All other statements are reported as unsupported.

mod expression;

use super::Problem;
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use expression::{Evaluated, evaluate};

/// Looks names up; none of one that is unknown.
pub(super) type Names<'a> = &'a dyn Fn(&str) -> Option<i64>;

/// Runs a block that starts on `line`.
pub(super) fn run(line: u32, text: &str, names: Names<'_>) -> Result<(), Problem> {
    for (offset, statement) in statements(text) {
        run_statement(line + offset, &statement, names)?;
    }
    Ok(())
}

/// Statements with the lines they start on: one a line, unless a bracket is open or a backslash
/// carries it on.
fn statements(text: &str) -> Vec<(u32, String)> {
    let mut statements: Vec<(u32, String)> = Vec::new();
    let mut open = 0_i32;
    let mut carried = false;
    for (offset, line) in text.lines().enumerate() {
        let line = without_comment(line);
        let trimmed = line.trim();
        let (body, carries) = match trimmed.strip_suffix('\\') {
            Some(body) => (body, true),
            None => (trimmed, false),
        };
        let continues = open > 0 || carried;
        carried = carries;
        for (c, quoted) in unquoted(body) {
            match c {
                '(' | '[' if !quoted => open += 1,
                ')' | ']' if !quoted => open -= 1,
                _ => {}
            }
        }
        match statements.last_mut() {
            Some((_, last)) if continues => {
                last.push(' ');
                last.push_str(body);
            }
            _ if body.is_empty() => {}
            _ => statements.push((offset as u32, body.to_string())),
        }
    }
    let split = |(line, text): (u32, String)| {
        let parts = split_top(&text, ';');
        parts.into_iter().map(move |part| (line, part))
    };
    statements.into_iter().flat_map(split).collect()
}

/// The characters, and whether each stands in quotes.
fn unquoted(text: &str) -> impl Iterator<Item = (char, bool)> + '_ {
    let mut quote = None;
    text.chars().map(move |c| {
        let inside = quote.is_some();
        match quote {
            Some(open) if open == c => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            _ => {}
        }
        (c, inside || quote.is_some())
    })
}

fn without_comment(line: &str) -> &str {
    let mut at = 0;
    for (c, quoted) in unquoted(line) {
        if c == '#' && !quoted {
            return &line[..at];
        }
        at += c.len_utf8();
    }
    line
}

/// The parts between `separator`s that stand outside of brackets and quotes.
fn split_top(text: &str, separator: char) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut depth = 0_i32;
    for (c, quoted) in unquoted(text) {
        match c {
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        if c == separator && depth == 0 && !quoted {
            parts.push(part.trim().to_string());
            part.clear();
        } else {
            part.push(c);
        }
    }
    parts.push(part.trim().to_string());
    parts.retain(|part| !part.is_empty());
    parts
}

fn run_statement(line: u32, statement: &str, names: Names<'_>) -> Result<(), Problem> {
    let word_end = statement
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(statement.len());
    let (word, rest) = statement.split_at(word_end);
    match word {
        "print" | "pass" => Ok(()),
        "assert" => {
            // What follows a comma is the message.
            let parts = split_top(rest, ',');
            let Some(condition) = parts.first() else {
                return Err(Problem::syntax(line, "a condition to assert", "nothing"));
            };
            let Evaluated { value, seen } = evaluate(line, condition, names)?;
            if value != 0 {
                return Ok(());
            }
            let seen: Vec<_> = seen
                .iter()
                .map(|(name, value)| format!("{name} = {value}"))
                .collect();
            let got = if seen.is_empty() {
                "false".to_string()
            } else {
                seen.join(", ")
            };
            Err(Problem::unexpected(line, condition.as_str(), got))
        }
        _ => Err(Problem::unsupported(line, format!("Python: {statement}"))),
    }
}

#[cfg(test)]
mod tests;
