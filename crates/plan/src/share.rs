//! The common parts of several pipelines of a program, run once.
//!
//! Pipelines over packets that begin with the same stages up to a `summarize`, and group by the
//! same keys in the same windows, share one table of groups: it holds the aggregates of all of
//! them, and each reads its own. Where some of them fill in what had no packet and others do not,
//! these read the groups that had one. A pipeline that does just what an earlier one does reads its
//! rows. Pipelines over the same rows that begin with the same stages have these [once](rows), too.

mod rows;

use crate::aggregates::{Agg, AggFunc};
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::place::is_local;
use crate::program::{Input, Pipeline, Program};
use crate::stage::{Schema, Stage, Summarize, Window};
use crate::types::Type;
use crate::value::Value;
use crate::window::Fill;

/// Runs once what several pipelines have in common.
pub(crate) fn share(program: Program) -> Program {
    let shared = SharedPrefixes::of(&program);
    let mut out = Program { pipelines: Vec::new(), source: program.source };
    // Where each pipeline went, and where the groups are that it is the first to begin with.
    let (mut places, mut groups) = (Vec::new(), vec![0; shared.firsts.len()]);
    for (p, mut pipeline) in program.pipelines.into_iter().enumerate() {
        pipeline.renumber(|i| places[i]);
        if let Some(first) = shared.copies[p] {
            if !pipeline.printed {
                places.push(places[first]);
                continue;
            }
            (pipeline.input, pipeline.stages) = (Input::Pipeline(places[first]), Vec::new());
        } else if let Some((first, union)) = shared.groups(p) {
            let (before, own) = grouped(&pipeline).map_or((0, None), |(b, s)| (b.len(), Some(s)));
            let view = own.map_or_else(Vec::new, |own| view(own, union));
            // One that puts out just these groups makes them for the others, too.
            let whole = before + 1 == pipeline.stages.len() && view.is_empty();
            if first == p {
                groups[p] = out.pipelines.len();
            }
            if first != p || !whole {
                let rest = pipeline.stages.split_off(before + 1);
                let mut made = std::mem::replace(&mut pipeline.stages, rest);
                if first == p {
                    made.pop();
                    made.push(Stage::Summarize(union.clone()));
                    out.pipelines.push(unseen(made));
                }
                pipeline.stages.splice(..0, view);
                pipeline.input = Input::Pipeline(groups[first]);
            }
        }
        places.push(out.pipelines.len());
        out.pipelines.push(pipeline);
    }
    rows::share(out)
}

/// The common parts of the pipelines of a program.
struct SharedPrefixes {
    /// Of each pipeline that begins with groups, the first one that begins with the same.
    firsts: Vec<Option<usize>>,
    /// Of each pipeline that others begin like, the groups with the aggregates of all of them.
    unions: Vec<Option<Summarize>>,
    /// Of each pipeline the earlier one that does just the same, if there is one.
    copies: Vec<Option<usize>>,
}

impl SharedPrefixes {
    fn of(program: &Program) -> SharedPrefixes {
        let all = &program.pipelines;
        let firsts = firsts(all);
        let union = |p: usize| {
            let mut same = (0..all.len()).filter(|&q| firsts[q] == Some(p));
            let members: Vec<&Summarize> =
                same.by_ref().filter_map(|q| grouped(&all[q]).map(|(_, s)| s)).collect();
            (members.len() > 1).then(|| union(&members))
        };
        let unions = (0..all.len()).map(union).collect();
        let copy = |p: usize| all[..p].iter().position(|q| is_copy(&all[p], q));
        let copies = (0..all.len()).map(copy).collect();
        SharedPrefixes { firsts, unions, copies }
    }

    /// The first pipeline that begins with the groups of pipeline `p`, and these groups, if several
    /// do.
    fn groups(&self, p: usize) -> Option<(usize, &Summarize)> {
        let first = self.firsts[p]?;
        self.unions[first].as_ref().map(|union| (first, union))
    }
}

/// The stages of a pipeline over packets before its first `summarize`, and that, if they do nothing
/// but make its groups.
fn grouped(pipeline: &Pipeline) -> Option<(&[Stage], &Summarize)> {
    let at = pipeline.stages.iter().position(|s| matches!(s, Stage::Summarize(_)))?;
    let Stage::Summarize(s) = &pipeline.stages[at] else { return None };
    let before = &pipeline.stages[..at];
    (pipeline.input == Input::Packets && before.iter().all(is_quiet)).then_some((before, s))
}

/// Whether a stage over packets does nothing but make or leave out rows.
fn is_quiet(stage: &Stage) -> bool {
    is_local(stage) && !matches!(stage, Stage::Ends(_))
}

/// Of each pipeline that begins with groups, the first one that begins with the same.
fn firsts(all: &[Pipeline]) -> Vec<Option<usize>> {
    // The first of those that begin alike, and what is filled in for any of them.
    let mut known: Vec<(usize, Option<Fill>)> = Vec::new();
    let first = |(p, pipeline): (usize, &Pipeline)| {
        let mine = grouped(pipeline)?;
        let fill = mine.1.fill;
        let fits = |(first, other): &&mut (usize, Option<Fill>)| {
            let theirs = grouped(&all[*first]);
            (fill.is_none() || other.is_none() || fill == *other)
                && theirs.is_some_and(|theirs| alike(mine, theirs))
        };
        if let Some((first, other)) = known.iter_mut().find(fits) {
            *other = other.or(fill);
            return Some(*first);
        }
        known.push((p, fill));
        Some(p)
    };
    all.iter().enumerate().map(first).collect()
}

/// Whether two pipelines begin with the same groups, whatever they aggregate of them and fill in.
fn alike(a: (&[Stage], &Summarize), b: (&[Stage], &Summarize)) -> bool {
    let ((before, a), (other, b)) = (a, b);
    let keys = |s: &Summarize| s.keys.iter().map(|(_, e)| e.clone()).collect::<Vec<Expr>>();
    before == other
        && keys(a) == keys(b)
        && a.window == b.window
        && a.lateness_ns == b.lateness_ns
        && a.until == b.until
        && a.unless == b.unless
        && a.max_groups == b.max_groups
}

/// Whether two aggregates are the same but for their names.
fn same_agg(a: &Agg, b: &Agg) -> bool {
    a.func == b.func && a.arg == b.arg && a.cond == b.cond && a.ty == b.ty
}

/// The aggregate that tells groups that had a packet from those that were filled in.
fn packets() -> Agg {
    let (name, func, ty) = ("packets".to_owned(), AggFunc::Count, Type::Int);
    Agg { name, func, arg: None, cond: None, ty }
}

/// Groups with the aggregates of all, each once, under names that differ.
fn union(members: &[&Summarize]) -> Summarize {
    let mut out = members[0].clone();
    out.fill = members.iter().find_map(|s| s.fill);
    // The windows that fill nothing in have to know what was.
    let packets = (members.iter().any(|s| s.fill != out.fill)).then(packets);
    for agg in members[1..].iter().flat_map(|s| &s.aggs).chain(&packets) {
        if out.aggs.iter().any(|known| same_agg(known, agg)) {
            continue;
        }
        let taken = |name: &str| {
            let keys = out.keys.iter().map(|(key, _)| key.as_str());
            name == "ts" || keys.chain(out.aggs.iter().map(|a| a.name.as_str())).any(|n| n == name)
        };
        let numbered = (2..).map(|n| format!("{}_{n}", agg.name));
        let mut names = std::iter::once(agg.name.clone()).chain(numbered);
        let name = names.find(|name| !taken(name)).unwrap_or_default();
        out.aggs.push(Agg { name, ..agg.clone() });
    }
    out
}

/// The stages that give the rows of `own` when those of `union` come in; none where they are the
/// same.
fn view(own: &Summarize, union: &Summarize) -> Vec<Stage> {
    if own == union {
        return Vec::new();
    }
    let window = (own.window != Window::All).then_some("ts");
    let keys = own.keys.iter().map(|(name, _)| name.as_str());
    let before = window.into_iter().chain(keys).enumerate();
    let places = union.aggs.iter().zip(before.clone().count()..);
    let place = |agg: &Agg| places.clone().find(|(known, _)| same_agg(known, agg));
    let aggs = own.aggs.iter().filter_map(|agg| Some((place(agg)?.1, agg.name.as_str())));
    let schema = Stage::Summarize(union.clone()).output(&Schema::default());
    let column = |(at, name): (usize, &str)| {
        (name.to_owned(), Expr::column(at, schema.columns[at].ty.clone()))
    };
    let own_columns = Stage::Project { columns: before.chain(aggs).map(column).collect() };
    let filled = union.fill.filter(|_| own.fill.is_none()).and_then(|_| place(&packets()));
    let had_packets = filled.map(|(_, at)| {
        let count = Box::new(Expr::column(at, Type::Int));
        let none = Box::new(Expr::constant(Value::Int(0)));
        let kind = ExprKind::Binary(BinaryOp::Gt, count, none);
        Stage::Where(Expr { ty: Type::Bool, kind })
    });
    had_packets.into_iter().chain([own_columns]).collect()
}

/// Whether a pipeline over packets does just what another one does, and puts out rows of columns
/// that it need not make again.
fn is_copy(mine: &Pipeline, theirs: &Pipeline) -> bool {
    let rows = |stage: &Stage| matches!(stage, Stage::Project { .. } | Stage::Reshape { .. });
    mine.input == Input::Packets
        && theirs.input == Input::Packets
        && mine.stages == theirs.stages
        && mine.schema == theirs.schema
        && mine.stages.iter().all(is_quiet)
        && mine.stages.iter().any(rows)
        && !mine.stages.iter().any(|stage| matches!(stage, Stage::Capture(_) | Stage::Metric(_)))
}

/// A pipeline over packets that only others read.
fn unseen(stages: Vec<Stage>) -> Pipeline {
    let schema = stages.iter().fold(Schema::default(), |schema, stage| stage.output(&schema));
    Pipeline { name: None, input: Input::Packets, stages, schema, printed: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::GROUPS_MAX;
    use weir_packet::fields::by_name;

    fn field(name: &str) -> Expr {
        Expr::field(by_name(name).expect("a field"))
    }

    fn by(key: &str, name: &str, aggs: &[(&str, AggFunc)]) -> Stage {
        let arg = |func: AggFunc| (func != AggFunc::Count).then(|| field("len"));
        let agg = |&(name, func): &(&str, AggFunc)| Agg {
            name: name.to_owned(),
            func,
            arg: arg(func),
            cond: None,
            ty: Type::Int,
        };
        Stage::Summarize(Summarize {
            keys: vec![(name.to_owned(), field(key))],
            aggs: aggs.iter().map(agg).collect(),
            window: Window::Tumbling(1_000_000_000),
            lateness_ns: 0,
            fill: None,
            until: None,
            unless: None,
            zone: None,
            max_groups: GROUPS_MAX,
        })
    }

    fn pipeline(input: Input, stages: Vec<Stage>, printed: bool) -> Pipeline {
        let schema = stages.iter().fold(Schema::default(), |schema, stage| stage.output(&schema));
        Pipeline { name: None, input, stages, schema, printed }
    }

    /// Each pipeline after sharing: its input, and the columns after each of its stages.
    fn shared(pipelines: Vec<Pipeline>) -> Vec<String> {
        let out = share(Program::of(pipelines));
        let mut lines = Vec::new();
        for p in &out.pipelines {
            let (mut schema, mut line) = match p.input {
                Input::Packets => (Schema::default(), "packets".to_owned()),
                Input::Pipeline(i) => (out.pipelines[i].schema.clone(), format!("from {i}")),
            };
            for stage in &p.stages {
                schema = stage.output(&schema);
                let names: Vec<&str> = schema.columns.iter().map(|c| c.name.as_str()).collect();
                line += &format!(" | {}", names.join(","));
            }
            assert_eq!(schema, p.schema, "{line}");
            lines.push(line);
        }
        lines
    }

    #[test]
    fn groups_of_one_key_hold_the_aggregates_of_all() {
        let where_ip = || Stage::Where(field("ip"));
        let counts = [("n", AggFunc::Count), ("bytes", AggFunc::Sum)];
        let found = shared(vec![
            pipeline(Input::Packets, vec![where_ip(), by("ip.src", "host", &counts)], true),
            pipeline(
                Input::Packets,
                vec![
                    where_ip(),
                    by("ip.src", "from", &[("sum", AggFunc::Sum), ("n", AggFunc::Max)]),
                    Stage::Limit(1),
                ],
                true,
            ),
            pipeline(Input::Packets, vec![by("ip.src", "host", &counts)], true),
        ]);
        assert_eq!(
            found,
            [
                "packets |  | ts,host,n,bytes,n_2",
                "from 0 | ts,host,n,bytes",
                "from 0 | ts,from,sum,n | ts,from,sum,n",
                "packets | ts,host,n,bytes",
            ]
        );
    }

    #[test]
    fn what_is_all_the_same_is_put_out_by_the_first() {
        let counts = [("n", AggFunc::Count)];
        let one = |printed| pipeline(Input::Packets, vec![by("ip.dst", "a", &counts)], printed);
        let renamed = pipeline(Input::Packets, vec![by("ip.dst", "b", &counts)], true);
        assert_eq!(
            shared(vec![one(true), one(true), renamed]),
            ["packets | ts,a,n", "from 0", "from 0 | ts,b,n"]
        );
    }

    #[test]
    fn groups_that_are_filled_in_serve_those_that_are_not() {
        let filled = |idle_ns: Option<i64>| {
            let mut stage = by("ip.src", "host", &[("sum", AggFunc::Sum)]);
            if let Stage::Summarize(s) = &mut stage {
                s.fill = idle_ns.map(|idle_ns| Fill::idle(Some(idle_ns)));
            }
            pipeline(Input::Packets, vec![stage], true)
        };
        assert_eq!(
            shared(vec![filled(None), filled(Some(5)), filled(Some(6)), filled(Some(5))]),
            [
                "packets | ts,host,sum,packets",
                "from 0 | ts,host,sum,packets | ts,host,sum",
                "from 0 | ts,host,sum",
                "packets | ts,host,sum",
                "from 0 | ts,host,sum",
            ]
        );
        // None of them has to know which are filled in.
        assert_eq!(
            shared(vec![filled(Some(5)), filled(Some(5))]),
            ["packets | ts,host,sum", "from 0"]
        );
    }

    #[test]
    fn other_windows_or_conditions_are_others() {
        let counts = [("n", AggFunc::Count)];
        let mut longer = by("ip.dst", "a", &counts);
        if let Stage::Summarize(s) = &mut longer {
            s.window = Window::Tumbling(2_000_000_000);
        }
        let some = vec![Stage::Where(field("tcp")), by("ip.dst", "a", &counts)];
        let found = shared(vec![
            pipeline(Input::Packets, vec![by("ip.dst", "a", &counts)], true),
            pipeline(Input::Packets, vec![longer], true),
            pipeline(Input::Packets, some, true),
        ]);
        assert!(found.iter().all(|line| line.starts_with("packets")), "{found:?}");
    }

    #[test]
    fn a_pipeline_that_is_there_already_is_read() {
        let project = || Stage::Project { columns: vec![("a".to_owned(), field("ip.src"))] };
        let rows = |printed| {
            pipeline(Input::Packets, vec![Stage::Where(field("tcp")), project()], printed)
        };
        let reads = |input| {
            let schema = Schema { columns: vec![crate::Column::new("a", &Type::Ip)] };
            Pipeline { name: None, input, stages: vec![Stage::Limit(1)], schema, printed: true }
        };
        let found = shared(vec![
            rows(false),
            reads(Input::Pipeline(0)),
            rows(false),
            reads(Input::Pipeline(2)),
            rows(true),
        ]);
        assert_eq!(found, ["packets |  | a", "from 0 | a", "from 0 | a", "from 0"],);
        // Packets are no rows that could be read again.
        let packets = || pipeline(Input::Packets, vec![Stage::Where(field("tcp"))], true);
        assert_eq!(shared(vec![packets(), packets()]), ["packets | ", "packets | "]);
    }
}
