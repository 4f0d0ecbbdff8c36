//! Which characters of a text may be shown as they are, on a terminal or a page.

/// Whether a character is shown as it is: no control character of C0 or C1, no sign of the
/// direction of writing, nothing without a width, and nothing that is not assigned to writing.
pub fn is_harmless(c: char) -> bool {
    !matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'
        | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffc}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
}

/// A text as a terminal may show it: other characters are escaped as in Rust, but for line feeds,
/// which `keeps_lines` keeps.
pub fn escaped(text: &str, keeps_lines: bool) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match keeps_lines && c == '\n' || is_harmless(c) {
            true => shown.push(c),
            false => shown.extend(c.escape_default()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_a_terminal_obeys_are_escaped() {
        assert_eq!(escaped("a\n\u{1b}[31mü\u{9b}", false), "a\\n\\u{1b}[31mü\\u{9b}");
        assert_eq!(escaped("a\n\t", true), "a\n\\t");
    }

    #[test]
    fn what_is_shown_and_what_is_not() {
        for (c, expected) in [
            ('a', true),
            ('<', true),
            ('ü', true),
            ('東', true),
            ('\u{fffd}', true),
            ('\n', false),
            ('\x1b', false),
            ('\u{9b}', false),
            ('\u{202e}', false),
            ('\u{feff}', false),
        ] {
            assert_eq!(is_harmless(c), expected, "{c:?}");
        }
    }
}
