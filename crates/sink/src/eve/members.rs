//! A row, and the members of an object of JSON that is written of it.

use crate::json::{string, value};
use crate::options::TimeFormat;
use weir_engine::rows::Rows;
use weir_packet::time;
use weir_plan::{Schema, Value};

/// A row and its columns.
pub(super) struct Row<'a> {
    pub(super) rows: &'a Rows,
    pub(super) i: usize,
    pub(super) schema: &'a Schema,
}

impl Row<'_> {
    pub(super) fn value(&self, at: usize) -> Value {
        self.rows.value(self.i, at, &self.schema.columns[at].ty)
    }

    /// The value of the column of this name, if there is one of both.
    pub(super) fn named(&self, name: &str) -> Option<Value> {
        self.schema.position(name).map(|at| self.value(at)).filter(Value::exists)
    }

    pub(super) fn text(&self, name: &str) -> String {
        match self.named(name) {
            Some(Value::Str(text)) => text.into_string(),
            _ => String::new(),
        }
    }

    /// Appends a cell as JSON.
    pub(super) fn cell(&self, out: &mut Vec<u8>, at: usize) {
        let (column, ty) = (&self.rows.columns[at], &self.schema.columns[at].ty);
        match column.present.has(self.i) {
            true => value(out, column.raw(self.i), ty, &self.rows.arena, TimeFormat::Rfc3339),
            false => out.extend_from_slice(b"null"),
        }
    }

    /// Appends an object of some columns.
    pub(super) fn object(&self, out: &mut Vec<u8>, columns: impl Iterator<Item = usize>) {
        let mut object = Members::open(out);
        for at in columns {
            self.cell(object.key(&self.schema.columns[at].name), at);
        }
        object.close();
    }
}

/// The members of an object that is being written.
pub(super) struct Members<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> Members<'a> {
    pub(super) fn open(out: &'a mut Vec<u8>) -> Members<'a> {
        out.push(b'{');
        Members { out, is_first: true }
    }

    /// Appends a key; its value follows.
    pub(super) fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        string(self.out, key);
        self.out.push(b':');
        self.out
    }

    pub(super) fn text(&mut self, key: &str, text: &str) {
        string(self.key(key), text);
    }

    pub(super) fn number(&mut self, key: &str, n: u32) {
        self.key(key).extend_from_slice(n.to_string().as_bytes());
    }

    pub(super) fn close(self) {
        self.out.push(b'}');
    }

    /// Closes the object of a whole line.
    pub(super) fn end(self) {
        self.out.extend_from_slice(b"}\n");
    }
}

/// A time as Suricata writes it, to the microsecond.
pub(super) fn timestamp(ns: i64) -> String {
    let seconds = time::rfc3339(ns.div_euclid(1_000_000_000).saturating_mul(1_000_000_000));
    let micros = ns.rem_euclid(1_000_000_000) / 1000;
    format!("{}.{micros:06}+0000", seconds.trim_end_matches('Z'))
}
