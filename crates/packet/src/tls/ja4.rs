//! JA4, a fingerprint of the client that sent a hello (FoxIO, *JA4: TLS Client Fingerprinting*,
//! technical details of 2024; BSD 3-Clause). Clients that put their extensions in random order
//! keep one fingerprint.
//!
//! ```text
//! t13d1516h2_8daaf6152771_e5627efa2ab1
//! | | | |  |      |            +-- SHA-256 of sorted extensions and of signature algorithms
//! | | | |  |      +-- SHA-256 of sorted cipher suites
//! | | | |  +-- first and last character of the first protocol name (ALPN)
//! | | | +-- number of extensions, after that of cipher suites
//! | | +-- d: the hello names a server; i: it does not
//! | +-- version
//! +-- t: TLS over TCP; q: QUIC; d: DTLS
//! ```
//!
//! Only this one of the JA4+ fingerprints is free to use; the others have a licence of their own.

use super::{ALPN, CLIENT_HELLO, Hello, SERVER_NAME, is_grease};
use sha2::{Digest as _, Sha256};

/// Bytes of a fingerprint, which are ASCII.
pub const JA4_LEN: usize = 36;

/// The extension with the signature algorithms that the client takes.
const SIGNATURE_ALGORITHMS: u16 = 13;

/// The highest number that two digits show.
const COUNT_MAX: usize = 99;

/// The carrier of the hello.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// TLS records in a TCP connection.
    Tcp,
    /// CRYPTO frames of QUIC packets.
    Quic,
}

/// The fingerprint of the client that sent a hello; `None` for a server's hello, and for one that
/// goes on beyond the bytes at hand.
pub fn ja4(hello: &Hello<'_>, carrier: Carrier) -> Option<[u8; JA4_LEN]> {
    if hello.kind() != CLIENT_HELLO {
        return None;
    }
    let (mut ciphers, mut extensions) = (Numbers::new(), Numbers::new());
    hello.ciphers()?.for_each(|cipher| ciphers.push(cipher));
    for extension in hello.all_extensions()? {
        extensions.push(extension.ok()?.0);
    }
    let names_a_server = extensions.slice().contains(&SERVER_NAME);
    let counts = [&ciphers, &extensions].map(|numbers| two_digits(numbers.slice().len()));

    let mut text = [b'_'; JA4_LEN];
    text[0] = match carrier {
        Carrier::Tcp => b't',
        Carrier::Quic => b'q',
    };
    text[1..3].copy_from_slice(version(hello.version().ok()?));
    text[3] = if names_a_server { b'd' } else { b'i' };
    text[4..6].copy_from_slice(&counts[0]);
    text[6..8].copy_from_slice(&counts[1]);
    text[8..10].copy_from_slice(&ends(hello.protocols().next().unwrap_or_default()));

    ciphers.sort();
    let mut hash = ListHash::default();
    hash.list(ciphers.slice().iter().copied());
    text[11..23].copy_from_slice(&hash.shortened());
    extensions.sort();
    let mut hash = ListHash::default();
    let listed = |kind: &u16| ![SERVER_NAME, ALPN].contains(kind);
    hash.list(extensions.slice().iter().copied().filter(listed));
    // Without algorithms there is no underscore; without anything, no hash either.
    let mut algorithms = signature_algorithms(hello).peekable();
    if algorithms.peek().is_some() {
        hash.update(b"_");
        hash.list(algorithms);
    }
    text[24..36].copy_from_slice(&hash.shortened());
    Some(text)
}

/// Numbers without those that nobody has, on the stack as long as they are few.
struct Numbers {
    few: [u16; FEW],
    len: usize,
    many: Vec<u16>,
}

/// More numbers than any client sends.
const FEW: usize = 256;

impl Numbers {
    fn new() -> Numbers {
        Numbers { few: [0; FEW], len: 0, many: Vec::new() }
    }

    fn push(&mut self, number: u16) {
        if is_grease(number) {
        } else if self.len < FEW {
            self.few[self.len] = number;
            self.len += 1;
        } else {
            if self.many.is_empty() {
                self.many.extend(self.few);
            }
            self.many.push(number);
        }
    }

    fn slice(&self) -> &[u16] {
        if self.many.is_empty() { &self.few[..self.len] } else { &self.many }
    }

    fn sort(&mut self) {
        let Numbers { few, len, many } = self;
        let numbers = if many.is_empty() { &mut few[..*len] } else { &mut many[..] };
        numbers.sort_unstable();
    }
}

/// The signature algorithms of a hello in its order, without those that nobody has.
fn signature_algorithms<'a>(hello: &Hello<'a>) -> impl Iterator<Item = u16> + use<'a> {
    let data = hello.extension(SIGNATURE_ALGORITHMS).ok().flatten().unwrap_or_default();
    // Two bytes of length come before the list.
    let list = data.get(2..).unwrap_or_default();
    let algorithms = list.as_chunks().0.iter().map(|&two| u16::from_be_bytes(two));
    algorithms.filter(|&algorithm| !is_grease(algorithm))
}

/// A version of TLS or DTLS in two characters.
fn version(version: u16) -> &'static [u8; 2] {
    match version {
        0x0304 => b"13",
        0x0303 => b"12",
        0x0302 => b"11",
        0x0301 => b"10",
        0x0300 => b"s3",
        0x0002 => b"s2",
        0xfeff => b"d1",
        0xfefd => b"d2",
        0xfefc => b"d3",
        _ => b"00",
    }
}

fn two_digits(n: usize) -> [u8; 2] {
    let n = n.min(COUNT_MAX) as u8;
    [b'0' + n / 10, b'0' + n % 10]
}

/// The first and last character of a protocol's name; of its digits in base 16 where one of the two
/// is neither letter nor digit; zeros for no name.
fn ends(name: &[u8]) -> [u8; 2] {
    let (Some(&first), Some(&last)) = (name.first(), name.last()) else { return *b"00" };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        [first, last]
    } else {
        [hex(first >> 4), hex(last)]
    }
}

/// The digit for the low four bits, in lower case.
fn hex(nibble: u8) -> u8 {
    b"0123456789abcdef"[usize::from(nibble & 15)]
}

/// The hash of a text as it grows.
#[derive(Default)]
struct ListHash {
    hash: Sha256,
    is_begun: bool,
}

impl ListHash {
    fn update(&mut self, text: &[u8]) {
        self.hash.update(text);
        self.is_begun = true;
    }

    /// Adds numbers of four digits in base 16, with commas between them.
    fn list(&mut self, numbers: impl Iterator<Item = u16>) {
        for (n, number) in numbers.enumerate() {
            let [a, b, c, d] = [12, 8, 4, 0].map(|shift| hex((number >> shift) as u8));
            let text = [b',', a, b, c, d];
            self.update(&text[usize::from(n == 0)..]);
        }
    }

    /// The first twelve digits; zeros for an empty text.
    fn shortened(self) -> [u8; 12] {
        if !self.is_begun {
            return [b'0'; 12];
        }
        let hash = self.hash.finalize();
        std::array::from_fn(|i| hex(if i % 2 == 0 { hash[i / 2] >> 4 } else { hash[i / 2] }))
    }
}

/// Any bytes as a handshake message: a fingerprint is ASCII of its form. Panics where it is not.
#[cfg(any(test, fuzzing))]
pub fn fuzz_ja4(bytes: &[u8]) {
    let Some(hello) = Hello::new(bytes) else { return };
    let Some(text) = ja4(&hello, Carrier::Tcp) else { return };
    assert!(text.is_ascii() && text[0] == b't' && text[10] == b'_' && text[23] == b'_');
}

#[cfg(test)]
mod tests {
    use super::super::Tls;
    use super::*;
    use proptest::prelude::*;

    /// A record with a client's hello of these ciphers and extensions.
    fn client_hello(version: u16, ciphers: &[u16], extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let long = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
        let words = |words: &[u16]| words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<_>>();
        let mut body = version.to_be_bytes().to_vec();
        body.extend([7; 32]);
        body.push(0);
        body.extend(long(&words(ciphers)));
        body.extend([1, 0]);
        let all: Vec<u8> = extensions
            .iter()
            .flat_map(|(kind, data)| [words(&[*kind]), long(data)].concat())
            .collect();
        body.extend(long(&all));
        let mut message = vec![1, 0];
        message.extend(long(&body));
        [&[22, 3, 1][..], &long(&message)].concat()
    }

    fn fingerprint(bytes: &[u8]) -> Option<String> {
        let text = ja4(&Tls::new(bytes)?.hello()?, Carrier::Tcp)?;
        Some(String::from_utf8(text.to_vec()).unwrap())
    }

    const CIPHERS: [u16; 15] = [
        0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014,
        0x009c, 0x009d, 0x002f, 0x0035,
    ];

    /// The extensions of the example, in the order of one of its hellos, with what is read of them.
    fn extensions(last: &[u16]) -> Vec<(u16, Vec<u8>)> {
        let algorithms = [4, 3, 8, 4, 4, 1, 5, 3, 8, 5, 5, 1, 8, 6, 6, 1];
        let known = |kind: u16| match kind {
            0 => vec![0, 4, 0, 0, 1, b'a'],
            13 => [&[0, 16][..], &algorithms].concat(),
            16 => [&[0, 12, 2][..], b"h2", &[8], b"http/1.1"].concat(),
            43 => vec![6, 0x2a, 0x2a, 3, 4, 3, 3],
            _ => vec![],
        };
        let first = [0x1b, 0, 0x33, 0x10, 0x4469, 0x17, 0x2d, 0xd, 5, 0x23, 0x12, 0x2b, 0xff01];
        first.iter().chain(last).map(|&kind| (kind, known(kind))).collect()
    }

    #[test]
    fn the_published_examples() {
        let bytes = client_hello(0x303, &CIPHERS, &extensions(&[0xb, 0xa, 0x15]));
        assert_eq!(fingerprint(&bytes).unwrap(), "t13d1516h2_8daaf6152771_e5627efa2ab1");
        let hello = Tls::new(&bytes).unwrap().hello().unwrap();
        assert_eq!(ja4(&hello, Carrier::Quic).unwrap()[0], b'q');
        // The same without signature algorithms.
        let mut plain = extensions(&[0xb, 0xa, 0x15]);
        plain.iter_mut().filter(|(kind, _)| *kind == 13).for_each(|(_, data)| data.clear());
        let bytes = client_hello(0x303, &CIPHERS, &plain);
        assert_eq!(fingerprint(&bytes).unwrap(), "t13d1516h2_8daaf6152771_6d807ffa2a79");
    }

    #[test]
    fn the_order_of_extensions_and_reserved_values_change_nothing() {
        let reserved = [&[0x0a0a, 0xfafa][..], &CIPHERS].concat();
        let mut mixed = extensions(&[0xb, 0xa, 0x15]);
        mixed.reverse();
        mixed.insert(3, (0x3a3a, vec![0]));
        let bytes = client_hello(0x303, &reserved, &mixed);
        assert_eq!(fingerprint(&bytes).unwrap(), "t13d1516h2_8daaf6152771_e5627efa2ab1");
    }

    #[test]
    fn the_edges() {
        let bytes = client_hello(0x302, &[], &[]);
        assert_eq!(fingerprint(&bytes).unwrap(), "t11i000000_000000000000_000000000000");
        for few in [FEW, FEW + 1] {
            let many: Vec<u16> = (0..few as u16).rev().collect();
            let sorted: Vec<u16> = (0..few as u16).collect();
            let of = |ciphers: &[u16]| fingerprint(&client_hello(0x303, ciphers, &[]));
            assert!(of(&many).is_some());
            assert_eq!(of(&many), of(&sorted), "{few} ciphers in any order");
        }
        let many: Vec<u16> = (0..120).collect();
        let bytes = client_hello(0x3ff, &many, &[(16, vec![0, 3, 2, 0xab, 0xcd])]);
        assert_eq!(&fingerprint(&bytes).unwrap()[..10], "t00i9901ad");
        let whole = client_hello(0x303, &CIPHERS, &extensions(&[]));
        for n in 0..whole.len() {
            assert_eq!(fingerprint(&whole[..n]), None, "cut at {n}");
        }
    }

    proptest! {
        #[test]
        fn changed_hellos_hold(
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let mut bytes = client_hello(0x303, &CIPHERS, &extensions(&[0xb, 0xa, 0x15]));
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            fuzz_ja4(&bytes[5..]);
        }
    }

    #[test]
    fn the_ends_of_names() {
        let cases: [(&[u8], &[u8; 2]); 9] = [
            (b"h2", b"h2"),
            (b"http/1.1", b"h1"),
            (b"q", b"qq"),
            (b"", b"00"),
            (&[0xab], b"ab"),
            (&[0xab, 0xcd], b"ad"),
            (&[0x30, 0xab], b"3b"),
            (&[0x30, 0x31, 0xab, 0xcd], b"3d"),
            (&[0x30, 0xab, 0xcd, 0x31], b"01"),
        ];
        for (name, expected) in cases {
            assert_eq!(&ends(name), expected, "{name:?}");
        }
    }
}
