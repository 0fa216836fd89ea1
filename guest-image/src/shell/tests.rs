use super::*;
use alloc::{string::String, vec::Vec};
use proptest::prelude::*;

/// Types `text` and returns the commands and what was shown.
fn type_in(shell: &mut Shell, text: &str) -> (Vec<Command>, String) {
    let mut shown = String::new();
    let commands = text
        .bytes()
        .filter_map(|byte| shell.input(byte, &mut shown).unwrap())
        .collect();
    (commands, shown)
}

#[test]
fn commands_are_found_whatever_the_spaces() {
    let (commands, _) = type_in(&mut Shell::new(), "help\r\n  crash   panic \npoweroff\r");
    assert_eq!(
        commands,
        [Command::Help, Command::CrashPanic, Command::PowerOff]
    );
}

#[test]
fn each_command_is_listed_and_known() {
    let mut list = String::new();
    help(&mut list).unwrap();
    for (words, command, _) in COMMANDS {
        assert_eq!(Command::parse(words), Ok(Some(command)));
        assert!(list.contains(words));
    }
}

#[test]
fn unknown_words_are_told() {
    let (commands, shown) = type_in(&mut Shell::new(), "crash\n");
    assert!(commands.is_empty());
    assert_eq!(shown, "crash\n'crash' is unknown: try 'help'\n> ");
}

#[test]
fn backspace_takes_back() {
    let (commands, shown) = type_in(&mut Shell::new(), "\u{8}frex\u{7f}e\r");
    assert_eq!(commands, [Command::Free]);
    assert_eq!(shown, "frex\u{8} \u{8}e\n");
}

#[test]
fn control_c_forgets_the_line() {
    let (commands, shown) = type_in(&mut Shell::new(), "power\u{3}ip\n");
    assert_eq!(commands, [Command::Ip]);
    assert_eq!(shown, "power^C\n> ip\n");
}

#[test]
fn an_empty_line_is_a_new_prompt() {
    assert_eq!(type_in(&mut Shell::new(), "\r\n").1, "\n> ");
}

#[test]
fn a_long_line_is_cut() {
    let long = "x".repeat(1000);
    let (_, shown) = type_in(&mut Shell::new(), &long);
    assert_eq!(shown.len(), MAX_LINE_BYTES);
}

proptest! {
    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut shell = Shell::new();
        let mut shown = String::new();
        for byte in bytes {
            let _ = shell.input(byte, &mut shown);
        }
    }
}

#[test]
fn arguments_are_part_of_the_command() {
    let (commands, shown) = type_in(
        &mut Shell::new(),
        "sysctl\nsysctl  net.ipv4.tcp_sack=0 \nss -ti\nss -n -i\nss\nss -x\nss tcp\n",
    );
    let sysctl = |rest: &str| Command::Sysctl(Line::try_from(rest).unwrap());
    let ss = |info| Command::Ss { info };
    assert_eq!(
        commands,
        [
            sysctl(""),
            sysctl("net.ipv4.tcp_sack=0"),
            ss(true),
            ss(true),
            ss(false)
        ]
    );
    assert!(shown.contains("'ss -x' is unknown: try 'help'"));
    assert!(shown.contains("'ss tcp' is unknown: try 'help'"));
}
