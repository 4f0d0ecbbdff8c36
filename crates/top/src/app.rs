//! The state of the screen, and what keys change of it.

use crate::filter::{both, check};
use crate::input::{Input, Typed, Typing};
use crate::key::RowKey;
use crate::library::{Picked, QueryList, RowColumns};
use crate::limits::HISTORY_MAX;
use crate::look::Look;
use crate::model::Model;
use crate::number::Times;
use crate::packets::{FoundPackets, ListKey, PacketList, PacketsWanted};
use crate::queried::{LibraryQuery, QueryRow};
use crate::query::{Pace, Setup};
use crate::snapshot::{QueryOrder, Row, RowOrder, Snapshot};
use crate::table::{Column, Data, Table};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::sync::Arc;
use weir_lang::ReadingRules;

mod tables;

/// The view in front of the tables.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Mode {
    /// Nothing.
    Tables,
    /// The help.
    Help,
    /// The box for a filter.
    Filter(Input),
    /// The box for keys.
    Keys(Input),
    /// The queries of the library.
    Library(QueryList),
    /// All columns of a row of a query.
    Columns(RowColumns),
    /// The packets of a row.
    Packets(PacketList),
}

/// The request of a key to the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// Nothing.
    Nothing,
    /// To count by the table and filter that are chosen now.
    Change,
    /// To look for the packets of [`App::wanted`].
    LookForPackets,
    /// To look for packets no more.
    LookNoMore,
    /// To write the packets of [`App::wanted`] into a file.
    SavePackets,
    /// To end.
    Quit,
}

/// The state of the screen.
#[derive(Debug)]
pub(crate) struct App {
    /// The source of the packets, cleaned.
    pub(crate) source: String,
    pub(crate) look: Look,
    pub(crate) mode: Mode,
    pub(crate) table: Table,
    pub(crate) column: Column,
    pub(crate) descending: bool,
    /// The queries that can be run.
    pub(crate) library: Vec<LibraryQuery>,
    /// The number of the output whose rows are shown, of those of the query.
    output: usize,
    /// The place of the column by which these are sorted; `None`: the latest first.
    pub(crate) query_column: Option<usize>,
    pub(crate) filter: String,
    /// Filters before this one.
    earlier: Vec<String>,
    /// The row that is chosen, and the order in which rows keep still.
    pub(crate) chosen: Option<RowKey>,
    kept: Vec<RowKey>,
    /// The picture stands still.
    pub(crate) paused: bool,
    /// The number of the first row that is seen.
    pub(crate) offset: usize,
    /// The outcome of the last change, if that was not what was wanted.
    pub(crate) message: Option<String>,
    setup: Setup,
    /// [`Setup::changes`] of what the run counts, or will count soon.
    pub(crate) counted: u64,
    /// The snapshot that is shown.
    pub(crate) shown: Snapshot,
}

impl App {
    /// A screen of hosts, of all packets.
    pub(crate) fn new(source: &str, look: Look, setup: Setup, model: &Model) -> App {
        let table = Table::Hosts;
        let column = Column::Sent;
        App {
            source: crate::clean(source),
            look,
            mode: Mode::Tables,
            table,
            column,
            descending: true,
            library: Vec::new(),
            output: 0,
            query_column: None,
            filter: setup.filter.clone(),
            earlier: Vec::new(),
            chosen: None,
            kept: Vec::new(),
            paused: false,
            offset: 0,
            message: None,
            shown: Snapshot::of(model, table, &RowOrder::By(column, true)),
            counted: setup.changes,
            setup,
        }
    }

    /// The setup by which the run is to count now.
    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// How times are written.
    pub(crate) fn times(&self) -> Times {
        Times::within(self.shown.series.span(), self.look.zone)
    }

    /// Takes a new picture, unless the picture stands still.
    pub(crate) fn refresh(&mut self, model: &Model) {
        if self.paused {
            return;
        }
        let order = match (&self.chosen, self.table) {
            (Some(_), Table::Query) => {
                let kept = self.shown.rows.iter().filter_map(|row| row.of_query.clone());
                RowOrder::KeptOfQuery(self.shown.output.at, kept.collect())
            }
            (Some(_), _) => RowOrder::Kept(self.kept.clone()),
            (None, Table::Query) => RowOrder::OfQuery(QueryOrder {
                output: self.output,
                column: self.query_column,
                descending: self.descending,
            }),
            (None, _) => RowOrder::By(self.column, self.descending),
        };
        self.shown = Snapshot::of(model, self.table, &order);
        // Rows of other keys, or of another query, are not those of this table.
        if matches!(self.table, Table::Keys | Table::Query)
            && self.shown.changes != Some(self.counted)
        {
            self.shown.rows.clear();
        }
    }

    /// Takes a text that was pasted.
    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.mode {
            Mode::Filter(input) | Mode::Keys(input) => input.paste(text),
            Mode::Library(list) => list.type_text(text),
            _ => {}
        }
    }

    /// Takes a key. `model` is asked which filter means a row.
    pub(crate) fn key(&mut self, key: KeyEvent, model: &Model) -> Wish {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'C')) {
            return Wish::Quit;
        }
        match &mut self.mode {
            Mode::Help => {
                self.mode = Mode::Tables;
                match key.code {
                    KeyCode::Char('q') => Wish::Quit,
                    _ => Wish::Nothing,
                }
            }
            Mode::Filter(input) => match input.key(key) {
                Typed::Edited => Wish::Nothing,
                Typed::Cancelled => self.back_to_tables(),
                Typed::Done(text) => {
                    self.mode = Mode::Tables;
                    self.apply(text)
                }
            },
            Mode::Keys(input) => match input.key(key) {
                Typed::Edited => Wish::Nothing,
                Typed::Cancelled => self.back_to_tables(),
                Typed::Done(text) => self.count_by(text),
            },
            Mode::Library(list) => match list.key(key, &self.library) {
                Picked::Stays => Wish::Nothing,
                Picked::Cancelled => self.back_to_tables(),
                Picked::Query(query) => self.run_query(query),
            },
            Mode::Columns(_) | Mode::Packets(_) if control => Wish::Nothing,
            Mode::Columns(row) => match key.code {
                KeyCode::Char('q') => Wish::Quit,
                KeyCode::Char('p') => self.look_for_packets(model),
                code if row.key(code) => Wish::Nothing,
                _ => self.back_to_tables(),
            },
            Mode::Packets(list) => match list.key(key.code) {
                ListKey::Stays => Wish::Nothing,
                ListKey::Saves => Wish::SavePackets,
                ListKey::Quits => Wish::Quit,
                ListKey::Closes => {
                    self.mode = Mode::Tables;
                    Wish::LookNoMore
                }
            },
            Mode::Tables if control => Wish::Nothing,
            Mode::Tables => self.table_key(key.code, model),
        }
    }

    fn back_to_tables(&mut self) -> Wish {
        self.mode = Mode::Tables;
        Wish::Nothing
    }

    fn table_key(&mut self, code: KeyCode, model: &Model) -> Wish {
        match code {
            KeyCode::Char('q') => return Wish::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.mode = Mode::Help,
            KeyCode::Char('/') => {
                self.mode = Mode::Filter(Input::new(&self.filter, Typing::Condition))
            }
            KeyCode::Char('b') => self.type_keys(),
            KeyCode::Char('l') => self.mode = Mode::Library(QueryList::default()),
            KeyCode::Char('o') => self.next_output(model),
            KeyCode::Char(' ') => self.pause(model),
            KeyCode::Char(c @ '1'..='8') => {
                return self.show(Table::ALL[c as usize - '1' as usize], model);
            }
            KeyCode::Tab => return self.show(self.next_table(false), model),
            KeyCode::BackTab => return self.show(self.next_table(true), model),
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::PageDown => self.choose(10),
            KeyCode::PageUp => self.choose(-10),
            KeyCode::Home => self.choose(-(self.shown.rows.len() as isize)),
            KeyCode::End => self.choose(self.shown.rows.len() as isize),
            KeyCode::Esc => self.release(model),
            KeyCode::Right | KeyCode::Char('>') => self.sort(1, model),
            KeyCode::Left | KeyCode::Char('<') => self.sort(-1, model),
            KeyCode::Char('r') => {
                self.descending = !self.descending;
                self.release(model);
            }
            KeyCode::Char('g') => self.look.glyphs = self.look.glyphs.next(),
            KeyCode::Enter => return self.open_row(model),
            KeyCode::Char('p') => return self.look_for_packets(model),
            KeyCode::Backspace => return self.back(),
            _ => {}
        }
        Wish::Nothing
    }

    fn pause(&mut self, model: &Model) {
        self.paused = !self.paused;
        self.refresh(model);
    }

    /// Chooses a row so many further down; the first one if none was chosen.
    fn choose(&mut self, by: isize) {
        let rows = &self.shown.rows;
        let Some(last) = rows.len().checked_sub(1) else { return };
        let at = match &self.chosen {
            Some(key) => {
                let at = rows.iter().position(|row| row.key == *key).unwrap_or(0);
                at.saturating_add_signed(by).min(last)
            }
            None => {
                self.kept = rows.iter().map(|row| row.key.clone()).collect();
                if by > 1 { last.min(by as usize) } else { 0 }
            }
        };
        self.chosen = Some(self.shown.rows[at].key.clone());
        self.message = None;
    }

    /// No row is chosen any more: rows are sorted again.
    fn release(&mut self, model: &Model) {
        (self.chosen, self.offset, self.message) = (None, 0, None);
        self.refresh(model);
    }

    /// Asks for the packets of the chosen row only; of a row of a query, shows all its columns.
    fn open_row(&mut self, model: &Model) -> Wish {
        if let Some(row) = self.chosen_row().and_then(|row| row.of_query.as_ref()) {
            self.mode = Mode::Columns(RowColumns::of(&self.shown.output, row));
            return Wish::Nothing;
        }
        match self.chosen_packets(model) {
            Some((_, filter)) => self.apply(filter),
            None => Wish::Nothing,
        }
    }

    /// Asks to see the packets of the chosen row.
    fn look_for_packets(&mut self, model: &Model) -> Wish {
        let of_query = self.chosen_row().and_then(|row| {
            let wanted = |of: &Arc<QueryRow>| PacketsWanted::Row {
                output: self.shown.output.at,
                row: Arc::clone(of),
            };
            Some((self.shown.label(row, self.times()), wanted(row.of_query.as_ref()?)))
        });
        let by_condition = || {
            let (title, condition) = self.chosen_packets(model)?;
            Some((title, PacketsWanted::Condition(condition)))
        };
        let Some((title, wanted)) = of_query.or_else(by_condition) else {
            if self.chosen.is_none() {
                self.message = Some("choose a row by Up and Down first".to_owned());
            }
            return Wish::Nothing;
        };
        self.mode = Mode::Packets(PacketList::new(title, wanted));
        Wish::LookForPackets
    }

    /// The rows that are seen, with the chosen one among them.
    pub(crate) fn scroll(&mut self, room: usize) -> std::ops::Range<usize> {
        let rows = &self.shown.rows;
        let chosen =
            self.chosen.as_ref().and_then(|key| rows.iter().position(|row| row.key == *key));
        if let Some(at) = chosen.filter(|_| room > 0) {
            self.offset = self.offset.clamp((at + 1).saturating_sub(room), at);
        }
        self.offset = self.offset.min(rows.len().saturating_sub(room));
        self.offset..(self.offset + room).min(rows.len())
    }

    /// The chosen row.
    pub(crate) fn chosen_row(&self) -> Option<&Row> {
        let key = self.chosen.as_ref()?;
        self.shown.rows.iter().find(|row| row.key == *key)
    }

    /// The name of the chosen row, and the condition that its packets meet.
    fn chosen_packets(&mut self, model: &Model) -> Option<(String, String)> {
        let row = self.chosen_row()?;
        let label = row.label.clone();
        let Some(of_row) = self.shown.filter(model, row, &self.setup.keys) else {
            self.message = Some("no filter can say the values of this row".to_owned());
            return None;
        };
        let condition = both(&self.filter, &of_row);
        match check(&condition) {
            Ok(()) => Some((label, condition)),
            Err(fault) => {
                self.message = Some(fault.message);
                None
            }
        }
    }

    /// The packets that are looked for.
    pub(crate) fn wanted(&self) -> Option<&PacketsWanted> {
        match &self.mode {
            Mode::Packets(list) => Some(&list.wanted),
            _ => None,
        }
    }

    /// Takes what a search for packets has come to.
    pub(crate) fn found(&mut self, found: Result<FoundPackets, String>) {
        if let Mode::Packets(list) = &mut self.mode {
            list.found(found);
        }
    }

    /// Takes what came of writing packets into a file.
    pub(crate) fn saved(&mut self, saved: Result<String, String>) {
        let told = crate::clean(&saved.unwrap_or_else(|why| format!("nothing was saved: {why}")));
        match &mut self.mode {
            Mode::Packets(list) => list.saving = Some(told),
            _ => self.message = Some(told),
        }
    }

    fn apply(&mut self, filter: String) -> Wish {
        if filter == self.filter {
            return Wish::Nothing;
        }
        if self.earlier.len() == HISTORY_MAX {
            self.earlier.remove(0);
        }
        self.earlier.push(std::mem::replace(&mut self.filter, filter));
        self.changed_filter()
    }

    /// Goes back to the filter before.
    fn back(&mut self) -> Wish {
        match self.earlier.pop() {
            Some(filter) => {
                self.filter = filter;
                self.changed_filter()
            }
            None => Wish::Nothing,
        }
    }

    fn changed_filter(&mut self) -> Wish {
        (self.chosen, self.offset, self.paused) = (None, 0, false);
        self.setup.filter.clone_from(&self.filter);
        self.setup.filters += 1;
        self.change()
    }

    fn change(&mut self) -> Wish {
        self.setup.changes += 1;
        self.counted = self.setup.changes;
        self.message = None;
        Wish::Change
    }

    /// The run could not change: it goes on with what it counted before.
    pub(crate) fn refused(&mut self, why: &str, runs: &Setup) {
        self.message = Some(crate::clean(why));
        (self.chosen, self.offset) = (None, 0);
        self.counted = runs.changes;
        self.filter.clone_from(&runs.filter);
        let (filters, changes) = (self.setup.filters, self.setup.changes);
        self.setup = Setup { filters, changes, ..runs.clone() };
        if !runs.data.contains(&self.table.data()) {
            let counted = |table: &Table| runs.data.contains(&table.data());
            self.table = Table::ALL.into_iter().find(counted).unwrap_or(self.table);
        }
    }
}

impl Setup {
    /// The setup that a screen begins with.
    pub fn first(pace: Pace, workers: usize) -> Setup {
        // Of files everything is counted in one go; of a wire, which may be fast, what is shown.
        let data = if pace == Pace::Whole { Data::FIXED.to_vec() } else { vec![Data::Hosts] };
        let (keys, query, filter) = (String::new(), None, String::new());
        let rules = ReadingRules::default();
        Setup { data, keys, query, filter, pace, workers, rules, filters: 0, changes: 0 }
    }
}

#[cfg(test)]
mod tests;
