//! Texts that are read from packets: printable, and of bounded length.

use crate::limits::TEXT_MAX;

/// A text being written, of at most [`TEXT_MAX`] bytes, all of them printable ASCII.
#[derive(Clone, Debug)]
pub struct Text {
    bytes: [u8; TEXT_MAX],
    len: usize,
}

impl Text {
    /// An empty one.
    pub fn new() -> Text {
        Text { bytes: [0; TEXT_MAX], len: 0 }
    }

    /// Forgets what was written.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The bytes that were written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends printable ASCII, unless there is no room for all of it; returns whether there was.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let Some(room) = self.bytes.get_mut(self.len..self.len + bytes.len()) else { return false };
        room.copy_from_slice(bytes);
        self.len += bytes.len();
        true
    }

    /// Appends what a packet holds, as far as there is room: other bytes than printable ASCII are
    /// written `\xNN`, and a backslash `\\`.
    pub fn push_escaped(&mut self, bytes: &[u8]) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        for &byte in bytes {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            let whole = match byte {
                b'\\' => self.push(b"\\\\"),
                b' '..=b'~' => self.push(&[byte]),
                _ => self.push(&[b'\\', b'x', high, low]),
            };
            if !whole {
                return;
            }
        }
    }

    /// Writes what a packet holds, if it holds it; returns whether it does.
    pub fn write_bytes(&mut self, bytes: Option<&[u8]>) -> bool {
        bytes.map(|bytes| self.push_escaped(bytes)).is_some()
    }

    /// Writes texts that a packet holds, with commas between them; returns whether there are any.
    pub fn write_list<'b>(&mut self, texts: impl Iterator<Item = &'b [u8]>) -> bool {
        for (n, text) in texts.enumerate() {
            if n > 0 {
                self.push(b",");
            }
            self.push_escaped(text);
        }
        self.len > 0
    }

    /// Writes the name of a host, if there is one: in lower case, as it means the same in either.
    pub fn write_host(&mut self, bytes: Option<&[u8]>) -> bool {
        let there = self.write_bytes(bytes);
        self.lower_from(0);
        there
    }

    /// Forgets what was written after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Writes ASCII letters in lower case from here on: `start` is where.
    pub fn lower_from(&mut self, start: usize) {
        self.bytes[start.min(self.len)..self.len].make_ascii_lowercase();
    }
}

/// Fails where there is no room for all of a piece, or other characters are in it.
impl std::fmt::Write for Text {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        let printable = s.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if printable && self.push(s.as_bytes()) { Ok(()) } else { Err(std::fmt::Error) }
    }
}

impl Default for Text {
    fn default() -> Text {
        Text::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(bytes: &[u8]) -> String {
        let mut text = Text::new();
        text.push_escaped(bytes);
        String::from_utf8(text.bytes().to_vec()).unwrap()
    }

    #[test]
    fn other_bytes_are_escaped() {
        assert_eq!(escaped(b"a b~"), "a b~");
        assert_eq!(escaped(b"\x00\n\xff"), r"\x00\x0a\xff");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(escaped(&[b'a'; TEXT_MAX + 1]).len(), TEXT_MAX);
        let long = escaped(&[&[b'a'; TEXT_MAX - 2][..], b"\n"].concat());
        assert_eq!(long.len(), TEXT_MAX - 2);
    }
}
