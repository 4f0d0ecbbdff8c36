//! The sink of a report: it keeps what the page shows of the rows.

use crate::findings::{Findings, are_alerts};
use crate::programs::{Step, output_name};
use crate::rows::{KeptRows, values};
use crate::timeline::{TimeLine, Traffic};
use std::collections::BTreeMap;
use std::io;
use weir_engine::rows::{Output, Rows, Sink};
use weir_plan::{Schema, Value};

/// The use of the rows of an output.
#[derive(Debug)]
enum OutputUse {
    TimeLine,
    Alerts,
    /// Rows that are shown.
    Table(String),
    /// Rows of another query, that are no alerts.
    Other,
}

/// Keeps the rows of a report, as far as a page shows them.
#[derive(Debug)]
pub struct Collector {
    parts: Vec<(OutputUse, Schema)>,
    pub(crate) tables: BTreeMap<String, KeptRows>,
    pub(crate) time_line: TimeLine,
    pub(crate) findings: Findings,
}

impl Collector {
    /// Nothing yet; the time lines have steps of this length at least.
    pub fn new(step: Step) -> Collector {
        Collector {
            parts: Vec::new(),
            tables: BTreeMap::new(),
            time_line: TimeLine::new(step.ns()),
            findings: Findings::default(),
        }
    }

    /// The rows of an output; none where it has none.
    pub(crate) fn table(&self, name: &str) -> KeptRows {
        self.tables.get(name).cloned().unwrap_or_default()
    }
}

impl Sink for Collector {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let part = |output: &Output| {
            let schema = &output.schema;
            let part = match output.name.as_deref().and_then(output_name) {
                Some("time_line") => OutputUse::TimeLine,
                Some(name) => OutputUse::Table(name.to_owned()),
                None if are_alerts(schema) => OutputUse::Alerts,
                None => OutputUse::Other,
            };
            (part, schema.clone())
        };
        self.parts = outputs.iter().map(part).collect();
        for (part, schema) in &self.parts {
            if let OutputUse::Table(name) = part {
                self.tables.entry(name.clone()).or_insert_with(|| KeptRows::new(schema));
            }
        }
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        let Some((part, schema)) = self.parts.get(output) else { return Ok(()) };
        match part {
            OutputUse::Other => {}
            OutputUse::Table(name) => {
                if let Some(table) = self.tables.get_mut(name) {
                    table.push(rows);
                }
            }
            OutputUse::Alerts => {
                for i in 0..rows.len {
                    self.findings.add(schema, &values(rows, i, schema));
                }
            }
            OutputUse::TimeLine => {
                for i in 0..rows.len {
                    if let [
                        Value::Time(ts),
                        Value::Str(kind),
                        Value::Int(packets),
                        Value::Int(bytes),
                    ] = &values(rows, i, schema)[..]
                    {
                        let n = |n: i64| u64::try_from(n).unwrap_or(0);
                        let traffic = Traffic { packets: n(*packets), bytes: n(*bytes) };
                        self.time_line.add(*ts, kind, traffic);
                    }
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
