//! `weir check`: compile and say what is wrong.

use crate::args::CheckArgs;
use crate::exit::Status;
use crate::query::{self, Source};
use crate::term::Term;
use weir_engine::functions::Functions;

/// Checks every query given, and fails if any has errors. Silent when all is well.
pub(crate) fn run(args: &CheckArgs, term: &Term) -> anyhow::Result<Status> {
    let functions = Functions::default();
    query::refuse_twice(&args.params)?;
    let sources: Vec<Source> = match &args.expression {
        Some(text) => vec![Source::from_text(text, 1, 1)],
        None => args.queries.iter().map(|word| Source::load(word)).collect::<Result<_, _>>()?,
    };
    let mut status = Status::Ok;
    for source in &sources {
        if query::compile(source, &args.params, &functions, false, term)?.is_none() {
            status = Status::Usage;
        }
    }
    Ok(status)
}
