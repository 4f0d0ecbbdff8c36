//! Interfaces by the numbers that the kernel has for them, where frames of all come together.

use std::collections::HashMap;
use weir_packet::interface::{InterfaceNames, Via};

/// What is known of them.
#[derive(Default, Debug)]
pub(super) struct Indices {
    names: InterfaceNames,
    known: HashMap<u32, Via>,
}

impl Indices {
    /// Of a table of names.
    pub(super) fn new(names: &InterfaceNames) -> Indices {
        Indices { names: names.clone(), known: HashMap::new() }
    }

    /// By which interface a frame came whose interface has this number. One that is not known is
    /// asked for, once.
    pub(super) fn via(&mut self, index: u32) -> Via {
        if let Some(via) = self.known.get(&index) {
            return *via;
        }
        self.learn(ask());
        *self.known.entry(index).or_default()
    }

    /// Takes in what interfaces there are now: some may have come, or have other names.
    pub(super) fn learn(&mut self, now: impl IntoIterator<Item = (u32, impl AsRef<str>)>) {
        for (index, name) in now {
            self.known.insert(index, Via::new(self.names.number(name.as_ref()), None));
        }
    }

    /// The names.
    pub(super) fn names(&self) -> &InterfaceNames {
        &self.names
    }
}

#[cfg(target_os = "linux")]
fn ask() -> Vec<(u32, String)> {
    let all = crate::sys::interface::list().unwrap_or_default();
    all.into_iter().map(|facts| (facts.index, facts.name)).collect()
}

#[cfg(not(target_os = "linux"))]
fn ask() -> Vec<(u32, String)> {
    Vec::new()
}
