//! A merge that passes on what it merges, as a probe does, for a merge above it.

use crate::args::MergeArgs;
use crate::exit::usage;
use crate::kafka::Carrier;
use crate::publishing::{self, OpenStream, StreamWriterOf};
use crate::term::Term;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_capture::live::clock;
use weir_capture::write::Made;
use weir_cluster::{Merge, ProbeHead};
use weir_engine::exchange::{MessageSend, ProducerId, Receiver};
use weir_kafka::address::KafkaTopic;

/// Refuses what can't be had where what is merged is passed on.
pub(super) fn check(args: &MergeArgs, topic: Option<&KafkaTopic>) -> anyhow::Result<()> {
    let Some(to) = &args.publish else { return Ok(()) };
    let has_config = args.kafka.kafka_config.is_some() && topic.is_none();
    publishing::check(to, &args.stream, has_config)?;
    match args.from.contains(to) && to != "-" {
        true => Err(usage(format!("--publish {to}: that is read (--from)"))),
        false => Ok(()),
    }
}

/// The name under which a merge passes on what it merges.
fn probe_name(args: &MergeArgs) -> String {
    args.stream.probe.clone().unwrap_or_else(|| publishing::default_name(&args.from))
}

/// Starts what carries the merged partial results to Kafka, if they go there.
pub(super) fn carrier(args: &MergeArgs, term: &Term) -> anyhow::Result<Option<Carrier>> {
    let Some(to) = args.publish.as_deref() else { return Ok(None) };
    let of = StreamWriterOf {
        probe: &probe_name(args),
        stream: &args.stream,
        kafka_config: args.kafka.kafka_config.as_deref(),
        user: args.confine.relinquish_privileges.as_deref(),
        sandbox: !args.confine.no_sandbox,
        quiet: args.quiet,
        verbose: args.verbose,
    };
    of.carrier(to, term)
}

/// The number and the head of what a merge passes on.
fn head(args: &MergeArgs, merge: &Merge, fingerprint: u128) -> (ProducerId, ProbeHead) {
    let head = ProbeHead {
        probe: probe_name(args),
        epoch: clock::system().unsigned_abs(),
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        fingerprint: ProbeHead::fingerprint_text(fingerprint),
        rules: merge.rules().clone(),
        resumes: false,
        // Its windows come when the slowest of its probes has passed them.
        clock: None,
    };
    (head.id(), head)
}

/// Writes the head of what is passed on: its number, what takes each message, and the process that
/// still carries them to Kafka once all are written.
pub(super) fn begin(
    stream: OpenStream,
    args: &MergeArgs,
    merge: &Merge,
    receiver: &Receiver,
) -> anyhow::Result<(ProducerId, MessageSend, Option<Carrier>)> {
    let (id, head) = head(args, merge, receiver.fingerprint());
    let (send, carrier) = stream.begin(&head)?;
    Ok((id, Box::new(send), carrier))
}

/// Opens what is passed on, if it is.
pub(super) fn open(
    args: &MergeArgs,
    carrier: Option<Carrier>,
    made: &mut Made,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Option<OpenStream>> {
    let to = args.publish.as_deref();
    to.map(|to| OpenStream::new(to, carrier, made, stop)).transpose()
}
