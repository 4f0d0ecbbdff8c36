//! `alert` of the naive model.

use super::context::StageContext;
use super::row::{Mark, Row};
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_base::address::number;
use weir_packet::time::NO_TIME;
use weir_plan::alert::Peak;
use weir_plan::{Alert, SuppressedIf, Value};

/// A key that fires.
#[derive(Clone)]
pub(super) struct FiringModel {
    /// When its rows came, see [`StageContext::scan`]: the largest time so far.
    at: i64,
    /// Larger for the key that had a row later.
    turn: u64,
    /// When the row came that was put out last.
    put_at: i64,
    /// Whether a row of it was put out.
    shown: bool,
    /// What all of its rows have in common.
    episode: Episode,
    /// The row with the peak.
    peak: Report,
}

/// What rows say of the whole time that a key fires.
#[derive(Clone)]
struct Episode {
    first: Value,
    last: Option<i64>,
    rows: i64,
    least: Value,
}

/// What a row says.
#[derive(Clone)]
struct Report {
    ts: Value,
    /// When the first and the last packet was that counts.
    packets: [Value; 2],
    message: Value,
    value: Value,
    threshold: Value,
    community: Value,
    next: Value,
    /// The columns of the row.
    cells: Vec<Value>,
}

impl StageContext<'_> {
    /// Takes a step's rows in, then its watermark.
    pub(super) fn alert(
        &mut self,
        plan: &Alert,
        (names, firing, watermark): (&[String], &mut BTreeMap<Vec<Value>, FiringModel>, &mut Mark),
        rows: Vec<Row>,
        mark: Mark,
    ) -> (Vec<Row>, Mark) {
        let mut out = Vec::new();
        for row in rows {
            self.assert_row(plan, (names, firing), *watermark, row, &mut out);
        }
        *watermark = mark;
        let ended = |f: &FiringModel| match mark {
            Mark::At(watermark) => plan.until(f.at) < plan.tick(watermark),
            Mark::End => true,
        };
        let over = firing.iter().filter(|(_, f)| ended(f));
        let mut over: Vec<_> =
            over.map(|(key, f)| (plan.until(f.at), key.clone(), f.clone())).collect();
        firing.retain(|_, f| !ended(f));
        over.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        for (until, key, f) in over {
            let (state, time) = match mark {
                Mark::At(_) => ("end", until),
                Mark::End => ("open", f.episode.last.unwrap_or(0)),
            };
            out.extend(last_row(plan, &key, &f, state, time));
        }
        let after = match mark {
            Mark::At(watermark) => Mark::At(plan.tick(watermark)),
            Mark::End => Mark::End,
        };
        (out, after)
    }

    fn assert_row(
        &mut self,
        plan: &Alert,
        (names, firing): (&[String], &mut BTreeMap<Vec<Value>, FiringModel>),
        watermark: Mark,
        row: Row,
        out: &mut Vec<Row>,
    ) {
        self.turn += 1;
        let ts = row.ts.unwrap_or(NO_TIME);
        let now = match watermark {
            Mark::At(watermark) => ts.max(watermark),
            Mark::End => ts,
        };
        let report = self.report(plan, &row);
        let key: Vec<Value> = plan.keys.iter().map(|(_, at)| row.cells[*at].clone()).collect();
        let shown = !self.is_suppressed(plan, names, &row, now);
        let share = plan.completeness.map_or(Value::Absent, |at| row.cells[at].clone());
        if let Some(f) = firing.get(&key).filter(|f| now > plan.until(f.at)).cloned() {
            firing.remove(&key);
            out.extend(last_row(plan, &key, &f, "end", plan.until(f.at)));
        }
        let Some(f) = firing.get_mut(&key) else {
            if firing.len() as u64 >= plan.max_keys {
                let oldest = firing.iter().min_by_key(|(_, f)| (f.at, f.turn));
                let oldest = oldest.expect("a stage may hold a key").0.clone();
                let f = firing.remove(&oldest).expect("it is there");
                out.extend(last_row(plan, &oldest, &f, "end", now));
                self.evicted += 1;
            }
            let [first, last] = report.packets.clone();
            let episode = Episode { first, last: nanoseconds(&last), rows: 1, least: share };
            if shown {
                let cells = cells(plan, &key, (&report, &report.value), &episode, "start");
                out.push(Row { ts: row.ts, packet: None, cells });
            }
            self.suppressed += u64::from(!shown);
            let (at, turn) = (now, self.turn);
            firing.insert(key, FiringModel { at, turn, put_at: now, shown, episode, peak: report });
            return;
        };
        (f.at, f.turn) = (f.at.max(now), self.turn);
        f.episode.last = f.episode.last.max(nanoseconds(&report.packets[1]));
        f.episode.rows += 1;
        let none = f.episode.least == Value::Absent;
        if share != Value::Absent && (none || share < f.episode.least) {
            f.episode.least = share;
        }
        let exceeds = match plan.compared.as_ref().map(|c| c.peak) {
            _ if report.value == Value::Absent => false,
            _ if f.peak.value == Value::Absent => true,
            Some(Peak::Most) => report.value > f.peak.value,
            Some(Peak::Least) => report.value < f.peak.value,
            None => false,
        };
        let highest = if exceeds { &report.value } else { &f.peak.value };
        let repeats = plan.repeat_ns.is_some_and(|ns| now.saturating_sub(f.put_at) >= ns);
        if shown && (repeats || !f.shown) {
            let state = if f.shown { "ongoing" } else { "start" };
            (f.put_at, f.shown) = (now, true);
            let cells = cells(plan, &key, (&report, highest), &f.episode, state);
            out.push(Row { ts: row.ts, packet: None, cells });
        }
        if exceeds {
            f.peak = report;
        }
    }

    /// Whether an entry of the list names the rule, and all of its conditions hold.
    fn is_suppressed(&self, plan: &Alert, names: &[String], row: &Row, now: i64) -> bool {
        self.suppressions.iter().any(|entry| {
            let of_rule = entry.rule.as_ref().is_none_or(|rule| *rule == plan.rule);
            let holds = |condition: &SuppressedIf| {
                let at = names.iter().position(|name| *name == condition.column);
                at.is_some_and(|at| is_evidence(plan, at) && has_value(&row.cells[at], condition))
            };
            let in_time = entry.until.is_none_or(|until| now < until);
            of_rule && in_time && entry.conditions.iter().all(holds)
        })
    }

    fn report(&mut self, plan: &Alert, row: &Row) -> Report {
        let mut value = |e| self.eval.eval(e, row, &[]);
        let message = plan.message();
        let message = value(&message);
        let (mut compared, mut threshold) = (Value::Absent, Value::Absent);
        if let Some(c) = &plan.compared {
            (compared, threshold) = (value(&c.value), value(&c.threshold));
        }
        let community = plan.community.as_ref().map_or(Value::Absent, &mut value);
        let next = plan.next_step().as_ref().map_or(Value::Absent, value);
        let cells = row.cells.clone();
        let given =
            |at: Option<usize>| at.map(|at| cells[at].clone()).filter(|v| *v != Value::Absent);
        let ts = cells[plan.ts].clone();
        let first = given(plan.first).unwrap_or(ts.clone());
        let over_ns = if plan.last.is_some() { 0 } else { plan.over_ns };
        let end = |t: i64| Value::Time(t.saturating_add(over_ns));
        let last = given(plan.last).unwrap_or(row.ts.map_or(Value::Absent, end));
        let ts = if nanoseconds(&first) > nanoseconds(&ts) { first.clone() } else { ts };
        let packets = [first, last];
        Report { ts, packets, message, value: compared, threshold, community, next, cells }
    }
}

/// Whether a column comes out after those of the alert.
fn is_evidence(plan: &Alert, at: usize) -> bool {
    at != plan.ts && Some(at) != plan.first && Some(at) != plan.last
}

/// A time as a number.
fn nanoseconds(time: &Value) -> Option<i64> {
    match time {
        Value::Time(ns) => Some(*ns),
        _ => None,
    }
}

/// The row of a key that has ended, or is open; none of one that was not reported.
fn last_row(plan: &Alert, key: &[Value], f: &FiringModel, state: &str, time: i64) -> Option<Row> {
    let mut report = f.peak.clone();
    report.ts = f.episode.last.map_or(Value::Absent, Value::Time);
    let cells = cells(plan, key, (&report, &report.value), &f.episode, state);
    f.shown.then_some(Row { ts: Some(time), packet: None, cells })
}

fn cells(
    plan: &Alert,
    key: &[Value],
    (report, peak): (&Report, &Value),
    episode: &Episode,
    state: &str,
) -> Vec<Value> {
    let text = |text: &str| Value::Str(text.into());
    let part = |((name, _), value): (&(String, usize), &Value)| format!("{name}={}", shown(value));
    let parts: Vec<String> = plan.keys.iter().zip(key).map(part).collect();
    let rule = shown(&text(&plan.rule));
    let line: Vec<&str> =
        std::iter::once(rule.as_str()).chain(parts.iter().map(|p| &**p)).collect();
    let (line, key) = (line.join(" "), parts.join(" "));
    let mut out = vec![
        report.ts.clone(),
        text(&plan.rule),
        text(state),
        text(plan.severity.name()),
        report.message.clone(),
        if plan.keys.is_empty() { Value::Absent } else { text(&key) },
        plan.compared.as_ref().map_or(Value::Absent, |c| text(&c.field)),
        report.value.clone(),
        report.threshold.clone(),
        peak.clone(),
        episode.first.clone(),
        episode.last.map_or(Value::Absent, Value::Time),
        Value::Int(episode.rows),
        if plan.over_ns == 0 { Value::Absent } else { Value::Duration(plan.over_ns) },
        episode.least.clone(),
        report.community.clone(),
        plan.category.as_deref().map_or(Value::Absent, text),
        plan.technique.as_deref().map_or(Value::Absent, text),
        report.next.clone(),
        text(&line),
    ];
    let rest = report.cells.iter().enumerate().filter(|(at, _)| is_evidence(plan, *at));
    out.extend(rest.map(|(_, value)| value.clone()));
    out
}

/// A value in a key, quoted where it could be taken for something else.
fn shown(value: &Value) -> String {
    let Value::Str(text) = value else { return value.to_string() };
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"\"\\#".contains(c);
    if !text.is_empty() && &**text != "absent" && text.chars().all(plain) {
        return text.to_string();
    }
    let escaped = |c: char| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if c.is_control() => format!("\\u{{{:x}}}", c as u32),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// Whether a cell has the value that a list names.
fn has_value(cell: &Value, condition: &SuppressedIf) -> bool {
    let text = &*condition.value;
    let bits = |text: &str| text.parse::<IpAddr>().ok().map(number);
    match cell {
        Value::Str(cell) => **cell == *text,
        _ if condition.quoted => false,
        Value::Int(cell) => text.parse::<i64>().is_ok_and(|n| n == *cell),
        Value::Ip(cell) => match text.split_once('/') {
            None => bits(text) == Some(*cell),
            Some((address, length)) => {
                let width = if address.contains(':') { 128 } else { 32 };
                let length = length.parse::<u32>().ok().filter(|n| *n <= width);
                let Some((network, length)) = bits(address).zip(length) else { return false };
                let differs = 128 - (network ^ cell).leading_zeros();
                differs <= width - length
            }
        },
        Value::Float(cell) => text.parse::<f64>().is_ok_and(|x| x == *cell),
        cell => cell.to_string().eq_ignore_ascii_case(text),
    }
}
