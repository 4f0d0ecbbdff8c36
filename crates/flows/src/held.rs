//! Data sets that came before their templates, and wait for them.

use crate::limits::{HELD_BYTES_MAX, HELD_NS};
use crate::reading::Export;
use crate::session::SessionKey;
use std::collections::VecDeque;

/// A data set without a template.
#[derive(Debug)]
pub(crate) struct Waiting {
    key: SessionKey,
    template: u16,
    pub(crate) export: Export,
    pub(crate) bytes: Vec<u8>,
}

/// All of them, in the order in which they came.
#[derive(Default, Debug)]
pub(crate) struct Held {
    sets: VecDeque<Waiting>,
    bytes: usize,
}

/// What a set takes beside its bytes.
const HEAD: usize = size_of::<Waiting>();

impl Held {
    /// Holds a set; returns how many were given up for it.
    pub(crate) fn add(
        &mut self,
        key: SessionKey,
        template: u16,
        export: Export,
        set: &[u8],
    ) -> u64 {
        let mut given_up = self.expire(export.received);
        if set.len() + HEAD > HELD_BYTES_MAX {
            return given_up + 1;
        }
        self.bytes += set.len() + HEAD;
        self.sets.push_back(Waiting { key, template, export, bytes: set.to_vec() });
        while self.bytes > HELD_BYTES_MAX {
            self.drop_first();
            given_up += 1;
        }
        given_up
    }

    /// Gives up those that waited too long; returns how many.
    fn expire(&mut self, now: i64) -> u64 {
        let mut given_up = 0;
        while self.sets.front().is_some_and(|set| now.saturating_sub(set.export.received) > HELD_NS)
        {
            self.drop_first();
            given_up += 1;
        }
        given_up
    }

    fn drop_first(&mut self) {
        if let Some(set) = self.sets.pop_front() {
            self.bytes -= set.bytes.len() + HEAD;
        }
    }

    /// Takes those that wait for this template, in order.
    pub(crate) fn take(&mut self, key: &SessionKey, template: u16) -> Vec<Waiting> {
        let is_it = |set: &Waiting| set.key == *key && set.template == template;
        if !self.sets.iter().any(is_it) {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.sets);
        let (taken, kept): (VecDeque<_>, VecDeque<_>) = all.into_iter().partition(is_it);
        self.bytes -= taken.iter().map(|set| set.bytes.len() + HEAD).sum::<usize>();
        self.sets = kept;
        taken.into()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> u64 {
        self.sets.len() as u64
    }
}
