use super::{Error, ROWS, names, read, write};
use crate::{tcp::Config, time::Duration};
use alloc::{format, string::ToString, vec::Vec};

#[test]
fn names_are_in_order_and_unique() {
    let names: Vec<_> = names().collect();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
}

#[test]
fn every_setting_takes_its_own_value_back() {
    let mut config = Config::default();
    for row in ROWS {
        let value = read(&config, row.name).unwrap();
        assert_eq!(write(&mut config, row.name, &value), Ok(()), "{}", row.name);
        assert_eq!(read(&config, row.name).unwrap(), value, "{}", row.name);
    }
    assert_eq!(config, Config::default());
}

#[test]
fn a_wrong_value_changes_nothing_and_says_what_was_expected() {
    let mut config = Config::default();
    for row in ROWS {
        for text in ["", "no such value", "-1", "99999999999999999999", "1 2"] {
            let error = write(&mut config, row.name, text).unwrap_err();
            let expected = format!("{}: expected {}, got '{text}'", row.name, row.form);
            assert_eq!(error.to_string(), expected);
        }
    }
    assert_eq!(config, Config::default());
}

#[test]
fn units_are_linux_units() {
    let mut config = Config::default();
    write(&mut config, "net.ipv4.tcp_rto_min_us", "5000").unwrap();
    assert_eq!(config.rto_min, Duration::from_millis(5));
    write(&mut config, "net.ipv4.tcp_rto_max_ms", "30000").unwrap();
    assert_eq!(config.rto_max, Duration::from_secs(30));
    write(&mut config, "net.ipv4.tcp_fin_timeout", "7").unwrap();
    assert_eq!(config.fin_timeout, Duration::from_secs(7));
    write(&mut config, "net.ipv4.tcp_keepalive_time", " 600 ").unwrap();
    assert_eq!(config.keepalive.time, Duration::from_mins(10));
    write(&mut config, "net/ipv4/tcp_sack", "0").unwrap();
    assert!(!config.sack);
}

#[test]
fn buffers_are_three_sizes_in_order() {
    let mut config = Config::default();
    write(&mut config, "net.ipv4.tcp_rmem", "4096 131072\t33554432").unwrap();
    assert_eq!(config.rcvbuf_bytes, 131_072);
    assert_eq!(config.max_rcvbuf_bytes, 33_554_432);
    for text in ["4096 131072", "9 8 7", "0 1 2", "1 2 3 4", "1 2 1073741825"] {
        assert!(
            write(&mut config, "net.ipv4.tcp_rmem", text).is_err(),
            "{text}"
        );
    }
}

#[test]
fn an_unknown_name_is_told() {
    let error = read(&Config::default(), "net.ipv4.tcp_nonsense").unwrap_err();
    let name = "net.ipv4.tcp_nonsense".to_string();
    assert_eq!(error, Error::Unknown { name });
    assert_eq!(
        error.to_string(),
        "expected the name of a setting, got 'net.ipv4.tcp_nonsense'"
    );
}
