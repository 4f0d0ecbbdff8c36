//! Sessions: rows of a key that follow one another closely.

use super::context::StageContext;
use super::row::{Mark, Row};
use std::collections::BTreeMap;
use weir_plan::{AggFunc, EndReason, Session, Summarize, Value};

/// The sessions of a stage.
pub(super) struct KeySessions {
    open: BTreeMap<Vec<Value>, OpenSession>,
    /// Those that have ended and did not come out, in that order.
    ended: Vec<Ended>,
    watermark: Mark,
}

/// An open session.
struct OpenSession {
    /// The least and the greatest time of its rows.
    start: i64,
    end: i64,
    /// When its latest row came, by the watermark where that had passed it.
    last: i64,
    rows: u64,
    /// Larger for the one that had a row later.
    turn: u64,
    /// What each aggregate has taken.
    values: Vec<Vec<Value>>,
}

struct Ended {
    key: Vec<Value>,
    session: OpenSession,
    reason: EndReason,
}

impl KeySessions {
    pub(super) fn new() -> KeySessions {
        let watermark = Mark::At(i64::MIN);
        KeySessions { open: BTreeMap::new(), ended: Vec::new(), watermark }
    }

    fn end(&mut self, key: &Vec<Value>, reason: EndReason) {
        if let Some(session) = self.open.remove(key) {
            self.ended.push(Ended { key: key.clone(), session, reason });
        }
    }
}

impl StageContext<'_> {
    /// Takes the rows of a step, then its watermark.
    pub(super) fn sessions(
        &mut self,
        (s, session): (&Summarize, Session),
        all: &mut KeySessions,
        rows: &[Row],
        mark: Mark,
    ) -> (Vec<Row>, Mark) {
        for row in rows {
            self.session(s, session, all, row);
        }
        let before = std::mem::replace(&mut all.watermark, mark);
        let (Mark::At(watermark), Mark::At(before)) = (mark, before) else {
            for key in all.open.keys().cloned().collect::<Vec<_>>() {
                all.end(&key, EndReason::Forced);
            }
            return (self.sessions_out(s, session, i64::MAX, all), Mark::End);
        };
        let downstream = Mark::At(session.downstream(watermark));
        let tick = session.tick(watermark);
        if tick == session.tick(before) {
            return (Vec::new(), downstream);
        }
        let idle = |open: &OpenSession| tick.saturating_sub(open.last) >= session.gap_ns;
        let over = all.open.iter().filter(|(_, open)| idle(open)).map(|(key, _)| key.clone());
        for key in over.collect::<Vec<_>>() {
            all.end(&key, EndReason::Idle);
        }
        (self.sessions_out(s, session, tick, all), downstream)
    }

    /// Lets a row join the session of its key, or begin one.
    fn session(&mut self, s: &Summarize, session: Session, all: &mut KeySessions, row: &Row) {
        let ts = row.ts.expect("rows of a session have event time");
        let now = match all.watermark {
            Mark::At(watermark) => ts.max(watermark),
            Mark::End => ts,
        };
        let key: Vec<_> = s.keys.iter().map(|k| self.eval.eval(&k.1, row, &[])).collect();
        let last_one = s.until.as_ref().is_some_and(|cond| self.eval.holds(cond, row, &[]));
        let too_old = |open: &OpenSession| {
            if ts.saturating_sub(open.end) >= session.gap_ns {
                return Some(EndReason::Idle);
            }
            let active = session.active_ns?;
            (ts.saturating_sub(open.start) >= active).then_some(EndReason::Active)
        };
        if let Some(reason) = all.open.get(&key).and_then(too_old) {
            all.end(&key, reason);
        }
        if !all.open.contains_key(&key) && all.open.len() as u64 >= s.max_groups {
            let oldest = all.open.iter().min_by_key(|(_, open)| open.turn);
            let oldest = oldest.expect("a stage may hold a session").0.clone();
            all.end(&oldest, EndReason::Resources);
            self.evicted += 1;
        }
        self.turn += 1;
        let none = || vec![Vec::new(); s.aggs.len()];
        let new =
            || OpenSession { start: ts, end: ts, last: now, rows: 0, turn: 0, values: none() };
        let open = all.open.entry(key.clone()).or_insert_with(new);
        (open.start, open.end) = (open.start.min(ts), open.end.max(ts));
        (open.last, open.turn) = (open.last.max(now), self.turn);
        open.rows += 1;
        for (agg, values) in s.aggs.iter().zip(&mut open.values) {
            values.extend(self.eval.taken(agg, row));
        }
        if last_one || session.rows.is_some_and(|rows| open.rows >= rows) {
            all.end(&key, EndReason::Detected);
        }
    }

    /// The rows of the sessions that have ended.
    fn sessions_out(
        &mut self,
        s: &Summarize,
        length: Session,
        tick: i64,
        all: &mut KeySessions,
    ) -> Vec<Row> {
        let mut ended = std::mem::take(&mut all.ended);
        ended.sort_by(|a, b| (a.session.start, &a.key).cmp(&(b.session.start, &b.key)));
        let row = |Ended { key, session, reason }| {
            let mut cells = vec![Value::Time(session.start)];
            cells.extend(key);
            for (agg, values) in s.aggs.iter().zip(&session.values) {
                cells.push(match agg.func {
                    AggFunc::EndReason => Value::Int(reason as i64),
                    AggFunc::Completeness => {
                        self.losses.of_session((session.start, session.last), length, tick)
                    }
                    _ => self.eval.aggregate(agg, values),
                });
            }
            Row { ts: Some(session.last), packet: None, cells }
        };
        ended.into_iter().map(row).collect()
    }
}
