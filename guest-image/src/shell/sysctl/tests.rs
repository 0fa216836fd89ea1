use super::*;
use alloc::{format, string::String};
use test_case::test_case;

fn run(config: &mut Config, argument: &str) -> String {
    let mut shown = String::new();
    let bound = |config: &mut Config| config.max_rcvbuf_bytes = config.max_rcvbuf_bytes.min(1000);
    sysctl(config, argument, bound, &mut shown).unwrap();
    shown
}

#[test]
fn without_a_name_all_settings_are_shown() {
    let mut config = Config::default();
    let shown = run(&mut config, "");
    assert_eq!(shown, run(&mut config, "-a"));
    assert_eq!(shown.lines().count(), sysctl::names().count());
    assert!(shown.contains("net.ipv4.tcp_congestion_control = cubic\n"));
    assert_eq!(config, Config::default());
}

#[test_case("net.ipv4.tcp_sack" => "net.ipv4.tcp_sack = 1\n")]
#[test_case("net.ipv4.tcp_sack=0" => "net.ipv4.tcp_sack = 0\n")]
#[test_case("-w net.ipv4.tcp_sack = 0" => "net.ipv4.tcp_sack = 0\n")]
#[test_case("net.ipv4.tcp_wmem=\"4096 16384 65536\"" => "net.ipv4.tcp_wmem = 4096\t16384\t65536\n")]
#[test_case("net.ipv4.tcp_rmem=1 500 65536" => "net.ipv4.tcp_rmem = 500\t500\t1000\n"; "bounded")]
#[test_case("net.ipv4.tcp_sack=2" => "sysctl: net.ipv4.tcp_sack: expected 0 or 1, got '2'\n")]
#[test_case("net.ipv4.tcp_sack=" => "sysctl: net.ipv4.tcp_sack: expected 0 or 1, got ''\n")]
#[test_case("net.ipv4.tcp" => "sysctl: expected the name of a setting, got 'net.ipv4.tcp'\n")]
#[test_case("=" => "sysctl: expected the name of a setting, got ''\n")]
fn shows(argument: &str) -> String {
    run(&mut Config::default(), argument)
}

#[test]
fn what_was_written_is_read() {
    let mut config = Config::default();
    let written = run(&mut config, "net.ipv4.tcp_fin_timeout=7");
    assert_eq!(run(&mut config, "net.ipv4.tcp_fin_timeout"), written);
    assert_eq!(written, format!("net.ipv4.tcp_fin_timeout = {}\n", 7));
}
