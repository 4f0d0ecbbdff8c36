//! Interfaces by the numbers that the kernel has for them, where frames of all come together.

use super::clock::Stopwatch;
use crate::limits::{INDICES_ASK_MS, INDICES_MAX, INDICES_OLD_MS};
use std::collections::HashMap;
use weir_packet::interface::{CapturePoint, InterfaceNames};

/// The known interfaces, by number.
#[derive(Debug)]
pub(super) struct Indices {
    names: InterfaceNames,
    known: HashMap<u32, (String, Option<CapturePoint>)>,
    /// That of the frame before, which is mostly that of the next.
    last: (u32, CapturePoint),
    /// When the kernel was last asked what interfaces there are, where it is.
    asked: Option<Stopwatch>,
    /// The sockets that ask it, opened once: a run makes none later.
    kernel: Option<Kernel>,
}

#[cfg(target_os = "linux")]
type Kernel = crate::xdp::link::Interfaces;
#[cfg(not(target_os = "linux"))]
type Kernel = std::convert::Infallible;

impl Indices {
    /// Of a table of names; of all interfaces, those to come included.
    pub(super) fn of_all(names: &InterfaceNames) -> Indices {
        let mut indices = Indices { kernel: kernel(), ..Indices::of(names, []) };
        indices.ask();
        indices
    }

    /// Of these interfaces.
    pub(super) fn of(
        names: &InterfaceNames,
        those: impl IntoIterator<Item = (u32, String)>,
    ) -> Indices {
        let known = those.into_iter().map(|(index, name)| (index, (name, None))).collect();
        let last = (0, CapturePoint::UNKNOWN);
        Indices { names: names.clone(), known, last, asked: None, kernel: None }
    }

    /// By which interface a frame came whose interface has this number. Only those that frames come
    /// by get numbers among the names. One that is not known is asked for, unless that was done
    /// just now.
    #[inline(always)]
    pub(super) fn point(&mut self, index: u32) -> CapturePoint {
        if self.last.0 != index || self.last.1 == CapturePoint::UNKNOWN {
            self.last = (index, self.look_up(index));
        }
        self.last.1
    }

    #[inline(never)]
    fn look_up(&mut self, index: u32) -> CapturePoint {
        let recently = |asked: &Stopwatch| asked.elapsed_ms() < INDICES_ASK_MS;
        if !self.known.contains_key(&index) && self.asked.is_some_and(|asked| !recently(&asked)) {
            self.ask();
        }
        let Some((name, point)) = self.known.get_mut(&index) else { return CapturePoint::UNKNOWN };
        *point.get_or_insert_with(|| CapturePoint::new(self.names.number(&name[..]), None))
    }

    /// Asks again what interfaces there are, if it is long ago: some may have other names now.
    pub(super) fn refresh(&mut self) {
        if self.asked.is_some_and(|asked| asked.elapsed_ms() >= INDICES_OLD_MS) {
            self.ask();
        }
    }

    /// Takes in what interfaces there are. Frames may still come of some that are there no more.
    fn ask(&mut self) {
        self.asked = Some(Stopwatch::start());
        self.last = (0, CapturePoint::UNKNOWN);
        let now = self.kernel.as_ref().map(all).unwrap_or_default();
        if self.known.len() + now.len() > INDICES_MAX {
            self.known.clear();
        }
        for (index, name) in now {
            let known = self.known.entry(index).or_default();
            if known.0 != name {
                *known = (name, None);
            }
        }
    }

    /// The names.
    pub(super) fn names(&self) -> &InterfaceNames {
        &self.names
    }
}

/// The source of the list of interfaces, if there is one.
#[cfg(target_os = "linux")]
fn kernel() -> Option<Kernel> {
    Kernel::open().ok()
}

#[cfg(not(target_os = "linux"))]
fn kernel() -> Option<Kernel> {
    None
}

/// The interfaces that there are.
#[cfg(target_os = "linux")]
fn all(kernel: &Kernel) -> Vec<(u32, String)> {
    let all = kernel.all().unwrap_or_default();
    all.into_iter().map(|interface| (interface.index, interface.name)).collect()
}

#[cfg(not(target_os = "linux"))]
fn all(kernel: &Kernel) -> Vec<(u32, String)> {
    match *kernel {}
}
