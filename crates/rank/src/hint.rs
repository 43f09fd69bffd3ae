//! The name that was probably meant.

use ebbtide_dag::json::nearest;

/// As it stands behind a message: empty, if nothing is near.
pub(crate) fn did_you_mean<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    nearest(word, names).map_or_else(String::new, |name| format!(" (did you mean \"{name}\"?)"))
}
