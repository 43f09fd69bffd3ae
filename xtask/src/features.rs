//! The facade builds with any of its features, not only with those that somebody happens to use together.

use crate::shell::{cargo, read, root, run as shell};

/// Those that are crates of their own, and so may need each other: they are checked in pairs as well.
const CRATES: &[&str] = &["dag", "mailbox", "offload", "reactor", "redis", "shutdown", "timeout"];

/// What `App` needs: it looks different with each of the others.
const APP: [&str; 2] = ["reactor", "shutdown"];

/// Without features, with each alone, with each pair of crates, with each beside an `App`, with all. Gives how many
/// sets those are.
pub(crate) fn check() -> Result<u64, String> {
    let manifest = read(root().join("crates/ebbtide/Cargo.toml"))?;
    let features = names(&manifest);
    let sets = sets(&features)?;
    for set in &sets {
        // Clippy, so that a warning in one of them is an error, and nothing else is built again for that.
        let command = "clippy --quiet --package ebbtide --lib --no-default-features";
        let which = if set.is_empty() { String::new() } else { format!("--features {}", set.join(",")) };
        shell(&mut cargo(&format!("{command} {which} -- --deny warnings")))?;
    }
    shell(&mut cargo("clippy --quiet --package ebbtide --lib --all-features -- --deny warnings"))?;
    Ok(sets.len() as u64 + 1)
}

/// The features of a manifest, in its order.
pub(crate) fn names(manifest: &str) -> Vec<&str> {
    let below = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let lines = below.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| Some(line.split_once(" = ")?.0)).filter(|name| !name.starts_with('#')).collect()
}

fn sets<'a>(features: &[&'a str]) -> Result<Vec<Vec<&'a str>>, String> {
    if let Some(missing) = CRATES.iter().find(|name| !features.contains(name)) {
        return Err(format!("the facade has no feature {missing:?}, though there is a crate of that name"));
    }
    let mut sets = vec![Vec::new()];
    sets.extend(features.iter().map(|feature| vec![*feature]));
    let crates: Vec<_> = features.iter().filter(|feature| CRATES.contains(feature)).collect();
    for (index, first) in crates.iter().enumerate() {
        sets.extend(crates[index + 1..].iter().map(|second| vec![**first, **second]));
    }
    let others = features.iter().filter(|feature| !APP.contains(feature));
    sets.extend(others.map(|feature| vec![APP[0], APP[1], *feature]));
    Ok(sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_found_in_their_section_and_nowhere_else() {
        let manifest = "[package]\nname = \"a\"\n[features]\n# b = c\nd = []\n\ne-f = [\"d\"]\n[lints]\nworkspace = true\n";
        assert_eq!(names(manifest), ["d", "e-f"]);
    }

    #[test]
    fn there_is_none_each_alone_each_pair_of_crates_and_each_beside_an_app() {
        let features: Vec<_> = CRATES.iter().copied().chain(["json"]).collect();
        let sets = sets(&features).unwrap();
        assert_eq!(sets.len(), 1 + 8 + 7 * 6 / 2 + 6);
        for set in [vec![], vec!["json"], vec!["dag", "redis"], vec!["reactor", "shutdown", "json"]] {
            assert!(sets.contains(&set), "{set:?}");
        }
        assert!(!sets.contains(&vec!["dag", "json"]));
    }

    #[test]
    fn a_crate_without_a_feature_is_told() {
        assert!(sets(&CRATES[1..]).is_err());
    }
}
