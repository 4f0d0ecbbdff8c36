//! IPsec headers: AH (RFC 4302) and ESP (RFC 4303).
//!
//! Both have a security parameters index and a sequence number; an AH, which other headers follow,
//! has them four bytes later.

/// The protocol number of ESP in an IP header.
pub const ESP: u8 = 50;

/// Offset of the index and the sequence number in AH.
pub const AH_SPI: usize = 4;
/// The same in ESP.
pub const ESP_SPI: usize = 0;

/// The security parameters index and the sequence number of a header, from where the index stands.
#[derive(Clone, Copy, Debug)]
pub struct Ipsec<'a> {
    bytes: &'a [u8],
}

impl<'a> Ipsec<'a> {
    /// A view of bytes that start at the header, which has the index at `at`: [`AH_SPI`] or
    /// [`ESP_SPI`]. Each field is there if its bytes are.
    pub fn new(bytes: &'a [u8], at: usize) -> Ipsec<'a> {
        Ipsec { bytes: bytes.get(at..).unwrap_or(&[]) }
    }

    /// Security parameters index: with the destination address, which keys are used.
    pub fn spi(&self) -> Option<u32> {
        self.bytes.first_chunk().map(|&bytes| u32::from_be_bytes(bytes))
    }

    /// Sequence number, of which extended ones are the lower half.
    pub fn seq(&self) -> Option<u32> {
        self.bytes.get(4..)?.first_chunk().map(|&bytes| u32::from_be_bytes(bytes))
    }
}

/// Any bytes as a header: no call panics, and fields are there with their bytes. Panics where that
/// is not so.
#[cfg(any(test, fuzzing))]
pub fn fuzz_ipsec(bytes: &[u8]) {
    for at in [AH_SPI, ESP_SPI] {
        let header = Ipsec::new(bytes, at);
        assert_eq!(header.spi().is_some(), bytes.len() >= at + 4);
        assert_eq!(header.seq().is_some(), bytes.len() >= at + 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
            fuzz_ipsec(&bytes);
        }
    }

    #[test]
    fn reads_as_much_as_there_is() {
        let bytes = [0, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0, 7];
        (0..=bytes.len()).for_each(|n| fuzz_ipsec(&bytes[..n]));
        let (esp, ah) = (Ipsec::new(&bytes, ESP_SPI), Ipsec::new(&bytes, AH_SPI));
        assert_eq!((esp.spi(), esp.seq()), (Some(9), Some(8)));
        assert_eq!((ah.spi(), ah.seq()), (Some(8), Some(7)));
    }
}
