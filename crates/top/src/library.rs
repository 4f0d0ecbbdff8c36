//! The list of queries of the library, and the columns of one of their rows.

use crate::input::step_of;
use crate::queried::{LibraryQuery, QueryRow, whole_text};
use crate::snapshot::ShownOutput;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::sync::Arc;

/// The queries of the library, narrowed by what is typed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct QueryList {
    /// The text that was typed so far.
    pub(crate) text: String,
    /// The number of the chosen query among those that are listed.
    pub(crate) chosen: usize,
    /// The number of the first that is seen.
    pub(crate) offset: usize,
}

/// The effect of a key in the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Picked {
    /// The list stays.
    Stays,
    /// The tables come back.
    Cancelled,
    /// The query is to be run.
    Query(LibraryQuery),
}

/// Characters of what is typed in the list.
const TEXT_MAX: usize = 64;

impl QueryList {
    /// The queries whose names or titles have all words that were typed: first one that is called
    /// so.
    pub(crate) fn listed<'a>(&self, all: &'a [LibraryQuery]) -> Vec<&'a LibraryQuery> {
        let text = self.text.to_lowercase().replace('_', "-");
        let words: Vec<&str> = text.split_whitespace().collect();
        let fits = |query: &&LibraryQuery| {
            let of = format!("{} {}", query.name, query.title).to_lowercase().replace('_', "-");
            words.iter().all(|word| of.contains(word))
        };
        let mut listed: Vec<_> = all.iter().filter(fits).collect();
        let is_other =
            |query: &&LibraryQuery| query.name.to_lowercase().replace('_', "-") != text.trim();
        listed.sort_by_key(is_other);
        listed
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent, all: &[LibraryQuery]) -> Picked {
        let listed = self.listed(all);
        let last = listed.len().saturating_sub(1);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Picked::Cancelled,
            KeyCode::Enter => {
                let query = listed.get(self.chosen).map(|query| (*query).clone());
                return query.map_or(Picked::Stays, Picked::Query);
            }
            KeyCode::Backspace => {
                self.text.pop();
                self.chosen = 0;
            }
            KeyCode::Char('u') if control => {
                self.text.clear();
                self.chosen = 0;
            }
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.type_text(c.encode_utf8(&mut [0; 4]));
            }
            code => {
                let by = step_of(code).unwrap_or(0);
                self.chosen = self.chosen.saturating_add_signed(by).min(last);
            }
        }
        Picked::Stays
    }

    /// Takes a text that was typed or pasted.
    pub(crate) fn type_text(&mut self, text: &str) {
        let room = TEXT_MAX.saturating_sub(self.text.chars().count());
        self.text.extend(text.chars().filter(|c| !c.is_control()).take(room));
        self.chosen = 0;
    }
}

/// A row of a query with all its columns.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RowColumns {
    /// Names and values, whole.
    pub(crate) columns: Vec<(String, String)>,
    /// The number of the first that is seen.
    pub(crate) offset: usize,
}

impl RowColumns {
    /// The columns of a row.
    pub(crate) fn of(output: &ShownOutput, row: &Arc<QueryRow>) -> RowColumns {
        let column = |at: &usize| {
            let name = output.columns.get(*at)?;
            Some((crate::clean(name), whole_text(row.values.get(*at)?)))
        };
        RowColumns { columns: output.order.iter().filter_map(column).collect(), offset: 0 }
    }

    /// Takes a key; whether the columns stay.
    pub(crate) fn key(&mut self, code: KeyCode) -> bool {
        let by = match code {
            KeyCode::Char('j') => 1,
            KeyCode::Char('k') => -1,
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left | KeyCode::Enter => return false,
            code => step_of(code).unwrap_or(0),
        };
        let last = self.columns.len().saturating_sub(1);
        self.offset = self.offset.saturating_add_signed(by).min(last);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library() -> Vec<LibraryQuery> {
        let query = |(name, title): (&str, &str)| LibraryQuery {
            name: name.to_owned(),
            title: title.to_owned(),
            text: String::new(),
        };
        [
            ("sources", "how much each address sends"),
            ("syn_flood", "servers whose handshakes are not completed"),
            ("port_scan_slow", "hosts that try many ports of one host"),
            ("port_scan", "hosts that try many ports"),
        ]
        .map(query)
        .into()
    }

    fn press(list: &mut QueryList, code: KeyCode) -> Picked {
        list.key(KeyEvent::new(code, KeyModifiers::NONE), &library())
    }

    #[test]
    fn what_is_typed_narrows_the_list() {
        let mut list = QueryList::default();
        let names = |list: &QueryList| -> Vec<String> {
            list.listed(&library()).into_iter().map(|query| query.name.clone()).collect()
        };
        assert_eq!(names(&list).len(), 4);
        press(&mut list, KeyCode::End);
        assert_eq!(list.chosen, 3);
        // `-` and `_` are alike, and so are large and small letters.
        "Syn-f".chars().for_each(|c| drop(press(&mut list, KeyCode::Char(c))));
        assert_eq!((names(&list), list.chosen), (vec!["syn_flood".to_owned()], 0));
        assert_eq!(press(&mut list, KeyCode::Enter), Picked::Query(library().remove(1)));
        list.type_text(" x\ty");
        assert_eq!((names(&list).len(), list.text.as_str()), (0, "Syn-f xy"));
        assert_eq!(press(&mut list, KeyCode::Enter), Picked::Stays);
        list.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL), &library());
        list.type_text("many hosts");
        assert_eq!(names(&list), ["port_scan_slow", "port_scan"]);
        list.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL), &library());
        list.type_text("Port-scan ");
        assert_eq!(names(&list), ["port_scan", "port_scan_slow"], "first what is called so");
        list.type_text(&"é".repeat(500));
        assert_eq!(list.text.chars().count(), TEXT_MAX);
        assert_eq!(press(&mut list, KeyCode::Esc), Picked::Cancelled);
    }

    #[test]
    fn keys_stay_within_the_list() {
        let mut list = QueryList::default();
        for (code, expected) in [
            (KeyCode::Up, 0),
            (KeyCode::Down, 1),
            (KeyCode::PageDown, 3),
            (KeyCode::Down, 3),
            (KeyCode::PageUp, 0),
            (KeyCode::End, 3),
            (KeyCode::Home, 0),
        ] {
            press(&mut list, code);
            assert_eq!(list.chosen, expected, "{code:?}");
        }
        list.type_text("nothing at all");
        press(&mut list, KeyCode::Down);
        assert_eq!(list.chosen, 0);
    }
}
