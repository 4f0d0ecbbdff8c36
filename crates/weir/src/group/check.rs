//! The queries and options that a host of a group can take.

use crate::args::{Headers, RunOptions};
use crate::exit::usage;
use crate::kafka;
use weir_kafka::address::KafkaTopic;
use weir_kafka::packets::SpreadKey;
use weir_partitions::{fields_of, fits};
use weir_plan::{Program, SourceKind};

/// The topic that packets come from, if they do.
pub(crate) fn topic_of(options: &RunOptions) -> anyhow::Result<Option<KafkaTopic>> {
    let all = &options.live.interface;
    let Some(address) = all.iter().find(|name| KafkaTopic::is_meant(name)) else {
        return Ok(None);
    };
    kafka::check()?;
    if all.len() > 1 {
        return Err(usage(format!("-i {address}: a run takes the packets of one topic")));
    }
    KafkaTopic::parse(address).map(Some).map_err(|why| usage(format!("-i {address}: {why}")))
}

/// Refuses a query whose rows can't be those of all packets, and options that have no meaning for
/// the runs of partitions.
pub(crate) fn check(
    program: &Program,
    topic: &KafkaTopic,
    options: &RunOptions,
) -> anyhow::Result<()> {
    if options.partitions.group.is_none() {
        return Err(usage(format!(
            "-i {topic}: --group NAME is missing, which all hosts have in common that share the \
             packets"
        )));
    }
    if program.source != SourceKind::Packets {
        return Err(usage(format!("-i {topic} has packets, and the query reads flow records")));
    }
    if let Some(option) = refused(options) {
        return Err(usage(format!(
            "{option} can't be used with -i kafka://, whose partitions are processed each by a run \
             of its own"
        )));
    }
    if let Some(publish) = &options.publish.publish {
        let to = KafkaTopic::parse(publish).ok().filter(|to| to.brokers == topic.brokers);
        if to.is_none() || options.publish.stream.kafka_spill.is_some() {
            return Err(usage(format!(
                "--publish {publish}: partial results are committed together with how far packets \
                 were processed, so they have to go to a topic at the brokers of -i {topic}, and \
                 never to disk"
            )));
        }
    }
    if options.partitions.rows.as_ref().is_some_and(|rows| rows.brokers != topic.brokers) {
        return Err(usage(format!(
            "--rows: rows are committed together with how far packets were processed, so their \
             topic has to be at the brokers of -i {topic}"
        )));
    }
    let publishes = options.publish.publish.is_some();
    // The key that fits best names the stage for which none fits.
    let keys = SpreadKey::ALL.map(|key| fits(program, publishes, &fields_of(key)));
    match keys.iter().find_map(|fits| fits.as_ref().err()) {
        Some(why) if keys.iter().all(Result::is_err) => Err(usage(format!(
            "-i {topic}: {why}; hosts that share partitions can run what groups by packet fields, \
             or publish partial results (--publish)"
        ))),
        _ => Ok(()),
    }
}

/// The keys that packets may be spread by, so that hosts can share the program.
pub(super) fn keys_that_fit(program: &Program, publishes: bool) -> Vec<SpreadKey> {
    let all = SpreadKey::ALL.into_iter();
    all.filter(|key| fits(program, publishes, &fields_of(*key)).is_ok()).collect()
}

/// An option that runs of partitions can't have.
fn refused(options: &RunOptions) -> Option<&'static str> {
    let rows = &options.rows;
    let deliver = &rows.deliver;
    let is_json = rows.output.is_none_or(|format| format.name == "json");
    let all = [
        (options.workers.get() > 1, "-j"),
        (options.count.is_some(), "-c"),
        (options.append, "--append"),
        (options.fragments, "--fragments"),
        (options.headers != Headers::Outer, "--headers"),
        (!options.rules.tunnel_port.is_empty(), "--tunnel-port"),
        (options.plot.is_some(), "--plot"),
        (options.stats.is_some(), "--stats"),
        (options.fail_on_loss, "--fail-on-loss"),
        (options.takes_programs(), "--control or --http"),
        (options.http.is_asked_for(), "--metrics"),
        (options.write.to.is_some(), "-w"),
        (options.lookback.ring.is_some(), "--ring"),
        (rows.out_dir.is_some(), "--out-dir"),
        (rows.store.is_some(), "--store"),
        (rows.export.is_some(), "--export"),
        (!is_json, "another -o than json"),
        (deliver.is_asked_for(), "--alert-to"),
    ];
    all.into_iter().find(|(is_set, _)| *is_set).map(|(_, option)| option)
}
