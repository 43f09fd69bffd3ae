//! Plans on disk: by their path, or by their name in the plans folder.

use std::{
    ffi::OsStr,
    fs,
    io::{self, Read},
    path::{MAIN_SEPARATOR, Path, PathBuf},
};

use ebbtide::dag::json::nearest;

use crate::fault::Fault;

/// How large a plan may be. One of 65,535 nodes, the most that there may be, is about a tenth of this.
const PLAN_BYTES_MAX: u64 = 64 << 20;

/// A plan as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// The folder that plans are in which are called by their name.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    folder: PathBuf,
}

impl Library {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Reads a plan. What looks like a path is one: it has a separator, or ends in `.json`.
    pub(crate) fn read(&self, wanted: &OsStr) -> Result<Found, Fault> {
        let bytes = wanted.as_encoded_bytes();
        let separators = [b'/', MAIN_SEPARATOR as u8];
        let is_path = bytes.ends_with(b".json") || bytes.iter().any(|byte| separators.contains(byte));
        let path = if is_path {
            PathBuf::from(wanted)
        } else {
            let mut name = wanted.to_owned();
            name.push(".json");
            self.folder.join(name)
        };
        match read_text(&path, PLAN_BYTES_MAX) {
            Ok(text) => Ok(Found { path, text }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(self.missing(wanted, &path, is_path))
            }
            Err(error) => Err(Fault::unreadable(&path, &error)),
        }
    }

    fn missing(&self, wanted: &OsStr, path: &Path, is_path: bool) -> Fault {
        let fault = Fault::new(
            crate::fault::code::NO_INPUT,
            if is_path {
                format!("there is no file {}", path.display())
            } else {
                format!("there is no plan \"{}\" in {}", wanted.display(), self.folder.display())
            },
        );
        // Beside the file that was named, or among those that have a name.
        let folder = if is_path { path.parent().unwrap_or(Path::new("")) } else { &self.folder };
        let names: Vec<String> = plans_in(folder).unwrap_or_default().iter().map(|path| stem(path)).collect();
        let wanted = stem(path);
        match nearest(&wanted, names.iter().map(String::as_str)) {
            Some(near) if is_path => {
                fault.hint(format!("did you mean {}?", folder.join(format!("{near}.json")).display()))
            }
            Some(near) => fault.hint(format!("did you mean {near}?")),
            None if names.is_empty() => fault.hint("name a file, or a folder of plans with --plans"),
            None => fault.hint("`ebbtide plans` lists those that there are"),
        }
    }

    /// The plans of the folder, by name.
    pub(crate) fn paths(&self) -> io::Result<Vec<PathBuf>> {
        plans_in(&self.folder)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

fn plans_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    // The folder of a bare file name is the one that we are in.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// What a plan is called: its file, without the ending.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads a file that is text, and not larger than it may be. What a pipe or a device has is known when it was read.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(wrong(format!("it has more than {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text".to_owned()))
}
