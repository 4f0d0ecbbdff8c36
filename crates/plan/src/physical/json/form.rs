//! The form of plans and stages in JSON: the one place where its names are written down.

use super::error::{Mistake, Unwritable, VERSION};
use super::wire::{Members, Reader, Wire, Writer, choice, read_body, record, tagged, untag};
use crate::aggregates::{Agg, AggFunc};
use crate::alert::{Alert, Compared, Peak, TextPart};
use crate::analyze::AnalyzeTcp;
use crate::capture::Capture;
use crate::ends::{Act, Anonymize, Arm, Edit, Ends, To};
use crate::hello::Hello;
use crate::join::{Join, JoinColumn, JoinKind, Union, UnionColumn, Within};
use crate::metric::{Metric, MetricKind};
use crate::physical::{
    Carry, Combine, Exchange, ExchangeId, Fragment, Half, Inlet, Level, LevelKind, Needs, Node,
    NodeId, OutputId, Payload, Physical, PipelineId, PipelineInfo, Target, Tick, Work,
};
use crate::place::Partition;
use crate::program::SourceKind;
use crate::rows::{Deduplicate, Distinct, Each, Parts, Per, Reshaping, Sample, SampleBy};
use crate::stage::{
    Column, Order, Scan, ScanState, Schema, Session, SortKey, Stage, Summarize, Window,
};
use crate::table::Table;
use crate::window::Fill;
use crate::zone::TimeZone;
use serde_json::{Map, Value as Json};
use weir_base::alert::AlertSeverity;

/// The members of a whole plan.
pub(super) const PLAN_MEMBERS: &[&str] =
    &["version", "source", "pipelines", "levels", "exchanges", "outputs", "tables", "sets"];

/// Writes what a plan is made of; version, tables and sets come to it.
pub(super) fn write_plan(
    plan: &Physical,
    to: &mut Writer<'_>,
    object: &mut Map<String, Json>,
) -> Result<(), Unwritable> {
    let Physical { source, pipelines, levels, exchanges, outputs } = plan;
    // Plans over packets have the form that they had before there were others.
    let source = Some(*source).filter(|source| *source != SourceKind::Packets);
    to.member(object, "source", &source)?;
    to.member(object, "pipelines", pipelines)?;
    to.member(object, "levels", levels)?;
    to.member(object, "exchanges", exchanges)?;
    to.member(object, "outputs", outputs)
}

/// Reads what [`write_plan`] wrote.
pub(super) fn read_plan(object: &Members<'_>, from: &Reader<'_>) -> Result<Physical, Mistake> {
    debug_assert_eq!(VERSION, 3, "each version has a form of its own");
    Ok(Physical {
        source: object.read::<Option<SourceKind>>("source", from)?.unwrap_or_default(),
        pipelines: object.read("pipelines", from)?,
        levels: object.read("levels", from)?,
        exchanges: object.read("exchanges", from)?,
        outputs: object.read("outputs", from)?,
    })
}

/// Positions are numbers.
macro_rules! position {
    ($($type:ident),*) => {$(
        impl Wire for $type {
            fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
                self.0.write(to)
            }

            fn read(json: &Json, from: &Reader<'_>) -> Result<Self, Mistake> {
                usize::read(json, from).map($type)
            }
        }
    )*};
}

position!(PipelineId, ExchangeId, OutputId);

choice!(SourceKind { Packets = "packets", FlowRecords = "flows" });
record!(PipelineInfo { name: "name" });
record!(Level { kind: "level", fragments: "fragments", ticks: "ticks" });
choice!(LevelKind {
    Kernel = "kernel",
    Worker = "worker",
    Machine = "machine",
    Cluster = "cluster",
});
record!(Tick { every_ns: "every_ns", lateness_ns: "lateness_ns" });
record!(Fragment {
    pipeline: "pipeline",
    from: "from",
    carries: "carries",
    nodes: "nodes",
    to: "to",
    why: "why",
});
choice!(Inlet { Exchange(id) = "exchange", Pipelines(sides) = "pipelines" });
choice!(Target {
    Exchange(id) = "exchange",
    Pipeline(id) = "pipeline",
    Output(id) = "output",
    Outlets(node) = "outlets",
});
record!(Node { id: "id", work: "work", schema: "columns", reads: "reads", carries: "carries" });
record!(NodeId { pipeline: "pipeline", stage: "stage", half: "half" });
choice!(Half { Whole = "whole", Partial = "partial", Final = "final" });
choice!(Work { Stage(stage) = "stage", Partial(s) = "partial", Final(s) = "final" });
record!(Carry { fields: "fields", frame: "frame" });
record!(Exchange { payload: "payload", needs: "needs", why: "why" });
choice!(Payload {
    Packets(partition) = "packets",
    Groups { node: "node", combine: "combine" } = "groups",
    Rows(pipeline) = "rows",
    Frames(node) = "frames",
    Offered = "offered",
    Unfinished = "unfinished",
    KernelGroups(node) = "kernel_groups",
});
choice!(Partition { Batches = "batches", Key(fields) = "key", None = "one_worker" });
choice!(Combine { Merge = "merge", Append = "append" });
choice!(Needs { Nothing = "nothing", Key(fields) = "key", OneProducer = "one_producer" });

choice!(Stage {
    Where(condition) = "where",
    Extend { columns: "columns" } = "extend",
    Project { columns: "columns" } = "project",
    Reshape { columns: "columns", word: "word" } = "reshape",
    Summarize(s) = "summarize",
    Scan(scan) = "scan",
    AnalyzeTcp(analyze) = "analyze_tcp",
    Top { n: "n", by: "by", windowed: "windowed", per: "per" } = "top",
    Limit(n) = "limit",
    Join(join) = "join",
    Union(union) = "union",
    Distinct(distinct) = "distinct",
    Deduplicate(copies) = "deduplicate",
    Sample(sample) = "sample",
    Each(each) = "each",
    Ends(ends) = "branch",
    Capture(capture) = "capture",
    Alert(alert) = "alert",
    Metric(metric) = "metric",
    Hello(hello) = "hello",
});
choice!(Reshaping { Away = "project-away", Rename = "rename" });
record!(SortKey { expr: "by", order: "order" });
choice!(Order { Descending = "descending", Ascending = "ascending" });
record!(Summarize {
    keys: "keys",
    aggs: "aggregates",
    window: "window",
    zone: "zone",
    lateness_ns: "lateness_ns",
    fill: "fill",
    until: "until",
    unless: "unless",
    max_groups: "max",
});
choice!(Window {
    All = "all",
    Tumbling(every_ns) = "tumbling_ns",
    Sliding { over: "over_ns", every: "every_ns" } = "sliding",
    Session(session) = "session",
});
/// By what it is, so that no other machine has to know it by name.
impl Wire for TimeZone {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        to.members(|to, object| {
            to.member(object, "name", &self.name().to_owned())?;
            to.member(object, "offset_ns", &self.first())?;
            to.member(object, "changes_ns", &self.changes().to_vec())
        })
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<TimeZone, Mistake> {
        let object = Members::new(json, &["name", "offset_ns", "changes_ns"])?;
        let name: String = object.read("name", from)?;
        let changes: Vec<(i64, i64)> = object.read("changes_ns", from)?;
        let zone = TimeZone::new(&name, object.read("offset_ns", from)?, &changes);
        zone.ok_or_else(|| Mistake::new("this is no time zone"))
    }
}
record!(Session { gap_ns: "gap_ns", active_ns: "active_ns", rows: "rows", linger_ns: "linger_ns" });
record!(Fill { idle_ns: "idle_ns", from_start: "from_start", max_rows: "max_rows" });
record!(Agg { name: "name", func: "function", arg: "argument", cond: "where", ty: "type" });
choice!(AggFunc {
    Count = "count",
    Late = "late",
    Sum = "sum",
    Min = "min",
    Max = "max",
    MaxBy = "max_by",
    MinBy = "min_by",
    Avg = "avg",
    First = "first",
    Last = "last",
    Any = "any",
    All = "all",
    Distinct = "distinct",
    DistinctUpTo(limit) = "distinct_up_to",
    ApproxDistinct = "approx_distinct",
    BitOr = "bit_or",
    Variance = "variance",
    Stddev = "stddev",
    Rate(window_ns) = "rate_window_ns",
    Quantile(millionths) = "quantile_millionths",
    Mad = "mad",
    Entropy = "entropy",
    Frequent(n) = "frequent",
    Histogram = "histogram",
    EndReason = "end_reason",
    Completeness = "completeness",
    User(number as Registered) = "registered",
});

/// A registered aggregate, which is written by its name.
struct Registered(usize);

impl Wire for Registered {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        let found = to.signatures.aggregates.get(self.0);
        found.map(|f| f.name.as_str().into()).ok_or(Unwritable::Unregistered(self.0))
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<Registered, Mistake> {
        let name = String::read(json, from)?;
        let found = from.signatures.aggregates.iter().position(|f| f.name == name);
        let unknown = || Mistake::new(format!("no aggregate `{name}` is registered here"));
        found.map(Registered).ok_or_else(unknown)
    }
}

record!(Scan { states: "states", keys: "keys", idle_ns: "idle_ns", max_keys: "max" });
record!(ScanState { name: "name", output: "column", init: "init", update: "update" });
record!(AnalyzeTcp {
    keys: "keys",
    inputs: "inputs",
    columns: "columns",
    idle_ns: "idle_ns",
    max_keys: "max",
});
record!(Per { keys: "keys", max_keys: "max" });
record!(Distinct { keys: "keys", windowed: "windowed", idle_ns: "idle_ns", max_keys: "max" });
record!(Deduplicate { keys: "keys", within_ns: "within_ns", max_packets: "max" });
record!(Hello { keys: "keys", idle_ns: "idle_ns", max_flows: "max", columns: "columns" });
record!(Sample { take: "take", of: "of", by: "by" });
choice!(SampleBy { Number(number) = "number", Order = "order", Key(keys) = "key" });
record!(Each { what: "what", columns: "columns" });
choice!(Parts { Packet(what) = "packet", Split { text: "text", by: "by" } = "split" });
record!(Ends { arms: "arms" });
record!(Arm { when: "when", acts: "acts", next: "next" });
record!(Act { edits: "edits", to: "to" });
choice!(Edit { Trim(bytes) = "trim", Tag(id) = "tag", Anonymize(how) = "anonymize" });

/// Its key would be readable.
impl Wire for Anonymize {
    fn write(&self, _: &mut Writer<'_>) -> Result<Json, Unwritable> {
        Err(Unwritable::Key)
    }

    fn read(_: &Json, _: &Reader<'_>) -> Result<Anonymize, Mistake> {
        Err(Mistake::new("a plan with a key of `anonymize` is not read from JSON"))
    }
}

choice!(To {
    Drop = "drop",
    Pass = "pass",
    Forward(output) = "forward",
    Broadcast(outputs) = "broadcast",
    Steer { keys: "keys", outputs: "outputs" } = "steer",
});
record!(Join {
    kind: "kind",
    right: "right",
    schema: "right_columns",
    keys: "keys",
    columns: "columns",
    within: "within",
    max_rows: "max",
});
choice!(JoinKind { Inner = "inner", Left = "left", Anti = "anti" });
record!(JoinColumn { from: "from", default: "default" });
record!(Within { from_ns: "from_ns", to_ns: "to_ns" });
record!(Union { others: "others", columns: "columns", timed: "timed" });
record!(UnionColumn { name: "name", ty: "type", from: "from" });
record!(Capture {
    output: "column",
    name: "name",
    start: "start",
    over_ns: "over_ns",
    before_ns: "before_ns",
    after_ns: "after_ns",
    keys: "keys",
});
record!(Alert {
    rule: "rule",
    severity: "severity",
    text: "text",
    category: "category",
    technique: "technique",
    next: "next",
    compared: "compared",
    keys: "keys",
    ts: "ts",
    first: "first",
    last: "last",
    over_ns: "over_ns",
    completeness: "completeness",
    community: "community_id",
    hold_ns: "hold_ns",
    repeat_ns: "repeat_ns",
    storm_keys: "storm",
    max_keys: "max",
});
record!(Metric {
    name: "name",
    kind: "kind",
    value: "value",
    labels: "labels",
    max_series: "max",
    help: "help",
    ts: "ts",
    over_ns: "over_ns",
});
choice!(MetricKind { Gauge = "gauge", Counter = "counter", Histogram(step) = "histogram" });
choice!(AlertSeverity {
    Info = "info",
    Low = "low",
    Medium = "medium",
    High = "high",
    Critical = "critical",
});
choice!(TextPart { Text(text) = "text", Value(value) = "value" });
record!(Compared { field: "field", value: "value", threshold: "threshold", peak: "peak" });
choice!(Peak { Most = "most", Least = "least" });
record!(Column { name: "name", ty: "type" });
record!(Table { file: "file", column: "column", entries: "entries", texts: "texts" });

/// Columns are an array.
impl Wire for Schema {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        let Schema { columns } = self;
        columns.write(to)
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<Schema, Mistake> {
        Ok(Schema { columns: Vec::read(json, from)? })
    }
}
