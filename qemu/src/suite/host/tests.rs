use super::*;

#[test]
fn cargos_counts_add_up() {
    let text = "\
test a ... ok
test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.2s
";
    assert_eq!(counts(text), (15, 2));
    assert_eq!(counts("error: could not compile"), (0, 0));
}
