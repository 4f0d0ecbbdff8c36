//! DHCP messages for IPv4 (RFC 2131; options, RFC 2132).
//!
//! ```text
//!  0               8               16              24            31
//! +---------------+---------------+---------------+---------------+
//! |   operation   | hardware type | address length|      hops     |
//! +---------------+---------------+---------------+---------------+
//! |                        transaction id                         |
//! +-------------------------------+-------------------------------+
//! |            seconds            |             flags             |
//! +-------------------------------+-------------------------------+
//! | four addresses: client, yours, server, relay                  |
//! | 16 bytes of client hardware address, 64 of server name, 128 of file name, 4 of magic cookie
//! | options …
//! ```

/// The ports of servers and of clients.
pub const PORTS: [u16; 2] = [67, 68];

/// Offset of the operation: 1 from a client, 2 from a server.
pub const OPERATION: usize = 0;
/// Offset of the transaction identifier.
pub const XID: usize = 4;
/// Offset of the address that the client has.
pub const CLIENT_IP: usize = 12;
/// Offset of the address that the client is given.
pub const YOUR_IP: usize = 16;
/// Offset of the client's hardware address.
pub const CLIENT_MAC: usize = 28;
/// Offset of the magic cookie.
pub const COOKIE: usize = 236;
/// Bytes before the options.
pub const HEADER_LEN: usize = 240;

/// The magic cookie, which stands before the options.
pub const MAGIC: [u8; 4] = [0x63, 0x82, 0x53, 0x63];

/// Option: the name of the client.
pub const HOST_NAME: u8 = 12;
/// Option: the address that the client asks for.
pub const REQUESTED_IP: u8 = 50;
/// Option: the fields of file, server name, or both hold options, too (RFC 2132, section 9.3).
pub const OVERLOAD: u8 = 52;
/// Option: what the message is: 1 discover, 2 offer, 3 request, 5 acknowledgment.
pub const MESSAGE_TYPE: u8 = 53;
/// Option: the address of the server that is meant.
pub const SERVER_ID: u8 = 54;

/// Option: a byte of padding.
const PAD: u8 = 0;
/// Option: the end.
const END: u8 = 255;

/// A DHCP message, as much of it as was captured.
#[derive(Clone, Copy, Debug)]
pub struct Dhcp<'a> {
    header: &'a [u8; HEADER_LEN],
    options: &'a [u8],
}

impl<'a> Dhcp<'a> {
    /// A view of a datagram's payload; `None` if it is shorter than the fixed fields, or has no
    /// magic cookie behind them (plain BOOTP).
    pub fn new(payload: &'a [u8]) -> Option<Dhcp<'a>> {
        let (header, options) = payload.split_first_chunk::<HEADER_LEN>()?;
        (header[COOKIE..] == MAGIC).then_some(Dhcp { header, options })
    }

    /// 1 from a client, 2 from a server.
    pub fn operation(&self) -> u8 {
        self.header[OPERATION]
    }

    /// Transaction identifier: the same in all messages of one exchange.
    pub fn xid(&self) -> u32 {
        self.double(XID)
    }

    /// The address that the client has; 0.0.0.0 if none.
    pub fn client_ip(&self) -> u32 {
        self.double(CLIENT_IP)
    }

    /// The address that the client is given; 0.0.0.0 in its own messages.
    pub fn your_ip(&self) -> u32 {
        self.double(YOUR_IP)
    }

    /// The client's hardware address, if it is one of Ethernet.
    pub fn client_mac(&self) -> Option<&'a [u8; 6]> {
        let ethernet = self.header[1..3] == [1, 6];
        ethernet.then(|| self.header[CLIENT_MAC..].first_chunk())?
    }

    /// The value of the first option of a kind, if it is among those captured.
    pub fn option(&self, wanted: u8) -> Option<&'a [u8]> {
        self.options().find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
    }

    /// Kinds and values of the options, up to the end or to one that is cut.
    pub fn options(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        self.options_and_end().take_while(|&(kind, _)| kind != END)
    }

    /// Whether the end of the options was captured.
    pub fn is_whole(&self) -> bool {
        self.options_and_end().any(|(kind, _)| kind == END)
    }

    /// The options, and their end, which has no length.
    fn options_and_end(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut rest = self.options;
        std::iter::from_fn(move || {
            let padding = rest.iter().take_while(|&&kind| kind == PAD).count();
            let (&kind, after) = rest[padding..].split_first()?;
            if kind == END {
                rest = &[];
                return Some((END, rest));
            }
            let (&length, values) = after.split_first()?;
            let (value, after) = values.split_at_checked(length.into())?;
            rest = after;
            Some((kind, value))
        })
    }

    fn double(&self, at: usize) -> u32 {
        let h = self.header;
        u32::from_be_bytes([h[at], h[at + 1], h[at + 2], h[at + 3]])
    }
}

/// Any bytes as a message: its options come to an end and lie inside. Panics where that is not so.
#[cfg(any(test, fuzzing))]
pub fn fuzz_dhcp(bytes: &[u8]) {
    let Some(dhcp) = Dhcp::new(bytes) else { return };
    let held: usize = dhcp.options().map(|(_, value)| 2 + value.len()).sum();
    assert!(HEADER_LEN + held <= bytes.len());
    for (kind, _) in dhcp.options() {
        assert!(dhcp.option(kind).is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::messages::dhcp;
    use proptest::prelude::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];

    #[test]
    fn reads_an_offer() {
        let bytes = dhcp(2, 0xabcd, MAC, [10, 0, 0, 9], &[(53, &[2]), (12, b"host")]);
        let dhcp = Dhcp::new(&bytes).unwrap();
        assert_eq!((dhcp.operation(), dhcp.xid()), (2, 0xabcd));
        assert_eq!((dhcp.client_ip(), dhcp.your_ip()), (0, 0x0a00_0009));
        assert_eq!(dhcp.client_mac(), Some(&MAC));
        assert_eq!(dhcp.option(MESSAGE_TYPE), Some(&[2][..]));
        assert_eq!(dhcp.option(HOST_NAME), Some(&b"host"[..]));
        assert_eq!(dhcp.option(SERVER_ID), None);
        let padded = [&bytes[..HEADER_LEN], &[0, 0, 53, 1, 5, 0]].concat();
        assert_eq!(Dhcp::new(&padded).unwrap().option(MESSAGE_TYPE), Some(&[5][..]));
        // Bytes after the end are no options.
        let ended = [&bytes[..HEADER_LEN], &[53, 1, 5, 255, 12, 1, b'a']].concat();
        assert_eq!(Dhcp::new(&ended).unwrap().options().count(), 1);
        for end in HEADER_LEN..ended.len() {
            let is_whole = Dhcp::new(&ended[..end]).unwrap().is_whole();
            assert_eq!(is_whole, end > HEADER_LEN + 3, "{end} bytes");
        }
    }

    #[test]
    fn what_is_cut_is_not_there() {
        let bytes = dhcp(1, 1, MAC, [0; 4], &[(53, &[1]), (12, b"host")]);
        assert!(Dhcp::new(&bytes[..HEADER_LEN - 1]).is_none());
        let cut = Dhcp::new(&bytes[..HEADER_LEN + 6]).unwrap();
        assert_eq!(cut.options().collect::<Vec<_>>(), [(53, &[1][..])]);
        let mut bootp = bytes.clone();
        bootp[COOKIE] = 0;
        assert!(Dhcp::new(&bootp).is_none());
    }

    proptest! {
        #[test]
        fn any_options_hold(options in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut bytes = dhcp(1, 1, MAC, [0; 4], &[]);
            bytes.truncate(HEADER_LEN);
            bytes.extend(options);
            fuzz_dhcp(&bytes);
        }

        #[test]
        fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..260)) {
            fuzz_dhcp(&bytes);
        }
    }
}
