use super::{Token, tokens};
use alloc::{string::ToString, vec::Vec};

fn lexed(text: &str) -> Vec<Token> {
    tokens(text).unwrap().into_iter().map(|(_, t)| t).collect()
}

#[test]
fn numbers_times_and_addresses_are_told_apart() {
    let word = |text: &str| Token::Word(text.to_string());
    assert_eq!(
        lexed("+.1 0...0.300 1.5 192.0.2.1 0x1f -1 3 S. F_SETFL 12ab"),
        [
            Token::Punct('+'),
            Token::Decimal(100_000),
            Token::Integer(0),
            Token::Ellipsis,
            Token::Decimal(300_000),
            Token::Decimal(1_500_000),
            Token::Ipv4("192.0.2.1".to_string()),
            Token::Integer(0x1f),
            Token::Integer(-1),
            Token::Integer(3),
            word("S"),
            Token::Punct('.'),
            word("F_SETFL"),
            word("12ab"),
            Token::End,
        ]
    );
}

#[test]
fn strings_code_and_comments() {
    assert_eq!(
        lexed("// a\n/* b\n */ \"a \\\" b\" `c` %{ d }% --mtu=1"),
        [
            Token::Text("a \\\" b".to_string()),
            Token::Backquoted("c".to_string()),
            Token::Code("d".to_string()),
            Token::Option("mtu".to_string()),
            Token::Punct('='),
            Token::Integer(1),
            Token::End,
        ]
    );
}

#[test]
fn lines_are_counted() {
    let tokens = tokens("a\n\n/*\n*/ b `x\ny` c").unwrap();
    let lines: Vec<_> = tokens.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 4, 4, 5, 5]);
}

#[test]
fn what_is_not_closed_or_too_large_is_told() {
    for text in [
        "`a",
        "\"a\\\"",
        "%{ a",
        "/* a",
        "99999999999999999999",
        "0xg",
        "2000000000.5",
    ] {
        assert!(tokens(text).is_err(), "{text}");
    }
}
