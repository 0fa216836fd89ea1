use super::*;
use alloc::vec::Vec;
use paceline_stack::{
    sim::{Host, Link, Network, NicConfig, apps},
    time::Duration,
};

fn shown(host: &Host, info: bool) -> String {
    let mut shown = String::new();
    host.net
        .with(|stack| ss(stack.tcp().connections(), info, &mut shown))
        .unwrap();
    shown
}

/// A sender and a receiver in the midst of it.
fn transfer() -> (Network, Host, Host) {
    let link = Link {
        rate_bps: Some(100_000_000),
        delay: Duration::from_millis(5),
        ..Link::default()
    };
    let (mut network, a, b) = Network::pair(NicConfig::default(), link);
    apps::sink(&mut network, &b, 5201, |_| {});
    apps::bulk(&mut network, &a, (&b, 5201), |_| {});
    network.run_for(Duration::from_millis(500));
    (network, a, b)
}

#[test]
fn a_line_for_each_connection() {
    let (_network, a, b) = transfer();
    let list = shown(&a, false);
    let lines: Vec<Vec<_>> = list
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), 2, "{list}");
    let [state, unread, queued, local, remote] = lines[1][..] else {
        panic!("{list}");
    };
    assert_eq!((state, unread, remote), ("ESTAB", "0", "192.0.2.2:5201"));
    assert!(queued.parse::<u32>().unwrap() > 0, "{list}");
    let list = shown(&b, false);
    let line = list.lines().nth(1).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words, ["ESTAB", "0", "0", "192.0.2.2:5201", local]);
}

#[test]
fn details_are_those_of_tcp_info() {
    let (_network, a, _b) = transfer();
    let list = shown(&a, true);
    let tcp = a
        .net
        .with(|stack| stack.tcp().connections().next().unwrap().2);
    let line = list.lines().nth(2).unwrap();
    assert!(
        line.starts_with(" ts sack cubic wscale:10,10 rto:2"),
        "{line}"
    );
    for (word, value) in [
        ("cwnd", tcp.field("snd_cwnd").unwrap()),
        ("mss", tcp.snd_mss.into()),
        ("bytes_sent", tcp.bytes_sent),
        ("unacked", tcp.unacked.into()),
        ("snd_wnd", tcp.snd_wnd.into()),
        ("in_device", tcp.in_device_bytes.into()),
        ("device_limit", tcp.device_limit_bytes.into()),
    ] {
        assert!(value > 0 || word == "in_device", "{word}");
        let expected = alloc::format!("{word}:{value}");
        assert!(
            line.split(' ').any(|word| word == expected),
            "{expected}: {line}"
        );
    }
    assert!(line.contains(" pacing_rate "), "{line}");
    // What is nothing is left out.
    assert!(
        !line.contains(" retrans:") && !line.contains(" bytes_received:"),
        "{line}"
    );
}

#[test]
fn without_connections_there_is_the_heading_alone() {
    let (_network, a, _b) = Network::pair(NicConfig::default(), Link::default());
    assert_eq!(shown(&a, true).lines().count(), 1);
}

#[test]
fn units_are_those_of_ss() {
    let shown = |us| alloc::format!("{}", Millis(us));
    assert_eq!(
        [shown(0), shown(204_000), shown(1_050), shown(10)],
        ["0", "204", "1.05", "0.01"]
    );
    let shown = |bytes| alloc::format!("{}", Rate(bytes));
    assert_eq!([shown(100), shown(1_250_000)], ["800bps", "10.0Mbps"]);
    assert_eq!(shown(u64::MAX - 1), "147573952589676.4Mbps");
}
