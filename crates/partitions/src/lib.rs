//! Packets by way of Kafka: those that a run spreads over the partitions of a topic, and a
//! partition as the source of a run.

#![forbid(unsafe_code)]

pub mod outlets;
pub mod reported;
pub mod source;
pub mod spread;
mod starts;
pub mod up;

use weir_engine::exchange::needs;
use weir_kafka::packets::SpreadKey;
use weir_packet::fields::{by_name, key_by_name};
use weir_plan::Program;
use weir_plan::keys::{FieldSet, KeyField, describe, determines};
use weir_plan::partitions::rows_by_partition;
use weir_plan::physical::{Needs, Physical};

/// The fields of a key that packets are spread by.
pub fn fields_of(key: SpreadKey) -> FieldSet {
    match key_by_name(key.name()) {
        Some(key) => key.fields.iter().map(|&field| field.into()).collect(),
        None => by_name(key.name()).map(KeyField::from).into_iter().collect(),
    }
}

/// Whether hosts that share partitions can run a program, if packets are spread by `key`: its rows
/// have to be those of all packets, or its partial results, if that is what they publish.
///
/// # Errors
/// Says why not.
pub fn fits(program: &Program, publishes: bool, key: &FieldSet) -> Result<(), String> {
    if !publishes {
        return rows_by_partition(program, key);
    }
    match needs(&Physical::new(program, &[])).map_err(|why| why.to_string())? {
        Needs::Nothing => Ok(()),
        Needs::OneProducer => Err("all packets have to be in one place".to_owned()),
        Needs::Key(needed) if determines(&needed, key) => Ok(()),
        Needs::Key(needed) => Err(format!(
            "packets with equal {} have to be in one partition, and packets are spread by {}",
            describe(&needed),
            describe(key)
        )),
    }
}
