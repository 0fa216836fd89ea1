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
                 --cmdline loglevel=7 --xen x --kernel k --modules m --tools t";
    let words: Vec<_> = words.split_whitespace().collect();
    let expected = RunOptions {
        guests: GuestChoice::Both,
        time_s: 9,
        flows: 8,
        rounds: 3,
        rig: RigOptions {
            accel: AccelChoice::Tcg,
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
