//! A ClientHello at the start of a stream, which may span several TLS records (RFC 8446, section
//! 5.1): clients and proxies split it there to pass filters that look at one record.

use super::{CLIENT_HELLO, HANDSHAKE, HEADER_LEN, RECORD_MAX};
use crate::limits::HELLO_MAX;

/// The result of a look at the start of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// No ClientHello.
    Other,
    /// A ClientHello of more than [`HELLO_MAX`] bytes.
    TooLong,
    /// The possible start of a ClientHello, which goes on.
    Partial,
    /// A ClientHello that ends so many bytes after the start.
    Whole(usize),
}

/// Looks for a ClientHello at the start of a stream of TLS records; what is there of it is put into
/// `message`.
pub fn client_hello(stream: &[u8], message: &mut Vec<u8>) -> Start {
    message.clear();
    let mut at = 0;
    loop {
        let rest = &stream[at..];
        let Some(length) = record(rest) else { return Start::Other };
        let Some(length) = length else { return Start::Partial };
        let body = &rest[HEADER_LEN..];
        let there = body.len().min(length);
        let (before, room) = (message.len(), HELLO_MAX - message.len());
        message.extend_from_slice(&body[..there.min(room)]);
        match handshake(message) {
            Start::Whole(end) => {
                message.truncate(end);
                return Start::Whole(at + HEADER_LEN + end - before);
            }
            Start::Partial if there == length => {
                at += HEADER_LEN + length;
            }
            other => return other,
        }
    }
}

/// The same of a stream of handshake messages, as CRYPTO frames of QUIC carry it.
pub fn handshake(stream: &[u8]) -> Start {
    // The type, the highest byte of a length below 2^16, and the version's first.
    let fits = |at: usize, byte: u8| stream.get(at).is_none_or(|&b| b == byte);
    if !(fits(0, CLIENT_HELLO) && fits(1, 0) && fits(4, 3)) {
        return Start::Other;
    }
    let Some(&[_, _, a, b]) = stream.first_chunk() else { return Start::Partial };
    let end = 4 + usize::from(u16::from_be_bytes([a, b]));
    match end {
        // Versions and random bytes come before anything else.
        ..38 => Start::Other,
        _ if end > HELLO_MAX => Start::TooLong,
        _ if end <= stream.len() => Start::Whole(end),
        _ => Start::Partial,
    }
}

/// The length of the handshake record whose header these bytes start with, if it is there; `None`
/// where they cannot be one.
fn record(bytes: &[u8]) -> Option<Option<usize>> {
    let fits = |at: usize, fit: fn(u8) -> bool| bytes.get(at).is_none_or(|&b| fit(b));
    if !(fits(0, |b| b == HANDSHAKE) && fits(1, |b| b == 3) && fits(2, |b| b <= 4)) {
        return None;
    }
    let Some(&[_, _, _, a, b]) = bytes.first_chunk() else { return Some(None) };
    let length = u16::from_be_bytes([a, b]);
    (1..=RECORD_MAX).contains(&length).then_some(Some(length.into()))
}

/// Any bytes as a stream, and cut anywhere: what is found lies within, and more bytes never take
/// back what fewer said. Panics where that is not so.
#[cfg(any(test, fuzzing))]
pub fn fuzz_records(bytes: &[u8]) {
    let mut message = Vec::new();
    let whole = client_hello(bytes, &mut message);
    assert!(message.len() <= bytes.len().min(HELLO_MAX));
    if let Start::Whole(end) = whole {
        assert!(end <= bytes.len() && message.len() + HEADER_LEN <= end);
        assert_eq!(handshake(&message), Start::Whole(message.len()));
    }
    let mut part = Vec::new();
    for cut in (0..bytes.len()).step_by(1 + bytes.len() / 16) {
        match client_hello(&bytes[..cut], &mut part) {
            other @ (Start::Other | Start::TooLong) => assert_eq!(whole, other),
            Start::Whole(end) => assert_eq!((whole, &part), (Start::Whole(end), &message)),
            Start::Partial => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::messages;
    use proptest::prelude::*;

    /// The message in records of at most `size` bytes.
    fn records(message: &[u8], size: usize) -> Vec<u8> {
        let record =
            |part: &[u8]| [&[22, 3, 1][..], &(part.len() as u16).to_be_bytes(), part].concat();
        message.chunks(size).flat_map(record).collect()
    }

    fn hello() -> Vec<u8> {
        messages::client_hello("www.example.org", &["h2"], &[0x0304])[HEADER_LEN..].to_vec()
    }

    #[test]
    fn records_of_any_size() {
        let (hello, mut message) = (hello(), Vec::new());
        for size in [1, 2, 3, 4, 5, 37, hello.len() - 1, hello.len()] {
            let mut stream = records(&hello, size);
            let end = stream.len();
            stream.extend(b"more");
            assert_eq!(client_hello(&stream, &mut message), Start::Whole(end), "{size}");
            assert_eq!(message, hello);
            for cut in 0..end {
                assert_eq!(client_hello(&stream[..cut], &mut message), Start::Partial, "{cut}");
            }
        }
    }

    #[test]
    fn the_rest_of_a_record_is_no_part_of_the_hello() {
        let (hello, mut message) = (hello(), Vec::new());
        let two = records(&[&hello[..], &[11, 0, 0, 0]].concat(), 9000);
        let end = HEADER_LEN + hello.len();
        assert_eq!(client_hello(&two, &mut message), Start::Whole(end));
        assert_eq!(message, hello);
    }

    #[test]
    fn other_streams() {
        let start = |stream: &[u8]| client_hello(stream, &mut Vec::new());
        assert_eq!(start(b""), Start::Partial);
        assert_eq!(start(b"\x16"), Start::Partial);
        for other in [
            &b"GET / HTTP/1.1"[..],
            &[22, 2],
            &[22, 3, 5],
            &[22, 3, 1, 0, 0],
            &[22, 3, 1, 0xff, 0xff],
            &[22, 3, 1, 0, 9, 2],
            &[22, 3, 1, 0, 9, 1, 1],
            &[22, 3, 1, 0, 9, 1, 0, 0, 33],
            &[22, 3, 1, 0, 90, 1, 0, 0, 60, 2],
        ] {
            assert_eq!(start(other), Start::Other, "{other:?}");
        }
        // Something else between two records of the hello.
        let mut broken = records(&hello(), 20);
        broken[HEADER_LEN + 20] = 23;
        assert_eq!(start(&broken), Start::Other);
    }

    /// The longest one, and one byte more.
    #[test]
    fn the_longest_hello() {
        let of = |len: usize| {
            let length = (len as u16 - 4).to_be_bytes();
            [&[1, 0, length[0], length[1], 3, 3][..], &vec![0; len - 6]].concat()
        };
        let start = |message: &[u8]| client_hello(&records(message, 5000), &mut Vec::new());
        let longest = of(HELLO_MAX);
        assert_eq!(start(&longest), Start::Whole(HELLO_MAX + 4 * HEADER_LEN));
        assert_eq!(start(&of(HELLO_MAX + 1)), Start::TooLong);
        assert_eq!(start(&[1, 0, 0xff, 0xff, 3]), Start::TooLong);
        assert_eq!(handshake(&longest[..HELLO_MAX - 1]), Start::Partial);
    }

    proptest! {
        #[test]
        fn changed_hellos_hold(
            size in 1_usize..200,
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let mut bytes = records(&hello(), size);
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            fuzz_records(&bytes);
        }

        #[test]
        fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            fuzz_records(&bytes);
            fuzz_records(&[&[22, 3, 3][..], &bytes].concat());
        }
    }
}
