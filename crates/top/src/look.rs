//! The abilities of the terminal: colours, and the characters of time lines.

use ratatui::style::{Color, Modifier, Style};
use weir_plan::TimeZone;

/// The characters that time lines are drawn with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Glyphs {
    /// Dots of Braille: two values a column, four levels a line.
    Braille,
    /// Blocks: one value a column, eight levels a line.
    Blocks,
    /// Characters that every terminal has.
    Ascii,
}

impl Glyphs {
    /// The glyphs that fit the terminal and the character set: `term` is TERM, `locale` the first
    /// of LC_ALL, LC_CTYPE and LANG that is not empty.
    pub fn fitting(term: &str, locale: &str) -> Glyphs {
        let locale = locale.to_ascii_lowercase();
        let is_utf8 = locale.contains("utf-8") || locale.contains("utf8");
        // Consoles have fonts of few hundred characters.
        let is_console = ["linux", "vt", "dumb", "ansi", "cons", "wsvt"]
            .iter()
            .any(|console| term.starts_with(console));
        match (is_utf8, is_console || term.is_empty()) {
            (true, false) => Glyphs::Braille,
            _ => Glyphs::Ascii,
        }
    }

    /// The next kind.
    pub(crate) fn next(self) -> Glyphs {
        match self {
            Glyphs::Braille => Glyphs::Blocks,
            Glyphs::Blocks => Glyphs::Ascii,
            Glyphs::Ascii => Glyphs::Braille,
        }
    }

    /// How many values a column shows.
    pub(crate) fn per_column(self) -> usize {
        if self == Glyphs::Braille { 2 } else { 1 }
    }
}

/// The abilities of the terminal, and how times are shown there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// Whether there are colours.
    pub color: bool,
    /// The characters of time lines.
    pub glyphs: Glyphs,
    /// The zone that times are shown in; `None` is UTC.
    pub zone: Option<TimeZone>,
}

impl Look {
    fn colored(self, color: Color, else_: Modifier) -> Style {
        match self.color {
            true => Style::new().fg(color).add_modifier(else_ & Modifier::BOLD),
            false => Style::new().add_modifier(else_),
        }
    }

    /// Text that stands out.
    pub(crate) fn title(self) -> Style {
        self.colored(Color::Cyan, Modifier::BOLD)
    }

    /// Text that is beside the point.
    pub(crate) fn faint(self) -> Style {
        self.colored(Color::DarkGray, Modifier::empty())
    }

    /// A loss or an error.
    pub(crate) fn loss(self) -> Style {
        self.colored(Color::Red, Modifier::BOLD)
    }

    /// Text that has to be known, and is no error.
    pub(crate) fn notice(self) -> Style {
        self.colored(Color::Yellow, Modifier::BOLD)
    }

    /// The line of packets over time.
    pub(crate) fn packets(self) -> Style {
        self.colored(Color::Green, Modifier::empty())
    }

    /// The line of bits over time.
    pub(crate) fn bits(self) -> Style {
        self.colored(Color::Blue, Modifier::empty())
    }

    /// The chosen row, and the table that is shown.
    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_get_what_they_can_show() {
        for (term, locale, expected) in [
            ("xterm-256color", "de_DE.UTF-8", Glyphs::Braille),
            ("tmux-256color", "C.utf8", Glyphs::Braille),
            ("linux", "C.UTF-8", Glyphs::Ascii),
            ("vt100", "C.UTF-8", Glyphs::Ascii),
            ("xterm", "C", Glyphs::Ascii),
            ("xterm", "", Glyphs::Ascii),
            ("", "C.UTF-8", Glyphs::Ascii),
        ] {
            assert_eq!(Glyphs::fitting(term, locale), expected, "{term} {locale}");
        }
    }

    #[test]
    fn without_colour_there_is_none() {
        let look = Look { color: false, glyphs: Glyphs::Ascii, zone: None };
        for style in [look.title(), look.faint(), look.loss(), look.notice(), look.chosen()] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
