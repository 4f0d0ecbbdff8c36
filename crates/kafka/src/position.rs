//! How far a partition was processed: an offset of its group, with words as its metadata.

use std::fmt;

/// How the metadata begins: what it is, and its version.
const WORD: &str = "weir1";

/// How far a partition was processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The first record of which no result is out.
    pub offset: i64,
    /// The first record from which state has to be rebuilt, at most `offset`.
    pub from: i64,
    /// The watermark before it, if there was one.
    pub at: Option<i64>,
    /// The run that captured the last record that is processed.
    pub epoch: u64,
    /// Messages of partial results that are out of that run.
    pub messages: u64,
    /// Whether that was the last of its run, so that nothing waits for more of it.
    pub has_ended: bool,
}

impl Position {
    /// The beginning of a log, or somewhere that a person has set: there is no state.
    pub fn fresh(offset: i64) -> Position {
        Position { offset, from: offset, at: None, epoch: 0, messages: 0, has_ended: false }
    }

    /// Reads an offset and its metadata; without any, the group was set there from elsewhere.
    pub fn read(offset: i64, metadata: &str) -> Option<Position> {
        let mut words = metadata.split(' ');
        if metadata.is_empty() {
            return Some(Position::fresh(offset));
        }
        if words.next() != Some(WORD) {
            return None;
        }
        let mut next =
            |name: &str| words.next().and_then(|word| word.strip_prefix(name)?.strip_prefix('='));
        let from = next("from")?.parse().ok().filter(|from| (0..=offset).contains(from))?;
        let at = match next("at")? {
            "none" => None,
            at => Some(at.parse().ok()?),
        };
        let epoch = next("epoch")?.parse().ok()?;
        let messages = next("messages")?.parse().ok()?;
        let has_ended = next("ended")? == "yes";
        Some(Position { offset, from, at, epoch, messages, has_ended })
    }
}

/// The metadata.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.map_or("none".to_owned(), |at| at.to_string());
        let ended = if self.has_ended { "yes" } else { "no" };
        let Position { from, epoch, messages, .. } = self;
        write!(f, "{WORD} from={from} at={at} epoch={epoch} messages={messages} ended={ended}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_back() {
        for (offset, from, at, has_ended) in
            [(0, 0, None, false), (i64::MAX, 5, Some(i64::MIN), true), (9, 9, Some(-1), false)]
        {
            let (epoch, messages) = (u64::MAX, u64::MAX);
            let position = Position { offset, from, at, epoch, messages, has_ended };
            assert_eq!(Position::read(offset, &position.to_string()), Some(position));
        }
        assert_eq!(Position::read(7, ""), Some(Position::fresh(7)));
        for text in [
            "weir2 from=1 at=none epoch=1 ended=no",
            "weir1 from=8 at=none epoch=1 ended=no",
            "weir1 from=-1 at=none epoch=1 ended=no",
            "weir1 at=none from=1",
            "weir1",
            "x",
        ] {
            assert_eq!(Position::read(7, text), None, "{text}");
        }
    }
}
