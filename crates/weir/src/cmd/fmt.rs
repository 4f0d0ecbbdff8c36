//! `weir fmt`: queries in the one layout.

use crate::args::FmtArgs;
use crate::exit::{Status, usage};
use crate::library;
use crate::query::Source;
use crate::term::Term;
use anyhow::Context as _;
use std::io::Write as _;
use std::path::Path;

/// Formats each file, or standard input; prints, writes back, or only compares.
pub(crate) fn run(args: &FmtArgs, term: &Term) -> anyhow::Result<Status> {
    let stdin = vec!["-".into()];
    let files = if args.files.is_empty() { &stdin } else { &args.files };
    let mut status = Status::Ok;
    for file in files {
        let one = format(file, args, term)?;
        status = status.max(one);
    }
    Ok(status)
}

fn format(file: &Path, args: &FmtArgs, term: &Term) -> anyhow::Result<Status> {
    let name = file.to_string_lossy();
    if library::find(&name).is_some() && !file.is_file() {
        return Err(usage(format!("{name} comes with Weir and is formatted; give a file to fmt")));
    }
    let source = Source::read(file)?;
    let formatted = match weir_lang::format(&source.text) {
        Ok(formatted) => formatted,
        Err(diagnostics) => {
            term.say_text(&weir_lang::render(&diagnostics, &source.query(), term.color_err));
            return Ok(Status::Usage);
        }
    };
    let same = formatted == source.text;
    if args.check {
        if !same {
            term.say(format_args!("{}: not formatted; `weir fmt --write` does it", source.name));
        }
        return Ok(if same { Status::Ok } else { Status::Failed });
    }
    if args.write && source.name != "-" {
        if !same {
            std::fs::write(file, &formatted).with_context(|| source.name.clone())?;
        }
    } else {
        std::io::stdout().lock().write_all(formatted.as_bytes())?;
    }
    Ok(Status::Ok)
}
