use super::*;
use alloc::{string::String, vec::Vec};
use proptest::prelude::*;
use test_case::test_case;

fn parse(line: &str) -> Result<Options, Error<'_>> {
    Options::parse(line, |word| panic!("unknown word {word}"))
}

fn ip(value: &str) -> (String, u8, Option<String>) {
    let line = alloc::format!("ip={value}");
    let ip = parse(&line).unwrap().ip.unwrap();
    (
        alloc::format!("{}", ip.address),
        ip.prefix_len,
        ip.gateway.map(|gateway| alloc::format!("{gateway}")),
    )
}

#[test_case("10.0.0.2::10.0.0.1:255.255.255.0::eth0:off" => ("10.0.0.2".into(), 24, Some("10.0.0.1".into())); "all")]
#[test_case("10.0.0.2" => ("10.0.0.2".into(), 8, None); "class a")]
#[test_case("172.16.0.2::" => ("172.16.0.2".into(), 16, None); "class b")]
#[test_case("192.168.1.2:::::eth0" => ("192.168.1.2".into(), 24, None); "class c")]
#[test_case("10.0.0.2::0.0.0.0:255.255.255.255" => ("10.0.0.2".into(), 32, None); "no gateway")]
#[test_case("10.0.0.2:1.2.3.4::0.0.0.0:name:eth0:none:8.8.8.8:9.9.9.9:1.1.1.1" => ("10.0.0.2".into(), 0, None); "ten fields")]
fn accepted(value: &str) -> (String, u8, Option<String>) {
    ip(value)
}

#[test_case("ip=10.0.0.2/24", "netmask in the fourth field"; "prefix")]
#[test_case("ip=", "<client>"; "empty")]
#[test_case("ip=dhcp", "static"; "dhcp")]
#[test_case("ip=:::::eth0:dhcp", "<client>"; "dhcp on a device")]
#[test_case("ip=10.0.0.2::::::dhcp", "'off' or 'none'"; "address and dhcp")]
#[test_case("ip=10.0.0", "<client>"; "short")]
#[test_case("ip=10.0.0.2:::255.0.255.0", "contiguous"; "holes in the mask")]
#[test_case("ip=224.0.0.1", "unicast"; "multicast")]
#[test_case("ip=10.0.0.2::gw", "<client>"; "gateway by name")]
#[test_case("ip=10.0.0.2::::::::::x", "<client>"; "eleven fields")]
#[test_case("loglevel=9", "0 to 8"; "level too high")]
#[test_case("loglevel=debug", "0 to 8"; "level by name")]
#[test_case("sysctl.net.ipv4.tcp_sack=yes", "0 or 1"; "setting of another form")]
#[test_case("sysctl.net.ipv4.tcp_fin_timeout=0", "1 to 120 seconds"; "setting out of range")]
#[test_case("sysctl.net.ipv4.tcp_rmem=4096", "three sizes"; "one size of three")]
#[test_case("sysctl.net.ipv4.tcp_wmem=\"1 2\"", "three sizes"; "two sizes in quotes")]
#[test_case("sysctl.net.ipv4.tcp_snack=1", "name of a setting"; "no such setting")]
#[test_case("sysctl.=1", "name of a setting"; "setting without a name")]
#[test_case("virtio_mmio.device=512@0xfeb00e00", "<irq>"; "no irq")]
#[test_case("virtio_mmio.device=1@0xffffffffffffffff:5", "<irq>"; "past the end")]
fn refused(line: &str, expected: &str) {
    let error = parse(line).unwrap_err();
    assert_eq!(error.word, line);
    assert!(error.expected.contains(expected), "{error}");
}

#[test]
fn off_is_no_address_and_the_last_word_counts() {
    assert_eq!(parse("ip=10.0.0.2 ip=off").unwrap().ip, None);
    assert_eq!(parse("ip=none").unwrap().ip, None);
    assert!(parse("ip=off ip=10.0.0.2").unwrap().ip.is_some());
}

#[test]
fn hostname_is_kept() {
    let ip = parse("ip=10.0.0.2::::box").unwrap().ip.unwrap();
    assert_eq!(ip.hostname.as_str(), "box");
    assert_eq!(ip.netmask(), Ipv4Addr::new(255, 0, 0, 0));
}

#[test_case(0 => LevelFilter::Off)]
#[test_case(4 => LevelFilter::Error)]
#[test_case(5 => LevelFilter::Warn)]
#[test_case(7 => LevelFilter::Info)]
#[test_case(8 => LevelFilter::Debug)]
fn levels(level: u8) -> LevelFilter {
    parse(&alloc::format!("loglevel={level}"))
        .unwrap()
        .log_level
}

#[test]
fn unknown_words_are_reported() {
    let mut unknown = Vec::new();
    let options = Options::parse("quiet  root=/dev/xvda ip=off -- ip", |word| {
        unknown.push(word);
    });
    assert_eq!(options, Ok(Options::default()));
    assert_eq!(unknown, ["quiet", "root=/dev/xvda", "--", "ip"]);
}

#[test]
fn settings_are_read_and_the_last_one_counts() {
    let options = parse(
        "sysctl.net.ipv4.tcp_tsq_policy=capped sysctl.net.ipv4.tcp_sack=1 \
         sysctl.net/ipv4/tcp_sack=0 sysctl.net.ipv4.tcp_rmem=\"4096 131072 6291456\" \
         \"sysctl.net.ipv4.tcp_wmem=4096 16384 4194304\" loglevel=4",
    );
    let options = options.unwrap();
    let read = |name| sysctl::read(&options.tcp, name).unwrap();
    assert_eq!(read("net.ipv4.tcp_tsq_policy"), "capped");
    assert_eq!(read("net.ipv4.tcp_sack"), "0");
    assert_eq!(read("net.ipv4.tcp_rmem"), "4096\t131072\t6291456");
    assert_eq!(read("net.ipv4.tcp_wmem"), "4096\t16384\t4194304");
    assert_eq!(options.log_level, LevelFilter::Error);
}

#[test]
fn words_without_a_setting_are_unknown() {
    let mut unknown = Vec::new();
    let line = "sysctl.net.ipv4.tcp_sack xsysctl.a=1 \"a b\" \"open";
    let options = Options::parse(line, |word| unknown.push(word));
    assert_eq!(options, Ok(Options::default()));
    let words = [
        "sysctl.net.ipv4.tcp_sack",
        "xsysctl.a=1",
        "\"a b\"",
        "\"open",
    ];
    assert_eq!(unknown, words);
}

#[test]
fn virtio_mmio_devices() {
    let options = parse("virtio_mmio.device=512@0xfeb00e00:12 virtio_mmio.device=1K@4096:5:3");
    assert_eq!(
        options.unwrap().virtio_mmio[..],
        [
            VirtioMmio {
                address: 0xfeb0_0e00,
                len: 512,
                irq: 12
            },
            VirtioMmio {
                address: 4096,
                len: 1024,
                irq: 5
            }
        ]
    );
}

proptest! {
    #[test]
    fn never_panics(line in "\\PC*") {
        let _ = Options::parse(&line, |_| ());
    }

    #[test]
    fn never_panics_near_the_syntax(value in "(ip|loglevel|virtio_mmio.device|sysctl.net.ipv4.tcp_[rw]mem)=[0-9a-fx.:@KMG/\" ]{0,40}") {
        let _ = Options::parse(&value, |_| ());
    }

    #[test]
    fn static_addresses_come_back(
        address in 1..0xe000_0000_u32, gateway in 1..u32::MAX, len in 0..=32_u8,
    ) {
        let address = Ipv4Addr::from_bits(address);
        let gateway = Ipv4Addr::from_bits(gateway);
        let expected = Ip { address, prefix_len: len, gateway: Some(gateway), hostname: heapless::String::new() };
        let line = alloc::format!("ip={address}::{gateway}:{}", expected.netmask());
        prop_assert_eq!(parse(&line).unwrap().ip, Some(expected));
    }
}
