//! What hot paths cost, in instructions, which come out the same on a busy machine.

use super::{finding::Finding, proof::Tier};
use crate::bench::counts;

pub(super) fn run(_: Tier) -> Result<Vec<Finding>, String> {
    let paths =
        counts::hold().map_err(|why| format!("{why}\nrepeat it: cargo xtask bench counts --check"))?;
    Ok(paths.into_iter().map(|path| Finding::new(path, 1, "no dearer")).collect())
}
