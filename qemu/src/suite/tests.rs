use std::collections::BTreeSet;

use super::*;

#[test]
fn steps_have_distinct_names() {
    let steps = steps();
    let names: BTreeSet<_> = steps.iter().map(|step| &step.name).collect();
    assert_eq!(names.len(), steps.len());
}

#[test]
fn filters_choose_by_substring() {
    let filters = ["q35".to_owned(), "xen:".to_owned()];
    assert!(selected("q35: poweroff", &filters));
    assert!(selected("xen: xl shutdown", &filters));
    assert!(!selected("host: cargo test", &filters));
    assert!(selected("host: cargo test", &[]));
}
