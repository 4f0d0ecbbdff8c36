//! An interface that packet sockets are bound to, and how many frames it dropped.

use crate::sys::interface::Facts;
use std::cell::Cell;
use weir_packet::source::LinkType;

/// An interface that packet sockets are bound to.
pub(super) struct BoundInterface {
    /// The kernel's number of it; 0 for all interfaces.
    pub(super) index: u32,
    pub(super) link: LinkType,
    dropped: Cell<Dropped>,
}

/// The kernel's count of frames that an interface dropped.
#[derive(Clone, Copy)]
struct Dropped {
    /// The count when it was last read, of 32 bits, which goes over its end.
    count: u32,
    /// How much it has grown since the capture began.
    since_start: u64,
}

impl BoundInterface {
    /// An interface whose count of dropped frames is now `dropped`.
    pub(super) fn new(index: u32, link: LinkType, dropped: u32) -> BoundInterface {
        let dropped = Dropped { count: dropped, since_start: 0 };
        BoundInterface { index, link, dropped: Cell::new(dropped) }
    }

    /// Frames that it dropped since the capture began, when last counted.
    pub(super) fn drops(&self) -> u64 {
        self.dropped.get().since_start
    }

    /// Counts the frames that it dropped, by what the kernel says of all interfaces.
    pub(super) fn count_drops(&self, known: &[Facts]) {
        if let Some(facts) = known.iter().find(|facts| facts.index == self.index) {
            let Dropped { count, since_start } = self.dropped.get();
            let more = u64::from(facts.dropped.wrapping_sub(count));
            let since_start = since_start + more;
            self.dropped.set(Dropped { count: facts.dropped, since_start });
        }
    }

    /// Whether it is switched on, by what the kernel says of all interfaces.
    pub(super) fn is_up(&self, known: &[Facts]) -> bool {
        let is_up = |f: &Facts| f.flags & libc::IFF_UP as u32 != 0;
        known.iter().any(|facts| facts.index == self.index && is_up(facts))
    }
}
