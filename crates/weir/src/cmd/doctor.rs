//! `weir doctor`: whether this machine, and its interfaces, are set up for capturing.

use crate::args::DoctorArgs;
use crate::exit::Status;
use crate::output;
use crate::term::Term;
use std::io::{self, Write as _};
use weir_doctor::{Check, Findings, Verdict, examine, text};
use weir_sink::{Format, table};

/// Runs `weir doctor`.
pub(crate) fn run(args: &DoctorArgs, term: &Term) -> anyhow::Result<Status> {
    let all = examine(&args.interface)?;
    let format = output::choose(args.output, term);
    if *format == table::FORMAT {
        io::stdout().lock().write_all(text(&all).as_bytes())?;
    } else {
        print_rows(&all, format, term)?;
    }
    let mut checks = all.iter().flat_map(|findings| &findings.checks);
    let problem = checks.any(|check| check.verdict == Verdict::Problem);
    Ok(if problem { Status::Failed } else { Status::Ok })
}

/// Prints a row for each check, for programs.
fn print_rows(all: &[Findings], format: &'static Format, term: &Term) -> io::Result<()> {
    let row = |place: &String, c: &Check| {
        let verdict = c.verdict.word().to_owned();
        let (found, means, command) = (c.found.clone(), c.means.clone(), c.command.clone());
        [place.clone(), c.what.to_owned(), verdict, found, means, command]
    };
    let rows: Vec<[String; 6]> = all
        .iter()
        .flat_map(|Findings { place, checks }| checks.iter().map(move |check| row(place, check)))
        .collect();
    let columns = ["where", "what", "verdict", "found", "means", "command"];
    output::print(columns, &rows, Some(format), term)
}
