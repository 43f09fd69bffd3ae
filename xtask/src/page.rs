//! `cargo xtask page`: the page of a run, looked at in a browser.
//!
//! It is opened in light and in dark, and its screenshots are left in `target/page`. What can be checked without eyes
//! is: that its script has run to its end, that the nodes are there, that the table sorts, and that the colours follow
//! the reader's.

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

/// Names that the page of the example shows.
const NODES: &[&str] =
    &["viewer", "recommendation", "trends_of_the_region_and_season", "ads", "score_follow", "take"];

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
    let read_page = folder.join("read.html");
    write(&read_page, &read(&page)?.replace("</body>", &format!("{READER}</body>")))?;
    for (scheme, number, ground) in SCHEMES {
        let open = |act: &str, page: &Path| open(browser, &folder, number, act, page);
        let picture = folder.join(format!("{scheme}.png"));
        open(&format!("--screenshot={}", picture.display()), &page)?;
        let dom = open("--dump-dom", &read_page)?;
        check(&dom, ground).map_err(|what| format!("{}, in {scheme}: {what}", page.display()))?;
        println!("{}", picture.display());
    }
    let plan = folder.join("plan.png");
    open(browser, &folder, 1, &format!("--screenshot={}", plan.display()), &folder.join("feed.svg"))?;
    println!("{}", plan.display());
    Ok(())
}

/// Opens a page in a browser without a window. Gives what it prints.
fn open(browser: &str, folder: &Path, scheme: u8, act: &str, page: &Path) -> Result<String, String> {
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
    command.args(["--window-size=1280,1900", "--virtual-time-budget=3000"]);
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
fn check(dom: &str, ground: &str) -> Result<(), String> {
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
    if let Some(missing) = NODES.iter().find(|name| !dom.contains(&format!("<code>{name}</code>"))) {
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
        assert_eq!(check(&dom(html, [-1, 10]), "white"), Ok(()));
        assert!(check(&dom(html, [10, 9]), "white").unwrap_err().contains("not sorted"));
        assert!(check(&dom(html, [9, 10]), "black").unwrap_err().contains("ground"));
        assert!(check(&dom("data-ground=\"white\"", [9, 10]), "white").unwrap_err().contains("to its end"));
        let failed = format!("{html} data-error=\"oops\"");
        assert!(check(&dom(&failed, [9, 10]), "white").unwrap_err().contains("oops"));
        let nameless = dom(html, [9, 10]).replace("ads", "");
        assert!(check(&nameless, "white").unwrap_err().contains("no node ads"));
    }
}
