//! `weir cluster`: the upper levels of queries on Apache Flink.

mod jobs;
mod rest;

use crate::args::{ClusterArgs, ClusterCommand, ClusterQueryArgs};
use crate::exit::{Status, usage};
use crate::programs::Programs;
use crate::site::Site;
use crate::term::Term;
use std::io::Write as _;
use weir_engine::functions::Functions;
use weir_flink::FlinkJob;
use weir_plan::physical::Physical;

/// Runs one of its commands.
pub(crate) fn run(args: &ClusterArgs, term: &Term) -> anyhow::Result<Status> {
    match &args.command {
        ClusterCommand::Plan(query) => print(query, FlinkJob::to_json, term),
        ClusterCommand::Sql(query) => print(query, FlinkJob::sql, term),
        ClusterCommand::Submit(args) => match job(&args.query, term)? {
            Some(job) => jobs::submit(args, &job),
            None => Ok(Status::Usage),
        },
        ClusterCommand::List(args) => jobs::list(&args.flink),
        ClusterCommand::Status(args) => jobs::status(args),
        ClusterCommand::Cancel(args) => jobs::cancel(args),
        ClusterCommand::Savepoint(args) => jobs::savepoint(args, term),
    }
}

fn print(
    query: &ClusterQueryArgs,
    text: impl Fn(&FlinkJob) -> String,
    term: &Term,
) -> anyhow::Result<Status> {
    let Some(job) = job(query, term)? else { return Ok(Status::Usage) };
    std::io::stdout().lock().write_all(text(&job).as_bytes())?;
    Ok(Status::Ok)
}

/// The job for queries; `None`: there were errors among them, which are printed.
fn job(query: &ClusterQueryArgs, term: &Term) -> anyhow::Result<Option<FlinkJob>> {
    let site = Site::read(query.site.site.as_deref(), term)?;
    let programs = Programs::given(&query.expressions, &query.queries)?.with_site(site);
    let programs = programs.with_rules(query.rules.rules()?);
    let functions = Functions::default();
    let compiled = programs.compile(&query.params, false, &functions, false, term)?;
    let Some(program) = compiled else { return Ok(None) };
    let plan = Physical::new(&program, &[]);
    FlinkJob::new(&plan, &functions).map(Some).map_err(|why| usage(why.to_string()))
}
