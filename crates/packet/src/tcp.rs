//! TCP headers (RFC 9293).
//!
//! ```text
//!  0               8               16              24            31
//! +-------------------------------+-------------------------------+
//! |          source port          |       destination port        |
//! +-------------------------------+-------------------------------+
//! |                        sequence number                        |
//! +---------------------------------------------------------------+
//! |                     acknowledgment number                     |
//! +-------+-----+-----------------+-------------------------------+
//! | offset| 0 0 |  nine flag bits |            window             |
//! +-------+-----+-----------------+-------------------------------+
//! |           checksum            |        urgent pointer         |
//! +-------------------------------+-------------------------------+
//! | options, up to the data offset; then payload …
//! ```

use crate::walk::Reason;

/// The protocol number of TCP in an IP header.
pub const PROTOCOL: u8 = 6;

/// Offset of the source port.
pub const SPORT: usize = 0;
/// Offset of the destination port.
pub const DPORT: usize = 2;
/// Offset of the sequence number.
pub const SEQ: usize = 4;
/// Offset of the acknowledgment number.
pub const ACKNO: usize = 8;
/// Offset of the byte whose high four bits are the data offset, in 32-bit words.
pub const DATA_OFFSET: usize = 12;
/// Offset of the two bytes whose low nine bits are the flags.
pub const FLAGS: usize = 12;
/// Offset of the window.
pub const WINDOW: usize = 14;
/// Offset of the checksum.
pub const CHECKSUM: usize = 16;
/// Offset of the urgent pointer.
pub const URGENT: usize = 18;
/// Bytes of the header without options, the least there can be.
pub const HEADER_LEN: usize = 20;

/// The nine bits of [`Tcp::flags`].
pub const FLAG_BITS: u16 = 0x1ff;
/// The sender has no more data.
pub const FIN: u16 = 1;
/// Synchronize sequence numbers: opens a connection.
pub const SYN: u16 = 2;
/// Reset the connection.
pub const RST: u16 = 4;
/// Push to the application.
pub const PSH: u16 = 8;
/// The acknowledgment number counts.
pub const ACK: u16 = 16;
/// The urgent pointer counts.
pub const URG: u16 = 32;
/// Congestion was seen (RFC 3168).
pub const ECE: u16 = 64;
/// The congestion window was reduced (RFC 3168).
pub const CWR: u16 = 128;
/// Nonce sum (RFC 3540, historic); today the first bit of accurate ECN.
pub const NS: u16 = 256;

/// A TCP header and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'a> {
    header: &'a [u8; HEADER_LEN],
    rest: &'a [u8],
}

impl<'a> Tcp<'a> {
    /// A view of `bytes`, which start at the header and end where the captured IP packet does.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 20 bytes, and [`Reason::TcpDataOffset`] if
    /// the data offset says so.
    pub fn new(bytes: &'a [u8]) -> Result<Tcp<'a>, Reason> {
        let (header, rest) = bytes.split_first_chunk().ok_or(Reason::ShortHeader)?;
        let tcp = Tcp { header, rest };
        if tcp.header_len() < HEADER_LEN {
            return Err(Reason::TcpDataOffset);
        }
        Ok(tcp)
    }

    /// Source port.
    pub fn sport(&self) -> u16 {
        self.word(SPORT)
    }

    /// Destination port.
    pub fn dport(&self) -> u16 {
        self.word(DPORT)
    }

    /// Sequence number of the first byte of the payload, or of the SYN.
    pub fn seq(&self) -> u32 {
        self.double(SEQ)
    }

    /// The sequence number that the sender expects next.
    pub fn ackno(&self) -> u32 {
        self.double(ACKNO)
    }

    /// Bytes of the header with its options, 20 to 60: the data offset times four.
    pub fn header_len(&self) -> usize {
        usize::from(self.header[DATA_OFFSET] >> 4) * 4
    }

    /// The nine flag bits: [`FIN`] to [`NS`].
    pub fn flags(&self) -> u16 {
        self.word(FLAGS) & FLAG_BITS
    }

    /// Window as sent, not scaled.
    pub fn window(&self) -> u16 {
        self.word(WINDOW)
    }

    /// Checksum as sent.
    pub fn checksum(&self) -> u16 {
        self.word(CHECKSUM)
    }

    /// Urgent pointer; counts only with [`URG`].
    pub fn urgent(&self) -> u16 {
        self.word(URGENT)
    }

    /// The captured bytes of the options.
    pub fn options(&self) -> &'a [u8] {
        self.rest.split_at_checked(self.header_len() - HEADER_LEN).map_or(self.rest, |(o, _)| o)
    }

    /// The captured bytes of the payload.
    pub fn payload(&self) -> &'a [u8] {
        self.rest.get(self.header_len() - HEADER_LEN..).unwrap_or(&[])
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.header[at], self.header[at + 1]])
    }

    fn double(&self, at: usize) -> u32 {
        u32::from(self.word(at)) << 16 | u32::from(self.word(at + 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A SYN with one option (maximum segment size 1460) and two bytes of payload.
    const SEGMENT: [u8; 26] = [
        0x30, 0x39, 0x01, 0xbb, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x61, 0x02, 0x72,
        0x10, 0xab, 0xcd, 0x00, 0x07, 0x02, 0x04, 0x05, 0xb4, b'h', b'i',
    ];

    #[test]
    fn reads_a_header() {
        let tcp = Tcp::new(&SEGMENT).unwrap();
        assert_eq!((tcp.sport(), tcp.dport()), (12_345, 443));
        assert_eq!((tcp.seq(), tcp.ackno()), (0x1122_3344, 0x5566_7788));
        assert_eq!(tcp.header_len(), 24);
        assert_eq!(tcp.flags(), SYN | NS);
        assert_eq!((tcp.window(), tcp.checksum(), tcp.urgent()), (0x7210, 0xabcd, 7));
        assert_eq!(tcp.options(), [2, 4, 5, 0xb4]);
        assert_eq!(tcp.payload(), b"hi");
    }

    #[test]
    fn cut_options_are_what_was_captured() {
        let tcp = Tcp::new(&SEGMENT[..22]).unwrap();
        assert_eq!((tcp.options(), tcp.payload()), (&[2, 4][..], &[][..]));
    }

    #[test]
    fn bad_headers_are_refused() {
        assert_eq!(Tcp::new(&SEGMENT[..19]).unwrap_err(), Reason::ShortHeader);
        let mut bytes = SEGMENT;
        bytes[DATA_OFFSET] = 0x40;
        assert_eq!(Tcp::new(&bytes).unwrap_err(), Reason::TcpDataOffset);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_view_or_a_reason(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            if let Ok(tcp) = Tcp::new(&bytes) {
                let parts = HEADER_LEN + tcp.options().len() + tcp.payload().len();
                prop_assert_eq!(parts, bytes.len());
                prop_assert!(tcp.flags() <= FLAG_BITS);
            }
        }
    }
}
