//! The project's own commands. `cargo xtask help` lists them.

mod bench;
mod ci;
mod explore;
mod features;
mod mutants;
mod page;
mod prove;
mod redis;
mod sanitize;
mod shell;
mod soak;
mod tidy;
mod tool;
mod watched;

use std::{env, process::ExitCode};

const HELP: &str = "\
cargo xtask COMMAND

  ci [STEP...]     all that CI does, or the steps named; `ci list` names them
  bench [AREA...]  figures against peers, of all areas or of some (`loop`, `loop/timers`), and a summary of the targets;
                   --check fails if one is lost, --write renews the documents, --json PATH says where to leave them
  bench counts     instructions of hot paths; --check fails if one has grown, --write renews them
  bench documents  makes FIGURES.md, the README's summary and the chart anew of bench/figures
  soak AREA        work without end, counted twice: loop (--seconds N, 60), timeout and dag (RUNS=N, 20),
                   signals (--rounds N, 200), mailbox (--rounds N, 50; --seed N)
  page             the page of a run, opened in a browser; screenshots are left in target/page
  explore          a whole program, another one for each seed, with faults and stops (--seeds N, 100000; --from S),
                   or one with a bug that must be found (--twin NAME)
  prove            all that speaks for the product, and how much was explored (--quick; --only NAME,NAME; --write puts
                   the table into PROOF.md); `prove list` names the proofs
  sanitize         the test suites under the address and leak sanitizers
  help             this text
";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["ci", steps @ ..] => ci::run(steps),
        ["bench", args @ ..] => bench::run(args),
        ["soak", args @ ..] => soak::run(args),
        ["page"] => page::run(),
        ["explore", args @ ..] => explore::run(args),
        ["prove", args @ ..] => prove::run(args),
        ["sanitize"] => sanitize::run(),
        ["help" | "--help" | "-h"] | [] => {
            print!("{HELP}");
            Ok(())
        }
        [unknown, ..] => Err(format!("there is no command {unknown:?}\n\n{HELP}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
