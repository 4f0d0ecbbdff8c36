//! Per-packet information (LINKTYPE_PPI): a header with fields about the capture, then a frame of
//! another link type.
//!
//! ```text
//! +-------------+-----------+--------------------------+---------------------+
//! | version 0   | flags (1) | length, little-endian (2)| link type, LE (4)   | fields …, frame …
//! +-------------+-----------+--------------------------+---------------------+
//! ```

use crate::source::LinkType;
use crate::walk::Reason;

/// Bytes of the header without fields.
pub const HEADER_LEN: usize = 8;

/// The header of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Ppi<'a>(&'a [u8; HEADER_LEN]);

impl<'a> Ppi<'a> {
    /// A view of `bytes`, which start at the header. The fields need not be there.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 8 bytes, and [`Reason::Ppi`] if the version
    /// is not 0 or the length is under 8.
    pub fn new(bytes: &'a [u8]) -> Result<Ppi<'a>, Reason> {
        let ppi = Ppi(bytes.first_chunk().ok_or(Reason::ShortHeader)?);
        let sound = ppi.0[0] == 0 && ppi.header_len() >= HEADER_LEN;
        if sound { Ok(ppi) } else { Err(Reason::Ppi) }
    }

    /// Bytes of the header with its fields.
    pub fn header_len(&self) -> usize {
        u16::from_le_bytes([self.0[2], self.0[3]]).into()
    }

    /// Link type of the frame.
    pub fn link(&self) -> Option<LinkType> {
        let [.., a, b, c, d] = *self.0;
        u16::try_from(u32::from_le_bytes([a, b, c, d])).ok().map(LinkType)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_header() {
        let ppi = Ppi::new(&[0, 0, 12, 0, 105, 0, 0, 0, 1, 2, 3, 4]).unwrap();
        assert_eq!((ppi.header_len(), ppi.link()), (12, Some(LinkType::IEEE802_11)));
        assert_eq!(Ppi::new(&[0; 7]).unwrap_err(), Reason::ShortHeader);
        assert_eq!(Ppi::new(&[0; 8]).unwrap_err(), Reason::Ppi);
        assert_eq!(Ppi::new(&[0, 0, 8, 0, 0, 0, 1, 0]).unwrap().link(), None);
    }
}
