//! The box in which people type a filter, or keys.

use crate::filter::{self, Fault};
use crate::limits::FILTER_MAX;
use crate::typed_keys;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A text that is being typed, the cursor in it, and what is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Input {
    text: Vec<char>,
    /// The number of characters before the cursor.
    cursor: usize,
    fault: Option<Fault>,
    completion: Option<Completion>,
    typing: Typing,
}

/// The kind of text that is typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Typing {
    /// A condition on packets.
    Condition,
    /// Keys to count them by.
    Keys,
}

impl Typing {
    fn check(self, text: &str) -> Result<(), Fault> {
        match self {
            Typing::Condition => filter::check(text),
            Typing::Keys => typed_keys::check(text),
        }
    }
}

/// Words that the one before the cursor may become, tried one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Completion {
    start: usize,
    words: Vec<&'static str>,
    at: usize,
}

/// The effect of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Typed {
    /// The text may have changed.
    Edited,
    /// The text is sound, and to be applied.
    Done(String),
    /// All stays as it was.
    Cancelled,
}

/// How many lines down a key goes in a list.
pub(crate) fn step_of(code: KeyCode) -> Option<isize> {
    Some(match code {
        KeyCode::Down => 1,
        KeyCode::Up => -1,
        KeyCode::PageDown => 10,
        KeyCode::PageUp => -10,
        KeyCode::Home => isize::MIN,
        KeyCode::End => isize::MAX,
        _ => return None,
    })
}

impl Input {
    /// Begins with a text.
    pub(crate) fn new(text: &str, typing: Typing) -> Input {
        let text: Vec<char> = text.chars().collect();
        let mut input = Input { cursor: text.len(), text, fault: None, completion: None, typing };
        input.check();
        input
    }

    /// The text.
    pub(crate) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// How many characters are before the cursor.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    /// The mistake in the text.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// The words that the word before the cursor may become, and which of them it is now.
    pub(crate) fn suggestions(&self) -> (Vec<&'static str>, Option<usize>) {
        match &self.completion {
            Some(completion) => (completion.words.clone(), Some(completion.at)),
            None => (filter::completions(&self.text(), self.cursor).1, None),
        }
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Typed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Typed::Cancelled,
            KeyCode::Enter if self.fault.is_none() => {
                return Typed::Done(self.text().trim().to_owned());
            }
            KeyCode::Enter => {}
            KeyCode::Tab => {
                self.complete(false);
                self.check();
                return Typed::Edited;
            }
            KeyCode::BackTab => {
                self.complete(true);
                self.check();
                return Typed::Edited;
            }
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.text.len(),
            KeyCode::Char('u') if control => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            KeyCode::Char('k') if control => self.text.truncate(self.cursor),
            KeyCode::Char('w') if control => self.erase_word(),
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.insert(c);
            }
            KeyCode::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.cursor);
            }
            KeyCode::Delete if self.cursor < self.text.len() => {
                self.text.remove(self.cursor);
            }
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => {}
        }
        self.completion = None;
        self.check();
        Typed::Edited
    }

    /// Puts a text in at the cursor; line feeds of what is pasted become blanks.
    pub(crate) fn paste(&mut self, text: &str) {
        text.chars().for_each(|c| self.insert(if c.is_whitespace() { ' ' } else { c }));
        self.completion = None;
        self.check();
    }

    fn insert(&mut self, c: char) {
        if !c.is_control() && self.text.len() * c.len_utf8() < FILTER_MAX {
            self.text.insert(self.cursor, c);
            self.cursor += 1;
        }
    }

    /// Erases back to the beginning of the word.
    fn erase_word(&mut self) {
        let before = &self.text[..self.cursor];
        let end = before.iter().rposition(|c| *c != ' ').map_or(0, |at| at + 1);
        let start = before[..end].iter().rposition(|c| *c == ' ').map_or(0, |at| at + 1);
        self.text.drain(start..self.cursor);
        self.cursor = start;
    }

    /// Completes the word before the cursor as far as that is clear; then tries the words that it
    /// may be, one at each call.
    fn complete(&mut self, back: bool) {
        if let Some(Completion { start, words, at }) = self.completion.take() {
            let step = if back { words.len() - 1 } else { 1 };
            let at = (at + step) % words.len();
            self.replace_word(start, words[at]);
            self.completion = Some(Completion { start, words, at });
            return;
        }
        let (start, words) = filter::completions(&self.text(), self.cursor);
        let common = filter::common_prefix(&words);
        if common.chars().count() > self.cursor - start {
            self.replace_word(start, common);
        } else if !words.is_empty() {
            let at = if back { words.len() - 1 } else { 0 };
            self.replace_word(start, words[at]);
            self.completion = Some(Completion { start, words, at });
        }
    }

    fn replace_word(&mut self, start: usize, word: &str) {
        self.text.splice(start..self.cursor, word.chars());
        self.cursor = start + word.chars().count();
    }

    fn check(&mut self) {
        self.fault = self.typing.check(&self.text()).err();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn press(input: &mut Input, code: KeyCode) -> Typed {
        input.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn control(input: &mut Input, c: char) {
        input.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
    }

    fn typed(text: &str) -> Input {
        let mut input = Input::new("", Typing::Condition);
        text.chars().for_each(|c| drop(press(&mut input, KeyCode::Char(c))));
        input
    }

    #[test]
    fn a_filter_is_applied_once_it_is_sound() {
        let mut input = typed("tpc");
        assert_eq!(press(&mut input, KeyCode::Enter), Typed::Edited);
        assert_eq!(input.fault().map(|f| (f.from, f.to)), Some((0, 3)));
        control(&mut input, 'u');
        input.paste("tcp\nand dport == 80 ");
        assert_eq!(input.fault(), None);
        let done = Typed::Done("tcp and dport == 80".to_owned());
        assert_eq!(press(&mut input, KeyCode::Enter), done);
        assert_eq!(press(&mut input, KeyCode::Esc), Typed::Cancelled);
    }

    #[test]
    fn tab_completes_names() {
        let mut input = typed("dns.qn");
        press(&mut input, KeyCode::Tab);
        assert_eq!((input.text().as_str(), input.cursor()), ("dns.qname", 9));
        let mut input = typed("not dns.qt");
        press(&mut input, KeyCode::Tab);
        assert_eq!(input.text(), "not dns.qtype");
        // Where several are possible: first what they have in common, then one after the other.
        let mut input = typed("tcp.se");
        assert_eq!(input.suggestions(), (vec!["tcp.seq"], None));
        let mut several = typed("tcp.sack");
        press(&mut several, KeyCode::Tab);
        assert_eq!(several.text(), "tcp.sack_");
        press(&mut several, KeyCode::Tab);
        assert_eq!(several.text(), "tcp.sack_blocks");
        press(&mut several, KeyCode::Tab);
        assert_eq!(several.text(), "tcp.sack_left");
        press(&mut several, KeyCode::BackTab);
        assert_eq!(several.text(), "tcp.sack_blocks");
        press(&mut input, KeyCode::Tab);
        press(&mut input, KeyCode::Tab);
        assert_eq!(input.text(), "tcp.seq");
    }

    #[test]
    fn the_line_is_edited_as_in_shells() {
        let mut input = typed("udp or tcp");
        control(&mut input, 'w');
        assert_eq!(input.text(), "udp or ");
        control(&mut input, 'w');
        assert_eq!(input.text(), "udp ");
        control(&mut input, 'a');
        press(&mut input, KeyCode::Delete);
        press(&mut input, KeyCode::End);
        press(&mut input, KeyCode::Backspace);
        press(&mut input, KeyCode::Left);
        press(&mut input, KeyCode::Char('x'));
        assert_eq!(input.text(), "dxp");
        control(&mut input, 'k');
        assert_eq!((input.text().as_str(), input.cursor()), ("dx", 2));
    }

    proptest! {
        #[test]
        fn any_keys_leave_the_cursor_in_the_text(
            keys in prop::collection::vec((0_u8..16, any::<char>(), any::<bool>()), 0..40),
        ) {
            let mut input = Input::new("tcp and ", Typing::Condition);
            for (code, c, is_control) in keys {
                let code = match code {
                    0 => KeyCode::Tab,
                    1 => KeyCode::BackTab,
                    2 => KeyCode::Backspace,
                    3 => KeyCode::Delete,
                    4 => KeyCode::Left,
                    5 => KeyCode::Right,
                    6 => KeyCode::Home,
                    7 => KeyCode::End,
                    8 => KeyCode::Enter,
                    9 => KeyCode::Char('t'),
                    10 => KeyCode::Char('w'),
                    11 => KeyCode::Char('u'),
                    _ => KeyCode::Char(c),
                };
                let held = if is_control { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
                input.key(KeyEvent::new(code, held));
                prop_assert!(input.cursor() <= input.text().chars().count());
                prop_assert!(input.text().len() <= FILTER_MAX + 64);
            }
        }
    }
}
