//! Texts of packets and files before they reach a terminal.

use crate::limits::TEXT_MAX;

/// What stands for a character that is not shown.
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

/// Whether a character is shown as it is: no control character of C0 or C1, no sign of the
/// direction of writing, nothing without a width, and nothing that is not assigned to writing.
fn is_harmless(c: char) -> bool {
    !matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'
        | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffc}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
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
