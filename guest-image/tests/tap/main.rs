//! The stack and its iperf3 server against Linux's TCP and stock tools.
//!
//! `cargo test -p paceline-guest --test tap` runs them all; without root they are ignored.

mod cases;
mod endpoint;

use libtest_mimic::{Arguments, Failed, Trial};
use paceline_host::{Mode, Namespace};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("endpoint") {
        let name = args.next();
        let Some(mode) = Mode::ALL
            .into_iter()
            .find(|mode| Some(mode.name()) == name.as_deref())
        else {
            eprintln!("endpoint: no mode {name:?}");
            return ExitCode::FAILURE;
        };
        return match endpoint::run(mode) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("endpoint: {error}");
                ExitCode::FAILURE
            }
        };
    }

    let mut arguments = Arguments::from_args();
    // They share the machine's two or so processors with the endpoint.
    arguments.test_threads = Some(1);
    let missing = paceline_host::missing(&["ping"]);
    if let Some(reason) = &missing {
        eprintln!("tap: skipped: {reason}");
    }
    // Messages are printed with the failures.
    panic::set_hook(Box::new(|panic| {
        if let Some(location) = panic.location() {
            eprintln!("panicked at {location}");
        }
    }));
    let mut trials = Vec::new();
    for mode in Mode::ALL {
        let place = Arc::new(Place::new(mode));
        let cases = match mode {
            Mode::Offloads | Mode::Plain => cases::ALL,
            Mode::Lossy => cases::LOSSY,
        };
        for (name, case) in cases {
            let place = Arc::clone(&place);
            trials.push(
                Trial::test(format!("{}::{name}", mode.name()), move || place.run(*case))
                    .with_ignored_flag(missing.is_some()),
            );
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The namespace of one mode, started by the first test that needs it.
struct Place {
    mode: Mode,
    namespace: Mutex<Option<Namespace>>,
}

impl Place {
    fn new(mode: Mode) -> Self {
        Self {
            mode,
            namespace: Mutex::new(None),
        }
    }

    fn run(&self, case: fn(&Namespace)) -> Result<(), Failed> {
        let mut place = self.namespace.lock().expect("panics are caught");
        let namespace = match &mut *place {
            Some(namespace) => namespace,
            none => none.insert(endpoint::start(self.mode)?),
        };
        let logged = namespace.log().len();
        let result = catch_unwind(AssertUnwindSafe(|| case(namespace)));
        let log = namespace.log().split_off(logged);
        let running = namespace.is_running();
        if !running || result.is_err() {
            // The next test starts afresh.
            *place = None;
        }
        match result {
            Ok(()) if running => Ok(()),
            Ok(()) => Err(format!("the endpoint died:\n{log}").into()),
            Err(panic) => {
                let message = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied())
                    .unwrap_or("panic");
                let state = if running { "runs" } else { "died" };
                Err(format!("{message}\nThe endpoint {state}; it logged:\n{log}").into())
            }
        }
    }
}
