//! What must hold of the stack whatever network, machines, applications and peers it meets.
//!
//! `PROPTEST_CASES=10000 cargo test --release -p paceline-stack --test invariants` runs ten
//! thousand; the default is for every day. `stack/fuzz` draws the same runs by coverage.

use paceline_stack::sim::{barrage, gauntlet};
use proptest::{collection::vec, prelude::*};

/// Cases of an ordinary run.
const CASES: u32 = 200;

fn cases() -> u32 {
    let wanted = std::env::var("PROPTEST_CASES").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(CASES)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        max_shrink_iters: 500,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_the_network_does(bytes in vec(any::<u8>(), 0..256)) {
        gauntlet::run(&bytes).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn whatever_the_peer_sends(bytes in vec(any::<u8>(), 0..1024)) {
        barrage::run(&bytes).map_err(TestCaseError::fail)?;
    }
}
