//! The properties of the terminal, and messages to it.

use crate::zone::Zone;
use clap::ValueEnum;
use std::fmt::{Arguments, Display};
use std::io::{self, IsTerminal, Write};
use weir_base::harmless::escaped;
use weir_top::{Glyphs, Look};

/// When to color.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The two output streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    /// Whether rows go to a terminal.
    pub(crate) stdout_tty: bool,
    /// Whether messages go to a terminal.
    pub(crate) stderr_tty: bool,
    /// Whether rows are colored.
    pub(crate) color_out: bool,
    /// Whether messages are colored.
    pub(crate) color_err: bool,
}

impl Term {
    /// The streams of this process.
    pub(crate) fn new(when: ColorWhen) -> Term {
        let (stdout_tty, stderr_tty) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let environment = environment_allows_color();
        let colored = |tty| colored(when, tty, environment);
        Term {
            stdout_tty,
            stderr_tty,
            color_out: colored(stdout_tty),
            color_err: colored(stderr_tty),
        }
    }

    /// The look of a screen on standard output; `None` where that is no terminal with a cursor.
    /// Times are shown in a zone.
    pub(crate) fn look(&self, Zone(zone): Zone) -> Option<Look> {
        let term = variable("TERM");
        let mut locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().map(variable);
        let locale = locale.find(|value| !value.is_empty()).unwrap_or_default();
        let draws = self.stdout_tty && !term.is_empty() && term != "dumb";
        let glyphs = Glyphs::fitting(&term, &locale);
        draws.then_some(Look { color: self.color_out, glyphs, zone })
    }

    /// Prints a line of text on standard error.
    pub(crate) fn say(&self, text: impl Display) {
        // There is no way to report that this can't be written.
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Prints a text that ends its own last line on standard error.
    pub(crate) fn say_text(&self, text: &str) {
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Prints a warning on standard error.
    pub(crate) fn warning(&self, text: Arguments<'_>) {
        let (yellow, plain) = if self.color_err { ("\x1b[1;33m", "\x1b[0m") } else { ("", "") };
        self.say(format_args!("{yellow}warning:{plain} {}", shown(text)));
    }

    /// Prints a command line that would have been right on standard error.
    pub(crate) fn remedy(&self, line: &str) {
        let (green, plain) = if self.color_err { ("\x1b[1;32m", "\x1b[0m") } else { ("", "") };
        self.say(format_args!("  {green}try:{plain} {}", shown(format_args!("{line}"))));
    }

    /// Prints an error on standard error.
    pub(crate) fn error(&self, text: Arguments<'_>) {
        let (red, plain) = if self.color_err { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        self.say(format_args!("{red}error:{plain} {}", shown(text)));
    }
}

/// A text as a terminal may show it: names of files and words of a command line may hold anything.
fn shown(text: Arguments<'_>) -> String {
    escaped(&text.to_string(), true)
}

/// Whether a stream is colored: `--color` wins over NO_COLOR, which wins over the terminal.
fn colored(when: ColorWhen, tty: bool, environment: bool) -> bool {
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => tty && environment,
    }
}

fn environment_allows_color() -> bool {
    allows_color(&variable("NO_COLOR"), &variable("TERM"))
}

#[expect(clippy::disallowed_methods, reason = "the variables that say how terminals look")]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Whether the values of NO_COLOR and TERM allow color; a terminal that does not say what it is
/// knows none.
fn allows_color(no_color: &str, term: &str) -> bool {
    no_color.is_empty() && !term.is_empty() && term != "dumb"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumb_terminals_have_no_color() {
        assert!(allows_color("", "xterm-256color"));
        assert!(!allows_color("1", "xterm-256color"));
        assert!(!allows_color("", "dumb"));
        assert!(!allows_color("", ""));
    }

    #[test]
    fn names_do_not_steer_a_terminal() {
        let name = "\x1b[31mz\u{202e}.pcap";
        assert_eq!(shown(format_args!("no {name}\nü")), "no \\u{1b}[31mz\\u{202e}.pcap\nü");
    }

    #[test]
    fn colors_where_wanted() {
        assert!(colored(ColorWhen::Auto, true, true));
        assert!(!colored(ColorWhen::Auto, false, true));
        assert!(!colored(ColorWhen::Auto, true, false), "NO_COLOR");
        assert!(colored(ColorWhen::Always, false, false), "--color wins over NO_COLOR");
        assert!(!colored(ColorWhen::Never, true, true));
    }
}
