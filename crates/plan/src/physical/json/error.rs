//! Why a plan can't be written as JSON, or read back.

use crate::limits::{DEPTH_MAX, PLAN_BYTES_MAX};
use crate::physical::fault::PlanFault;
use std::fmt;

/// The version of the format.
pub const VERSION: u64 = 3;

/// Nesting of brackets: two for each level of an expression, and those around it.
pub(super) const NESTING_MAX: usize = 4 * DEPTH_MAX + 64;

/// Why a plan can't be written as JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unwritable {
    /// It holds a key of `anonymize`, which would be readable there.
    Key,
    /// It calls a function that is not registered, with this number.
    Unregistered(usize),
    /// It takes more than [`PLAN_BYTES_MAX`].
    TooLarge(usize),
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unwritable::Key => f.write_str(
                "the plan holds a key of `anonymize`, and JSON would show it: leave `anonymize` \
                 out, or use the text of `weir explain`, which hides the key",
            ),
            Unwritable::Unregistered(n) => {
                write!(f, "the plan calls function number {n}, which is not registered")
            }
            Unwritable::TooLarge(bytes) => write!(
                f,
                "the plan takes {bytes} bytes as JSON, mostly for its sets and tables; at most \
                 {PLAN_BYTES_MAX} are read back"
            ),
        }
    }
}

impl std::error::Error for Unwritable {}

/// Why JSON can't be read as a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unreadable {
    /// It has another version than [`VERSION`].
    Version(String),
    /// It is longer than [`PLAN_BYTES_MAX`], or brackets stand too deep.
    TooLarge,
    /// It is no JSON; says why, and where.
    NoJson(String),
    /// A member is not what it is to be.
    Member {
        /// Where it stands: `levels[0].ticks`.
        at: String,
        /// The mistake in it.
        why: String,
    },
    /// All can be read, and the plan does not fit together.
    Plan(PlanFault),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Version(version) => write!(
                f,
                "this is a plan of format version {version}; only version {VERSION} can be read"
            ),
            Unreadable::TooLarge => write!(
                f,
                "the plan has more than {PLAN_BYTES_MAX} bytes or {NESTING_MAX} nested brackets"
            ),
            Unreadable::NoJson(why) => write!(f, "this is not JSON: {why}"),
            Unreadable::Member { at, why } if at.is_empty() => write!(f, "this is no plan: {why}"),
            Unreadable::Member { at, why } => write!(f, "{at}: {why}"),
            Unreadable::Plan(fault) => write!(f, "{fault}"),
        }
    }
}

impl std::error::Error for Unreadable {}

/// A mistake in a member, and where.
#[derive(Debug)]
pub(super) struct Mistake {
    /// The way to it, from the inside out.
    path: Vec<String>,
    pub(super) why: String,
}

impl Mistake {
    pub(super) fn new(why: impl Into<String>) -> Mistake {
        Mistake { path: Vec::new(), why: why.into() }
    }

    /// The same, one step further out.
    pub(super) fn within(mut self, step: impl Into<String>) -> Mistake {
        self.path.push(step.into());
        self
    }

    /// Where it is: `levels[0].ticks`.
    pub(super) fn place(&self) -> String {
        let place: String = self.path.iter().rev().map(String::as_str).collect();
        place.strip_prefix('.').unwrap_or(&place).to_owned()
    }
}

impl From<Mistake> for Unreadable {
    fn from(mistake: Mistake) -> Unreadable {
        Unreadable::Member { at: mistake.place(), why: mistake.why }
    }
}
