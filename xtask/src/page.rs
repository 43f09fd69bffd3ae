//! `cargo xtask page`: pages of runs, looked at in a browser: that of an example in which much goes wrong, and that of
//! `ebbtide run --report`.
//!
//! They are opened in light and in dark, and on windows of several widths, and their screenshots are left in
//! `target/page`. What can be checked without eyes is: that their script has run to its end, that the nodes are there,
//! that the table sorts, and that the colours follow the reader's.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    shell::{cargo, line, output, read, root, run as shell, write},
    tool::Tool,
};

const BROWSER: Tool = Tool {
    programs: &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
    package: "chromium",
    needed_by: "looks at a page",
    otherwise: "`dnf install chromium`, or `brew install --cask chromium`",
};

/// Names that the page of the example shows, and that of the program.
const NODES: &[&str] =
    &["viewer", "recommendation", "trends_of_the_region_and_season", "ads", "score_follow", "take"];
const NODES_OF_PLAN: &[&str] =
    &["viewer", "follow", "recommended_media", "candidates", "ranked", "fresh", "sorted", "top"];

/// A screen as most have it, a wide one, and one in the hand.
const WIDTHS: [u32; 3] = [1280, 1920, 500];

/// What a reader may prefer: the name, the browser's number for it, and the ground of the page.
const SCHEMES: [(&str, u8, &str); 2] = [("light", 1, "rgb(255, 255, 255)"), ("dark", 0, "rgb(14, 21, 27)")];

/// What a reader does and sees: presses the heading of the sixth column, and looks at the colour of the ground.
const READER: &str = "<script>document.querySelectorAll('thead button')[5].click();\
    document.documentElement.dataset.ground = getComputedStyle(document.documentElement).backgroundColor;</script>";

pub(crate) fn run() -> Result<(), String> {
    let browser = BROWSER.install()?;
    let folder = root().join("target/page");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let page = folder.join("feed.html");
    let example = "run --quiet --package ebbtide-dag --features page --example page --";
    shell(cargo(example).arg(&page))?;
    look_at(browser, &folder, &page, NODES)?;
    let of_plan = folder.join("run.html");
    let program = "run --quiet --package ebbtide-cli -- run plans/feed.json --report";
    shell(cargo(program).arg(&of_plan))?;
    look_at(browser, &folder, &of_plan, NODES_OF_PLAN)?;
    let plan = folder.join("plan.png");
    let act = format!("--screenshot={}", plan.display());
    open(browser, &folder, (1, WIDTHS[0]), &act, &folder.join("feed.svg"))?;
    println!("{}", plan.display());
    Ok(())
}

/// Opens a page in each scheme and width, leaves the pictures beside it, and checks what is there.
fn look_at(browser: &str, folder: &Path, page: &Path, nodes: &[&str]) -> Result<(), String> {
    let name = page.file_stem().unwrap_or_default().display();
    let read_page = folder.join(format!("{name}-read.html"));
    write(&read_page, &read(page)?.replace("</body>", &format!("{READER}</body>")))?;
    for (scheme, number, ground) in SCHEMES {
        for width in WIDTHS {
            let picture = folder.join(format!("{name}-{scheme}-{width}.png"));
            let act = format!("--screenshot={}", picture.display());
            open(browser, folder, (number, width), &act, page)?;
            println!("{}", picture.display());
        }
        let dom = open(browser, folder, (number, WIDTHS[0]), "--dump-dom", &read_page)?;
        check(&dom, ground, nodes).map_err(|what| format!("{}, in {scheme}: {what}", page.display()))?;
    }
    Ok(())
}

/// Opens a page in a browser without a window, in a scheme and a width. Gives what it prints.
fn open(
    browser: &str,
    folder: &Path,
    (scheme, width): (u8, u32),
    act: &str,
    page: &Path,
) -> Result<String, String> {
    let profile: PathBuf = folder.join("profile");
    let mut command = Command::new(browser);
    // The page is our own, and a sandbox cannot be had in most containers. The budget lets it paint to the end.
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    ]);
    command.arg(format!("--window-size={width},1900")).arg("--virtual-time-budget=3000");
    command.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
    command.arg(format!("--user-data-dir={}", profile.display())).arg(act);
    command.arg(format!("file://{}", page.display()));
    let output = output(&mut command)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("this command failed ({}):\n  {}\n{said}", output.status, line(&command)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether the page, as the browser has it after the reader was there, is right.
fn check(dom: &str, ground: &str, nodes: &[&str]) -> Result<(), String> {
    let html =
        dom.split_once("<html").and_then(|(_, rest)| rest.split_once('>')).map_or("", |(html, _)| html);
    if let Some((_, error)) = html.split_once("data-error=") {
        return Err(format!("its script failed: {error}"));
    }
    if !html.contains("data-ready=\"yes\"") {
        return Err("its script has not run to its end".to_owned());
    }
    if !html.contains(&format!("data-ground=\"{ground}\"")) {
        return Err(format!("its ground is not {ground}: {html}"));
    }
    if let Some(missing) = nodes.iter().find(|name| !dom.contains(&format!("<code>{name}</code>"))) {
        return Err(format!("there is no node {missing}"));
    }
    if !dom.contains("aria-sort=\"ascending\"") {
        return Err("its table does not say how it is sorted".to_owned());
    }
    let ran = column(dom, 2);
    if ran.is_empty() || !ran.is_sorted() {
        return Err(format!("its table is not sorted: {ran:?}"));
    }
    Ok(())
}

/// The numbers by which the lines of the table are sorted, of one column of times.
fn column(dom: &str, nth: usize) -> Vec<i64> {
    let lines = dom.split("<tr id=").skip(1);
    lines.filter_map(|line| line.split("data-by=\"").nth(nth + 1)?.split_once('"')?.0.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dom(html: &str, ran: [i64; 2]) -> String {
        let nodes: String = NODES.iter().map(|name| format!("<code>{name}</code>")).collect();
        let times =
            |ran| format!("<td data-by=\"5\"></td><td data-by=\"6\"></td><td data-by=\"{ran}\"></td>");
        let [first, second] = ran.map(times);
        format!(
            "<html {html}>{nodes}<th aria-sort=\"ascending\"><tr id=\"n0\">{first}</tr><tr id=\"n1\">{second}</tr>"
        )
    }

    #[test]
    fn a_page_that_is_right_passes_and_others_do_not() {
        let html = "data-ready=\"yes\" data-ground=\"white\"";
        assert_eq!(check(&dom(html, [-1, 10]), "white", NODES), Ok(()));
        assert!(check(&dom(html, [10, 9]), "white", NODES).unwrap_err().contains("not sorted"));
        assert!(check(&dom(html, [9, 10]), "black", NODES).unwrap_err().contains("ground"));
        assert!(
            check(&dom("data-ground=\"white\"", [9, 10]), "white", NODES).unwrap_err().contains("to its end")
        );
        let failed = format!("{html} data-error=\"oops\"");
        assert!(check(&dom(&failed, [9, 10]), "white", NODES).unwrap_err().contains("oops"));
        let nameless = dom(html, [9, 10]).replace("ads", "");
        assert!(check(&nameless, "white", NODES).unwrap_err().contains("no node ads"));
    }
}
