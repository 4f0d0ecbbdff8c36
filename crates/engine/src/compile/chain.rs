//! A chain of row operators and what its rows come to, stage by stage.

use super::placed::Placed;
use crate::chain::{Chain, Numbering};
use crate::expr::{Automaton, Compiler, Scope, Src, Val};
use crate::kernel::KernelFeed;
use crate::node::{Chained, End, Node};
use crate::ops::alert::Alerts;
use crate::ops::each::Each;
use crate::ops::ends::carried::{FrameSlots, frame_columns};
use crate::ops::filter::Filter;
use crate::ops::gather::Gather;
use crate::ops::limit::Limit;
use crate::ops::map::Map;
use crate::ops::operator::{ActionsId, Operator};
use crate::ops::scan::{Scan, State};
use crate::ops::session::Sessions;
use crate::ops::summarize::Summarize;
use crate::ops::top::Top;
use crate::room::RoomShare;
use crate::rows::Rows;
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_packet::fields::FieldId;
use weir_plan::limits::SCAN_KEYS_MAX;
use weir_plan::physical::{self, Carry, NodeId, Work, columns_read, untested};
use weir_plan::{Column, Expr, Schema, Stage, Type};

/// Where the rows of a chain come from.
pub(super) enum ChainInput<'a> {
    /// Packets; fields are decoded by the worker's view.
    Packets,
    /// Rows with these columns, and after them what they carry.
    Rows(&'a Schema, &'a Carry),
}

/// The fate of rows at the end of a chain.
pub(super) enum Ending {
    /// They go on as rows.
    Rows(Gather),
    /// They go on as several rows each.
    Parts(Each),
    /// The best go on.
    Top(Top),
    /// They say what is wrong.
    Alerts(Alerts),
    /// They are grouped by window.
    Windows(Summarize),
    /// They are grouped by session.
    Sessions(Sessions),
}

/// A chain being compiled.
pub(super) struct ChainBuilder<'a> {
    pub(super) placed: Placed<'a>,
    pub(super) compiler: Compiler<'a>,
    pub(super) scope: Scope,
    pub(super) schema: Schema,
    pub(super) ops: Vec<Box<dyn Operator>>,
    /// Where event time stands.
    pub(super) time: Src,
    /// Whether the rows that come in are the packets of a view.
    pub(super) packets: bool,
    /// Which of the operators hand out frames, and as what.
    pub(super) actions: Vec<(usize, ActionsId)>,
    /// How many operators there are up to each stage, and with it.
    stages: Vec<usize>,
    /// Where the frame stands, if it came along.
    pub(super) frame: Option<FrameSlots>,
    /// Conditions that hold for all rows, up to the first stage that is no `where`.
    pub(super) tested: &'a [Expr],
    /// Of the columns after the node at hand those that are read at most, by position; `None`
    /// where any may be.
    read: Option<BTreeSet<usize>>,
}

impl<'a> ChainBuilder<'a> {
    pub(super) fn new(
        placed: Placed<'a>,
        from: ChainInput<'_>,
        fields: &'a mut Vec<FieldId>,
    ) -> ChainBuilder<'a> {
        let mut build = ChainBuilder {
            placed,
            compiler: Compiler::new(placed.with.functions, fields),
            scope: Scope::default(),
            schema: Schema::default(),
            ops: Vec::new(),
            time: Src::Slot(0),
            packets: matches!(from, ChainInput::Packets),
            actions: Vec::new(),
            stages: Vec::new(),
            frame: None,
            tested: &[],
            read: None,
        };
        build.time = build.input(&from);
        build
    }

    /// Makes a node of the chain and its ending. `shares_numbers`: rows may come with the same
    /// number, though one after the other; a node that holds rows back numbers them itself then.
    pub(super) fn close(self, ending: Ending, shares_numbers: bool) -> Box<dyn Node> {
        fn boxed<E: End>(mut chain: Chain, end: E, shares_numbers: bool) -> Box<dyn Node> {
            chain.numbering = (!E::PASSES_ROWS && shares_numbers).then(Numbering::new);
            Box::new(Chained { chain, end })
        }
        let chain = self.chain();
        match ending {
            Ending::Rows(mut gather) => {
                gather.share(&chain.regs);
                boxed(chain, gather, shares_numbers)
            }
            Ending::Parts(mut each) => {
                each.share(&chain.regs);
                boxed(chain, each, shares_numbers)
            }
            Ending::Top(top) => boxed(chain, top, shares_numbers),
            Ending::Alerts(alerts) => boxed(chain, alerts, shares_numbers),
            Ending::Windows(windows) => boxed(chain, windows, shares_numbers),
            Ending::Sessions(sessions) => boxed(chain, sessions, shares_numbers),
        }
    }

    /// The operators so far.
    pub(super) fn chain(self) -> Chain {
        Chain {
            passed: vec![0; self.ops.len()],
            regs: self.compiler.regs,
            ops: self.ops,
            time: self.time,
            stages: self.stages,
            actions: self.actions,
            numbering: None,
            undefined: 0,
        }
    }

    /// Compiles a node of the plan, after which these come; what it makes of rows, if it ends the
    /// chain.
    pub(super) fn node(
        &mut self,
        node: &physical::Node,
        later: &[physical::Node],
    ) -> Option<Ending> {
        // Stages that are not there yet may read others.
        self.read = if self.placed.may_change { None } else { columns_read(later) };
        let ending = match &node.work {
            Work::Stage(Stage::Summarize(s)) | Work::Partial(s) => {
                Some(self.summarize(s, node.schema.clone()))
            }
            Work::Stage(stage) => self.stage(stage, node),
            Work::Final(_) => unreachable!("stands first in its fragment"),
        };
        self.stages.push(self.ops.len());
        ending
    }

    /// Gives registers to the input's columns; says where its time is.
    fn input(&mut self, from: &ChainInput<'_>) -> Src {
        match from {
            ChainInput::Packets => self.compiler.field(FieldId::named("ts"), &self.scope),
            ChainInput::Rows(schema, carried) => {
                self.schema = (*schema).clone();
                for column in &schema.columns {
                    let slot = self.compiler.slot(&column.ty);
                    self.scope.columns.push(Src::Slot(slot));
                }
                for &id in &carried.fields {
                    let slot = self.compiler.slot(&id.info().ty.into());
                    self.scope.carried.push((id, Src::Slot(slot)));
                }
                if carried.frame {
                    let [bytes, len, origin] = self.frame_slots().map(Src::Slot);
                    self.frame = Some(FrameSlots { bytes, len, origin });
                }
                Src::Slot(self.compiler.slot(&Type::Time))
            }
        }
    }

    fn stage(&mut self, stage: &Stage, node: &physical::Node) -> Option<Ending> {
        let (after, carry) = (&node.schema, &node.carries);
        if !matches!(stage, Stage::Where(_)) {
            self.tested = &[];
        }
        match stage {
            Stage::Where(e) => {
                if let Some(rest) = untested(e, self.tested) {
                    let condition = self.compiler.condition(&rest, &self.scope);
                    self.ops.push(Box::new(Filter::new(condition)));
                }
            }
            Stage::Extend { columns } => {
                let mut new = self.scope.columns.clone();
                new.resize(after.columns.len(), Src::Slot(0));
                let srcs = self.compute(columns.iter().map(|(_, _, e)| e));
                columns.iter().zip(srcs).for_each(|((_, at, _), src)| new[*at] = src);
                self.scope.columns = new;
            }
            // It is for the sink to export.
            Stage::Metric(_) => {}
            Stage::Capture(c) => {
                let src = self.compute(std::iter::once(&c.name))[0];
                self.scope.columns.resize(after.columns.len(), Src::Slot(0));
                self.scope.columns[c.output] = src;
            }
            Stage::Project { columns } | Stage::Reshape { columns, .. } => {
                self.scope.columns = self.compute(columns.iter().map(|(_, e)| e));
            }
            Stage::Scan(scan) => {
                let share = self.placed.with.scan_share(scan, SCAN_KEYS_MAX);
                self.scan((scan, share), after.columns.len(), Some(node.id));
            }
            Stage::AnalyzeTcp(a) => self.analyze_tcp(a, after.columns.len()),
            Stage::Limit(n) => self.ops.push(Box::new(Limit::new(*n))),
            Stage::Join(_) | Stage::Union(_) | Stage::Summarize(_) => {
                unreachable!("is a node of its own")
            }
            Stage::Ends(ends) => self.send(ends, node.id),
            Stage::Top { n, by, windowed, per } => {
                return Some(self.top(*n, *windowed, by, per.as_ref(), after.clone(), carry));
            }
            Stage::Distinct(d) => self.distinct(d),
            Stage::Deduplicate(d) => self.deduplicate(d),
            Stage::Sample(sample) => self.sample(sample),
            Stage::Hello(h) => self.hello(h, after.columns.len()),
            Stage::Each(each) => return Some(self.each(each, after, carry)),
            Stage::Alert(alert) => return Some(self.alert(alert, after.clone())),
        }
        self.schema = after.clone();
        None
    }

    /// Compiles expressions into one map; says where their results stand.
    pub(super) fn compute<'e>(&mut self, exprs: impl Iterator<Item = &'e Expr>) -> Vec<Src> {
        let (mut srcs, mut values) = (Vec::new(), Vec::new());
        for e in exprs {
            let value = self.compiler.value(e, &self.scope);
            srcs.push(value.out());
            if !matches!(value, Val::Src(_)) {
                values.push(value);
            }
        }
        if !values.is_empty() {
            self.ops.push(Box::new(Map::new(values)));
        }
        srcs
    }

    /// Compiles a `scan`, after which there are so many columns; `id`: of the stage of the plan, if
    /// it is one.
    pub(super) fn scan(
        &mut self,
        (scan, share): (&weir_plan::Scan, RoomShare),
        columns: usize,
        id: Option<NodeId>,
    ) {
        let keys = scan.keys.iter().map(|k| self.compiler.value(k, &self.scope)).collect();
        let before: Vec<usize> =
            scan.states.iter().map(|s| self.compiler.slot(&s.init.ty)).collect();
        let mut inner = self.scope.clone();
        inner.states = before.iter().map(|&slot| Src::Slot(slot)).collect();
        let mut new = self.scope.columns.clone();
        new.resize(columns, Src::Slot(0));
        let mut states = Vec::new();
        for (state, before) in scan.states.iter().zip(before) {
            let after = self.compiler.slot(&state.init.ty);
            new[state.output] = Src::Slot(after);
            states.push(State {
                init: self.compiler.value(&state.init, &self.scope),
                update: self.compiler.value(&state.update, &inner),
                before,
                after,
                ty: state.init.ty.clone(),
            });
        }
        let automaton = Automaton::of(&scan.states, &mut self.compiler, &self.scope);
        let mut op = Scan::new(scan, keys, states, automaton, (share, self.placed.with.hash_key));
        let states = |(kernel, id): (&Arc<dyn KernelFeed>, NodeId)| {
            kernel.states(id.pipeline, id.stage).filter(|_| self.packets)
        };
        op.kernel = self.placed.kernel.zip(id).and_then(states);
        self.ops.push(Box::new(op));
        self.scope.columns = new;
    }

    /// Whether the column at this position may be read after the node at hand.
    pub(super) fn is_read(&self, at: usize) -> bool {
        self.read.as_ref().is_none_or(|read| read.contains(&at))
    }

    fn analyze_tcp(&mut self, a: &weir_plan::AnalyzeTcp, columns: usize) {
        let mut value = |e| self.compiler.value(e, &self.scope);
        let keys = a.keys.iter().map(&mut value).collect();
        let inputs = a.inputs.iter().map(&mut value).collect();
        let mut new = self.scope.columns.clone();
        new.resize(columns, Src::Slot(0));
        let mut outputs = Vec::new();
        for (_, at, ty) in &a.columns {
            let slot = self.is_read(*at).then(|| self.compiler.slot(ty));
            new[*at] = Src::Slot(slot.unwrap_or(0));
            outputs.push(slot);
        }
        let with = self.placed.with;
        let room = (with.connections_share(a), with.hash_key);
        self.ops.push(Box::new(Scan::of_connections(a, keys, inputs, outputs, room)));
        self.scope.columns = new;
    }

    pub(super) fn gather(&mut self, carry: &Carry) -> Ending {
        let (mut columns, mut schema) = (self.scope.columns.clone(), self.schema.clone());
        for (src, column) in self.carried(carry) {
            columns.push(src);
            schema.columns.push(column);
        }
        Ending::Rows(Gather { columns, out: Rows::new(&schema), shared: 0 })
    }

    /// The values that rows carry along after their columns: where each stands, and its column.
    pub(super) fn carried(&mut self, carry: &Carry) -> Vec<(Src, Column)> {
        let field = |id: &FieldId| {
            let (name, ty) = (id.info().name, id.info().ty.into());
            (self.compiler.field(*id, &self.scope), Column::new(name, &ty))
        };
        let mut all: Vec<(Src, Column)> = carry.fields.iter().map(field).collect();
        all.extend(self.frame(carry).into_iter().zip(frame_columns()));
        all
    }
}
