//! How a command ends: the exit status, and the error on standard error.

use crate::term::Term;
use clap::error::{ContextKind, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io::{self, Write as _};
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
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A [`Usage`] error with this text.
pub(crate) fn usage(text: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(text.into()))
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
    if e.is::<Usage>() { Status::Usage } else { Status::Failed }
}

/// Prints clap's help, version or error.
pub(crate) fn from_clap(e: &clap::Error) -> Status {
    // There is no way to report that this can't be printed.
    let _ = e.print();
    let missing = e.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    if let Some(tip) = tip(e.kind(), &missing, &std::env::args().skip(1).collect::<Vec<_>>()) {
        let _ = writeln!(io::stderr(), "\n  tip: {tip}");
    }
    if e.use_stderr() { Status::Usage } else { Status::Ok }
}

/// The command that was meant, where somebody names a capture as other tools have it; `missing` is
/// which argument is not there.
fn tip(kind: ErrorKind, missing: &str, args: &[String]) -> Option<String> {
    let is_capture = |word: &&String| {
        let bare = word.trim_end_matches(".gz").trim_end_matches(".zst");
        [".pcap", ".pcapng", ".cap"].iter().any(|ending| bare.ends_with(ending))
    };
    match (kind, args.first()?.as_str()) {
        (ErrorKind::UnknownArgument, option @ ("-r" | "--read" | "-i" | "--interface")) => {
            Some(format!("a command comes first, as in `weir top {option} \u{2026}`"))
        }
        (ErrorKind::MissingRequiredArgument, _) if missing.contains("--read") => {
            let file = args.iter().find(is_capture)?;
            Some(format!("to read {file}, write `-r {file}`"))
        }
        _ => None,
    }
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
    fn captures_as_other_tools_have_them_are_told() {
        let told = |kind, missing, words: &str| {
            tip(kind, missing, &words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        let tip = |kind, words| told(kind, "--read <CAPTURE>", words);
        let missing = ErrorKind::MissingRequiredArgument;
        let read = Some("to read b.pcap.gz, write `-r b.pcap.gz`".to_owned());
        assert_eq!(tip(missing, "run flows b.pcap.gz"), read);
        assert_eq!(tip(missing, "run flows b.csv"), None);
        assert_eq!(told(missing, "--output <FILE>", "report b.pcap"), None);
        assert_eq!(tip(missing, ""), None);
        let first = tip(ErrorKind::UnknownArgument, "-r b.pcap").expect("a tip");
        assert!(first.contains("weir top -r"), "{first}");
        assert_eq!(tip(ErrorKind::UnknownArgument, "run -z b.pcap"), None);
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
