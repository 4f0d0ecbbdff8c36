//! The state of a receiver as bytes: what it has taken and not put out yet.

use super::Receiver;
use super::held::{HeldNode, HeldWindow};
use crate::checkpoint::{BadState, COUNT_MAX, Checkpoint, Passed, Saved, UnreadableState};
use crate::exchange::codec;
use crate::exchange::message::MessageId;
use crate::exchange::refused::NotRestored;
use crate::functions::Functions;
use crate::ops::groups::Groups;
use crate::options::Options;
use std::collections::BTreeMap;
use weir_plan::physical::Physical;

/// How a state begins: Weir's state of a receiver, version 3.
const MAGIC: [u8; 4] = *b"WRS3";

impl Receiver {
    /// All that it has taken and not put out: what comes after it goes on from there, in a receiver
    /// that these bytes [restore](Receiver::restore). They are for this version of Weir, and for
    /// the same plan. Rows that went to the sink are the caller's.
    pub fn save(&mut self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.fingerprint().to_le_bytes());
        let saved = self.pass_state(&mut Checkpoint::Save(&mut bytes));
        debug_assert!(saved.is_ok(), "saving can't fail: {saved:?}");
        bytes
    }

    /// A receiver as it was when these bytes were saved; the rest as in [`Receiver::new`].
    ///
    /// # Errors
    /// Where the plan can't be spread, or the bytes are no state of it.
    pub fn restore(
        plan: &Physical,
        functions: &Functions,
        options: &Options,
        bytes: &[u8],
    ) -> Result<Receiver, NotRestored> {
        let new = Receiver::new(plan, functions, options, &[]);
        let mut receiver = new.map_err(NotRestored::Plan)?;
        receiver.take_state(bytes).map_err(NotRestored::State)?;
        Ok(receiver)
    }

    fn take_state(&mut self, bytes: &[u8]) -> Result<(), UnreadableState> {
        let Some((magic, bytes)) = bytes.split_first_chunk() else {
            return Err(UnreadableState::Version);
        };
        if *magic != MAGIC {
            return Err(UnreadableState::Version);
        }
        let (mut print, mut at) = (0u128, Checkpoint::Restore(bytes));
        at.pass(&mut print)?;
        if print != self.fingerprint() {
            return Err(UnreadableState::Plan);
        }
        self.pass_state(&mut at)?;
        match at {
            Checkpoint::Restore(rest) if !rest.is_empty() => Err(UnreadableState::Rest(rest.len())),
            _ => Ok(()),
        }
    }

    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        self.streams.pass_state(self.nodes.len(), at)?;
        self.pass_counts(at)?;
        at.count(&mut self.late)?;
        at.pass(&mut self.rested)?;
        self.nodes.iter_mut().try_for_each(|node| node.pass_state(at))?;
        self.above.pass_state(at)
    }

    /// Passes what producers counted, by name.
    fn pass_counts(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let counts = codec::since(&Default::default(), &self.counted);
        let text = |(name, n): (&str, u64)| (Vec::from(name), n);
        let mut counts: Vec<(Vec<u8>, u64)> = counts.into_iter().map(text).collect();
        at.list(&mut counts, Default::default, |(name, n), at| {
            at.bytes(name)?;
            at.pass(n)
        })?;
        if !at.restores() {
            return Ok(());
        }
        for (name, n) in &counts {
            let name = std::str::from_utf8(name).ok().filter(|name| codec::is_known(name));
            let name = name.ok_or(BadState("a count has no name that is known"))?;
            codec::add(&[(name, COUNT_MAX.min(*n))], &mut self.counted);
        }
        Ok(())
    }
}

impl HeldNode {
    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let spec = &self.spec;
        let new = || match spec.session() {
            None => HeldWindow::Merged(Groups::new(spec)),
            Some(_) => HeldWindow::Sessions(BTreeMap::new()),
        };
        at.map(&mut self.windows, new, |window, at| match window {
            HeldWindow::Merged(groups) => groups.pass_state(at),
            HeldWindow::Sessions(all) => {
                at.map(all, || Groups::new(spec), |groups, at| groups.pass_state(at))
            }
        })?;
        if !self.windows.keys().all(|start| spec.is_start(*start)) {
            return Err(BadState("no window starts there"));
        }
        self.losses.pass_reports(at)
    }
}

impl Saved for MessageId {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.probe)?;
        at.pass(&mut self.epoch)?;
        at.pass(&mut self.number)
    }
}
