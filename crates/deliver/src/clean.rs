//! Text of packets on its way out. Names, user agents and the like come from strangers: here they
//! lose what could start another line or header, move a cursor, reverse the text, or call people in
//! a chat. Nothing else in this crate cleans.

use weir_base::harmless::is_harmless;

/// The replacement for a character that was taken out.
const REPLACEMENT: char = '\u{fffd}';

/// Said where a text was cut.
const CUT: char = '…';

/// A space that takes no room: it keeps `@` from calling people, and `://` from being a link.
const JOINT: char = '\u{200b}';

/// One line of at most `max` bytes, without characters that steer or hide.
pub(crate) fn line(text: &str, max: usize) -> String {
    let visible = text.chars().map(|c| if is_harmless(c) { c } else { REPLACEMENT });
    cut(visible, max)
}

/// At most `max` bytes; the last character says if some are missing.
fn cut(chars: impl Iterator<Item = char>, max: usize) -> String {
    let (mut out, mut fits) = (String::new(), 0);
    for c in chars {
        if out.len() + c.len_utf8() > max {
            out.truncate(fits);
            if out.len() + CUT.len_utf8() <= max {
                out.push(CUT);
            }
            return out;
        }
        out.push(c);
        if out.len() + CUT.len_utf8() <= max {
            fits = out.len();
        }
    }
    out
}

/// Printable ASCII without spaces, at most `max` bytes; `-` where nothing is left.
pub(crate) fn token(text: &str, max: usize) -> String {
    let safe = text.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' });
    let out: String = safe.take(max).collect();
    if out.is_empty() { "-".to_owned() } else { out }
}

/// The name of a label: letters, digits and `_`.
pub(crate) fn label(name: &str) -> String {
    let safe = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    let out: String = safe.take(64).collect();
    if out.starts_with(|c: char| c.is_ascii_digit()) { format!("_{out}") } else { out }
}

/// A cleaned line for a chat that reads Markdown: it shows the text as it is, and calls nobody.
pub(crate) fn markdown(line: &str) -> String {
    let mut out = String::with_capacity(line.len() + line.len() / 4);
    for c in line.chars() {
        if c.is_ascii_punctuation() && !matches!(c, '@' | ':' | ',' | ';' | '\'' | '%' | '&') {
            out.push('\\');
        }
        out.push(c);
        if matches!(c, '@' | ':') {
            out.push(JOINT);
        }
    }
    out
}

/// A cleaned line for Slack, which reads `&`, `<` and `>` as its own, and a few signs as markup.
pub(crate) fn slack(line: &str) -> String {
    let mut out = String::with_capacity(line.len() + line.len() / 4);
    for c in line.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '*' | '_' | '~' | '`' | '@' | ':' | '#' => out.extend([c, JOINT]),
            c => out.push(c),
        }
    }
    out
}

/// A cleaned line that is no link and calls nobody, for texts that are shown as they are.
pub(crate) fn plain(line: &str) -> String {
    let joint = |c: char| [Some(c), matches!(c, '@' | ':').then_some(JOINT)];
    line.chars().flat_map(joint).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line() {
        for (text, expected) in [
            ("716 SYNs to 192.0.2.1", "716 SYNs to 192.0.2.1"),
            ("a\r\nBcc: all", "a\u{fffd}\u{fffd}Bcc: all"),
            ("\x1b[2J\u{9b}0m\0", "\u{fffd}[2J\u{fffd}0m\u{fffd}"),
            ("a\u{202e}b\u{2066}c\u{200b}d\u{feff}", "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}"),
            ("a\u{2028}b\u{85}c", "a\u{fffd}b\u{fffd}c"),
            ("größe 日本", "größe 日本"),
            ("", ""),
        ] {
            assert_eq!(line(text, 100), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_are_cut_between_characters() {
        for max in 0..12 {
            let cut = line("äöü€x", max);
            assert!(cut.len() <= max, "{cut} in {max}");
            assert_eq!(cut.ends_with('…'), (3..10).contains(&max), "{cut} in {max}");
        }
        assert_eq!((line("äöü€x", 10).as_str(), line("abc", 3).as_str()), ("äöü€x", "abc"));
    }

    #[test]
    fn nobody_is_called_in_a_chat() {
        let evil = "@everyone <!channel> [click](http://evil) **b** `x` <@U1> #general";
        for text in [markdown(evil), slack(evil), plain(evil)] {
            for call in ["@everyone", "://", "@U1", "http://"] {
                assert!(!text.contains(call), "{text}");
            }
        }
        assert!(!markdown(evil).contains("](") && !markdown(evil).contains("<!"));
        assert!(!slack(evil).contains(['<', '>']));
        assert_eq!(markdown("a*b_c"), "a\\*b\\_c");
        assert_eq!(slack("a<b>&c"), "a&lt;b&gt;&amp;c");
    }

    #[test]
    fn names_have_the_characters_that_are_allowed() {
        assert_eq!(token("a b\u{e4}\n", 10), "a_b__");
        assert_eq!(token("", 10), "-");
        assert_eq!(token("abcdef", 3), "abc");
        assert_eq!(label("ip.src"), "ip_src");
        assert_eq!(label("0x"), "_0x");
    }
}
