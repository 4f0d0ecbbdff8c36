//! On processors for which no filter of system calls is known.

use super::Needs;

/// Restricts nothing, and says so.
pub(super) fn restrict(_: &Needs) -> anyhow::Result<String> {
    Ok("any system calls (no filter is known for this processor)".to_owned())
}
