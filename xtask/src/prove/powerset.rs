//! Each crate builds with every set of its features; the facade, which has too many, with those of `cargo xtask ci
//! features`.

use super::{finding::Finding, proof::Tier, watch::watch};
use crate::{
    features,
    shell::{cargo, crates, package, read, root},
};

pub(super) fn run(_: Tier) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for folder in crates()? {
        if folder == "ebbtide" {
            let sets =
                features::check().map_err(|why| format!("{why}\nrepeat it: cargo xtask ci features"))?;
            findings.push(Finding::new(folder, sets, "sets of features"));
            continue;
        }
        let manifest = read(root().join("crates").join(&folder).join("Cargo.toml"))?;
        let sets = powerset(&features::names(&manifest));
        for set in &sets {
            let which = if set.is_empty() { String::new() } else { format!("--features {}", set.join(",")) };
            let command =
                format!("check --quiet --package {} --no-default-features {which}", package(&folder));
            watch(&mut cargo(&command))?;
        }
        findings.push(Finding::new(folder, sets.len() as u64, "sets of features"));
    }
    Ok(findings)
}

fn powerset<'a>(features: &[&'a str]) -> Vec<Vec<&'a str>> {
    let named: Vec<_> = features.iter().copied().filter(|name| *name != "default").collect();
    let chosen = |set: usize| {
        named.iter().enumerate().filter(move |(index, _)| set >> index & 1 == 1).map(|(_, name)| *name)
    };
    (0..1 << named.len()).map(|set| chosen(set).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_there_once_and_default_is_no_choice() {
        assert_eq!(powerset(&["default", "a", "b"]), [vec![], vec!["a"], vec!["b"], vec!["a", "b"]]);
        assert_eq!(powerset(&[]), [vec![""; 0]]);
    }
}
