//! Partial results that travel between machines: the worker level of a program runs on several
//! machines, each over packets of its own, and one machine makes the rows of all.
//!
//! A [`Producer`] runs the worker level and writes [messages](Message): the groups of each window
//! when it closes, what was lost, counts, and how far time has come. A [`Receiver`] takes the
//! messages of all producers, in any order, some of them twice, and emits the rows of one run over
//! all packets. The caller carries the messages: in a file, by Kafka.
//!
//! The plan states which packets must be at one producer: see [`needs`]. Plans whose worker level
//! hands over anything but groups, or that need all packets in one place, are [refused](Refused) by
//! name.
//!
//! docs/partials.md has the bytes.

mod bytes;
mod codec;
mod holding;
mod message;
mod print;
mod producer;
mod receiver;
mod refused;
mod spread;
mod streams;
mod subset;
#[cfg(test)]
mod tests;
mod writer;

pub use crate::checkpoint::UnreadableState;
pub use message::{Body, EndOf, MAGIC, Message, MessageTarget, UnreadableMessage};
pub use producer::Producer;
pub use receiver::{Receipt, Receiver};
pub use refused::{NotRestored, Refused, needs};
pub use subset::Subset;
pub use writer::{MessageSend, ProducerId, end_message, renumber};
