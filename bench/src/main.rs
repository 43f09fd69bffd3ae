//! Every figure of `FIGURES.md`, against peers, in one run. Run by `cargo xtask bench`.

mod areas;
mod contest;
mod counts;
mod dag;
mod engine;
mod lifecycle;
mod r#loop;
mod mailbox;
mod memory;
mod offload;
mod peers;
mod shutdown;
mod table;
mod timeout;

use std::{env, process::ExitCode};

const USAGE: &str = "\
ebbtide-bench AREA/PART       measures it, and prints a line for each row: see FIELDS in table.rs
ebbtide-bench parts           what there is to measure, and what each needs
ebbtide-bench count PATH N    runs so many operations of a path, for their instructions to be counted
ebbtide-bench paths           the paths, and how many operations to count";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<(), String> {
    match args {
        ["parts"] => print!("{}", areas::list()),
        ["paths"] => print!("{}", counts::list()),
        ["count", path, operations] => counts::run_path(path, operations)?,
        // What is measured in a process of its own.
        ["serve", server, requests] => r#loop::serve(server, requests)?,
        ["memory", who, what] => memory::measure_in_this_process(who, what)?,
        ["serve-bare"] => engine::serve_bare()?,
        [name] => {
            let part = areas::find(name).ok_or_else(|| format!("there is no {name:?}\n{USAGE}"))?;
            println!("{}", table::FIELDS);
            for table in (part.run)() {
                print!("{table}");
            }
        }
        _ => return Err(USAGE.to_owned()),
    }
    Ok(())
}
