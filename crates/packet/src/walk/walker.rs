//! The state of a walk over one frame, and how it takes bytes.
//!
//! Two limits are kept apart. Where the *captured bytes* end, a header is cut, which is normal.
//! Where the *packet* ends on the wire (the IP length says so, or the frame's), a header that
//! goes on is malformed. Padding after the packet belongs to neither.

use super::layers::{Below, Layer};
use super::ports::TunnelPorts;
use super::reason::Reason;
use super::site::{Site, Sites};

/// The results of the walk for one frame. Positions are 0 where they mean nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Found {
    pub(crate) l3: u16,
    pub(crate) l4: u16,
    pub(crate) proto: u8,
    pub(crate) proto_known: bool,
    pub(crate) vlan_depth: u8,
    pub(crate) below: Below,
    /// One bit per [`Layer`].
    pub(crate) layers: u32,
    /// The first fault.
    pub(crate) reason: Option<Reason>,
}

pub(super) struct Walk<'a, S = ()> {
    pub(super) frame: &'a [u8],
    /// Where the packet ends on the wire, counted from the start of the frame.
    pub(super) end: usize,
    /// Whether the IP header left the packet's length open.
    pub(super) open: bool,
    /// Whether the frame's own link headers are behind us: what comes is not recorded as theirs.
    pub(super) inside: bool,
    /// Whether the IP packet's payload starts with a header: not in a later fragment.
    pub(super) whole: bool,
    /// Whether the packet is in the first fragment of a tunnel's packet: it may end before its
    /// time.
    pub(super) partial: bool,
    pub(super) found: Found,
    /// Which ports mean tunnels besides their own.
    pub(super) ports: &'a TunnelPorts,
    /// The one that is told where headers start.
    pub(super) sites: &'a mut S,
}

/// Where a header can start: a position is stored in 16 bits.
pub(super) const POSITION_MAX: usize = u16::MAX as usize;

/// `None` where the walk could not go on.
pub(super) type Walked = Option<()>;

impl<'a, S: Sites> Walk<'a, S> {
    /// A walk that has not begun, over a packet that ends there on the wire.
    pub(super) fn new(
        frame: &'a [u8],
        end: usize,
        ports: &'a TunnelPorts,
        sites: &'a mut S,
    ) -> Walk<'a, S> {
        let (open, inside, whole, partial) = (false, false, true, false);
        Walk { frame, end, open, inside, whole, partial, found: Found::default(), ports, sites }
    }

    pub(super) fn add(&mut self, layer: Layer) {
        self.found.layers |= 1 << layer as usize;
    }

    /// Notes a fault. Of a packet of which only the beginning is here, one can't tell.
    pub(super) fn fault(&mut self, reason: Reason) {
        if self.partial {
            return self.add(Layer::Cut);
        }
        self.add(Layer::Malformed);
        self.found.reason.get_or_insert(reason);
    }

    /// Notes that addresses may stand from `at` on, where the walk does not read them, if anything
    /// of that was captured.
    pub(super) fn note_unread(&mut self, at: usize) {
        if !self.rest(at).is_empty() {
            self.sites.note(Site::Unread);
        }
    }

    /// The captured bytes of the packet from `at` on.
    pub(super) fn rest(&self, at: usize) -> &'a [u8] {
        self.frame.get(at..self.end.min(self.frame.len())).unwrap_or(&[])
    }

    /// The rest from `at` on if it holds `n` bytes. If not, notes whose fault it is: the snap
    /// length's, or the packet's, under the name `short`.
    pub(super) fn take(&mut self, at: usize, n: usize, short: Reason) -> Option<&'a [u8]> {
        if at + n > self.end {
            self.fault(short);
            None
        } else if at + n > POSITION_MAX {
            self.fault(Reason::LinkDepth);
            None
        } else if at + n > self.frame.len() {
            self.add(Layer::Cut);
            None
        } else {
            Some(self.rest(at))
        }
    }

    /// The result of a view of the rest from `at` on. If it lacks bytes, notes whose fault that is.
    pub(super) fn view<T>(&mut self, at: usize, view: Result<T, Reason>) -> Option<T> {
        if let Err(Reason::ShortHeader) = view {
            self.take(at, self.rest(at).len() + 1, Reason::ShortHeader)?;
        }
        self.check(view)
    }

    /// Ends the packet `n` bytes behind `at`, as a header around it says; not later than it ends
    /// by all that is known. Of a header that says 0 nothing is believed.
    pub(super) fn bound(&mut self, at: usize, n: u16) {
        if n > 0 {
            self.end = self.end.min(at + usize::from(n));
        }
    }

    /// Notes a fault that a view found in a header that is all there.
    pub(super) fn check<T>(&mut self, view: Result<T, Reason>) -> Option<T> {
        view.map_err(|reason| self.fault(reason)).ok()
    }
}
