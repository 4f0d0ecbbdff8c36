//! Processes that are measured from without.

use crate::timing::{Whole, time_child};
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The output of a process that has ended, and the time it took.
pub(crate) struct Done {
    /// Its standard output.
    pub(crate) out: String,
    /// Its standard error.
    pub(crate) errors: String,
    /// The time that it took, from its start to its end.
    pub(crate) whole: Whole,
}

/// This program, to be called again.
pub(crate) fn this_program() -> Result<Command> {
    Ok(Command::new(std::env::current_exe().context("finding this program")?))
}

/// A program of this workspace, which lies beside this one where it was built.
pub(crate) fn beside(name: &str) -> Result<PathBuf> {
    Ok(std::env::current_exe().context("finding this program")?.with_file_name(name))
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

/// A process that runs beside this one until its standard input ends, and is talked to by lines.
pub(crate) struct Companion {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Companion {
    /// Starts it.
    pub(crate) fn start(mut command: Command) -> Result<Companion> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let lines = child.stdout.take().context("its standard output")?;
        Ok(Companion { child, lines: BufReader::new(lines) })
    }

    /// The next line that it says.
    ///
    /// # Errors
    /// When it has ended; the error has what it wrote to standard error.
    pub(crate) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).context("listening to a process")?;
        if read == 0 {
            let mut errors = String::new();
            if let Some(stderr) = &mut self.child.stderr {
                stderr.read_to_string(&mut errors).context("listening to a process")?;
            }
            bail!("the process failed: {}", errors.trim());
        }
        Ok(line.trim().to_owned())
    }

    /// Tells it something, and gives the line by which it answers.
    pub(crate) fn ask(&mut self, line: &str) -> Result<String> {
        let stdin = self.child.stdin.as_mut().context("its standard input")?;
        // Where it has ended, what it says is why.
        let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        self.line()
    }

    /// Ends it, and gives the line that it says last.
    pub(crate) fn end(mut self) -> Result<String> {
        drop(self.child.stdin.take());
        self.line()
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        // It may have ended by itself; if not, nobody is left to hear of it.
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether there is a program of this name, which can say its version.
pub(crate) fn is_installed(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Runs ip(8), of iproute2, with these words.
pub(crate) fn ip(words: &str) -> Result<()> {
    run("ip, of iproute2,", Command::new("ip").args(words.split_whitespace()))?;
    Ok(())
}
