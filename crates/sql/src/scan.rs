//! A run of Weir as a leaf of a plan of DataFusion.

use crate::limits::{BATCHES_WAITING, SCAN_ROWS};
use crate::options::{SqlOptions, SqlRun};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{internal_err, plan_datafusion_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::stream::{
    RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter,
};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::StreamExt as _;
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc::Sender;
use weir_arrow::{Gathering, schema_of};
use weir_base::address::AddressForm;
use weir_engine::rows::{Output, Rows, Sink};
use weir_plan::Schema;
use weir_stream::{RunError, StreamError, StreamProgram};

/// Captures, and how they are read.
#[derive(Clone, Debug)]
pub(crate) struct Packets {
    captures: Arc<[String]>,
    pub(crate) addresses: AddressForm,
    workers: usize,
    ended: Ended,
}

/// The runs that have come to their end.
pub(crate) type Ended = Arc<Mutex<Vec<SqlRun>>>;

/// A query over captures, whose rows are those of a plan's leaf.
#[derive(Clone, Debug)]
pub(crate) struct PacketScan {
    packets: Packets,
    program: StreamProgram,
    /// The query as it is shown.
    shown: Arc<str>,
    /// The rows that the query makes, and the place of its output.
    rows: Schema,
    output: usize,
    /// The columns of these that are wanted, by their places.
    projection: Option<Arc<[usize]>>,
    properties: Arc<PlanProperties>,
}

impl Packets {
    /// Captures that are there.
    pub(crate) fn new(captures: &[&str], options: &SqlOptions, ended: &Ended) -> Result<Packets> {
        let captures: Arc<[String]> = captures.iter().map(|&name| name.to_owned()).collect();
        for name in &*captures {
            std::fs::metadata(name).map_err(|e| plan_datafusion_err!("{name}: {e}"))?;
        }
        let SqlOptions { addresses, workers, .. } = *options;
        Ok(Packets { captures, addresses, workers, ended: Arc::clone(ended) })
    }
}

fn external(e: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(e))
}

impl PacketScan {
    /// The rows that a program of one stream makes of captures. `shown` is the query.
    pub(crate) fn new(packets: Packets, program: StreamProgram, shown: &str) -> Result<PacketScan> {
        let program = program.named("query");
        let (plan, _) = program.compile().map_err(external)?;
        let mut outputs = Output::of(&plan).into_iter().enumerate();
        let found = outputs.rfind(|(_, output)| output.name.is_none());
        let (output, rows) = found.expect("the stream is an output");
        let rows = rows.schema;
        let properties = properties(schema_of(&rows, packets.addresses));
        let (shown, projection) = (shown.into(), None);
        Ok(PacketScan { packets, program, shown, rows, output, projection, properties })
    }

    /// The columns of its rows.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(self.properties.equivalence_properties().schema())
    }

    /// The same with these columns alone.
    pub(crate) fn project(&self, projection: &[usize]) -> Result<PacketScan> {
        let properties = properties(Arc::new(self.schema().project(projection)?));
        Ok(PacketScan { projection: Some(projection.into()), properties, ..self.clone() })
    }

    /// Runs the query, and hands its rows on.
    fn run(&self, to: Sender<Result<RecordBatch>>, stop: Arc<AtomicBool>) -> Result<()> {
        let names: Vec<&str> = self.packets.captures.iter().map(String::as_str).collect();
        let mut source = weir_stream::open_all(&names).map_err(external)?;
        let gathering = Gathering::new(&self.rows, self.packets.addresses);
        let (output, projection) = (self.output, self.projection.clone());
        let mut sink = ToPlan { output, projection, gathering, to, is_left: false };
        let run = self.program.clone().run(&mut source).workers(self.packets.workers).stop(stop);
        let outcome = run.to(&mut sink);
        match sink.is_left {
            true => Ok(()),
            false => {
                let (ledger, broken) = match outcome {
                    Ok(ledger) => (ledger, None),
                    Err(StreamError::Run { error: RunError::Source(e), ledger }) => {
                        (*ledger, Some(e.to_string()))
                    }
                    Err(e) => return Err(external(e)),
                };
                let captures = self.packets.captures.join(", ");
                self.packets.ended.lock().push(SqlRun { captures, ledger, broken });
                Ok(())
            }
        }
    }
}

fn properties(schema: SchemaRef) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

impl DisplayAs for PacketScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let captures = self.packets.captures.join(", ");
        write!(f, "Weir: {} ({captures})", self.shown.trim().replace('\n', " "))
    }
}

impl ExecutionPlan for PacketScan {
    fn name(&self) -> &'static str {
        "Weir"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.is_empty() {
            true => Ok(self),
            false => internal_err!("a scan of packets has no children"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let mut builder = RecordBatchReceiverStreamBuilder::new(schema, BATCHES_WAITING);
        let (scan, to, stop) = (self.clone(), builder.tx(), Arc::new(AtomicBool::new(false)));
        let left = Left(Arc::clone(&stop));
        builder.spawn_blocking(move || scan.run(to, stop));
        let batches = builder.build();
        let schema = batches.schema();
        // The stream owns what ends the run, and both go together.
        let batches = batches.inspect(move |_| left.watch());
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// Ends a run whose rows nobody takes any more.
struct Left(Arc<AtomicBool>);

impl Left {
    /// Does nothing, but by this call a closure holds it.
    fn watch(&self) {}
}

impl Drop for Left {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Hands rows on as record batches.
struct ToPlan {
    /// The output whose rows are wanted.
    output: usize,
    projection: Option<Arc<[usize]>>,
    gathering: Gathering,
    to: Sender<Result<RecordBatch>>,
    /// Whether nobody takes them any more.
    is_left: bool,
}

impl ToPlan {
    fn send(&mut self) -> io::Result<()> {
        if self.gathering.rows() == 0 {
            return Ok(());
        }
        let mut batch = self.gathering.take();
        if let Some(projection) = &self.projection {
            batch = batch.project(projection).map_err(io::Error::other)?;
        }
        let sent = self.to.blocking_send(Ok(batch));
        self.is_left |= sent.is_err();
        sent.map_err(|_| io::Error::other("enough rows were read"))
    }
}

impl Sink for ToPlan {
    fn open(&mut self, _: &[Output]) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        if output != self.output {
            return Ok(());
        }
        self.gathering.append(rows);
        if self.gathering.rows() >= SCAN_ROWS || self.gathering.is_full() {
            return self.send();
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.send()
    }
}
