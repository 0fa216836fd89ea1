//! The packet scripts of this stack: every file below `tests/scripts` is a case of its own.

use paceline_stack::script::{Settings, Verdict, run, run_traced};
use std::{
    fs, panic,
    path::{Path, PathBuf},
};

/// All scripts below `folder`, in the order of their names.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(scripts(&path));
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

#[test]
fn every_script_holds() {
    let folder = folder();
    let files = scripts(&folder);
    assert!(files.len() >= 100, "only {} scripts", files.len());
    let mut wrong = Vec::new();
    for path in &files {
        let name = path.strip_prefix(&folder).expect("below").display();
        let text = fs::read_to_string(path).expect("a text");
        let mut trace = Vec::new();
        let verdict = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            run_traced(&text, &Settings::default(), &mut |line| {
                trace.push(line.to_owned());
            })
        }));
        match verdict {
            Ok(Verdict::Ok) => println!("ok   {name}"),
            // What is skipped proves nothing, so it counts as wrong too.
            Ok(verdict) => wrong.push(format!("{name}: {verdict}\n  {}", trace.join("\n  "))),
            Err(_) => wrong.push(format!("{name}: panic\n  {}", trace.join("\n  "))),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_script_says_what_it_checks() {
    for path in scripts(&folder()) {
        let text = fs::read_to_string(&path).expect("a text");
        let comment: String = text
            .lines()
            .take_while(|line| line.starts_with("//"))
            .collect();
        let names_its_rule = ["RFC ", "Linux", "draft"]
            .iter()
            .any(|word| comment.contains(word));
        assert!(names_its_rule, "{} names no rule", path.display());
    }
}

#[test]
fn no_prefix_of_a_script_panics() {
    let settings = Settings::default();
    for path in scripts(&folder()).iter().step_by(7) {
        let text = fs::read_to_string(path).expect("a text");
        let ends: Vec<_> = text.char_indices().map(|(at, _)| at).step_by(13).collect();
        for end in ends {
            run(&text[..end], &settings);
        }
    }
}
