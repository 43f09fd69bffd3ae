//! What is made of `bench/figures`: the tables of `FIGURES.md`, the summary in the README, and the chart.

use super::{
    chart, counts, markdown,
    table::{self, Table},
};
use crate::shell::{read, root, write};

/// Where the figures of an area are kept, from the root.
pub(crate) fn file(area: &str) -> String {
    format!("bench/figures/{area}.tsv")
}

/// Where the chart is, from the root.
const CHART: &str = "bench/figures/chart.svg";

const BEGIN: &str = "<!-- figures: ";
const END: &str = "<!-- end of figures -->";

/// A document and its text.
type Document = (&'static str, String);

/// The documents as they should be, of those that there are and of the figures. `read` gives a file by its path.
/// Areas are shown in the order of their blocks in `FIGURES.md`.
pub(crate) fn made(read: impl Fn(&str) -> Result<String, String>) -> Result<[Document; 3], String> {
    let (mut tables, readme) = (read("FIGURES.md")?, read("README.md")?);
    let names: Vec<String> = blocks(&tables).map(str::to_owned).collect();
    let mut areas: Vec<(String, Vec<Table>)> = Vec::new();
    for area in names {
        let figures = read(&file(&area))?;
        if area == counts::AREA {
            tables = put(&tables, &area, &counts::markdown(&figures)?)?;
            continue;
        }
        let figures = table::read(&figures).map_err(|why| format!("{}: {why}", file(&area)))?;
        let text: Vec<_> = figures.iter().map(markdown::table).collect();
        tables = put(&tables, &area, &text.join("\n"))?;
        areas.push((area, figures));
    }
    let readme = put(&readme, "summary", &markdown::summary(&areas))?;
    Ok([("FIGURES.md", tables), ("README.md", readme), (CHART, chart::svg(&areas))])
}

/// Makes them of what there is.
pub(super) fn write_all() -> Result<(), String> {
    for (path, text) in made(|path| read(root().join(path)))? {
        write(root().join(path), &text)?;
        println!("wrote {path}");
    }
    Ok(())
}

/// What the blocks of a document are called.
pub(crate) fn blocks(document: &str) -> impl Iterator<Item = &str> {
    document.lines().filter_map(|line| line.strip_prefix(BEGIN)?.strip_suffix(" -->"))
}

/// The document with `figures` in the block of that name.
fn put(document: &str, name: &str, figures: &str) -> Result<String, String> {
    let begin = format!("{BEGIN}{name} -->\n");
    let (before, rest) =
        document.split_once(&begin).ok_or_else(|| format!("there is no line {}", begin.trim()))?;
    let (_, after) =
        rest.split_once(END).ok_or_else(|| format!("there is no line {END} after {}", begin.trim()))?;
    Ok(format!("{before}{begin}{}\n{END}{after}", figures.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_put_into_their_own_block() {
        let document = "a\n<!-- figures: x -->\n1\n<!-- end of figures -->\n<!-- figures: y -->\n2\n<!-- end of figures -->\n";
        assert_eq!(blocks(document).collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(put(document, "y", "3\n"), Ok(document.replace('2', "3")));
        assert!(put(document, "z", "").unwrap_err().contains("figures: z"));
    }
}
