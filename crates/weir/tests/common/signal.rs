//! Signals to processes that a test has started.

use std::process::Command;

/// Sends a process a signal, `-INT` say; panics where there is no such process.
pub(crate) fn signal(id: u32, name: &str) {
    let status = Command::new("kill").args([name, &id.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "no signal {name} to {id}");
}
