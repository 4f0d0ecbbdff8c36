//! An interface that packet sockets are bound to, and how many frames it dropped.

use super::count::WrappingCount;
use super::options::KernelPart;
use crate::xdp::link::LinkInfo;
use weir_packet::source::LinkType;

/// An interface that packet sockets are bound to.
pub(super) struct BoundInterface {
    /// The kernel's number of it; 0 for all interfaces.
    pub(super) index: u32,
    pub(super) link: LinkType,
    /// The part of the query that the kernel runs, for all of its rings.
    pub(super) part: Option<KernelPart>,
    /// Frames that it dropped, by the kernel.
    dropped: WrappingCount,
}

impl BoundInterface {
    /// An interface whose count of dropped frames is now `dropped`.
    pub(super) fn new(
        index: u32,
        link: LinkType,
        dropped: u32,
        part: Option<KernelPart>,
    ) -> BoundInterface {
        BoundInterface { index, link, part, dropped: WrappingCount::new(dropped) }
    }

    /// Frames that it dropped since the capture began, when last counted.
    pub(super) fn drops(&self) -> u64 {
        self.dropped.grown()
    }

    /// Counts the frames that it dropped, by what the kernel says of all interfaces.
    pub(super) fn count_drops(&self, known: &[LinkInfo]) {
        if let Some(now) = known.iter().find(|now| now.index == self.index) {
            self.dropped.update(now.missed as u32);
        }
    }

    /// Whether it is switched on, by what the kernel says of all interfaces.
    pub(super) fn is_up(&self, known: &[LinkInfo]) -> bool {
        known.iter().any(|now| now.index == self.index && now.up)
    }
}
