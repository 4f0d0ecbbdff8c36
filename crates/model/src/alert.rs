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
    /// Whether it is reported in a storm.
    in_storm: bool,
    /// The whole time that it fires, from all of its rows.
    episode: Episode,
    /// The row with the peak.
    peak: Report,
}

/// How many keys began in the latest minute, and those that are reported together.
#[derive(Default)]
pub(super) struct StormModel {
    /// The number of the latest minute, if a key began.
    minute: Option<i64>,
    begun: u64,
    /// Its rows are keys.
    all: Option<FiringModel>,
}

/// The memory of an alert: the names of the columns, the keys that fire, and the storm.
pub(super) struct AlertModel {
    pub(super) names: Vec<String>,
    pub(super) firing: BTreeMap<Vec<Value>, FiringModel>,
    pub(super) storm: StormModel,
}

/// The whole time that a key fires, as its rows tell it.
#[derive(Clone)]
struct Episode {
    first: Value,
    last: Option<i64>,
    rows: i64,
    least: Value,
}

/// The report of a row.
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

/// A row that has come.
struct ArrivedRow {
    report: Report,
    /// The episode of an alert that it begins.
    one: Episode,
    /// Whether no list leaves it out.
    shown: bool,
    ts: Option<i64>,
    now: i64,
}

impl StageContext<'_> {
    /// Takes a step's rows in, then its watermark.
    pub(super) fn alert(
        &mut self,
        plan: &Alert,
        (memory, watermark): (&mut AlertModel, &mut Mark),
        rows: Vec<Row>,
        mark: Mark,
    ) -> (Vec<Row>, Mark) {
        let mut out = Vec::new();
        for row in rows {
            self.assert_row(plan, memory, *watermark, row, &mut out);
        }
        *watermark = mark;
        let AlertModel { firing, storm, .. } = memory;
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
        if let Some(all) = storm.all.take_if(|all| ended(all)) {
            let (state, time) = match mark {
                Mark::At(_) => ("end", plan.until(all.at)),
                Mark::End => ("open", all.episode.last.unwrap_or(0)),
            };
            out.push(last_row_of_storm(plan, &all, state, time));
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
        AlertModel { names, firing, storm }: &mut AlertModel,
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
        let least = plan.completeness.map_or(Value::Absent, |at| row.cells[at].clone());
        let [first, last] = report.packets.clone();
        let one = Episode { first, last: nanoseconds(&last), rows: 1, least };
        let row = ArrivedRow { report, one, shown, ts: row.ts, now };
        if let Some(f) = firing.get(&key).filter(|f| now > plan.until(f.at)).cloned() {
            firing.remove(&key);
            out.extend(last_row(plan, &key, &f, "end", plan.until(f.at)));
        }
        if let Some(f) = firing.get_mut(&key) {
            (f.at, f.turn) = (f.at.max(now), self.turn);
            return f.go_on(plan, &key, storm, row, out);
        }
        if firing.len() as u64 >= plan.max_keys {
            let oldest = firing.iter().min_by_key(|(_, f)| (f.at, f.turn));
            let oldest = oldest.expect("a stage may hold a key").0.clone();
            let f = firing.remove(&oldest).expect("it is there");
            out.extend(last_row(plan, &oldest, &f, "end", now));
            self.evicted += 1;
        }
        let in_storm = shown && !storm.admits(plan, now);
        if in_storm {
            storm.join(plan, &row, out);
        } else if shown {
            let ArrivedRow { report, one, ts, .. } = &row;
            let cells = cells(plan, &key, (report, &report.value), one, "start");
            out.push(Row { ts: *ts, packet: None, cells });
        }
        self.suppressed += u64::from(!shown);
        let ArrivedRow { report, one, .. } = row;
        let began = FiringModel {
            at: now,
            turn: self.turn,
            put_at: now,
            shown: shown && !in_storm,
            in_storm,
            episode: one,
            peak: report,
        };
        firing.insert(key, began);
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

impl FiringModel {
    /// A further row of the key.
    fn go_on(
        &mut self,
        plan: &Alert,
        key: &[Value],
        storm: &mut StormModel,
        row: ArrivedRow,
        out: &mut Vec<Row>,
    ) {
        let ArrivedRow { report, one, shown, ts, now } = &row;
        self.episode.add(one);
        if self.in_storm {
            let all = storm.all.as_mut().expect("it lasts as long as its keys");
            all.at = all.at.max(*now);
            all.episode.last = all.episode.last.max(one.last);
            return;
        }
        if *shown && !self.shown && !storm.admits(plan, *now) {
            self.in_storm = true;
            return storm.join(plan, &row, out);
        }
        let exceeds = exceeds(plan, report, &self.peak);
        let highest = if exceeds { &report.value } else { &self.peak.value };
        let repeats = plan.repeat_ns.is_some_and(|ns| now.saturating_sub(self.put_at) >= ns);
        if *shown && (repeats || !self.shown) {
            let state = if self.shown { "ongoing" } else { "start" };
            (self.put_at, self.shown) = (*now, true);
            let cells = cells(plan, key, (report, highest), &self.episode, state);
            out.push(Row { ts: *ts, packet: None, cells });
        }
        if exceeds {
            self.peak = row.report;
        }
    }
}

impl Episode {
    /// Takes in what a further row says; the start stays that of the first.
    fn add(&mut self, one: &Episode) {
        self.last = self.last.max(one.last);
        self.rows += 1;
        let none = self.least == Value::Absent;
        if one.least != Value::Absent && (none || one.least < self.least) {
            self.least = one.least.clone();
        }
    }
}

impl StormModel {
    /// Whether one more key may be reported by itself in this minute; counts it.
    fn admits(&mut self, plan: &Alert, now: i64) -> bool {
        let minute = now.div_euclid(60_000_000_000);
        if self.minute.is_none_or(|before| minute > before) {
            (self.minute, self.begun) = (Some(minute), 0);
        }
        let admits = self.begun < plan.storm_keys;
        self.begun += u64::from(admits);
        admits
    }

    /// A key joins with this row.
    fn join(&mut self, plan: &Alert, row: &ArrivedRow, out: &mut Vec<Row>) {
        let ArrivedRow { report, one, ts, now, .. } = row;
        let (ts, now) = (*ts, *now);
        if let Some(all) = self.all.take_if(|all| now > plan.until(all.at)) {
            out.push(last_row_of_storm(plan, &all, "end", plan.until(all.at)));
        }
        let Some(all) = &mut self.all else {
            let cells = storm_cells(plan, (report, &report.value), one, "start");
            out.push(Row { ts, packet: None, cells });
            self.all = Some(FiringModel {
                at: now,
                turn: 0,
                put_at: now,
                shown: true,
                in_storm: false,
                episode: one.clone(),
                peak: report.clone(),
            });
            return;
        };
        all.at = all.at.max(now);
        all.episode.add(one);
        let starts = [&all.episode.first, &one.first].into_iter().filter_map(nanoseconds);
        all.episode.first = starts.min().map_or(Value::Absent, Value::Time);
        let exceeds = exceeds(plan, report, &all.peak);
        if plan.repeat_ns.is_some_and(|ns| now.saturating_sub(all.put_at) >= ns) {
            all.put_at = now;
            let highest = if exceeds { &report.value } else { &all.peak.value };
            let cells = storm_cells(plan, (report, highest), &all.episode, "ongoing");
            out.push(Row { ts, packet: None, cells });
        }
        if exceeds {
            all.peak = report.clone();
        }
    }
}

/// Whether a row says more than the one with the peak so far.
fn exceeds(plan: &Alert, report: &Report, peak: &Report) -> bool {
    match plan.compared.as_ref().map(|c| c.peak) {
        _ if report.value == Value::Absent => false,
        _ if peak.value == Value::Absent => true,
        Some(Peak::Most) => report.value > peak.value,
        Some(Peak::Least) => report.value < peak.value,
        None => false,
    }
}

/// The last row of a storm.
fn last_row_of_storm(plan: &Alert, all: &FiringModel, state: &str, time: i64) -> Row {
    let mut report = all.peak.clone();
    report.ts = all.episode.last.map_or(Value::Absent, Value::Time);
    let cells = storm_cells(plan, (&report, &report.value), &all.episode, state);
    Row { ts: Some(time), packet: None, cells }
}

/// The cells of a storm: those of a key, but for the message, the key, and the line of a list.
fn storm_cells(
    plan: &Alert,
    (report, peak): (&Report, &Value),
    episode: &Episode,
    state: &str,
) -> Vec<Value> {
    let key: Vec<Value> = plan.keys.iter().map(|(_, at)| report.cells[*at].clone()).collect();
    let mut out = cells(plan, &key, (report, peak), episode, state);
    let message = match &report.message {
        Value::Str(message) => message,
        _ => "",
    };
    let text = |text: &str| Value::Str(text.into());
    out[4] = text(&format!("and {} more: {message}", episode.rows));
    out[5] = text("storm");
    out[19] = text(&shown(&text(&plan.rule)));
    out
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
