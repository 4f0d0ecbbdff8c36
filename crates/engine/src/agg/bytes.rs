//! Words, numbers and texts in encoded states.

/// Reads `N` words from the front of encoded bytes.
pub(super) fn read_words<const N: usize>(from: &mut &[u8]) -> Option<[u64; N]> {
    let (head, rest) = from.split_at_checked(N * 8)?;
    *from = rest;
    let mut words = [0; N];
    for (w, bytes) in words.iter_mut().zip(head.chunks_exact(8)) {
        *w = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    Some(words)
}

/// Appends words to encoded bytes.
pub(crate) fn write_words(words: &[u64], out: &mut Vec<u8>) {
    words.iter().for_each(|w| out.extend_from_slice(&w.to_le_bytes()));
}

/// Reads a length and that many bytes.
pub(super) fn read_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut rest = *from;
    let len = read_number(&mut rest)?;
    let (bytes, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    *from = rest;
    Some(bytes)
}

/// Appends a length and bytes.
pub(super) fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Reads a number of 32 bits.
pub(super) fn read_number(from: &mut &[u8]) -> Option<u32> {
    let (head, rest) = from.split_first_chunk::<4>()?;
    *from = rest;
    Some(u32::from_le_bytes(*head))
}
