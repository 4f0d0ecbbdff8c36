//! Physical plans as JSON, for other machines and other programs.
//!
//! The format has a version, which changes when the format does; readers refuse versions that they
//! do not know, and members that they do not know. Fields and functions are named. Integers of 64
//! bits, times, addresses and the bits of floats are strings. Sets with many members and the tables
//! of `lookup` stand once, in `sets` and `tables`, however often they are used.
//!
//! The names in the format are written down in [`form`], apart from those of the types: a renamed
//! variant changes nothing, and a new one does not compile before it has a name there.

mod error;
mod expr;
mod form;
mod value;
mod wire;

pub use error::{Unreadable, Unwritable, VERSION};

use super::Physical;
use crate::expr::Member;
use crate::functions::Signatures;
use crate::limits::PLAN_BYTES_MAX;
use crate::stage::Stage;
use crate::table::{SharedTable, Table};
use error::{Mistake, NESTING_MAX};
use serde_json::Value as Json;
use std::cell::Cell;
use std::sync::Arc;
use wire::{Members, Reader, Wire, Writer};

impl Physical {
    /// The plan as JSON, one member a line. `signatures` names registered functions.
    ///
    /// # Errors
    /// If it holds a key of `anonymize`, calls what is not registered, or is too large.
    pub fn to_json(&self, signatures: &Signatures) -> Result<String, Unwritable> {
        let mut writer = Writer::new(signatures);
        let mut plan = writer.members(|w, object| form::write_plan(self, w, object))?;
        let tables = std::mem::take(&mut writer.tables);
        let sets = std::mem::take(&mut writer.sets);
        plan["version"] = VERSION.into();
        plan["tables"] = writer.list(tables.iter().map(|table| &*table.0))?;
        plan["sets"] = writer.list(&sets)?;
        plan.sort_all_objects();
        let text = format!("{plan:#}\n");
        if text.len() > PLAN_BYTES_MAX {
            return Err(Unwritable::TooLarge(text.len()));
        }
        Ok(text)
    }

    /// Reads a plan that was written as JSON, and [checks](Physical::check) it. `signatures`: the
    /// functions that are registered here.
    ///
    /// # Errors
    /// If it is no JSON, of another version, no plan, or one that does not fit together.
    pub fn from_json(text: &str, signatures: &Signatures) -> Result<Physical, Unreadable> {
        if text.len() > PLAN_BYTES_MAX || nesting(text) > NESTING_MAX {
            return Err(Unreadable::TooLarge);
        }
        let mut parser = serde_json::Deserializer::from_str(text);
        parser.disable_recursion_limit();
        let no_json = |e: serde_json::Error| Unreadable::NoJson(e.to_string());
        let plan: Json = serde::Deserialize::deserialize(&mut parser).map_err(no_json)?;
        parser.end().map_err(no_json)?;
        match plan.get("version") {
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(version) => return Err(Unreadable::Version(version.to_string())),
            None => return Err(Mistake::new("it has no `version`").into()),
        }
        let object = Members::new(&plan, form::PLAN_MEMBERS)?;
        let mut reader = Reader::new(signatures);
        let tables: Vec<Table> = object.read("tables", &reader)?;
        if !tables.iter().all(Table::is_sound) {
            return Err(Mistake::new("a table lacks a text, or has keys of several types").into());
        }
        reader.tables = tables.into_iter().map(|table| SharedTable(Arc::new(table))).collect();
        reader.sets = object.read::<Vec<Vec<Member>>>("sets", &reader)?;
        let plan = form::read_plan(&object, &reader)?;
        plan.check(signatures).map_err(Unreadable::Plan)?;
        Ok(plan)
    }
}

/// A stage as JSON with the sets and tables that it uses, in one line.
pub(super) fn written(stage: &Stage, signatures: &Signatures) -> Result<String, Unwritable> {
    let mut writer = Writer::new(signatures);
    let stage = stage.write(&mut writer)?;
    let tables = std::mem::take(&mut writer.tables);
    let tables = writer.list(tables.iter().map(|table| &*table.0))?;
    let sets = std::mem::take(&mut writer.sets);
    let mut all = Json::Array(vec![stage, tables, writer.list(&sets)?]);
    all.sort_all_objects();
    Ok(all.to_string())
}

/// How deep brackets stand in a text of JSON: what a parser recurses.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

impl Reader<'_> {
    fn new(signatures: &Signatures) -> Reader<'_> {
        let members_left = Cell::new(PLAN_BYTES_MAX / 8);
        Reader { signatures, tables: Vec::new(), sets: Vec::new(), members_left }
    }
}

/// Reads any bytes as a plan; what can be read can be written and read again, and gives a program
/// that prints.
pub fn fuzz_physical(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let signatures = Signatures::default();
    let Ok(plan) = Physical::from_json(text, &signatures) else { return };
    let again = match plan.to_json(&signatures) {
        Err(Unwritable::TooLarge(_)) => return,
        again => again.expect("what was read has no key"),
    };
    assert_eq!(Physical::from_json(&again, &signatures).as_ref(), Ok(&plan));
    let program = plan.program();
    let placed = Physical::new(&program, &[]);
    assert_eq!(placed.check(&signatures), Ok(()), "its program can be placed");
    assert_eq!(placed.program(), program);
    assert!(!crate::print::levels(&plan).is_empty());
}
