//! `weir sql`: SQL over captures, rows of queries and stored tables.

#[cfg(feature = "sql")]
mod answers;
#[cfg(feature = "sql")]
mod prompt;

use crate::args::SqlArgs;
use crate::exit::{Status, usage};
use crate::term::Term;

/// Answers statements.
#[cfg(not(feature = "sql"))]
pub(crate) fn run(_: &SqlArgs, _: &Term) -> anyhow::Result<Status> {
    Err(usage(weir_sql::NOT_LINKED))
}

/// Answers statements: those that are given, those of standard input, or those of a prompt.
#[cfg(feature = "sql")]
pub(crate) fn run(args: &SqlArgs, term: &Term) -> anyhow::Result<Status> {
    use std::io::{IsTerminal as _, Read as _};
    let answers = answers::Answers::new(args, term)?;
    let mut text = String::new();
    match &args.statement {
        Some(statement) => text.clone_from(statement),
        None if std::io::stdin().is_terminal() => return prompt::run(&answers, term),
        None => drop(std::io::stdin().read_to_string(&mut text)?),
    }
    let statements = answers.session.read(&text).map_err(|e| usage(e.to_string()))?;
    if statements.is_empty() {
        return Err(usage("no statement given: weir sql \"select … from 'x.pcap'\""));
    }
    let mut status = Status::Ok;
    for statement in statements {
        status = status.max(answers.answer(statement)?);
    }
    Ok(status)
}
