//! Merged groups that go on as the messages of one producer: merges stand one above the other.

use super::held::{HeldLosses, HeldNode};
use crate::counters::Ledger;
use crate::exchange::codec;
use crate::exchange::message::{
    EndOf, write_clock, write_closed, write_counts, write_end, write_losses,
};
use crate::exchange::writer::{MessageSend, MessageWriter};
use crate::level::Closed;
use std::io;

/// Writes what a receiver merges as the messages of a producer.
pub(super) struct Passing {
    writer: MessageWriter,
    send: MessageSend,
    /// The counts that were sent.
    sent: Ledger,
    /// Why no more is sent, until somebody asks.
    error: Option<io::Error>,
    has_failed: bool,
}

impl Passing {
    pub(super) fn new(writer: MessageWriter, send: MessageSend) -> Passing {
        Passing { writer, send, sent: Ledger::default(), error: None, has_failed: false }
    }

    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Sends the windows that have closed, after what was lost until then, and what was counted;
    /// `watermark` is where they closed, unless the input has ended.
    pub(super) fn send_all(
        &mut self,
        nodes: &[HeldNode],
        closed: &mut Vec<Closed>,
        counted: &Ledger,
        watermark: Option<i64>,
    ) {
        self.tried(|passing| {
            passing.losses(nodes)?;
            passing.groups(nodes, closed)?;
            passing.counts(counted)?;
            match watermark {
                Some(at) => passing.message(None, |out| write_closed(at, out)),
                None => Ok(()),
            }
        });
    }

    /// Sends the end, and before it how far the clocks of the producers have come, where that is
    /// known.
    pub(super) fn end(&mut self, stands_at: Option<(i64, Vec<i64>)>) {
        self.tried(|passing| {
            if let Some((reached, ahead)) = stands_at {
                passing.message(None, |out| write_clock(reached, &ahead, out))?;
            }
            passing.message(None, |out| write_end(EndOf::Input, out))
        });
    }

    /// After an error, nothing more is sent.
    fn tried(&mut self, f: impl FnOnce(&mut Passing) -> io::Result<()>) {
        if self.has_failed {
            return;
        }
        self.error = f(self).err();
        self.has_failed = self.error.is_some();
    }

    fn message(&mut self, node: Option<usize>, body: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.writer.send(node, &mut *self.send, body)
    }

    fn losses(&mut self, nodes: &[HeldNode]) -> io::Result<()> {
        for (n, node) in nodes.iter().enumerate() {
            let HeldLosses::Passed(all) = &node.losses else { continue };
            for (machine, news) in all.take() {
                // 0 is the merge itself, which sees no packets.
                let machine = machine as u32 + 1;
                self.message(Some(n), |out| write_losses(machine, &news, out))?;
            }
        }
        Ok(())
    }

    fn groups(&mut self, nodes: &[HeldNode], closed: &mut Vec<Closed>) -> io::Result<()> {
        for Closed { pipeline, start, groups } in closed.drain(..) {
            let node = nodes.iter().position(|node| node.pipeline == pipeline);
            let node = node.expect("a node holds the groups of its own pipeline");
            for layout in groups.written() {
                self.writer.send_window(node, start, &layout, &mut *self.send)?;
            }
        }
        Ok(())
    }

    fn counts(&mut self, counted: &Ledger) -> io::Result<()> {
        let counts = codec::since(&self.sent, counted);
        self.sent = counted.clone();
        match counts.is_empty() {
            true => Ok(()),
            false => self.message(None, |out| write_counts(&counts, out)),
        }
    }
}
