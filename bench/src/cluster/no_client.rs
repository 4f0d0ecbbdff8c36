//! In the place of the client of Kafka, where this program was built without it.

use super::record::{IsEnough, KafkaRecord, SendRecord, Topic};
use anyhow::{Result, bail};
use std::time::Duration;

const WHY: &str = "this program was built without the client of Kafka";

pub(super) fn read_to_end(
    _topic: Topic<'_>,
    _keep: Option<&mut Vec<KafkaRecord>>,
) -> Result<(u64, u64)> {
    bail!(WHY)
}

pub(super) fn send_all(
    _topic: Topic<'_>,
    _load: &mut dyn FnMut(SendRecord<'_>) -> Result<()>,
) -> Result<()> {
    bail!(WHY)
}

pub(super) fn follow(
    _topic: Topic<'_>,
    _patience: Duration,
    _take: &mut dyn FnMut(&[u8]) -> Result<IsEnough>,
) -> Result<()> {
    bail!(WHY)
}
