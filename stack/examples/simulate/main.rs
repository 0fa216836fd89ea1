//! Runs a scenario in virtual time and tells, writes or draws what happened.

mod args;
mod report;
mod scenario;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match args::parse(&arguments) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => {
            print!("{}", args::help());
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("simulate: {error}; --help tells more");
            return ExitCode::from(2);
        }
    };
    match scenario::run(&parsed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simulate: {error}");
            ExitCode::FAILURE
        }
    }
}
