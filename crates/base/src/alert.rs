//! The words of an alert.

use serde::{Deserialize, Serialize};

/// How bad an alert is.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "lowercase")]
pub enum AlertSeverity {
    /// Worth knowing.
    Info,
    /// Worth a look some time.
    Low,
    /// Worth a look.
    Medium,
    /// Worth a look now.
    High,
    /// Worth waking somebody.
    Critical,
}

impl AlertSeverity {
    /// All of them, the least first.
    pub const ALL: [AlertSeverity; 5] = [
        AlertSeverity::Info,
        AlertSeverity::Low,
        AlertSeverity::Medium,
        AlertSeverity::High,
        AlertSeverity::Critical,
    ];

    /// How queries and rows write it.
    pub fn name(self) -> &'static str {
        match self {
            AlertSeverity::Info => "info",
            AlertSeverity::Low => "low",
            AlertSeverity::Medium => "medium",
            AlertSeverity::High => "high",
            AlertSeverity::Critical => "critical",
        }
    }

    /// The severity that queries and rows write so.
    pub fn of_name(name: &str) -> Option<AlertSeverity> {
        AlertSeverity::ALL.into_iter().find(|severity| severity.name() == name)
    }
}

/// The state of a key, in a row of an alert.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AlertState {
    /// It begins to fire.
    Start,
    /// It still fires.
    Ongoing,
    /// It does not fire any more.
    End,
    /// It fired when the input ended.
    Open,
}

impl AlertState {
    /// All of them.
    pub const ALL: [AlertState; 4] =
        [AlertState::Start, AlertState::Ongoing, AlertState::End, AlertState::Open];

    /// How rows write it.
    pub fn name(self) -> &'static str {
        match self {
            AlertState::Start => "start",
            AlertState::Ongoing => "ongoing",
            AlertState::End => "end",
            AlertState::Open => "open",
        }
    }

    /// The same for people.
    pub fn words(self) -> &'static str {
        match self {
            AlertState::Start => "started",
            AlertState::Ongoing => "goes on",
            AlertState::End => "ended",
            AlertState::Open => "still open at the end of the input",
        }
    }

    /// The state that rows write so.
    pub fn of_name(name: &str) -> Option<AlertState> {
        AlertState::ALL.into_iter().find(|state| state.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_back() {
        for severity in AlertSeverity::ALL {
            assert_eq!(AlertSeverity::of_name(severity.name()), Some(severity));
            let json = serde_json::to_string(&severity).expect("a word");
            assert_eq!(json, format!("\"{}\"", severity.name()));
        }
        for state in AlertState::ALL {
            assert_eq!(AlertState::of_name(state.name()), Some(state));
        }
        assert!(AlertSeverity::ALL.is_sorted());
        assert_eq!((AlertSeverity::of_name("High"), AlertState::of_name("")), (None, None));
    }
}
