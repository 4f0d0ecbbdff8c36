//! Streams of partial results on their way out, as a probe writes them (`weir run --publish`) and a
//! merge that passes on what it merges (`weir merge --publish`).

use crate::args::StreamArgs;
use crate::exit::usage;
use crate::kafka::{self, Carrier};
use crate::term::Term;
use anyhow::Context as _;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_capture::write::{Made, StoppableWriter, Untouched, WriteError};
use weir_cluster::limits::PROBE_NAME_MAX;
use weir_cluster::{ProbeHead, ProbeWriter};
use weir_kafka::address::KafkaTopic;
use weir_kafka::order::{CarrierOrder, LogName, ProduceOrder, SpillOrder, Task};

/// The writer of a stream, as the process needs to know it that carries it to Kafka.
pub(crate) struct StreamWriterOf<'a> {
    /// The name of the probe, or the merge.
    pub(crate) probe: &'a str,
    pub(crate) stream: &'a StreamArgs,
    pub(crate) kafka_config: Option<&'a Path>,
    /// The user that the process becomes, if it does.
    pub(crate) user: Option<&'a str>,
    pub(crate) sandbox: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
}

impl StreamWriterOf<'_> {
    /// Starts what carries partial results to Kafka, if they go there. That is done first of all:
    /// it must not see what else is opened, and the properties may be a file of root.
    pub(crate) fn carrier(&self, to: &str, term: &Term) -> anyhow::Result<Option<Carrier>> {
        if !KafkaTopic::is_meant(to) {
            return Ok(None);
        }
        let StreamArgs { kafka_partition, kafka_spill, kafka_spill_max, .. } = self.stream;
        let log = LogName { probe: self.probe.to_owned(), partition: *kafka_partition };
        let bytes_max = *kafka_spill_max;
        let spill = kafka_spill.clone().map(|folder| SpillOrder { folder, bytes_max });
        let order = CarrierOrder {
            topic: KafkaTopic::parse(to).map_err(usage)?,
            properties: kafka::properties(self.kafka_config)?,
            user: self.user.map(str::to_owned),
            sandbox: self.sandbox,
            detail: kafka::detail(self.quiet, self.verbose),
            task: Task::Produce(ProduceOrder { log, spill }),
        };
        kafka::producer(&order, term).map(Some)
    }
}

/// Refuses options for Kafka where partial results go elsewhere, Kafka where it was not built in,
/// and a name that no probe can have.
pub(crate) fn check(to: &str, stream: &StreamArgs, has_config: bool) -> anyhow::Result<()> {
    if KafkaTopic::is_meant(to) {
        kafka::check()?;
    } else if stream.is_for_kafka() || has_config {
        return Err(usage(format!(
            "--publish {to}: --kafka-config, --kafka-partition and --kafka-spill are for kafka://"
        )));
    }
    match stream.probe.as_deref().and_then(ProbeHead::name_fault) {
        Some(fault) => Err(usage(format!("--probe: {fault}"))),
        None => Ok(()),
    }
}

/// The name of one that was given none: its host, and the last parts of what it reads.
pub(crate) fn default_name(reads: &[String]) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let base = |read: &String| {
        let name = Path::new(read).file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| read.clone())
    };
    let what: Vec<String> = reads.iter().map(base).collect();
    let name = format!("{}:{}", host.trim(), what.join("+"));
    let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let cut = (0..=PROBE_NAME_MAX.min(name.len())).rev().find(|at| name.is_char_boundary(*at));
    name[..cut.unwrap_or(0)].to_owned()
}

/// A stream that is open, and has no head yet.
pub(crate) struct OpenStream {
    /// The path or address as it was given.
    path: String,
    file: StoppableWriter,
    /// The same file, as it was; `None` for standard output and for Kafka.
    untouched: Option<Untouched>,
    /// The process that carries it to Kafka.
    carrier: Option<Carrier>,
}

impl OpenStream {
    /// Opens what partial results go to; a named pipe waits for its reader.
    pub(crate) fn new(
        path: &str,
        carrier: Option<Carrier>,
        made: &mut Made,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<OpenStream> {
        let stops = [Arc::clone(stop)];
        let (file, untouched) = match carrier.as_ref().map(Carrier::pipe) {
            Some(pipe) => (StoppableWriter::new(pipe?, &stops), None),
            None if path == "-" => (StoppableWriter::stdout(&stops)?, None),
            None => {
                let file = made.open(Path::new(path)).map_err(WriteError::of(path))?;
                let untouched = file.try_clone().with_context(|| path.to_owned())?;
                (StoppableWriter::new(file, &stops), Some(Untouched::new(untouched)))
            }
        };
        Ok(OpenStream { path: path.to_owned(), file, untouched, carrier })
    }

    /// Writes the head: what takes each message then, and the process that still carries them to
    /// Kafka once all are written.
    #[expect(clippy::type_complexity, reason = "one closure, which nothing else has")]
    pub(crate) fn begin(
        self,
        head: &ProbeHead,
    ) -> io::Result<(impl FnMut(&[u8]) -> io::Result<()> + use<>, Option<Carrier>)> {
        let OpenStream { path, file, untouched, carrier } = self;
        // No kind of error that says that nobody reads the rows: whoever merges needs all of them.
        let failed = move |e: io::Error| io::Error::other(format!("{path}: partial results: {e}"));
        if let Some(untouched) = untouched {
            untouched.begin().map_err(&failed)?;
        }
        let mut writer = ProbeWriter::new(BufWriter::new(file), head).map_err(&failed)?;
        Ok((move |message: &[u8]| writer.message(message).map_err(&failed), carrier))
    }
}
