//! Which table is shown, what has to be counted for it, and how its rows are sorted.

use super::{App, Mode, Wish};
use crate::input::{Input, Typing};
use crate::library::QueryList;
use crate::model::Model;
use crate::queried::LibraryQuery;
use crate::query::Pace;
use crate::table::{Data, Table};

impl App {
    /// Shows another table, of which rows may have to be counted first. Where it is not known yet
    /// what that is, somebody is asked.
    pub(super) fn show(&mut self, table: Table, model: &Model) -> Wish {
        match table {
            Table::Keys if table == self.table || self.setup.keys.is_empty() => self.type_keys(),
            Table::Query if table == self.table || self.setup.query.is_none() => {
                self.mode = Mode::Library(QueryList::default());
            }
            table if table == self.table => {}
            table => {
                self.turn_to(table);
                self.refresh(model);
                if !self.setup.data.contains(&table.data()) {
                    self.setup.data = self.data_for(table);
                    return self.change();
                }
            }
        }
        Wish::Nothing
    }

    fn turn_to(&mut self, table: Table) {
        self.table = table;
        if !table.columns().contains(&self.column) {
            self.column = table.columns().first().copied().unwrap_or(self.column);
        }
        (self.chosen, self.offset, self.paused) = (None, 0, false);
    }

    /// What has to be counted for a table: of files all that can be, of a wire, which may be fast,
    /// what is shown.
    fn data_for(&self, table: Table) -> Vec<Data> {
        if self.setup.pace != Pace::Whole {
            return vec![table.data()];
        }
        let keys = (!self.setup.keys.is_empty()).then_some(Data::Keys);
        let query = self.setup.query.is_some().then_some(Data::Query);
        Data::FIXED.into_iter().chain(keys).chain(query).collect()
    }

    /// The next table of which it is known what it shows.
    pub(super) fn next_table(&self, back: bool) -> Table {
        let mut table = self.table.next(back);
        while table == Table::Keys && self.setup.keys.is_empty()
            || table == Table::Query && self.setup.query.is_none()
        {
            table = table.next(back);
        }
        table
    }

    pub(super) fn type_keys(&mut self) {
        self.mode = Mode::Keys(Input::new(&self.setup.keys, Typing::Keys));
    }

    /// Counts by other keys.
    pub(super) fn count_by(&mut self, keys: String) -> Wish {
        self.mode = Mode::Tables;
        self.turn_to(Table::Keys);
        self.setup.keys = keys;
        self.setup.data = self.data_for(Table::Keys);
        self.change()
    }

    /// Runs another query.
    pub(super) fn run_query(&mut self, query: LibraryQuery) -> Wish {
        self.mode = Mode::Tables;
        self.turn_to(Table::Query);
        (self.output, self.query_column, self.descending) = (0, None, true);
        self.setup.query = Some(query);
        self.setup.data = self.data_for(Table::Query);
        self.change()
    }

    /// Shows the rows of the next output of the query.
    pub(super) fn next_output(&mut self, model: &Model) {
        let outputs = self.shown.output.outputs.len();
        if self.table == Table::Query && outputs > 1 {
            (self.output, self.query_column) = ((self.output + 1) % outputs, None);
            self.release(model);
        }
    }

    /// Sorts by another column.
    pub(super) fn sort(&mut self, by: isize, model: &Model) {
        if self.table == Table::Query {
            // Before the first column is the order in which rows came.
            let n = self.shown.output.order.len() + 1;
            let at = self.query_column.map_or(0, |at| at + 1);
            self.query_column = ((at + n).saturating_add_signed(by) % n).checked_sub(1);
            self.descending = true;
            return self.release(model);
        }
        let columns = self.table.columns();
        let at = columns.iter().position(|column| *column == self.column).unwrap_or(0);
        let n = columns.len();
        self.column = columns[at.saturating_add_signed(by + n as isize) % n];
        self.descending = true;
        self.release(model);
    }
}
