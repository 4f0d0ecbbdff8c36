//! Which stages of each pipeline the kernel can run.

use crate::act::{Acting, SAME, TWICE};
use crate::count::{COUNTING_MAX, Counting};
use crate::lower::{Columns, can_fault, lower, lower_test, no_column};
use crate::options::{HandOut, NotOffloaded};
use crate::scan::{Scanning, ScansBefore};
use crate::table::TableOptions;
use crate::value::{Lowered, Test};
use std::collections::BTreeSet;
use weir_packet::fields::FieldId;
use weir_plan::physical::{
    Fragment, Inlet, LevelKind, Needs, Node, Payload, Physical, PipelineId, Prefix, Target, Work,
};
use weir_plan::stage::{Schema, Stage};
use weir_plan::{AggFunc, BinaryOp, Expr, ExprKind, Sample, SampleBy, Scan};

/// The part of a pipeline over packets that the kernel runs.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub(crate) prefix: Prefix,
    /// The steps that each frame goes through, in order.
    pub(crate) steps: Vec<Step>,
    /// The fate of frames after them.
    pub(crate) rest: Rest,
    /// The columns after the prefix.
    pub(crate) columns: Columns,
}

/// The fate of frames that a pipeline wants after all steps.
#[derive(Clone, Debug)]
pub(crate) enum Rest {
    /// They go up: workers see them.
    Up,
    /// They are counted.
    Count(Box<Counting>),
    /// The pipeline is done with them.
    Done,
}

/// A test of a frame, or an action on it.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The pipeline wants only frames for which this holds.
    Test(Test),
    /// The frame is folded into the states of its key.
    Scan(Box<Scanning>),
    /// The stage of this number hands the frame out, or it goes on.
    Act(Box<Acting>, usize),
}

impl Step {
    /// Whether frames of which the pipeline wants nothing more may end there.
    fn finishes(&self) -> bool {
        match self {
            Step::Test(_) => true,
            Step::Act(acting, _) => acting.ends_some(),
            Step::Scan(_) => false,
        }
    }
}

/// The work that the kernel may do for a pipeline, or why it may not.
struct May<'a> {
    /// How it makes groups.
    count: Result<TableOptions, String>,
    /// Where it hands packets out.
    act: Result<HandOut<'a>, &'a str>,
    /// The secret that keys of states are hashed with.
    secret: Result<[u64; 2], &'a str>,
    /// Where the numbers of its `scan`s begin, ...
    scans: ScansBefore,
    /// ...and whether packets are handed out after them.
    hands_out: bool,
    /// Whether rows are wanted that leave the pipeline's fragment.
    goes_on: bool,
    /// By which interface packets come, if all come by one.
    interface: Option<&'a str>,
}

/// The prefix of each pipeline over packets; `groups`: how their tables are made, or why there are
/// none; `act`: where packets are handed out that come by `interface`, or why they are not.
///
/// # Errors
/// Where one of them wants every frame, or reads what changes if frames don't come up.
pub(crate) fn pipelines(
    plan: &Physical,
    groups: Result<TableOptions, &str>,
    (act, interface): (Result<HandOut<'_>, &str>, Option<&str>),
) -> Result<Vec<Pipeline>, NotOffloaded> {
    whole_plan(plan)?;
    let none = || NotOffloaded::Plan("no pipeline is over packets".to_owned());
    let level = plan.level(LevelKind::Worker).ok_or_else(none)?;
    let over_packets = |f: &&Fragment| match f.from {
        Inlet::Exchange(id) => plan
            .exchanges
            .get(id.0)
            .is_some_and(|exchange| matches!(exchange.payload, Payload::Packets(_))),
        Inlet::Pipelines(_) => false,
    };
    let mut found: Vec<Pipeline> = Vec::new();
    let (mut counting, mut scans) = (0, ScansBefore::default());
    for fragment in level.fragments.iter().filter(over_packets) {
        let may_count = may_count(plan, fragment.pipeline, counting);
        let may_count = may_count.and_then(|()| groups.map_err(str::to_owned));
        let goes_on = wants_rows(plan, fragment);
        let secret = groups.map(|options| options.secret);
        let hands_out = fragment.nodes.iter().any(Node::sends_frames);
        let may = May { count: may_count, act, secret, scans, hands_out, goes_on, interface };
        let pipeline = prefix(fragment.pipeline, &fragment.nodes, &may);
        scans = pipeline.scans().last().map_or(scans, Scanning::before_next);
        counting += usize::from(pipeline.counting().is_some());
        found.push(pipeline);
    }
    if found.is_empty() {
        return Err(none());
    }
    match found.iter().find(|pipeline| pipeline.wants_all()) {
        Some(Pipeline { prefix, .. }) => {
            let why = prefix.stopped_by.clone();
            let why = why.unwrap_or_else(|| "it has no condition".to_owned());
            Err(NotOffloaded::Pipeline(prefix.pipeline, why))
        }
        None => Ok(found),
    }
}

/// Why a pipeline's states are held by workers.
const NO_SCAN: &str = "the kernel runs `scan` only where packets are handed out";

/// Why frames go up that were handed out before.
const ROWS_WANTED: &str = "later stages need the rows of packets that go on";

/// Whether rows that leave a fragment over packets are wanted, beside groups and frames.
fn wants_rows(plan: &Physical, fragment: &Fragment) -> bool {
    fragment.to.iter().any(|target| match target {
        Target::Exchange(id) => plan
            .exchanges
            .get(id.0)
            .is_some_and(|exchange| matches!(exchange.payload, Payload::Rows(_))),
        Target::Outlets(_) => false,
        Target::Pipeline(_) | Target::Output(_) => true,
    })
}

/// Whether anything in the plan depends on frames that no pipeline wants.
fn whole_plan(plan: &Physical) -> Result<(), NotOffloaded> {
    const NUMBER: FieldId = FieldId::named("number");
    for node in plan.levels.iter().flat_map(|level| &level.fragments).flat_map(|f| &f.nodes) {
        if node.reads.contains(&NUMBER) {
            let why = "it reads `number`, which counts frames that no pipeline wants, too";
            return Err(NotOffloaded::Pipeline(node.id.pipeline, why.to_owned()));
        }
        if matches!(node.work, Work::Stage(Stage::Capture(_))) {
            let why = "`capture` keeps frames that no pipeline wants, too";
            return Err(NotOffloaded::Pipeline(node.id.pipeline, why.to_owned()));
        }
    }
    Ok(())
}

/// Whether workers make groups, which the kernel may make instead.
pub(crate) fn makes_groups(plan: &Physical) -> bool {
    let mut nodes = plan.levels.iter().flat_map(|level| &level.fragments).flat_map(|f| &f.nodes);
    nodes.any(|node| matches!(node.work, Work::Partial(_)))
}

/// Whether anything in a plan compares the frames that were lost with those that came.
pub(crate) fn asks_for_losses(plan: &Physical) -> bool {
    let mut nodes = plan.levels.iter().flat_map(|level| &level.fragments).flat_map(|f| &f.nodes);
    nodes.any(|node| match node.whole_stage() {
        Stage::Summarize(s) => s.aggs.iter().any(|agg| agg.func == AggFunc::Completeness),
        _ => false,
    })
}

/// Whether groups of this pipeline may be made in the kernel, where so many others are; or why not.
fn may_count(plan: &Physical, pipeline: PipelineId, others: usize) -> Result<(), String> {
    if others >= COUNTING_MAX {
        return Err(format!("{COUNTING_MAX} other pipelines count in the kernel"));
    }
    let groups = plan.exchanges.iter().find(|exchange| match exchange.payload {
        Payload::Groups { node, .. } => node.pipeline == pipeline,
        _ => false,
    });
    match groups {
        Some(exchange) if exchange.needs == Needs::Nothing => Ok(()),
        _ => Err("its groups must be made in one place".to_owned()),
    }
}

/// The part of these nodes that the kernel runs.
fn prefix(pipeline: PipelineId, nodes: &[Node], may: &May<'_>) -> Pipeline {
    let mut found = Pipeline {
        prefix: Prefix { pipeline, stages: 0, counts: false, acts: false, stopped_by: None },
        steps: Vec::new(),
        rest: Rest::Up,
        columns: Columns { interface: may.interface.map(str::to_owned), ..Columns::default() },
    };
    for node in nodes {
        if let Err(why) = found.add(node, may) {
            found.prefix.stopped_by.get_or_insert(why);
            break;
        }
        found.prefix.stages += 1;
    }
    if let Some(Work::Stage(Stage::Ends(ends))) = nodes.last().map(|node| &node.work)
        && found.prefix.stages == nodes.len()
        && !(may.goes_on && ends.goes_on())
    {
        found.rest = Rest::Done;
    }
    found.without_last_acts();
    found.without_last_scans();
    found
}

impl Pipeline {
    /// Its counting, if it counts.
    pub(crate) fn counting(&self) -> Option<&Counting> {
        match &self.rest {
            Rest::Count(counting) => Some(counting),
            Rest::Up | Rest::Done => None,
        }
    }

    /// Its stages that hand frames out.
    pub(crate) fn acting(&self) -> impl Iterator<Item = &Acting> {
        self.steps.iter().filter_map(|step| match step {
            Step::Act(acting, _) => Some(&**acting),
            Step::Scan(_) | Step::Test(_) => None,
        })
    }

    /// Its `scan`s.
    pub(crate) fn scans(&self) -> impl Iterator<Item = &Scanning> {
        self.steps.iter().filter_map(|step| match step {
            Step::Scan(scanning) => Some(&**scanning),
            Step::Act(..) | Step::Test(_) => None,
        })
    }

    /// Whether all its frames go up.
    fn wants_all(&self) -> bool {
        matches!(self.rest, Rest::Up) && !self.steps.iter().any(Step::finishes)
    }

    /// Stops before stages that hand out only frames that go up all the same.
    fn without_last_acts(&mut self) {
        if !matches!(self.rest, Rest::Up) {
            return;
        }
        let acts = self.prefix.acts;
        let after = self.steps.iter().rposition(Step::finishes).map_or(0, |at| at + 1);
        let first = self.steps.iter().enumerate().skip(after).find_map(|(at, step)| match step {
            Step::Act(_, stage) => Some((at, *stage)),
            Step::Scan(_) | Step::Test(_) => None,
        });
        if let Some((at, stage)) = first {
            self.steps.truncate(at);
            self.prefix.stages = stage;
            let acts = self.acting().next().is_some();
            self.prefix.acts = acts;
        }
        if acts {
            self.prefix.stopped_by.get_or_insert_with(|| ROWS_WANTED.to_owned());
        }
    }

    /// Stops before the first `scan` after which nothing is handed out: of a pipeline that wants to
    /// see frames, states would go up with them.
    fn without_last_scans(&mut self) {
        let last = self.steps.iter().rposition(|step| matches!(step, Step::Act(..)));
        let after = last.map_or(0, |at| at + 1);
        let scans = |step: &Step| match step {
            Step::Scan(scanning) => Some(scanning.table.stage),
            Step::Act(..) | Step::Test(_) => None,
        };
        let first = self.steps.iter().enumerate().skip(after);
        let Some((at, stage)) = first.filter_map(|(at, s)| Some((at, scans(s)?))).next() else {
            return;
        };
        self.steps.truncate(at);
        self.rest = Rest::Up;
        self.prefix.counts = false;
        (self.prefix.stages, self.prefix.stopped_by) = (stage, Some(NO_SCAN.to_owned()));
    }

    /// Adds a `scan`.
    fn add_scan(&mut self, node: &Node, plan: &Scan, may: &May<'_>) -> Result<(), String> {
        if may.act.is_err() || !may.hands_out {
            return Err(NO_SCAN.to_owned());
        }
        let secret = may.secret.map_err(str::to_owned)?;
        let last = self.scans().last().map(Scanning::before_next);
        let begins = (last.unwrap_or(may.scans), last.is_none());
        let (scanning, columns) = Scanning::new(node.id, plan, &self.columns, begins, secret)?;
        let Columns { schema, values, .. } = &mut self.columns;
        values.resize_with(node.schema.columns.len(), no_column);
        for (state, column) in plan.states.iter().zip(columns) {
            if let Some(value) = values.get_mut(state.output) {
                *value = Ok(column);
            }
        }
        schema.clone_from(&node.schema);
        self.steps.push(Step::Scan(Box::new(scanning)));
        Ok(())
    }

    /// Adds a stage, or says why the kernel does not run it.
    fn add(&mut self, node: &Node, may: &May<'_>) -> Result<(), String> {
        match &node.work {
            Work::Stage(Stage::Where(condition)) => self.add_where(condition),
            Work::Stage(Stage::Extend { columns }) => {
                let exprs = columns.iter().map(|(_, at, e)| (*at, e));
                self.add_columns(exprs, node.schema.clone(), true)
            }
            Work::Stage(Stage::Project { columns } | Stage::Reshape { columns, .. }) => {
                let exprs = columns.iter().enumerate().map(|(at, (_, e))| (at, e));
                self.add_columns(exprs, node.schema.clone(), false)
            }
            Work::Stage(Stage::Sample(sample @ Sample { by: SampleBy::Key(keys), .. })) => {
                self.add_sample(keys, sample.hash_max())
            }
            Work::Stage(Stage::Scan(scan)) => self.add_scan(node, scan, may),
            Work::Stage(Stage::Ends(ends)) => {
                let (acting, why) = Acting::new(ends, &self.columns, may.act)?;
                let before = self.acting().fold(0, |all, stage| all | stage.outlets());
                let twice = acting.outlets() & before != 0;
                let why = why.or_else(|| twice.then(|| TWICE.to_owned()));
                let edits: BTreeSet<_> = self.acting().flat_map(Acting::edits).collect();
                let differ = !edits.is_empty() && acting.edits().union(&edits).count() > 1;
                let why = why.or_else(|| differ.then(|| SAME.to_owned()));
                self.prefix.acts = true;
                self.steps.push(Step::Act(Box::new(acting), node.id.stage));
                if let Some(why) = why {
                    self.prefix.stopped_by.get_or_insert(why);
                }
                Ok(())
            }
            Work::Stage(stage) => {
                let text = weir_plan::print::stage(stage, &self.columns.schema);
                let word = text.split_whitespace().next().unwrap_or_default();
                Err(format!("the kernel does not run `{word}`"))
            }
            Work::Partial(summarize) => {
                let options = may.count.clone()?;
                let (id, columns) = (node.id.pipeline, &self.columns);
                self.rest = Rest::Count(Box::new(Counting::new(id, summarize, columns, options)?));
                self.prefix.counts = true;
                Ok(())
            }
            Work::Final(_) => Err("final halves merge groups".to_owned()),
        }
    }

    /// Adds a condition. Of one that can't be evaluated, the parts that can be are used all the
    /// same, as far as no fault is left uncounted.
    fn add_where(&mut self, condition: &Expr) -> Result<(), String> {
        let mut why = None;
        for part in conjuncts(condition) {
            match lower_test(part, &self.columns) {
                Ok(test) => self.steps.push(Step::Test(test)),
                Err(reason) => {
                    let faults = can_fault(part);
                    why.get_or_insert(reason);
                    if faults {
                        break;
                    }
                }
            }
        }
        why.map_or(Ok(()), Err)
    }

    /// Adds a sample by key, whose hash needs nothing but the packet.
    fn add_sample(&mut self, keys: &[Expr], max: u64) -> Result<(), String> {
        let key = keys.iter().map(|key| lower(key, &self.columns)).collect::<Result<_, _>>()?;
        self.steps.push(Step::Test(Test::Sampled { key, max }));
        Ok(())
    }

    /// Notes what columns are. `keeps`: the others stay as they are.
    fn add_columns<'e>(
        &mut self,
        exprs: impl Iterator<Item = (usize, &'e Expr)>,
        schema: Schema,
        keeps: bool,
    ) -> Result<(), String> {
        let mut values = if keeps { self.columns.values.clone() } else { Vec::new() };
        values.resize_with(schema.columns.len(), no_column);
        for (at, e) in exprs {
            let value: Result<Lowered, String> = lower(e, &self.columns);
            if let (Err(why), true) = (&value, can_fault(e)) {
                return Err(why.clone());
            }
            if let Some(column) = values.get_mut(at) {
                *column = value;
            }
        }
        (self.columns.schema, self.columns.values) = (schema, values);
        Ok(())
    }
}

/// The parts of a condition that must all hold, in the order in which they are evaluated.
fn conjuncts(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::Binary(BinaryOp::And, a, b) => {
            let mut parts = conjuncts(a);
            parts.extend(conjuncts(b));
            parts
        }
        _ => vec![e],
    }
}
