//! Runs the figures that this stack is held to, in virtual time, and prints them.

use paceline_stack::sim::figures::{ALL, Effort, Figure, Report};
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

const HELP: &str = "\
Runs the figures that this stack is held to, in virtual time, and prints each as a table with its
lines. Exits with 1 when one is missed.

usage: cargo run -p paceline-stack --example seeds --features sim --release -- [OPTION]...

  --only NAME       only this figure; may be given more than once
  --quick           fewer points and shorter runs
  --out DIR         where the plots go (default: target/seeds)
  --tables DIR      writes the tables, too, as NAME.txt
  --markdown FILE   writes the page of figures, too; its plots go into a folder beside it
  --list            names the figures
  --help            this text
";

struct Options {
    only: Vec<String>,
    quick: bool,
    out: PathBuf,
    tables: Option<PathBuf>,
    markdown: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("seeds: {error}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("seeds: {error}");
            ExitCode::from(2)
        }
    }
}

/// The options; none when all was said already.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options = Options {
        only: Vec::new(),
        quick: false,
        out: PathBuf::from("target/seeds"),
        tables: None,
        markdown: None,
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} wants a value"));
        match &*argument {
            "--only" => {
                let name = value()?;
                if !ALL.iter().any(|figure| figure.name == name) {
                    return Err(format!(
                        "no figure {name}; there are {}",
                        names().join(", ")
                    ));
                }
                options.only.push(name);
            }
            "--quick" => options.quick = true,
            "--out" => options.out = value()?.into(),
            "--tables" => options.tables = Some(value()?.into()),
            "--markdown" => options.markdown = Some(value()?.into()),
            "--list" => {
                for figure in ALL {
                    println!("{:16} {}", figure.name, figure.title);
                }
                return Ok(None);
            }
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(None);
            }
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(Some(options))
}

fn names() -> Vec<&'static str> {
    ALL.iter().map(|figure| figure.name).collect()
}

/// Runs what is wanted; whether all lines were kept.
fn run(options: &Options) -> Result<bool, String> {
    let mut page = String::from(
        "# Figures\n\nWhat this stack is held to, measured in virtual time on its simulator. \
         Written by\n`cargo run -p paceline-stack --example seeds --features sim --release -- \
         --markdown stack/docs/figures.md`;\n`cargo test -p paceline-stack --test seeds` checks \
         the same lines.\n",
    );
    let page_plots = options
        .markdown
        .as_deref()
        .map(|file| file.with_extension(""));
    let mut missed = 0;
    for figure in ALL {
        if !options.only.is_empty() && !options.only.iter().any(|name| name == figure.name) {
            continue;
        }
        println!("{}: {}\n", figure.name, figure.title);
        let start = Instant::now();
        let effort = Effort {
            quick: options.quick,
            progress: &|what| eprintln!("    {what} ..."),
        };
        let report = (figure.run)(&effort);
        println!("{}\n\n{}", report.intro, report.table(false));
        for check in report.rows.iter().flat_map(|row| &row.checks) {
            let word = if check.met { "ok    " } else { "MISSED" };
            println!(
                "{word} {}: expected {}, got {}",
                check.what, check.expected, check.got
            );
        }
        missed += report.missed().count();
        println!("\n{:.1} s\n", start.elapsed().as_secs_f64());
        for (name, chart) in &report.charts {
            write(&options.out.join(format!("{name}.svg")), &chart.svg())?;
            if let Some(plots) = &page_plots {
                write(&plots.join(format!("{name}.svg")), &chart.svg())?;
            }
        }
        if let Some(folder) = &options.tables {
            let file = folder.join(format!("{}.txt", figure.name));
            write(&file, &report.table(false))?;
        }
        section(&mut page, figure, &report, page_plots.as_deref());
    }
    if let Some(file) = &options.markdown {
        write(file, &page)?;
    }
    match missed {
        0 => println!("all lines kept"),
        missed => println!("{missed} missed"),
    }
    Ok(missed == 0)
}

/// A figure's part of the page.
fn section(page: &mut String, figure: &Figure, report: &Report, plots: Option<&Path>) {
    let _ = write!(
        page,
        "\n## {}\n\n{}\n\n{}\n",
        figure.title,
        report.intro,
        report.table(true)
    );
    page.push_str("| line | expected | got | |\n| --- | --- | --- | --- |\n");
    for check in report.rows.iter().flat_map(|row| &row.checks) {
        let word = if check.met { "ok" } else { "**missed**" };
        let _ = writeln!(
            page,
            "| {} | {} | {} | {word} |",
            check.what, check.expected, check.got
        );
    }
    let folder = plots.and_then(Path::file_name).unwrap_or_default();
    for (name, chart) in &report.charts {
        let folder = folder.display();
        let _ = write!(page, "\n![{}]({folder}/{name}.svg)\n", chart.title);
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let error = |error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(error)?;
    }
    fs::write(path, text).map_err(error)
}
