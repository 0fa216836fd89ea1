//! Frames drawn from bytes at one stack: it does not panic, lose count or keep anything.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline_stack::sim::barrage;

fuzz_target!(|bytes: &[u8]| {
    if let Err(fault) = barrage::run(bytes) {
        panic!("{fault}");
    }
});
