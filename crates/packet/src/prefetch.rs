//! Software prefetch: a hint to the processor.
//!
//! It is sound: a prefetch reads nothing that the program can see and never faults, and
//! the pointer handed to it is made from a bounds-checked reference into the caller's slice, so
//! no out-of-bounds address is even computed.

use crate::limits::BATCH;

/// Asks the processor to bring the cache line of `bytes[offset]` close. Does nothing beyond the
/// end of `bytes`, and on machines other than x86-64.
#[inline(always)]
pub fn prefetch(bytes: &[u8], offset: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(offset) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and the pointer comes from a live reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, offset);
}

/// The bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Which bytes of a capture to ask for while a batch is worked on, so that those of the next are
/// there when it comes.
///
/// A processor follows a stream by itself but loses it when other memory is looked at between two
/// batches, and it can wait for few lines at a time: so every line is asked for, one half of the
/// next batch while this one is walked and the other half while it is classified. This took a fifth
/// off a flow meter's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    from: usize,
    /// Lines to ask for at a time, so that none is left out; 0 where frames are so large that the
    /// place of their headers is not known.
    lines: usize,
}

impl Ahead {
    /// For the walk of the records, when the last batch took `span` bytes.
    pub(crate) fn walk(span: usize) -> Ahead {
        Ahead { from: span, lines: lines(span) }
    }

    /// For the classifier, whose batch takes `span` bytes.
    pub(crate) fn classify(span: usize) -> Ahead {
        Ahead { from: span + span / 2, lines: lines(span) }
    }

    /// Asks for what belongs to the byte `at` of a batch; `bytes` start where it does.
    #[inline(always)]
    pub(crate) fn ask(self, bytes: &[u8], at: usize) {
        if self.lines == 1 {
            prefetch(bytes, self.from + at / 2);
        } else {
            self.ask_of_larger(bytes, at);
        }
    }

    #[inline(always)]
    fn ask_of_larger(self, bytes: &[u8], at: usize) {
        // Large frames are far apart; their headers may lie just ahead.
        let at = if self.lines == 0 { at + 2 * NEAR } else { self.from + at / 2 };
        prefetch(bytes, at);
        prefetch(bytes, at + LINE);
    }
}

/// Asks for what comes behind the first byte of `bytes` in a capture whose records are walked in a
/// loop that takes about as long as the memory does.
#[inline(always)]
pub(crate) fn ask_far(bytes: &[u8; FAR + LINE + 1]) {
    prefetch(bytes, FAR);
    prefetch(bytes, FAR + LINE);
}

/// How far ahead that is.
pub(crate) const FAR: usize = 2048;

/// How far ahead of itself a walk asks once more: what came in with the last batch may have left
/// the first-level cache since, and each record's length is waited for.
pub(crate) const NEAR: usize = 1024;

/// Bytes of a batch of frames so small that all of them are worth asking for.
const SPAN_MAX: usize = BATCH * 256;

fn lines(span: usize) -> usize {
    match span {
        0 => 0,
        _ if span <= BATCH * 2 * LINE => 1,
        _ if span <= SPAN_MAX => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_offset_will_do() {
        for offset in [0, 2, 3, 4, usize::MAX] {
            prefetch(&[1, 2, 3], offset);
        }
        prefetch(&[], 0);
        for span in [0, 1, 20_000, SPAN_MAX, SPAN_MAX + 1, usize::MAX / 4] {
            Ahead::walk(span).ask(&[1, 2, 3], 2);
            Ahead::classify(span).ask(&[1, 2, 3], usize::MAX / 4);
        }
    }

    /// Between them, walk and classifier ask for each line of the next batch.
    #[test]
    fn all_of_the_next_batch_is_asked_for() {
        for record in [60, 80, 112, 200, 256] {
            let span = record * BATCH;
            let mut asked = std::collections::BTreeSet::new();
            for ahead in [Ahead::walk(span), Ahead::classify(span)] {
                for at in (0..BATCH).map(|i| i * record) {
                    let at = ahead.from + at / 2;
                    asked.extend((0..ahead.lines).map(|n| (at + n * LINE) / LINE));
                }
            }
            assert!(
                (span / LINE..(span * 2 - record) / LINE).all(|l| asked.contains(&l)),
                "{record}"
            );
        }
    }
}
