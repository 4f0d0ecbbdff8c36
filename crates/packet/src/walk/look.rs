//! The result of a look at the first bytes of a frame.

use crate::bits::Bits;
use crate::limits::BATCH;
use crate::{tcp, udp};

/// Bytes looked at from the start of a frame: up to the data offset of TCP over IPv6 behind the
/// longest link header. A frame closer than this to the end of its chunk is left to the slow walk.
pub(crate) const WINDOW: usize = 80;

/// The first bytes of a frame; those beyond what was captured belong to something else.
pub(super) type Window = [u8; WINDOW];

/// The result of one look at a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Look(u8);

impl Look {
    /// A frame that is not plain, or was not looked at.
    pub(crate) const NONE: Look = Look(0);
    /// Bit of a plain frame.
    pub(super) const PLAIN: u8 = 1;
    /// Bit of a plain frame that is TCP; without it is UDP.
    pub(super) const TCP: u8 = 2;

    /// The protocol of a plain frame.
    #[inline(always)]
    pub(super) fn proto(self) -> u8 {
        if self.0 & Look::TCP == 0 { udp::PROTOCOL } else { tcp::PROTOCOL }
    }

    /// The result of a look: whether the frame is plain, and whether TCP.
    #[inline(always)]
    pub(super) fn of_bits(bits: u32) -> Look {
        Look(bits as u8)
    }

    /// The rows that are plain.
    #[inline(always)]
    pub(super) fn plain(looks: &[Look; BATCH]) -> Bits {
        with_bit(looks, Look::PLAIN)
    }

    /// The rows that are TCP.
    #[inline(always)]
    pub(super) fn tcp(looks: &[Look; BATCH]) -> Bits {
        with_bit(looks, Look::TCP)
    }
}

/// The rows whose look has a bit.
#[inline]
fn with_bit(looks: &[Look; BATCH], bit: u8) -> Bits {
    // The lowest bit of each of eight bytes, gathered in the highest byte of a product.
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let byte = |eight: &[Look; 8]| {
        let eight = u64::from_le_bytes(eight.map(|look| look.0)) >> bit.trailing_zeros() & LOWEST;
        eight.wrapping_mul(GATHER) >> 56
    };
    let (words, _) = looks.as_chunks::<64>();
    let mut bits = Bits::NONE;
    for (to, looks) in bits.0.iter_mut().zip(words) {
        let (eights, _) = looks.as_chunks::<8>();
        *to = eights.iter().fold(0, |word, eight| word >> 8 | byte(eight) << 56);
    }
    bits
}
