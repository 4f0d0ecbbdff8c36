//! The hosts that send datagrams, and how much each uses of the memory that all share.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// How many sessions and templates a host has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Usage {
    pub(crate) sessions: usize,
    /// Templates of all its sessions.
    pub(crate) templates: usize,
}

/// The hosts that have a session.
#[derive(Default, Debug)]
pub(crate) struct Senders {
    all: BTreeMap<IpAddr, Usage>,
    /// Lines in the ledger that a host has, whether it still has a session or not.
    named: BTreeMap<IpAddr, usize>,
}

impl Senders {
    /// Notes a new session of a host.
    pub(crate) fn add_session(&mut self, sender: IpAddr) {
        self.all.entry(sender).or_default().sessions += 1;
    }

    /// Notes that a session of a host is gone, with so many templates.
    pub(crate) fn remove_session(&mut self, sender: IpAddr, templates: usize) {
        let Some(usage) = self.all.get_mut(&sender) else { return };
        usage.sessions -= 1;
        usage.templates -= templates;
        if usage.sessions == 0 {
            self.all.remove(&sender);
        }
    }

    /// How many sessions and templates a host has.
    pub(crate) fn usage(&self, sender: IpAddr) -> Usage {
        self.all.get(&sender).copied().unwrap_or_default()
    }

    /// The same, to be changed; `None` if it has no session.
    pub(crate) fn usage_mut(&mut self, sender: IpAddr) -> Option<&mut Usage> {
        self.all.get_mut(&sender)
    }

    /// An equal share of `of` for each host that has a session, and for this one in any case.
    pub(crate) fn share(&self, of: usize, sender: IpAddr) -> usize {
        of / (self.all.len() + usize::from(!self.all.contains_key(&sender)))
    }

    /// The host that has most, by this count.
    pub(crate) fn heaviest(&self, by: impl Fn(&Usage) -> usize) -> Option<IpAddr> {
        self.all.iter().max_by_key(|(_, usage)| by(usage)).map(|(sender, _)| *sender)
    }

    /// Counts one more line of a host, unless it has so many already; whether it may have it.
    pub(crate) fn add_name(&mut self, sender: IpAddr, max: usize) -> bool {
        let named = self.named.get(&sender).copied().unwrap_or(0);
        if named < max {
            self.named.insert(sender, named + 1);
        }
        named < max
    }

    /// The sums over all hosts.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn total(&self) -> Usage {
        self.all.values().fold(Usage::default(), |sum, usage| Usage {
            sessions: sum.sessions + usage.sessions,
            templates: sum.templates + usage.templates,
        })
    }
}
