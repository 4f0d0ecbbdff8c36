//! `scan`: SQL gives the rows and their keys, and an operator of the job folds them into states.

use crate::expr::value;
use crate::node::columns;
use crate::rows::ViewRows;
use crate::sql::{interval, keyed};
use crate::term::Term;
use serde_json::{Value as Json, json};
use weir_plan::{Scan, Schema};

/// A scan over the rows of a view.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct JobScan {
    /// The view that its rows are.
    pub(crate) name: String,
    /// A query for the columns of rows, then for their key, `$rowtime` and `$order`.
    pub(crate) sql: String,
    /// The settings of the operator, as JSON.
    pub(crate) plan: Json,
}

impl JobScan {
    /// That of a plan over rows of a view; `out` is what comes out.
    ///
    /// # Errors
    /// Names what a job does not do.
    pub(crate) fn new(
        scan: &Scan,
        rows: &ViewRows,
        out: &Schema,
        name: &str,
    ) -> Result<JobScan, String> {
        if rows.is_union {
            return Err("`scan` over rows of several pipelines".to_owned());
        }
        let input = &rows.schema;
        let keys: Result<Vec<Term>, String> =
            scan.keys.iter().map(|key| value(key, input)).collect();
        let every_ns = rows.window.map_or(0, |time| time.every_ns);
        // Operators have the time of a row in milliseconds.
        interval(every_ns)?;
        let mut states = Vec::new();
        for state in &scan.states {
            states.push(json!({
                "column": state.output,
                "init": value(&state.init, input)?.json(),
                "update": value(&state.update, input)?.json(),
            }));
        }
        let plan = json!({
            "input": input.columns.len(),
            "columns": columns(out),
            "every_ns": every_ns.to_string(),
            "idle_ns": scan.idle_ns.to_string(),
            "max_keys": scan.max_keys.to_string(),
            "states": states,
        });
        let sql = keyed(rows, keys?);
        Ok(JobScan { name: name.to_owned(), sql, plan })
    }
}
