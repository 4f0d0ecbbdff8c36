//! The options for packets and rows by way of Kafka.

use super::UntilWhen;
use crate::exit::usage;
use clap::{Args, ValueEnum};
use weir_kafka::address::KafkaTopic;
use weir_kafka::packets::SpreadKey;

/// Packets in the partitions of a topic, and rows in another one.
#[derive(Args, Debug)]
pub(crate) struct PartitionsArgs {
    /// With -w kafka://: packets with this key in common are in one partition, in order; `conn`
    /// unless told otherwise
    #[arg(long, value_enum, value_name = "KEY", hide_short_help = true)]
    pub(crate) spread_by: Option<SpreadKeyName>,

    /// With -i kafka://: the name of the group of hosts that share the partitions of the topic;
    /// each packet counts once in a group
    #[arg(long, value_name = "NAME", value_parser = group)]
    pub(crate) group: Option<String>,

    /// With -i kafka://: when to end: `end` where the capture of all partitions has ended, `never`
    /// only when it is told to
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = UntilWhen::Never)]
    #[arg(hide_default_value = true, hide_short_help = true)]
    pub(crate) until: UntilWhen,

    /// Send rows to this topic (kafka://HOST:PORT/TOPIC) as JSON, each with the columns that it is
    /// grouped by as its key; with -i kafka:// each row is there once
    #[arg(long, value_name = "KAFKA", value_parser = topic)]
    #[arg(conflicts_with_all = ["output", "out_dir", "store", "export", "time", "names"])]
    pub(crate) rows: Option<KafkaTopic>,

    /// The partition that this run is started for.
    #[arg(skip)]
    pub(crate) run: Option<PartitionRun>,
}

/// A run that another one has started, for one partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PartitionRun {
    /// The partition.
    pub(crate) partition: i32,
    /// The runs that share the memory of the host.
    pub(crate) share: u64,
}

/// The key of partitions, as an option names it.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpreadKeyName {
    /// Both endpoints and the protocol, in both directions
    Conn,
    /// Both addresses, in both directions
    Hosts,
    /// The source address
    #[value(name = "ip.src")]
    Source,
    /// The destination address
    #[value(name = "ip.dst")]
    Destination,
}

impl From<SpreadKeyName> for SpreadKey {
    fn from(name: SpreadKeyName) -> SpreadKey {
        match name {
            SpreadKeyName::Conn => SpreadKey::Conn,
            SpreadKeyName::Hosts => SpreadKey::Hosts,
            SpreadKeyName::Source => SpreadKey::Source,
            SpreadKeyName::Destination => SpreadKey::Destination,
        }
    }
}

impl PartitionsArgs {
    /// Refuses options that have no effect without a topic that packets come from.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match (&self.group, self.until) {
            (None, UntilWhen::Never) => Ok(()),
            _ => Err(usage(
                "--group and --until are for packets of a topic (-i kafka://HOST:PORT/TOPIC)",
            )),
        }
    }
}

pub(super) fn topic(text: &str) -> Result<KafkaTopic, String> {
    KafkaTopic::parse(text)
}

/// The name of a group: it is a part of other names in Kafka.
fn group(text: &str) -> Result<String, String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    match text.is_empty() || text.len() > 200 || !text.bytes().all(allowed) {
        true => Err("a group has 1 to 200 letters, digits, `.`, `_` and `-`".to_owned()),
        false => Ok(text.to_owned()),
    }
}
