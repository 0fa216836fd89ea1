//! Two stacks, a network and applications drawn from bytes: what must hold of them does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline_stack::sim::gauntlet;

fuzz_target!(|bytes: &[u8]| {
    if let Err(fault) = gauntlet::run(bytes) {
        panic!("{fault}");
    }
});
