//! A run whose partial results go to `weir merge`, not rows to a reader.

use super::session::Run;
use crate::args::{Headers, RunOptions, Stamp};
use crate::exit::usage;
use crate::kafka::Carrier;
use crate::publishing::{self, OpenStream, StreamWriterOf};
use crate::stats::Stats;
use std::path::Path;
use weir_capture::live::clock;
use weir_capture::records::is_record_address;
use weir_capture::write::{Made, is_read};
use weir_cluster::{PacketRules, ProbeClock, ProbeHead};
use weir_engine::exchange::{Producer, ProducerId};
use weir_engine::run::{Options, Outcome};
use weir_kafka::address::KafkaTopic;
use weir_packet::source::Source;
use weir_plan::Program;
use weir_plan::physical::Physical;

/// Where the partial results of a run go.
pub(super) struct Publisher {
    /// The name of the probe.
    probe: String,
    /// The clock that stamps its packets, if it is one of this machine.
    clock: Option<ProbeClock>,
    stream: OpenStream,
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
    let publish_args = &options.publish;
    publishing::check(publish, &publish_args.stream, publish_args.kafka_config.is_some())?;
    let is_topic = KafkaTopic::is_meant(publish);
    if publish != "-" && !is_topic && is_read(Path::new(publish), &options.read) {
        return Err(usage(format!("--publish {publish}: that is the capture to be read")));
    }
    Ok(())
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

impl Run<'_> {
    /// The name of the probe.
    fn probe_name(&self) -> String {
        let live = &self.options.live.interface;
        let reads = || if live.is_empty() { &self.options.read } else { live };
        let given = self.options.publish.stream.probe.clone();
        given.unwrap_or_else(|| publishing::default_name(reads()))
    }

    /// Starts what carries partial results to Kafka, if they go there.
    pub(super) fn carrier(&self) -> anyhow::Result<Option<Carrier>> {
        let publish = &self.options.publish;
        let Some(to) = publish.publish.as_deref() else { return Ok(None) };
        let of = StreamWriterOf {
            probe: &self.probe_name(),
            stream: &publish.stream,
            kafka_config: publish.kafka_config.as_deref(),
            user: self.options.confine.relinquish_privileges.as_deref(),
            sandbox: !self.options.confine.no_sandbox,
            quiet: self.options.quiet,
            verbose: self.options.verbose,
        };
        of.carrier(to, self.term)
    }

    /// Opens what partial results go to, if they do.
    pub(super) fn publisher(
        &self,
        made: &mut Made,
        carrier: Option<Carrier>,
    ) -> anyhow::Result<Option<Publisher>> {
        let Some(path) = &self.options.publish.publish else { return Ok(None) };
        let stream = OpenStream::new(path, carrier, made, &self.stop)?;
        let clock = own_clock(self.options);
        Ok(Some(Publisher { probe: self.probe_name(), clock, stream }))
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
        let Publisher { probe, clock, stream } = publisher;
        let options = self.engine_options(stats, None);
        let epoch = clock::system().unsigned_abs();
        let (plan, id) = (Physical::new(&self.program, &[]), ProducerId::named(&probe, epoch));
        let producer = Producer::new(&plan, &self.functions, &options, id)?;
        let head = ProbeHead { clock, ..self.head(id, probe, &producer, &options) };
        let (mut send, carrier) = stream.begin(&head)?;
        let outcome = producer.run(source, &mut send);
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
