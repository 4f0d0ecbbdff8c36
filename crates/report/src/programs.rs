//! The queries that a report is made of: a file each, below `queries/`.

use weir_lang::{Options, Query, ReadingRules, compile, render};
use weir_plan::Program;

/// The start of the names of these programs: no query of the library is called so.
const PREFIX: &str = "report-";

/// A query of the report.
#[derive(Debug)]
pub(crate) struct ReportQuery {
    /// The name of its file, without the ending.
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! query {
    ($name:literal) => {
        ReportQuery { name: $name, text: include_str!(concat!("queries/", $name, ".weir")) }
    };
}

/// All of them.
pub(crate) static QUERIES: &[ReportQuery] = &[
    query!("traffic"),
    query!("time_line"),
    query!("tops"),
    query!("names"),
    query!("tcp"),
    query!("dns"),
];

/// The finest step of the time lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A millisecond: for captures that are known to be small.
    Millisecond,
    /// Ten milliseconds.
    TenMilliseconds,
}

impl Step {
    /// Its length in nanoseconds.
    pub(crate) fn ns(self) -> i64 {
        match self {
            Step::Millisecond => 1_000_000,
            Step::TenMilliseconds => 10_000_000,
        }
    }
}

/// The programs of a report, each by the name under which its rows are known.
///
/// Names mean what `rules` say.
///
/// # Errors
/// What is wrong with one of them, drawn under its text.
pub fn programs(step: Step, rules: ReadingRules) -> Result<Vec<(String, Program)>, String> {
    let step = [("step".to_owned(), weir_packet::time::duration(step.ns()))];
    let one = |own: &ReportQuery| {
        let name = format!("{PREFIX}{}", own.name);
        let query = Query { name: &name, text: own.text };
        let params = if own.name == "time_line" { &step[..] } else { &[] };
        let options = Options { params, program: &name, rules, ..Options::default() };
        match compile(&query, &options) {
            Ok(compiled) => Ok((name.clone(), compiled.program)),
            Err(diagnostics) => Err(render(&diagnostics, &query, false)),
        }
    };
    QUERIES.iter().map(one).collect()
}

/// The name of an output of the report, without what all of them begin with.
pub(crate) fn output_name(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plan::together::side_by_side;

    #[test]
    fn they_compile_without_a_warning_and_are_formatted() {
        for step in [Step::Millisecond, Step::TenMilliseconds] {
            let programs = programs(step, ReadingRules::default()).expect("compiles");
            let joined = side_by_side(programs).expect("few");
            let outputs = joined.pipelines.iter().filter(|p| p.printed);
            let names: Vec<_> = outputs.filter_map(|p| output_name(p.name.as_deref()?)).collect();
            let expected = ["traffic.totals", "time_line", "tops", "tops.flows", "tcp.worst"];
            for name in expected {
                assert!(names.contains(&name), "{name}: {names:?}");
            }
        }
        for ReportQuery { name, text } in QUERIES {
            let query = Query { name, text };
            let compiled = compile(&query, &Options::default()).expect("compiles");
            assert!(compiled.warnings.is_empty(), "{name}");
            assert_eq!(weir_lang::format(text).as_deref().ok(), Some(*text), "{name}");
        }
    }
}
