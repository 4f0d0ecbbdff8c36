//! GRE headers (RFC 2784, RFC 2890), the enhanced ones of PPTP (RFC 2637), and ERSPAN behind them.
//!
//! ```text
//!  0 1 2 3 4               13    16                            31
//! +-+-+-+-+-----------------+-----+-------------------------------+
//! |C| |K|S|                 | ver |  EtherType                    |
//! +-+-+-+-+-----------------+-----+-------------------------------+
//! |  checksum (4), if C    |  key (4), if K    |  sequence (4), if S
//! +---------------------------------------------------------------+
//! ```

/// The protocol number of GRE in an IP header.
pub const PROTOCOL: u8 = 47;

/// EtherType of PPP: in enhanced headers, and in those of version 0 (RFC 1701).
pub const PPP: u16 = 0x880b;
/// EtherType of ERSPAN types I and II: a mirrored Ethernet frame.
pub const ERSPAN: u16 = 0x88be;
/// EtherType of ERSPAN type III.
pub const ERSPAN_III: u16 = 0x22eb;
/// EtherType that Aruba's access points give to 802.11 frames.
pub const ARUBA: u16 = 0x8200;

/// Flag: there is a checksum.
pub(crate) const CHECKSUM: u8 = 0x80;
const ROUTING: u8 = 0x40;
const KEY: u8 = 0x20;
const SEQUENCE: u8 = 0x10;
const ACKNOWLEDGED: u8 = 0x80;

/// A GRE header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gre {
    /// Bytes of the header.
    pub header_len: usize,
    /// The protocol that follows it: an EtherType.
    pub ethertype: u16,
    /// Whether there is a sequence number.
    pub sequenced: bool,
    /// Where the key is, if there is one.
    pub key_at: Option<usize>,
    /// Whether a payload follows: an enhanced header without a sequence number only acknowledges
    /// (RFC 2637, section 4.1).
    pub carries: bool,
}

impl Gre {
    /// Reads the header that begins with these four bytes. `None` for versions that are not 0 or 1,
    /// and for source routes, which nobody sends any more.
    pub fn new([flags, version, high, low]: [u8; 4]) -> Option<Gre> {
        let ethertype = u16::from_be_bytes([high, low]);
        let words = |bits: u8| (flags & bits).count_ones() as usize;
        let sequenced = flags & SEQUENCE != 0;
        let more = match version & 7 {
            0 if flags & ROUTING == 0 => words(CHECKSUM | KEY | SEQUENCE),
            1 if ethertype == PPP => {
                words(KEY | SEQUENCE) + usize::from(version & ACKNOWLEDGED != 0)
            }
            _ => return None,
        };
        let carries = version & 7 == 0 || sequenced;
        let key_at = (flags & KEY != 0).then_some(4 + 4 * words(CHECKSUM));
        Some(Gre { header_len: 4 + 4 * more, ethertype, sequenced, key_at, carries })
    }
}

/// Bytes of the ERSPAN header before the mirrored frame: none in type I, which has no sequence
/// number in GRE. `start` are the first bytes behind the GRE header. `None` if they are not ERSPAN.
pub fn erspan_len(gre: &Gre, start: &[u8]) -> Option<usize> {
    let version = || start.first().map(|b| b >> 4);
    match gre.ethertype {
        ERSPAN if !gre.sequenced => Some(0),
        ERSPAN => (version()? == 1).then_some(8),
        ERSPAN_III if version()? == 2 => {
            let more = start.get(11)? & 1 == 1;
            Some(if more { 20 } else { 12 })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_how_long_it_is() {
        let read = |bytes| Gre::new(bytes).map(|g| (g.header_len, g.ethertype));
        assert_eq!(read([0, 0, 8, 0]), Some((4, 0x0800)));
        assert_eq!(read([0xb0, 0, 0x65, 0x58]), Some((16, 0x6558)));
        assert_eq!(read([0x30, 0x81, 0x88, 0x0b]), Some((16, PPP)));
        assert_eq!(read([0x20, 1, 8, 0]), None);
        assert_eq!(read([0x40, 0, 8, 0]), None, "source routes");
        assert_eq!(read([0, 2, 8, 0]), None);
    }

    #[test]
    fn only_an_enhanced_header_without_a_number_carries_nothing() {
        let carries = |bytes| Gre::new(bytes).unwrap().carries;
        assert!(carries([0x10, 1, 0x88, 0x0b]) && carries([0x30, 0x81, 0x88, 0x0b]));
        assert!(!carries([0x20, 0x81, 0x88, 0x0b]));
        assert!(carries([0, 0, 0x88, 0x0b]) && carries([0x20, 0, 0x88, 0x0b]));
    }

    #[test]
    fn erspan_comes_in_three_types() {
        let len = |gre: [u8; 4], start: &[u8]| erspan_len(&Gre::new(gre).unwrap(), start);
        assert_eq!(len([0, 0, 0x88, 0xbe], &[]), Some(0));
        assert_eq!(len([0x10, 0, 0x88, 0xbe], &[0x10]), Some(8));
        assert_eq!(len([0x10, 0, 0x22, 0xeb], &[0x20; 12]), Some(12));
        assert_eq!(len([0x10, 0, 0x22, 0xeb], &[0x21; 12]), Some(20));
        assert_eq!(len([0x10, 0, 0x22, 0xeb], &[0x20; 11]), None);
        assert_eq!(len([0x10, 0, 0x88, 0xbe], &[0x20]), None);
    }
}
