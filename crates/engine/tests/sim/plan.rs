//! Random well-typed programs.

mod above;

use crate::alert::alert;
use crate::choices::Choices;
use crate::expr::{Scope, expr, leaf, scalar, tuple_of};
use crate::hellos;
use crate::metric::metric;
use crate::rows as choose;
use crate::sides;
use crate::window::{windows, zone};
use std::any::Any;
use weir_engine::functions::{Functions, UserState};
use weir_packet::fields::KEYS;
use weir_packet::rewrite::Address;
use weir_packet::walk::TunnelPorts;
use weir_plan::aggregates::{AGGREGATES, BuiltinAggregate};
use weir_plan::ends::{Act, Anonymize, Arm, Edit, Ends, To};
use weir_plan::functions::{Parameter, Secret};
use weir_plan::limits::{GROUPS_MAX, SCAN_KEYS_MAX, SESSIONS_MAX};
use weir_plan::{
    Agg, AggFunc, Expr, ExprKind, Fill, Func, Input, Pipeline, Program, Reshaping, Scan, Schema,
    Session, Stage, Summarize, Type, Value, Window,
};

pub(crate) use above::above;

/// Idle times of scans and intervals of joins, in nanoseconds: from one packet each to everything
/// in one.
pub(crate) const SPANS_NS: [i64; 6] =
    [1_000_000_000, 100_000_000, 250_000_000, 10_000_000_000, 7_000_000, 3_600_000_000_000];

/// The functions that programs here call: scalar 0 and aggregate 0, both of int.
pub(crate) fn functions() -> Functions {
    let mut functions = Functions::default();
    functions.scalar("odd_half", &[Type::Int], Type::Int, |args| match args {
        [Value::Int(n)] if n % 2 != 0 => Value::Int(n / 2),
        [Value::Int(n)] if n % 3 == 0 => Value::Bool(true), // not of its type: counts as absent
        _ => Value::Absent,
    });
    functions.aggregate("mixed", Type::Int, Type::Int, || Box::new(Mixed::default()));
    functions
}

/// A user aggregate: count and wrapping sum of a scrambled value, as one number.
#[derive(Default)]
struct Mixed {
    seen: i64,
    sum: i64,
}

impl UserState for Mixed {
    fn update(&mut self, value: &Value) {
        let Value::Int(n) = value else { panic!("{value} is no int") };
        self.seen += 1;
        self.sum = self.sum.wrapping_add(n.wrapping_mul(0x9e37_79b9) ^ (n >> 7));
    }

    fn merge(&mut self, other: &dyn UserState) {
        let other: &Mixed = other.as_any().downcast_ref().expect("states of one aggregate");
        self.seen += other.seen;
        self.sum = self.sum.wrapping_add(other.sum);
    }

    fn finish(&self) -> Value {
        if self.seen % 5 == 4 { Value::Absent } else { Value::Int(self.sum ^ self.seen) }
    }

    fn encode(&self) -> Vec<u8> {
        [self.seen.to_le_bytes(), self.sum.to_le_bytes()].concat()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        let Some((seen, sum)) = bytes.split_at_checked(8) else { return false };
        let (Ok(seen), Ok(sum)) = (seen.try_into(), sum.try_into()) else { return false };
        (self.seen, self.sum) = (i64::from_le_bytes(seen), i64::from_le_bytes(sum));
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A program of one to four pipelines.
pub(crate) fn program(c: &mut Choices) -> Program {
    let mut program = Program::default();
    let mut ends: Vec<Rows> = Vec::new();
    for i in 0..1 + c.below(4) {
        let source = if i == 0 { 0 } else { c.below(i + 2) };
        let (input, mut rows) = match source {
            n if n < i => {
                feeds(c, &mut program, n);
                (Input::Pipeline(n), Rows { fields: false, ..ends[n].clone() })
            }
            _ => (Input::Packets, Rows::packets()),
        };
        let mut stages: Vec<Stage> = Vec::new();
        if input != Input::Packets {
            stages.extend(sides::stage(c, &mut rows, &ends));
        } else if c.once_in(2) {
            stages.extend(conditions(&program));
        }
        let others =
            Pipeline { name: None, input, stages, schema: Schema::default(), printed: true };
        others.sources().for_each(|n| feeds(c, &mut program, n));
        let mut stages = others.stages;
        stages.extend((0..1 + c.below(5)).map(|_| stage(c, &mut rows)));
        if rows.schema.columns.is_empty() {
            stages.push(project(c, &mut rows));
        }
        let schema = rows.schema.clone();
        program.pipelines.push(Pipeline { name: None, input, stages, schema, printed: true });
        ends.push(rows);
    }
    program
}

/// The conditions that the latest pipeline over packets begins with, for another one to ask, too.
fn conditions(program: &Program) -> Vec<Stage> {
    let mut over_packets = program.pipelines.iter().rev().filter(|p| p.input == Input::Packets);
    let stages = over_packets.next().map_or(&[][..], |p| &p.stages);
    stages.iter().take_while(|stage| matches!(stage, Stage::Where(_))).cloned().collect()
}

/// The same program with other names for groups that nothing else reads, and a further aggregate.
pub(crate) fn aggregating_more(program: &Program) -> Program {
    let mut out = program.clone();
    for (i, pipeline) in out.pipelines.iter_mut().enumerate() {
        let read = program.pipelines.iter().any(|p| p.sources().any(|source| source == i));
        let Some(Stage::Summarize(s)) = pipeline.stages.last_mut() else { continue };
        if read || pipeline.input != Input::Packets {
            continue;
        }
        s.aggs.iter_mut().for_each(|agg| agg.name += "_of_them");
        let (name, func, ty) = ("rows".to_owned(), AggFunc::Count, Type::Int);
        s.aggs.insert(0, Agg { name, func, arg: None, cond: None, ty });
        let before = pipeline.stages.iter().fold(Schema::default(), |schema, s| s.output(&schema));
        pipeline.schema = before;
    }
    out
}

/// A program that numbers the packets which a `distinct` lets pass, of random keys and at most
/// `max` of them.
pub(crate) fn distinct_numbers(c: &mut Choices, max: u64) -> Program {
    let mut rows = Rows::packets();
    let mut stage = choose::distinct(c, &rows);
    if let Stage::Distinct(d) = &mut stage {
        (d.max_keys, d.idle_ns) = (max, i64::MAX);
    }
    let number = Expr::field(weir_packet::fields::by_name("number").expect("a field"));
    rows.schema.put("number", Type::Int);
    let project = Stage::Project { columns: vec![("number".into(), number)] };
    let (input, stages, schema) = (Input::Packets, vec![stage, project], rows.schema);
    Program::of(vec![Pipeline { name: None, input, stages, schema, printed: true }])
}

/// A program whose windows or sessions say what was lost.
pub(crate) fn completeness(c: &mut Choices) -> Program {
    let mut rows = Rows::packets();
    let mut stages = Vec::new();
    if c.once_in(3) {
        let scope = rows.scope();
        stages.push(Stage::Where(expr(c, &scope, &Type::Bool, 2)));
    }
    let stage = summarize(c, &mut rows);
    let Stage::Summarize(mut s) = stage else { unreachable!("it is one") };
    let of = |func, ty| Agg { name: format!("{func:?}"), func, arg: None, cond: None, ty };
    s.aggs = vec![of(AggFunc::Completeness, Type::Float), of(AggFunc::Count, Type::Int)];
    let stage = Stage::Summarize(s);
    let schema = stage.output(&Schema::default());
    stages.push(stage);
    let input = Input::Packets;
    Program::of(vec![Pipeline { name: None, input, stages, schema, printed: true }])
}

/// A program whose workers mostly hand over groups, and nothing else.
pub(crate) fn groups(c: &mut Choices) -> Program {
    let mut program = Program::default();
    let mut ends: Vec<Rows> = Vec::new();
    for i in 0..1 + c.below(3) {
        let source = if i == 0 { 0 } else { c.below(i + 3) };
        let over_packets = source >= i;
        let (input, mut rows) = match over_packets {
            true => (Input::Packets, Rows::packets()),
            false => {
                feeds(c, &mut program, source);
                (Input::Pipeline(source), Rows { fields: false, ..ends[source].clone() })
            }
        };
        let mut stages: Vec<Stage> = Vec::new();
        if over_packets {
            stages.extend((0..c.below(3)).map(|_| match c.below(9) {
                8 => choose::analyze(c, &mut rows),
                0 => extend(c, &mut rows),
                1 => scan(c, &mut rows),
                2 => match c.once_in(2) {
                    true => hellos::stage(c, &mut rows),
                    false => choose::distinct(c, &rows),
                },
                3 | 4 => choose::each(c, &mut rows),
                5 => choose::sample(c, &mut rows),
                _ => Stage::Where(expr(c, &rows.scope(), &Type::Bool, 3)),
            }));
            stages.push(summarize(c, &mut rows));
        } else {
            stages.extend(sides::stage(c, &mut rows, &ends));
        }
        let others =
            Pipeline { name: None, input, stages, schema: Schema::default(), printed: true };
        others.sources().for_each(|n| feeds(c, &mut program, n));
        let mut stages = others.stages;
        stages.extend((0..c.below(3)).map(|_| stage(c, &mut rows)));
        let schema = rows.schema.clone();
        program.pipelines.push(Pipeline { name: None, input, stages, schema, printed: true });
        ends.push(rows);
    }
    program
}

/// Lets another pipeline read that of number `n`.
fn feeds(c: &mut Choices, program: &mut Program, n: usize) {
    program.pipelines[n].printed = c.once_in(3);
    program.pipelines[n].name = Some(format!("rows{n}"));
}

/// The properties of the rows between two stages.
#[derive(Clone)]
pub(crate) struct Rows {
    pub(crate) schema: Schema,
    /// Packet fields can be read.
    pub(crate) fields: bool,
    /// So can the packets themselves: no stage came that waits for all workers.
    pub(crate) at_hand: bool,
    /// How often rows were taken apart: each time they may become many.
    pub(crate) apart: usize,
    /// They have event time.
    pub(crate) timed: bool,
    /// Their event time is the start of a window.
    pub(crate) windowed: bool,
    /// Names given so far.
    names: usize,
}

impl Rows {
    fn packets() -> Rows {
        Rows {
            schema: Schema::default(),
            fields: true,
            at_hand: true,
            apart: 0,
            timed: true,
            windowed: false,
            names: 0,
        }
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope { fields: self.fields, schema: self.schema.clone(), states: Vec::new() }
    }

    pub(crate) fn fresh(&mut self) -> String {
        self.names += 1;
        format!("c{}", self.names)
    }

    /// A new name, or sometimes that of a column.
    pub(crate) fn name(&mut self, c: &mut Choices) -> String {
        match c.once_in(4) && !self.schema.columns.is_empty() {
            true => c.pick(&self.schema.columns).name.clone(),
            false => self.fresh(),
        }
    }
}

fn stage(c: &mut Choices, rows: &mut Rows) -> Stage {
    match c.below(21) {
        20 if rows.fields && rows.at_hand => choose::deduplicate(c),
        19 if !rows.fields => metric(c, rows),
        18 if rows.fields => choose::analyze(c, rows),
        18 if !rows.fields && rows.timed => alert(c, rows),
        16 | 17 if rows.fields && rows.at_hand => hellos::stage(c, rows),
        14 | 15 if rows.fields => ends(c, rows),
        0..=2 => summarize(c, rows),
        3 => Stage::Where(expr(c, &rows.scope(), &Type::Bool, 3)),
        4 => extend(c, rows),
        5 | 6 => scan(c, rows),
        7 => choose::top(c, rows),
        8 => {
            rows.at_hand = false;
            Stage::Limit(c.below(30) as u64)
        }
        9 => choose::distinct(c, rows),
        10 => choose::sample(c, rows),
        11 | 12 => choose::each(c, rows),
        13 if !rows.fields && rows.schema.columns.len() > 1 => reshape(c, rows),
        _ => project(c, rows),
    }
}

/// Mostly with rows that go on.
fn ends(c: &mut Choices, rows: &Rows) -> Stage {
    let arm = |c: &mut Choices| {
        let when = (!c.once_in(3)).then(|| expr(c, &rows.scope(), &Type::Bool, 2));
        let acts = (0..c.below(4)).map(|_| act(c, rows)).collect();
        Arm { when, acts, next: !c.once_in(3) }
    };
    Stage::Ends(Ends { arms: (0..1 + c.below(3)).map(|_| arm(c)).collect() })
}

fn act(c: &mut Choices, rows: &Rows) -> Act {
    let name = |c: &mut Choices| (*c.pick(&["a", "b.pcapng", "c", "d"])).to_owned();
    let names = |c: &mut Choices| {
        let mut names: Vec<String> = (0..1 + c.below(3)).map(|_| name(c)).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let edit = |c: &mut Choices| match c.below(3) {
        0 => {
            let addresses = Address::ALL.into_iter().filter(|_| c.once_in(2)).collect();
            let named = TunnelPorts::NONE.with("vxlan", 53).filter(|_| c.once_in(2));
            let ports = named.unwrap_or_default();
            Edit::Anonymize(Anonymize { addresses, key: Secret([9; 32]), ports })
        }
        1 => Edit::Trim(*c.pick(&[64, 1, 11, 12, 1000])),
        _ => Edit::Tag(*c.pick(&[1, 4094])),
    };
    let edits = (0..c.below(3)).map(|_| edit(c)).collect();
    let to = match c.below(5) {
        0 => To::Forward(name(c)),
        1 => To::Pass,
        2 => To::Drop,
        3 => To::Broadcast(names(c)),
        _ => To::Steer { keys: keys(c, rows), outputs: names(c) },
    };
    Act { edits, to }
}

fn extend(c: &mut Choices, rows: &mut Rows) -> Stage {
    let (scope, mut columns) = (rows.scope(), Vec::<(String, usize, Expr)>::new());
    for _ in 0..1 + c.below(3) {
        let (name, ty) = (rows.name(c), scalar(c));
        if columns.iter().any(|(other, ..)| *other == name) {
            continue;
        }
        let e = expr(c, &scope, &ty, 3);
        let position = rows.schema.put(&name, ty);
        columns.push((name, position, e));
    }
    Stage::Extend { columns }
}

fn project(c: &mut Choices, rows: &mut Rows) -> Stage {
    let (scope, mut schema, mut columns) = (rows.scope(), Schema::default(), Vec::new());
    for _ in 0..1 + c.below(4) {
        let (name, ty) = (rows.fresh(), scalar(c));
        let e = expr(c, &scope, &ty, 2);
        schema.put(&name, ty);
        columns.push((name, e));
    }
    (rows.schema, rows.fields) = (schema, false);
    Stage::Project { columns }
}

/// Some columns go, or some get another name.
fn reshape(c: &mut Choices, rows: &mut Rows) -> Stage {
    let word = *c.pick(&[Reshaping::Away, Reshaping::Rename]);
    let (mut schema, mut columns) = (Schema::default(), Vec::new());
    let input = std::mem::take(&mut rows.schema.columns);
    for (i, column) in input.into_iter().enumerate() {
        let name = match word {
            Reshaping::Away if i > 0 && c.once_in(2) => continue,
            Reshaping::Rename if c.once_in(2) => rows.fresh(),
            _ => column.name,
        };
        schema.put(&name, column.ty.clone());
        columns.push((name, Expr::column(i, column.ty)));
    }
    rows.schema = schema;
    Stage::Reshape { columns, word }
}

/// Key parts: none, a named key of packets, or some expressions.
pub(crate) fn keys(c: &mut Choices, rows: &Rows) -> Vec<Expr> {
    let scope = rows.scope();
    if rows.fields && c.below(2) == 0 {
        return c.pick(KEYS).fields.iter().map(|id| Expr::field(*id)).collect();
    }
    let part = |c: &mut Choices| {
        if c.once_in(4) {
            // Networks, the narrower of which are parts of the wider ones.
            let (v4, v6) = (*c.pick(&[0, 1, 8, 24, 31, 32]), *c.pick(&[0, 1, 32, 64, 127, 128]));
            let call = ExprKind::Call(Func::Prefix { v4, v6 }, vec![leaf(c, &scope, &Type::Ip)]);
            return Expr { kind: call, ty: Type::Ip };
        }
        let ty = scalar(c);
        match c.below(3) {
            2 => expr(c, &scope, &ty, 2),
            _ => leaf(c, &scope, &ty),
        }
    };
    (0..c.below(4)).map(|_| part(c)).collect()
}

fn summarize(c: &mut Choices, rows: &mut Rows) -> Stage {
    let scope = rows.scope();
    let (window, lateness_ns, fill) = match (rows.timed, c.below(6)) {
        (false, _) | (_, 0) => (Window::All, 0, None),
        (true, 1..=3) => windows(c, !rows.windowed, rows.fields),
        (true, _) => (Window::Session(session(c)), 0, None),
    };
    let sessions = matches!(window, Window::Session(_));
    let mut condition = |n| (sessions && c.once_in(n)).then(|| expr(c, &scope, &Type::Bool, 2));
    let (until, unless) = (condition(3), condition(4));
    let keys: Vec<_> = keys(c, rows).into_iter().map(|k| (rows.fresh(), k)).collect();
    let mut aggs: Vec<_> = (0..1 + c.below(4)).map(|_| agg(c, &scope, rows.fresh())).collect();
    if sessions {
        // No row of a session is late.
        aggs.retain(|a| a.func != AggFunc::Late);
    }
    if sessions && (aggs.is_empty() || c.once_in(2)) {
        let (name, func) = (rows.fresh(), AggFunc::EndReason);
        aggs.push(Agg { name, func, arg: None, cond: None, ty: Type::Int });
    }
    let mut schema = Schema::default();
    if window != Window::All {
        schema.put("ts", Type::Time);
    }
    keys.iter().for_each(|(name, e)| _ = schema.put(name, e.ty.clone()));
    aggs.iter().for_each(|a| _ = schema.put(&a.name, a.ty.clone()));
    let timed = window != Window::All && !fill.is_some_and(|fill: Fill| fill.from_start);
    let windowed = timed && !sessions;
    let (apart, names) = (rows.apart, rows.names);
    *rows = Rows { schema, fields: false, at_hand: false, apart, timed, windowed, names };
    let max_groups = *c.pick(&[GROUPS_MAX, GROUPS_MAX, GROUPS_MAX, 5]);
    let max_groups = if sessions { SESSIONS_MAX } else { max_groups };
    let zone = window.over().and_then(|_| zone(c));
    Stage::Summarize(Summarize {
        keys,
        aggs,
        window,
        zone,
        lateness_ns,
        fill,
        until,
        unless,
        max_groups,
    })
}

fn session(c: &mut Choices) -> Session {
    Session {
        gap_ns: *c.pick(&SPANS_NS),
        active_ns: c.once_in(3).then(|| *c.pick(&SPANS_NS)),
        rows: c.once_in(3).then(|| 1 + c.below(9) as u64),
        linger_ns: c.once_in(3).then(|| *c.pick(&SPANS_NS)),
    }
}

/// Any aggregate, of any argument that it takes. That of sessions is added where they are.
fn agg(c: &mut Choices, scope: &Scope, name: String) -> Agg {
    let rows: Vec<_> = AGGREGATES.iter().filter(|row| row.func != AggFunc::EndReason).collect();
    let (func, parts, ty) = match c.below(rows.len() + 1) {
        0 => (AggFunc::User(0), vec![expr(c, scope, &Type::Int, 2)], Some(Type::Int)),
        n => {
            let func = match rows[n - 1].func {
                AggFunc::Quantile(_) => {
                    AggFunc::Quantile(*c.pick(&[0, 500_000, 900_000, 1_000_000]))
                }
                AggFunc::DistinctUpTo(_) => AggFunc::DistinctUpTo(3),
                AggFunc::Rate(_) => AggFunc::Rate(250_000_000),
                func => func,
            };
            (func, arguments(c, scope, rows[n - 1]), None)
        }
    };
    let arg = (!parts.is_empty()).then(|| tuple_of(parts));
    let result = || func.result(arg.as_ref().map(|arg| &arg.ty)).expect("it takes this argument");
    let ty = ty.unwrap_or_else(result);
    let cond =
        (func != AggFunc::Completeness && c.once_in(3)).then(|| expr(c, scope, &Type::Bool, 2));
    Agg { name, func, arg, cond, ty }
}

/// The arguments that an aggregate may be called with; where it takes tuples, up to three parts of
/// one.
fn arguments(c: &mut Choices, scope: &Scope, row: &BuiltinAggregate) -> Vec<Expr> {
    let parts = if row.tuples { 1 + c.below(3) } else { 1 };
    let depth = if row.tuples { 1 } else { 2 };
    let mut one = |takes: &Parameter| {
        let ty = c.pick(takes.types).clone();
        expr(c, scope, &ty, depth)
    };
    row.values().flat_map(|takes| (0..parts).map(|_| one(takes)).collect::<Vec<_>>()).collect()
}

fn scan(c: &mut Choices, rows: &mut Rows) -> Stage {
    let scope = rows.scope();
    let keys = keys(c, rows);
    let mut names: Vec<String> = (0..1 + c.below(2)).map(|_| rows.name(c)).collect();
    names.dedup();
    let types: Vec<Type> = names.iter().map(|_| scalar(c)).collect();
    let with_states = Scope { states: types.clone(), ..scope.clone() };
    let state = |(name, ty): (String, Type)| {
        // Texts must not grow from row to row.
        let depth = if ty == Type::Str { 0 } else { 3 };
        weir_plan::stage::ScanState {
            init: expr(c, &scope, &ty, 1),
            update: expr(c, &with_states, &ty, depth),
            output: rows.schema.put(&name, ty),
            name,
        }
    };
    let states = names.into_iter().zip(types).map(state).collect();
    Stage::Scan(Scan { states, keys, idle_ns: *c.pick(&SPANS_NS), max_keys: SCAN_KEYS_MAX })
}
