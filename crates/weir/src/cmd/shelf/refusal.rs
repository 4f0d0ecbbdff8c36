//! Why a question about captures has no answer.

use serde_json::{Value, json};

/// Bytes of the text for people: what a query with an error in each line has is longer.
const TEXT_MAX: usize = 64 << 10;

/// The end of a text that is cut.
const CUT: &str = "\n(cut here)\n";

/// Why a question has no answer, and of what kind that is.
pub(super) struct Refusal {
    kind: &'static str,
    reason: String,
    /// More for people.
    text: String,
}

impl Refusal {
    fn new(kind: &'static str, reason: impl Into<String>) -> Refusal {
        Refusal { kind, reason: reason.into(), text: String::new() }
    }

    /// There is no such capture.
    pub(super) fn missing(reason: impl Into<String>) -> Refusal {
        Refusal::new("missing", reason)
    }

    /// There are as many as may be.
    pub(super) fn full(reason: impl Into<String>) -> Refusal {
        Refusal::new("full", reason)
    }

    /// The question is wrong.
    pub(super) fn wrong(reason: impl Into<String>) -> Refusal {
        Refusal::new("wrong", reason)
    }

    /// Adds a text for people, of which the beginning counts.
    pub(super) fn with_text(self, mut text: String) -> Refusal {
        if text.len() > TEXT_MAX {
            let mut ends = (0..=TEXT_MAX - CUT.len()).rev();
            text.truncate(ends.find(|at| text.is_char_boundary(*at)).unwrap_or(0));
            text.push_str(CUT);
        }
        Refusal { text, ..self }
    }

    pub(super) fn value(&self) -> Value {
        json!({ "error": self.reason, "kind": self.kind, "text": self.text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded() {
        let text = |n: usize| Refusal::wrong("why").with_text("é".repeat(n)).text;
        assert_eq!(text(TEXT_MAX / 2), "é".repeat(TEXT_MAX / 2));
        let long = text(TEXT_MAX);
        assert!(long.len() <= TEXT_MAX && long.ends_with(CUT), "{}", long.len());
        assert!(long.trim_end_matches(CUT).chars().all(|c| c == 'é'));
    }
}
