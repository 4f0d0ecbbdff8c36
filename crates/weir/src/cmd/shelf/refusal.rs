//! Why a question about captures has no answer.

use serde_json::{Value, json};

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

    pub(super) fn with_text(self, text: String) -> Refusal {
        Refusal { text, ..self }
    }

    pub(super) fn value(&self) -> Value {
        json!({ "error": self.reason, "kind": self.kind, "text": self.text })
    }
}
