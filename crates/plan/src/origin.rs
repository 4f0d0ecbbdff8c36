//! Which packets a row is made of: its keys and its window, followed back through the stages of its
//! program to conditions on packets.
//!
//! The results are stages that keep these packets, and perhaps more where a stage can't be followed
//! back: a `limit`, say, whose choice depends on packets that are gone.

use crate::alert::Alert;
use crate::ends::{Arm, Ends};
use crate::expr::{BinaryOp, Expr, ExprKind, Member, UnaryOp};
use crate::functions::Func;
use crate::hello::Hello;
use crate::program::{Input, Pipeline, Program};
use crate::rows::Parts;
use crate::schema::Schema;
use crate::stage::{Scan, ScanState, Stage, Summarize, Window};
use crate::types::Type;
use crate::value::Value;
use std::fmt;
use weir_packet::fields::{FieldId, by_name};

/// The packets that a row is made of.
#[derive(Clone, PartialEq, Debug)]
pub struct RowPackets {
    /// Stages over packets that keep them; all rows are packets still.
    pub stages: Vec<Stage>,
    /// The columns after these stages.
    pub schema: Schema,
    /// They are not before this time, in nanoseconds since 1970, ...
    pub from: Option<i64>,
    /// ... and before this one.
    pub until: Option<i64>,
    /// Stages of the program that left out packets or rows and that are not followed back, so that
    /// others may be among the packets.
    pub passed_over: Vec<&'static str>,
}

/// Why packets of a row can't be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoPackets {
    /// Its program has no such pipeline.
    Unknown,
    /// It is made of rows of several pipelines.
    Several,
}

impl fmt::Display for NoPackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoPackets::Unknown => "no pipeline makes such rows",
            NoPackets::Several => {
                "rows of a `join` or `union` are made of rows of several pipelines: ask for the \
                 packets of a row of one of these, or give a condition"
            }
        })
    }
}

impl std::error::Error for NoPackets {}

/// The statement that a column of rows makes about packets.
#[derive(Clone, PartialEq, Debug)]
enum Origin {
    /// All packets of the row have this value.
    Value(Expr),
    /// They are not before it, and for less than this from then on; `None`: for how long is open.
    Start(Option<i64>),
    /// They are before the end of the window that starts then.
    End(i64),
    /// Nothing.
    Nothing,
}

/// The way back from rows to packets, after some stages.
#[derive(Default)]
struct Trace {
    stages: Vec<Stage>,
    /// The columns that stages have added to packets.
    schema: Schema,
    /// The statements of the columns of the rows.
    columns: Vec<Origin>,
    /// The columns of the rows.
    rows: Schema,
    /// Whether rows are groups.
    grouped: bool,
    /// How long after the time of a row its packets may be: the windows that they were grouped by,
    /// one after the other; `None` of a session or of all packets, which have no such end.
    reach_ns: Option<i64>,
    passed_over: Vec<&'static str>,
}

impl Program {
    /// The packets that a row of a pipeline is made of. `row` has the values of its columns, or
    /// `None` for one that is not known, such as a float that was rounded.
    ///
    /// # Errors
    /// If that can't be told.
    pub fn packets_of(
        &self,
        pipeline: usize,
        row: &[Option<Value>],
    ) -> Result<RowPackets, NoPackets> {
        let mut chain: Vec<&Pipeline> = Vec::new();
        let mut next = Some(pipeline);
        while let Some(at) = next {
            let pipeline = self.pipelines.get(at).ok_or(NoPackets::Unknown)?;
            if matches!(pipeline.stages.first(), Some(Stage::Join(_) | Stage::Union(_))) {
                return Err(NoPackets::Several);
            }
            chain.push(pipeline);
            next = match pipeline.input {
                // A pipeline reads earlier ones only.
                Input::Pipeline(n) if n < at => Some(n),
                _ => None,
            };
        }
        let mut trace = Trace { reach_ns: Some(0), ..Trace::default() };
        for stage in chain.iter().rev().flat_map(|pipeline| &pipeline.stages) {
            trace.follow(stage);
        }
        Ok(trace.end(row))
    }
}

fn time_field() -> FieldId {
    by_name("ts").expect("a field of the catalogue")
}

/// The same expression with something else for each column; `None` where one has no such thing.
fn replaced(e: &Expr, columns: &[Origin]) -> Option<Expr> {
    let again = |e: &Expr| replaced(e, columns);
    let boxed = |e: &Expr| again(e).map(Box::new);
    let all = |all: &[Expr]| all.iter().map(again).collect::<Option<Vec<_>>>();
    let kind = match &e.kind {
        ExprKind::Column(at) => {
            return match columns.get(*at) {
                Some(Origin::Value(value)) => Some(value.clone()),
                _ => None,
            };
        }
        ExprKind::Const(_) | ExprKind::Field(_) | ExprKind::State(_) => e.kind.clone(),
        ExprKind::Unary(op, a) => ExprKind::Unary(*op, boxed(a)?),
        ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, boxed(a)?, boxed(b)?),
        ExprKind::If(a, b, c) => ExprKind::If(boxed(a)?, boxed(b)?, boxed(c)?),
        ExprKind::In(a, members) => {
            let members: Vec<Member> = members.clone();
            ExprKind::In(boxed(a)?, members)
        }
        ExprKind::Call(func, args) => ExprKind::Call(func.clone(), all(args)?),
        ExprKind::Tuple(parts) => ExprKind::Tuple(all(parts)?),
    };
    Some(Expr { ty: e.ty.clone(), kind })
}

impl Trace {
    /// Goes on after a stage.
    fn follow(&mut self, stage: &Stage) {
        let output = stage.output(&self.rows);
        match stage {
            Stage::Where(condition) if !self.grouped => match replaced(condition, &self.columns) {
                Some(condition) => self.stages.push(Stage::Where(condition)),
                None => self.passed_over.push("where"),
            },
            Stage::Extend { columns } => {
                let all = columns.iter().map(|(_, at, e)| (*at, e));
                let origins: Vec<_> = all.map(|(at, e)| (at, self.origin(e))).collect();
                self.resize(output.columns.len());
                origins.into_iter().for_each(|(at, origin)| self.columns[at] = origin);
            }
            Stage::Project { columns } | Stage::Reshape { columns, .. } => {
                self.columns = columns.iter().map(|(_, e)| self.origin(e)).collect();
            }
            Stage::Summarize(summarize) => self.group(summarize),
            Stage::Alert(alert) => self.alert(alert),
            Stage::Top { .. } => self.passed_over.extend((!self.grouped).then_some("top")),
            Stage::Limit(_) => self.passed_over.extend((!self.grouped).then_some("limit")),
            Stage::Distinct(_) => self.passed_over.extend((!self.grouped).then_some("distinct")),
            Stage::Deduplicate(_) => {
                self.passed_over.extend((!self.grouped).then_some("deduplicate"));
            }
            Stage::Sample(_) => self.passed_over.extend((!self.grouped).then_some("sample")),
            stage if !self.grouped => self.follow_packets(stage, output.columns.len()),
            // Columns that a stage adds to groups say nothing of packets that their keys do not
            // say.
            Stage::Scan(scan) => {
                self.resize(output.columns.len());
                scan.states.iter().for_each(|s| self.columns[s.output] = Origin::Nothing);
            }
            _ => {}
        }
        self.resize(output.columns.len());
        self.rows = output;
    }

    /// Goes on after a stage that adds columns to packets, or hands them out.
    fn follow_packets(&mut self, stage: &Stage, width: usize) {
        match stage {
            Stage::Scan(scan) => {
                let scanned = self.scan(scan);
                self.resize(width);
                for (state, at) in scan.states.iter().zip(scanned) {
                    self.columns[state.output] = at.map_or(Origin::Nothing, |at| {
                        Origin::Value(Expr::column(at, state.init.ty.clone()))
                    });
                }
            }
            Stage::AnalyzeTcp(analyze) => {
                let all = |all: &[Expr]| all.iter().map(|e| replaced(e, &self.columns)).collect();
                let parts: (Option<Vec<_>>, Option<Vec<_>>) =
                    (all(&analyze.keys), all(&analyze.inputs));
                let (Some(keys), Some(inputs)) = parts else {
                    return self.passed_over.push("analyze tcp");
                };
                let mut columns = Vec::new();
                self.resize(width);
                for (_, to, ty) in &analyze.columns {
                    let (name, at) = self.put(ty);
                    self.columns[*to] = Origin::Value(Expr::column(at, ty.clone()));
                    columns.push((name, at, ty.clone()));
                }
                let analyze = crate::AnalyzeTcp { keys, inputs, columns, ..analyze.clone() };
                self.stages.push(Stage::AnalyzeTcp(analyze));
            }
            Stage::Hello(hello) => {
                let keys = hello.keys.iter().map(|e| replaced(e, &self.columns)).collect();
                let Some(keys) = keys else { return self.passed_over.push("hello") };
                let columns = Hello::put(&mut self.schema);
                self.resize(width);
                for (&to, &at) in hello.columns.iter().zip(&columns) {
                    let ty = self.schema.columns[at].ty.clone();
                    self.columns[to] = Origin::Value(Expr::column(at, ty));
                }
                self.stages.push(Stage::Hello(Hello { keys, columns, ..hello.clone() }));
            }
            Stage::Each(each) => {
                self.passed_over.push(match each.what {
                    Parts::Packet(_) => "each",
                    Parts::Split { .. } => "each split",
                });
                self.resize(width);
                each.columns.iter().for_each(|(_, at, _)| self.columns[*at] = Origin::Nothing);
            }
            Stage::Ends(ends) => self.ends(ends),
            _ => {}
        }
    }

    /// Follows packets that are folded; says where the columns of its states are.
    fn scan(&mut self, scan: &Scan) -> Vec<Option<usize>> {
        let state = |s: &ScanState| {
            let init = replaced(&s.init, &self.columns)?;
            Some((init, replaced(&s.update, &self.columns)?))
        };
        let keys: Option<Vec<_>> = scan.keys.iter().map(|e| replaced(e, &self.columns)).collect();
        let states: Option<Vec<_>> = scan.states.iter().map(state).collect();
        let (Some(keys), Some(states)) = (keys, states) else {
            self.passed_over.push("scan");
            return vec![None; scan.states.len()];
        };
        let mut out = Vec::new();
        for (init, update) in states {
            let (name, output) = self.put(&init.ty);
            out.push(ScanState { name, output, init, update });
        }
        let places = out.iter().map(|state| Some(state.output)).collect();
        let (idle_ns, max_keys) = (scan.idle_ns, scan.max_keys);
        self.stages.push(Stage::Scan(Scan { states: out, keys, idle_ns, max_keys }));
        places
    }

    /// Only rows of some arms go on.
    fn ends(&mut self, ends: &Ends) {
        let arm = |arm: &Arm| {
            let when = match &arm.when {
                Some(when) => Some(replaced(when, &self.columns)?),
                None => None,
            };
            Some(Arm { when, acts: Vec::new(), next: arm.next })
        };
        let arms = ends.arms.iter().map(arm).collect::<Option<Vec<_>>>();
        if !ends.goes_on() || ends.arms.iter().all(|arm| arm.next) {
            return;
        }
        match arms {
            Some(arms) => self.stages.push(Stage::Ends(Ends { arms })),
            None => self.passed_over.push("branch"),
        }
    }

    /// Rows are groups from here on.
    fn group(&mut self, summarize: &Summarize) {
        let keys: Vec<_> = summarize.keys.iter().map(|(_, e)| self.origin(e)).collect();
        self.reach_ns = match summarize.window {
            Window::Tumbling(over) | Window::Sliding { over, .. } => {
                self.reach_ns.and_then(|inner| inner.checked_add(summarize.longest(over)))
            }
            Window::All | Window::Session(_) => None,
        };
        let has_time = summarize.window != Window::All;
        let start = has_time.then_some(Origin::Start(self.reach_ns));
        let aggregates = summarize.aggs.iter().map(|_| Origin::Nothing);
        self.columns = start.into_iter().chain(keys).chain(aggregates).collect();
        self.grouped = true;
    }

    /// An alert says when its key was first and last asserted.
    fn alert(&mut self, alert: &Alert) {
        // Without a column that says when the last packet was, it is the end of a window.
        let is_packet = alert.last.is_some() || alert.over_ns == 0;
        let own = Alert::columns().map(|(name, _)| match name {
            "alert.first" => Origin::Start(None),
            "alert.last" => Origin::End(i64::from(is_packet)),
            _ => Origin::Nothing,
        });
        let evidence: Vec<_> = alert.evidence(&self.rows).collect();
        let rest = evidence.into_iter().map(|at| match self.columns.get(at) {
            Some(Origin::Value(e)) => Origin::Value(e.clone()),
            _ => Origin::Nothing,
        });
        self.columns = own.chain(rest).collect();
        // Values of a row of one packet are those of the row with the peak.
        if !self.grouped {
            let keys: Vec<usize> = alert.keys.iter().map(|(_, at)| *at).collect();
            let places = alert.evidence(&self.rows).enumerate();
            for (to, from) in places.map(|(i, from)| (Alert::COLUMNS + i, from)) {
                if !keys.contains(&from) {
                    self.columns[to] = Origin::Nothing;
                }
            }
        }
        self.grouped = true;
    }

    /// The statement that an expression over rows makes about packets. While rows are packets, it
    /// becomes a column of theirs: an expression that is used again and again is there once.
    fn origin(&mut self, e: &Expr) -> Origin {
        if let ExprKind::Column(at) = e.kind {
            return self.columns.get(at).cloned().unwrap_or(Origin::Nothing);
        }
        let value = (!self.grouped).then(|| replaced(e, &self.columns)).flatten();
        let Some(value) = value.filter(|e| e.ty.is_scalar()) else { return Origin::Nothing };
        if matches!(value.kind, ExprKind::Field(_) | ExprKind::Column(_) | ExprKind::Const(_)) {
            return Origin::Value(value);
        }
        let ty = value.ty.clone();
        let (name, at) = self.put(&ty);
        self.stages.push(Stage::Extend { columns: vec![(name, at, value)] });
        Origin::Value(Expr::column(at, ty))
    }

    /// A further column of packets: its name and place.
    fn put(&mut self, ty: &Type) -> (String, usize) {
        let name = format!("_{}", self.schema.columns.len());
        let at = self.schema.put(&name, ty.clone());
        (name, at)
    }

    fn resize(&mut self, width: usize) {
        self.columns.resize(width, Origin::Nothing);
    }

    /// Puts in the values of a row.
    fn end(self, row: &[Option<Value>]) -> RowPackets {
        let Trace { mut stages, schema, columns, grouped, passed_over, .. } = self;
        let (mut from, mut until): (Option<i64>, Option<i64>) = (None, None);
        let later = |known: Option<i64>, t: i64| Some(known.map_or(t, |k: i64| k.max(t)));
        let earlier = |known: Option<i64>, t: i64| Some(known.map_or(t, |k: i64| k.min(t)));
        let mut conditions = Vec::new();
        for (origin, value) in columns.iter().zip(row) {
            match (origin, value) {
                (Origin::Start(over), Some(Value::Time(t))) => {
                    from = later(from, *t);
                    until = over.map_or(until, |over| earlier(until, t.saturating_add(over)));
                }
                (Origin::End(over), Some(Value::Time(t))) => {
                    until = earlier(until, t.saturating_add(*over));
                }
                (Origin::Value(e), Some(Value::Time(t))) if e.kind == ts() && !grouped => {
                    from = later(from, *t);
                    until = earlier(until, t.saturating_add(1));
                }
                (Origin::Value(e), Some(value)) => conditions.extend(equals(e, value)),
                _ => {}
            }
        }
        let and = |a, b| Expr {
            ty: Type::Bool,
            kind: ExprKind::Binary(BinaryOp::And, Box::new(a), Box::new(b)),
        };
        stages.extend(conditions.into_iter().reduce(and).map(Stage::Where));
        RowPackets { stages, schema, from, until, passed_over }
    }
}

fn ts() -> ExprKind {
    ExprKind::Field(time_field())
}

/// Whether an expression has a value; `None` where that can't be asked, or says nothing.
fn equals(e: &Expr, value: &Value) -> Option<Expr> {
    if matches!(e.kind, ExprKind::Const(_)) {
        return None;
    }
    let bool_of = |kind| Expr { ty: Type::Bool, kind };
    if !value.exists() {
        let exists = bool_of(ExprKind::Call(Func::Exists, vec![e.clone()]));
        return Some(bool_of(ExprKind::Unary(UnaryOp::Not, Box::new(exists))));
    }
    let is_exact = value.ty().is_some_and(|ty| ty == e.ty && ty != Type::Float);
    is_exact.then(|| {
        let constant = Expr::constant(value.clone());
        bool_of(ExprKind::Binary(BinaryOp::Eq, Box::new(e.clone()), Box::new(constant)))
    })
}
