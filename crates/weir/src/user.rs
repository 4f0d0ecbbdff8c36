//! The user of `-Z`, in the words of the command line.

use crate::exit::usage;
use weir_sandbox::{UserError, UserIds};

/// The numbers of a user and of its group.
pub(crate) fn user_ids(name: &str) -> anyhow::Result<UserIds> {
    weir_sandbox::look_up(name).map_err(|e| user_error(name, e))
}

/// Becomes a user, and says so.
pub(crate) fn become_user(name: &str) -> anyhow::Result<String> {
    weir_sandbox::become_user(name).map_err(|e| user_error(name, e))
}

/// A wrong name, or a run that root did not start, is the fault of the command line.
fn user_error(name: &str, e: UserError) -> anyhow::Error {
    match e {
        UserError::Unknown | UserError::NotRoot => usage(format!("-Z {name}: {e}")),
        e => anyhow::Error::new(e).context(format!("-Z {name}: becoming that user")),
    }
}
