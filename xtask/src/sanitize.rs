//! `cargo xtask sanitize`: the suites of the crates with `unsafe` in them, under the address and leak sanitizers.

use crate::shell::{cargo, crates, package, root, run as shell};

/// The sanitizers need a target to be named, and a compiler that lets a stable toolchain use them.
const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run() -> Result<(), String> {
    for folder in crates()? {
        if !root().join("crates").join(&folder).join("tests/suite/main.rs").is_file() {
            continue;
        }
        let package = package(&folder);
        let mut test = cargo(&format!("test --release --target {TARGET} --package {package} --test suite"));
        test.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address");
        shell(test.env("CARGO_TARGET_DIR", "target/sanitize"))?;
    }
    Ok(())
}
