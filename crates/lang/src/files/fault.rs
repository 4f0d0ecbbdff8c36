//! A mistake in a file that a query names.

/// A mistake in a file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Fault {
    /// The line, from 1, where it is in one.
    pub(crate) line: Option<u64>,
    pub(crate) cause: String,
    pub(crate) help: Option<String>,
}

impl Fault {
    pub(super) fn at(line: u64, cause: impl Into<String>) -> Fault {
        Fault { line: Some(line), cause: cause.into(), help: None }
    }

    pub(super) fn whole(cause: impl Into<String>) -> Fault {
        Fault { line: None, cause: cause.into(), help: None }
    }

    pub(super) fn in_line(self, line: u64) -> Fault {
        Fault { line: Some(line), ..self }
    }
}

/// The beginning of what stands in a file, fit for a message.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 40;
    let more = if text.chars().nth(MOST).is_some() { "…" } else { "" };
    format!("{}{more}", text.chars().take(MOST).collect::<String>().escape_debug())
}
