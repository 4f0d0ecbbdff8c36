//! Processes that are measured from without.

use crate::timing::{Whole, time_child};
use anyhow::{Context, Result, ensure};
use std::process::{Child, Command, Stdio};

/// What a process said and took.
pub(crate) struct Done {
    /// Its standard output.
    pub(crate) out: String,
    /// Its standard error.
    pub(crate) errors: String,
    /// What it took, from its start to its end.
    pub(crate) whole: Whole,
}

/// This program, to be called again.
pub(crate) fn this_program() -> Result<Command> {
    Ok(Command::new(std::env::current_exe().context("finding this program")?))
}

/// Runs a process to its end. It must succeed; `name` stands in errors.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<Done> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let finish = || command.spawn().and_then(Child::wait_with_output);
    let (output, whole) = time_child(finish)?;
    let output = output.with_context(|| format!("running {name}"))?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{name} failed ({}): {errors}", output.status);
    Ok(Done { out: String::from_utf8_lossy(&output.stdout).into_owned(), errors, whole })
}

/// The same for a process whose standard output goes where `command` says.
pub(crate) fn time(name: &str, command: &mut Command) -> Result<Whole> {
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let (output, whole) = time_child(|| command.spawn().and_then(Child::wait_with_output))?;
    let output = output.with_context(|| format!("running {name}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed ({}): {errors}", output.status);
    Ok(whole)
}
