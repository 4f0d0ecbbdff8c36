//! Regular expressions, compiled within bounds: a few letters of a pattern, such as `\pL{1000}`,
//! can make it take any amount of memory and time.

use regex::{Error, Regex, RegexBuilder, bytes};

/// Bytes of a pattern as it is compiled, and of what is kept of it while texts are searched.
pub const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A pattern over texts.
///
/// # Errors
/// If it can't be read, or takes more than [`PATTERN_BYTES_MAX`].
pub fn of_text(pattern: &str) -> Result<Regex, Error> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX).build()
}

/// The same over bytes.
///
/// # Errors
/// If it can't be read, or takes more than [`PATTERN_BYTES_MAX`].
pub fn of_bytes(pattern: &str) -> Result<bytes::Regex, Error> {
    let mut builder = bytes::RegexBuilder::new(pattern);
    builder.size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_its_bounds() {
        assert!(of_text("(?i)^(one|two|three)$").expect("short").is_match("TWO"));
        assert!(of_bytes("^[a-z]{1,200}$").expect("short").is_match(b"abc"));
        for long in ["(?i)[\\pL\\pN]{200}x", "(a{1000}){1000}"] {
            assert!(matches!(of_text(long), Err(Error::CompiledTooBig(PATTERN_BYTES_MAX))));
            assert!(matches!(of_bytes(long), Err(Error::CompiledTooBig(PATTERN_BYTES_MAX))));
        }
        assert!(matches!(of_text("a(b"), Err(Error::Syntax(_))));
    }
}
