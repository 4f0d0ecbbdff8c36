//! Alerts of Weir itself: a query with an `alert` gives up rows for want of room, so that an attack
//! can go unseen.

use crate::observe::Observer;
use std::collections::BTreeMap;
use std::io;
use weir_base::alert::{AlertSeverity, AlertState};
use weir_engine::counters::Ledger;
use weir_engine::rows::{Output, Rows, Sink, set_cell};
use weir_plan::{Alert, Column, Schema, Value};

/// The name of the rule.
const RULE: &str = "evictions";

/// How long an alert holds without a further eviction.
const HOLD_NS: i64 = 300 * 1_000_000_000;

const CATEGORY: &str = "Misc activity";

/// Reports that queries give up rows: among the alerts of each query, since the readers of those
/// alerts have to know it.
#[derive(Default)]
pub(crate) struct EvictionAlerts {
    /// The outputs that are alerts.
    outputs: Vec<AlertOutput>,
    /// By program.
    programs: BTreeMap<String, Evicting>,
    /// The time that the packets had come to when counts came last.
    told_at: Option<i64>,
    /// Rows that it has made.
    rows: u64,
}

/// An output whose rows are alerts.
struct AlertOutput {
    number: usize,
    /// The program that it is of; empty where there is just one.
    program: String,
    schema: Schema,
}

/// The evictions of a program so far.
#[derive(Default)]
struct Evicting {
    /// Rows that it gave up so far.
    seen: u64,
    /// The alert, if there is one.
    episode: Option<EvictionEpisode>,
}

/// An alert that holds.
struct EvictionEpisode {
    /// The time from which on rows may have been given up, and the latest one at which some were.
    first: i64,
    last: i64,
    /// How often more rows were given up.
    times: i64,
    rows: u64,
}

impl EvictionAlerts {
    /// Takes in what a program has given up so far, and puts out what follows.
    fn observe(
        &mut self,
        at: usize,
        (evicted, time): (u64, i64),
        to: &mut dyn Sink,
    ) -> io::Result<()> {
        let since = self.told_at.unwrap_or(time);
        let program = self.programs.entry(self.outputs[at].program.clone()).or_default();
        let more = evicted.saturating_sub(std::mem::replace(&mut program.seen, evicted));
        let is_over = |episode: &EvictionEpisode| time.saturating_sub(episode.last) > HOLD_NS;
        match &mut program.episode {
            Some(episode) if more > 0 => {
                (episode.last, episode.times) = (time, episode.times + 1);
                episode.rows += more;
                Ok(())
            }
            Some(episode) if is_over(episode) => self.end(at, AlertState::End, to),
            None if more > 0 => {
                let episode = EvictionEpisode { first: since, last: time, times: 1, rows: more };
                program.episode = Some(episode);
                self.put(at, AlertState::Start, to)
            }
            _ => Ok(()),
        }
    }

    /// Puts out that the alert of a program has ended.
    fn end(&mut self, at: usize, state: AlertState, to: &mut dyn Sink) -> io::Result<()> {
        let put = self.put(at, state, to);
        let program = self.programs.get_mut(&self.outputs[at].program);
        program.into_iter().for_each(|program| program.episode = None);
        put
    }

    /// Puts out a row of the alert that holds for a program, if one does.
    fn put(&mut self, at: usize, state: AlertState, to: &mut dyn Sink) -> io::Result<()> {
        let AlertOutput { number, program, schema } = &self.outputs[at];
        let Some(episode) = self.programs.get(program).and_then(|p| p.episode.as_ref()) else {
            return Ok(());
        };
        let ts = match state {
            AlertState::End => episode.last.saturating_add(HOLD_NS),
            _ => episode.last,
        };
        let mut rows = Rows::new(schema);
        for (column, Column { name, ty }) in rows.columns.iter_mut().zip(&schema.columns) {
            let value = episode.value(name, (program, state, ts));
            // A query may have given a column of its own such a name.
            let fits = value.ty().as_ref() == Some(ty);
            let value = if fits { value } else { Value::Absent };
            set_cell(column, 0, &value, &mut rows.arena);
        }
        set_cell(&mut rows.time, 0, &Value::Time(ts), &mut rows.arena);
        (rows.len, rows.order, rows.clock) = (1, vec![0], vec![ts]);
        self.rows += 1;
        to.rows(*number, &rows)
    }
}

impl EvictionEpisode {
    /// The value in a column of an alert.
    fn value(&self, column: &str, (program, state, ts): (&str, AlertState, i64)) -> Value {
        let text = |text: &str| Value::Str(text.into());
        let called = if program.is_empty() { "the query" } else { program };
        let n = self.rows;
        let rows = if n == 1 { "row" } else { "rows" };
        match column {
            "ts" => Value::Time(ts),
            "alert.rule" => text(RULE),
            "alert.state" => text(state.name()),
            "alert.severity" => text(AlertSeverity::High.name()),
            "alert.message" => text(&format!(
                "{called} gave up {n} {rows} for want of room: what they are about goes unseen"
            )),
            "alert.key" => text(&format!("program={program}")),
            "alert.field" => text("evicted"),
            "alert.value" | "alert.peak" => Value::Float(n as f64),
            "alert.threshold" => Value::Float(0.0),
            "alert.first" => Value::Time(self.first),
            "alert.last" => Value::Time(self.last),
            "alert.rows" => Value::Int(self.times),
            "alert.category" => text(CATEGORY),
            "alert.next" => text(
                "see whether one sender fills it; --memory, or `max` in the query, makes more \
                 room, and `weir ctl stats` says which stages gave rows up",
            ),
            _ => Value::Absent,
        }
    }
}

/// The program of an output of this name: further outputs of a program are called after a dot.
fn program_of(output: &str) -> String {
    output.split('.').next().unwrap_or(output).to_owned()
}

impl Observer for EvictionAlerts {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let alerts = outputs.iter().enumerate().filter(|(_, o)| Alert::is_of(&o.schema));
        let output = |(number, output): (usize, &Output)| AlertOutput {
            number,
            program: program_of(output.name.as_deref().unwrap_or_default()),
            schema: output.schema.clone(),
        };
        self.outputs = alerts.map(output).collect();
        Ok(())
    }

    fn rows(&mut self, _output: usize, _rows: &Rows) -> io::Result<()> {
        Ok(())
    }

    fn counted(&mut self, ledger: &Ledger, time: i64, to: &mut dyn Sink) -> io::Result<()> {
        let (evicted, _) = ledger.flows.evicted();
        for at in 0..self.outputs.len() {
            let of_program = evicted.get(&self.outputs[at].program).copied().unwrap_or(0);
            self.observe(at, (of_program, time), to)?;
        }
        self.told_at = Some(time);
        Ok(())
    }

    fn own_rows(&self) -> u64 {
        self.rows
    }

    /// Alerts that hold stay open at the end of the input.
    fn finish(&mut self, to: &mut dyn Sink) -> io::Result<()> {
        for at in 0..self.outputs.len() {
            self.end(at, AlertState::Open, to)?;
        }
        Ok(())
    }
}
