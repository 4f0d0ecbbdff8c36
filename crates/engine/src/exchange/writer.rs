//! Messages as a producer writes them, one after the other.

use super::message::{EndOf, MAGIC, MessageTarget, write_end, write_window};
use super::print::Targets;
use crate::limits::MESSAGE_BYTES;
use crate::ops::groups::written::WrittenGroups;
use std::io;
use weir_plan::physical::fingerprint::{OFFSET, hash};

/// Names a producer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducerId {
    /// The probe: a number that no other one has.
    pub probe: u128,
    /// Which life of the probe: larger than all before, such as the time at which it started.
    pub epoch: u64,
}

impl ProducerId {
    /// A probe by its name: the number is the FNV-1a hash of 128 bits of its bytes.
    pub fn named(name: &str, epoch: u64) -> ProducerId {
        ProducerId { probe: hash(OFFSET, name.as_bytes()), epoch }
    }
}

/// Where messages go: each is a slice of bytes.
pub(super) type Send<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// The same, owned: it takes each message, in the order of their numbers.
pub type MessageSend = Box<dyn FnMut(&[u8]) -> io::Result<()>>;

/// Writes messages, and numbers them.
pub(super) struct MessageWriter {
    targets: Targets,
    id: ProducerId,
    number: u64,
    message: Vec<u8>,
}

impl MessageWriter {
    /// Of a producer, for these targets.
    pub(super) fn new(targets: Targets, id: ProducerId) -> MessageWriter {
        MessageWriter { targets, id, number: 0, message: Vec::new() }
    }

    /// The fingerprint of all nodes.
    pub(super) fn fingerprint(&self) -> u128 {
        self.targets.all.print
    }

    /// Sends a message to a node, or to all: `body` appends what it says.
    pub(super) fn send(
        &mut self,
        node: Option<usize>,
        send: Send<'_>,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        let MessageTarget { print, node } =
            node.map_or(self.targets.all, |n| self.targets.nodes[n]);
        let out = &mut self.message;
        out.clear();
        write_front(MessageTarget { print, node }, self.id, self.number, out);
        self.number += 1;
        body(out);
        send(out)
    }

    /// Sends groups of a window, in messages of about [`MESSAGE_BYTES`].
    pub(super) fn send_window(
        &mut self,
        node: usize,
        start: i64,
        groups: &WrittenGroups,
        send: Send<'_>,
    ) -> io::Result<()> {
        let end = |n: usize| {
            let columns = groups.columns.iter().map(|(_, states)| states);
            let all = std::iter::once(&groups.keys).chain(columns);
            // Each key with the four bytes that say where it ends.
            all.map(|states| states.ends[n]).sum::<usize>() + 4 * (n + 1)
        };
        let (mut first, mut written) = (0, 0);
        for n in 0..groups.keys.ends.len() {
            let is_last = n + 1 == groups.keys.ends.len();
            if is_last || end(n) - written >= MESSAGE_BYTES {
                self.send(Some(node), send, |out| write_window(start, groups, first..n + 1, out))?;
                (first, written) = (n + 1, end(n));
            }
        }
        Ok(())
    }
}

/// The end of a life that its producer did not send itself, since it was killed, as the message of
/// this number. `print` is the fingerprint of the computation.
pub fn end_message(print: u128, id: ProducerId, number: u64, why: EndOf) -> Vec<u8> {
    let mut out = Vec::new();
    write_front(MessageTarget { print, node: MessageTarget::ALL }, id, number, &mut out);
    write_end(why, &mut out);
    out
}

/// Where the epoch and the number of a message are: after its kind, its target and its probe.
const EPOCH_AT: usize = 4 + 16 + 5 + 16;

/// Gives a message another epoch and number, for who sends it in the place of its producer. `false`
/// if it is too short to have any.
#[must_use]
pub fn renumber(message: &mut [u8], epoch: u64, number: u64) -> bool {
    let Some(place) = message.get_mut(EPOCH_AT..EPOCH_AT + 16) else { return false };
    place[..8].copy_from_slice(&epoch.to_le_bytes());
    place[8..].copy_from_slice(&number.to_le_bytes());
    true
}

/// Appends what each message begins with.
fn write_front(target: MessageTarget, id: ProducerId, number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&target.print.to_le_bytes());
    out.extend_from_slice(&target.node);
    out.extend_from_slice(&id.probe.to_le_bytes());
    out.extend_from_slice(&id.epoch.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Body, Message};

    #[test]
    fn a_message_gets_another_number() {
        let id = ProducerId { probe: 7, epoch: 1 };
        let mut message = end_message(9, id, 3, EndOf::Input);
        assert!(renumber(&mut message, u64::MAX, 5));
        let read = Message::read(&message).expect("a message");
        assert_eq!((read.probe, read.epoch, read.number), (7, u64::MAX, 5));
        assert!(!renumber(&mut message[..EPOCH_AT + 15], 1, 1));
    }

    #[test]
    fn an_end_for_another_is_read_as_its_own() {
        let id = ProducerId::named("north", u64::MAX);
        let bytes = end_message(u128::MAX, id, 7, EndOf::Source);
        let message = Message::read(&bytes).expect("a message");
        assert_eq!((message.probe, message.epoch, message.number), (id.probe, id.epoch, 7));
        assert_eq!((message.target.print, message.target.node), (u128::MAX, MessageTarget::ALL));
        assert!(matches!(message.body, Body::End(EndOf::Source)));
    }
}
