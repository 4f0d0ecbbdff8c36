//! Which parts of a connection are remembered: those that columns which are read are made of.

use super::{side, timed};

/// Words that both directions share.
pub(super) const SHARED_WORDS: usize = 3;

/// Words of a connection that are always there: of both directions, and those that they share.
const ALWAYS: usize = 2 * side::WORDS + SHARED_WORDS;

/// The state that is kept of a connection beside what most columns need. A row of the table that
/// has less of it lies in fewer cache lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tracked {
    /// Time stamps that wait for an echo: for `tsval_rtt`.
    pub(crate) stamps: bool,
    /// Segments that wait for their acknowledgment: for `ack_rtt`.
    pub(crate) segments: bool,
}

/// The words of a connection, taken apart.
pub(super) struct ConnectionWords<'a> {
    /// Of each direction.
    pub(super) sides: [&'a mut [u64; side::WORDS]; 2],
    pub(super) shared: &'a mut [u64; SHARED_WORDS],
    /// The time stamps of each direction, where they are remembered.
    pub(super) stamps: Option<[&'a mut [u64; side::STAMP_WORDS]; 2]>,
    /// The segments of each direction that are timed, where they are.
    pub(super) segments: Option<[&'a mut [u64; timed::WORDS]; 2]>,
}

impl Tracked {
    /// All there is.
    pub(crate) const ALL: Tracked = Tracked { stamps: true, segments: true };

    /// Words that a connection takes.
    pub(crate) const fn words(self) -> usize {
        let stamps = if self.stamps { 2 * side::STAMP_WORDS } else { 0 };
        let segments = if self.segments { 2 * timed::WORDS } else { 0 };
        ALWAYS + stamps + segments
    }

    /// Takes words apart, of which there must be [so many](Tracked::words).
    #[inline(always)]
    pub(super) fn parts(self, words: &mut [u64]) -> ConnectionWords<'_> {
        let (a, words) = split(words);
        let (b, words) = split(words);
        let (shared, words) = split(words);
        let (stamps, words) = if self.stamps { pair(words) } else { (None, words) };
        let (segments, _) = if self.segments { pair(words) } else { (None, words) };
        ConnectionWords { sides: [a, b], shared, stamps, segments }
    }
}

#[inline(always)]
fn split<const N: usize>(words: &mut [u64]) -> (&mut [u64; N], &mut [u64]) {
    words.split_first_chunk_mut().expect("as many words as are tracked")
}

#[inline(always)]
fn pair<const N: usize>(words: &mut [u64]) -> (Option<[&mut [u64; N]; 2]>, &mut [u64]) {
    let (a, words) = split(words);
    let (b, words) = split(words);
    (Some([a, b]), words)
}
