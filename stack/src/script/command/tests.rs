use super::run;
use crate::{
    script::{Flavor, ProblemKind},
    tcp::Config,
};
use alloc::string::ToString;

fn config_after(text: &str, flavor: Flavor) -> Config {
    let mut config = Config::default();
    run(1, text, flavor, &mut config).unwrap();
    config
}

#[test]
fn sysctl_lines_set() {
    let text = "sysctl -q net.ipv4.tcp_sack=0; sysctl -w net.ipv4.tcp_dsack=0\n\
                sysctl -q net.ipv4.tcp_rmem=\"4096 8000 90000\" > /dev/null 2>&1";
    let config = config_after(text, Flavor::Own);
    assert!(!config.sack && !config.dsack);
    assert_eq!(
        (config.rcvbuf_bytes, config.max_rcvbuf_bytes),
        (8000, 90_000)
    );
    let text = "../common/set_sysctls.py /proc/sys/net/ipv4/tcp_sack=0";
    assert!(!config_after(text, Flavor::Own).sack);
}

#[test]
fn freebsd_names_are_translated() {
    let text = "sysctl -w net.inet.tcp.rfc1323=0 && sysctl -w kern.ipc.maxsockbuf=2097152";
    let config = config_after(text, Flavor::FreeBsd);
    assert!(!config.timestamps && !config.window_scaling);
    let config = config_after("sysctl net.inet.tcp.recvspace=65536", Flavor::FreeBsd);
    assert_eq!(config.rcvbuf_bytes, 65_536);
}

#[test]
fn setting_a_machine_up_has_no_effect() {
    let text =
        "ip tcp_metrics flush all > /dev/null\ntc qdisc add dev tun0 root pfifo\n./defaults.sh";
    assert_eq!(config_after(text, Flavor::Own), Config::default());
    assert_eq!(config_after(text, Flavor::Linux).rcvbuf_bytes, 540_000);
}

#[test]
fn what_is_not_known_is_named() {
    let mut config = Config::default();
    for (text, expected) in [
        (
            "sysctl -q net.ipv4.tcp_nonsense=1",
            "sysctl net.ipv4.tcp_nonsense",
        ),
        ("nstat -n", "command 'nstat -n'"),
        ("ip route change default initcwnd 20", "command 'ip route'"),
        (
            "sysctl net.ipv4.tcp_sack",
            "sysctl net.ipv4.tcp_sack without a value",
        ),
    ] {
        let problem = run(3, text, Flavor::Own, &mut config).unwrap_err();
        assert_eq!(problem.line, 3);
        assert_eq!(problem.kind, ProblemKind::Unsupported(expected.to_string()));
    }
    let problem = run(3, "sysctl net.ipv4.tcp_sack=7", Flavor::Own, &mut config).unwrap_err();
    assert!(matches!(problem.kind, ProblemKind::Unexpected { .. }));
}
