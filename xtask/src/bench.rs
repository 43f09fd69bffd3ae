//! `cargo xtask bench AREA`: figures of the product against its peers, in one run.

use std::fs;

use crate::{
    redis,
    shell::{cargo, read, root, run as shell, write},
    tidy::figures,
};

/// What there is a benchmark for.
const AREAS: &[&str] = &["dag", "engine", "lifecycle", "loop", "mailbox", "offload", "shutdown", "timeout"];

pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let (areas, options): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| !arg.starts_with("--"));
    let write_figures = match options.as_slice() {
        [] => false,
        ["--write"] => true,
        _ => return Err(format!("the one option is --write, not {}", options.join(" "))),
    };
    let [area] = areas.as_slice() else {
        return Err(format!("name one area of: {}", AREAS.join(", ")));
    };
    // A part of an area can be run, but not written: `loop/timers`.
    let whole = if write_figures { *area } else { area.split('/').next().unwrap_or(area) };
    if !AREAS.contains(&whole) {
        return Err(format!("there is no area {area:?}; there are: {}", AREAS.join(", ")));
    }
    if *area == "mailbox" || *area == "mailbox/redis" || whole == "engine" {
        redis::install()?;
    }
    if whole == "engine" {
        // It runs the program, too.
        shell(&mut cargo("build --release --package ebbtide-cli"))?;
    }
    let file = root().join(figures::file(area));
    let mut bench = cargo("run --release --package ebbtide-bench --");
    bench.arg(area);
    if write_figures {
        let folder = file.parent().expect("a file of figures lies in a folder");
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        bench.arg("--write").arg(&file);
    }
    shell(&mut bench)?;
    if write_figures {
        let readme = root().join("README.md");
        write(&readme, &figures::put(&read(&readme)?, area, &read(&file)?)?)?;
        println!("wrote {} and its block in the README", figures::file(area));
    }
    Ok(())
}
