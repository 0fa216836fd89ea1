use super::*;

const XL_LIST: &str = "\
Name                                        ID   Mem VCPUs\tState\tTime(s)
Domain-0                                     0  1024     1     r-----      62.7
linux                                        1   256     1     -b----      35.0
";

#[test]
fn xl_list_is_read() {
    let line = list_line(XL_LIST, "linux").unwrap();
    assert_eq!(line.state, "-b----");
    assert!((line.time_s - 35.0).abs() < f64::EPSILON);
    assert!((list_line(XL_LIST, "Domain-0").unwrap().time_s - 62.7).abs() < f64::EPSILON);
    assert!(list_line(XL_LIST, "paceline").is_none());
}

#[test]
fn paceline_gets_an_address_and_the_users_words() {
    let spec = Spec::new(Kind::Paceline, Some(16), "loglevel=7");
    let config = spec.config();
    assert!(config.contains("cmdline = \"ip=10.0.0.2::10.0.0.1:255.255.255.0 loglevel=7\"\n"));
    assert!(config.contains("memory = 16\n"));
    assert!(config.contains("type = \"pvh\"\n"));
    assert!(config.contains("vif = [\"mac=00:16:3e:00:00:02,ip=10.0.0.2,script=vif-paceline\"]\n"));
    assert!(!config.contains("ramdisk"));
}

#[test]
fn linux_must_not_use_rdtscp() {
    let config = Spec::new(Kind::Linux, None, "").config();
    assert!(config.contains("cpuid = \"host,rdtscp=0\"\n"));
    assert!(config.contains("ramdisk"));
}

#[test]
fn guests_that_live_at_the_same_time_share_nothing() {
    let (ours, theirs) = (Kind::Paceline, Kind::Linux);
    assert_ne!(ours.name(), theirs.name());
    assert_ne!(ours.mac(), theirs.mac());
    let network = |address: &'static str| address.rsplit_once('.').unwrap().0;
    assert_ne!(network(ours.address()), network(theirs.address()));
    for kind in [ours, theirs] {
        assert_eq!(network(kind.address()), network(kind.gateway()));
        assert!(
            kind.gateway().ends_with(".1"),
            "as the hotplug script has it"
        );
    }
    let config = Spec::new(theirs, None, "").config();
    assert!(config.contains("guest_address=10.0.1.2 guest_gateway=10.0.1.1\"\n"));
}

#[test]
fn a_measurement_costs_what_xl_counted_between() {
    let after = XL_LIST.replace("62.7", "63.9").replace("35.0", "35.8");
    let report = r#"{"end": {
        "sum_sent": {"bytes": 11, "seconds": 1, "bits_per_second": 88, "retransmits": 0},
        "sum_received": {"bytes": 10, "seconds": 1, "bits_per_second": 80}
    }}"#;
    let text = format!("{XL_LIST}----\n{after}----\n{report}\n");
    let (measurement, cost) = measured(&text, Kind::Linux).unwrap();
    assert_eq!(measurement.forward.bytes, 10);
    assert!((cost.dom0_s - 1.2).abs() < 1e-9);
    assert!((cost.guest_s - 0.8).abs() < 1e-9);
}

#[test]
fn what_reading_costs_lies_between_two_lists() {
    let later = XL_LIST.replace("62.7", "64.2");
    let span_s = dom0_span(&format!("{XL_LIST}{later}")).unwrap();
    assert!((span_s - 1.5).abs() < 1e-9);
    assert_eq!(dom0_span(XL_LIST), None);
}

#[test]
fn a_failed_measurement_says_why() {
    let error = |text: &str| measured(text, Kind::Paceline).unwrap_err().to_string();
    let refused = r#"{"end": {}, "error": "unable to connect"}"#;
    let text = error(&format!("{XL_LIST}----\n{XL_LIST}----\n{refused}"));
    assert!(text.contains("unable to connect"), "{text}");
    assert!(error("xl: not found").contains("got `xl: not found`"));
}
