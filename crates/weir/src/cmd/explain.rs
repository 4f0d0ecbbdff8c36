//! `weir explain`: the plan, where each part runs, and why, as text or JSON; of several queries,
//! that of all.

mod kernel;

use crate::args::{ClusterQueryArgs, ExplainArgs, PlanFormat};
use crate::exit::{Status, usage};
use crate::exports;
use crate::programs::Programs;
use crate::query::Source;
use crate::site::Site;
use crate::term::Term;
use kernel::KernelCut;
use std::fmt::Write as _;
use std::io::Write as _;
use weir_cluster::ProbeHead;
use weir_engine::exchange::{Producer, ProducerId, needs};
use weir_engine::functions::Functions;
use weir_engine::rows::Output;
use weir_engine::run::Options;
use weir_flink::FlinkJob;
use weir_plan::keys::KeyField;
use weir_plan::physical::{Needs, Physical};
use weir_plan::{Program, TimeZone};
use weir_sink::TimeFormat;
use weir_sink::schema::json_schema;

/// Prints the params of each query, then the plan.
pub(crate) fn run(args: &ExplainArgs, term: &Term) -> anyhow::Result<Status> {
    let site = Site::read(args.site.site.as_deref(), term)?;
    let programs = Programs::given(&args.expressions, &args.queries)?.with_site(site);
    let programs = programs.with_rules(args.rules.rules()?);
    let functions = Functions::default();
    let compiled = programs.compile(&args.params, false, &functions, false, term)?;
    let Some(program) = compiled else { return Ok(Status::Usage) };
    if args.schema {
        let schema = json_schema(&Output::of(&program), TimeFormat::default());
        let text = format!("{schema:#}\n");
        std::io::stdout().lock().write_all(text.as_bytes())?;
        return Ok(Status::Ok);
    }
    let cut = args.offload.map(|hook| KernelCut::new(&program, hook.into()));
    if args.output == PlanFormat::Json {
        let text = match &cut {
            Some(cut) => cut.json(&program, functions.signatures()),
            None => Physical::new(&program, &[]).to_json(functions.signatures()),
        };
        let text = text.map_err(|e| usage(format!("-o json: {e}")))?;
        std::io::stdout().lock().write_all(text.as_bytes())?;
        return Ok(Status::Ok);
    }
    let plan = match &cut {
        Some(cut) => cut.text(&program, args.workers.get()),
        None => weir_plan::print::explain(&program, args.workers.get()),
    };
    let mut text = with_params(&programs, &args.params, &plan)?;
    if args.cluster {
        text += &probes(&program, &functions);
    }
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Status::Ok)
}

/// The same for a job on Flink: the parts that run at the probes, and those that run there.
pub(super) fn of_job(
    args: &ClusterQueryArgs,
    (programs, program): &(Programs, Program),
    functions: &Functions,
) -> anyhow::Result<Status> {
    let plan = weir_plan::print::explain(program, 1);
    let text = with_params(programs, &args.params, &plan)? + &probes(program, functions);
    let text = text + &job(program, args.rules.time_zone.0);
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Status::Ok)
}

/// The plan, after the params of each query.
fn with_params(
    programs: &Programs,
    given: &[(String, String)],
    plan: &str,
) -> anyhow::Result<String> {
    let hides = plan.contains("anonymize");
    let mut text = String::new();
    for (number, source) in programs.sources().iter().enumerate() {
        if programs.sources().len() > 1 {
            let _ = writeln!(text, "program {}: {}", source.program, source.name);
        }
        text += &params(source, &programs.all_params_of(number, given)?, hides);
    }
    if !text.is_empty() {
        text.push('\n');
    }
    Ok(text + plan)
}

/// The tasks of a job on Flink, or why there is none.
fn job(program: &Program, zone: Option<TimeZone>) -> String {
    let metrics = exports::names(program);
    if !metrics.is_empty() {
        return format!("\non Flink: no\n  why: a job exports no metrics ({metrics})\n");
    }
    let job = match FlinkJob::new(&Physical::new(program, &[]), zone) {
        Ok(job) => job,
        Err(why) => return format!("\non Flink: no\n  why: {why}\n"),
    };
    let ends = match job.is_endless() {
        true => "  --bounded: needed, since a `summarize` without `every` waits for the end\n",
        false => "",
    };
    format!(
        "\non Flink: the machine level as a job (weir cluster submit)\n  \
         source: the records of the topic that probes publish to; tasks share its partitions\n  \
         merge: the machine level, in one task, with its state in each checkpoint\n  \
         sink: rows as JSON into a topic, or into a table for each output, exactly once\n{ends}"
    )
}

/// How several probes run a program together, or why they can't.
fn probes(program: &Program, functions: &Functions) -> String {
    let plan = Physical::new(program, &[]);
    let (options, id) = (Options::default(), ProducerId::named("", 0));
    let found = needs(&plan).and_then(|needs| {
        let producer = Producer::new(&plan, functions, &options, id)?;
        Ok((needs, ProbeHead::fingerprint_text(producer.fingerprint())))
    });
    match found {
        Ok((needs, fingerprint)) => {
            let packets = match needs {
                Needs::Key(key) => {
                    let parts: Vec<String> = key.iter().map(KeyField::to_string).collect();
                    format!("packets with equal {} are at one probe", parts.join(", "))
                }
                _ => "any packet is at any probe, and no packet at two".to_owned(),
            };
            format!(
                "\nseveral probes: the worker level on each (weir run --publish), the machine \
                 level once (weir merge)\n  packets: {packets}\n  fingerprint: {fingerprint}\n"
            )
        }
        Err(why) => format!("\nseveral probes: no\n  why: {why}\n"),
    }
}

/// A line for each param with the value that it has here. `hides`: the plan has a key, which is not
/// shown here either.
fn params(query: &Source, given: &[(String, String)], hides: bool) -> String {
    let mut out = String::new();
    for param in query.params() {
        let set = given.iter().find(|(name, _)| *name == param.name).map(|(_, value)| value);
        let shown = |value: &str| match hides && is_key(value) {
            true => "…".to_owned(),
            false => value.to_owned(),
        };
        let default = set.map(|_| format!("default {}", shown(&param.default)));
        let notes: Vec<&str> =
            [param.doc.as_deref(), default.as_deref()].into_iter().flatten().collect();
        let value = shown(set.unwrap_or(&param.default));
        let _ = write!(out, "param {}: {} = {value}", param.name, param.ty);
        if !notes.is_empty() {
            let _ = write!(out, "  # {}", notes.join("; "));
        }
        out.push('\n');
    }
    out
}

/// Whether a param's value may be the key of `anonymize`: 32 bytes, or as many in hexadecimal.
fn is_key(value: &str) -> bool {
    let value = value.trim_matches('"');
    value.len() == 32 || value.len() == 64 && value.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_shown() {
        let query = "param key: string = \"\"\nparam n: int = 3\npackets | limit n";
        let given = [("key".to_owned(), "k".repeat(32))];
        let query = &Source::from_text(query, 1, 1);
        let text = params(query, &given, true);
        assert_eq!(text, "param key: string = …  # default \"\"\nparam n: int = 3\n");
        assert!(params(query, &given, false).contains(&given[0].1));
    }
}
