//! Files of text, not larger than they may be.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// What is in a file. It is opened once and read to its end: of a pipe, which has no size, that shows how large it is.
pub(crate) fn text_of(path: &Path, bytes_max: u64) -> io::Result<String> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(wrong(format!("it has more than {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_as_large_as_it_may_be_and_no_larger() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let text = text_of(&path, u64::MAX).unwrap();
        let size = text.len() as u64;
        assert_eq!(text_of(&path, size).unwrap(), text);
        let error = text_of(&path, size - 1).unwrap_err();
        assert_eq!(error.to_string(), format!("it has more than {} bytes", size - 1));
    }
}
