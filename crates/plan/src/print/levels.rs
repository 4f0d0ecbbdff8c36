//! Physical plans as text: level by level, with the exchanges before each.

use super::{columns, expr, line, list, stage, state};
use crate::keys::describe;
use crate::physical::{
    Combine, Conditions, Exchange, ExchangeId, Fragment, Half, Inlet, Level, LevelKind, Needs,
    Node, NodeId, Payload, Physical, PipelineId, Target, Tick,
};
use crate::place::Partition;
use crate::stage::{Schema, Stage};
use crate::value::Value;

/// The exchanges and levels of a plan, in the order that data takes.
pub fn levels(plan: &Physical) -> String {
    let mut out = String::new();
    let is_first = |kind| plan.levels.first().is_some_and(|level| level.kind == kind);
    if !is_first(LevelKind::Kernel) && !is_first(LevelKind::Worker) {
        exchanges(plan, &mut out, |payload| matches!(payload, Payload::Packets(_)));
    }
    for (i, level) in plan.levels.iter().enumerate() {
        exchanges(plan, &mut out, |payload| match payload {
            Payload::Offered => level.kind == LevelKind::Kernel,
            Payload::Unfinished | Payload::Packets(_) => level.kind == LevelKind::Worker,
            Payload::KernelGroups(_) => level.kind == LevelKind::Machine,
            Payload::Groups { node, .. } | Payload::Frames(node) => {
                comes_before(plan, node.pipeline, i)
            }
            Payload::Rows(pipeline) => comes_before(plan, *pipeline, i),
        });
        one_level(plan, level, &mut out);
    }
    out
}

/// Whether what a pipeline hands over comes from the level before the one at this position. The
/// kernel hands over no rows and frames, and its groups by an exchange of their own.
fn comes_before(plan: &Physical, pipeline: PipelineId, level: usize) -> bool {
    let before = level.checked_sub(1).map(|before| &plan.levels[before]);
    before.is_some_and(|level| {
        let mine = level.fragments.iter().any(|fragment| fragment.pipeline == pipeline);
        level.kind != LevelKind::Kernel && mine
    })
}

/// The exchanges of this payload, a line each.
fn exchanges(plan: &Physical, out: &mut String, which: impl Fn(&Payload) -> bool) {
    let all = plan.exchanges.iter().enumerate().filter(|(_, e)| which(&e.payload));
    for (n, (i, exchange)) in all.enumerate() {
        if n == 0 {
            out.push('\n');
        }
        line(out, 0, &format!("exchange {}: {}", i + 1, payload(plan, ExchangeId(i), exchange)));
        line(out, 1, &format!("why: {}", exchange.why));
        let says_needs = !matches!(exchange.payload, Payload::Packets(_));
        if says_needs && !exchange.payload.is_of_kernel() {
            line(out, 1, &format!("needs: {}", needs(&exchange.needs)));
        }
    }
}

/// The payload of an exchange, and how it is handed over.
fn payload(plan: &Physical, id: ExchangeId, exchange: &Exchange) -> String {
    let of_node = |node: &NodeId| {
        format!("stage {} of pipeline {}", node.stage + 1, title(plan, node.pipeline))
    };
    match &exchange.payload {
        Payload::Packets(partition) => {
            let fragments = plan.levels.iter().flat_map(|level| &level.fragments);
            let mine = fragments.filter(|f| f.from == Inlet::Exchange(id));
            let titles: Vec<String> = mine.map(|f| title(plan, f.pipeline)).collect();
            let plural = if titles.len() == 1 { "" } else { "s" };
            let how = match partition {
                Partition::Batches => "batch by batch".to_owned(),
                Partition::Key(key) => format!("spread by {}", describe(key)),
                Partition::None => "all to one worker".to_owned(),
            };
            {
                let (what, titles) = (plan.source.plural(), titles.join(", "));
                format!("{what} for pipeline{plural} {titles}, {how}")
            }
        }
        Payload::Groups { node, combine } => {
            let how = match combine {
                Combine::Merge => "merged by window and key",
                Combine::Append => "put in order",
            };
            format!("groups of {}, {how}", of_node(node))
        }
        Payload::Rows(p) => format!("rows of pipeline {}, by packet number", title(plan, *p)),
        Payload::Frames(node) => format!("frames of {}, to their outlets", of_node(node)),
        Payload::Offered => "every frame of the source, to the kernel level".to_owned(),
        Payload::Unfinished => "frames that the kernel does not finish, for workers".to_owned(),
        Payload::KernelGroups(node) => {
            format!("groups of {} in the kernel, merged with those of workers", of_node(node))
        }
    }
}

fn needs(needs: &Needs) -> String {
    match needs {
        Needs::Nothing => "nothing; any packet may be at any producer".to_owned(),
        Needs::Key(key) => format!("all packets of one {} at one producer", describe(key)),
        Needs::OneProducer => "all packets at one producer".to_owned(),
    }
}

fn one_level(plan: &Physical, level: &Level, out: &mut String) {
    out.push('\n');
    line(
        out,
        0,
        match level.kind {
            LevelKind::Kernel => "kernel level: before packets reach the process",
            LevelKind::Worker => "worker level: on each worker, over its share of the packets",
            LevelKind::Machine => "machine level: once, over what the workers hand over",
            LevelKind::Cluster => "cluster level: once, over what the machines hand over",
        },
    );
    if !level.ticks.is_empty() {
        let tick = |tick: &Tick| match (Value::Duration(tick.every_ns), tick.lateness_ns) {
            (every, 0) => every.to_string(),
            (every, late) => format!("{every} with lateness {}", Value::Duration(late)),
        };
        line(out, 1, &format!("ticks: every {}", list(&level.ticks, tick)));
    }
    asked_once(plan, level, out);
    for fragment in &level.fragments {
        one_fragment(plan, fragment, out);
    }
}

/// The conditions that several pipelines over the same packets begin with.
fn asked_once(plan: &Physical, level: &Level, out: &mut String) {
    let packets = |from: &Inlet| match from {
        Inlet::Exchange(id) => matches!(plan.exchanges[id.0].payload, Payload::Packets(_)),
        Inlet::Pipelines(_) => false,
    };
    for (i, _) in plan.exchanges.iter().enumerate() {
        let from = Inlet::Exchange(ExchangeId(i));
        let mine: Vec<&Fragment> =
            level.fragments.iter().filter(|f| f.from == from && packets(&f.from)).collect();
        let conditions = Conditions::of(mine.iter().copied());
        for (c, condition) in conditions.shared.iter().enumerate() {
            let users = conditions.of.iter().zip(&mine).filter(|(of, _)| of.contains(&c));
            let users: Vec<String> = users.map(|(_, f)| title(plan, f.pipeline)).collect();
            let condition = expr(condition, &Schema::default(), &[]);
            let users = users.join(", ");
            line(out, 1, &format!("asked once per batch: {condition}, for pipelines {users}"));
        }
    }
}

fn one_fragment(plan: &Physical, fragment: &Fragment, out: &mut String) {
    let from = match &fragment.from {
        Inlet::Exchange(id) => format!("exchange {}", id.0 + 1),
        Inlet::Pipelines(sides) => {
            let side = |p: &PipelineId| format!("pipeline {}", title(plan, *p));
            sides.iter().map(side).collect::<Vec<_>>().join(" and ")
        }
    };
    let to = targets(plan, fragment);
    let title = title(plan, fragment.pipeline);
    line(out, 1, &format!("pipeline {title}: from {from} to {to}"));
    if !matches!(fragment.from, Inlet::Exchange(id) if has_reason(plan, id)) {
        line(out, 2, &format!("why here: {}", fragment.why));
    }
    let mut input = before(plan, fragment);
    for node in &fragment.nodes {
        one_node(node, &input, out);
        input = node.schema.clone();
    }
}

/// Whether the exchange that a fragment takes from says why the fragment is where it is.
fn has_reason(plan: &Physical, id: ExchangeId) -> bool {
    !matches!(plan.exchanges[id.0].payload, Payload::Packets(_) | Payload::Offered)
}

/// The columns that come into a fragment. The columns of a final half are the ones of its partial
/// half's input, which the text of its keys and aggregates is about.
fn before(plan: &Physical, fragment: &Fragment) -> Schema {
    let first = fragment.nodes.first().map_or(usize::MAX, |node| node.id.stage);
    let own = plan.nodes(fragment.pipeline).take_while(|node| node.id.stage < first).last();
    let of_source = |fragment: &Fragment| match &fragment.from {
        Inlet::Pipelines(sides) => plan.rows_of(sides[0]),
        Inlet::Exchange(_) => Schema::default(),
    };
    let source = || plan.fragments(fragment.pipeline).next().map(|(_, first)| of_source(first));
    own.map(|node| node.schema.clone()).or_else(source).unwrap_or_default()
}

fn one_node(node: &Node, input: &Schema, out: &mut String) {
    let of = node.whole_stage();
    let text = stage(&of, input);
    let (half, holds) = match node.id.half {
        Half::Whole => ("", true),
        Half::Partial => ("partial ", true),
        Half::Final => ("final ", false),
    };
    line(out, 2, &format!("{half}{text}"));
    if !node.reads.is_empty() {
        line(out, 3, &format!("reads: {}", list(&node.reads, |id| id.name().into_owned())));
    }
    if node.id.half != Half::Partial && node.schema != *input {
        line(out, 3, &format!("columns: {}", columns(&node.schema)));
    }
    if let Some(state) = state(&of, input).filter(|_| holds) {
        line(out, 3, &format!("state: {state}"));
    }
}

/// Where the results of a fragment go.
fn targets(plan: &Physical, fragment: &Fragment) -> String {
    let mut all: Vec<String> = Vec::new();
    let outlets = |id: &NodeId| {
        let node = fragment.nodes.iter().find(|node| node.id == *id);
        match node.map(Node::whole_stage) {
            Some(Stage::Ends(ends)) => ends.acts().flat_map(|act| act.to.outlets()).collect(),
            _ => Vec::new(),
        }
    };
    for target in &fragment.to {
        match target {
            Target::Exchange(id) => {
                all.push(format!("exchange {}", id.0 + 1));
                if let Payload::Frames(node) = &plan.exchanges[id.0].payload {
                    all.extend(outlets(node).iter().map(ToString::to_string));
                }
            }
            Target::Pipeline(p) => all.push(format!("pipeline {}", title(plan, *p))),
            Target::Output(_) => all.push("output".to_owned()),
            Target::Outlets(node) => all.extend(outlets(node).iter().map(ToString::to_string)),
        }
    }
    let mut once: Vec<String> = Vec::new();
    for target in all {
        if !once.contains(&target) {
            once.push(target);
        }
    }
    if once.is_empty() { "nowhere".to_owned() } else { once.join(" and ") }
}

/// Number, and name if there is one: `2 (attempts)`.
fn title(plan: &Physical, id: PipelineId) -> String {
    match plan.pipelines.get(id.0).and_then(|info| info.name.as_ref()) {
        Some(name) => format!("{} ({name})", id.0 + 1),
        None => (id.0 + 1).to_string(),
    }
}
