//! The state of a run, as a page shows it, and what the page asks of the language: the words of
//! queries, what is wrong with one, and those of the library.

use crate::library::{self, Entry, LIBRARY};
use crate::stage_flow::StageFlowView;
use crate::stats::Stats;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use weir_control::{Answers, Passes};
use weir_engine::functions::Functions;
use weir_engine::rows::Output;
use weir_http::{Lookups, Page};
use weir_lang::{Diagnostic, Query, ReadingRules};

/// Whether the page was built into this program.
pub(crate) const IS_BUILT: bool = cfg!(feature = "serve");

/// Bytes of a query that is checked while somebody types it.
const CHECKED_MAX: usize = 64 << 10;

/// The page, where it was built.
#[cfg(feature = "serve")]
pub(crate) fn page() -> Option<Page> {
    let file = |file: &weir_dashboard::BuiltFile| {
        let path = match file.name {
            "index.html" => "/".to_owned(),
            name => format!("/assets/{name}"),
        };
        weir_http::PageFile { path, content_type: file.kind, bytes: file.bytes }
    };
    Some(Page::new(weir_dashboard::FILES.iter().map(file).collect()))
}

/// There is none: it was not built.
#[cfg(not(feature = "serve"))]
pub(crate) fn page() -> Option<Page> {
    None
}

/// Whether packets still come.
#[derive(Clone, PartialEq, Debug, Default)]
enum Coming {
    /// From interfaces or a stream.
    #[default]
    Live,
    /// From files.
    Reading,
    /// No more; perhaps since something failed.
    Ended(Option<String>),
}

/// The state of a run, as a page shows it.
#[derive(Clone, Default)]
pub(crate) struct RunPhase(Arc<PhaseState>);

#[derive(Default)]
struct PhaseState {
    sources: Vec<String>,
    filter: String,
    /// The passes over packets that are read again when programs change.
    passes: Option<Arc<Passes>>,
    coming: Mutex<Coming>,
    /// Nanoseconds of the windows of the page's programs, where they were chosen.
    interval: Mutex<Option<i64>>,
}

impl RunPhase {
    /// That of a run over these interfaces or captures, with this capture filter; and the passes
    /// over them, if they are read again when programs change.
    pub(crate) fn new(sources: &[String], filter: &str, passes: Option<Arc<Passes>>) -> RunPhase {
        let phase = RunPhase(Arc::new(PhaseState {
            sources: sources.to_vec(),
            filter: filter.to_owned(),
            passes,
            ..PhaseState::default()
        }));
        phase.goes_on();
        phase
    }

    /// Packets come.
    pub(crate) fn goes_on(&self) {
        self.set(if self.0.passes.is_some() { Coming::Reading } else { Coming::Live });
    }

    /// They come no more.
    pub(crate) fn has_ended(&self, error: Option<String>) {
        self.set(Coming::Ended(error));
    }

    /// The length of the windows of the page's programs, in nanoseconds.
    pub(crate) fn set_interval(&self, interval: i64) {
        *self.0.interval.lock() = Some(interval);
    }

    fn set(&self, coming: Coming) {
        *self.0.coming.lock() = coming;
    }

    /// As JSON.
    fn value(&self) -> Value {
        let PhaseState { sources, filter, passes, coming, interval } = &*self.0;
        let begins = passes.as_ref().is_some_and(|passes| passes.has_next());
        let coming = match coming.lock().clone() {
            Coming::Ended(_) if begins => Coming::Reading,
            coming => coming,
        };
        let name = match coming {
            Coming::Live => "live",
            Coming::Reading => "reading",
            Coming::Ended(_) => "ended",
        };
        let mut value = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "sources": sources,
            "filter": filter,
            "phase": name,
            "reads_again": passes.is_some(),
        });
        if let Coming::Ended(Some(error)) = coming {
            value["error"] = error.into();
        }
        let interval = *interval.lock();
        if let Some(interval) = interval {
            value["interval"] = (interval as f64 / 1e9).into();
        }
        value
    }
}

/// The answers that do not depend on packets, for queries that mean what the run's `rules` say.
pub(crate) fn lookups(
    phase: RunPhase,
    rules: ReadingRules,
    (stats, answers): (&Stats, &Arc<Answers>),
) -> Lookups {
    let (flows, answers) = (StageFlowView::new(stats.clone()), Arc::clone(answers));
    Lookups {
        check: Box::new(move |text, params| check(text, params, rules)),
        fields: json!({ "words": words() }),
        library: json!({ "queries": of_packets().map(entry).collect::<Vec<_>>() }),
        run: Box::new(move || phase.value()),
        stages: Box::new(move || flows.value(&answers)),
    }
}

/// The queries of the library that a run over packets can take.
pub(crate) fn of_packets() -> impl Iterator<Item = &'static Entry> {
    LIBRARY.iter().filter(|entry| entry.group != "records")
}

/// The mistakes of a query, and what its rows would be.
fn check(text: &str, params: &[(String, String)], rules: ReadingRules) -> Value {
    if text.len() > CHECKED_MAX {
        let message = format!("a query that is typed is at most {} KiB long", CHECKED_MAX >> 10);
        let to = text.encode_utf16().count();
        let one = json!({ "from": 0, "to": to, "severity": "error", "message": message });
        return json!({ "diagnostics": [one], "outputs": [], "params": [] });
    }
    let functions = Functions::default();
    let options = weir_lang::Options {
        params,
        signatures: functions.signatures(),
        rules,
        library: Some(library::text),
        ..weir_lang::Options::default()
    };
    let param = |param: weir_lang::ParamInfo| {
        let weir_lang::ParamInfo { name, ty, default, doc } = param;
        json!({ "name": name, "type": ty, "default": default, "doc": doc })
    };
    let all = weir_lang::all_params(text, library::text);
    let all: Vec<Value> = all.into_iter().map(param).collect();
    let compiled = weir_lang::compile(&Query { name: "query", text }, &options);
    let (diagnostics, outputs) = match compiled {
        Ok(compiled) => (compiled.warnings, Output::of(&compiled.program)),
        Err(diagnostics) => (diagnostics, Vec::new()),
    };
    let diagnostics: Vec<Value> = diagnostics.iter().map(|d| diagnostic(d, text)).collect();
    let outputs: Vec<Value> = outputs.iter().map(output).collect();
    json!({ "diagnostics": diagnostics, "outputs": outputs, "params": all })
}

/// A diagnostic, with its place in the units of JavaScript.
fn diagnostic(diagnostic: &Diagnostic, text: &str) -> Value {
    let units = |byte: usize| {
        let whole = (0..=byte.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        text[..whole.unwrap_or(0)].encode_utf16().count()
    };
    let from = units(diagnostic.span.start);
    let mut value = json!({
        "from": from,
        "to": units(diagnostic.span.end).max(from),
        "severity": if diagnostic.is_error() { "error" } else { "warning" },
        "message": diagnostic.message,
    });
    if let Some(help) = &diagnostic.help {
        value["help"] = help.as_str().into();
    }
    value
}

fn output(output: &Output) -> Value {
    let column =
        |column: &weir_plan::Column| json!({ "name": column.name, "type": column.ty.to_string() });
    let columns: Vec<Value> = output.schema.columns.iter().map(column).collect();
    json!({ "name": output.name, "columns": columns })
}

fn entry(entry: &Entry) -> Value {
    let Entry { group, name, text, .. } = entry;
    json!({ "name": name, "group": group, "title": entry.title(), "text": text })
}

/// The words of the language, for completion.
fn words() -> Vec<Value> {
    let value = |word: weir_lang::LanguageWord| {
        let weir_lang::LanguageWord { name, kind, ty, doc } = word;
        json!({ "name": name, "kind": kind.name(), "type": ty, "doc": doc })
    };
    weir_lang::words().into_iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::fields::{FlowKey, KeyPart};

    fn check(text: &str, params: &[(String, String)]) -> Value {
        super::check(text, params, ReadingRules::default())
    }

    #[test]
    fn keys_are_those_of_the_run() {
        let text = "packets | summarize n = count() by flow";
        let flow_key = FlowKey::default().with(KeyPart::Vlan);
        let value = super::check(text, &[], ReadingRules { flow_key, ..ReadingRules::default() });
        let columns = |value: &Value| value["outputs"][0]["columns"].to_string();
        assert!(columns(&value).contains("vlan.inner"), "{value}");
        assert!(!columns(&check(text, &[])).contains("vlan"));
    }

    #[test]
    fn mistakes_have_places_as_editors_count_them() {
        let wrong = check("packets | where \"\u{1f600}\" == dprt", &[]);
        let first = &wrong["diagnostics"][0];
        assert_eq!((&first["from"], &first["to"]), (&json!(24), &json!(28)), "{wrong}");
        assert_eq!(first["severity"], "error");
        let right = check("param n: int = 1 # how many\npackets | limit n | project ts, len", &[]);
        assert_eq!(right["diagnostics"], json!([]));
        let columns = json!([{ "name": "ts", "type": "time" }, { "name": "len", "type": "int" }]);
        assert_eq!(right["outputs"][0]["columns"], columns);
        assert_eq!(right["params"][0]["doc"], "how many");
        let long = check(&"x".repeat(CHECKED_MAX + 1), &[]);
        assert_eq!(long["diagnostics"][0]["to"], CHECKED_MAX + 1);
    }

    #[test]
    fn any_text_is_answered() {
        for text in ["", "\u{feff}", "|", "packets |", "\u{e9}\u{1f600}", "\"", "#", "packets\r\n|"]
        {
            let value = check(text, &[]);
            let units = text.encode_utf16().count();
            for one in value["diagnostics"].as_array().expect("a list") {
                let at = |name: &str| one[name].as_u64().expect("a number") as usize;
                assert!(at("from") <= at("to") && at("to") <= units, "{text:?}: {one}");
            }
        }
    }

    #[test]
    fn each_word_is_there() {
        let words = words();
        for (kind, name) in [
            ("field", "ip.src"),
            ("key", "flow"),
            ("part", "dns.answer"),
            ("function", "prefix"),
            ("aggregate", "count"),
            ("stage", "summarize"),
        ] {
            assert!(words.iter().any(|w| w["kind"] == kind && w["name"] == name), "{kind} {name}");
        }
    }

    #[test]
    fn the_programs_of_the_page_are_right() {
        for (name, text) in weir_dashboard::PROGRAMS {
            let value = check(text, &[("interval".to_owned(), "100ms".to_owned())]);
            assert_eq!(value["diagnostics"], json!([]), "{name}");
            // The columns that the page reads of each.
            for output in value["outputs"].as_array().expect("outputs") {
                let columns = output["columns"].as_array().expect("columns");
                let names: Vec<_> = columns.iter().filter_map(|c| c["name"].as_str()).collect();
                let reads = match output["name"].as_str().unwrap_or_default() {
                    "counts" => &["proto", "conversations"][..],
                    "senders" | "receivers" => &["host", "packets", "bytes"],
                    _ => &["proto", "packets", "bytes"],
                };
                assert!(names[0] == "ts" && names.contains(&"interface"), "{names:?}");
                assert!(reads.iter().all(|name| names.contains(name)), "{names:?}: {reads:?}");
            }
        }
    }
}
