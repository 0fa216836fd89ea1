//! `cargo qemu test`: every test this machine can run, a line each, a count at the end.

mod host;
mod plain;
mod xen;

use std::{process::ExitCode, time::Instant};

use anyhow::Result;

use crate::{
    cli::{RigOptions, TestOptions},
    guest::{self, Image},
    tools,
    workspace::Workspace,
};

/// How a step ended when it did not fail.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Outcome {
    /// This many tests passed and this many failed.
    Counted { passed: u32, failed: u32 },
    /// It passed.
    Passed,
}

/// What a step does.
#[derive(Clone, Copy)]
enum Action {
    Host(fn(&Workspace) -> Result<Outcome>),
    Plain(crate::plain::Model, fn(&mut plain::Bench<'_>) -> Result<()>),
    Xen(fn(&mut xen::Bench<'_>) -> Result<()>),
}

struct Step {
    name: String,
    action: Action,
}

fn steps() -> Vec<Step> {
    let mut steps = host::steps();
    steps.extend(plain::steps());
    steps.extend(xen::steps());
    steps
}

/// Runs the command.
pub(crate) fn run(workspace: &Workspace, options: &TestOptions) -> ExitCode {
    let chosen: Vec<_> = steps()
        .into_iter()
        .filter(|step| selected(&step.name, &options.filters))
        .collect();
    if options.list {
        for step in &chosen {
            println!("{}", step.name);
        }
        return ExitCode::SUCCESS;
    }
    let mut run = Run {
        workspace,
        options: &options.rig,
        image: None,
        xen: None,
        passed: 0,
        failures: Vec::new(),
    };
    for step in &chosen {
        run.step(step);
    }
    let Run {
        passed, failures, ..
    } = run;
    if !failures.is_empty() {
        println!("\nfailed:");
        for (name, _) in &failures {
            println!("  {name}");
        }
    }
    let failed: u32 = failures.iter().map(|(_, count)| count).sum();
    println!("\n{passed} passed, {failed} failed");
    if failed == 0 && passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn selected(name: &str, filters: &[String]) -> bool {
    filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
}

/// A run in progress. Guests are built and booted when the first step needs them.
struct Run<'a> {
    workspace: &'a Workspace,
    options: &'a RigOptions,
    image: Option<Image>,
    xen: Option<xen::Bench<'a>>,
    passed: u32,
    /// Steps that failed, with the number of tests that did.
    failures: Vec<(String, u32)>,
}

impl Run<'_> {
    fn step(&mut self, step: &Step) {
        let Step { name, action } = step;
        let start = Instant::now();
        let outcome = self.act(*action);
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(Outcome::Passed) => {
                self.passed += 1;
                println!("ok       {seconds:6.1} s  {name}");
            }
            Ok(Outcome::Counted { passed, failed }) => {
                self.passed += passed;
                let word = if failed == 0 { "ok     " } else { "FAILED " };
                println!("{word}  {seconds:6.1} s  {name}: {passed} passed, {failed} failed");
                if failed > 0 {
                    self.failures.push((name.clone(), failed));
                }
            }
            Err(error) => {
                println!("FAILED   {seconds:6.1} s  {name}\n{error:#}\n");
                self.failures.push((name.clone(), 1));
            }
        }
    }

    fn act(&mut self, action: Action) -> Result<Outcome> {
        match action {
            Action::Host(work) => work(self.workspace),
            Action::Plain(model, work) => {
                let (workspace, options) = (self.workspace, self.options);
                let image = self.image()?;
                let mut bench = plain::Bench::new(workspace, options, model, &image.path)?;
                work(&mut bench).map(|()| Outcome::Passed)
            }
            Action::Xen(work) => {
                let image = self.image()?.clone();
                let (workspace, options) = (self.workspace, self.options);
                let bench = self
                    .xen
                    .get_or_insert_with(|| xen::Bench::new(workspace, options, image));
                bench.run(work).map(|()| Outcome::Passed)
            }
        }
    }

    fn image(&mut self) -> Result<&Image> {
        match &mut self.image {
            Some(image) => Ok(image),
            empty => {
                tools::ensure(&[tools::MACHINE, tools::CLIENT])?;
                Ok(empty.insert(guest::build(self.workspace)?))
            }
        }
    }
}

#[cfg(test)]
mod tests;
