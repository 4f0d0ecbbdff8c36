//! `weir cluster`: the upper levels of queries on Apache Flink.

mod client;
mod jobs;
mod progress;
mod rest;

use super::explain;
use super::merge::refuse_metrics;
use crate::args::{ClusterArgs, ClusterCommand, ClusterQueryArgs, SubmitArgs};
use crate::exit::{Status, usage};
use crate::kafka;
use crate::programs::Programs;
use crate::site::Site;
use crate::term::Term;
use weir_engine::functions::Functions;
use weir_flink::FlinkJob;
use weir_plan::Program;
use weir_plan::physical::Physical;

/// Runs one of its commands.
pub(crate) fn run(args: &ClusterArgs, term: &Term) -> anyhow::Result<Status> {
    match &args.command {
        ClusterCommand::Submit(args) => match job(args, term)? {
            Some(job) => jobs::submit(args, &job),
            None => Ok(Status::Usage),
        },
        ClusterCommand::Explain(args) => {
            let functions = Functions::default();
            match compiled(args, &functions, term)? {
                Some(queries) => explain::of_job(args, &queries, &functions),
                None => Ok(Status::Usage),
            }
        }
        ClusterCommand::List(args) => jobs::list(args),
        ClusterCommand::Status(args) => jobs::status(args),
        ClusterCommand::Retire(args) => {
            let log = kafka::retire(args, term)?;
            term.say(format_args!(
                "probe {log} is retired: nothing waits for it until it sends again"
            ));
            Ok(Status::Ok)
        }
        ClusterCommand::Cancel(args) => jobs::cancel(args),
        ClusterCommand::Savepoint(args) => jobs::savepoint(args, term),
    }
}

/// Queries and the program of all; `None`: there were errors among them, which are printed.
fn compiled(
    query: &ClusterQueryArgs,
    functions: &Functions,
    term: &Term,
) -> anyhow::Result<Option<(Programs, Program)>> {
    let site = Site::read(query.site.site.as_deref(), term)?;
    let programs = Programs::given(&query.expressions, &query.queries)?.with_site(site);
    let programs = programs.with_rules(query.rules.rules()?);
    let compiled = programs.compile(&query.params, false, functions, false, term)?;
    Ok(compiled.map(|program| (programs, program)))
}

/// The job for queries as JSON; `None`: as above.
fn job(args: &SubmitArgs, term: &Term) -> anyhow::Result<Option<String>> {
    let functions = Functions::default();
    let Some((_, program)) = compiled(&args.query, &functions, term)? else { return Ok(None) };
    refuse_metrics(&program, "a job")?;
    let job = FlinkJob::new(&Physical::new(&program, &[]), args.query.rules.time_zone.0);
    let job = job.map_err(|why| usage(why.to_string()))?;
    if job.is_endless() && !args.bounded {
        return Err(usage(
            "a `summarize` without `every` has no result before the end of the input, and a topic \
             has none: add `every`, or --bounded",
        ));
    }
    Ok(Some(job.to_json(&functions)?))
}
