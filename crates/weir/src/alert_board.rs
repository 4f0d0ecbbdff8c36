//! The latest row of each alert of a run, for clients that ask how things stand.
//!
//! The kept rows are bounded: the alerts that ended first make room, then those that have been
//! quiet for longest. Clients learn how many rows were dropped.

use crate::observe::Observer;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use weir_base::alert::AlertState;
use weir_engine::rows::{Output, Rows, Sink};
use weir_http::{AlertPhase, AlertsQuestion, RowForm, ShownOutput};
use weir_plan::{Alert, Schema, Value};
use weir_sink::{LineWriter, each_line};

/// Alerts whose latest row is kept.
const ALERTS_MAX: usize = 4096;

/// Bytes of these rows, and of what they are known by.
const ALERT_BYTES_MAX: usize = 8 << 20;

/// The identity of an alert: its program, rule and key, and its begin.
type AlertId = [String; 4];

/// The latest state of an alert.
struct KeptAlert {
    goes_on: bool,
    /// The number of its latest row.
    turn: u64,
    /// That row, as JSON.
    line: Box<[u8]>,
}

/// All alerts that are kept, and the number of those that had to make room.
#[derive(Default)]
struct KeptAlerts {
    alerts: BTreeMap<AlertId, KeptAlert>,
    /// Which of them has the row of a number; first those that have ended, then those that go on.
    order: BTreeMap<(bool, u64), AlertId>,
    bytes: usize,
    /// The number of the next row.
    turn: u64,
    /// Alerts that had to make room.
    forgotten: u64,
}

impl KeptAlerts {
    fn add(&mut self, id: AlertId, goes_on: bool, line: &[u8]) {
        if let Some(before) = self.alerts.remove(&id) {
            self.order.remove(&(before.goes_on, before.turn));
            self.bytes -= size(&id, &before.line);
        }
        if size(&id, line) > ALERT_BYTES_MAX {
            self.forgotten += 1;
            return;
        }
        let turn = self.turn;
        self.turn += 1;
        self.bytes += size(&id, line);
        self.order.insert((goes_on, turn), id.clone());
        self.alerts.insert(id, KeptAlert { goes_on, turn, line: line.into() });
        while self.alerts.len() > ALERTS_MAX || self.bytes > ALERT_BYTES_MAX {
            let Some((_, id)) = self.order.pop_first() else { return };
            if let Some(gone) = self.alerts.remove(&id) {
                self.bytes -= size(&id, &gone.line);
                self.forgotten += 1;
            }
        }
    }

    /// The alerts that are asked for: first those that go on, of these the latest first.
    fn list(&self, asked: &AlertsQuestion) -> Vec<Json> {
        let is_asked = |id: &AlertId, alert: &KeptAlert| {
            let phase = match asked.phase {
                AlertPhase::All => true,
                AlertPhase::Open => alert.goes_on,
                AlertPhase::End => !alert.goes_on,
            };
            phase && asked.program.as_ref().is_none_or(|program| *program == id[0])
        };
        let one = |id: &AlertId| {
            let alert = self.alerts.get(id).filter(|alert| is_asked(id, alert))?;
            let row: Json = serde_json::from_slice(&alert.line).ok()?;
            let state = if alert.goes_on { "open" } else { "end" };
            Some(json!({ "program": id[0], "state": state, "row": row }))
        };
        self.order.values().rev().filter_map(one).collect()
    }
}

fn size(id: &AlertId, line: &[u8]) -> usize {
    id.iter().map(String::len).sum::<usize>() * 2 + line.len()
}

/// The alerts of a run. Clones are of the same.
#[derive(Clone, Default)]
pub(crate) struct AlertBoard(Arc<Mutex<KeptAlerts>>);

impl AlertBoard {
    /// The alerts that a client asks for; `None` if its program is none of `running`, and none are
    /// kept of it.
    pub(crate) fn value(
        &self,
        asked: &AlertsQuestion,
        running: &[(String, usize)],
    ) -> Option<Json> {
        let board = self.0.lock();
        if let Some(program) = &asked.program {
            let is_known = running.iter().any(|(name, _)| name == program)
                || board.alerts.keys().any(|id| id[0] == *program);
            is_known.then_some(())?;
        }
        let alerts = board.list(asked);
        Some(json!({ "alerts": alerts, "forgotten": board.forgotten, "kept_max": ALERTS_MAX }))
    }

    /// An observer that keeps the alerts among rows on their way to a sink.
    pub(crate) fn observer(&self, form: RowForm) -> BoardObserver {
        BoardObserver { board: self.clone(), form, outputs: Vec::new(), anew: false }
    }
}

/// Takes alerts from rows.
pub(crate) struct BoardObserver {
    board: AlertBoard,
    form: RowForm,
    /// Where the rows of an output are alerts: how they are told apart.
    outputs: Vec<Option<AlertOutput>>,
    /// Whether the input has ended: what is opened next begins anew.
    anew: bool,
}

/// An output of alerts.
struct AlertOutput {
    program: String,
    writer: LineWriter,
    schema: Schema,
    /// The positions of the state, and of what tells one alert from another.
    state: Option<usize>,
    key: [Option<usize>; 3],
}

impl AlertOutput {
    fn new(program: String, schema: &Schema, writer: LineWriter) -> AlertOutput {
        let key = ["alert.rule", "alert.key", "alert.first"].map(|name| schema.position(name));
        let state = schema.position("alert.state");
        AlertOutput { program, writer, schema: schema.clone(), state, key }
    }

    fn id(&self, rows: &Rows, i: usize) -> AlertId {
        let [rule, key, first] = self.key.map(|at| self.text(rows, i, at));
        [self.program.clone(), rule, key, first]
    }

    fn text(&self, rows: &Rows, i: usize, at: Option<usize>) -> String {
        let value = at.map(|at| rows.value(i, at, &self.schema.columns[at].ty));
        match value {
            None | Some(Value::Absent) => String::new(),
            Some(Value::Str(text)) => text.to_string(),
            Some(other) => other.to_string(),
        }
    }
}

impl Observer for BoardObserver {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        if std::mem::take(&mut self.anew) {
            *self.board.0.lock() = KeptAlerts::default();
        }
        let shown = self.form.shown(outputs).into_iter().zip(self.form.writers(outputs));
        let one = |(output, (shown, writer)): (&Output, (ShownOutput, LineWriter))| {
            let is_alert = Alert::is_of(&output.schema);
            is_alert.then(|| AlertOutput::new(shown.program, &output.schema, writer))
        };
        self.outputs = outputs.iter().zip(shown).map(one).collect();
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        let Some(Some(of)) = self.outputs.get(output) else { return Ok(()) };
        let lines = of.writer.lines(rows);
        let mut board = self.board.0.lock();
        for (i, line) in each_line(&lines).enumerate().take(rows.len) {
            let ended = of.text(rows, i, of.state) == AlertState::End.name();
            board.add(of.id(rows, i), !ended, line);
        }
        Ok(())
    }

    fn finish(&mut self, _to: &mut dyn Sink) -> io::Result<()> {
        self.anew = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(program: &str, key: usize) -> AlertId {
        [program.to_owned(), "rule".to_owned(), format!("{key:05}"), "first".to_owned()]
    }

    fn line(n: usize) -> Vec<u8> {
        format!("{{\"n\":{n}}}").into_bytes()
    }

    fn numbers(board: &KeptAlerts, asked: &AlertsQuestion) -> Vec<u64> {
        board.list(asked).iter().map(|one| one["row"]["n"].as_u64().expect("a number")).collect()
    }

    #[test]
    fn the_latest_row_of_each_alert_is_kept() {
        let mut board = KeptAlerts::default();
        board.add(id("a", 0), true, &line(1));
        board.add(id("a", 1), true, &line(2));
        board.add(id("b", 0), true, &line(3));
        board.add(id("a", 0), false, &line(4));
        let asked = |phase, program: Option<&str>| AlertsQuestion {
            phase,
            program: program.map(str::to_owned),
        };
        assert_eq!(numbers(&board, &asked(AlertPhase::All, None)), [3, 2, 4]);
        assert_eq!(numbers(&board, &asked(AlertPhase::Open, None)), [3, 2]);
        assert_eq!(numbers(&board, &asked(AlertPhase::End, None)), [4]);
        assert_eq!(numbers(&board, &asked(AlertPhase::All, Some("a"))), [2, 4]);
        assert_eq!(
            board.bytes,
            board.alerts.iter().map(|(id, a)| size(id, &a.line)).sum::<usize>()
        );
        let board = AlertBoard(Arc::new(Mutex::new(board)));
        let of = |program| board.value(&asked(AlertPhase::Open, Some(program)), &[("c".into(), 1)]);
        assert!(of("d").is_none());
        assert_eq!(of("c").expect("runs")["alerts"], json!([]));
        let b = json!([{ "program": "b", "state": "open", "row": { "n": 3 } }]);
        assert_eq!(of("b").expect("has one")["alerts"], b);
    }

    #[test]
    fn what_has_ended_makes_room_first() {
        let mut board = KeptAlerts::default();
        (0..10).for_each(|n| board.add(id("a", n), true, &line(n)));
        (10..ALERTS_MAX + 5).for_each(|n| board.add(id("a", n), false, &line(n)));
        assert_eq!((board.alerts.len(), board.forgotten), (ALERTS_MAX, 5));
        let open = AlertsQuestion { phase: AlertPhase::Open, program: None };
        assert_eq!(numbers(&board, &open), (0..10).rev().collect::<Vec<u64>>());
        let long = vec![b' '; ALERT_BYTES_MAX / 4];
        (0..9).for_each(|n| board.add(id("b", n), true, &long));
        assert!(board.bytes <= ALERT_BYTES_MAX && board.alerts.len() < 14, "{}", board.bytes);
        assert_eq!(board.order.len(), board.alerts.len());
        let kept: usize = board.alerts.iter().map(|(id, alert)| size(id, &alert.line)).sum();
        assert_eq!(kept, board.bytes);
        // One that fits nowhere is counted, too.
        let before = board.forgotten;
        board.add(id("c", 0), true, &vec![b' '; ALERT_BYTES_MAX + 1]);
        assert_eq!((board.forgotten, board.alerts.is_empty()), (before + 1, false));
    }
}
