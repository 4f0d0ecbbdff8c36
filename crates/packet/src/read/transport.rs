//! The transport of one packet: for what is put together from several.

use crate::bits::Bits;
use crate::fields::rows::Rows;
use crate::source::FrameBatch;
use crate::tcp::Tcp;
use crate::udp::Udp;
use crate::walk::{Layer, Layers};

/// A TCP segment or a UDP datagram, as much of it as was captured.
#[derive(Clone, Copy, Debug)]
pub enum Transport<'a> {
    /// With a whole header.
    Tcp(Tcp<'a>),
    /// With a whole header.
    Udp(Udp<'a>),
}

/// The transports of the packets of a batch.
pub struct Transports<'a> {
    rows: Rows<'a>,
}

impl<'a> Transports<'a> {
    /// Of a batch; `layers` are what [`crate::walk::classify`] said of `frames`.
    pub fn new(frames: &'a FrameBatch, layers: &'a Layers) -> Transports<'a> {
        Transports { rows: Rows::new(frames, layers, Bits::ALL) }
    }

    /// The transport of frame `i`, without what follows the packet; `None` where it is another, and
    /// in later fragments.
    #[inline]
    pub fn of(&self, i: usize) -> Option<Transport<'a>> {
        let (rows, layers) = (&self.rows, self.rows.layers);
        if layers.has(Layer::TcpWhole).has(i) {
            Tcp::new(rows.body(i)).ok().map(Transport::Tcp)
        } else if layers.has(Layer::Udp).has(i) {
            Udp::new(rows.body(i)).ok().map(Transport::Udp)
        } else {
            None
        }
    }
}
