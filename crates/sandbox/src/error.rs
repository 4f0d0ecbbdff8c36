//! Why something could not be given up.

use std::fmt;

/// A step that the system refused.
#[derive(Debug)]
pub struct GiveUpError {
    doing: &'static str,
    cause: String,
}

impl GiveUpError {
    /// Makes the error of a step, for `map_err`.
    pub(crate) fn when<E: fmt::Display>(doing: &'static str) -> impl FnOnce(E) -> GiveUpError {
        move |e| GiveUpError { doing, cause: e.to_string() }
    }
}

impl std::error::Error for GiveUpError {}

impl fmt::Display for GiveUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.doing, self.cause)
    }
}
