//! Running other programs, and finding things in the tree.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::watched::Watched;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask lies in the workspace's root").to_owned()
}

/// A cargo command, in the workspace's root.
pub(crate) fn cargo(args: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args.split_whitespace()).current_dir(root());
    command
}

/// The command as one would type it.
pub(crate) fn line(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={:?} ", name.to_str()?, value?.to_str()?)));
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
    let args = command.get_args().map(|arg| format!(" {}", arg.to_string_lossy()));
    variables.chain([program.into_owned()]).chain(args).collect()
}

/// No command takes as long: the longest, which build everything or measure a whole area, take minutes, also on a busy
/// machine. One that does hangs.
const COMMAND_MAX: Duration = Duration::from_secs(3600);

/// Echoes the command, runs it, and fails with it.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    run_within(command, COMMAND_MAX)
}

/// The same for one that may take this long, and no longer.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<(), String> {
    println!("$ {}", line(command));
    let status = Watched::spawn(command, limit)?.ends()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("this command failed ({status}):\n  {}", line(command)))
    }
}

/// Runs the command and keeps what it prints.
pub(crate) fn output(command: &mut Command) -> Result<Output, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Watched::spawn(command, COMMAND_MAX)?.output()
}

/// The file's text.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes the file's text.
pub(crate) fn write(path: impl AsRef<Path>, text: &str) -> Result<(), String> {
    let path = path.as_ref();
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// All files of the tree that git knows or would add, by their path from the root.
pub(crate) fn tracked_files() -> Result<Vec<PathBuf>, String> {
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let listed = output(&mut list)?;
    if !listed.status.success() {
        return Err(format!("{} failed: a git checkout is needed", line(&list)));
    }
    let names = String::from_utf8_lossy(&listed.stdout);
    Ok(names.lines().map(PathBuf::from).filter(|path| root().join(path).is_file()).collect())
}

/// The folders of the product's crates, by name.
pub(crate) fn crates() -> Result<Vec<String>, String> {
    let folder = root().join("crates");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let is_crate = |path: &PathBuf| path.join("Cargo.toml").is_file();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_crate);
    let mut names: Vec<_> = paths.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
    names.sort();
    Ok(names)
}

/// The package in `crates/FOLDER`.
pub(crate) fn package(folder: &str) -> String {
    if folder == "ebbtide" { folder.to_owned() } else { format!("ebbtide-{folder}") }
}

/// How long `act` takes, and what it gives.
#[expect(clippy::disallowed_methods, reason = "the tooling depends on none of the product's crates")]
pub(crate) fn timed<T>(act: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = act();
    (start.elapsed(), result)
}
