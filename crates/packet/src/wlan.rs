//! IEEE 802.11 headers.
//!
//! ```text
//! +-------------------+--------------+---------------+---------------+---------------+
//! | frame control (2) | duration (2) | address 1 (6) | address 2 (6) | address 3 (6) |
//! +-------------------+--------------+---------------+---------------+---------------+
//! | sequence (2) | address 4 (6)? | QoS (2)? | HT control (4)? | body …
//! +--------------+----------------+----------+-----------------+
//! ```
//!
//! Frame control is little-endian: version, type and subtype in the first byte, flags in the
//! second. How long the header is, and what the addresses mean, depends on both.

use crate::llc::SNAP_LEN;
use crate::walk::Reason;

/// Type: beacons, probes, associations.
pub const MANAGEMENT: u8 = 0;
/// Type: acknowledgements, requests to send.
pub const CONTROL: u8 = 1;
/// Type: data.
pub const DATA: u8 = 2;

/// Flag: to the distribution system.
pub const TO_DS: u8 = 0x01;
/// Flag: from the distribution system.
pub const FROM_DS: u8 = 0x02;
/// Flag: sent again.
pub const RETRY: u8 = 0x08;
/// Flag: the body is encrypted.
pub const PROTECTED: u8 = 0x40;
/// Flag: a QoS header ends in HT control.
const ORDER: u8 = 0x80;

/// QoS control, low byte: the body is an aggregate of packets.
const AGGREGATE: u8 = 0x80;
/// QoS control, high byte: mesh control follows the header.
const MESH: u8 = 0x01;
/// Bytes of the frame control.
pub const CONTROL_LEN: usize = 2;

/// Bytes between the start of an aggregate's first packet and its LLC header: two addresses and a
/// length.
const SUBFRAME_LEN: usize = 14;

/// Bytes of the checksum at the end of a frame, where it was captured.
pub(crate) const FCS_LEN: usize = 4;

/// Bytes of the header that begins with this frame control.
pub fn header_len([first, flags]: [u8; CONTROL_LEN]) -> usize {
    let (kind, subtype) = (first >> 2 & 3, first >> 4);
    let both = flags & (TO_DS | FROM_DS) == TO_DS | FROM_DS;
    let qos = subtype & 8 != 0;
    match (kind, subtype) {
        (MANAGEMENT, _) if flags & ORDER != 0 => 28,
        (MANAGEMENT, _) => 24,
        (CONTROL, 8..=11 | 14 | 15) => 16,
        (CONTROL, _) => 10,
        (DATA, _) => {
            let order = qos && flags & ORDER != 0;
            24 + 6 * usize::from(both) + 2 * usize::from(qos) + 4 * usize::from(order)
        }
        _ => CONTROL_LEN,
    }
}

/// An 802.11 header and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Wlan<'a> {
    header: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Wlan<'a> {
    /// A view of `bytes`, which start at the header.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if the header is not all there, and [`Reason::Wlan`] if its version
    /// is not 0.
    pub fn new(bytes: &'a [u8]) -> Result<Wlan<'a>, Reason> {
        let control: &[u8; CONTROL_LEN] = bytes.first_chunk().ok_or(Reason::ShortHeader)?;
        if control[0] & 3 != 0 {
            return Err(Reason::Wlan);
        }
        let split = bytes.split_at_checked(header_len(*control));
        let (header, rest) = split.ok_or(Reason::ShortHeader)?;
        Ok(Wlan { header, rest })
    }

    /// Type: [`MANAGEMENT`], [`CONTROL`], [`DATA`] or 3.
    pub fn kind(&self) -> u8 {
        self.header[0] >> 2 & 3
    }

    /// Subtype, 0 to 15: of management frames 8 is a beacon, of data frames 8 is QoS data.
    pub fn subtype(&self) -> u8 {
        self.header[0] >> 4
    }

    /// The eight flags.
    pub fn flags(&self) -> u8 {
        self.header[1]
    }

    /// Bytes of the header.
    pub fn header_len(&self) -> usize {
        self.header.len()
    }

    /// The station that is to receive the transmission.
    pub fn receiver(&self) -> Option<[u8; 6]> {
        self.address(4)
    }

    /// The station that sent the transmission; not in acknowledgements.
    pub fn transmitter(&self) -> Option<[u8; 6]> {
        self.address(10)
    }

    /// The station that the body comes from; not in control frames.
    pub fn source(&self) -> Option<[u8; 6]> {
        match self.addressed()? {
            (_, false) => self.address(10),
            (false, true) => self.address(16),
            (true, true) => self.address(24),
        }
    }

    /// The station that the body is for; not in control frames.
    pub fn destination(&self) -> Option<[u8; 6]> {
        let (to_ds, _) = self.addressed()?;
        self.address(if to_ds { 16 } else { 4 })
    }

    /// The access point's address, or the one that stands for a network without any; not in control
    /// frames, and not between access points.
    pub fn bssid(&self) -> Option<[u8; 6]> {
        match self.addressed()? {
            (false, false) => self.address(16),
            (true, false) => self.address(4),
            (false, true) => self.address(10),
            (true, true) => None,
        }
    }

    /// Where in the body an LLC header starts: in data frames that carry data in the clear, not in
    /// later fragments.
    pub fn llc(&self) -> Option<usize> {
        let aggregate = self.qos_control().is_some_and(|[low, _]| low & AGGREGATE != 0);
        let start = if aggregate { SUBFRAME_LEN } else { 0 };
        (self.carries_clear_data() && self.fragment() == 0).then_some(start)
    }

    /// How many frames follow the first in an aggregate of which that holds an IP packet, `l3`
    /// bytes after the start of what was captured.
    pub(crate) fn further_frames(&self, captured: &[u8], l3: usize) -> u64 {
        let first = l3.checked_sub(SUBFRAME_LEN + SNAP_LEN);
        let (Some(mut at), Some(SUBFRAME_LEN)) = (first, self.llc()) else { return 0 };
        let mut further = 0;
        while let Some(&[a, b]) =
            captured.get(at + SUBFRAME_LEN - 2..).and_then(|b| b.first_chunk())
        {
            let len = SUBFRAME_LEN + usize::from(u16::from_be_bytes([a, b]));
            at += len.next_multiple_of(4);
            further += u64::from(at + SUBFRAME_LEN + FCS_LEN <= captured.len());
        }
        further
    }

    /// Whether the body is the rest of data in the clear that another frame began.
    pub fn is_later_fragment(&self) -> bool {
        self.carries_clear_data() && self.fragment() != 0
    }

    /// Whether mesh control may stand before the LLC header: it does in a mesh where this bit is
    /// set, which other networks use for something else.
    pub fn may_be_mesh(&self) -> bool {
        self.qos_control().is_some_and(|[_, high]| high & MESH != 0)
    }

    fn carries_clear_data(&self) -> bool {
        self.flags() & PROTECTED == 0 && self.kind() == DATA && self.subtype() & 4 == 0
    }

    /// The number of the fragment.
    fn fragment(&self) -> u8 {
        self.header.get(22).map_or(0, |sequence| sequence & 0xf)
    }

    /// The captured bytes after the header.
    pub fn body(&self) -> &'a [u8] {
        self.rest
    }

    /// To and from the distribution system, in frames that have all addresses.
    fn addressed(&self) -> Option<(bool, bool)> {
        match self.kind() {
            MANAGEMENT => Some((false, false)),
            DATA => Some((self.flags() & TO_DS != 0, self.flags() & FROM_DS != 0)),
            _ => None,
        }
    }

    fn address(&self, at: usize) -> Option<[u8; 6]> {
        self.header.get(at..)?.first_chunk().copied()
    }

    /// The QoS control, in data frames that have one.
    fn qos_control(&self) -> Option<[u8; 2]> {
        if self.kind() != DATA || self.subtype() & 8 == 0 {
            return None;
        }
        let both = self.flags() & (TO_DS | FROM_DS) == TO_DS | FROM_DS;
        self.header.get(if both { 30 } else { 24 }..)?.first_chunk().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header whose addresses are 1s, 2s, 3s, and 4s if there is a fourth.
    fn header(control: [u8; 2], len: usize) -> Vec<u8> {
        let mut bytes =
            [&control[..], &[0, 0], &[1; 6], &[2; 6], &[3; 6], &[0, 0], &[4; 6]].concat();
        bytes.resize(len.max(bytes.len()), 0);
        bytes.truncate(len);
        bytes
    }

    fn addresses(control: [u8; 2], len: usize) -> [Option<u8>; 5] {
        let bytes = header(control, len);
        let w = Wlan::new(&bytes).unwrap();
        assert_eq!(w.header_len(), len);
        assert_eq!(Wlan::new(&bytes[..len - 1]).unwrap_err(), Reason::ShortHeader);
        [w.receiver(), w.transmitter(), w.source(), w.destination(), w.bssid()]
            .map(|a| a.map(|a| a[0]))
    }

    #[test]
    fn addresses_depend_on_direction() {
        let s = Some;
        assert_eq!(addresses([0x80, 0], 24), [s(1), s(2), s(2), s(1), s(3)], "beacon");
        assert_eq!(addresses([0x08, 0], 24), [s(1), s(2), s(2), s(1), s(3)], "ad hoc");
        assert_eq!(addresses([0x08, 1], 24), [s(1), s(2), s(2), s(3), s(1)], "to");
        assert_eq!(addresses([0x08, 2], 24), [s(1), s(2), s(3), s(1), s(2)], "from");
        assert_eq!(addresses([0x08, 3], 30), [s(1), s(2), s(4), s(3), None], "between");
        assert_eq!(addresses([0x88, 1], 26), [s(1), s(2), s(2), s(3), s(1)], "QoS");
        assert_eq!(addresses([0xd4, 0], 10), [s(1), None, None, None, None], "acknowledgement");
        assert_eq!(addresses([0xb4, 0], 16), [s(1), s(2), None, None, None], "request to send");
    }

    #[test]
    fn only_clear_data_has_an_llc_header() {
        let llc = |control: [u8; 2], len: usize, at: usize, value: u8| {
            let mut bytes = header(control, len);
            bytes[at] = value;
            Wlan::new(&bytes).unwrap().llc()
        };
        assert_eq!(llc([0x08, 2], 24, 22, 0), Some(0));
        assert_eq!(llc([0x88, 2], 26, 24, 0x80), Some(14), "an aggregate");
        assert_eq!(llc([0x08, 2], 24, 22, 1), None, "a later fragment");
        assert_eq!(llc([0x08, 0x42], 24, 22, 0), None, "encrypted");
        assert_eq!(llc([0x48, 1], 24, 22, 0), None, "no data");
        assert_eq!(llc([0x80, 0], 24, 22, 0), None, "a beacon");
        assert_eq!(Wlan::new(&[1; 30]).unwrap_err(), Reason::Wlan);
    }
}
