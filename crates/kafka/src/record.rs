//! The contents of a record: a head, a message, a part of one, or the word that a life was cut.
//! docs/partials.md, "In Kafka", has the format.

use crate::limits::PART_BYTES;
use std::fmt;
use weir_cluster::ProbeHead;
use weir_cluster::limits::{STREAM_HEAD_MAX, STREAM_MESSAGE_MAX};
use weir_engine::exchange::{Message, ProducerId, UnreadableMessage};

/// The header of each record: the epoch of its life, in decimal digits.
pub const EPOCH_HEADER: &str = "weir-epoch";

/// The header of a part of a message: `i/n`, from 1.
pub const PART_HEADER: &str = "weir-part";

/// The header of an end that the probe did not write, since it was cut: `cut`.
pub const END_HEADER: &str = "weir-end";

/// The header of a record which says that nothing waits for its probe until that sends again.
pub const RETIRE_HEADER: &str = "weir-retire";

/// The value of [`END_HEADER`].
pub const CUT: &str = "cut";

/// A record, as far as it matters.
#[derive(Clone, Copy, Default, Debug)]
pub struct RecordView<'a> {
    /// The name of the probe.
    pub key: &'a [u8],
    /// A head, a message, or a part of one.
    pub value: &'a [u8],
    /// The value of [`EPOCH_HEADER`], if there is one.
    pub epoch: Option<&'a [u8]>,
    /// The value of [`PART_HEADER`], if there is one.
    pub part: Option<&'a [u8]>,
    /// The value of [`END_HEADER`], if there is one.
    pub end: Option<&'a [u8]>,
}

/// The contents of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// A head.
    Head(ProbeHead),
    /// A whole message.
    Message {
        /// The epoch of its life.
        epoch: u64,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// The life of this epoch was cut: nothing of it comes after that.
    Cut(u64),
    /// A part of a message, of which more have to come.
    Part,
}

/// Why a record can't be used.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecordFault {
    /// It has no epoch, or one that is no number.
    Epoch,
    /// Its value is neither a head nor a message; says how it begins.
    Foreign(Vec<u8>),
    /// Its head is none; says why.
    Head(String),
    /// It names a part in another way than `i/n`, or one that there can't be.
    Part(String),
    /// It is a part of a message whose earlier parts did not come.
    Torn,
    /// The parts of a message are more than a message may have.
    Long,
    /// Its message can't be read.
    Message(UnreadableMessage),
    /// It is of another probe or another life than it says.
    Other,
    /// It begins a life which, by the clock of its probe, is before one that has begun.
    Earlier,
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordFault::Epoch => write!(f, "it has no header `{EPOCH_HEADER}` that is a number"),
            RecordFault::Foreign(begin) => write!(
                f,
                "it is no record of a probe: it begins with `{}`, not with `WPS1` or `WPR2`",
                begin.escape_ascii()
            ),
            RecordFault::Head(why) => write!(f, "its head: {why}"),
            RecordFault::Part(part) => write!(f, "its header `{PART_HEADER}` can't be `{part}`"),
            RecordFault::Torn => f.write_str("the parts of its message before it did not come"),
            RecordFault::Long => {
                write!(f, "its message would have more than {} MiB", STREAM_MESSAGE_MAX >> 20)
            }
            RecordFault::Message(why) => why.fmt(f),
            RecordFault::Other => {
                f.write_str("it holds a message of another probe or life than it says")
            }
            RecordFault::Earlier => f.write_str(
                "its run began, by the clock of the probe, before the run before it, so nothing \
                 waits for its windows: set that clock, and start the probe again",
            ),
        }
    }
}

impl std::error::Error for RecordFault {}

/// Cuts a message into the values of records, each with the value of its [`PART_HEADER`].
pub fn parts(message: &[u8]) -> impl Iterator<Item = (Option<String>, &[u8])> {
    let n = message.len().div_ceil(PART_BYTES).max(1);
    let empty = message.is_empty().then_some(message);
    (1..).zip(message.chunks(PART_BYTES).chain(empty)).map(move |(i, part)| {
        let header = (n > 1).then(|| format!("{i}/{n}"));
        (header, part)
    })
}

/// Puts the records of one probe together again.
pub struct Assembler {
    /// The number of the probe in messages.
    probe: u128,
    /// A message of which not all parts have come.
    pending: Option<UnfinishedMessage>,
    /// Messages whose last parts never came.
    torn: u64,
}

/// A message of which not all parts have come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnfinishedMessage {
    /// The epoch of its life.
    pub epoch: u64,
    /// Parts that have come.
    pub have: u64,
    /// Parts that there are.
    pub n: u64,
    /// The bytes of those that have come.
    pub bytes: Vec<u8>,
}

impl Assembler {
    /// For the records of a probe.
    pub fn new(probe: &str) -> Assembler {
        let probe = ProducerId::named(probe, 0).probe;
        Assembler { probe, pending: None, torn: 0 }
    }

    /// Messages whose last parts never came.
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// The message of which parts have come, and others have not.
    pub fn unfinished(&self) -> Option<&UnfinishedMessage> {
        self.pending.as_ref()
    }

    /// Goes on with a message that another [had not finished](Assembler::unfinished).
    pub fn resume(&mut self, message: UnfinishedMessage) {
        self.pending = Some(message);
    }

    /// Takes the next record of the probe.
    ///
    /// # Errors
    /// If it can't be used. The next one can.
    pub fn take(&mut self, record: &RecordView<'_>) -> Result<Content, RecordFault> {
        let epoch = record.epoch.and_then(number).ok_or(RecordFault::Epoch)?;
        let Some(part) = record.part else {
            self.forget();
            return self.whole(epoch, record);
        };
        let (i, n) = part_of(part)?;
        if i == 1 {
            self.forget();
            self.pending = Some(UnfinishedMessage { epoch, have: 0, n, bytes: Vec::new() });
        }
        let pending = self.pending.as_mut().ok_or(RecordFault::Torn)?;
        if (pending.epoch, pending.n) != (epoch, n) || i > pending.have + 1 {
            self.forget();
            return Err(RecordFault::Torn);
        }
        if i <= pending.have {
            // It comes again.
            return Ok(Content::Part);
        }
        if pending.bytes.len() + record.value.len() > STREAM_MESSAGE_MAX {
            self.forget();
            return Err(RecordFault::Long);
        }
        pending.bytes.extend_from_slice(record.value);
        pending.have = i;
        if i < n {
            return Ok(Content::Part);
        }
        let bytes = self.pending.take().map(|pending| pending.bytes).unwrap_or_default();
        self.message(epoch, &bytes)?;
        Ok(Content::Message { epoch, bytes })
    }

    /// Forgets a message of which parts are missing.
    fn forget(&mut self) {
        self.torn += u64::from(self.pending.take().is_some());
    }

    fn whole(&self, epoch: u64, record: &RecordView<'_>) -> Result<Content, RecordFault> {
        let value = record.value;
        if value.starts_with(b"WPS1") {
            return self.head(epoch, value).map(Content::Head);
        }
        if !value.starts_with(b"WPR") {
            return Err(RecordFault::Foreign(value[..value.len().min(8)].to_vec()));
        }
        self.message(epoch, value)?;
        match record.end {
            Some(end) if end == CUT.as_bytes() => Ok(Content::Cut(epoch)),
            _ => Ok(Content::Message { epoch, bytes: value.to_vec() }),
        }
    }

    fn head(&self, epoch: u64, value: &[u8]) -> Result<ProbeHead, RecordFault> {
        let (len, json) = value[4..].split_at_checked(4).ok_or_else(cut_head)?;
        let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]) as usize;
        if len > STREAM_HEAD_MAX || json.len() != len {
            return Err(cut_head());
        }
        let head = ProbeHead::read(json).map_err(RecordFault::Head)?;
        match head.id().probe == self.probe && head.epoch == epoch {
            true => Ok(head),
            false => Err(RecordFault::Other),
        }
    }

    fn message(&self, epoch: u64, bytes: &[u8]) -> Result<(), RecordFault> {
        let message = Message::read(bytes).map_err(RecordFault::Message)?;
        match (message.probe, message.epoch) == (self.probe, epoch) {
            true => Ok(()),
            false => Err(RecordFault::Other),
        }
    }
}

fn cut_head() -> RecordFault {
    RecordFault::Head("it has another length than it says".to_owned())
}

/// Decimal digits.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().all(u8::is_ascii_digit).then_some(text)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn part_of(text: &[u8]) -> Result<(u64, u64), RecordFault> {
    let most = STREAM_MESSAGE_MAX as u64;
    let mut halves = text.splitn(2, |b| *b == b'/').map(number);
    match (halves.next().flatten(), halves.next().flatten()) {
        (Some(i), Some(n)) if 0 < i && i <= n && n <= most => Ok((i, n)),
        _ => {
            let shown = &text[..text.len().min(32)];
            Err(RecordFault::Part(shown.escape_ascii().to_string()))
        }
    }
}

/// Takes bytes as the records of a probe: for fuzzing.
#[cfg(any(test, fuzzing))]
pub fn fuzz_records(bytes: &[u8]) {
    let mut assembler = Assembler::new("north");
    let mut rest = bytes;
    // Each record: flags, lengths of its texts, and the bytes of all.
    while let Some((front, after)) = rest.split_first_chunk::<4>() {
        let [flags, a, b, c] = *front;
        let mut at = after;
        let mut take = |len: usize| {
            let (taken, left) = at.split_at(len.min(at.len()));
            at = left;
            taken
        };
        let (epoch, part) = (take(usize::from(a % 24)), take(usize::from(b % 24)));
        let value = take(usize::from(c) << (flags >> 5));
        let record = RecordView {
            key: b"north",
            value,
            epoch: (flags & 1 != 0).then_some(epoch).or(Some(b"7")),
            part: (flags & 2 != 0).then_some(part),
            end: (flags & 4 != 0).then_some(CUT.as_bytes()),
        };
        match assembler.take(&record) {
            Ok(Content::Message { epoch, bytes }) => {
                let message = Message::read(&bytes).expect("it was read before");
                assert_eq!(message.epoch, epoch);
            }
            Ok(Content::Head(head)) => {
                let again = head.bytes().expect("what was read can be written");
                let epoch = head.epoch.to_string();
                let (value, epoch) = (&again[..], Some(epoch.as_bytes()));
                let record = RecordView { key: b"north", value, epoch, ..RecordView::default() };
                assert_eq!(assembler.take(&record), Ok(Content::Head(head)));
            }
            Ok(Content::Cut(_) | Content::Part) => {}
            Err(fault) => assert!(!fault.to_string().is_empty()),
        }
        rest = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{head, message};
    use proptest::prelude::*;

    fn record<'a>(value: &'a [u8], epoch: &'a str, part: Option<&'a str>) -> RecordView<'a> {
        let (epoch, part) = (Some(epoch.as_bytes()), part.map(str::as_bytes));
        RecordView { key: b"north", value, epoch, part, end: None }
    }

    fn whole(bytes: &[u8]) -> Result<Content, RecordFault> {
        Ok(Content::Message { epoch: 7, bytes: bytes.to_vec() })
    }

    #[test]
    fn heads_and_messages_are_read() {
        let mut assembler = Assembler::new("north");
        let bytes = head("north", 7).bytes().expect("a head");
        let taken = assembler.take(&record(&bytes, "7", None));
        assert_eq!(taken, Ok(Content::Head(head("north", 7))));
        let closed = message("north", 7, 3);
        assert_eq!(assembler.take(&record(&closed, "7", None)), whole(&closed));
        let end = crate::testing::end("north", 7, 4);
        let cut = RecordView { end: Some(b"cut"), ..record(&end, "7", None) };
        assert_eq!(assembler.take(&cut), Ok(Content::Cut(7)));
        assert_eq!(assembler.take(&record(&end, "7", None)), whole(&end), "to others it is an end");
    }

    #[test]
    fn parts_are_put_together() {
        for len in [0, 1, PART_BYTES - 1, PART_BYTES] {
            let message = vec![1; len];
            assert_eq!(parts(&message).collect::<Vec<_>>(), [(None, &message[..])]);
        }
        let long = crate::testing::long_message("north", 7, 2 * PART_BYTES + 5);
        let cut: Vec<_> =
            parts(&long).map(|(part, value)| (part.expect("a part"), value)).collect();
        assert_eq!(
            cut.iter().map(|(part, _)| part.as_str()).collect::<Vec<_>>(),
            ["1/3", "2/3", "3/3"]
        );
        let mut assembler = Assembler::new("north");
        let mut take = |i: usize| {
            let (part, value) = &cut[i - 1];
            assembler.take(&record(value, "7", Some(part)))
        };
        assert_eq!([take(1), take(2)], [Ok(Content::Part), Ok(Content::Part)]);
        assert_eq!(take(2), Ok(Content::Part), "it comes again");
        assert_eq!(take(3), whole(&long));
        assert_eq!(take(3), Err(RecordFault::Torn));
        // From the beginning again, and with a part that is missing.
        assert_eq!([take(1), take(1), take(2)].map(|part| part.is_ok()), [true; 3]);
        assert_eq!(take(3), whole(&long));
        assert_eq!([take(1), take(3), take(2)].map(|part| part.is_ok()), [true, false, false]);
        assert!(assembler.torn() >= 2);
    }

    #[test]
    fn a_message_without_end_is_forgotten() {
        let mut assembler = Assembler::new("north");
        assert_eq!(assembler.take(&record(b"WPR2", "7", Some("1/2"))), Ok(Content::Part));
        let closed = message("north", 8, 0);
        assert!(assembler.take(&record(&closed, "8", None)).is_ok());
        assert_eq!(assembler.torn(), 1);
        assert_eq!(assembler.take(&record(b"x", "7", Some("2/2"))), Err(RecordFault::Torn));
        // Memory is bounded, whatever parts say.
        let part = vec![0; STREAM_MESSAGE_MAX / 4 + 1];
        let many: Vec<_> =
            (1..=4).map(|i| assembler.take(&record(&part, "7", Some(&format!("{i}/9"))))).collect();
        assert_eq!(many[3], Err(RecordFault::Long));
    }

    #[test]
    fn what_is_no_record_of_the_probe_is_named() {
        let mut assembler = Assembler::new("north");
        let mut fault = |value: &[u8], epoch: Option<&str>, part: Option<&str>| {
            let epoch = epoch.map(str::as_bytes);
            let record = RecordView { epoch, ..record(value, "", part) };
            assembler.take(&record).expect_err("a fault").to_string()
        };
        let (ours, theirs) = (message("north", 7, 0), message("south", 7, 0));
        let bytes = head("north", 7).bytes().expect("a head");
        assert!(fault(&ours, None, None).contains("no header `weir-epoch`"));
        assert!(fault(&ours, Some("-1"), None).contains("no header `weir-epoch`"));
        assert!(fault(&ours, Some("99999999999999999999"), None).contains("no header"));
        assert!(
            fault(b"{\"a\": 1}", Some("7"), None).contains("begins with `{\\\"a\\\"`, not")
                || fault(b"{\"a\": 1}", Some("7"), None).contains("no record of a probe")
        );
        assert!(fault(b"", Some("7"), None).contains("no record of a probe"));
        assert!(fault(b"WPR3....", Some("7"), None).contains("version `WPR3`"));
        assert!(fault(&ours[..20], Some("7"), None).contains("breaks off"));
        assert!(fault(&theirs, Some("7"), None).contains("another probe or life"));
        assert!(fault(&ours, Some("8"), None).contains("another probe or life"));
        assert!(fault(&bytes, Some("8"), None).contains("another probe or life"));
        assert!(fault(&bytes[..7], Some("7"), None).contains("another length"));
        assert!(fault(&bytes[..bytes.len() - 1], Some("7"), None).contains("another length"));
        assert!(fault(b"WPS1\x02\0\0\0{}", Some("7"), None).contains("missing field"));
        for part in ["", "1", "0/1", "2/1", "1/x", "1/2/3", "/", "1/99999999999", "\u{1b}/1"] {
            assert!(fault(b"", Some("7"), Some(part)).contains("can't be"), "{part}");
        }
    }

    proptest! {
        #[test]
        fn records_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            fuzz_records(&bytes);
        }

        #[test]
        fn damaged_records_are_read_without_harm(at in 0usize..70, bit in 0u8..8, part in 0u8..4) {
            let closed = message("north", 7, 0);
            let mut bytes = vec![part, 1, 3, closed.len() as u8, b'7', b'1', b'/', b'1'];
            bytes.extend_from_slice(&closed);
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            fuzz_records(&bytes);
        }
    }
}
