//! The word that a probe is gone, as a record in its log.

use crate::client::partition_of;
use crate::look::unseen;
use crate::order::{CarrierOrder, LogName};
use crate::outbound::{OnDisk, Outbound, Telling};
use crate::record::RETIRE_HEADER;
use crate::{KafkaFault, Say};
use rdkafka::message::{Header, OwnedHeaders};

/// Properties of the client that make the record arrive, or say soon that it did not.
const OWN: &[(&str, &str)] = &[("acks", "all"), ("message.timeout.ms", "30000")];

/// Writes into the log of a probe that it is gone: nothing waits for it until it sends again. Says
/// which partition that is. A job may wait for a probe that has never written anything; since that
/// may be a typing error as well, `say` is told which probes have.
///
/// # Errors
/// Where the client can't be made, no broker answers, the topic or the partition is not there, or
/// the record was not delivered.
pub fn retire(order: &CarrierOrder, log: &LogName, say: &Say) -> Result<LogName, KafkaFault> {
    let telling = Telling { say, meanwhile: "the record waits" };
    // No pipe feeds it, so that it gives up when no broker has answered for a while.
    let (out, count) = Outbound::start(order, OWN, &|| true, telling)?;
    let partition = partition_of(log, count)?;
    if let Some(unseen) = unseen(order, (log, partition), count, say)? {
        say(&unseen);
    }
    let disk = OnDisk { offer: &|_| Ok(true), restore: |_| None };
    out.carry(&disk, || {
        let headers = OwnedHeaders::new().insert(Header { key: RETIRE_HEADER, value: Some("1") });
        let record = out.record(&order.topic.topic).key(&log.probe).payload("");
        out.send(record.partition(partition).headers(headers))
    })?;
    Ok(LogName { partition: Some(partition), ..log.clone() })
}
