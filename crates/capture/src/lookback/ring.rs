//! The last frames, one after the other in memory that is allocated once.
//!
//! Each is a record: a head of fixed length, then its bytes. Records follow one another up to the
//! end of the memory, where the next finds no room and goes to the start; those that are in its way
//! are forgotten, the oldest first. No record is cut in two.

use weir_packet::interface::CapturePoint;
use weir_packet::source::LinkType;

/// Bytes of the head of a record.
const HEAD: usize = 28;

/// A frame that is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KeptFrame<'a> {
    /// When, in nanoseconds since 1970.
    pub(super) ts: i64,
    /// Its length on the wire.
    pub(super) len: u32,
    pub(super) link: LinkType,
    /// The ports that it was said to belong to: see `FrameBatch::ports`.
    pub(super) ports: Option<[u16; 2]>,
    /// By which interface it came, and which way it went there.
    pub(super) point: CapturePoint,
    pub(super) bytes: &'a [u8],
}

/// Frames, the oldest first.
pub(super) struct FrameRing {
    memory: Vec<u8>,
    /// Where the oldest record starts.
    tail: usize,
    /// Where the next one goes, unless it finds no room there.
    head: usize,
    /// Where records end before they go on at the start.
    wrap: usize,
    records: usize,
    /// The number of the oldest record, of all that ever were.
    first: u64,
    /// The time of the frame that came last.
    newest: i64,
    /// The latest time of a frame that was forgotten.
    forgotten: Option<i64>,
}

/// Where somebody reads on, between calls in which records may have been forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingCursor {
    /// The number of the record that is read next.
    number: u64,
    /// Where it starts, if it and the one before it are there.
    at: usize,
    /// The number of the first record that is not read any more.
    end: u64,
}

impl FrameRing {
    /// Room for so many bytes. Memory is taken as frames come.
    pub(super) fn new(bytes: usize) -> FrameRing {
        let memory = vec![0; bytes];
        FrameRing {
            wrap: bytes,
            memory,
            tail: 0,
            head: 0,
            records: 0,
            first: 0,
            newest: 0,
            forgotten: None,
        }
    }

    /// The latest time of a frame that came and is there no more.
    pub(super) fn forgotten(&self) -> Option<i64> {
        self.forgotten
    }

    /// Keeps a frame.
    #[inline]
    pub(super) fn push(&mut self, frame: &KeptFrame<'_>) {
        let size = HEAD + frame.bytes.len();
        if size > self.memory.len() {
            self.forgotten = self.forgotten.max(Some(frame.ts));
            return;
        }
        let at = loop {
            match self.room(size) {
                Some(at) => break at,
                None => self.forget(),
            }
        };
        let record = &mut self.memory[at..at + size];
        let ports = frame.ports.unwrap_or_default();
        record[0..8].copy_from_slice(&frame.ts.to_le_bytes());
        record[8..12].copy_from_slice(&frame.len.to_le_bytes());
        record[12..16].copy_from_slice(&(frame.bytes.len() as u32).to_le_bytes());
        record[16..18].copy_from_slice(&frame.link.0.to_le_bytes());
        record[18..20].copy_from_slice(&u16::from(frame.ports.is_some()).to_le_bytes());
        record[20..22].copy_from_slice(&ports[0].to_le_bytes());
        record[22..24].copy_from_slice(&ports[1].to_le_bytes());
        record[24..28].copy_from_slice(&frame.point.word().to_le_bytes());
        record[HEAD..].copy_from_slice(frame.bytes);
        self.head = at + size;
        self.records += 1;
        self.newest = frame.ts;
    }

    /// Where a record of this size can go without another being forgotten.
    #[inline]
    fn room(&mut self, size: usize) -> Option<usize> {
        if self.records == 0 {
            (self.tail, self.head, self.wrap) = (0, 0, self.memory.len());
        } else if self.head <= self.tail {
            return (size <= self.tail - self.head).then_some(self.head);
        }
        if size <= self.memory.len() - self.head {
            return Some(self.head);
        }
        (size <= self.tail).then(|| {
            self.wrap = self.head;
            0
        })
    }

    /// Forgets the oldest frame.
    fn forget(&mut self) {
        let (frame, next) = self.record(self.tail);
        self.forgotten = self.forgotten.max(Some(frame.ts));
        self.tail = next;
        self.records -= 1;
        self.first += 1;
        if self.tail == self.wrap {
            (self.tail, self.wrap) = (0, self.memory.len());
        }
    }

    /// The record at a place, and where the next one is.
    fn record(&self, at: usize) -> (KeptFrame<'_>, usize) {
        let (head, rest) = self.memory[at..].split_at(HEAD);
        let u16_at = |i: usize| u16::from_le_bytes([head[i], head[i + 1]]);
        let u32_at = |i| u32::from(u16_at(i)) | u32::from(u16_at(i + 2)) << 16;
        let caplen = u32_at(12) as usize;
        let ts = u64::from(u32_at(0)) | u64::from(u32_at(4)) << 32;
        let kept = KeptFrame {
            ts: ts as i64,
            len: u32_at(8),
            link: LinkType(u16_at(16)),
            ports: (u16_at(18) != 0).then(|| [u16_at(20), u16_at(22)]),
            point: CapturePoint::of(u32_at(24)),
            bytes: &rest[..caplen],
        };
        (kept, at + HEAD + caplen)
    }

    /// A cursor at the first of the records that are there now. Later records are not read.
    pub(super) fn cursor(&self) -> RingCursor {
        RingCursor { number: 0, at: 0, end: self.first + self.records as u64 }
    }

    /// The times of the oldest frame and of the one that came last, if there is any.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        (self.records > 0).then_some((self.record(self.tail).0.ts, self.newest))
    }

    /// Calls `take` on the records from a cursor on, until it says `false` or there are no more.
    /// The cursor is moved; what was forgotten meanwhile is skipped. Says how many those were.
    pub(super) fn read_on(
        &self,
        cursor: &mut RingCursor,
        mut take: impl FnMut(KeptFrame<'_>) -> bool,
    ) -> u64 {
        let skipped = self.first.saturating_sub(cursor.number);
        cursor.number = cursor.number.max(self.first);
        if cursor.number == self.first {
            cursor.at = self.tail;
        }
        let end = cursor.end.min(self.first + self.records as u64);
        while cursor.number < end {
            if cursor.at == self.wrap {
                cursor.at = 0;
            }
            let (frame, next) = self.record(cursor.at);
            if !take(frame) {
                break;
            }
            (cursor.number, cursor.at) = (cursor.number + 1, next);
        }
        skipped
    }

    /// All frames, in the order they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = KeptFrame<'_>> {
        let mut at = self.tail;
        (0..self.records).map(move |_| {
            if at == self.wrap {
                at = 0;
            }
            let (frame, next) = self.record(at);
            at = next;
            frame
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(ts: i64, bytes: &[u8]) -> KeptFrame<'_> {
        let ports = (ts % 3 == 0).then_some([ts as u16, 53]);
        let (link, point) = (LinkType(ts as u16 % 5), CapturePoint::of(ts as u32 % 7));
        KeptFrame { ts, len: bytes.len() as u32 + 4, link, ports, point, bytes }
    }

    #[test]
    fn the_oldest_make_room() {
        let mut ring = FrameRing::new(3 * (HEAD + 10));
        for ts in 0..5 {
            ring.push(&kept(ts, &[ts as u8; 10]));
        }
        let there: Vec<_> = ring.iter().map(|frame| (frame.ts, frame.bytes.to_vec())).collect();
        assert_eq!(there, [(2, vec![2; 10]), (3, vec![3; 10]), (4, vec![4; 10])]);
        assert_eq!(ring.forgotten(), Some(1));
        // One that is too long for all the room there is takes no other's place.
        ring.push(&kept(9, &[0; 100]));
        assert_eq!((ring.iter().count(), ring.forgotten()), (3, Some(9)));
    }

    #[test]
    fn no_room_at_all() {
        let mut ring = FrameRing::new(0);
        ring.push(&kept(1, &[]));
        assert_eq!((ring.iter().count(), ring.forgotten()), (0, Some(1)));
    }

    proptest! {
        /// They are the last that came, and no fewer than find room: what stays free is at the
        /// end, where a record did not fit, and before the oldest.
        #[test]
        fn the_last_frames_are_there(
            bytes in HEAD + 120..800, sizes in proptest::collection::vec(0usize..120, 0..200),
        ) {
            let mut ring = FrameRing::new(bytes);
            let frames: Vec<(i64, Vec<u8>)> =
                (0..).zip(&sizes).map(|(ts, &n)| (ts, vec![ts as u8; n])).collect();
            for came in 1..=frames.len() {
                let (ts, frame) = &frames[came - 1];
                ring.push(&kept(*ts, frame));
                let there = ring.iter().count();
                let last = &frames[came - there..came];
                prop_assert!(ring.iter().eq(last.iter().map(|(ts, frame)| kept(*ts, frame))));
                let held: usize = last.iter().map(|(_, frame)| HEAD + frame.len()).sum();
                prop_assert!(held <= bytes);
                prop_assert!(there == came || held + 3 * (HEAD + 120) > bytes);
                let span = last.first().map(|(ts, _)| (*ts, frames[came - 1].0));
                prop_assert_eq!(ring.span(), span);
                let forgotten = (came > there).then(|| frames[came - there - 1].0);
                prop_assert_eq!(ring.forgotten(), forgotten);
            }
        }

        /// A reader that goes on now and then sees each record once, but for those that were
        /// forgotten before, and these are counted.
        #[test]
        fn reading_goes_on_where_it_was(
            bytes in HEAD + 60..600,
            steps in proptest::collection::vec((0usize..60, 0usize..4), 0..200),
        ) {
            let mut ring = FrameRing::new(bytes);
            let (mut seen, mut skipped) = (Vec::new(), 0);
            let mut cursor = RingCursor { number: 0, at: 0, end: u64::MAX };
            for (ts, (size, reads)) in (0..).zip(&steps) {
                ring.push(&kept(ts, &vec![ts as u8; *size]));
                let mut left = *reads;
                skipped += ring.read_on(&mut cursor, |frame| {
                    let wants = left > 0;
                    if wants {
                        left -= 1;
                        seen.push((frame.ts, frame.bytes.to_vec()));
                    }
                    wants
                });
                prop_assert_eq!(seen.len() as u64 + skipped, cursor.number);
            }
            skipped += ring.read_on(&mut cursor, |frame| {
                seen.push((frame.ts, frame.bytes.to_vec()));
                true
            });
            prop_assert_eq!(seen.len() as u64 + skipped, steps.len() as u64);
            prop_assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0));
            for (ts, frame) in &seen {
                prop_assert_eq!(frame, &vec![*ts as u8; steps[*ts as usize].0]);
            }
        }
    }
}
