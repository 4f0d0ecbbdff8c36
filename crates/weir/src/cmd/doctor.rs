//! `weir doctor`: whether this machine, and its interfaces, are set up for capturing; what it means
//! where they are not, and the command that mends it.
//!
//! What is found ([`system::System`], [`Adapter`]) and what is thought of it are apart, so that any
//! machine can be judged in a test.

#[cfg(feature = "dpdk")]
mod dpdk;
mod interface;
mod system;

use crate::args::DoctorArgs;
use crate::exit::Status;
use crate::output;
use crate::term::Term;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use weir_capture::adapter::{Adapter, adapter};
use weir_capture::live::interfaces;
use weir_sink::{Format, table};

/// What is thought of something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Verdict {
    /// It is as it should be.
    Ok,
    /// It could be better, or does not do for everything.
    Note,
    /// It will be in the way.
    Problem,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Note => "note",
            Verdict::Problem => "problem",
        }
    }
}

/// Something that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Check {
    what: &'static str,
    verdict: Verdict,
    found: String,
    /// What it means for capturing, where that is worth a word.
    means: String,
    /// A command that changes it; empty where there is none.
    mend: String,
}

impl Check {
    fn ok(what: &'static str, found: impl Into<String>) -> Check {
        let (means, mend) = (String::new(), String::new());
        Check { what, verdict: Verdict::Ok, found: found.into(), means, mend }
    }

    fn note(what: &'static str, found: impl Into<String>, means: impl Into<String>) -> Check {
        Check { verdict: Verdict::Note, means: means.into(), ..Check::ok(what, found) }
    }

    fn problem(what: &'static str, found: impl Into<String>, means: impl Into<String>) -> Check {
        Check { verdict: Verdict::Problem, means: means.into(), ..Check::ok(what, found) }
    }

    /// The same, with a command that changes it.
    fn mended(self, command: impl Into<String>) -> Check {
        Check { mend: command.into(), ..self }
    }
}

/// Runs `weir doctor`.
pub(crate) fn run(args: &DoctorArgs, term: &Term) -> anyhow::Result<Status> {
    let names = match args.interface.is_empty() {
        false => args.interface.clone(),
        true => {
            let all = interfaces()?.into_iter();
            all.filter(|on| on.up && !on.loopback).map(|on| on.name).collect()
        }
    };
    #[cfg(feature = "dpdk")]
    let (cards, names) = dpdk::cards(&args.interface, names);
    let adapters: Vec<Adapter> =
        names.iter().map(|name| adapter(name)).collect::<Result<_, _>>()?;
    let system = system::System::look();
    let mut all = vec![("system".to_owned(), system::judge(&system))];
    #[cfg(feature = "dpdk")]
    all.extend(dpdk::judge(&weir_dpdk::machine::machine(), &cards));
    all.extend(adapters.iter().map(|on| (on.name.clone(), interface::judge(on, &system))));
    let format = output::choose(args.output, term);
    if *format == table::FORMAT {
        io::stdout().lock().write_all(text(&all).as_bytes())?;
    } else {
        rows(&all, format, term)?;
    }
    let problem = all.iter().flat_map(|(_, checks)| checks).any(|c| c.verdict == Verdict::Problem);
    Ok(if problem { Status::Failed } else { Status::Ok })
}

/// For people: a line each, with what helps below it.
fn text(all: &[(String, Vec<Check>)]) -> String {
    let mut out = String::new();
    let checks = || all.iter().flat_map(|(_, checks)| checks);
    let width = checks().map(|check| check.what.len()).max().unwrap_or(0);
    for (place, checks) in all {
        let _ = writeln!(out, "{place}");
        for Check { what, verdict, found, means, mend } in checks {
            let _ = writeln!(out, "  {:<7}  {what:<width$}  {found}", verdict.word());
            for line in [means, mend].into_iter().filter(|line| !line.is_empty()) {
                let _ = writeln!(out, "{:indent$}{line}", "", indent = width + 15);
            }
        }
    }
    let count = |verdict| checks().filter(|check| check.verdict == verdict).count();
    let (problems, notes) = (count(Verdict::Problem), count(Verdict::Note));
    let plural = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let _ = writeln!(out, "{}, {}", plural(problems, "problem"), plural(notes, "note"));
    out
}

/// For programs: a row each.
fn rows(all: &[(String, Vec<Check>)], format: &'static Format, term: &Term) -> io::Result<()> {
    let row = |place: &String, c: &Check| {
        let verdict = c.verdict.word().to_owned();
        let (found, means, mend) = (c.found.clone(), c.means.clone(), c.mend.clone());
        [place.clone(), c.what.to_owned(), verdict, found, means, mend]
    };
    let rows: Vec<[String; 6]> = all
        .iter()
        .flat_map(|(place, checks)| checks.iter().map(move |check| row(place, check)))
        .collect();
    let columns = ["where", "what", "verdict", "found", "means", "command"];
    output::print(columns, &rows, Some(format), term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    #[test]
    fn help_stands_below_what_it_helps() {
        let checks = vec![
            Check::ok("kernel", "6.1"),
            Check::problem("capture", "no", "nothing is seen").mended("sudo setcap …"),
        ];
        let other = vec![Check::note("queues", "1 of 4", "one processor takes it all")];
        assert_snapshot!(text(&[("system".to_owned(), checks), ("eth0".to_owned(), other)]), @r"
        system
          ok       kernel   6.1
          problem  capture  no
                              nothing is seen
                              sudo setcap …
        eth0
          note     queues   1 of 4
                              one processor takes it all
        1 problem, 1 note
        ");
    }
}
