//! A probe stream as bytes: four bytes that name the format, the head with its length, and messages
//! with theirs.

use crate::head::ProbeHead;
use crate::limits::{STREAM_HEAD_MAX, STREAM_MESSAGE_MAX};
use std::fmt;
use std::io::{self, Read, Write};
use weir_engine::exchange::{Body, Message};

/// How each stream begins: Weir's probe stream, version 1.
const MAGIC: [u8; 4] = *b"WPS1";

/// In place of the length of a message: of this probe there is nothing further for now. As
/// [`MAGIC`], it is none of a message that is allowed.
const PAUSE: [u8; 4] = *b"WPSP";

/// Messages that say how far a probe is are no longer than this.
const MARK_BYTES: usize = 256;

/// Writes a probe stream.
pub struct ProbeWriter<W> {
    to: W,
}

impl<W: Write> ProbeWriter<W> {
    /// Begins a stream, and flushes its head, for which a reader waits.
    ///
    /// # Errors
    /// Those of the writer, and one for a head that is too long.
    pub fn new(to: W, head: &ProbeHead) -> io::Result<ProbeWriter<W>> {
        let mut writer = ProbeWriter { to };
        writer.begin_life(head)?;
        Ok(writer)
    }

    /// Writes what comes after a head, or heads themselves.
    pub fn without_head(to: W) -> ProbeWriter<W> {
        ProbeWriter { to }
    }

    /// The writer below.
    pub fn into_inner(self) -> W {
        self.to
    }

    /// Begins the next life of the probe, and flushes its head.
    ///
    /// # Errors
    /// Those of the writer, and one for a head that is too long.
    pub fn begin_life(&mut self, head: &ProbeHead) -> io::Result<()> {
        self.to.write_all(&head.bytes()?)?;
        self.to.flush()
    }

    /// Says that there is nothing further for now: neither messages nor another life.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn pause(&mut self) -> io::Result<()> {
        self.to.write_all(&PAUSE)?;
        self.to.flush()
    }

    /// Hands over what was written to the writer below.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Writes a message. One that says how far the probe is flushes those before it, too.
    ///
    /// # Errors
    /// Those of the writer, and one for a message that is too long: it holds one large group.
    pub fn message(&mut self, message: &[u8]) -> io::Result<()> {
        if message.len() > STREAM_MESSAGE_MAX {
            let limit = STREAM_MESSAGE_MAX >> 20;
            return Err(io::Error::other(format!("one group has more than {limit} MiB")));
        }
        write(&mut self.to, message)?;
        let read = || Message::read(message).map(|message| message.body);
        match message.len() <= MARK_BYTES && matches!(read(), Ok(Body::Closed(_) | Body::End(_))) {
            true => self.to.flush(),
            false => Ok(()),
        }
    }
}

impl ProbeHead {
    /// The head as it begins a stream, or a life within one.
    ///
    /// # Errors
    /// If it is too long.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let json = serde_json::to_vec(self)?;
        if json.len() > STREAM_HEAD_MAX {
            return Err(io::Error::other("the head of the stream is too long"));
        }
        let mut bytes = MAGIC.to_vec();
        write(&mut bytes, &json)?;
        Ok(bytes)
    }
}

fn write(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    to.write_all(&len.to_le_bytes())?;
    to.write_all(bytes)
}

/// Why a probe stream can't be read on.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamFault {
    /// The system says so.
    Io(io::Error),
    /// It begins with other bytes.
    Magic(Vec<u8>),
    /// Its head is none; says why.
    Head(String),
    /// It breaks off within its head, or within a message, at this byte.
    Cut(u64),
    /// A message that begins at this byte would have so many bytes.
    Length(u64, u32),
}

impl fmt::Display for StreamFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamFault::Io(e) => e.fmt(f),
            StreamFault::Magic(found) if found.starts_with(b"WPS") => write!(
                f,
                "the stream has version `{}` of the format, and this Weir reads `WPS1`",
                found.escape_ascii()
            ),
            StreamFault::Magic(found) if found.is_empty() => {
                f.write_str("it is empty: no probe has written to it")
            }
            StreamFault::Magic(found) => write!(
                f,
                "this is no stream of a probe (weir run --publish): it begins with `{}`, not \
                 `WPS1`",
                found.escape_ascii()
            ),
            StreamFault::Head(why) => write!(f, "the head of the stream: {why}"),
            StreamFault::Cut(at) => write!(f, "the stream breaks off at byte {at}"),
            StreamFault::Length(at, len) => write!(
                f,
                "at byte {at} of the stream a message would have {len} bytes, and at most \
                 {STREAM_MESSAGE_MAX} are possible"
            ),
        }
    }
}

impl std::error::Error for StreamFault {}

/// The next item of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamItem {
    /// A message, which the reader has put where the caller said.
    Message,
    /// Another life of the probe begins; or the same head comes again.
    Head(ProbeHead),
    /// There is nothing further for now.
    Pause,
    /// The stream ends.
    End,
}

/// Reads a probe stream.
pub struct ProbeReader<R> {
    from: R,
    at: u64,
}

impl<R: Read> ProbeReader<R> {
    /// Reads the head of a stream.
    ///
    /// # Errors
    /// Where this is no stream of a probe.
    pub fn new(from: R) -> Result<(ProbeReader<R>, ProbeHead), StreamFault> {
        let mut reader = ProbeReader { from, at: 0 };
        let mut bytes = Vec::new();
        reader.bytes(MAGIC.len(), &mut bytes)?;
        if bytes != MAGIC {
            return Err(StreamFault::Magic(bytes));
        }
        let head = reader.head()?;
        Ok((reader, head))
    }

    /// Reads a head after its first bytes.
    fn head(&mut self) -> Result<ProbeHead, StreamFault> {
        let len = self.length()?.ok_or(StreamFault::Cut(self.at))?;
        if len as usize > STREAM_HEAD_MAX {
            return Err(StreamFault::Head(format!("it would have {len} bytes")));
        }
        let mut bytes = Vec::new();
        self.whole(len, &mut bytes)?;
        ProbeHead::read(&bytes).map_err(StreamFault::Head)
    }

    /// Reads what comes next: the bytes of a message instead of what `message` holds.
    ///
    /// # Errors
    /// Where the stream breaks off, or can't be read.
    pub fn next(&mut self, message: &mut Vec<u8>) -> Result<StreamItem, StreamFault> {
        let begin = self.at;
        let Some(len) = self.length()? else { return Ok(StreamItem::End) };
        match len.to_le_bytes() {
            MAGIC => self.head().map(StreamItem::Head),
            PAUSE => Ok(StreamItem::Pause),
            _ if len as usize > STREAM_MESSAGE_MAX => Err(StreamFault::Length(begin, len)),
            _ => self.whole(len, message).map(|()| StreamItem::Message),
        }
    }

    /// The length of what comes; `None` at the end of the stream.
    fn length(&mut self) -> Result<Option<u32>, StreamFault> {
        let mut bytes = Vec::new();
        self.bytes(4, &mut bytes)?;
        match <[u8; 4]>::try_from(&bytes[..]) {
            Ok(len) => Ok(Some(u32::from_le_bytes(len))),
            Err(_) if bytes.is_empty() => Ok(None),
            Err(_) => Err(StreamFault::Cut(self.at)),
        }
    }

    fn whole(&mut self, len: u32, into: &mut Vec<u8>) -> Result<(), StreamFault> {
        self.bytes(len as usize, into)?;
        match into.len() == len as usize {
            true => Ok(()),
            false => Err(StreamFault::Cut(self.at)),
        }
    }

    /// Reads so many bytes, or all that there are. Memory grows with what comes, not with what the
    /// stream says will come.
    fn bytes(&mut self, len: usize, into: &mut Vec<u8>) -> Result<(), StreamFault> {
        into.clear();
        let read = (&mut self.from).take(len as u64).read_to_end(into);
        self.at += into.len() as u64;
        read.map(drop).map_err(StreamFault::Io)
    }
}

/// Reads bytes as a probe stream, and its messages: for fuzzing.
#[cfg(any(test, fuzzing))]
pub fn fuzz_probe_stream(bytes: &[u8]) {
    let Ok((mut reader, head)) = ProbeReader::new(bytes) else { return };
    let mut again = ProbeWriter::new(Vec::new(), &head).expect("what was read can be written");
    let mut message = Vec::new();
    loop {
        let written = match reader.next(&mut message) {
            Ok(StreamItem::Message) => again.message(&message),
            Ok(StreamItem::Head(head)) => again.begin_life(&head),
            Ok(StreamItem::Pause) => again.pause(),
            Ok(StreamItem::End) | Err(_) => break,
        };
        written.expect("what was read can be written");
    }
    let (_, back) = ProbeReader::new(&again.to[..]).expect("what was written can be read");
    assert_eq!(back, head);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::PacketRules;

    fn head() -> ProbeHead {
        ProbeHead {
            probe: "north:eth0".to_owned(),
            epoch: u64::MAX,
            weir: "0.1.0".to_owned(),
            fingerprint: ProbeHead::fingerprint_text(u128::MAX),
            rules: PacketRules { headers: "outer".to_owned(), fragments: false, lateness_ns: 0 },
            resumes: false,
            clock: None,
        }
    }

    fn stream(messages: &[&[u8]]) -> Vec<u8> {
        let mut writer = ProbeWriter::new(Vec::new(), &head()).expect("memory takes it");
        for message in messages {
            writer.message(message).expect("memory takes it");
        }
        writer.to
    }

    #[test]
    fn what_is_written_is_read() {
        let long = vec![7; 100_000];
        let bytes = stream(&[b"one", b"", &long]);
        let (mut reader, found) = ProbeReader::new(&bytes[..]).expect("a stream");
        assert_eq!(found, head());
        let mut message = Vec::new();
        for expected in [&b"one"[..], b"", &long] {
            assert_eq!(reader.next(&mut message).expect("a message"), StreamItem::Message);
            assert_eq!(message, expected);
        }
        assert_eq!(reader.next(&mut message).expect("the end"), StreamItem::End);
    }

    #[test]
    fn a_stream_holds_several_lives() {
        let next = ProbeHead { epoch: 7, ..head() };
        let mut bytes = stream(&[b"one"]);
        let mut writer = ProbeWriter::new(&mut bytes, &next).expect("memory takes it");
        writer.message(b"two").expect("memory takes it");
        writer.pause().expect("memory takes it");
        writer.begin_life(&head()).expect("memory takes it");
        let (mut reader, _) = ProbeReader::new(&bytes[..]).expect("a stream");
        let mut message = Vec::new();
        let items = [
            StreamItem::Message,
            StreamItem::Head(next),
            StreamItem::Message,
            StreamItem::Pause,
            StreamItem::Head(head()),
            StreamItem::End,
        ];
        for item in items {
            assert_eq!(reader.next(&mut message).expect("all is there"), item);
        }
        assert_eq!(message, b"two");
        for len in bytes.len() - 60..bytes.len() {
            let (mut reader, _) = ProbeReader::new(&bytes[..len]).expect("the first head");
            let end = (0..5).map(|_| reader.next(&mut message)).last();
            assert!(matches!(end, Some(Err(StreamFault::Cut(at))) if at == len as u64), "{len}");
        }
    }

    #[test]
    fn a_stream_that_breaks_off_says_where() {
        let bytes = stream(&[b"one", b"two"]);
        for len in 0..bytes.len() {
            let Ok((mut reader, _)) = ProbeReader::new(&bytes[..len]) else { continue };
            let (mut message, mut whole) = (Vec::new(), 0);
            let end = loop {
                match reader.next(&mut message) {
                    Ok(StreamItem::Message) => whole += 1,
                    end => break end,
                }
            };
            let left = bytes.len() - len;
            match (left, end) {
                (7 | 14, Ok(_)) => {}
                (1..7, Err(StreamFault::Cut(at))) => assert_eq!((whole, at), (1, len as u64)),
                (8..14, Err(StreamFault::Cut(at))) => assert_eq!((whole, at), (0, len as u64)),
                other => panic!("{len}: {other:?}"),
            }
        }
    }

    #[test]
    fn other_bytes_are_refused_by_what_they_are() {
        let fault = |bytes: &[u8]| match ProbeReader::new(bytes) {
            Ok(_) => panic!("it is read"),
            Err(fault) => fault.to_string(),
        };
        assert!(fault(b"").contains("it is empty"));
        assert!(fault(b"{\"a\": 1}").contains("begins with `{\\\"a\\\"`, not `WPS1`"));
        assert!(fault(b"WPS2....").contains("has version `WPS2`"));
        assert!(fault(b"WPS1\xff\xff\xff\xff").contains("would have 4294967295 bytes"));
        assert!(fault(b"WPS1\x02\0\0\0{}").contains("missing field"));
        assert!(fault(b"WPS1\x02\0\0").contains("breaks off at byte 7"));
        let other = |change: fn(&mut ProbeHead)| {
            let mut head = head();
            change(&mut head);
            let bytes = ProbeWriter::new(Vec::new(), &head).expect("memory takes it").to;
            fault(&bytes)
        };
        assert!(other(|head| head.probe = String::new()).contains("1 to 255 bytes"));
        assert!(other(|head| head.probe = "a\x1b[2J".to_owned()).contains("control characters"));
        assert!(other(|head| head.weir = "x".repeat(65)).contains("too long"));
        assert!(other(|head| head.rules.lateness_ns = -1).contains("can't be -1 ns"));
    }

    #[test]
    fn a_message_may_not_say_that_it_is_endless() {
        let mut bytes = stream(&[]);
        let begin = bytes.len() as u64;
        bytes.extend_from_slice(&u32::MAX.to_le_bytes());
        let (mut reader, _) = ProbeReader::new(&bytes[..]).expect("a stream");
        match reader.next(&mut Vec::new()) {
            Err(StreamFault::Length(at, u32::MAX)) => assert_eq!(at, begin),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn damaged_streams_are_read_without_harm() {
        let bytes = stream(&[b"one", b"two"]);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                fuzz_probe_stream(&damaged);
            }
        }
    }
}
