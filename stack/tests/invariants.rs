//! What must hold of the stack whatever network, machines, applications and peers it meets.
//!
//! `PROPTEST_CASES=10000 cargo test --release -p paceline-stack --test invariants` runs ten
//! thousand; the default is for every day. `stack/fuzz` draws the same runs by coverage; what it
//! found worth keeping is in `stack/fuzz/seeds`, and is run here as well.

use paceline_stack::sim::{barrage, gauntlet};
use proptest::{collection::vec, prelude::*};
use std::{fs, path::Path};

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

/// Runs each seed of a fuzz target; there must be some.
fn seeds(target: &str, run: fn(&[u8]) -> Result<(), String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(target);
    let files =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut count = 0;
    for file in files {
        let path = file.unwrap().path();
        if let Err(fault) = run(&fs::read(&path).unwrap()) {
            panic!("{}: {fault}", path.display());
        }
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}

#[test]
fn seeds_of_the_gauntlet() {
    seeds("gauntlet", gauntlet::run);
}

#[test]
fn seeds_of_the_barrage() {
    seeds("barrage", barrage::run);
}
