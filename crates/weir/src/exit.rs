//! How a command ends: the exit status, and the error on standard error.

use crate::term::Term;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io;
use std::process::ExitCode;

/// The exit status of the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Status {
    /// The run completed.
    Ok = 0,
    /// It failed; earlier rows are written.
    Failed = 1,
    /// The arguments or the query are wrong; nothing ran.
    Usage = 2,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(status as u8)
    }
}

/// An error that is the fault of the command line or the query.
#[derive(Debug)]
pub(crate) struct Usage {
    text: String,
    /// A command line that would have been right.
    line: Option<String>,
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Usage {}

/// A [`Usage`] error with this text.
pub(crate) fn usage(text: impl Into<String>) -> anyhow::Error {
    usage_try(text, None)
}

/// The same with a command line that would have been right, where one is known.
pub(crate) fn usage_try(text: impl Into<String>, line: Option<String>) -> anyhow::Error {
    anyhow::Error::new(Usage { text: text.into(), line })
}

/// Prints an error. A reader of standard output that has had enough is no failure.
pub(crate) fn report(e: &anyhow::Error, term: &Term) -> Status {
    report_unless(e, term, stdout_is_closed())
}

/// Prints an error, but that of a closed pipe where that is the one of standard output: others are
/// failures, such as that of a server which hangs up.
fn report_unless(e: &anyhow::Error, term: &Term, stdout_is_closed: bool) -> Status {
    if stdout_is_closed && e.chain().any(is_closed_pipe) {
        return Status::Ok;
    }
    term.error(format_args!("{}", sentence(e)));
    let Some(usage) = e.downcast_ref::<Usage>() else { return Status::Failed };
    usage.line.iter().for_each(|line| term.remedy(line));
    Status::Usage
}

/// The error and its causes, except those that an outer error already contains.
fn sentence(e: &anyhow::Error) -> String {
    let mut text = e.to_string();
    for cause in e.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn is_closed_pipe(e: &(dyn std::error::Error + 'static)) -> bool {
    e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Whether standard output is a pipe or a socket whose reader has closed it.
fn stdout_is_closed() -> bool {
    let stdout = io::stdout();
    let mut output = [PollFd::new(&stdout, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut output, Some(&now)).is_ok() && output[0].revents().intersects(gone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::ColorWhen;
    use anyhow::Context as _;

    #[test]
    fn causes_are_named_once() {
        let cause = || anyhow::Error::new(io::Error::other("disk full"));
        assert_eq!(sentence(&cause().context("writing rows")), "writing rows: disk full");
        assert_eq!(sentence(&cause().context("x: disk full")), "x: disk full");
    }

    #[test]
    fn each_kind_of_error_has_its_status() {
        let term = Term::new(ColorWhen::Never);
        let broken: anyhow::Error = io::Error::from(io::ErrorKind::BrokenPipe).into();
        assert_eq!(report_unless(&broken, &term, true), Status::Ok);
        // Another pipe than that of the rows.
        assert_eq!(report_unless(&broken, &term, false), Status::Failed);
        assert_eq!(report_unless(&broken.context("writing rows"), &term, true), Status::Ok);
        assert_eq!(report(&usage("no"), &term), Status::Usage);
        let failed = Err::<(), _>(io::Error::other("no")).context("x").expect_err("an error");
        assert_eq!(report(&failed, &term), Status::Failed);
    }
}
