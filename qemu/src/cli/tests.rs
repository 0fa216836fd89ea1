use lexopt::Parser;

use super::*;

fn parsed(words: &[&str]) -> Result<Command> {
    parse(Parser::from_args(words))
}

fn refused(words: &[&str]) -> String {
    format!("{:#}", parsed(words).expect_err("must be refused"))
}

#[test]
fn run_has_defaults() {
    assert_eq!(
        parsed(&["run"]).unwrap(),
        Command::Run(RunOptions::default())
    );
}

#[test]
fn run_takes_every_option() {
    let words = "run --guest both --time 9 --parallel=8 --rounds 3 --memory 32 --accel tcg \
                 --clock instructions --cmdline loglevel=7 --xen x --kernel k --modules m --tools t";
    let words: Vec<_> = words.split_whitespace().collect();
    let expected = RunOptions {
        guests: GuestChoice::Both,
        time_s: 9,
        flows: 8,
        rounds: 3,
        rig: RigOptions {
            accel: AccelChoice::Tcg,
            clock: Clock::Instructions,
            xen: Some("x".into()),
            kernel: Some("k".into()),
            modules: Some("m".into()),
            tools: Some("t".into()),
            memory_mib: Some(32),
            cmdline: "loglevel=7".to_owned(),
        },
    };
    assert_eq!(parsed(&words).unwrap(), Command::Run(expected));
}

#[test]
fn counting_instructions_takes_tcg_and_less_time() {
    for words in [
        &["run", "--clock", "instructions"][..],
        &["run", "--accel", "tcg", "--clock", "instructions"][..],
        &["run", "--clock", "instructions", "--time", "2"][..],
    ] {
        let Command::Run(options) = parsed(words).unwrap() else {
            panic!("not a run command");
        };
        assert_eq!(options.rig.clock, Clock::Instructions);
        assert_eq!(options.time_s, 2, "{words:?}");
    }
    // The order of the words says nothing.
    for words in [
        ["run", "--clock", "instructions", "--accel", "kvm"],
        ["run", "--accel", "kvm", "--clock", "instructions"],
    ] {
        let error = refused(&words);
        assert_eq!(
            error,
            "--clock instructions: expected --accel tcg or auto, got --accel kvm"
        );
    }
}

#[test]
fn test_takes_filters_under_both_names() {
    let Command::Test(options) = parsed(&["test", "--filter", "a", "--only", "b"]).unwrap() else {
        panic!("not a test command");
    };
    assert_eq!(options.filters, ["a", "b"]);
}

#[test]
fn every_command_has_help() {
    for command in ["run", "test", "shell", "clean"] {
        let Command::Help(text) = parsed(&[command, "--help"]).unwrap() else {
            panic!("{command} --help is no help");
        };
        assert!(
            text.contains(&format!("Usage: cargo qemu {command}")),
            "{text}"
        );
    }
    assert!(matches!(parsed(&["--help"]).unwrap(), Command::Help(_)));
}

#[test]
fn errors_name_what_was_expected() {
    for (words, expected) in [
        (&[][..], "expected one of run, test, shell, clean"),
        (
            &["boot"],
            "unknown command `boot`: expected one of run, test, shell, clean",
        ),
        (
            &["run", "--tim", "5"],
            "unknown option `--tim`: expected one of --guest, --time",
        ),
        (&["run", "-x"], "unknown option `-x`"),
        (
            &["run", "--time", "0"],
            "--time: expected a number from 1 to 3600, got `0`",
        ),
        (
            &["run", "--time", "ten"],
            "--time: expected a number from 1 to 3600, got `ten`",
        ),
        (
            &["run", "--guest", "bsd"],
            "--guest: expected paceline, linux or both, got `bsd`",
        ),
        (
            &["run", "--accel", "hvf"],
            "--accel: expected auto, kvm or tcg, got `hvf`",
        ),
        (
            &["run", "--clock", "tsc"],
            "--clock: expected host or instructions, got `tsc`",
        ),
        (
            &["test", "--clock", "instructions"],
            "unknown option `--clock`: expected one of --filter",
        ),
        (&["run", "--time"], "--time"),
        (&["clean", "--all"], "takes no options, got `--all`"),
    ] {
        let error = refused(words);
        assert!(error.contains(expected), "{words:?}: {error}");
    }
}

#[test]
fn files_that_are_not_there_are_told_at_once() {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut rig = RigOptions {
        xen: Some(here.join("Cargo.toml")),
        modules: Some(here.clone()),
        ..RigOptions::default()
    };
    rig.check().unwrap();
    rig.modules = Some(here.join("Cargo.toml"));
    assert!(
        rig.check()
            .unwrap_err()
            .to_string()
            .contains("--modules: expected a folder")
    );
    rig.modules = None;
    for wrong in [here.clone(), here.join("no such file")] {
        rig.xen = Some(wrong);
        assert!(
            rig.check()
                .unwrap_err()
                .to_string()
                .contains("--xen: expected a file")
        );
    }
}
