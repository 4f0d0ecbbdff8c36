//! `weir check`: compile and say what is wrong.

use crate::args::CheckArgs;
use crate::exit::Status;
use crate::query::{self, Source};
use crate::site::Site;
use crate::term::Term;
use weir_engine::functions::Functions;
use weir_lang::Options;

/// Checks every query given, and fails if any has errors. Silent when all is well.
pub(crate) fn run(args: &CheckArgs, term: &Term) -> anyhow::Result<Status> {
    let functions = Functions::default();
    query::refuse_twice(&args.params)?;
    let sources: Vec<Source> = match &args.expression {
        Some(text) => vec![Source::from_text(text, 1, 1)],
        None => {
            let all = args.queries.iter().map(|word| Source::load_all(word));
            all.collect::<Result<Vec<_>, _>>()?.concat()
        }
    };
    let site = Site::read(args.site.site.as_deref(), term)?;
    let rules = args.rules.rules()?;
    let mut status = Status::Ok;
    for source in &sources {
        let mut params = args.params.clone();
        let known = source.params();
        params.extend(site.values(&source.program, known, &params, &source.files())?);
        let options = Options { params: &params, rules, ..source.options(&functions) };
        if query::compile(source, &options, false, term)?.is_none() {
            status = Status::Usage;
        }
    }
    site.warn_unknown(&sources, term);
    Ok(status)
}
