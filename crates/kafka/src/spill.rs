//! Records that wait on disk for a broker. Records that a process left when it was killed are sent
//! by the next one.

use crate::address::KafkaTopic;
use crate::order::{LogName, SpillOrder};
use crate::record::{END_HEADER, PART_HEADER};
use std::io;
use weir_base::fnv::hash;
use weir_base::spool::Spool;

/// A record that is to be produced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutRecord {
    /// The epoch of its life.
    pub epoch: u64,
    /// A further header, and its value.
    pub header: Option<(OutHeader, String)>,
    /// A head, a message, or a part of one.
    pub value: Vec<u8>,
}

/// The headers that not all records have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutHeader {
    /// [`PART_HEADER`].
    Part = 1,
    /// [`END_HEADER`].
    End = 2,
}

impl OutHeader {
    /// Its name in a record.
    pub fn name(self) -> &'static str {
        match self {
            OutHeader::Part => PART_HEADER,
            OutHeader::End => END_HEADER,
        }
    }
}

/// The records of a probe that wait for a topic.
///
/// # Errors
/// If the folder is not there or can't be used, or another process has these records.
pub fn of_probe(order: &SpillOrder, topic: &KafkaTopic, log: &LogName) -> io::Result<Spool> {
    open(order, &format!("{}\0{}", topic.topic, log.probe))
}

/// The records of packets that wait for a topic.
///
/// # Errors
/// As with those of a probe.
pub fn of_packets(order: &SpillOrder, topic: &KafkaTopic) -> io::Result<Spool> {
    // No probe has this name.
    open(order, &format!("{}\0\0packets", topic.topic))
}

fn open(order: &SpillOrder, name: &str) -> io::Result<Spool> {
    let name = format!("weir-{:016x}", hash(name.as_bytes()));
    Spool::open(&order.folder, &name, order.bytes_max)
}

impl OutRecord {
    /// Its form on disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, text) = match &self.header {
            Some((header, text)) => (*header as u8, text.as_str()),
            None => (0, ""),
        };
        let mut bytes = Vec::with_capacity(self.value.len() + 64);
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.push(kind);
        bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        bytes.extend_from_slice(&text.as_bytes()[..text.len().min(usize::from(u8::MAX))]);
        bytes.extend_from_slice(&self.value);
        bytes
    }

    /// Reads its form on disk; `None` if these bytes are none.
    pub fn read(bytes: &[u8]) -> Option<OutRecord> {
        let (epoch, rest) = bytes.split_first_chunk::<8>()?;
        let ([kind, text], rest) = rest.split_first_chunk::<2>()?;
        let (text, value) = rest.split_at_checked(usize::from(*text))?;
        let text = std::str::from_utf8(text).ok()?.to_owned();
        let header = match kind {
            0 => None,
            1 => Some((OutHeader::Part, text)),
            2 => Some((OutHeader::End, text)),
            _ => return None,
        };
        Some(OutRecord { epoch: u64::from_le_bytes(*epoch), header, value: value.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let headers = [
            None,
            Some((OutHeader::Part, "3/9".to_owned())),
            Some((OutHeader::End, String::new())),
        ];
        for (epoch, header) in [0, 1, u64::MAX].into_iter().zip(headers) {
            for len in [0, 1, 9000] {
                let record = OutRecord { epoch, header: header.clone(), value: vec![7; len] };
                let bytes = record.to_bytes();
                assert_eq!(OutRecord::read(&bytes).as_ref(), Some(&record));
                let shorter = bytes.len() - len;
                assert!((0..shorter).all(|n| OutRecord::read(&bytes[..n]).is_none()));
            }
        }
        let bytes = OutRecord { epoch: 1, header: None, value: Vec::new() }.to_bytes();
        assert_eq!(OutRecord::read(&[&bytes[..8], &[3, 0]].concat()), None);
        assert_eq!(OutRecord::read(&[&bytes[..8], &[1, 1, 0xff]].concat()), None);
    }
}
