//! The notes at the start of a run over interfaces about pipelines that show nothing until it ends.

use weir_plan::{Pipeline, Program, Stage, Window};

/// A line for each pipeline whose rows come only at the end of the capture.
pub(crate) fn notes(program: &Program) -> Vec<String> {
    // The stage that each pipeline waits in, if it does: its own, or one that its rows come from.
    let mut waits: Vec<Option<&'static str>> = Vec::new();
    let mut notes = Vec::new();
    for pipeline in &program.pipelines {
        let above = pipeline.sources().find_map(|source| waits.get(source).copied().flatten());
        let own = waits_in(pipeline);
        if let (Some(word), true) = (own.or(above), pipeline.printed) {
            let name = match &pipeline.name {
                Some(name) => format!("`{name}`"),
                None => "the query".to_owned(),
            };
            let whose = if own.is_some() { "its" } else { "a" };
            notes.push(format!(
                "note: {name} shows its rows only when the capture ends: {whose} `{word}` covers \
                 the whole capture. {}",
                remedy(word)
            ));
        }
        waits.push(own.or(above));
    }
    notes
}

/// The first stage that puts nothing out before all rows have come.
fn waits_in(pipeline: &Pipeline) -> Option<&'static str> {
    pipeline.stages.iter().find_map(|stage| match stage {
        Stage::Summarize(s) if s.window == Window::All => Some("summarize"),
        Stage::Top { windowed: false, .. } => Some("top"),
        _ => None,
    })
}

fn remedy(word: &str) -> &'static str {
    match word {
        "summarize" => {
            "With `every 10s` or `session 30s` in it, rows are shown as windows close; `weir \
             ipfix` is the flow meter with time-outs"
        }
        _ => "With a `summarize … every 10s` before it, it shows the top rows of each window",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::find;

    fn notes_of(text: &str) -> Vec<String> {
        let query = weir_lang::Query { name: "q", text };
        let compiled = weir_lang::compile(&query, &weir_lang::Options::default());
        notes(&compiled.expect("compiles").program)
    }

    #[test]
    fn pipelines_without_windows_are_noted() {
        let one = notes_of("packets | summarize n = count() by flow");
        assert_eq!(
            one,
            [
                "note: the query shows its rows only when the capture ends: its `summarize` covers the \
              whole capture. With `every 10s` or `session 30s` in it, \
              rows are shown as windows close; `weir ipfix` is the flow meter with time-outs"
            ]
        );
        assert!(
            notes_of("packets | top 5 by len")[0].contains("its `top` covers the whole capture")
        );
        let windows = "packets | summarize n = count() by flow every 1s";
        assert_eq!(notes_of(&format!("{windows} | top 5 by n")), [""; 0]);
        assert!(notes_of(&format!("{windows} | project n | summarize m = max(n)")).len() == 1);
    }

    #[test]
    fn rows_that_come_at_once_are_not_noted() {
        for text in [
            "packets | limit 5",
            "packets | distinct ip.src",
            "packets | scan n = 0 by flow => n + 1",
            "packets | summarize n = count() by flow session 15s",
            "packets | summarize n = count() by flow every 100 rows",
            "packets | pass",
        ] {
            assert_eq!(notes_of(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_waits_is_found_after_pipelines_too() {
        let text = "let flows = packets | summarize n = count() by ip.src\n\
                    let all = flows | summarize m = max(n)\nall | where m > 0";
        let noted = notes_of(text);
        assert_eq!(noted.len(), 1, "{noted:?}");
    }

    #[test]
    fn of_the_library_the_meters_without_time_outs_wait() {
        let of = |name| notes_of(find(name).expect("in the library").text).len();
        assert_eq!((of("flows"), of("ipfix"), of("top"), of("tracker")), (3, 0, 0, 0));
    }
}
