//! Several programs as one, that runs in one pass over the packets.

use weir_plan::{Input, Pipeline, Program};

/// One program of all pipelines of the others, in the order given: what one puts out alone, it
/// puts out among the others, in outputs of its own. Names begin with that of their program.
pub(crate) fn merge(programs: Vec<(String, Program)>) -> Program {
    let mut merged = Program::default();
    for (name, program) in programs {
        let before = merged.pipelines.len();
        merged.pipelines.extend(program.pipelines.into_iter().map(|p| Pipeline {
            name: Some(p.name.as_ref().map_or_else(|| name.clone(), |p| format!("{name}.{p}"))),
            input: match p.input {
                Input::Packets => Input::Packets,
                Input::Pipeline(i) => Input::Pipeline(before + i),
            },
            ..p
        }));
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::compile;

    #[test]
    fn pipelines_find_what_they_read() {
        let totals = "let senders = packets | where ip | summarize n = count() by ip.src
             senders | summarize total = count()";
        let program = |name: &str, text| (name.to_owned(), compile(name, text).expect("compiles"));
        let counts = program("count", "packets | summarize n = count()");
        let merged = merge(vec![counts, program("a", totals), program("b", totals)]);
        let pipelines = |p: &Pipeline| (p.name.clone(), p.input);
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(
            merged.pipelines.iter().map(pipelines).collect::<Vec<_>>(),
            [
                (named("count"), Input::Packets),
                (named("a.senders"), Input::Packets),
                (named("a"), Input::Pipeline(1)),
                (named("b.senders"), Input::Packets),
                (named("b"), Input::Pipeline(3)),
            ]
        );
    }
}
