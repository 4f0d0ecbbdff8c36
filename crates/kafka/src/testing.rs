//! Heads and messages for tests.

use weir_cluster::{PacketRules, ProbeHead};
use weir_engine::exchange::{EndOf, ProducerId, end_message};

pub(crate) fn head(probe: &str, epoch: u64) -> ProbeHead {
    ProbeHead {
        probe: probe.to_owned(),
        epoch,
        weir: "0.1.0".to_owned(),
        fingerprint: ProbeHead::fingerprint_text(1),
        rules: PacketRules { headers: "outer".to_owned(), fragments: false, lateness_ns: 0 },
        resumes: false,
        clock: None,
    }
}

/// The parts of a message before its kind: for all nodes.
fn front(probe: &str, epoch: u64, number: u64) -> Vec<u8> {
    let mut bytes = end(probe, epoch, number);
    bytes.truncate(bytes.len() - 2);
    bytes
}

/// A message that says how far the probe is.
pub(crate) fn message(probe: &str, epoch: u64, number: u64) -> Vec<u8> {
    [&front(probe, epoch, number)[..], &[4], &5i64.to_le_bytes()].concat()
}

/// A message that counts, of about so many bytes.
pub(crate) fn long_message(probe: &str, epoch: u64, len: usize) -> Vec<u8> {
    let count = [&[255u8][..], &[b'x'; 255], &1u64.to_le_bytes()].concat();
    let n = (len / count.len()) as u16;
    [&front(probe, epoch, 0)[..], &[3], &n.to_le_bytes(), &count.repeat(n.into())].concat()
}

/// The end of a run.
pub(crate) fn end(probe: &str, epoch: u64, number: u64) -> Vec<u8> {
    end_message(1, ProducerId::named(probe, epoch), number, EndOf::Input)
}
