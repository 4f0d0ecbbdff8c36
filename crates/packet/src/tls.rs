//! TLS records, and the hellos that a handshake begins with (RFC 8446; server names, RFC 6066;
//! protocol names, RFC 7301).
//!
//! ```text
//!  0               8               16              24            31
//! +---------------+-------------------------------+---------------+
//! | content type  |            version            | length …      |
//! +---------------+---------------+---------------+---------------+
//! | … length      | handshake type|       length of message       |
//! +---------------+---------------+-------------------------------+
//! |            version            | 32 random bytes, session id, ciphers, extensions …
//! ```
//!
//! A client may send a ChangeCipherSpec record just before its second hello (appendix D.4), so a
//! hello is looked for [after](after_change_cipher_spec) such a record too.
//!
//! This looks at the start of one segment. A hello that goes on in the next segment is read as far
//! as it goes, and what lies beyond is not said to be missing; [`records`] puts records together.

pub mod ja4;
pub mod records;

/// The content type of a change of cipher.
const CHANGE_CIPHER_SPEC: u8 = 20;
/// The content type of handshake messages.
pub const HANDSHAKE: u8 = 22;
/// Content types: change of cipher, alert, handshake, application data, heartbeat.
const CONTENT_TYPES: std::ops::RangeInclusive<u8> = 20..=24;
/// Bytes of a record's header.
pub const HEADER_LEN: usize = 5;
/// Bytes of the longest record: 2^14, and what encryption may add (RFC 5246, section 6.2.3).
const RECORD_MAX: u16 = (1 << 14) + 2048;

/// The handshake type of the client's hello.
pub const CLIENT_HELLO: u8 = 1;
/// The handshake type of the server's hello.
pub const SERVER_HELLO: u8 = 2;

/// The extension that names the server.
pub const SERVER_NAME: u16 = 0;
/// The extension that names the protocols inside, or the one that the server chose.
pub const ALPN: u16 = 16;
/// The extension with an encrypted ClientHello (ECH, RFC 9849), or with random bytes in its place.
pub const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
/// The extension with the versions that the client takes, or the one that the server chose.
pub const SUPPORTED_VERSIONS: u16 = 43;

/// The payload of a segment after the whole ChangeCipherSpec record that it starts with, or all of
/// it where it starts otherwise.
///
/// The record means nothing in TLS 1.3. A client sends it just before its second flight, which may
/// be a hello and stand in the same segment, so that devices on the path take the connection for an
/// older one (RFC 8446, appendix D.4). All readers of hellos over TCP start here.
pub fn after_change_cipher_spec(payload: &[u8]) -> &[u8] {
    match payload {
        [CHANGE_CIPHER_SPEC, 3, 0..=4, 0, 1, 1, rest @ ..] => rest,
        _ => payload,
    }
}

/// The TLS record at the start of a segment, as much of it as was captured.
#[derive(Clone, Copy, Debug)]
pub struct Tls<'a> {
    content_type: u8,
    fragment: &'a [u8],
}

impl<'a> Tls<'a> {
    /// A view of a segment's payload; `None` if it does not start with a record's header: one of
    /// the assigned types, a version from SSL 3.0 to TLS 1.3, and a length that may be.
    pub fn new(payload: &'a [u8]) -> Option<Tls<'a>> {
        let (&[content_type, major, minor, a, b], rest) = payload.split_first_chunk()?;
        let length = u16::from_be_bytes([a, b]);
        let sound = CONTENT_TYPES.contains(&content_type)
            && (major, minor) <= (3, 4)
            && major == 3
            && (1..=RECORD_MAX).contains(&length);
        let fragment = &rest[..rest.len().min(length.into())];
        sound.then_some(Tls { content_type, fragment })
    }

    /// The content type of the record: 22 for handshake messages.
    pub fn content_type(&self) -> u8 {
        self.content_type
    }

    /// Whether the record starts a hello of either side, by what is there of it.
    pub(crate) fn starts_hello(&self) -> bool {
        let fits = |at: usize, byte: u8| self.fragment.get(at).is_none_or(|&b| b == byte);
        let kind = matches!(self.fragment.first(), Some(&(CLIENT_HELLO | SERVER_HELLO)));
        self.content_type == HANDSHAKE && kind && fits(1, 0) && fits(4, 3)
    }

    /// Whether the record starts a ClientHello, and a later record of the segment goes on with it.
    pub(crate) fn client_hello_goes_on(&self, payload: &[u8]) -> bool {
        self.content_type == HANDSHAKE
            && self.fragment.first() == Some(&CLIENT_HELLO)
            && HEADER_LEN + self.fragment.len() < payload.len()
            && !self.hello().is_some_and(|hello| hello.whole)
    }

    /// The hello that the record starts with.
    pub fn hello(&self) -> Option<Hello<'a>> {
        if self.content_type == HANDSHAKE { Hello::new(self.fragment) } else { None }
    }
}

/// A hello of either side.
#[derive(Clone, Copy, Debug)]
pub struct Hello<'a> {
    kind: u8,
    version: u16,
    /// From the random bytes on, as far as they were captured.
    rest: Rest<'a>,
    /// Whether that is all of it.
    whole: bool,
}

/// The hello goes on beyond the bytes at hand, and what was looked for may be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut;

impl<'a> Hello<'a> {
    /// A view of a handshake message, as much of it as is there; `None` if it is no hello.
    pub fn new(message: &'a [u8]) -> Option<Hello<'a>> {
        let (&[kind, 0, a, b], body) = message.split_first_chunk()? else { return None };
        if !matches!(kind, CLIENT_HELLO | SERVER_HELLO) {
            return None;
        }
        let length = usize::from(u16::from_be_bytes([a, b]));
        let mut rest = Rest(&body[..body.len().min(length)]);
        let version = rest.word()?;
        // An encrypted message may look like a hello up to here.
        (version >> 8 == 3).then_some(Hello { kind, version, rest, whole: length <= body.len() })
    }

    /// Whether all of it is there.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// The side that sent it: [`CLIENT_HELLO`] or [`SERVER_HELLO`].
    pub fn kind(&self) -> u8 {
        self.kind
    }

    /// The highest version that the client takes, or the one that the server chose: 0x0303 is TLS
    /// 1.2, 0x0304 TLS 1.3.
    ///
    /// # Errors
    /// [`Cut`] if the extension that tells it may be beyond the bytes at hand.
    pub fn version(&self) -> Result<u16, Cut> {
        let Some(data) = self.extension(SUPPORTED_VERSIONS)? else { return Ok(self.version) };
        let mut rest = Rest(data);
        let list = if self.kind == CLIENT_HELLO { rest.short().unwrap_or(&[]) } else { data };
        let versions = list.as_chunks().0.iter().map(|&two| u16::from_be_bytes(two));
        let real = versions.filter(|&version| !is_grease(version));
        Ok(real.max().unwrap_or(self.version))
    }

    /// Whether a ClientHello has the extension of an encrypted one (ECH): its other extensions,
    /// the name of the server among them, are then only the outer ones. Many clients send random
    /// bytes there where the server has no key for it, which nobody on the path can tell.
    ///
    /// # Errors
    /// [`Cut`] if the extension may be beyond the bytes at hand.
    pub fn has_ech(&self) -> Result<bool, Cut> {
        Ok(self.extension(ENCRYPTED_CLIENT_HELLO)?.is_some())
    }

    /// The name of the server that the client wants: with ECH the outer one, which the service's
    /// provider chose.
    pub fn server_name(&self) -> Option<&'a [u8]> {
        let mut rest = Rest(Rest(self.extension(SERVER_NAME).ok()??).long()?);
        // There is one kind of name only, and one name of it.
        let [kind] = rest.take()?;
        (*kind == 0).then(|| rest.long())?
    }

    /// The protocols that the client speaks inside, the best first, or the one that the server
    /// chose: `h2`, `http/1.1`.
    pub fn protocols(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let data = self.extension(ALPN).ok().flatten();
        let mut list = Rest(data.and_then(|data| Rest(data).long()).unwrap_or(&[]));
        std::iter::from_fn(move || list.short())
    }

    /// The cipher suites that the client takes, in its order. `None` for a server's hello, and
    /// where they are not all at hand.
    pub fn ciphers(&self) -> Option<impl Iterator<Item = u16> + use<'a>> {
        let mut rest = self.rest;
        rest.take::<32>()?;
        rest.short()?;
        let list = if self.kind == CLIENT_HELLO { rest.long()? } else { return None };
        Some(list.as_chunks().0.iter().map(|&two| u16::from_be_bytes(two)))
    }

    /// The data of the first extension of a type, if there is one.
    ///
    /// # Errors
    /// [`Cut`] if it is not among those at hand, and these are not all.
    pub fn extension(&self, wanted: u16) -> Result<Option<&'a [u8]>, Cut> {
        for extension in self.all_extensions().ok_or(Cut)? {
            let (kind, data) = extension?;
            if kind == wanted {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// All extensions in order, their types and data; an error ends them where the bytes at hand
    /// do. `None` if the hello is cut before them.
    pub fn all_extensions(
        &self,
    ) -> Option<impl Iterator<Item = Result<(u16, &'a [u8]), Cut>> + use<'a>> {
        let (mut rest, whole) = self.extensions()?;
        let mut ended = false;
        Some(std::iter::from_fn(move || {
            if ended || (rest.0.is_empty() && whole) {
                return None;
            }
            let next = rest.word().and_then(|kind| Some((kind, rest.long()?)));
            ended = next.is_none();
            Some(next.ok_or(Cut))
        }))
    }

    /// The extensions at hand, and whether they are all. `None` if the hello is cut before them.
    fn extensions(&self) -> Option<(Rest<'a>, bool)> {
        let mut rest = self.rest;
        rest.take::<32>()?;
        rest.short()?;
        if self.kind == CLIENT_HELLO {
            rest.long()?;
            rest.short()?;
        } else {
            rest.take::<3>()?;
        }
        if rest.0.is_empty() && self.whole {
            return Some((rest, true));
        }
        let length = usize::from(rest.word()?);
        let all = &rest.0[..length.min(rest.0.len())];
        Some((Rest(all), all.len() == length))
    }
}

/// Whether a value is one of those that clients mix in so that nobody relies on knowing all of a
/// list (GREASE, RFC 8701).
fn is_grease(value: u16) -> bool {
    let [high, low] = value.to_be_bytes();
    high == low && value & 0x0f0f == 0x0a0a
}

/// The bytes still to be read.
#[derive(Clone, Copy, Debug)]
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u16> {
        self.take().map(|&two| u16::from_be_bytes(two))
    }

    /// Bytes whose number stands in one byte before them.
    fn short(&mut self) -> Option<&'a [u8]> {
        let [n] = *self.take()?;
        self.bytes(n.into())
    }

    /// Bytes whose number stands in two bytes before them.
    fn long(&mut self) -> Option<&'a [u8]> {
        let n = self.word()?;
        self.bytes(n.into())
    }

    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }
}

/// Any bytes as a segment's payload: everything in it comes to an end and lies inside. Panics where
/// that is not so.
#[cfg(any(test, fuzzing))]
pub fn fuzz_tls(bytes: &[u8]) {
    let Some(tls) = Tls::new(bytes) else { return };
    assert!(CONTENT_TYPES.contains(&tls.content_type()));
    let Some(hello) = tls.hello() else { return };
    let held: usize = hello.protocols().map(|name| name.len() + 1).sum();
    let name = hello.server_name().map_or(0, <[u8]>::len);
    assert!(held.max(name) + HEADER_LEN < bytes.len());
    assert!(hello.version().is_ok() || hello.extension(SUPPORTED_VERSIONS) == Err(Cut));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::messages::client_hello;
    use proptest::prelude::*;

    fn hello(bytes: &[u8]) -> Option<Hello<'_>> {
        Tls::new(bytes)?.hello()
    }

    #[test]
    fn reads_a_client_hello() {
        let bytes = client_hello("www.example.org", &["h2", "http/1.1"], &[0x2a2a, 0x0304, 0x0303]);
        assert_eq!(Tls::new(&bytes).unwrap().content_type(), HANDSHAKE);
        let hello = hello(&bytes).unwrap();
        assert_eq!((hello.kind(), hello.version()), (CLIENT_HELLO, Ok(0x0304)));
        assert_eq!(hello.server_name(), Some(&b"www.example.org"[..]));
        assert_eq!(hello.protocols().collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
        assert_eq!(hello.extension(99), Ok(None));
    }

    #[test]
    fn reads_a_server_hello() {
        let mut bytes = vec![22, 3, 3, 0, 53, 2, 0, 0, 49, 3, 3];
        bytes.extend([7; 32]);
        bytes.extend([0, 0x13, 0x01, 0, 0, 9, 0, 43, 0, 2, 3, 4, 0, 16, 0]);
        let cut = hello(&bytes[..bytes.len()]).unwrap();
        assert_eq!((cut.kind(), cut.version()), (SERVER_HELLO, Ok(0x0304)));
        assert_eq!(cut.extension(ALPN), Err(Cut));
        // Of TLS 1.2, without any extensions.
        let mut bytes = vec![22, 3, 3, 0, 42, 2, 0, 0, 38, 3, 3];
        bytes.extend([7; 32]);
        bytes.extend([0, 0xc0, 0x2f, 0]);
        let old = hello(&bytes).unwrap();
        assert_eq!((old.version(), old.extension(ALPN)), (Ok(0x0303), Ok(None)));
    }

    #[test]
    fn what_is_beyond_a_cut_is_not_said_to_be_missing() {
        let bytes = client_hello("a.example", &["h2"], &[0x0304]);
        let mut known = 0;
        for n in 0..bytes.len() {
            let Some(hello) = hello(&bytes[..n]) else { continue };
            assert!(hello.version().is_err(), "versions come last: {n}");
            known += usize::from(hello.server_name().is_some());
            assert!(hello.server_name().is_none_or(|name| name == b"a.example"));
        }
        assert!(known > 0);
        assert!(hello(&bytes).unwrap().version().is_ok());
    }

    #[test]
    fn a_hello_after_a_change_of_cipher_is_found() {
        let hello = client_hello("a.example", &["h2"], &[0x0304]);
        for minor in 0..=4 {
            let both = [&[20, 3, minor, 0, 1, 1][..], &hello].concat();
            assert_eq!(after_change_cipher_spec(&both), hello);
            assert_eq!(Tls::new(&both).unwrap().content_type(), CHANGE_CIPHER_SPEC);
        }
        assert_eq!(after_change_cipher_spec(&[20, 3, 3, 0, 1, 1]), b"");
        let others: [&[u8]; 8] = [
            &[],
            &[20, 3, 3, 0, 1],
            &[21, 3, 3, 0, 1, 1, 22],
            &[20, 2, 3, 0, 1, 1, 22],
            &[20, 3, 5, 0, 1, 1, 22],
            &[20, 3, 3, 0, 2, 1, 22],
            &[20, 3, 3, 0, 1, 2, 22],
            &hello,
        ];
        for other in others {
            assert_eq!(after_change_cipher_spec(other), other);
        }
    }

    #[test]
    fn other_bytes_are_no_record() {
        assert!(Tls::new(b"GET / HTTP/1.1\r\n").is_none());
        assert!(Tls::new(&[22, 3, 1, 0]).is_none());
        assert!(Tls::new(&[22, 2, 0, 0, 9, 1]).is_none());
        assert!(Tls::new(&[22, 3, 5, 0, 9, 1]).is_none());
        assert!(Tls::new(&[22, 3, 3, 0x60, 0, 1]).is_none());
        assert!(Tls::new(&[23, 3, 3, 0, 9, 1]).is_some_and(|tls| tls.hello().is_none()));
        assert!(hello(&[22, 3, 3, 0, 9, 1, 0, 0, 5, 9, 9]).is_none(), "encrypted");
    }

    proptest! {
        #[test]
        fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            fuzz_tls(&bytes);
        }

        #[test]
        fn mutated_hellos_hold(
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = client_hello("www.example.org", &["h2", "http/1.1"], &[0x0304]);
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            fuzz_tls(&bytes[..cut.index(bytes.len() + 1)]);
        }
    }
}
