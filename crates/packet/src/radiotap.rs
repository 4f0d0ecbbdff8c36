//! Radiotap headers: what a wireless card says of a frame it heard (radiotap.org).
//!
//! ```text
//! +-------------+----------+--------------------------+------------------------+
//! | version 0   | 0 (1)    | length, little-endian (2)| which fields, LE (4 …) | fields …
//! +-------------+----------+--------------------------+------------------------+
//! ```
//!
//! Each bit of the first word stands for a field; bit 31 for another word. Fields stand in the
//! order of their bits, each aligned to its size. Only the first six are read, of the first radio.

use crate::walk::Reason;

/// Bytes of the shortest header.
pub const HEADER_LEN: usize = 8;

/// Where the fields are that a header has, counted from its start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Fields {
    /// Properties of the frame, 1 byte: see [`FLAG_FCS`] and [`FLAG_PADDED`].
    pub flags: Option<usize>,
    /// Rate in units of 500 kbit/s, 1 byte.
    pub rate: Option<usize>,
    /// Centre of the channel in MHz, 2 bytes, little-endian.
    pub frequency: Option<usize>,
    /// Signal at the antenna in dBm, 1 byte, signed.
    pub signal: Option<usize>,
}

/// Flag: the frame ends in its checksum.
pub const FLAG_FCS: u8 = 0x10;
/// Flag: the 802.11 header is padded to a multiple of four bytes.
pub const FLAG_PADDED: u8 = 0x20;

/// A radiotap header.
#[derive(Clone, Copy, Debug)]
pub struct Radiotap<'a> {
    bytes: &'a [u8],
    header_len: usize,
}

impl<'a> Radiotap<'a> {
    /// A view of `bytes`, which start at the header. Not all of it need be there.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 8 bytes, and [`Reason::Radiotap`] if the
    /// version is not 0 or the length is under 8.
    pub fn new(bytes: &'a [u8]) -> Result<Radiotap<'a>, Reason> {
        let start: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(Reason::ShortHeader)?;
        let header_len = usize::from(u16::from_le_bytes([start[2], start[3]]));
        if start[0] != 0 || header_len < HEADER_LEN {
            return Err(Reason::Radiotap);
        }
        Ok(Radiotap { bytes: &bytes[..header_len.min(bytes.len())], header_len })
    }

    /// Bytes of the header with its fields.
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// Properties of the frame; 0 if it does not say.
    pub fn flags(&self) -> u8 {
        self.fields().flags.map_or(0, |at| self.bytes[at])
    }

    /// Rate in kbit/s; only older rates have such a field.
    pub fn rate(&self) -> Option<u32> {
        self.fields().rate.map(|at| u32::from(self.bytes[at]) * 500)
    }

    /// Centre of the channel in MHz.
    pub fn frequency(&self) -> Option<u16> {
        self.fields().frequency.map(|at| u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    /// Signal at the antenna in dBm.
    pub fn signal(&self) -> Option<i8> {
        self.fields().signal.map(|at| self.bytes[at] as i8)
    }

    /// Where the fields are, of which all bytes are there.
    pub fn fields(&self) -> Fields {
        let word = |at: usize| {
            self.bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |w| u32::from_le_bytes(*w))
        };
        let present = word(4);
        let mut at = HEADER_LEN;
        // Further words say what further radios have.
        let mut more = present;
        while more & 1 << 31 != 0 && at < self.bytes.len() {
            more = word(at);
            at += 4;
        }
        let mut found = Fields::default();
        // Size of each field up to the signal, in the order of their bits, and its alignment.
        let sizes = [(8, 8), (1, 1), (1, 1), (4, 2), (2, 2), (1, 1)];
        for (bit, (size, align)) in sizes.into_iter().enumerate() {
            if present & 1 << bit == 0 {
                continue;
            }
            let start = at.next_multiple_of(align);
            at = start + size;
            if at > self.bytes.len() {
                break;
            }
            match bit {
                1 => found.flags = Some(start),
                2 => found.rate = Some(start),
                3 => found.frequency = Some(start),
                5 => found.signal = Some(start),
                _ => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_where_they_are_aligned() {
        // Time, flags, rate, channel, signal; a second word without fields.
        let mut bytes = vec![0, 0, 31, 0, 0x2f, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([9; 8]);
        bytes.extend([0x10, 12, 0x6c, 0x09, 0xa0, 0, 0xc4]);
        let radio = Radiotap::new(&bytes).unwrap();
        assert_eq!((radio.header_len(), radio.flags()), (31, FLAG_FCS));
        assert_eq!((radio.rate(), radio.frequency()), (Some(6_000), Some(2_412)));
        assert_eq!(radio.signal(), Some(-60));
        assert_eq!(Radiotap::new(&bytes[..30]).unwrap().signal(), None);
    }

    #[test]
    fn a_header_without_fields_has_none() {
        let radio = Radiotap::new(&[0, 0, 8, 0, 0, 0, 0, 0, 0xff]).unwrap();
        assert_eq!((radio.fields(), radio.flags()), (Fields::default(), 0));
        assert_eq!(Radiotap::new(&[0; 7]).unwrap_err(), Reason::ShortHeader);
        assert_eq!(Radiotap::new(&[0; 8]).unwrap_err(), Reason::Radiotap);
        assert_eq!(Radiotap::new(&[1, 0, 8, 0, 0, 0, 0, 0]).unwrap_err(), Reason::Radiotap);
    }
}
