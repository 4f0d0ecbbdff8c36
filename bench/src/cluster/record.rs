//! Records of Kafka, as the bare client sends and reads them.

use anyhow::Result;

/// A record as it stands in a topic.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct KafkaRecord {
    pub(super) partition: i32,
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Vec<u8>,
    pub(super) headers: Vec<(String, Vec<u8>)>,
}

/// A topic and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Topic<'a> {
    pub(super) brokers: &'a str,
    pub(super) name: &'a str,
}

/// Something that a record is handed to, to be sent.
pub(super) type SendRecord<'a> = &'a mut dyn FnMut(&KafkaRecord) -> Result<()>;

/// Whether somebody who reads a topic has read enough of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct IsEnough(pub(super) bool);
