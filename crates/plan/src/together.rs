//! Several programs as one, that runs in one pass over the packets.
//!
//! A program puts out the same among the others as alone: in outputs of its own, with the same rows
//! in the same order. Groups that several pipelines begin with are made once.

use crate::limits::{JOINED_PIPELINES_MAX, OUTPUTS_MAX};
use crate::program::{Pipeline, Program};
use crate::share::share;
use std::collections::BTreeMap;
use std::fmt;

/// Programs that one run can't take together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotTogether {
    /// They have more of something than one run takes.
    TooMany {
        /// Of what, as messages say it.
        what: &'static str,
        /// How many they have.
        count: usize,
        /// How many one run takes.
        most: usize,
    },
    /// Some read packets, and others flow records.
    Sources,
}

impl fmt::Display for NotTogether {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotTogether::TooMany { what, count, most } => {
                write!(f, "the programs have {count} {what} together; one run takes at most {most}")
            }
            NotTogether::Sources => f.write_str(
                "some of the programs read packets, and others flow records: a run has one kind of \
                 source, so start a run for each",
            ),
        }
    }
}

impl std::error::Error for NotTogether {}

/// Joins programs, in the order given. Pipelines are named after their program: `program.name`; an
/// output that has no name `program`, or `program.N` with its number among the outputs of the
/// program, from 1, if there are several without one.
///
/// The common part of several pipelines over packets is run once, where it makes rows of columns:
/// the groups that they begin with, even where they ask them for other aggregates, and whole
/// pipelines. The others read its rows.
///
/// # Errors
/// If there are more than [`JOINED_PIPELINES_MAX`] pipelines, or [`OUTPUTS_MAX`] outputs for
/// packets; or if they don't read the same kind of source.
pub fn join(programs: Vec<(String, Program)>) -> Result<Program, NotTogether> {
    side_by_side(programs).map(share)
}

/// As [`join`], with nothing made once for several programs: so that each of them can go without
/// the others, and nothing of it is there before it came.
///
/// # Errors
/// As for [`join`].
pub fn side_by_side(programs: Vec<(String, Program)>) -> Result<Program, NotTogether> {
    let pipelines = programs.iter().map(|(_, program)| program.pipelines.len()).sum();
    few("pipelines", pipelines, JOINED_PIPELINES_MAX)?;
    let source = programs.first().map(|(_, program)| program.source).unwrap_or_default();
    if programs.iter().any(|(_, program)| program.source != source) {
        return Err(NotTogether::Sources);
    }
    let mut joined = Program { pipelines: Vec::new(), source };
    for (name, program) in programs {
        let before = joined.pipelines.len();
        let names = output_names(&name, &program);
        for (pipeline, name) in program.pipelines.into_iter().zip(names) {
            let mut pipeline = Pipeline { name, ..pipeline };
            pipeline.renumber(|i| before + i);
            joined.pipelines.push(pipeline);
        }
    }
    few("outputs for packets", joined.outlets().len(), OUTPUTS_MAX)?;
    Ok(joined)
}

/// The names of the pipelines of a program among those of others, as [`join`] says; `None` for one
/// that nobody sees.
pub fn output_names(program: &str, of: &Program) -> Vec<Option<String>> {
    let unnamed = |p: &&Pipeline| p.printed && p.name.is_none();
    let several = of.pipelines.iter().filter(unnamed).count() > 1;
    let mut output = 0;
    let name = |pipeline: &Pipeline| {
        output += usize::from(pipeline.printed);
        match &pipeline.name {
            Some(own) => Some(format!("{program}.{own}")),
            None if !pipeline.printed => None,
            None if several => Some(format!("{program}.{output}")),
            None => Some(program.to_owned()),
        }
    };
    of.pipelines.iter().map(name).collect()
}

/// Of each pipeline of joined programs the program, and its number there. One without a name is of
/// the program of those that read it, which come next.
pub fn program_places(joined: &Program) -> Vec<(String, usize)> {
    let mut of = String::new();
    let mut programs: Vec<String> = Vec::new();
    for pipeline in joined.pipelines.iter().rev() {
        if let Some(name) = &pipeline.name {
            name.split('.').next().unwrap_or_default().clone_into(&mut of);
        }
        programs.push(of.clone());
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let number = |program: String| {
        let next = counts.entry(program.clone()).or_default();
        *next += 1;
        (program, *next - 1)
    };
    programs.into_iter().rev().map(number).collect()
}

fn few(what: &'static str, count: usize, most: usize) -> Result<(), NotTogether> {
    if count > most { Err(NotTogether::TooMany { what, count, most }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Expr;
    use crate::limits::GROUPS_MAX;
    use crate::program::Input;
    use crate::stage::{Schema, Stage, Summarize, Window};
    use weir_packet::fields::by_name;

    fn field(name: &str) -> Expr {
        Expr::field(by_name(name).expect("a field"))
    }

    fn by(key: &str) -> Stage {
        Stage::Summarize(Summarize {
            keys: vec![(key.to_owned(), field(key))],
            aggs: Vec::new(),
            window: Window::All,
            lateness_ns: 0,
            fill: None,
            until: None,
            unless: None,
            zone: None,
            max_groups: GROUPS_MAX,
        })
    }

    fn pipeline(name: Option<&str>, input: Input, stages: Vec<Stage>, printed: bool) -> Pipeline {
        let name = name.map(str::to_owned);
        Pipeline { name, input, stages, schema: Schema::default(), printed }
    }

    fn program(pipelines: Vec<Pipeline>) -> Program {
        Program::of(pipelines)
    }

    /// Each pipeline of the joined programs: its name, its input, how many stages it has, and
    /// whether it is printed.
    fn check(programs: Vec<(&str, Program)>, expected: &[(&str, Input, usize, bool)]) {
        let named = programs.into_iter().map(|(name, program)| (name.to_owned(), program));
        let joined = join(named.collect()).expect("few pipelines");
        let found: Vec<_> = joined
            .pipelines
            .iter()
            .map(|p| (p.name.as_deref().unwrap_or("-"), p.input, p.stages.len(), p.printed))
            .collect();
        assert_eq!(found, expected);
    }

    use Input::{Packets, Pipeline as From};

    #[test]
    fn outputs_are_named_after_their_programs() {
        let limit = || vec![Stage::Limit(1)];
        let several = program(vec![
            pipeline(Some("all"), Packets, limit(), true),
            pipeline(None, Packets, limit(), true),
            pipeline(None, From(0), limit(), true),
        ]);
        let hidden = program(vec![
            pipeline(Some("rows"), Packets, limit(), false),
            pipeline(None, From(0), limit(), true),
        ]);
        check(
            vec![("a", several), ("b", hidden)],
            &[
                ("a.all", Packets, 1, true),
                ("a.2", Packets, 1, true),
                ("a.3", From(0), 1, true),
                ("b.rows", Packets, 1, false),
                ("b", From(3), 1, true),
            ],
        );
    }

    #[test]
    fn pipelines_are_known_by_their_program_and_a_number_there() {
        let of = |name, printed| pipeline(name, Packets, vec![Stage::Limit(1)], printed);
        let joined = [(Some("a.x"), true), (Some("a"), true), (None, false), (Some("b"), true)];
        let joined = joined.into_iter().map(|(name, printed)| of(name, printed)).collect();
        let found = program_places(&program(joined));
        let expected = [("a", 0), ("a", 1), ("b", 0), ("b", 1)];
        assert_eq!(found, expected.map(|(name, number)| (name.to_owned(), number)));
    }

    #[test]
    fn groups_that_one_puts_out_are_read_by_the_others() {
        let tcp = || Stage::Where(field("tcp"));
        let whole = || pipeline(None, Packets, vec![tcp(), by("ip.src")], true);
        let more = || pipeline(None, Packets, vec![tcp(), by("ip.src"), Stage::Limit(1)], true);
        check(
            vec![("a", program(vec![whole()])), ("b", program(vec![more()]))],
            &[("a", Packets, 2, true), ("b", From(0), 1, true)],
        );
        check(
            vec![("a", program(vec![whole()])), ("b", program(vec![whole()]))],
            &[("a", Packets, 2, true), ("b", From(0), 0, true)],
        );
    }

    #[test]
    fn groups_that_nobody_puts_out_get_a_pipeline_of_their_own() {
        let more = |n| vec![by("ip.src"), Stage::Limit(n)];
        let first = program(vec![
            pipeline(None, Packets, vec![Stage::Limit(9)], true),
            pipeline(Some("s"), Packets, more(1), true),
            pipeline(None, From(1), vec![Stage::Limit(7)], true),
        ]);
        let second = program(vec![pipeline(None, Packets, more(2), true)]);
        let third = program(vec![pipeline(None, Packets, vec![by("ip.dst")], true)]);
        check(
            vec![("a", first), ("b", second), ("c", third)],
            &[
                ("a.1", Packets, 1, true),
                ("-", Packets, 1, false),
                ("a.s", From(1), 1, true),
                ("a.3", From(2), 1, true),
                ("b", From(1), 1, true),
                ("c", Packets, 1, true),
            ],
        );
    }

    #[test]
    fn a_limit_before_the_groups_is_left_alone() {
        let stages = || vec![Stage::Limit(5), by("ip.src")];
        let one = || program(vec![pipeline(None, Packets, stages(), true)]);
        check(
            vec![("a", one()), ("b", one())],
            &[("a", Packets, 2, true), ("b", Packets, 2, true)],
        );
    }

    #[test]
    fn too_many_are_refused() {
        let many = program(vec![pipeline(None, Packets, Vec::new(), true); JOINED_PIPELINES_MAX]);
        assert!(join(vec![("a".to_owned(), many.clone())]).is_ok());
        let one = program(vec![pipeline(None, Packets, Vec::new(), true)]);
        let error = join(vec![("a".to_owned(), many), ("b".to_owned(), one)]).expect_err("refused");
        let (what, most) = ("pipelines", JOINED_PIPELINES_MAX);
        assert_eq!(error, NotTogether::TooMany { what, count: most + 1, most });
    }
}
