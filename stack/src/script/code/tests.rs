use super::run;
use crate::script::{Problem, ProblemKind};
use alloc::format;

fn names(name: &str) -> Option<i64> {
    match name {
        "tcpi_snd_cwnd" => Some(10),
        "tcpi_unacked" => Some(3),
        "TCP_CA_Open" => Some(0),
        _ => None,
    }
}

fn check(text: &str) -> Result<(), Problem> {
    run(7, text, &names)
}

#[test]
fn operators_have_pythons_precedence() {
    for text in [
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "-7 // 2 == -4",
        "-7 % 3 == 2",
        "7 % -3 == -2",
        "8 / 2 == 4",
        "1 << 3 | 1 == 9 or False",
        "not 1 == 2",
        "1 < 2 < 3",
        "not (1 < 3 < 3)",
        "0x10 == 16",
        "6 & 3 == 2 and 5 ^ 1 == 4",
        "~0 == -1",
        "max(1, 3, 2) == 3 and min(4, 2) == 2 and abs(-5) == 5",
        "tcpi_snd_cwnd - tcpi_unacked == 7, tcpi_snd_cwnd",
        "tcpi_snd_cwnd >= 10 and tcpi_snd_cwnd <= 10",
        "(tcpi_snd_cwnd ==\n   10), 'a message, with a comma'",
        "tcpi_snd_cwnd == \\\n 10",
    ] {
        assert_eq!(check(&format!("assert {text}")), Ok(()), "{text}");
    }
}

#[test]
fn several_statements_and_comments() {
    let text = "# nothing\nprint(tcpi_snd_cwnd)\nassert 1; assert tcpi_unacked == 3 # three\n";
    assert_eq!(check(text), Ok(()));
}

#[test]
fn a_failed_assertion_tells_the_line_and_values() {
    let text = "assert 1 == 1\nassert tcpi_snd_cwnd == 11 and TCP_CA_Open == 0";
    let expected = "tcpi_snd_cwnd == 11 and TCP_CA_Open == 0";
    let problem = Problem::unexpected(8, expected, "tcpi_snd_cwnd = 10");
    assert_eq!(check(text), Err(problem));
}

#[test]
fn the_rest_of_python_is_not_supported() {
    for text in [
        "import os",
        "x = 1",
        "assert 1.5 > 1",
        "assert 7 / 2 == 3",
        "assert tcpi_nonsense == 1",
        "for i in range(3): pass",
        "assert 9223372036854775807 + 1 > 0",
        "assert 1 << 64 > 0",
    ] {
        let problem = check(text).unwrap_err();
        let skipped = matches!(problem.kind, ProblemKind::Unsupported(_));
        assert!(skipped, "{text}: {problem:?}");
    }
}

#[test]
fn wrong_expressions_are_told() {
    for text in [
        "assert",
        "assert (1",
        "assert 1 +",
        "assert 1 1",
        "assert 1 % 0",
        "assert )",
    ] {
        let problem = check(text).unwrap_err();
        let told = matches!(problem.kind, ProblemKind::Unexpected { .. });
        assert!(told, "{text}: {problem:?}");
    }
    let deep = format!("assert {}1", "(".repeat(1_000));
    assert!(check(&deep).is_err());
    let not = format!("assert {}1", "not ".repeat(1_000));
    assert!(check(&not).is_err());
}
