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

#[test]
fn failed_tests_are_named_and_their_output_is_cut() {
    let noise = "noise\n".repeat(TEST_LINES);
    let text = format!(
        "\
running 3 tests
test tcp::a ... ok
test tcp::b ... FAILED
test c - should panic ... FAILED

failures:

---- tcp::b stdout ----
panicked at b.rs:1
{noise}
---- c stdout ----
test d ... ok
panicked at c.rs:2

failures:
    tcp::b
    c

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.2s

running 1 test
test elsewhere ... FAILED

failures:

---- elsewhere ----
no panic, an error

failures:
    elsewhere

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s
"
    );
    let kept = "noise\n".repeat(TEST_LINES - 2);
    assert_eq!(
        failures(&text),
        format!(
            "\
---- tcp::b stdout ----
panicked at b.rs:1
{kept}---- c stdout ----
test d ... ok
panicked at c.rs:2

---- elsewhere ----
no panic, an error

FAILED tcp::b
FAILED c - should panic
FAILED elsewhere
"
        )
    );
    assert_eq!(
        failures("test a ... ok\ntest result: ok. 1 passed; 0 failed"),
        ""
    );
}
