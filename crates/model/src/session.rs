//! Sessions: rows of a key that follow one another closely.

use super::context::StageContext;
use super::row::{Mark, Row};
use std::collections::BTreeMap;
use weir_plan::{AggFunc, EndReason, Session, Summarize, Value};

/// The sessions of a stage.
pub(super) struct KeySessions {
    open: BTreeMap<Vec<Value>, OpenSession>,
    /// The sessions that have ended and did not come out, in that order.
    ended: Vec<Ended>,
    watermark: Mark,
}

/// A session that takes rows.
struct OpenSession {
    /// The least and the greatest time of its rows.
    start: i64,
    end: i64,
    /// When its latest row came, by the watermark where that had passed it.
    last: i64,
    rows: u64,
    /// Larger for the one that had a row later.
    turn: u64,
    /// Whether it has had its last row, but for those that come while it lingers.
    is_closed: bool,
    /// Whether the one before it of its key took rows until it began.
    follows: bool,
    /// Whether a row joined it that would join none that is closed, or may have done so.
    begins: bool,
    /// Whether a row of it was counted as lagging.
    lags: bool,
    /// The values that each aggregate has taken.
    values: Vec<Vec<Value>>,
}

impl OpenSession {
    /// Why it ends before a row of this time, if it does; `begins`: whether the row joins none that
    /// is closed.
    fn ends_before(&self, ts: i64, begins: bool, session: Session) -> Option<EndReason> {
        let since = |t: i64| ts.saturating_sub(t);
        if self.is_closed {
            let over = begins
                || session.rows.is_some()
                || since(self.end) >= session.lingers_ns()
                || session.active_ns.is_some_and(|active| since(self.start) >= active);
            return over.then_some(EndReason::Detected);
        }
        if since(self.end) >= session.gap_ns {
            return Some(EndReason::Idle);
        }
        (since(self.start) >= session.active_ns?).then_some(EndReason::Active)
    }

    /// Whether in the order of times a row that joins might have come to another session, or been
    /// the last of this one. Sessions that came out at this tick or before are not known any more.
    fn lagged_by(&self, ts: i64, closes: bool, tick: i64, s: &Summarize, session: Session) -> bool {
        let before = |t: i64| t.saturating_sub(ts);
        let is_long = session.active_ns.is_some_and(|active| before(self.end) >= active);
        let apart = self.follows || ts < tick || before(self.start) >= session.gap_ns || is_long;
        // One that begins the next session may come after it.
        let begins = self.begins || s.unless.is_some() && ts < self.start;
        let cuts = begins || before(self.end) >= session.lingers_ns();
        ts < self.start && apart || closes && ts < self.end && cuts
    }
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

    /// Ends a session; returns whether it is one more that lags, since its latest row does.
    fn end(&mut self, key: &Vec<Value>, reason: EndReason) -> bool {
        let session = self.open.remove(key).expect("one that takes rows");
        let reason = if session.is_closed { EndReason::Detected } else { reason };
        let lags = session.end < session.last && !session.lags;
        self.ended.push(Ended { key: key.clone(), session, reason });
        lags
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
                self.lagging += u64::from(all.end(&key, EndReason::Forced));
            }
            return (self.sessions_out(s, session, i64::MAX, all), Mark::End);
        };
        let downstream = Mark::At(session.downstream(watermark));
        let tick = session.tick(watermark);
        if tick == session.tick(before) {
            return (Vec::new(), downstream);
        }
        let idle = |open: &OpenSession| {
            let wait = if open.is_closed { session.lingers_ns() } else { session.gap_ns };
            tick.saturating_sub(open.last) >= wait
        };
        let over = all.open.iter().filter(|(_, open)| idle(open)).map(|(key, _)| key.clone());
        for key in over.collect::<Vec<_>>() {
            self.lagging += u64::from(all.end(&key, EndReason::Idle));
        }
        (self.sessions_out(s, session, tick, all), downstream)
    }

    /// Lets a row join the session of its key, or begin one.
    fn session(&mut self, s: &Summarize, session: Session, all: &mut KeySessions, row: &Row) {
        // Without a time, it is in no session.
        let Some(ts) = row.ts else { return };
        let (now, tick) = match all.watermark {
            Mark::At(watermark) => (ts.max(watermark), session.tick(watermark)),
            Mark::End => (ts, i64::MAX),
        };
        let key: Vec<_> = s.keys.iter().map(|k| self.eval.eval(&k.1, row, &[])).collect();
        let mut holds =
            |cond: &Option<_>| cond.as_ref().is_some_and(|e| self.eval.holds(e, row, &[]));
        let (closes, begins) = (holds(&s.until), holds(&s.unless));
        let found = all.open.get(&key);
        let over = found.and_then(|open| Some((open.ends_before(ts, begins, session)?, open.end)));
        let lags = match (found, over) {
            (Some(_), Some((_, end))) => ts < end,
            (Some(open), None) => open.lagged_by(ts, closes, tick, s, session),
            (None, _) => ts < tick,
        };
        if let Some((reason, _)) = over {
            self.lagging += u64::from(all.end(&key, reason));
        }
        let takers = || all.open.iter().filter(|(_, open)| !open.is_closed);
        let is_many = |n: usize| n as u64 >= s.max_groups;
        // They are counted only where they and the closed ones may be too many.
        let is_full = is_many(all.open.len()) && is_many(takers().count());
        if is_full && !all.open.contains_key(&key) {
            let oldest = takers().min_by_key(|(_, open)| open.turn);
            let oldest = oldest.expect("a stage may hold a session").0.clone();
            self.lagging += u64::from(all.end(&oldest, EndReason::Resources));
            self.evicted += 1;
        }
        self.turn += 1;
        let new = || OpenSession {
            start: ts,
            end: ts,
            last: now,
            rows: 0,
            turn: 0,
            is_closed: false,
            follows: over.is_some(),
            begins: false,
            lags: false,
            values: vec![Vec::new(); s.aggs.len()],
        };
        let joins = all.open.contains_key(&key);
        let open = all.open.entry(key).or_insert_with(new);
        open.begins |= joins && (begins || s.unless.is_some() && ts < open.start);
        (open.start, open.end) = (open.start.min(ts), open.end.max(ts));
        (open.last, open.turn) = (open.last.max(now), self.turn);
        open.rows += 1;
        open.lags |= lags;
        self.lagging += u64::from(lags);
        for (agg, values) in s.aggs.iter().zip(&mut open.values) {
            values.extend(self.eval.taken(agg, row));
        }
        open.is_closed |= closes || session.rows.is_some_and(|rows| open.rows >= rows);
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
