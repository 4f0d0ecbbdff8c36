//! Partial results of probes by way of Apache Kafka: each probe writes its
//! [stream](weir_cluster::ProbeWriter) as records into one partition of a topic, its *log*, and
//! `weir merge` reads the logs of all probes.
//!
//! And packets themselves ([`packets`]): a host that captures spreads them over the partitions of a
//! topic, and hosts that analyse them share the partitions. Their rows go to another topic, in one
//! transaction with how far a partition was processed.
//!
//! A process of its own talks to Kafka; it is started before a run gives up its permissions:
//! [`produce`] reads a probe stream from a pipe, and [`consume`] writes one. Neither sees packets.
//! [`order`] has the orders that such a process gets.
//!
//! The feature `link` builds and links librdkafka; without it [`is_linked`] is false and the calls
//! above say so. The contents of records ([`record`]), their fate ([`log`]), and addresses and
//! properties are there in any case.
//!
//! docs/partials.md and docs/records.md have the records, docs/cluster.md the use.

#![forbid(unsafe_code)]

pub mod address;
#[cfg(feature = "link")]
mod client;
#[cfg(feature = "link")]
mod consume;
mod fault;
#[cfg(feature = "link")]
mod group;
pub mod limits;
mod link;
pub mod log;
#[cfg(feature = "link")]
mod look;
pub mod order;
#[cfg(feature = "link")]
mod outbound;
pub mod packets;
pub mod partition;
pub mod position;
#[cfg(feature = "link")]
mod process;
#[cfg(feature = "link")]
mod produce;
mod produced;
pub mod properties;
pub mod record;
#[cfg(feature = "link")]
mod retire;
#[cfg(feature = "link")]
mod send;
pub mod spill;
#[cfg(test)]
mod testing;
pub mod worker;

pub use fault::KafkaFault;
pub use link::{consume, is_linked, join, look, process, produce, retire, send_packets, send_rows};
pub use produced::{ParentOfGroup, PipeOfProbe, Produced, Say};
