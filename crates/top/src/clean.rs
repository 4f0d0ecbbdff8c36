//! Texts of packets and files before they reach a terminal.

use crate::limits::TEXT_MAX;
use weir_base::harmless::is_harmless;

/// The character in place of one that is not shown.
const HIDDEN: char = '\u{fffd}';

/// The text without characters that a terminal takes for commands, that are invisible, or that
/// change the direction of writing; cut to [`TEXT_MAX`] characters.
pub fn clean(text: &str) -> String {
    let mut out: String =
        text.chars().take(TEXT_MAX).map(|c| if is_harmless(c) { c } else { HIDDEN }).collect();
    if text.chars().nth(TEXT_MAX).is_some() {
        out.pop();
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_to_terminals_are_hidden() {
        for (text, expected) in [
            ("eth0", "eth0"),
            ("a\x1b[2Jb", "a\u{fffd}[2Jb"),
            ("\u{9b}31m", "\u{fffd}31m"),
            ("x\r\ny\x07", "x\u{fffd}\u{fffd}y\u{fffd}"),
            ("ab\u{202e}cd\u{2066}", "ab\u{fffd}cd\u{fffd}"),
            ("Zürich 東京", "Zürich 東京"),
            ("", ""),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn long_texts_are_cut_and_say_so() {
        let whole = "x".repeat(TEXT_MAX);
        assert_eq!(clean(&whole), whole);
        let cut = clean(&"x".repeat(TEXT_MAX + 1));
        assert_eq!((cut.chars().count(), cut.ends_with("x…")), (TEXT_MAX, true));
    }

    proptest! {
        #[test]
        fn nothing_that_a_terminal_obeys_is_left(text in any::<String>()) {
            let shown = clean(&text);
            prop_assert!(!shown.chars().any(char::is_control));
            prop_assert!(shown.chars().count() <= TEXT_MAX);
            prop_assert_eq!(clean(&shown), shown);
        }
    }
}
