//! A run whose partial results go to `weir merge`, not rows to a reader.

use super::session::Run;
use crate::args::{Headers, RunOptions, Stamp};
use crate::exit::usage;
use crate::kafka::{self, Carrier};
use crate::stats::Stats;
use anyhow::Context as _;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_capture::live::clock;
use weir_capture::records::is_record_address;
use weir_capture::write::{Made, StoppableWriter, Untouched, WriteError, is_read};
use weir_cluster::limits::PROBE_NAME_MAX;
use weir_cluster::{PacketRules, ProbeClock, ProbeHead, ProbeWriter};
use weir_engine::exchange::{Producer, ProducerId};
use weir_engine::run::{Options, Outcome};
use weir_kafka::address::KafkaTopic;
use weir_kafka::order::{CarrierOrder, LogName, ProduceOrder, SpillOrder, Task};
use weir_packet::source::Source;
use weir_plan::Program;
use weir_plan::physical::Physical;

/// Where the partial results of a run go.
pub(super) struct Publisher {
    /// The path or address as it was given.
    path: String,
    /// The name of the probe.
    probe: String,
    /// The clock that stamps its packets, if it is one of this machine.
    clock: Option<ProbeClock>,
    file: StoppableWriter,
    /// The same file, as it was; `None` for standard output and for Kafka.
    untouched: Option<Untouched>,
    /// The process that carries them to Kafka.
    carrier: Option<Carrier>,
}

/// The fate of a run whose partial results were written.
pub(super) struct Published {
    pub(super) outcome: Outcome,
    /// The process that still carries them to Kafka.
    pub(super) carrier: Option<Carrier>,
}

/// Refuses a query whose partial results can't travel, and options that a probe can't have.
pub(super) fn check(program: &Program, options: &RunOptions) -> anyhow::Result<()> {
    let Some(publish) = &options.publish.publish else { return Ok(()) };
    weir_engine::exchange::needs(&Physical::new(program, &[]))
        .map_err(|why| usage(format!("--publish {publish}: {why}")))?;
    if options.workers.get() > 1 {
        return Err(usage(format!(
            "-j {}: a probe has one worker; run several probes, such as one for each interface, \
             each with a --probe name",
            options.workers
        )));
    }
    let is_topic = KafkaTopic::is_meant(publish);
    if is_topic {
        kafka::check()?;
    } else if options.publish.is_for_kafka() {
        return Err(usage(format!(
            "--publish {publish}: --kafka-config, --kafka-partition and --kafka-spill are for \
             kafka://"
        )));
    }
    if publish != "-" && !is_topic && is_read(Path::new(publish), &options.read) {
        return Err(usage(format!("--publish {publish}: that is the capture to be read")));
    }
    match options.publish.probe.as_deref().and_then(ProbeHead::name_fault) {
        Some(fault) => Err(usage(format!("--probe: {fault}"))),
        None => Ok(()),
    }
}

/// The clock of this machine, where packets are captured that bear its times.
fn own_clock(options: &RunOptions) -> Option<ProbeClock> {
    let elsewhere = |name: &String| is_record_address(name) || KafkaTopic::is_meant(name);
    let interfaces = &options.live.interface;
    if interfaces.is_empty() || interfaces.iter().any(elsewhere) {
        return None;
    }
    let is_foreign = options.live.time_stamp_type == Some(Stamp::AdapterUnsynced);
    let error = if is_foreign { None } else { clock::max_error() };
    let max_error_us = error.map(|error| u64::try_from(error.as_micros()).unwrap_or(u64::MAX));
    Some(ProbeClock { max_error_us })
}

/// The name of a probe that was given none: its host, and the interfaces or files that it reads.
fn default_name(options: &RunOptions) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let all =
        if options.live.interface.is_empty() { &options.read } else { &options.live.interface };
    let base = |read: &String| {
        let name = Path::new(read).file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| read.clone())
    };
    let what: Vec<String> = all.iter().map(base).collect();
    let name = format!("{}:{}", host.trim(), what.join("+"));
    let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let cut = (0..=PROBE_NAME_MAX.min(name.len())).rev().find(|at| name.is_char_boundary(*at));
    name[..cut.unwrap_or(0)].to_owned()
}

impl Run<'_> {
    /// The name of the probe.
    fn probe_name(&self) -> String {
        self.options.publish.probe.clone().unwrap_or_else(|| default_name(self.options))
    }

    /// Starts what carries partial results to Kafka, if they go there. That is done first of all:
    /// it must not see what the run opens, and the properties may be a file of root.
    pub(super) fn carrier(&self) -> anyhow::Result<Option<Carrier>> {
        let publish = &self.options.publish;
        let Some(address) = publish.publish.as_deref().filter(|to| KafkaTopic::is_meant(to)) else {
            return Ok(None);
        };
        let log = LogName { probe: self.probe_name(), partition: publish.kafka_partition };
        let bytes_max = publish.kafka_spill_max;
        let spill = publish.kafka_spill.clone().map(|folder| SpillOrder { folder, bytes_max });
        let order = CarrierOrder {
            topic: KafkaTopic::parse(address).map_err(usage)?,
            properties: kafka::properties(publish.kafka_config.as_deref())?,
            user: self.options.confine.relinquish_privileges.clone(),
            sandbox: !self.options.confine.no_sandbox,
            detail: kafka::detail(self.options.quiet, self.options.verbose),
            task: Task::Produce(ProduceOrder { log, spill }),
        };
        kafka::producer(&order, self.term).map(Some)
    }

    /// Opens what partial results go to, if they do; a named pipe waits for its reader.
    pub(super) fn publisher(
        &self,
        made: &mut Made,
        carrier: Option<Carrier>,
    ) -> anyhow::Result<Option<Publisher>> {
        let Some(path) = self.options.publish.publish.clone() else { return Ok(None) };
        let (probe, stops) = (self.probe_name(), [Arc::<AtomicBool>::clone(&self.stop)]);
        let (file, untouched) = match carrier.as_ref().map(Carrier::pipe) {
            Some(pipe) => (StoppableWriter::new(pipe?, &stops), None),
            None if path == "-" => (StoppableWriter::stdout(&stops)?, None),
            None => {
                let file = made.open(Path::new(&path)).map_err(WriteError::of(&path))?;
                let untouched = file.try_clone().with_context(|| path.clone())?;
                (StoppableWriter::new(file, &stops), Some(Untouched::new(untouched)))
            }
        };
        let clock = own_clock(self.options);
        Ok(Some(Publisher { path, probe, clock, file, untouched, carrier }))
    }

    /// The head of what a producer writes.
    pub(super) fn head(
        &self,
        id: ProducerId,
        probe: String,
        producer: &Producer,
        options: &Options,
    ) -> ProbeHead {
        ProbeHead {
            probe,
            epoch: id.epoch,
            weir: env!("CARGO_PKG_VERSION").to_owned(),
            fingerprint: ProbeHead::fingerprint_text(producer.fingerprint()),
            rules: PacketRules {
                headers: headers_text(self.options),
                fragments: self.options.fragments,
                lateness_ns: options.lateness_ns,
            },
            resumes: false,
            clock: None,
        }
    }

    /// Runs the worker level, and writes what it hands over.
    pub(super) fn publish(
        &self,
        publisher: Publisher,
        source: &mut dyn Source,
        stats: &Stats,
    ) -> anyhow::Result<Published> {
        let Publisher { path, probe, clock, file, untouched, carrier } = publisher;
        let options = self.engine_options(stats, None);
        let epoch = clock::system().unsigned_abs();
        let (plan, id) = (Physical::new(&self.program, &[]), ProducerId::named(&probe, epoch));
        let producer = Producer::new(&plan, &self.functions, &options, id)?;
        let head = ProbeHead { clock, ..self.head(id, probe, &producer, &options) };
        // No kind of error that says that nobody reads the rows: whoever merges needs all of them.
        let failed = |e: io::Error| io::Error::other(format!("{path}: partial results: {e}"));
        if let Some(untouched) = untouched {
            untouched.begin().map_err(failed)?;
        }
        let mut writer = ProbeWriter::new(BufWriter::new(file), &head).map_err(failed)?;
        let outcome = producer.run(source, &mut |message| writer.message(message).map_err(failed));
        Ok(Published { outcome, carrier })
    }
}

/// How headers are read where packets are in tunnels, as probes compare it.
fn headers_text(options: &RunOptions) -> String {
    match options.headers {
        Headers::Outer => "outer".to_owned(),
        Headers::Inner => {
            let mut named: Vec<_> = options.rules.tunnel_port.clone();
            named.sort_unstable();
            let ports = named.into_iter().map(|(name, port)| format!(" {name}={port}"));
            format!("inner{}", ports.collect::<String>())
        }
    }
}
