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
    assert!(!config.contains("ramdisk"));
}

#[test]
fn linux_must_not_use_rdtscp() {
    let config = Spec::new(Kind::Linux, None, "").config();
    assert!(config.contains("cpuid = \"host,rdtscp=0\"\n"));
    assert!(config.contains("ramdisk"));
}
