//! Rows as a run gives them.

use crate::query::{Pace, Role, Setup};
use crate::table::Data;
use std::cell::RefCell;
use weir_engine::rows::{Output, Rows, set_cell};
use weir_plan::Value;

/// A window's start, its keys, packets and bytes.
pub(crate) type TestRow = (i64, Vec<Value>, i64, i64);

/// The output of a program of this name, with the columns that it has in a live run.
pub(crate) fn output(name: &str) -> Output {
    let (filters, changes) = match Role::of_output(name) {
        Some(Role::Totals { filters, changes }) => (filters, changes),
        _ => (0, 0),
    };
    let (data, filter) = (Data::ALL.to_vec(), String::new());
    let setup = Setup { data, filter, pace: Pace::Live, workers: 1, filters, changes };
    let programs = setup.compile().expect("compiles");
    let (_, program) = programs.into_iter().find(|(n, _)| n == name).unwrap_or_else(|| {
        let mut programs = setup.compile().expect("compiles");
        programs.remove(1)
    });
    let schema = program.pipelines[0].schema.clone();
    Output {
        name: Some(name.to_owned()),
        schema,
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
