//! Physical plans as JSON, for other machines and other programs.
//!
//! The format has a version, which changes when the format does; readers refuse versions that they
//! do not know, and members that they do not know. Fields and functions are named. Integers of 64
//! bits, times, addresses and the bits of floats are strings. Sets with many members and the tables
//! of `lookup` stand once, in `sets` and `tables`, however often they are used.
//!
//! The names in the format are written down in [`form`], apart from those of the types: a renamed
//! variant changes nothing, and a new one does not compile before it has a name there.

mod expr;
mod form;
mod value;
mod wire;

use super::Physical;
use super::check::PlanFault;
use crate::expr::Member;
use crate::functions::Signatures;
use crate::limits::{DEPTH_MAX, PLAN_BYTES_MAX};
use crate::stage::Stage;
use crate::table::{Shared, Table};
use serde_json::Value as Json;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use wire::{Members, Mistake, Reader, Wire, Writer};

/// The version of the format.
pub const VERSION: u64 = 1;

/// Nesting of brackets: two for each level of an expression, and those around it.
const NESTING_MAX: usize = 4 * DEPTH_MAX + 64;

/// Why a plan can't be written as JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unwritable {
    /// It holds a key of `anonymize`, which would be readable there.
    Key,
    /// It calls a function that is not registered, with this number.
    Unregistered(usize),
    /// It takes more than [`PLAN_BYTES_MAX`].
    TooLarge(usize),
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unwritable::Key => f.write_str(
                "the plan holds a key of `anonymize`, and JSON would show it: leave `anonymize` \
                 out, or use the text of `weir explain`, which hides the key",
            ),
            Unwritable::Unregistered(n) => {
                write!(f, "the plan calls function number {n}, which is not registered")
            }
            Unwritable::TooLarge(bytes) => write!(
                f,
                "the plan takes {bytes} bytes as JSON, mostly for its sets and tables; at most \
                 {PLAN_BYTES_MAX} are read back"
            ),
        }
    }
}

impl std::error::Error for Unwritable {}

/// Why JSON can't be read as a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unreadable {
    /// It has another version than [`VERSION`].
    Version(String),
    /// It is longer than [`PLAN_BYTES_MAX`], or brackets stand too deep.
    TooLarge,
    /// It is no JSON; says why, and where.
    NoJson(String),
    /// A member is not what it is to be.
    Member {
        /// Where it stands: `levels[0].ticks`.
        at: String,
        /// What is wrong with it.
        why: String,
    },
    /// All can be read, and the plan does not fit together.
    Plan(PlanFault),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Version(version) => write!(
                f,
                "this is a plan of format version {version}; only version {VERSION} can be read"
            ),
            Unreadable::TooLarge => write!(
                f,
                "the plan has more than {PLAN_BYTES_MAX} bytes or {NESTING_MAX} nested brackets"
            ),
            Unreadable::NoJson(why) => write!(f, "this is not JSON: {why}"),
            Unreadable::Member { at, why } if at.is_empty() => write!(f, "this is no plan: {why}"),
            Unreadable::Member { at, why } => write!(f, "{at}: {why}"),
            Unreadable::Plan(fault) => write!(f, "{fault}"),
        }
    }
}

impl std::error::Error for Unreadable {}

impl From<Mistake> for Unreadable {
    fn from(mistake: Mistake) -> Unreadable {
        Unreadable::Member { at: mistake.place(), why: mistake.why }
    }
}

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
        reader.tables = tables.into_iter().map(|table| Shared(Arc::new(table))).collect();
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
