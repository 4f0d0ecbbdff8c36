//! Rows as a run gives them.

use crate::query::{Pace, Role, Setup};
use crate::table::Data;
use std::cell::RefCell;
use weir_engine::rows::{Output, Rows, set_cell};
use weir_plan::{Program, Value};

/// A window's start, its keys, packets and bytes.
pub(crate) type TestRow = (i64, Vec<Value>, i64, i64);

/// The program of this name in a live run; one with keys, if the screen has none of this name.
pub(crate) fn program(name: &str) -> Program {
    let (filters, changes) = match Role::of_output(name) {
        Role::Totals { filters, changes } => (filters, changes),
        _ => (0, 0),
    };
    let data = [&Data::FIXED[..], &[Data::Keys]].concat();
    let keys = "dport".to_owned();
    let setup = Setup { data, keys, filters, changes, ..Setup::first(Pace::Live, 1) };
    let mut programs = setup.compile().expect("compiles");
    let at = programs.iter().position(|(n, _)| n == name).unwrap_or(1);
    programs.swap_remove(at).1
}

/// The output of a program of this name, with the columns that it has in a live run.
pub(crate) fn output(name: &str) -> Output {
    Output {
        name: Some(name.to_owned()),
        schema: program(name).pipelines[0].schema.clone(),
        keys: Vec::new(),
        capture: None,
        metrics: Vec::new(),
    }
}

/// Rows of an output of this name.
pub(crate) fn rows(name: &str, all: &[TestRow]) -> Rows {
    thread_local! {
        static KNOWN: RefCell<Vec<Output>> = const { RefCell::new(Vec::new()) };
    }
    let output = KNOWN.with_borrow_mut(|known| {
        if known.iter().all(|output| output.name.as_deref() != Some(name)) {
            known.push(output(name));
        }
        known.iter().find(|output| output.name.as_deref() == Some(name)).expect("it is").clone()
    });
    let mut rows = Rows::new(&output.schema);
    for (i, (ts, keys, packets, bytes)) in all.iter().enumerate() {
        let values = [Value::Time(*ts)].into_iter().chain(keys.iter().cloned());
        let values = values.chain([Value::Int(*packets), Value::Int(*bytes)]);
        for (column, value) in rows.columns.iter_mut().zip(values) {
            set_cell(column, i, &value, &mut rows.arena);
        }
        rows.order.push(i as u64);
        rows.clock.push(*ts);
    }
    rows.len = all.len();
    rows
}
