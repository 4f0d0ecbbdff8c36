//! IGMP messages (RFC 2236, version 2; RFC 9776, version 3).
//!
//! ```text
//!  0               8               16              24            31
//! +---------------+---------------+-------------------------------+
//! |      type     | response time |           checksum            |
//! +---------------+---------------+-------------------------------+
//! | group, in all but reports of version 3                        |
//! +-------------------------------+-------------------------------+
//! | reports of version 3 instead: reserved, number of records; then records with the group at 4
//! ```

/// The protocol number of IGMP in an IP header.
pub const PROTOCOL: u8 = 2;

/// Offset of the group.
pub const GROUP: usize = 4;
/// The type of reports of version 3.
pub const REPORT_V3: u8 = 0x22;
/// Offset of the number of records in these.
const RECORDS: usize = 6;
/// Offset of the group of the first record.
const FIRST_GROUP: usize = 12;

/// An IGMP message, as much of it as was captured.
#[derive(Clone, Copy, Debug)]
pub struct Igmp<'a> {
    bytes: &'a [u8],
}

impl<'a> Igmp<'a> {
    /// A view of bytes that start at the type; each field is there if its bytes are.
    pub fn new(bytes: &'a [u8]) -> Igmp<'a> {
        Igmp { bytes }
    }

    /// Type: 0x11 query, 0x12, 0x16 and 0x22 reports of versions 1, 2 and 3, 0x17 leave.
    pub fn kind(&self) -> Option<u8> {
        self.bytes.first().copied()
    }

    /// The group that is meant, 0.0.0.0 if all are; in a report of version 3 that of the first
    /// record.
    pub fn group(&self) -> Option<u32> {
        let at = match self.kind()? {
            REPORT_V3 if *self.bytes.get(RECORDS..)?.first_chunk()? == [0; 2] => return None,
            REPORT_V3 => FIRST_GROUP,
            _ => GROUP,
        };
        self.bytes.get(at..)?.first_chunk().map(|&bytes| u32::from_be_bytes(bytes))
    }
}

/// Any bytes as a message: no call panics, and a group has its bytes. Panics where that is not so.
#[cfg(any(test, fuzzing))]
pub fn fuzz_igmp(bytes: &[u8]) {
    let igmp = Igmp::new(bytes);
    assert_eq!(igmp.kind().is_some(), !bytes.is_empty());
    assert!(igmp.group().is_none_or(|_| bytes.len() >= GROUP + 4));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_groups() {
        let leave = [0x17, 0, 0, 0, 224, 0, 0, 251];
        let igmp = Igmp::new(&leave);
        assert_eq!((igmp.kind(), igmp.group()), (Some(0x17), Some(0xe000_00fb)));
        assert_eq!(Igmp::new(&leave[..7]).group(), None);
        let mut report = [0; 16];
        (report[0], report[7]) = (REPORT_V3, 1);
        report[12..].copy_from_slice(&[239, 1, 2, 3]);
        assert_eq!(Igmp::new(&report).group(), Some(0xef01_0203));
        report[7] = 0;
        assert_eq!(Igmp::new(&report).group(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
            fuzz_igmp(&bytes);
        }
    }
}
