//! The messages by a socket between a run that processes a partition and the process that carries
//! its records and rows: frames of a length (u32, little-endian), a kind and its bytes.

use crate::limits::FRAME_MAX;
use std::io::{self, Read, Write};

/// Tells the run something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToWorker<'a> {
    /// The watermark before the first record, if there was one.
    Start(Option<i64>),
    /// A record of packets.
    Record {
        /// Its offset.
        offset: i64,
        /// Whether its rows are new; otherwise it only rebuilds state.
        is_live: bool,
        /// Its value.
        value: &'a [u8],
    },
    /// The next record should be the first of the run that captured: packets before it are missing.
    First,
    /// The run that captured ended with the records before, though it did not say so.
    Over,
}

/// Tells of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromWorker {
    /// A row.
    Row {
        /// Its key, if its output has one.
        key: Option<Vec<u8>>,
        /// A JSON object.
        value: Vec<u8>,
    },
    /// The head of the partial results to come, as JSON.
    Head(Vec<u8>),
    /// A message of partial results, whose epoch and number are not those of its probe yet.
    Message(Vec<u8>),
    /// A record is processed, and all of its rows were before.
    Mark(Mark),
    /// The run has ended, and the rows before are its last: with the record that the run which
    /// captured ended with, if there is one. That record is not marked by itself, since it is
    /// processed only when the last windows are out.
    Finished(Option<Mark>),
    /// The run can't go on; says why.
    Refused(String),
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The record that is processed.
    pub offset: i64,
    /// The first record from which state would have to be rebuilt, ...
    pub from: i64,
    /// ... and the watermark before it, if there was one.
    pub at: Option<i64>,
    /// Packets of the record.
    pub packets: u32,
    /// Packets of records that are missing before it.
    pub missing: u64,
}

/// Where the value of a record begins in the bytes of its frame.
pub const VALUE_AT: usize = 10;

const START: u8 = 0;
const RECORD: u8 = 1;
const OVER: u8 = 2;
const FIRST: u8 = 3;
const ROW: u8 = 16;
const MARK: u8 = 17;
const FINISHED: u8 = 18;
const REFUSED: u8 = 19;
const HEAD: u8 = 20;
const MESSAGE: u8 = 21;

/// No time, or no key.
const NONE_TIME: i64 = i64::MIN;
const NONE_KEY: u32 = u32::MAX;

fn frame(kind: u8, parts: &[&[u8]], to: &mut impl Write) -> io::Result<()> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let len = u32::try_from(len + 1).ok().filter(|len| *len as usize <= FRAME_MAX);
    let len = len.ok_or_else(|| io::Error::other("a row or message has more than 256 MiB"))?;
    to.write_all(&len.to_le_bytes())?;
    to.write_all(&[kind])?;
    parts.iter().try_for_each(|part| to.write_all(part))
}

/// Whether `bytes` begin with a whole frame.
pub fn starts_with_frame(bytes: &[u8]) -> bool {
    let front = bytes.split_first_chunk();
    front.is_some_and(|(len, rest)| rest.len() >= u32::from_le_bytes(*len) as usize)
}

/// Reads a frame into `bytes`; `None` at the end.
fn read(from: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Option<u8>> {
    let mut len = [0; 4];
    match from.read_exact(&mut len) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let len = u32::from_le_bytes(len) as usize;
    if len == 0 || len > FRAME_MAX {
        return Err(io::Error::other(format!("a frame would have {len} bytes")));
    }
    bytes.resize(len, 0);
    from.read_exact(bytes)?;
    Ok(Some(bytes[0]))
}

fn number(bytes: &[u8], at: usize) -> Option<i64> {
    bytes.get(at..)?.first_chunk().map(|chunk| i64::from_le_bytes(*chunk))
}

fn unknown() -> io::Error {
    io::Error::other("a frame of another kind")
}

impl<'a> ToWorker<'a> {
    /// Writes it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match *self {
            ToWorker::Start(at) => frame(START, &[&at.unwrap_or(NONE_TIME).to_le_bytes()], to),
            ToWorker::Record { offset, is_live, value } => {
                frame(RECORD, &[&offset.to_le_bytes(), &[u8::from(is_live)], value], to)
            }
            ToWorker::First => frame(FIRST, &[], to),
            ToWorker::Over => frame(OVER, &[], to),
        }
    }

    /// Reads one into `bytes`; `None` at the end.
    ///
    /// # Errors
    /// Those of the reader, and of frames that are none.
    pub fn read(from: &mut impl Read, bytes: &'a mut Vec<u8>) -> io::Result<Option<ToWorker<'a>>> {
        let Some(kind) = read(from, bytes)? else { return Ok(None) };
        let bytes = &bytes[1..];
        let read = match kind {
            START => number(bytes, 0).map(|at| ToWorker::Start(time(at))),
            RECORD => number(bytes, 0).filter(|_| bytes.len() > 8).map(|offset| {
                // The kind of the frame is not among these bytes.
                let (is_live, value) = (bytes[8] != 0, &bytes[VALUE_AT - 1..]);
                ToWorker::Record { offset, is_live, value }
            }),
            FIRST => Some(ToWorker::First),
            OVER => Some(ToWorker::Over),
            _ => None,
        };
        read.map(Some).ok_or_else(unknown)
    }
}

fn time(at: i64) -> Option<i64> {
    (at != NONE_TIME).then_some(at)
}

impl FromWorker {
    /// Writes a row.
    ///
    /// # Errors
    /// Those of the writer, and if the row is too long.
    pub fn write_row(key: Option<&[u8]>, value: &[u8], to: &mut impl Write) -> io::Result<()> {
        let len = key.map_or(NONE_KEY, |key| key.len() as u32);
        frame(ROW, &[&len.to_le_bytes(), key.unwrap_or_default(), value], to)
    }

    /// Writes a message.
    ///
    /// # Errors
    /// Those of the writer, and if the message is too long.
    pub fn write_message(message: &[u8], to: &mut impl Write) -> io::Result<()> {
        frame(MESSAGE, &[message], to)
    }

    /// Writes it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            FromWorker::Row { key, value } => FromWorker::write_row(key.as_deref(), value, to),
            FromWorker::Mark(mark) => frame(MARK, &[&mark_bytes(mark)], to),
            FromWorker::Head(json) => frame(HEAD, &[json], to),
            FromWorker::Message(message) => FromWorker::write_message(message, to),
            FromWorker::Finished(None) => frame(FINISHED, &[], to),
            FromWorker::Finished(Some(mark)) => frame(FINISHED, &[&mark_bytes(mark)], to),
            FromWorker::Refused(why) => frame(REFUSED, &[why.as_bytes()], to),
        }
    }

    /// Reads one; `None` at the end.
    ///
    /// # Errors
    /// Those of the reader, and of frames that are none.
    pub fn read(from: &mut impl Read) -> io::Result<Option<FromWorker>> {
        let mut bytes = Vec::new();
        let Some(kind) = read(from, &mut bytes)? else { return Ok(None) };
        let bytes = &bytes[1..];
        let read = match kind {
            ROW => row(bytes),
            MARK => mark(bytes).map(FromWorker::Mark),
            HEAD => Some(FromWorker::Head(bytes.to_vec())),
            MESSAGE => Some(FromWorker::Message(bytes.to_vec())),
            FINISHED if bytes.is_empty() => Some(FromWorker::Finished(None)),
            FINISHED => mark(bytes).map(|mark| FromWorker::Finished(Some(mark))),
            REFUSED => Some(FromWorker::Refused(String::from_utf8_lossy(bytes).into_owned())),
            _ => None,
        };
        read.map(Some).ok_or_else(unknown)
    }
}

fn row(bytes: &[u8]) -> Option<FromWorker> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let (key, value) = match u32::from_le_bytes(*len) {
        NONE_KEY => (None, rest),
        len => rest.split_at_checked(len as usize).map(|(key, value)| (Some(key), value))?,
    };
    Some(FromWorker::Row { key: key.map(<[u8]>::to_vec), value: value.to_vec() })
}

fn mark_bytes(mark: &Mark) -> Vec<u8> {
    let at = mark.at.unwrap_or(NONE_TIME);
    let times = [mark.offset, mark.from, at].map(i64::to_le_bytes);
    let counts = [u64::from(mark.packets), mark.missing].map(u64::to_le_bytes);
    [times.as_flattened(), counts.as_flattened()].concat()
}

fn mark(bytes: &[u8]) -> Option<Mark> {
    Some(Mark {
        offset: number(bytes, 0)?,
        from: number(bytes, 8)?,
        at: time(number(bytes, 16)?),
        packets: u32::try_from(number(bytes, 24)?).ok()?,
        missing: number(bytes, 32)?.cast_unsigned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive() {
        let value: &[u8] = b"WPK1";
        let all = [
            ToWorker::Start(None),
            ToWorker::Start(Some(-5)),
            ToWorker::Record { offset: i64::MAX, is_live: true, value },
            ToWorker::Record { offset: 0, is_live: false, value: b"" },
            ToWorker::Over,
        ];
        let mut bytes = Vec::new();
        all.iter().for_each(|one| one.write(&mut bytes).expect("memory takes it"));
        let (mut from, mut buffer) = (&bytes[..], Vec::new());
        for one in all {
            assert_eq!(ToWorker::read(&mut from, &mut buffer).expect("a frame"), Some(one));
        }
        assert_eq!(ToWorker::read(&mut from, &mut Vec::new()).expect("the end"), None);
    }

    #[test]
    fn answers_arrive() {
        let row = |key: Option<&[u8]>| FromWorker::Row {
            key: key.map(<[u8]>::to_vec),
            value: b"{}".to_vec(),
        };
        let mark = Mark { offset: 7, from: 3, at: Some(i64::MAX), packets: u32::MAX, missing: 1 };
        let all = [
            row(None),
            row(Some(b"")),
            row(Some(b"k")),
            FromWorker::Mark(mark),
            FromWorker::Mark(Mark { at: None, ..mark }),
            FromWorker::Head(b"{}".to_vec()),
            FromWorker::Message(b"WPR2".to_vec()),
            FromWorker::Finished(None),
            FromWorker::Finished(Some(mark)),
            FromWorker::Refused("no".to_owned()),
        ];
        let mut bytes = Vec::new();
        all.iter().for_each(|one| one.write(&mut bytes).expect("memory takes it"));
        let mut from = &bytes[..];
        for one in all {
            assert_eq!(FromWorker::read(&mut from).expect("a frame"), Some(one));
        }
        assert_eq!(FromWorker::read(&mut from).expect("the end"), None);
    }

    #[test]
    fn frames_at_fault_are_refused() {
        for bytes in [
            &[0, 0, 0, 0][..],
            &[0xff; 4],
            &[2, 0, 0, 0, MARK],
            &[1, 0, 0, 0, MARK],
            &[1, 0, 0, 0, 99],
            &[6, 0, 0, 0, ROW, 9, 0, 0, 0, 0],
        ] {
            assert!(FromWorker::read(&mut &bytes[..]).is_err(), "{bytes:?}");
            assert!(ToWorker::read(&mut &bytes[..], &mut Vec::new()).is_err(), "{bytes:?}");
        }
    }
}
