//! A query text as it is drawn: long lines are cut down to what a diagnostic is about. Generated
//! queries hold blocklists of many thousand addresses on one line, which nobody wants to see for
//! a mistake at its end.

use std::borrow::Cow;
use std::ops::Range;

/// Lines of up to so many bytes are drawn whole.
const LINE_BYTES_MAX: usize = 200;

/// Bytes kept on either side of where a place starts and ends.
const CONTEXT_BYTES: usize = 60;

/// Stands for what was cut.
const CUT: &str = "…";

/// A text and where pieces of the original are in it.
pub(crate) struct Excerpt<'a> {
    pub(crate) text: Cow<'a, str>,
    /// The parts that were kept, in order: the bytes of the original, and where they start now.
    kept: Vec<(Range<usize>, usize)>,
}

impl<'a> Excerpt<'a> {
    /// `text`, its long lines cut to the surroundings of `places`. It has as many lines as before.
    pub(crate) fn new(text: &'a str, places: &[Range<usize>]) -> Excerpt<'a> {
        if text.lines().all(|line| line.len() <= LINE_BYTES_MAX) {
            return Excerpt { text: Cow::Borrowed(text), kept: vec![(0..text.len(), 0)] };
        }
        let mut ends: Vec<usize> = places.iter().flat_map(|r| [r.start, r.end]).collect();
        ends.sort_unstable();
        let mut out = Excerpt { text: Cow::Owned(String::new()), kept: Vec::new() };
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            out.line(text, start..start + line.len(), &ends);
            start += line.len();
        }
        out
    }

    /// Where a byte of the original is; one that was cut is where it was cut.
    pub(crate) fn at(&self, byte: usize) -> usize {
        let after = self.kept.partition_point(|(range, _)| range.start <= byte);
        let Some((range, start)) = after.checked_sub(1).map(|i| &self.kept[i]) else { return 0 };
        start + byte.min(range.end) - range.start
    }

    fn line(&mut self, text: &str, line: Range<usize>, ends: &[usize]) {
        if line.len() <= LINE_BYTES_MAX {
            return self.keep(text, line);
        }
        let first = ends.partition_point(|end| *end < line.start);
        let within = ends[first..].iter().take_while(|end| **end <= line.end);
        let mut from = line.start;
        for end in within.copied().chain([line.end]) {
            let before = boundary(text, end.saturating_sub(CONTEXT_BYTES).max(from));
            let after = match end == line.end {
                true => line.end,
                false => boundary(text, (end + CONTEXT_BYTES).min(line.end)),
            };
            if before > from {
                self.push(CUT);
            }
            if after > before {
                self.keep(text, before..after);
            }
            from = from.max(after);
        }
    }

    fn keep(&mut self, text: &str, range: Range<usize>) {
        self.kept.push((range.clone(), self.text.len()));
        self.push(&text[range]);
    }

    fn push(&mut self, text: &str) {
        self.text.to_mut().push_str(text);
    }
}

/// The start of the character that `byte` lies in.
fn boundary(text: &str, byte: usize) -> usize {
    (0..=byte).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

/// Query text in a message: its first line, not too long.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or("").trim_end();
    let short: String = line.chars().take(40).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_lines_stay() {
        let excerpt = Excerpt::new("packets\n| limit 5\n", &[0..7, 10..15]);
        assert_eq!((&*excerpt.text, excerpt.at(12)), ("packets\n| limit 5\n", 12));
    }

    #[test]
    fn long_lines_are_cut_around_the_places() {
        let text = format!("one\n{} here {}\nthree\n", "a ".repeat(900), "b ".repeat(900));
        let place = 4 + 1801..4 + 1805;
        assert_eq!(&text[place.clone()], "here");
        let excerpt = Excerpt::new(&text, std::slice::from_ref(&place));
        assert_eq!(&excerpt.text[excerpt.at(place.start)..excerpt.at(place.end)], "here");
        let lines: Vec<&str> = excerpt.text.lines().collect();
        assert_eq!((lines[0], lines[2], lines.len()), ("one", "three", 3));
        assert!(lines[1].len() < 400 && lines[1].starts_with('…'), "{}", lines[1]);
    }

    proptest! {
        #[test]
        fn any_place_of_any_text(
            text in "([aé,]{0,400}\n?){0,5}",
            at in proptest::collection::vec((0usize..2200, 0usize..2200), 0..4),
        ) {
            let places: Vec<_> = at.iter().map(|(a, b)| {
                let end = |n: usize| boundary(&text, n.min(text.len()));
                end(*a.min(b))..end(*a.max(b))
            }).collect();
            let excerpt = Excerpt::new(&text, &places);
            prop_assert_eq!(excerpt.text.lines().count(), text.lines().count());
            for place in places {
                let (start, end) = (excerpt.at(place.start), excerpt.at(place.end));
                prop_assert!(start <= end && excerpt.text.is_char_boundary(start));
                prop_assert!(excerpt.text.is_char_boundary(end));
                let next = |text: &str, at: usize| text[at..].chars().next();
                prop_assert_eq!(next(&excerpt.text, start), next(&text, place.start));
            }
        }
    }
}
