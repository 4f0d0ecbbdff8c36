//! A batch of frames: where each lies in memory that they share, and what is known of it.

use super::account::Gap;
use super::chunk::Chunk;
use super::columns::FrameColumns;
use crate::bits::Bits;
use crate::interface::{CapturePoint, InterfaceNames};
use crate::limits::BATCH;
use crate::link_type::LinkType;
use crate::time::LAST_TIME;
use crate::walk::{Headers, Look, WINDOW};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// The chunk of an empty batch.
static NOTHING: LazyLock<Chunk> = LazyLock::new(|| Arc::new(Vec::new()));

/// Up to [`BATCH`] frames of one link type, in capture order; their bytes stay in a [`Chunk`].
pub struct FrameBatch {
    chunk: Chunk,
    base: usize,
    /// Link type of every frame in the batch.
    pub link: LinkType,
    /// Which packet of each frame fields mean, where packets are in tunnels.
    pub headers: Headers,
    pub(super) n: usize,
    /// See [`FrameBatch::reached`].
    reached: Option<i64>,
    /// See [`FrameBatch::gap`].
    gap: Option<Gap>,
    pub(super) noted_times: Vec<i64>,
    late: Bits,
    pub(super) cols: Box<FrameColumns>,
    /// See [`FrameBatch::capture_point`]: of all frames, or where `mixed`, in the columns.
    point: CapturePoint,
    mixed: bool,
    names: Option<InterfaceNames>,
    /// Whether the reader looked at each frame for the classifier.
    looked: bool,
}

impl FrameBatch {
    /// An empty batch.
    pub fn new() -> FrameBatch {
        FrameBatch {
            chunk: Chunk::clone(&NOTHING),
            base: 0,
            link: LinkType::ETHERNET,
            headers: Headers::OUTER,
            n: 0,
            reached: None,
            gap: None,
            noted_times: Vec::new(),
            late: Bits::NONE,
            cols: Box::new(FrameColumns {
                ts: [0; BATCH],
                seq: [0; BATCH],
                off: [0; BATCH],
                caplen: [0; BATCH],
                len: [0; BATCH],
                look: [Look::NONE; BATCH],
                ports: [[0; 2]; BATCH],
                point: [CapturePoint::UNKNOWN; BATCH],
            }),
            point: CapturePoint::UNKNOWN,
            mixed: false,
            names: None,
            looked: false,
        }
    }

    /// Empties the batch and lets go of the memory it referred to.
    pub fn clear(&mut self) {
        self.chunk = Chunk::clone(&NOTHING);
        self.empty();
    }

    fn empty(&mut self) {
        (self.headers, self.n, self.reached, self.gap) = (Headers::OUTER, 0, None, None);
        self.noted_times.clear();
        (self.late, self.looked) = (Bits::NONE, false);
        (self.point, self.mixed, self.names) = (CapturePoint::UNKNOWN, false, None);
    }

    /// Empties the batch and points it at `chunk`; offsets given to [`FrameBatch::push`] count
    /// from `base`. Fields mean the outermost packet, until `headers` is set.
    pub fn restart(&mut self, chunk: &Chunk, base: usize, link: LinkType) {
        if !Arc::ptr_eq(&self.chunk, chunk) {
            self.chunk = Arc::clone(chunk);
        }
        (self.base, self.link) = (base, link);
        self.empty();
    }

    /// Appends a frame: `offset` and `caplen` say which bytes of the chunk it is, `len` its length
    /// on the wire, `ts` nanoseconds since 1970, `seq` its number in the capture from 0. Panics
    /// when the batch is full; a frame reaching beyond the chunk reads as cut short.
    #[inline(always)]
    pub fn push(&mut self, ts: i64, seq: u64, offset: u32, caplen: u32, len: u32) {
        let (i, c) = (self.n, &mut *self.cols);
        c.ts[i] = ts.min(LAST_TIME);
        c.seq[i] = seq;
        c.off[i] = offset;
        c.caplen[i] = caplen;
        c.len[i] = len;
        c.look[i] = Look::NONE;
        if self.mixed && i > 0 {
            c.point[i] = c.point[i - 1];
        }
        self.n = i + 1;
    }

    /// Says that the frames to come are looked at by who pushes them, see [`FrameBatch::looks`].
    pub(crate) fn look_at_all(&mut self) {
        self.looked = true;
    }

    /// Appends frames until these are `most`, the batch is full, or `next`, which is told how many
    /// came before in this call, has none: time, offset, captured bytes and length as
    /// [`FrameBatch::push`] takes them. They are numbered as if the batch had begun with `seq`.
    #[inline(always)]
    pub(crate) fn push_all(
        &mut self,
        most: usize,
        seq: u64,
        mut next: impl FnMut(usize) -> Option<(i64, u32, u32, u32)>,
    ) {
        let from = self.n;
        self.gather::<false>(most, seq, |i| Some((next(i)?, CapturePoint::UNKNOWN)));
        if self.mixed && from > 0 {
            let before = self.cols.point[from - 1];
            self.cols.point[from..self.n].fill(before);
        }
    }

    /// The same, where `next` also says how each frame came. [`FrameBatch::set_written_points`] has
    /// to follow.
    #[inline(always)]
    pub(crate) fn push_all_with_points(
        &mut self,
        most: usize,
        seq: u64,
        next: impl FnMut(usize) -> Option<((i64, u32, u32, u32), CapturePoint)>,
    ) {
        self.gather::<true>(most, seq, next);
    }

    /// Both: how frames came is written down where that is `SAID`.
    #[inline(always)]
    fn gather<const SAID: bool>(
        &mut self,
        most: usize,
        seq: u64,
        mut next: impl FnMut(usize) -> Option<((i64, u32, u32, u32), CapturePoint)>,
    ) {
        let (from, c) = (self.n, &mut *self.cols);
        let n = most.min(BATCH - from);
        let (ts, offsets) = (&mut c.ts[from..][..n], &mut c.off[from..][..n]);
        let (caplens, lens) = (&mut c.caplen[from..][..n], &mut c.len[from..][..n]);
        let points = &mut c.point[from..][..n];
        let mut i = 0;
        while i < n
            && let Some((frame, point)) = next(i)
        {
            (ts[i], offsets[i], caplens[i], lens[i]) = frame;
            if SAID {
                points[i] = point;
            }
            i += 1;
        }
        for (number, at) in c.seq[from..][..i].iter_mut().zip(seq + from as u64..) {
            *number = at;
        }
        c.look[from..][..i].fill(Look::NONE);
        self.n = from + i;
    }

    /// Takes back the last frame.
    pub(crate) fn pop(&mut self) {
        self.n = self.n.saturating_sub(1);
    }

    /// Says what a look at the frames from `from` on showed.
    pub(crate) fn set_looks(&mut self, from: usize, looks: &[Look]) {
        self.cols.look[from..][..looks.len()].copy_from_slice(looks);
    }

    /// The result of a look at each frame, if whoever pushed them looked.
    #[inline(always)]
    pub(crate) fn looks(&self) -> Option<&[Look; BATCH]> {
        self.looked.then_some(&self.cols.look)
    }

    /// Says which ports frame `i` belongs to, source and destination, though it has none itself: a
    /// later fragment. Where its own headers have ports, those count.
    pub fn set_ports(&mut self, i: usize, ports: [u16; 2]) {
        self.late.set(i);
        self.cols.ports[i] = ports;
    }

    /// The frames that were said to belong to some ports.
    #[inline(always)]
    pub fn with_ports(&self) -> Bits {
        self.late
    }

    /// The ports that frame `i` was said to belong to, source and destination.
    pub fn ports(&self, i: usize) -> Option<[u16; 2]> {
        self.late.has(i).then(|| self.cols.ports[i])
    }

    /// Sets the capture point of the frames from position `from` on; `names` gives the names of
    /// interfaces, one table for all batches of a run. Frames that are pushed later take it from
    /// the frame before, until it is set for them.
    pub fn set_capture_point(&mut self, from: usize, point: CapturePoint, names: &InterfaceNames) {
        let n = self.n.max(from);
        if from > 0 && (self.mixed || point != self.point) {
            self.cols.point[from..n].fill(point);
        }
        self.set_written_points(from, Some(point), names);
    }

    /// Sets the capture point of every frame, in their order. Where `points` ends early, that of
    /// the rest is unknown.
    pub fn set_capture_points(
        &mut self,
        mut points: impl Iterator<Item = CapturePoint>,
        names: &InterfaceNames,
    ) {
        let (mut first, mut same) = (None, true);
        for to in &mut self.cols.point[..self.n] {
            let point = points.next().unwrap_or_default();
            same &= *first.get_or_insert(point) == point;
            *to = point;
        }
        self.set_written_points(0, first.filter(|_| same), names);
    }

    /// The capture points of the frames from position `from` on were written; `same` is set if they
    /// are all equal.
    pub(crate) fn set_written_points(
        &mut self,
        from: usize,
        same: Option<CapturePoint>,
        names: &InterfaceNames,
    ) {
        if self.names.is_none() && same != Some(CapturePoint::UNKNOWN) {
            self.names = Some(names.clone());
        }
        debug_assert!(self.names.as_ref().is_none_or(|known| known == names), "one table");
        match same {
            Some(point) if from == 0 => (self.point, self.mixed) = (point, false),
            Some(point) if !self.mixed && point == self.point => {}
            _ => self.mix(from),
        }
    }

    /// From now on the columns hold the capture points; the first `n` keep theirs.
    fn mix(&mut self, n: usize) {
        if !self.mixed {
            self.cols.point[..n].fill(self.point);
            self.mixed = true;
        }
    }

    /// The interface by which frame `i` came, and its direction.
    #[inline(always)]
    pub fn capture_point(&self, i: usize) -> CapturePoint {
        if self.mixed { self.cols.point[i] } else { self.point }
    }

    /// The same of all frames, where it is the same.
    pub fn capture_point_of_all(&self) -> Option<CapturePoint> {
        (!self.mixed).then_some(self.point)
    }

    /// The names that belong to the numbers of interfaces, where they are known.
    pub fn interface_names(&self) -> Option<&InterfaceNames> {
        self.names.as_ref()
    }

    /// The time up to which everything has come: after this batch no frame of an earlier one is
    /// to be expected. In nanoseconds since 1970; `None` where nobody can tell, as in files.
    pub fn reached(&self) -> Option<i64> {
        self.reached
    }

    /// Says so; for sources of a wire, which know what time it is.
    pub fn set_reached(&mut self, ts: i64) {
        self.reached = Some(ts);
    }

    /// The gap that was found since the batch before; `None` where there is none, as in files.
    pub fn gap(&self) -> Option<Gap> {
        self.gap
    }

    /// Says so; for sources of a wire.
    pub fn set_gap(&mut self, gap: Gap) {
        self.gap = Some(gap);
    }

    /// Frames in the batch.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether the batch holds no frame.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Whether the batch holds [`BATCH`] frames.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.n == BATCH
    }

    /// The memory that [`FrameBatch::offsets`] point into (the chunk from `base` on).
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        (*self.chunk).as_ref().get(self.base..).unwrap_or(&[])
    }

    /// The shared memory and the base, to build another batch over the same bytes.
    pub fn chunk(&self) -> (&Chunk, usize) {
        (&self.chunk, self.base)
    }

    /// Timestamps in nanoseconds since 1970, one per frame.
    #[inline(always)]
    pub fn ts(&self) -> &[i64] {
        &self.cols.ts[..self.n]
    }

    /// Numbers of the frames in the capture, from 0; they rise strictly.
    #[inline(always)]
    pub fn seq(&self) -> &[u64] {
        &self.cols.seq[..self.n]
    }

    /// Numbers all frames this much higher: those of another capture came before.
    pub fn renumber(&mut self, by: u64) {
        self.cols.seq[..self.n].iter_mut().for_each(|seq| *seq += by);
    }

    /// Where each frame starts in [`FrameBatch::bytes`].
    #[inline(always)]
    pub fn offsets(&self) -> &[u32] {
        &self.cols.off[..self.n]
    }

    /// Bytes from the start of [`FrameBatch::bytes`] to the end of the last frame.
    pub(crate) fn span(&self) -> usize {
        match (self.offsets(), self.caplens()) {
            ([.., last], [.., caplen]) => *last as usize + *caplen as usize,
            _ => 0,
        }
    }

    /// Captured bytes of each frame.
    #[inline(always)]
    pub fn caplens(&self) -> &[u32] {
        &self.cols.caplen[..self.n]
    }

    /// Bytes of each frame on the wire.
    #[inline(always)]
    pub fn lens(&self) -> &[u32] {
        &self.cols.len[..self.n]
    }

    /// The captured bytes of frame `i`.
    #[inline(always)]
    pub fn frame(&self, i: usize) -> &[u8] {
        let start = self.cols.off[i] as usize;
        let bytes = self.bytes();
        let end = (start + self.cols.caplen[i] as usize).min(bytes.len());
        bytes.get(start..end).unwrap_or(&[])
    }

    /// Appends the frames of another batch at these positions. That batch lies in the same memory,
    /// its base `shift` bytes behind this one's; all frames are read as those. Panics when the
    /// batch is full, or a position is beyond the other's frames.
    pub fn extend_from(&mut self, from: &FrameBatch, at: &[u16], shift: u32) {
        let n = self.n..self.n + at.len();
        assert!(at.iter().all(|&i| usize::from(i) < from.n), "frames of the other batch");
        fn gather<T: Copy>(to: &mut [T], from: &[T; BATCH], at: &[u16], f: impl Fn(T) -> T) {
            for (to, &i) in to.iter_mut().zip(at) {
                *to = f(from[usize::from(i) % BATCH]);
            }
        }
        let (to, cols) = (&mut *self.cols, &*from.cols);
        gather(&mut to.ts[n.clone()], &cols.ts, at, |t| t);
        gather(&mut to.seq[n.clone()], &cols.seq, at, |s| s);
        gather(&mut to.off[n.clone()], &cols.off, at, |off| off.wrapping_add(shift));
        gather(&mut to.caplen[n.clone()], &cols.caplen, at, |c| c);
        gather(&mut to.len[n.clone()], &cols.len, at, |l| l);
        gather(&mut to.look[n.clone()], &cols.look, at, |l| l);
        self.looked = from.looked && (self.looked || self.n == 0);
        self.headers = from.headers;
        if !from.late.is_empty() {
            gather(&mut to.ports[n.clone()], &cols.ports, at, |p| p);
            for (to, &i) in n.clone().zip(at) {
                self.late.put(to, from.late.has(i.into()));
            }
        }
        self.take_vias(from, n, at);
        self.n += at.len();
    }

    /// Appends frame `i` of another batch as number `seq`. Its bytes are to be copied to `offset`
    /// of the memory that [`FrameBatch::settle`] names once all are there. That batch has no later
    /// fragments with ports. Panics when this one is full, or `i` is beyond the other's frames.
    #[inline]
    pub fn push_from(&mut self, from: &FrameBatch, i: usize, seq: u64, offset: u32) {
        debug_assert!(from.late.is_empty(), "ports are said of batches that were read");
        let caplen = from.frame(i).len() as u32;
        let (n, cols) = (self.n, &*from.cols);
        let point = from.capture_point(i);
        if n == 0 {
            (self.point, self.mixed, self.looked) = (point, false, from.looked);
        } else {
            self.looked &= from.looked;
            if self.mixed || point != self.point {
                self.mix(n);
                self.cols.point[n] = point;
            }
        }
        if self.names.is_none() {
            self.names.clone_from(&from.names);
        }
        let c = &mut *self.cols;
        (c.ts[n], c.seq[n]) = (cols.ts[i], seq);
        (c.off[n], c.caplen[n], c.len[n]) = (offset, caplen, cols.len[i]);
        c.look[n] = cols.look[i];
        self.n = n + 1;
    }

    /// Says that the frames lie in this memory, at the offsets that were given.
    pub fn settle(&mut self, chunk: &Chunk) {
        (self.chunk, self.base) = (Arc::clone(chunk), 0);
        // A look promises so many bytes of memory, which the frame had where it was looked at.
        let (most, c) = (self.bytes().len(), &mut *self.cols);
        let looks = c.look.iter_mut().zip(&c.off).take(self.n);
        let short = looks.filter(|(_, offset)| **offset as usize + WINDOW > most);
        short.for_each(|(look, _)| *look = Look::NONE);
    }

    /// Takes over by which interfaces frames came, for [`FrameBatch::extend_from`].
    fn take_vias(&mut self, from: &FrameBatch, n: Range<usize>, at: &[u16]) {
        if self.names.is_none() {
            self.names.clone_from(&from.names);
        }
        debug_assert!(from.names.is_none() || self.names == from.names, "one table");
        if n.start == 0 {
            (self.point, self.mixed) = (from.point, from.mixed);
        } else if from.mixed || self.mixed || from.point != self.point {
            self.mix(n.start);
        }
        if self.mixed {
            for (to, &i) in self.cols.point[n].iter_mut().zip(at) {
                *to = from.capture_point(i.into());
            }
        }
    }

    /// Keeps the frames for which `keep(i)` holds, in order.
    pub fn retain(&mut self, mut keep: impl FnMut(&FrameBatch, usize) -> bool) {
        let (mut n, mut late) = (0, Bits::NONE);
        for i in 0..self.n {
            if keep(self, i) {
                late.put(n, self.late.has(i));
                let c = &mut *self.cols;
                (c.ts[n], c.seq[n]) = (c.ts[i], c.seq[i]);
                (c.off[n], c.caplen[n], c.len[n]) = (c.off[i], c.caplen[i], c.len[i]);
                c.look[n] = c.look[i];
                c.ports[n] = c.ports[i];
                c.point[n] = c.point[i];
                n += 1;
            }
        }
        (self.n, self.late) = (n, late);
    }
}

impl Default for FrameBatch {
    fn default() -> FrameBatch {
        FrameBatch::new()
    }
}

impl fmt::Debug for FrameBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrameBatch({} frames of link type {})", self.n, self.link.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::Frame;
    use crate::pcap::{FileHeader, PcapReader};
    use crate::walk::{Layers, classify};

    type Known = (u64, Option<[u16; 2]>, Option<Look>, CapturePoint);

    /// The number, the ports, the look and the capture point of each frame.
    fn known(batch: &FrameBatch) -> Vec<Known> {
        let look = |i: usize| batch.looks().map(|looks| looks[i]);
        let of = |i| (batch.seq()[i], batch.ports(i), look(i), batch.capture_point(i));
        (0..batch.len()).map(of).collect()
    }

    /// A batch as a reader fills it: every third frame has known ports, every second is plain.
    fn read() -> FrameBatch {
        let header = FileHeader::new(LinkType::ETHERNET);
        let mut file = Vec::new();
        for i in 0..40u8 {
            let frame = Frame::ethernet().ipv4([10, 0, 0, i], [10, 0, 0, 1]);
            let frame = if i % 2 == 0 { frame.udp(1, 2) } else { frame.fragment(64, false) };
            header.put_record(&mut file, i.into(), 60, &frame.bytes());
        }
        // The last frames have others behind them.
        header.put_record(&mut file, 50, 200, &[0; 200]);
        let (chunk, mut batch): (Chunk, _) = (Arc::new(file), FrameBatch::new());
        PcapReader::new(&header).fill(&chunk, &mut 0, &mut batch).expect("whole records");
        batch.headers = Headers::INNER;
        (0..40).step_by(3).for_each(|i| batch.set_ports(i, [i as u16, 7]));
        let points = (0..41).map(|i| CapturePoint::new((i % 4 > 0).then_some(i / 8), None));
        batch.set_capture_points(points, &InterfaceNames::default());
        batch
    }

    /// Batches of batches that each came by one interface, by the same or by others, or by several.
    #[test]
    fn who_brought_frames_is_known_of_all_together() {
        let names = InterfaceNames::default();
        let chunk: Chunk = Arc::new(vec![0u8; 60]);
        let [one, two] = [0, 1].map(|number| CapturePoint::new(Some(number), None));
        let some = |points: &[CapturePoint]| {
            let mut batch = FrameBatch::new();
            batch.restart(&chunk, 0, LinkType::ETHERNET);
            for (from, &point) in points.iter().enumerate() {
                batch.push(0, from as u64, 0, 60, 60);
                batch.set_capture_point(from, point, &names);
            }
            batch
        };
        let points = |batch: &FrameBatch| {
            (0..batch.len()).map(|i| batch.capture_point(i)).collect::<Vec<_>>()
        };
        let none = CapturePoint::UNKNOWN;
        let kinds: [&[CapturePoint]; 6] =
            [&[one], &[one, one], &[two, two], &[none], &[one, two, none], &[none, one]];
        for a in kinds {
            let all_same = a.iter().all(|point| *point == a[0]);
            assert_eq!(some(a).capture_point_of_all(), all_same.then_some(a[0]), "{a:?}");
            for b in kinds {
                for c in kinds {
                    let mut all = FrameBatch::new();
                    all.restart(&chunk, 0, LinkType::ETHERNET);
                    for part in [a, b, c] {
                        let at: Vec<u16> = (0..part.len() as u16).collect();
                        all.extend_from(&some(part), &at, 0);
                    }
                    let want = [a, b, c].concat();
                    assert_eq!(points(&all), want);
                    let known = want.iter().any(|point| *point != none);
                    assert_eq!(all.interface_names().is_some(), known);
                    // A frame then came as the last did, until something else is said of it.
                    all.push(0, 9, 0, 60, 60);
                    assert_eq!(all.capture_point(want.len()), want[want.len() - 1]);
                    all.set_capture_point(want.len(), two, &names);
                    assert_eq!(points(&all), [&want[..], &[two]].concat());
                    all.push_all(9, 0, |i| (i < 3).then_some((0, 0, 60, 60)));
                    assert_eq!(points(&all)[want.len()..], [two; 4]);
                    all.set_capture_points(std::iter::once(one), &names);
                    assert_eq!((all.capture_point(0), all.capture_point(1)), (one, none));
                    all.restart(&chunk, 0, LinkType::ETHERNET);
                    assert!(all.interface_names().is_none());
                }
            }
        }
    }

    #[test]
    fn what_is_known_of_frames_goes_with_them() {
        let from = read();
        let all = known(&from);
        assert!(all.iter().any(|k| k.2 != Some(Look::NONE)));
        let at: Vec<u16> = vec![1, 2, 3, 8, 9, 30, 39];
        let wanted: Vec<_> = at.iter().map(|&i| all[usize::from(i)]).collect();

        let (chunk, base) = from.chunk();
        let mut parts = FrameBatch::new();
        parts.restart(chunk, base, from.link);
        parts.extend_from(&from, &at[..3], 0);
        parts.extend_from(&from, &at[3..], 0);
        assert_eq!((known(&parts), parts.headers), (wanted.clone(), Headers::INNER));

        let mut kept = read();
        kept.retain(|batch, i| at.contains(&(batch.seq()[i] as u16)));
        assert_eq!((known(&kept), kept.headers), (wanted, Headers::INNER));

        let [mut layers, mut again] = [Layers::new(), Layers::new()];
        classify(&parts, &mut layers);
        classify(&kept, &mut again);
        assert_eq!(layers.plain.four, again.plain.four);
        assert_eq!(layers.plain.four.count(), at.iter().filter(|&i| i % 2 == 0).count());
    }

    #[test]
    fn a_batch_that_starts_again_knows_nothing() {
        let mut batch = read();
        let (chunk, base) = batch.chunk();
        let chunk = Arc::clone(chunk);
        batch.restart(&chunk, base, LinkType::ETHERNET);
        batch.push(0, 7, 0, 60, 60);
        assert_eq!(
            (known(&batch), batch.headers),
            (vec![(7, None, None, CapturePoint::UNKNOWN)], Headers::OUTER)
        );
    }
}
