//! MPLS label stack entries (RFC 3032), and what may follow the last one.
//!
//! ```text
//!  0                                 20    23 24            31
//! +-----------------------------------+-----+-+---------------+
//! |  label                            | tc  |S|  time to live |
//! +-----------------------------------+-----+-+---------------+
//! ```
//!
//! Nothing says what follows the entry whose bottom-of-stack bit S is set. As routers do when they
//! spread load, the first four bits are asked (RFC 4928): 4 and 6 are IP. [`pseudowire`] says
//! where an Ethernet frame starts, of which that can be told with some certainty.

use crate::ethernet::{self, Ethernet};
use crate::walk::Reason;
use crate::{pppoe, vlan};

/// EtherType of MPLS, unicast.
pub const UNICAST: u16 = 0x8847;
/// EtherType of MPLS with labels assigned upstream, once multicast.
pub const MULTICAST: u16 = 0x8848;

/// Bytes of an entry.
pub const ENTRY_LEN: usize = 4;
/// Bytes of the control word before the frame of a pseudowire (RFC 4385).
pub const CONTROL_WORD_LEN: usize = 4;

/// An entry of the label stack and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Label<'a> {
    entry: &'a [u8; ENTRY_LEN],
    rest: &'a [u8],
}

impl<'a> Label<'a> {
    /// A view of `bytes`, which start at the entry.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 4 bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Label<'a>, Reason> {
        let (entry, rest) = bytes.split_first_chunk().ok_or(Reason::ShortHeader)?;
        Ok(Label { entry, rest })
    }

    /// The label, 20 bits; 0 to 15 have meanings of their own.
    pub fn label(&self) -> u32 {
        u32::from_be_bytes(*self.entry) >> 12
    }

    /// Traffic class, 0 to 7; once the experimental bits.
    pub fn traffic_class(&self) -> u8 {
        self.entry[2] >> 1 & 7
    }

    /// Whether this is the last entry.
    pub fn is_bottom(&self) -> bool {
        self.entry[2] & 1 == 1
    }

    /// Time to live.
    pub fn ttl(&self) -> u8 {
        self.entry[3]
    }

    /// The captured bytes after the entry.
    pub fn payload(&self) -> &'a [u8] {
        self.rest
    }
}

/// Where in `bytes`, which follow the bottom of the stack, an Ethernet frame starts: behind a
/// control word or at once. `None` unless its EtherType is one that is decoded, and where that is
/// IP, the version is right: a chance of one in a thousand million for other bytes.
pub fn pseudowire(bytes: &[u8]) -> Option<usize> {
    let is_ethernet = |at: usize| {
        let frame = Ethernet::new(bytes.get(at..)?).ok()?;
        let first = frame.payload().first().copied();
        let plausible = match frame.ethertype() {
            ethernet::IPV4 => first.is_none_or(|b| b >> 4 == 4),
            ethernet::IPV6 => first.is_none_or(|b| b >> 4 == 6),
            ethernet::ARP => first.is_none_or(|b| b == 0),
            UNICAST | pppoe::SESSION => true,
            ethertype => vlan::is_tag(ethertype),
        };
        plausible.then_some(at)
    };
    let controlled = *bytes.first()? >> 4 == 0;
    controlled.then(|| is_ethernet(CONTROL_WORD_LEN)).flatten().or_else(|| is_ethernet(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_an_entry() {
        let bytes = [0x00, 0x01, 0xdb, 0x40, 0x45];
        let label = Label::new(&bytes).unwrap();
        assert_eq!((label.label(), label.traffic_class()), (29, 5));
        assert_eq!((label.is_bottom(), label.ttl(), label.payload()), (true, 64, &[0x45][..]));
        assert_eq!(Label::new(&bytes[..3]).unwrap_err(), Reason::ShortHeader);
    }

    #[test]
    fn a_pseudowire_is_found_with_and_without_a_control_word() {
        let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45][..], &[0; 20]].concat();
        assert_eq!(pseudowire(&frame), Some(0));
        assert_eq!(pseudowire(&[&[0; 4], &frame[..]].concat()), Some(4));
        assert_eq!(pseudowire(&[0; 40]), None);
        assert_eq!(pseudowire(&[]), None);
    }
}
