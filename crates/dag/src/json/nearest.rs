//! The name that was probably meant.

/// Longer names are not compared: nobody mistypes them.
const NAME_LEN_MAX: usize = 40;

/// A beginning of fewer letters says little.
const BEGINNING_MIN: usize = 4;

/// So many names are compared with an unknown one: the time that it takes grows with them.
const NAMES_TRIED_MAX: usize = 4096;

/// The most similar of `names`, if it is so similar that a slip of the hand explains the difference: a third of the
/// letters, three at most. For messages about other names than those in a plan.
///
/// ```
/// use ebbtide_dag::json::nearest;
///
/// assert_eq!(nearest("folow", ["viewer", "follow"]), Some("follow"));
/// assert_eq!(nearest("media", ["viewer", "follow"]), None);
/// ```
pub fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let word = letters(word)?;
    let most = (word.len() / 3).clamp(1, 3);
    let similar = names.into_iter().take(NAMES_TRIED_MAX).filter_map(|name| {
        let letters = letters(name).filter(|letters| letters.len().abs_diff(word.len()) <= most)?;
        let distance = distance(&word, &letters);
        // All names of one letter are similar.
        (distance <= most && distance < letters.len()).then_some((distance, name))
    });
    similar.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// The first of `names` that begins with the word, or that the word begins with: units are forgotten, or put in.
pub(super) fn same_beginning<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let is_long = |name: &str| name.len() >= BEGINNING_MIN;
    let begins = |name: &str| name.starts_with(word) || word.starts_with(name);
    names.into_iter().find(|name| is_long(word) && is_long(name) && begins(name))
}

fn letters(name: &str) -> Option<Vec<char>> {
    (name.len() <= NAME_LEN_MAX).then(|| name.chars().flat_map(char::to_lowercase).collect())
}

/// How many letters have to be put in, left out, replaced or swapped with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_is_missing_or_too_much_does_not_hide_the_name() {
        let names = ["a", "duration_ms", "share"];
        assert_eq!(same_beginning("duration", names), Some("duration_ms"));
        assert_eq!(same_beginning("share_percent", names), Some("share"));
        assert_eq!(same_beginning("dur", names), None);
        assert_eq!(same_beginning("about", names), None);
    }

    #[test]
    fn a_slip_of_the_hand_finds_the_name_and_another_word_does_not() {
        let names = ["follow", "viewer", "recs", "vm", "a"];
        let table = [
            ("folow", Some("follow")),
            ("ofllow", Some("follow")),
            ("Viewer", Some("viewer")),
            ("viewers", Some("viewer")),
            ("rces", Some("recs")),
            ("vn", Some("vm")),
            ("b", None),
            ("concat", None),
            ("", None),
        ];
        for (word, expected) in table {
            assert_eq!(nearest(word, names), expected, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(NAME_LEN_MAX + 1), [&*"x".repeat(NAME_LEN_MAX)]), None);
    }
}
