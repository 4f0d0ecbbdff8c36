//! VLAN tags (IEEE 802.1Q, and stacked as in 802.1ad).
//!
//! ```text
//!  0     3   4             16                            31
//! +-----+---+--------------+-------------------------------+
//! | pcp |dei| identifier   |  type of what follows         |
//! +-----+---+--------------+-------------------------------+
//! ```
//!
//! The type before a tag is one of [`is_tag`]; the tag brings the type of what comes after it,
//! which may be another tag.

use crate::walk::Reason;

/// Offset of the tag control information: priority, drop eligibility, identifier.
pub const CONTROL: usize = 0;
/// Offset of the EtherType of what follows the tag.
pub const TYPE: usize = 2;
/// Bytes of a tag.
pub const TAG_LEN: usize = 4;

/// EtherType of a customer tag (802.1Q).
pub const CUSTOMER: u16 = 0x8100;
/// EtherType of a service tag (802.1ad, QinQ).
pub const SERVICE: u16 = 0x88a8;
/// EtherType of a service tag in equipment older than 802.1ad.
pub const SERVICE_OLD: u16 = 0x9100;

/// Whether a tag follows this EtherType.
#[inline(always)]
pub fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, CUSTOMER | SERVICE | SERVICE_OLD)
}

/// A VLAN tag and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Vlan<'a> {
    tag: &'a [u8; TAG_LEN],
    rest: &'a [u8],
}

impl<'a> Vlan<'a> {
    /// A view of `bytes`, which start after the tag's own EtherType and end where the captured
    /// frame does.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 4 bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Vlan<'a>, Reason> {
        let (tag, rest) = bytes.split_first_chunk().ok_or(Reason::ShortHeader)?;
        Ok(Vlan { tag, rest })
    }

    /// VLAN identifier, 12 bits; 0 where the tag only carries a priority.
    pub fn id(&self) -> u16 {
        self.control() & 0xfff
    }

    /// Priority code point, 0 to 7.
    pub fn priority(&self) -> u8 {
        (self.control() >> 13) as u8
    }

    /// Drop eligible indicator.
    pub fn drop_eligible(&self) -> bool {
        self.control() & 0x1000 != 0
    }

    /// EtherType of what follows.
    pub fn ethertype(&self) -> u16 {
        u16::from_be_bytes([self.tag[TYPE], self.tag[TYPE + 1]])
    }

    /// The captured bytes after the tag.
    pub fn payload(&self) -> &'a [u8] {
        self.rest
    }

    fn control(&self) -> u16 {
        u16::from_be_bytes([self.tag[CONTROL], self.tag[CONTROL + 1]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_tag() {
        let bytes = [0xb0, 0x64, 0x86, 0xdd, 0x60];
        let vlan = Vlan::new(&bytes).unwrap();
        assert_eq!((vlan.id(), vlan.priority(), vlan.drop_eligible()), (100, 5, true));
        assert_eq!((vlan.ethertype(), vlan.payload()), (0x86dd, &[0x60][..]));
        assert_eq!(Vlan::new(&bytes[..3]).unwrap_err(), Reason::ShortHeader);
    }

    #[test]
    fn three_types_announce_tags() {
        assert!([CUSTOMER, SERVICE, SERVICE_OLD].into_iter().all(is_tag));
        assert!(!is_tag(0x0800));
    }
}
