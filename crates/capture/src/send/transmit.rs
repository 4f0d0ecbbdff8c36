//! Sending that this crate does not know how to do.

use std::io;

/// A device that sends Ethernet frames without the kernel, in the hands of another crate. All of it
/// is called by one thread.
pub trait Transmit {
    /// Bytes of a frame at most, its header among them, a VLAN tag besides.
    fn len_max(&self) -> usize;

    /// Sends frames, none of which is longer than that; how many of them, from the first, there was
    /// room for. They leave as soon as the device can, in their order.
    fn send(&mut self, frames: &[&[u8]]) -> usize;

    /// Whether it may send: its link is up, or does not say.
    fn is_up(&self) -> bool;

    /// How many of the frames that there was room for it has thrown away and did not report
    /// before, up to `most`; it reports the others later. Its count may be some milliseconds old,
    /// but not right after [`Transmit::drain`].
    fn thrown_away(&mut self, most: u64) -> u64;

    /// Waits a little until frames that there was room for have left: at the end, and where
    /// the caller has to know what became of them.
    fn drain(&mut self);
}

/// Opens a device by the name that stands after the prefix of an outlet.
pub type OpenTransmit = Box<dyn FnMut(&str) -> io::Result<Box<dyn Transmit>>>;
