//! The steps of a program in the naive model: pipelines in order, in each its stages in order.

use super::alert::{AlertModel, StormModel};
use super::context::StageContext;
use super::ends::Outgoing;
use super::hello::{self, HelloFlow};
use super::join::{JoinSides, union};
use super::row::{Mark, Row, set_cell};
use super::scan::Memory;
use super::session::KeySessions;
use super::summarize::PaneGroups;
use super::tcp::Conversation;
use super::top::{top_of_keys, top_of_windows};
use std::collections::BTreeMap;
use weir_plan::counters::EndCounts;
use weir_plan::registered::Functions;
use weir_plan::{Input, Pipeline, Program, Schema, Stage, Value, Window};

/// The memory of a stage.
pub(super) enum StageState {
    Nothing,
    /// `summarize`; and the watermark.
    Groups(Box<PaneGroups>, Mark),
    /// `summarize` of sessions.
    Sessions(KeySessions),
    /// `scan`, `distinct` and `deduplicate`, by key; and the watermark.
    Keys(BTreeMap<Vec<Value>, Memory>, Mark),
    /// `analyze tcp`, by connection; and the watermark.
    Conversations(BTreeMap<Vec<Value>, Memory<Conversation>>, Mark),
    /// `top`: rows with what they are sorted by, in the order they came.
    Held(Vec<(Vec<Value>, Row)>),
    /// `limit`: rows passed. `sample`: rows that came.
    Passed(u64),
    /// `hello`: flows by key; and the watermark.
    Flows(BTreeMap<Vec<Value>, HelloFlow>, Mark),
    /// `alert`: its memory; and the watermark.
    Firing(Box<AlertModel>, Mark),
    /// `join`: rows of both sides.
    Sides(JoinSides),
}

impl StageState {
    /// That of a stage over rows of these columns.
    fn new(stage: &Stage, before: &Schema) -> StageState {
        match stage {
            Stage::Summarize(s) if matches!(s.window, Window::Session(_)) => {
                StageState::Sessions(KeySessions::new())
            }
            Stage::Summarize(s) => {
                StageState::Groups(Box::new(PaneGroups::new(s)), Mark::At(i64::MIN))
            }
            Stage::Scan(_) | Stage::Distinct(_) | Stage::Deduplicate(_) => {
                StageState::Keys(BTreeMap::new(), Mark::At(i64::MIN))
            }
            Stage::AnalyzeTcp(_) => StageState::Conversations(BTreeMap::new(), Mark::At(i64::MIN)),
            Stage::Top { .. } => StageState::Held(Vec::new()),
            Stage::Limit(_) | Stage::Sample(_) => StageState::Passed(0),
            Stage::Join(_) => StageState::Sides(JoinSides::new()),
            Stage::Where(_) | Stage::Extend { .. } => StageState::Nothing,
            Stage::Project { .. } | Stage::Reshape { .. } => StageState::Nothing,
            Stage::Each(_) | Stage::Union(_) | Stage::Ends(_) => StageState::Nothing,
            Stage::Capture(_) | Stage::Metric(_) => StageState::Nothing,
            Stage::Hello(_) => StageState::Flows(BTreeMap::new(), Mark::At(i64::MIN)),
            Stage::Alert(_) => {
                let names = before.columns.iter().map(|c| c.name.clone()).collect();
                let (firing, storm) = (BTreeMap::new(), StormModel::default());
                let memory = AlertModel { names, firing, storm };
                StageState::Firing(Box::new(memory), Mark::At(i64::MIN))
            }
        }
    }
}

/// The whole program: what it remembers, and what came out.
pub(super) struct ModelSteps<'a> {
    pub(super) program: &'a Program,
    pub(super) context: StageContext<'a>,
    pub(super) states: Vec<Vec<StageState>>,
    /// Output number and cells of each row that came out.
    pub(super) out: Vec<(usize, Vec<Value>)>,
    pub(super) outgoing: Outgoing,
    /// The time that the clock has come to, once the input has ended.
    pub(super) ended_at: i64,
}

impl<'a> ModelSteps<'a> {
    pub(super) fn new(program: &'a Program, functions: &'a Functions) -> ModelSteps<'a> {
        let states = |p: &Pipeline| {
            let mut schema = match p.input {
                Input::Packets => Schema::default(),
                Input::Pipeline(n) => program.pipelines[n].schema.clone(),
            };
            let state = |stage: &Stage| {
                let state = StageState::new(stage, &schema);
                schema = stage.output(&schema);
                state
            };
            p.stages.iter().map(state).collect()
        };
        ModelSteps {
            program,
            context: StageContext::new(functions),
            states: program.pipelines.iter().map(states).collect(),
            out: Vec::new(),
            outgoing: Outgoing { frames: Vec::new(), ends: EndCounts::of(program) },
            ended_at: i64::MIN,
        }
    }

    /// One step of the section "Order" of [the crate](crate).
    pub(super) fn step(&mut self, packet: Option<Row>, mark: Mark) {
        let mut left: Vec<(Vec<Row>, Mark)> = Vec::new();
        let mut output = 0;
        for (p, pipeline) in self.program.pipelines.iter().enumerate() {
            let (mut rows, mut mark) = match pipeline.input {
                Input::Packets => (packet.iter().cloned().collect(), mark),
                Input::Pipeline(n) => left[n].clone(),
            };
            let mut states = std::mem::take(&mut self.states[p]);
            for (stage, state) in pipeline.stages.iter().zip(&mut states) {
                (rows, mark) = match (stage, state) {
                    (Stage::Join(j), StageState::Sides(held)) => {
                        let out = held.step(j, (rows, mark), left[j.right].clone(), self.ended_at);
                        let [late, evicted, undecided] = held.counts();
                        self.context.late += late;
                        self.context.evicted += evicted;
                        self.context.undecided += undecided;
                        out
                    }
                    (Stage::Union(u), _) => {
                        let others = u.others.iter().map(|&p| left[p].clone());
                        union(u, [(rows, mark)].into_iter().chain(others).collect())
                    }
                    (stage, state) => self.stage(stage, state, rows, mark),
                };
            }
            self.states[p] = states;
            if pipeline.printed {
                self.out.extend(rows.iter().map(|row| (output, row.cells.clone())));
                output += 1;
            }
            left.push((rows, mark));
        }
    }

    /// Takes a step's rows and watermark through one stage.
    fn stage(
        &mut self,
        stage: &Stage,
        state: &mut StageState,
        mut rows: Vec<Row>,
        mark: Mark,
    ) -> (Vec<Row>, Mark) {
        match (stage, state) {
            (Stage::Where(cond), _) => rows.retain(|row| self.context.eval.holds(cond, row, &[])),
            (Stage::Extend { columns }, _) => {
                for row in &mut rows {
                    let new: Vec<_> =
                        columns.iter().map(|c| self.context.eval.eval(&c.2, row, &[])).collect();
                    for ((_, position, _), value) in columns.iter().zip(new) {
                        set_cell(&mut row.cells, *position, value);
                    }
                }
            }
            (Stage::Metric(_), _) => {}
            (Stage::Capture(c), _) => {
                for row in &mut rows {
                    let name = self.context.eval.eval(&c.name, row, &[]);
                    set_cell(&mut row.cells, c.output, name);
                }
            }
            (Stage::Project { columns } | Stage::Reshape { columns, .. }, _) => {
                for row in &mut rows {
                    row.cells =
                        columns.iter().map(|c| self.context.eval.eval(&c.1, row, &[])).collect();
                    row.packet = None;
                }
            }
            (Stage::Ends(ends), _) => {
                rows.retain(|row| self.outgoing.send(ends, &mut self.context.eval, row))
            }
            (Stage::Limit(n), StageState::Passed(passed)) => rows.retain(|_| {
                *passed += 1;
                *passed <= *n
            }),
            (Stage::Scan(s), StageState::Keys(keys, watermark)) => {
                rows.iter_mut().for_each(|row| self.context.scan(s, keys, *watermark, row));
                *watermark = mark;
            }
            (Stage::Summarize(s), StageState::Sessions(all)) => {
                let Window::Session(session) = s.window else {
                    unreachable!("see StageState::new")
                };
                return self.context.sessions((s, session), all, &rows, mark);
            }
            (Stage::Summarize(s), StageState::Groups(groups, watermark)) => {
                rows.iter().for_each(|row| self.context.group(s, groups, *watermark, row));
                *watermark = mark;
                return self.context.close(s, groups, mark);
            }
            (Stage::Top { n, by, windowed, per }, StageState::Held(held)) => {
                let per = per.as_ref();
                for row in rows {
                    let keys = self.context.top_keys((by, per), *windowed, held, &row);
                    held.extend(keys.map(|keys| (keys, row)));
                }
                return match windowed {
                    true => (top_of_windows(*n, by, per, held, mark), mark),
                    false if mark != Mark::End => (Vec::new(), Mark::At(i64::MIN)),
                    false => (top_of_keys(*n, by, per, std::mem::take(held)), mark),
                };
            }
            (stage, state) => return self.choose(stage, state, rows, mark),
        }
        (rows, mark)
    }

    /// The same of a stage that chooses rows, takes them apart or follows connections.
    fn choose(
        &mut self,
        stage: &Stage,
        state: &mut StageState,
        mut rows: Vec<Row>,
        mark: Mark,
    ) -> (Vec<Row>, Mark) {
        match (stage, state) {
            (Stage::Distinct(d), StageState::Keys(keys, watermark)) => {
                rows.retain(|row| self.context.is_first(d, keys, *watermark, row));
                *watermark = mark;
            }
            (Stage::Deduplicate(d), StageState::Keys(packets, watermark)) => {
                rows.retain(|row| !self.context.is_copy(d, packets, *watermark, row));
                *watermark = mark;
            }
            (Stage::AnalyzeTcp(a), StageState::Conversations(keys, watermark)) => {
                rows.iter_mut().for_each(|row| self.context.analyze_tcp(a, keys, *watermark, row));
                *watermark = mark;
            }
            (Stage::Sample(s), StageState::Passed(seen)) => {
                rows.retain(|row| self.context.is_chosen(s, seen, row));
            }
            (Stage::Alert(alert), StageState::Firing(memory, watermark)) => {
                return self.context.alert(alert, (memory, watermark), rows, mark);
            }
            (Stage::Each(each), _) => {
                rows = rows.iter().flat_map(|row| self.context.rows_of_parts(each, row)).collect();
            }
            (Stage::Hello(h), StageState::Flows(flows, watermark)) => {
                rows.retain_mut(|row| self.context.hello(h, flows, *watermark, row));
                *watermark = mark;
                if mark == Mark::End {
                    self.context.unfinished += hello::unfinished(flows);
                }
            }
            _ => unreachable!("each stage has its own kind of state"),
        }
        (rows, mark)
    }
}
