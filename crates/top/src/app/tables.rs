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
            Table::Keys if table == self.table || !self.is_told(table) => self.type_keys(),
            Table::Query if table == self.table || !self.is_told(table) => {
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

    /// Whether somebody has told what a table is to show, where that has to be told.
    fn is_told(&self, table: Table) -> bool {
        match table {
            Table::Keys => !self.setup.keys.is_empty(),
            Table::Query => self.setup.query.is_some(),
            _ => true,
        }
    }

    /// The data to count for a table: of files the data of all tables, of a wire, which
    /// may be fast, those of this one.
    fn data_for(&self, table: Table) -> Vec<Data> {
        if self.setup.pace != Pace::Whole {
            return vec![table.data()];
        }
        let told = [Table::Keys, Table::Query].into_iter().filter(|table| self.is_told(*table));
        Data::FIXED.into_iter().chain(told.map(Table::data)).collect()
    }

    /// The next table that has something to show.
    pub(super) fn next_table(&self, back: bool) -> Table {
        let mut table = self.table.next(back);
        while !self.is_told(table) {
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
        let around = |at: usize, n: usize| (at + n).saturating_add_signed(by) % n;
        if self.table == Table::Query {
            // Before the first column is the order in which rows came.
            let at = self.query_column.map_or(0, |at| at + 1);
            self.query_column = around(at, self.shown.output.order.len() + 1).checked_sub(1);
        } else {
            let columns = self.table.columns();
            let at = columns.iter().position(|column| *column == self.column).unwrap_or(0);
            self.column = columns[around(at, columns.len())];
        }
        self.descending = true;
        self.release(model);
    }
}
