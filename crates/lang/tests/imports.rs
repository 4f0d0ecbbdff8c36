//! Queries of a library as sources of others.

use weir_lang::{Code, Diagnostic, Options, Query, all_params, compile};
use weir_plan::{Program, print};

/// A library of a few queries.
fn library(name: &str) -> Option<&'static str> {
    match name {
        "sources" => Some(
            "param interval: duration = 1s # width\n\
             packets | where ip | summarize n = count(), len = sum(len) by ip.src every interval",
        ),
        "meter" => Some(
            "let flows = packets | where ip | summarize n = count() by flow | print\n\
             let totals = flows | summarize flows = count()\n\
             let pairs = flows | join totals by n == flows",
        ),
        "http" => Some("let http_only = packets | where http\nhttp_only | summarize n = count()"),
        "alarm" => Some(
            "packets | where tcp | summarize n = count() by ip.src every 1s | where n > 100\n\
             | alert \"{ip.src}\" severity low",
        ),
        "talkers" => Some("flows | summarize n = count() by ip.src"),
        _ => None,
    }
}

fn compiled(text: &str, params: &[(String, String)]) -> Result<Program, Vec<Diagnostic>> {
    let options = Options { library: Some(library), params, ..Options::default() };
    let compiled = compile(&Query { name: "q", text }, &options)?;
    assert!(compiled.warnings.is_empty(), "{text}: {:?}", compiled.warnings);
    Ok(compiled.program)
}

fn program(text: &str) -> Program {
    compiled(text, &[]).unwrap_or_else(|all| panic!("{text}: {all:?}"))
}

/// Names of the pipelines, those that print with a star.
fn pipelines(program: &Program) -> String {
    let all = program.pipelines.iter().map(|pipeline| {
        let star = if pipeline.printed { "*" } else { "" };
        format!("{}{star}", pipeline.name.as_deref().unwrap_or("-"))
    });
    all.collect::<Vec<_>>().join(" ")
}

#[test]
fn rows_of_the_library_are_as_if_its_text_stood_there() {
    let own = "let all = packets | where ip\n\
               | summarize n = count(), len = sum(len) by ip.src every 1s\nall | where n > 3";
    let (mut theirs, mut ours) = (program("sources | where n > 3"), program(own));
    for program in [&mut theirs, &mut ours] {
        program.pipelines.iter_mut().for_each(|pipeline| pipeline.name = None);
    }
    assert_eq!(print::explain(&theirs, 1), print::explain(&ours, 1));
}

#[test]
fn only_needed_pipelines_run_and_only_own_ones_print() {
    for (text, expected) in [
        ("sources | where n > 3", "sources -*"),
        ("meter | where n > 3", "meter.flows -*"),
        ("meter.totals | where flows > 3", "meter.flows meter.totals -*"),
        ("http | where n > 1", "http -*"),
        ("let a = sources | where n > 3 | print\na | limit 1", "sources a* -*"),
        ("meter | join meter.totals by n == flows", "meter.flows meter.totals -*"),
        ("sources | union sources | where n > 3", "sources -*"),
        ("packets | where http", "-*"),
    ] {
        assert_eq!(pipelines(&program(text)), expected, "{text}");
    }
}

#[test]
fn names_of_the_query_come_first() {
    let text = "let sources = packets | where tcp | summarize m = count()\nsources | where m > 1";
    assert_eq!(pipelines(&program(text)), "sources -*");
    // A field of the same name is that field.
    assert_eq!(pipelines(&program("http | where n > 1 | extend m = n")), "http -*");
}

#[test]
fn params_are_given_as_if_they_were_its_own() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let text = "param most: int = 3\nsources | where n > most";
    let given = [pair("interval", "5s"), pair("most", "7")];
    let shown = print::explain(&compiled(text, &given).expect("compiles"), 1);
    assert!(shown.contains("every 5s") && shown.contains("7"), "{shown}");
    let names: Vec<String> =
        all_params(text, library).into_iter().map(|param| param.name).collect();
    assert_eq!(names, ["most", "interval"]);
    let wrong = compiled(text, &[pair("intervall", "5s")]).expect_err("no such param");
    assert_eq!(wrong[0].code, Code::UnknownParam);
    assert_eq!(wrong[0].help.as_deref(), Some("did you mean `interval`?"));
    let wrong = compiled(text, &[pair("interval", "x")]).expect_err("no duration");
    assert_eq!((wrong[0].code, wrong.len()), (Code::BadParam, 1));
    assert!(wrong[0].notes.iter().any(|note| note.text.contains("`sources`")), "{wrong:?}");
}

#[test]
fn mistakes_are_told_at_their_place_in_the_query() {
    for (text, code) in [
        ("nothing | limit 1", Code::UnknownPipeline),
        ("sources.nothing | limit 1", Code::UnknownPipeline),
        ("sources | where dport == 80", Code::FieldGone),
        ("sources | where m > 1", Code::UnknownName),
        ("packets | where sources > 1", Code::UnknownName),
        ("sources | join meter.totals by n == flows", Code::NoEventTime),
        ("let a = packets | where tcp\ntalkers | join a by ip.src", Code::MixedSources),
    ] {
        let wrong = compiled(text, &[]).expect_err(text);
        assert_eq!(wrong[0].code, code, "{text}: {wrong:?}");
        for d in &wrong {
            assert!(d.span.end <= text.len(), "{text}: {d:?}");
            assert!(d.notes.iter().all(|n| n.span.is_none_or(|span| span.end <= text.len())));
        }
        let _ = weir_lang::render(&wrong, &Query { name: "q", text }, false);
    }
}

/// So that a line which suppresses the detector suppresses it here, too.
#[test]
fn alerts_of_the_library_keep_their_names() {
    let program = program("alarm | project ts, alert.rule\nalarm | limit 1");
    let rules = program.pipelines.iter().flat_map(|pipeline| &pipeline.stages);
    let rules: Vec<&str> = rules
        .filter_map(|stage| match stage {
            weir_plan::Stage::Alert(alert) => Some(alert.rule.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!((rules, pipelines(&program)), (vec!["alarm"], "alarm -* -*".to_owned()));
}

#[test]
fn queries_over_flow_records_stay_so() {
    let program = program("talkers | where n > 3");
    assert_eq!(program.source, weir_plan::SourceKind::FlowRecords);
}
