//! TCP options (RFC 9293, section 3.1; RFC 7323, window scale and timestamps; RFC 2018, selective
//! acknowledgments).
//!
//! [`Options`] walks the bytes of [`crate::tcp::Tcp::options`] option by option. One that does not
//! fit into the rest is the last item, a [`BadOption`]: the snap length or the sender cut it.

/// End of the list: what follows is padding.
pub const END: u8 = 0;
/// A byte of padding between options.
pub const NOP: u8 = 1;
/// Maximum segment size.
pub const MSS: u8 = 2;
/// Window scale.
pub const WINDOW_SCALE: u8 = 3;
/// Selective acknowledgments are permitted.
pub const SACK_PERMITTED: u8 = 4;
/// Selective acknowledgments.
pub const SACK: u8 = 5;
/// Timestamps.
pub const TIMESTAMPS: u8 = 8;

/// Bytes of one block of [`SACK`]: two sequence numbers.
pub const BLOCK_LEN: usize = 8;

/// One option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpOption<'a> {
    /// The largest segment that the sender takes, in bytes.
    Mss(u16),
    /// By how many bits the sender's windows are shifted.
    WindowScale(u8),
    /// The sender understands selective acknowledgments.
    SackPermitted,
    /// The blocks that the sender has received, one after the other.
    Sack(&'a [[u8; BLOCK_LEN]]),
    /// The sender's timestamp, and the one that it echoes.
    Timestamps(u32, u32),
    /// Any other kind, or a known one of a length that it should not have: kind and value.
    Other(u8, &'a [u8]),
}

/// An option that reaches beyond the bytes, or whose length is less than that of its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadOption;

/// The options of a segment, in order.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// Of these bytes, which start behind the fixed header.
    pub fn new(bytes: &'a [u8]) -> Options<'a> {
        Options { rest: bytes }
    }

    /// Kind and value of each option, whatever it is.
    pub fn raw(mut self) -> impl Iterator<Item = Result<(u8, &'a [u8]), BadOption>> {
        std::iter::from_fn(move || self.step())
    }

    fn step(&mut self) -> Option<Result<(u8, &'a [u8]), BadOption>> {
        let &kind = self.rest.iter().find(|&&kind| kind != NOP)?;
        let padding = self.rest.iter().take_while(|&&kind| kind == NOP).count();
        let rest = std::mem::take(&mut self.rest).get(padding..)?;
        if kind == END {
            return None;
        }
        let value = rest.get(1).and_then(|&len| rest.get(2..usize::from(len)));
        let Some(value) = value else { return Some(Err(BadOption)) };
        self.rest = &rest[2 + value.len()..];
        Some(Ok((kind, value)))
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<TcpOption<'a>, BadOption>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.step()?.map(|(kind, value)| option(kind, value)))
    }
}

fn option(kind: u8, value: &[u8]) -> TcpOption<'_> {
    match (kind, value) {
        (MSS, &[a, b]) => TcpOption::Mss(u16::from_be_bytes([a, b])),
        (WINDOW_SCALE, &[shift]) => TcpOption::WindowScale(shift),
        (SACK_PERMITTED, []) => TcpOption::SackPermitted,
        (SACK, blocks) if blocks.len().is_multiple_of(BLOCK_LEN) => {
            TcpOption::Sack(blocks.as_chunks().0)
        }
        (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => TcpOption::Timestamps(
            u32::from_be_bytes([a, b, c, d]),
            u32::from_be_bytes([e, f, g, h]),
        ),
        _ => TcpOption::Other(kind, value),
    }
}

/// The sequence numbers of a block: the first in it, and the first behind it.
pub fn edges(block: &[u8; BLOCK_LEN]) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = *block;
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
}

/// Any bytes as options: they come to an end, and hold no more than the bytes. Panics where that is
/// not so.
#[cfg(any(test, fuzzing))]
pub fn fuzz_tcp_options(bytes: &[u8]) {
    let (mut held, mut bad) = (0, false);
    for option in Options::new(bytes) {
        assert!(!bad, "nothing follows a bad option");
        match option {
            Ok(TcpOption::Mss(_)) => held += 4,
            Ok(TcpOption::WindowScale(_)) => held += 3,
            Ok(TcpOption::SackPermitted) => held += 2,
            Ok(TcpOption::Sack(blocks)) => held += 2 + blocks.len() * BLOCK_LEN,
            Ok(TcpOption::Timestamps(..)) => held += 10,
            Ok(TcpOption::Other(_, value)) => held += 2 + value.len(),
            Err(BadOption) => bad = true,
        }
    }
    assert!(held <= bytes.len());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(bytes: &[u8], expected: &[Result<TcpOption<'_>, BadOption>]) {
        assert_eq!(Options::new(bytes).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn reads_the_options_of_a_syn() {
        check(
            &[2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 1, 3, 3, 14],
            &[
                Ok(TcpOption::Mss(1460)),
                Ok(TcpOption::SackPermitted),
                Ok(TcpOption::Timestamps(7, 9)),
                Ok(TcpOption::WindowScale(14)),
            ],
        );
    }

    #[test]
    fn reads_blocks() {
        let bytes = [1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4];
        let Some(Ok(TcpOption::Sack(blocks))) = Options::new(&bytes).next() else { panic!() };
        assert_eq!(blocks.iter().map(edges).collect::<Vec<_>>(), [(1, 2), (3, 4)]);
    }

    #[test]
    fn the_end_and_what_is_cut() {
        check(&[], &[]);
        check(&[1, 1, 1], &[]);
        check(&[0, 2, 4, 5, 0xb4], &[]);
        check(&[2, 4, 5], &[Err(BadOption)]);
        check(&[8], &[Err(BadOption)]);
        check(&[8, 0, 1, 1], &[Err(BadOption)]);
        check(&[30, 1, 1, 1], &[Err(BadOption)]);
        check(&[30, 2, 1, 1], &[Ok(TcpOption::Other(30, &[]))]);
        check(&[2, 3, 5], &[Ok(TcpOption::Other(2, &[5]))]);
    }

    proptest! {
        #[test]
        fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            fuzz_tcp_options(&bytes);
        }

        #[test]
        fn short_options_hold(bytes in proptest::collection::vec(0u8..12, 0..44)) {
            fuzz_tcp_options(&bytes);
        }
    }
}
