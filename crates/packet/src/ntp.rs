//! NTP headers (RFC 5905, section 7.3; control messages, RFC 9327).
//!
//! ```text
//!  0               8               16              24            31
//! +---+-----+-----+---------------+---------------+---------------+
//! |LI | ver | mode|    stratum    |      poll     |   precision   |
//! +---+-----+-----+---------------+---------------+---------------+
//! | root delay, root dispersion: 4 bytes each                     |
//! |                         reference id                          |
//! | timestamps of 8 bytes: reference, origin, receive, transmit   |
//! ```
//!
//! Control (mode 6) and private messages (mode 7) share the first byte only.

/// The port.
pub const PORT: u16 = 123;

/// Offset of the stratum.
pub const STRATUM: usize = 1;
/// Offset of the reference identifier.
pub const REFERENCE_ID: usize = 12;
/// Offset of the transmit timestamp.
pub const TRANSMIT: usize = 40;
/// Bytes of the header, and the least of control and private messages.
pub const HEADER_LEN: usize = 48;
/// Bytes of the header of private messages, the shortest.
const SHORT_LEN: usize = 8;

/// The modes of control and of private messages.
const OTHER_MODES: std::ops::RangeInclusive<u8> = 6..=7;
/// The versions there have been.
const VERSIONS: std::ops::RangeInclusive<u8> = 1..=4;

/// From 1900, where NTP counts from, to 1970, in seconds.
const EPOCH_S: i64 = 2_208_988_800;
/// Timestamps below this are of the era that begins in 2036 (RFC 4330, section 3).
const ERA_BIT: u64 = 1 << 63;

/// An NTP message.
#[derive(Clone, Copy, Debug)]
pub struct Ntp<'a> {
    first: u8,
    header: Option<&'a [u8; HEADER_LEN]>,
}

impl<'a> Ntp<'a> {
    /// A view of a datagram's payload; `None` if its version is none, or if it is too short for its
    /// mode.
    pub fn new(payload: &'a [u8]) -> Option<Ntp<'a>> {
        let &first = payload.first()?;
        let ntp = Ntp { first, header: payload.first_chunk() };
        let header = match OTHER_MODES.contains(&ntp.mode()) {
            true => None,
            false => Some(payload.first_chunk()?),
        };
        (VERSIONS.contains(&ntp.version()) && payload.len() >= SHORT_LEN)
            .then_some(Ntp { header, ..ntp })
    }

    /// Version, 1 to 4.
    pub fn version(&self) -> u8 {
        self.first >> 3 & 7
    }

    /// Mode: 1 and 2 peers, 3 client, 4 server, 5 broadcast, 6 control, 7 private.
    pub fn mode(&self) -> u8 {
        self.first & 7
    }

    /// Warning of a leap second: 3 is a clock that is not synchronized. Not in modes 6 and 7.
    pub fn leap(&self) -> Option<u8> {
        self.header.map(|_| self.first >> 6)
    }

    /// Distance from the reference clock: 1 is such a clock's own server, 0 a refusal, 16 not
    /// synchronized. Not in modes 6 and 7.
    pub fn stratum(&self) -> Option<u8> {
        self.header.map(|h| h[STRATUM])
    }

    /// Where the time comes from: four letters at strata 0 and 1, else the address of a server or
    /// a digest of it. Not in modes 6 and 7.
    pub fn reference_id(&self) -> Option<u32> {
        self.header.map(|h| u32::from_be_bytes([h[12], h[13], h[14], h[15]]))
    }

    /// When the message left by the sender's clock, in nanoseconds since 1970; `None` where it does
    /// not say.
    pub fn transmit_ns(&self) -> Option<i64> {
        let stamp = u64::from_be_bytes(*self.header?.last_chunk()?);
        let era = if stamp & ERA_BIT == 0 { 1 << 32 } else { 0 };
        let seconds = (stamp >> 32) as i64 + era - EPOCH_S;
        let nanos = ((stamp & 0xffff_ffff) * 1_000_000_000) >> 32;
        (stamp != 0).then_some(seconds * 1_000_000_000 + nanos as i64)
    }
}

/// Any bytes as a message: no call panics, and what modes lack is not there. Panics where that is
/// not so.
#[cfg(any(test, fuzzing))]
pub fn fuzz_ntp(bytes: &[u8]) {
    let Some(ntp) = Ntp::new(bytes) else { return };
    let whole = !OTHER_MODES.contains(&ntp.mode());
    assert_eq!((ntp.leap().is_some(), ntp.stratum().is_some()), (whole, whole));
    assert_eq!(ntp.reference_id().is_some(), whole);
    assert!(ntp.transmit_ns().is_none_or(|_| whole && bytes.len() >= HEADER_LEN));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::rfc3339;
    use proptest::prelude::*;

    fn message(first: u8, transmit: u64) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LEN];
        (bytes[0], bytes[STRATUM]) = (first, 2);
        bytes[REFERENCE_ID..REFERENCE_ID + 4].copy_from_slice(&[192, 0, 2, 1]);
        bytes[TRANSMIT..].copy_from_slice(&transmit.to_be_bytes());
        bytes
    }

    #[test]
    fn reads_a_server_message() {
        let bytes = message(0xe4, 0xe8d7_1a80_8000_0000);
        let ntp = Ntp::new(&bytes).unwrap();
        assert_eq!((ntp.leap(), ntp.version(), ntp.mode()), (Some(3), 4, 4));
        assert_eq!((ntp.stratum(), ntp.reference_id()), (Some(2), Some(0xc000_0201)));
        assert_eq!(rfc3339(ntp.transmit_ns().unwrap()), "2023-10-16T02:12:16.500Z");
        assert!(Ntp::new(&bytes[..47]).is_none());
    }

    #[test]
    fn the_next_era_follows_this_one() {
        let ns = |stamp: u64| Ntp::new(&message(0x23, stamp)).unwrap().transmit_ns();
        assert_eq!(ns(0), None);
        assert_eq!(rfc3339(ns(u64::MAX).unwrap()), "2036-02-07T06:28:15.999999999Z");
        assert_eq!(rfc3339(ns(1 << 32).unwrap()), "2036-02-07T06:28:17Z");
    }

    #[test]
    fn private_messages_are_short() {
        let ntp = Ntp::new(&[0x17, 0, 3, 0x2a, 0, 0, 0, 0]).unwrap();
        assert_eq!((ntp.version(), ntp.mode(), ntp.stratum()), (2, 7, None));
        assert!(Ntp::new(&[0x17, 0, 3, 0x2a]).is_none());
        assert!(Ntp::new(&message(0x03, 0)).is_none(), "version 0");
    }

    proptest! {
        #[test]
        fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            fuzz_ntp(&bytes);
        }
    }
}
