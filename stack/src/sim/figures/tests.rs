use super::*;
use alloc::{string::ToString, vec};

#[test]
fn units_for_people() {
    assert_eq!(Unit::BitsPerSecond.show(5_518_000_000), "5.52 Gb/s");
    assert_eq!(Unit::BitsPerSecond.show(999_000), "999.00 kb/s");
    assert_eq!(Unit::Bytes.show(131_072), "128.00 KiB");
    assert_eq!(Unit::Micros.show(374), "374 us");
    assert_eq!(Unit::Micros.show(1_500_000), "1.50 s");
    assert_eq!(Unit::Thousandths.show(950), "0.950");
}

#[test]
fn lines() {
    assert!(Check::at_least("x", 5, 5, Unit::Count).met);
    assert!(!Check::at_least("x", 4, 5, Unit::Count).met);
    assert!(Check::at_most("x", 5, 5, Unit::Count).met);
    assert!(!Check::at_most("x", 6, 5, Unit::Count).met);
    assert!(Check::between("x", 5, 5, 6, Unit::Count).met);
    assert!(!Check::between("x", 7, 5, 6, Unit::Count).met);
    let check = Check::equal("x", 7, 5, Unit::Count);
    assert!(!check.met);
    assert_eq!((&*check.expected, &*check.got), ("5", "7"));
}

#[test]
fn tables_line_up() {
    let report = Report {
        columns: vec!["a", "long name"],
        rows: vec![Row {
            cells: vec!["1000".to_string(), "2".to_string()],
            checks: vec![Check::equal("a", 1, 2, Unit::Count)],
        }],
        ..Report::default()
    };
    assert_eq!(report.table(false), "a     long name\n1000  2\n");
    let expected = "| a    | long name |\n| ---  | ---       |\n| 1000 | 2         |\n";
    assert_eq!(report.table(true), expected);
    assert_eq!(report.missed().count(), 1);
}
