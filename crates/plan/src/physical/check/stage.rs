//! Whether stages fit what comes in.

use super::expr::Reach;
use super::{Fits, PipelineId, require};
use crate::aggregates::{Agg, AggFunc};
use crate::alert::{Alert, TextPart, is_technique};
use crate::analyze::{AnalyzeTcp, TCP_COLUMNS, TCP_INPUTS};
use crate::capture::CAPTURE;
use crate::ends::{Edit, Ends, To};
use crate::expr::{Expr, ExprKind};
use crate::functions::Signatures;
use crate::hello::{HELLO_COLUMNS, Hello};
use crate::join::{Join, Union};
use crate::limits::{
    ACTS_MAX, ALERT_TEXT_MAX, ARMS_MAX, COLUMNS_MAX, EDITS_MAX, KEY_WORDS_MAX, SCAN_STATES_MAX,
    STAGES_MAX, UNION_OTHERS_MAX,
};
use crate::place::is_local;
use crate::program::{Input, Program};
use crate::rows::{Each, Parts, SampleBy};
use crate::stage::{Scan, Schema, Stage, Summarize, Window};
use crate::types::Type;
use std::collections::BTreeSet;

/// The known properties of rows between two stages.
#[derive(Clone)]
struct Rows {
    schema: Schema,
    /// Packet fields can be read.
    fields: bool,
    /// The packet is at hand: rows did not wait for others.
    at_hand: bool,
    /// They have event time.
    timed: bool,
}

/// Checks the stages of all pipelines.
pub(super) fn check(program: &Program, signatures: &Signatures) -> Fits {
    let mut ends: Vec<Rows> = Vec::new();
    for (p, pipeline) in program.pipelines.iter().enumerate() {
        let id = PipelineId(p);
        require(pipeline.stages.len() <= STAGES_MAX, id, "it has too many stages")?;
        let mut rows = match pipeline.input {
            Input::Packets => {
                Rows { schema: Schema::default(), fields: true, at_hand: true, timed: true }
            }
            Input::Pipeline(i) => Rows { fields: false, at_hand: false, ..ends[i].clone() },
        };
        for (s, stage) in pipeline.stages.iter().enumerate() {
            let at = format!("{id}, stage {}", s + 1);
            let place = StagePlace {
                first: s == 0 && pipeline.input != Input::Packets,
                last: s + 1 == pipeline.stages.len() && pipeline.printed,
                before: &ends,
                signatures,
            };
            require(width(stage) <= COLUMNS_MAX, &at, "it makes too many columns")?;
            let why = "it does not fit its input, or a bound";
            require(place.fits(stage, &rows), &at, why)?;
            rows.pass(stage, &ends);
            let names: BTreeSet<&str> = rows.schema.columns.iter().map(|c| &*c.name).collect();
            let few = names.len() <= COLUMNS_MAX;
            let once = names.len() == rows.schema.columns.len();
            require(few && once, &at, "its columns are too many, or two have one name")?;
            let scalar = rows.schema.columns.iter().all(|c| c.ty.is_scalar());
            require(scalar, &at, "a column has a type that columns do not have")?;
        }
        ends.push(rows);
    }
    Ok(())
}

impl Rows {
    /// The known properties after a stage that fits.
    fn pass(&mut self, stage: &Stage, ends: &[Rows]) {
        match stage {
            Stage::Summarize(s) => self.timed = s.is_timed(),
            Stage::Union(union) => self.timed &= union.others.iter().all(|&i| ends[i].timed),
            _ => {}
        }
        self.fields &= !stage.drops_packets();
        self.at_hand &= is_local(stage);
        self.schema = stage.output(&self.schema);
    }
}

/// How many columns a stage makes, at most.
fn width(stage: &Stage) -> usize {
    match stage {
        Stage::Extend { columns } => columns.len(),
        Stage::Project { columns } | Stage::Reshape { columns, .. } => columns.len(),
        Stage::Summarize(s) => s.keys.len() + s.aggs.len(),
        Stage::Scan(scan) => scan.states.len(),
        Stage::Join(join) => join.columns.len(),
        Stage::Union(union) => union.columns.len(),
        Stage::Each(each) => each.columns.len(),
        Stage::AnalyzeTcp(a) => a.columns.len(),
        Stage::Alert(_) => Alert::COLUMNS,
        Stage::Hello(_) => HELLO_COLUMNS.len(),
        _ => 0,
    }
}

/// Where a stage stands.
struct StagePlace<'a> {
    /// First, in a pipeline over another one.
    first: bool,
    /// Last, in a pipeline that is printed.
    last: bool,
    /// The rows that earlier pipelines end with.
    before: &'a [Rows],
    signatures: &'a Signatures,
}

/// Whether `columns` go where the output schema has them.
fn placed<'a>(
    input: &Schema,
    columns: impl IntoIterator<Item = (&'a str, usize, &'a Type)>,
) -> bool {
    let (mut out, mut names) = (input.clone(), BTreeSet::new());
    let mut placed = |(name, at, ty): (&'a str, usize, &Type)| {
        names.insert(name) && ty.is_scalar() && out.put(name, ty.clone()) == at
    };
    columns.into_iter().all(&mut placed)
}

impl StagePlace<'_> {
    fn fits(&self, stage: &Stage, rows: &Rows) -> bool {
        let reach = Reach {
            input: &rows.schema,
            fields: rows.fields,
            states: &[],
            signatures: self.signatures,
        };
        let keys = |keys: &[Expr]| !keys.is_empty() && is_key(&reach, keys);
        match stage {
            Stage::Where(cond) => reach.is(cond, &Type::Bool),
            Stage::Extend { columns } => {
                let new = columns.iter().map(|(name, at, e)| (name.as_str(), *at, &e.ty));
                columns.iter().all(|(.., e)| reach.scalar(e)) && placed(&rows.schema, new)
            }
            Stage::Project { columns } => columns.iter().all(|(_, e)| reach.scalar(e)),
            Stage::Reshape { columns, .. } => {
                let column = |e: &Expr| matches!(e.kind, ExprKind::Column(_)) && reach.scalar(e);
                columns.iter().all(|(_, e)| column(e))
            }
            Stage::Summarize(s) => summarize(&reach, s, rows),
            Stage::Scan(s) => scan(&reach, s),
            Stage::Top { by, per, windowed, .. } => {
                let ordered = |e: &Expr| reach.scalar(e) && e.ty.is_ordered();
                let per = per.as_ref().is_none_or(|per| keys(&per.keys) && per.max_keys > 0);
                by.iter().all(|key| ordered(&key.expr)) && per && (rows.timed || !windowed)
            }
            Stage::Limit(_) => true,
            Stage::Join(join) => self.first && self.join(join, rows),
            Stage::Union(union) => self.first && self.union(union, rows),
            Stage::Distinct(d) => {
                keys(&d.keys) && d.max_keys > 0 && d.idle_ns > 0 && (rows.timed || !d.windowed)
            }
            Stage::Deduplicate(d) => {
                keys(&d.keys) && d.max_packets > 0 && d.within_ns > 0 && rows.at_hand
            }
            Stage::Sample(s) => {
                let by = match &s.by {
                    SampleBy::Number(number) => reach.is(number, &Type::Int),
                    SampleBy::Order => true,
                    SampleBy::Key(parts) => keys(parts),
                };
                by && (1..=s.of).contains(&s.take)
            }
            Stage::Each(e) => each(&reach, e, rows),
            Stage::AnalyzeTcp(a) => analyze_tcp(&reach, a, rows),
            Stage::Hello(h) => {
                let here = Hello::put(&mut rows.schema.clone()) == h.columns;
                keys(&h.keys) && h.max_flows > 0 && h.idle_ns > 0 && here && rows.at_hand
            }
            Stage::Ends(e) => rows.fields && ends(&reach, e),
            Stage::Metric(m) => !rows.fields && m.fits(&rows.schema),
            Stage::Alert(a) => rows.timed && !rows.fields && alert(&reach, a),
            Stage::Capture(c) => {
                let start = rows.schema.columns.get(c.start).is_some_and(|c| c.ty == Type::Time);
                let key = |(id, at): &(weir_packet::fields::FieldId, usize)| {
                    let ty = Type::from(id.info().ty);
                    rows.schema.columns.get(*at).is_some_and(|column| column.ty == ty)
                };
                let new = [(CAPTURE, c.output, &Type::Str)];
                let times = c.over_ns >= 0 && c.before_ns >= 0 && c.after_ns >= 0;
                let name = reach.is(&c.name, &Type::Str) && placed(&rows.schema, new);
                self.last && start && times && name && c.keys.iter().all(key)
            }
        }
    }

    fn join(&self, join: &Join, rows: &Rows) -> bool {
        let Some(right) = self.before.get(join.right) else { return false };
        let (left, right_columns) = (&rows.schema.columns, &join.schema.columns);
        let key = |&(l, r): &(usize, usize)| {
            left.get(l).zip(right_columns.get(r)).is_some_and(|(l, r)| l.ty == r.ty)
        };
        let column = |c: &crate::join::JoinColumn| {
            let fits = |ty: &Type| c.default.as_ref().is_none_or(|v| v.ty().as_ref() == Some(ty));
            right_columns.get(c.from).is_some_and(|column| fits(&column.ty))
        };
        let words: usize = join.keys.iter().filter_map(|(l, _)| left.get(*l)).map(words).sum();
        let types = |schema: &Schema| -> Vec<Type> {
            schema.columns.iter().map(|column| column.ty.clone()).collect()
        };
        // Names are those that the query gave them.
        types(&right.schema) == types(&join.schema)
            && join.keys.iter().all(key)
            && words < KEY_WORDS_MAX
            && join.columns.iter().all(column)
            && join.within.is_none_or(|w| w.from_ns <= w.to_ns && rows.timed && right.timed)
            && join.max_rows > 0
    }

    fn union(&self, union: &Union, rows: &Rows) -> bool {
        let sides: Option<Vec<&Rows>> = union.others.iter().map(|i| self.before.get(*i)).collect();
        let Some(others) = sides else { return false };
        let sides: Vec<&Rows> = std::iter::once(rows).chain(others).collect();
        let column = |c: &crate::join::UnionColumn| {
            let from = c.from.iter().zip(&sides);
            let fits = |(from, side): (&Option<usize>, &&Rows)| {
                from.is_none_or(|i| side.schema.columns.get(i).is_some_and(|x| x.ty == c.ty))
            };
            c.from.len() == sides.len() && c.ty.is_scalar() && from.into_iter().all(fits)
        };
        union.others.len() <= UNION_OTHERS_MAX
            && union.columns.iter().all(column)
            && (!union.timed || sides.iter().all(|side| side.timed))
    }
}

fn words(column: &crate::stage::Column) -> usize {
    if column.ty == Type::Ip { 2 } else { 1 }
}

/// Whether these are the parts of a key, and not too many.
fn is_key(reach: &Reach<'_>, keys: &[Expr]) -> bool {
    let words: usize = keys.iter().map(|k| if k.ty == Type::Ip { 2 } else { 1 }).sum();
    words < KEY_WORDS_MAX && keys.iter().all(|key| reach.scalar(key))
}

fn summarize(reach: &Reach<'_>, s: &Summarize, rows: &Rows) -> bool {
    let keys: Vec<Expr> = s.keys.iter().map(|(_, key)| key.clone()).collect();
    let sessions = matches!(s.window, Window::Session(_));
    let aggregate = |agg: &Agg| {
        let here = match agg.func {
            AggFunc::Late => !sessions,
            AggFunc::EndReason => sessions,
            _ => true,
        };
        here && reach.aggregate(agg)
    };
    let until = s.until.iter().chain(&s.unless).all(|cond| sessions && reach.is(cond, &Type::Bool));
    let fill = s.fill.is_none_or(|fill| {
        let idle = fill.idle_ns.is_none_or(|ns| ns >= 0 && !fill.from_start);
        s.window.over().is_some() && idle && fill.max_rows > 0
    });
    (rows.timed || s.window == Window::All)
        && window(s)
        && is_key(reach, &keys)
        && s.aggs.iter().all(aggregate)
        && until
        && fill
        && s.max_groups > 0
}

/// How many panes a window has, and how many a lateness keeps open, the language bounds.
fn window(s: &Summarize) -> bool {
    if s.zone.is_some() && s.window.over().is_none() {
        return false;
    }
    match s.window {
        Window::All => s.lateness_ns == 0,
        Window::Tumbling(every) => every > 0 && s.lateness_ns >= 0,
        Window::Sliding { over, every } => every > 0 && every <= over && s.lateness_ns >= 0,
        Window::Session(session) => {
            let active = session.active_ns.is_none_or(|ns| ns > 0);
            let linger = session.linger_ns.is_none_or(|ns| ns > 0);
            session.gap_ns > 0 && active && linger && session.rows != Some(0) && s.lateness_ns == 0
        }
    }
}

fn scan(reach: &Reach<'_>, s: &Scan) -> bool {
    let types: Vec<Type> = s.states.iter().map(|state| state.init.ty.clone()).collect();
    let inner = Reach { states: &types, ..*reach };
    let states = s.states.iter().zip(&types);
    let sound = states
        .into_iter()
        .all(|(state, ty)| reach.scalar(&state.init) && inner.is(&state.update, ty));
    let new = s.states.iter().map(|state| (state.name.as_str(), state.output, &state.init.ty));
    (1..=SCAN_STATES_MAX).contains(&s.states.len())
        && sound
        && placed(reach.input, new)
        && is_key(reach, &s.keys)
        && s.idle_ns > 0
        && s.max_keys > 0
}

fn alert(reach: &Reach<'_>, a: &Alert) -> bool {
    let columns = &reach.input.columns;
    let is = |at: usize, ty: Type| columns.get(at).is_some_and(|column| column.ty == ty);
    let times = [Some(a.ts), a.first, a.last];
    let keys: Option<Vec<Expr>> = {
        let named = |(name, at): &(String, usize)| {
            let column =
                columns.get(*at).filter(|c| c.name == *name && !times.contains(&Some(*at)));
            column.map(|c| Expr::column(*at, c.ty.clone()))
        };
        a.keys.iter().map(named).collect()
    };
    let value = |part: &TextPart| match part {
        TextPart::Text(_) => true,
        TextPart::Value(e) => reach.scalar(e),
    };
    let length = |part: &TextPart| match part {
        TextPart::Text(text) => text.len(),
        TextPart::Value(_) => 1,
    };
    let parts = || a.text.iter().chain(&a.next);
    let lengths: [usize; 2] = [&a.text, &a.next].map(|parts| parts.iter().map(length).sum());
    let given = [&a.category, &a.technique].into_iter().flatten();
    let float = |e: &Expr| reach.is(e, &Type::Float);
    times.iter().flatten().all(|at| is(*at, Type::Time))
        && keys.is_some_and(|keys| is_key(reach, &keys))
        && a.evidence(reach.input).all(|at| !Alert::makes(&columns[at].name))
        && lengths.into_iter().chain(given.map(String::len)).all(|n| n <= ALERT_TEXT_MAX)
        && a.technique.as_deref().is_none_or(is_technique)
        && parts().all(value)
        && a.compared.as_ref().is_none_or(|c| float(&c.value) && float(&c.threshold))
        && a.completeness.is_none_or(|at| is(at, Type::Float))
        && a.community.as_ref().is_none_or(|e| reach.is(e, &Type::Str))
        && a.over_ns >= 0
        && a.hold_ns > 0
        && a.repeat_ns.is_none_or(|ns| ns > 0)
        && a.storm_keys > 0
        && a.max_keys > 0
}

fn each(reach: &Reach<'_>, e: &Each, rows: &Rows) -> bool {
    let types: Vec<Type> = match &e.what {
        Parts::Packet(_) if !(rows.at_hand && rows.fields) => return false,
        Parts::Packet(what) => what.info().parts.iter().map(|part| part.ty.into()).collect(),
        Parts::Split { text, by } if reach.is(text, &Type::Str) && reach.is(by, &Type::Str) => {
            vec![Type::Str]
        }
        Parts::Split { .. } => return false,
    };
    let new = e.columns.iter().map(|(name, at, ty)| (name.as_str(), *at, ty));
    e.columns.iter().map(|(.., ty)| ty).eq(&types) && placed(reach.input, new)
}

fn analyze_tcp(reach: &Reach<'_>, a: &AnalyzeTcp, rows: &Rows) -> bool {
    let inputs = a.inputs.len() == TCP_INPUTS.len()
        && a.inputs.iter().zip(TCP_INPUTS).all(|(e, (_, ty))| reach.is(e, ty));
    let new = a.columns.iter().map(|(name, at, ty)| (name.as_str(), *at, ty));
    rows.timed
        && inputs
        && !a.keys.is_empty()
        && is_key(reach, &a.keys)
        && a.columns.iter().map(|(.., ty)| ty).eq(TCP_COLUMNS.iter().map(|c| &c.ty))
        && placed(reach.input, new)
        && a.idle_ns > 0
        && a.max_keys > 0
}

fn ends(reach: &Reach<'_>, e: &Ends) -> bool {
    let act = |act: &crate::ends::Act| {
        let edit = |edit: &Edit| !matches!(edit, Edit::Tag(4096..));
        let to = match &act.to {
            To::Drop | To::Pass | To::Forward(_) => true,
            To::Broadcast(names) => !names.is_empty(),
            To::Steer { keys, outputs } => {
                !outputs.is_empty() && keys.iter().all(|key| reach.scalar(key))
            }
        };
        to && act.edits.len() <= EDITS_MAX && act.edits.iter().all(edit)
    };
    let arm = |arm: &crate::ends::Arm| {
        let when = arm.when.as_ref().is_none_or(|when| reach.is(when, &Type::Bool));
        when && arm.acts.len() <= ACTS_MAX && arm.acts.iter().all(act)
    };
    (1..=ARMS_MAX).contains(&e.arms.len()) && e.arms.iter().all(arm)
}
