//! What is printed, and in which colours.

use std::{
    borrow::Cow,
    fmt,
    io::{self, IsTerminal, Write},
};

use crate::{args::When, fault::Fault};

/// Where and how a command prints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Standard output has colours.
    out: bool,
    /// Standard error has colours.
    err: bool,
}

/// A word, perhaps in colour.
#[derive(Debug)]
pub(crate) struct Painted<T> {
    text: T,
    /// What switches the colour on; none if there are no colours.
    style: Option<&'static str>,
}

impl Terminal {
    pub(crate) fn new(when: When) -> Self {
        let allowed = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let has = |is_terminal: bool| match when {
            When::Auto => is_terminal && allowed,
            When::Always => true,
            When::Never => false,
        };
        Self { out: has(io::stdout().is_terminal()), err: has(io::stderr().is_terminal()) }
    }

    /// Prints a result. It is flushed, so that what cannot be written is known. A pipe that nobody reads any more is
    /// the reader's choice, and changes nothing about how the command ends.
    pub(crate) fn print(self, text: impl AsRef<[u8]>) -> Result<(), Fault> {
        self.print_while_read(text).map(drop)
    }

    /// The same. Gives whether somebody may still read it: if not, there is no use in going on.
    pub(crate) fn print_while_read(self, text: impl AsRef<[u8]>) -> Result<bool, Fault> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Fault::stdout(&error)),
        }
    }

    /// Prints the help, or the version.
    pub(crate) fn help(self, help: &clap::Error) -> Result<(), Fault> {
        let help = help.render();
        self.print(if self.out { help.ansi().to_string() } else { help.to_string() })
    }

    /// Says on standard output how far it has come. That is no result: if it cannot be said, the work goes on.
    pub(crate) fn announce(self, text: impl AsRef<[u8]>) {
        if let Err(fault) = self.print(text) {
            self.warn(fault);
        }
    }

    /// Tells of something on standard error. If nobody reads that, there is nobody to tell.
    pub(crate) fn tell(self, text: impl fmt::Display) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Tells what went wrong, and what to do.
    pub(crate) fn complain(self, fault: &Fault) {
        if fault.message.is_empty() {
            return;
        }
        self.tell(format_args!("{} {}", self.err_bold_red("error:"), visible(&fault.message)));
        if let Some(hint) = &fault.hint {
            self.tell(format_args!("{} {hint}", self.err_bold("hint:")));
        }
    }

    pub(crate) fn warn(self, text: impl fmt::Display) {
        self.tell(format_args!("{} {}", self.err_yellow("warning:"), visible(&text.to_string())));
    }

    pub(crate) fn err_bold_red<T>(self, text: T) -> Painted<T> {
        Painted { text, style: self.err.then_some("\x1b[1;31m") }
    }

    pub(crate) fn err_yellow<T>(self, text: T) -> Painted<T> {
        Painted { text, style: self.err.then_some("\x1b[33m") }
    }

    pub(crate) fn err_bold<T>(self, text: T) -> Painted<T> {
        Painted { text, style: self.err.then_some("\x1b[1m") }
    }

    pub(crate) fn bold<T>(self, text: T) -> Painted<T> {
        Painted { text, style: self.out.then_some("\x1b[1m") }
    }

    pub(crate) fn green<T>(self, text: T) -> Painted<T> {
        Painted { text, style: self.out.then_some("\x1b[32m") }
    }

    pub(crate) fn red<T>(self, text: T) -> Painted<T> {
        Painted { text, style: self.out.then_some("\x1b[31m") }
    }
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Some(style) => write!(f, "{style}{}\x1b[0m", self.text),
            None => self.text.fmt(f),
        }
    }
}

/// A text with names that others have chosen: what a terminal would obey is shown instead, but for new lines.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_obeyed = |letter: char| letter.is_control() && letter != '\n';
    if !text.contains(is_obeyed) {
        return text.into();
    }
    let shown =
        |letter: char| if is_obeyed(letter) { letter.escape_debug().to_string() } else { letter.into() };
    text.chars().map(shown).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        assert_eq!(visible("größe\nb"), "größe\nb");
        assert_eq!(visible("a\x1b[31m\rb\u{9b}c\n"), "a\\u{1b}[31m\\rb\\u{9b}c\n");
    }
}
