//! Data sets that came before their templates, and wait for them.

use crate::export::Export;
use crate::limits::{HELD_BYTES_MAX, HELD_NS, HELD_SENDER_BYTES_MAX};
use crate::session::SessionKey;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// A data set without a template.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Its number among all that ever waited.
    number: u64,
    pub(crate) export: Export,
    pub(crate) bytes: Vec<u8>,
}

/// For which template a set waits.
type Wanted = (SessionKey, u16);

/// All of them. Neither a set nor a template costs more the more sets wait.
#[derive(Default, Debug)]
pub(crate) struct WaitingSets {
    sets: BTreeMap<Wanted, VecDeque<Waiting>>,
    /// In the order in which they came; some may have found their template.
    order: VecDeque<(u64, Wanted)>,
    /// How many wait, ...
    len: usize,
    /// ... and their bytes, ...
    bytes: usize,
    /// ... of which so many are of each address that sends.
    of_senders: BTreeMap<IpAddr, usize>,
    next: u64,
}

/// The memory that a set takes beside its bytes.
const HEAD: usize = size_of::<Waiting>() + size_of::<(u64, Wanted)>() + size_of::<Wanted>();

impl WaitingSets {
    /// Holds a set; returns how many were given up for it.
    pub(crate) fn add(
        &mut self,
        key: SessionKey,
        template: u16,
        export: Export,
        set: &[u8],
    ) -> u64 {
        let mut given_up = self.expire(export.received);
        let mine = self.of_senders.get(&key.sender).copied().unwrap_or(0);
        let mine = mine + set.len() + HEAD;
        if mine > HELD_SENDER_BYTES_MAX {
            return given_up + 1;
        }
        self.of_senders.insert(key.sender, mine);
        let (number, wanted) = (self.next, (key, template));
        self.next += 1;
        self.len += 1;
        self.bytes += set.len() + HEAD;
        let waiting = Waiting { number, export, bytes: set.to_vec() };
        self.sets.entry(wanted).or_default().push_back(waiting);
        self.order.push_back((number, wanted));
        while self.bytes > HELD_BYTES_MAX {
            given_up += u64::from(self.drop_first());
        }
        given_up
    }

    /// Gives up those that waited too long; returns how many.
    fn expire(&mut self, now: i64) -> u64 {
        let mut given_up = 0;
        while let Some((number, wanted)) = self.order.front() {
            let first = self.sets.get(wanted).and_then(VecDeque::front);
            let waits = |set: &Waiting| now.saturating_sub(set.export.received) <= HELD_NS;
            if first.is_some_and(|set| set.number == *number && waits(set)) {
                break;
            }
            given_up += u64::from(self.drop_first());
        }
        given_up
    }

    /// Drops the oldest entry; whether a set of it still waited.
    fn drop_first(&mut self) -> bool {
        let Some((number, wanted)) = self.order.pop_front() else { return false };
        let Some(sets) = self.sets.get_mut(&wanted) else { return false };
        if sets.front().is_none_or(|set| set.number != number) {
            return false;
        }
        let Some(set) = sets.pop_front() else { return false };
        let is_empty = sets.is_empty();
        self.count_out(wanted.0.sender, 1, set.bytes.len() + HEAD);
        if is_empty {
            self.sets.remove(&wanted);
        }
        true
    }

    /// Counts sets that no longer wait, and their bytes.
    fn count_out(&mut self, sender: IpAddr, sets: usize, bytes: usize) {
        self.len -= sets;
        self.bytes -= bytes;
        if let Some(left) = self.of_senders.get_mut(&sender) {
            *left -= bytes;
            if *left == 0 {
                self.of_senders.remove(&sender);
            }
        }
    }

    /// Takes those that wait for this template, in order.
    pub(crate) fn take(&mut self, key: &SessionKey, template: u16) -> VecDeque<Waiting> {
        let Some(taken) = self.sets.remove(&(*key, template)) else { return VecDeque::new() };
        let bytes = taken.iter().map(|set| set.bytes.len() + HEAD).sum();
        self.count_out(key.sender, taken.len(), bytes);
        // Entries whose sets have gone are dropped now and then, so that they stay few.
        if self.order.len() > 2 * self.len + ORDER_SLACK {
            let sets = &self.sets;
            self.order.retain(|(number, wanted)| {
                let first = sets.get(wanted).and_then(VecDeque::front);
                first.is_some_and(|set| set.number <= *number)
            });
        }
        taken
    }

    /// How many wait.
    pub(crate) fn len(&self) -> u64 {
        self.len as u64
    }
}

/// Entries whose sets have gone that are no matter.
const ORDER_SLACK: usize = 1024;
