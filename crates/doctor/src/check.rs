//! The result of a check.

/// How something is judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// It is as it should be.
    Ok,
    /// It could be better, or is not enough for everything.
    Note,
    /// It prevents capturing, or makes a capture wrong.
    Problem,
}

impl Verdict {
    /// The word for it: `ok`, `note`, `problem`.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Note => "note",
            Verdict::Problem => "problem",
        }
    }
}

/// Something that was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// The thing that was checked.
    pub what: &'static str,
    /// How it is judged.
    pub verdict: Verdict,
    /// Its state.
    pub found: String,
    /// The effect of this state on capturing; empty where it is as it should be.
    pub means: String,
    /// A command that changes it; empty where there is none.
    pub command: String,
}

impl Check {
    pub(crate) fn ok(what: &'static str, found: impl Into<String>) -> Check {
        let (means, command) = (String::new(), String::new());
        Check { what, verdict: Verdict::Ok, found: found.into(), means, command }
    }

    pub(crate) fn note(
        what: &'static str,
        found: impl Into<String>,
        means: impl Into<String>,
    ) -> Check {
        Check { verdict: Verdict::Note, means: means.into(), ..Check::ok(what, found) }
    }

    pub(crate) fn problem(
        what: &'static str,
        found: impl Into<String>,
        means: impl Into<String>,
    ) -> Check {
        Check { verdict: Verdict::Problem, means: means.into(), ..Check::ok(what, found) }
    }

    /// The same, with a command that changes it.
    pub(crate) fn changed_by(self, command: impl Into<String>) -> Check {
        Check { command: command.into(), ..self }
    }
}

/// The checks of the system, of DPDK, or of one interface or card.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Findings {
    /// The name of what was checked.
    pub place: String,
    /// Its checks.
    pub checks: Vec<Check>,
}
