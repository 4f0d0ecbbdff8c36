//! Partitions of one stream of packets, each processed by itself: whether the rows of all of them
//! are those of one run, and how far back a run has to read to go on where another one stopped.

use crate::keys::{FieldSet, KeyColumns, describe, determines};
use crate::{Expr, ExprKind, Pipeline, Program, SampleBy, Stage, Window};

/// Whether the rows of a program over all packets are those of the partitions together, where
/// packets with equal values of `key` are in one partition, and in order.
///
/// # Errors
/// Names the stage for which they are not, and why.
pub fn rows_by_partition(program: &Program, key: &FieldSet) -> Result<(), String> {
    let mut all: Vec<KeyColumns> = Vec::new();
    for (number, pipeline) in program.pipelines.iter().enumerate() {
        let mut columns = pipeline.sources().next().map(|of| all[of].clone()).unwrap_or_default();
        for stage in &pipeline.stages {
            check_stage(stage, &columns, key)
                .map_err(|why| format!("{}: {why}", name_of(number, pipeline)))?;
            columns = columns.after(stage);
        }
        all.push(columns);
    }
    Ok(())
}

fn name_of(number: usize, pipeline: &Pipeline) -> String {
    match &pipeline.name {
        Some(name) => format!("pipeline {} ({name})", number + 1),
        None => format!("pipeline {}", number + 1),
    }
}

/// Refuses a stage that would need packets of several partitions.
fn check_stage(stage: &Stage, columns: &KeyColumns, key: &FieldSet) -> Result<(), String> {
    let keyed = |word: &str, parts: &mut dyn Iterator<Item = &Expr>| {
        let by = columns.fields_of(parts);
        match determines(&by, key) && !key.is_empty() {
            true => Ok(()),
            false if by.is_empty() => Err(format!("`{word}` has no key that is a packet field")),
            false => Err(format!(
                "`{word}` keeps packets with equal {} together, and packets are spread by {}",
                describe(&by),
                describe(key)
            )),
        }
    };
    let whole = |word: &str| Err(format!("`{word}` needs the rows of all packets in one place"));
    match stage {
        Stage::Where(_) | Stage::Extend { .. } | Stage::Project { .. } => Ok(()),
        Stage::Reshape { .. } | Stage::Each(_) | Stage::Metric(_) | Stage::Union(_) => Ok(()),
        Stage::Sample(sample) => match sample.by {
            SampleBy::Key(_) => Ok(()),
            SampleBy::Number(_) | SampleBy::Order => whole("sample"),
        },
        Stage::Summarize(s) if s.fill.is_some() => whole("fill"),
        Stage::Summarize(s) => keyed("summarize", &mut s.keys.iter().map(|(_, part)| part)),
        Stage::Scan(scan) => keyed("scan", &mut scan.keys.iter()),
        Stage::AnalyzeTcp(analyze) => keyed("analyze tcp", &mut analyze.keys.iter()),
        Stage::Hello(hello) => keyed("hello", &mut hello.keys.iter()),
        Stage::Deduplicate(copies) => keyed("deduplicate", &mut copies.keys.iter()),
        Stage::Distinct(distinct) => keyed("distinct", &mut distinct.keys.iter()),
        Stage::Top { per: Some(per), .. } => keyed("top", &mut per.keys.iter()),
        Stage::Alert(alert) => {
            let keys: Vec<Expr> = alert.keys.iter().map(|(_, at)| column(*at)).collect();
            keyed("alert", &mut keys.iter())
        }
        Stage::Top { per: None, .. } => whole("top"),
        Stage::Limit(_) => whole("limit"),
        Stage::Join(_) => whole("join"),
        Stage::Ends(_) => Err("it hands packets out".to_owned()),
        Stage::Capture(_) => Err("it asks for the packets around its rows".to_owned()),
    }
}

/// A column, whose type does not matter here.
fn column(at: usize) -> Expr {
    Expr { kind: ExprKind::Column(at), ty: crate::Type::Int }
}

/// How much older than the watermark packets may be, in nanoseconds, that matter for rows which are
/// yet to come. `None` where any packet may, however old.
///
/// A run that has read all packets younger than that, and the watermark before them, gives from
/// there on the rows of a run that has read all.
pub fn reach_back(program: &Program) -> Option<i64> {
    let mut all: Vec<i64> = Vec::new();
    for pipeline in &program.pipelines {
        let mut reach = pipeline.sources().map(|of| all[of]).max().unwrap_or(0);
        for stage in &pipeline.stages {
            let own = reach_of(stage)?;
            // Rows of windows may themselves wait for the windows that they are in.
            let again = if own > 0 { reach } else { 0 };
            reach = reach.checked_add(own)?.checked_add(again)?;
        }
        all.push(reach);
    }
    Some(all.into_iter().max().unwrap_or(0))
}

fn reach_of(stage: &Stage) -> Option<i64> {
    match stage {
        Stage::Where(_) | Stage::Extend { .. } | Stage::Project { .. } => Some(0),
        Stage::Reshape { .. } | Stage::Each(_) | Stage::Metric(_) | Stage::Union(_) => Some(0),
        Stage::Ends(_) | Stage::Capture(_) | Stage::Top { windowed: true, .. } => Some(0),
        Stage::Sample(sample) if sample.by != SampleBy::Order => Some(0),
        Stage::Distinct(distinct) if distinct.windowed => Some(0),
        Stage::Summarize(s) if s.fill.is_none() => match s.window {
            Window::Tumbling(over) | Window::Sliding { over, .. } => {
                s.longest(over).checked_add(s.lateness_ns)
            }
            Window::All | Window::Session(_) => None,
        },
        _ => None,
    }
}
