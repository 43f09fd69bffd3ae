//! Every figure of the README, against peers, in one run. Run by `cargo xtask bench AREA`.

mod contest;
mod lifecycle;
mod r#loop;

use std::{env, fs, process::ExitCode};

use contest::Table;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (area, file) = match args.as_slice() {
        [area] => (*area, None),
        [area, "--write", file] => (*area, Some(*file)),
        _ => {
            eprintln!("usage: ebbtide-bench AREA [--write FILE]");
            return ExitCode::FAILURE;
        }
    };
    let tables: Vec<Table> = match area {
        "lifecycle" => lifecycle::run(),
        "loop" => r#loop::run(),
        _ => {
            eprintln!("there is no area {area:?}");
            return ExitCode::FAILURE;
        }
    };
    let markdown: Vec<String> = tables.iter().map(Table::to_string).collect();
    let markdown = markdown.join("\n");
    println!("\n{markdown}");
    if let Some(file) = file
        && let Err(error) = fs::write(file, markdown)
    {
        eprintln!("{file}: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
