//! HTML and SVG as they are written. Markup is constant; whatever else comes in goes through one
//! function that takes it for text.

use crate::limits::TEXT_MAX;
use std::fmt::Write as _;
use weir_base::harmless::is_harmless;

/// The character in place of one that is not shown.
const HIDDEN: char = '\u{fffd}';

/// A piece of a page or a picture.
#[derive(Clone, Default, Debug)]
pub(crate) struct Markup(String);

impl Markup {
    /// Appends markup, which is never made of anything else.
    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Markup {
        self.0.push_str(markup);
        self
    }

    /// Appends a text, as content or as the value of an attribute in quotes: a text stays one.
    pub(crate) fn text(&mut self, text: &str) -> &mut Markup {
        escape(&mut self.0, text);
        self
    }

    /// Appends a text of several lines.
    pub(crate) fn lines(&mut self, text: &str) -> &mut Markup {
        for line in text.lines() {
            self.text(line).raw("\n");
        }
        self
    }

    /// Appends a coordinate or a length, to a tenth.
    pub(crate) fn number(&mut self, n: f64) -> &mut Markup {
        let tenths = if n.is_finite() { (n * 10.0).round() / 10.0 } else { 0.0 };
        // There is no minus zero on a page.
        let _ = write!(self.0, "{}", tenths + 0.0);
        self
    }

    /// Appends an element with a text.
    pub(crate) fn element(&mut self, tag: &'static str, text: &str) -> &mut Markup {
        self.raw("<").raw(tag).raw(">").text(text).raw("</").raw(tag).raw(">")
    }

    /// Appends another piece.
    pub(crate) fn piece(&mut self, piece: &Markup) -> &mut Markup {
        self.0.push_str(&piece.0);
        self
    }

    /// Whether there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The whole.
    pub(crate) fn finish(self) -> String {
        self.0
    }
}

/// Appends a text so that it means itself in HTML and in SVG, in content and in attributes: no
/// markup, no control character, no sign of the direction of writing. At most [`TEXT_MAX`]
/// characters.
fn escape(out: &mut String, text: &str) {
    for (i, c) in text.chars().enumerate() {
        if i == TEXT_MAX {
            out.push('…');
            return;
        }
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if is_harmless(c) => out.push(c),
            _ => out.push(HIDDEN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn escaped(text: &str) -> String {
        let mut out = Markup::default();
        out.text(text);
        out.finish()
    }

    #[test]
    fn a_text_is_no_markup() {
        for (text, expected) in [
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("\" onload='x' &lt;", "&quot; onload=&#39;x&#39; &amp;lt;"),
            ("a\u{202e}b\x1b[31m\r\n", "a\u{fffd}b\u{fffd}[31m\u{fffd}\u{fffd}"),
            ("Zürich 東京", "Zürich 東京"),
        ] {
            assert_eq!(escaped(text), expected);
        }
        let long = escaped(&"x".repeat(TEXT_MAX + 1));
        assert_eq!((long.chars().count(), long.ends_with("x…")), (TEXT_MAX + 1, true));
    }

    #[test]
    fn numbers_are_short_and_finite() {
        let number = |n| {
            let mut out = Markup::default();
            out.number(n);
            out.finish()
        };
        for (n, expected) in [
            (0.0, "0"),
            (-0.04, "0"),
            (1.25, "1.3"),
            (-3.0, "-3"),
            (f64::NAN, "0"),
            (1e9, "1000000000"),
        ] {
            assert_eq!(number(n), expected);
        }
        assert_eq!(number(f64::INFINITY), "0");
    }

    proptest! {
        #[test]
        fn nothing_of_a_text_is_special(text in any::<String>()) {
            let out = escaped(&text);
            prop_assert!(!out.contains(['<', '>', '"', '\'']));
            prop_assert!(!out.chars().any(char::is_control));
            for part in out.split('&').skip(1) {
                let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
                prop_assert!(known.iter().any(|entity| part.starts_with(entity)));
            }
        }
    }
}
