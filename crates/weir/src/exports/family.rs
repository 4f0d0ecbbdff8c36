//! The series of a metric: those with the largest values, and one for all others.

use std::collections::BTreeMap;
use weir_engine::rows::Rows;
use weir_http::{Exposition, FamilyKind, Measured};
use weir_packet::time;
use weir_plan::{Metric, MetricKind, Schema, Value};

/// Keys that a metric remembers; further ones are added to the others at once.
const KEYS_MAX: usize = 4_096;

/// Characters of the value of a label.
const LABEL_MAX: usize = 256;

/// The value of all labels of the series of the others.
const OTHER: &str = "_other";

/// How long a gauge shows the value of a row that is no window's.
const GAUGE_HOLD_NS: i64 = 300 * 1_000_000_000;

/// Bounds of a histogram: its step, and each the double of the one before. Beyond them is the
/// infinite one.
const BOUNDS: usize = 21;

/// The values of the labels of a series.
type Key = Vec<String>;

/// The values that the rows of a key have come to.
#[derive(Clone, Debug)]
struct Series {
    /// Of a gauge or a counter a number; of a histogram how many values are in each bucket, and
    /// their sum.
    values: Vec<f64>,
    /// When its latest row was.
    at: i64,
    shown: Shown,
}

/// Whether a series has been shown by itself.
#[derive(Clone, PartialEq, Debug)]
enum Shown {
    /// It is among the others.
    Among,
    /// It is shown, but for what was shown among the others before.
    Alone(Vec<f64>),
}

/// A metric and its series.
#[derive(Debug)]
pub(super) struct Family {
    metric: Metric,
    schema: Schema,
    series: BTreeMap<Key, Series>,
    /// The values of all keys that found no room.
    beyond: Series,
    /// Whether there was a series of the others, which must not end then.
    has_others: bool,
    /// The time of the latest row.
    latest: i64,
    left_out: RowsLeftOut,
}

/// Rows that a metric doesn't show as they are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct RowsLeftOut {
    /// Rows without a value that it takes: they count nowhere.
    pub(super) skipped: u64,
    /// Rows whose key found no room: they count among the others.
    pub(super) beyond: u64,
}

impl Family {
    pub(super) fn new(metric: &Metric, schema: &Schema) -> Family {
        let numbers = if matches!(metric.kind, MetricKind::Histogram(_)) { BOUNDS + 2 } else { 1 };
        let nothing = Series { values: vec![0.0; numbers], at: i64::MIN, shown: Shown::Among };
        Family {
            metric: metric.clone(),
            schema: schema.clone(),
            series: BTreeMap::new(),
            beyond: nothing,
            has_others: false,
            latest: i64::MIN,
            left_out: RowsLeftOut::default(),
        }
    }

    /// Whether it is of this metric.
    pub(super) fn is_of(&self, metric: &Metric, schema: &Schema) -> bool {
        self.metric == *metric && self.schema == *schema
    }

    /// Takes in a row.
    pub(super) fn row(&mut self, rows: &Rows, i: usize) {
        let value = |at: usize| rows.value(i, at, &self.schema.columns[at].ty);
        let at = match self.metric.ts.map(value) {
            Some(Value::Time(ts)) => ts,
            _ => self.latest.max(0),
        };
        let values = match (&self.metric.kind, self.metric.value.map(value)) {
            (MetricKind::Histogram(step), Some(Value::Str(text))) => buckets(&text, step),
            (MetricKind::Histogram(_), _) => None,
            (_, None) => Some(vec![1.0]),
            (MetricKind::Gauge, Some(value)) => number(&value).map(|n| vec![n]),
            (MetricKind::Counter, Some(value)) => {
                number(&value).filter(|n| *n >= 0.0).map(|n| vec![n])
            }
        };
        let Some(values) = values else {
            self.left_out.skipped += 1;
            return;
        };
        let key: Key = self.metric.labels.iter().map(|(_, at)| label(&value(*at))).collect();
        self.latest = self.latest.max(at);
        let is_gauge = self.metric.kind == MetricKind::Gauge;
        let is_others = !key.is_empty() && key.iter().all(|label| label == OTHER);
        if !self.series.contains_key(&key) && (is_others || !self.has_room()) {
            self.left_out.beyond += u64::from(!is_others);
            if is_gauge && self.metric.over_ns == 0 && !is_others {
                // Values that are not of one window make no sum.
                return;
            }
            self.beyond.add(&values, at, is_gauge && self.beyond.at != at);
            return;
        }
        let zeros = vec![0.0; values.len()];
        let new = || Series { values: zeros, at, shown: Shown::Among };
        self.series.entry(key).or_insert_with(new).add(&values, at, is_gauge);
    }

    /// Whether there is room for another key. A gauge forgets those that it shows no more.
    fn has_room(&mut self) -> bool {
        if self.series.len() >= KEYS_MAX && self.metric.kind == MetricKind::Gauge {
            let (latest, hold) = (self.latest, self.hold_ns());
            self.series.retain(|_, series| latest.saturating_sub(series.at) <= hold);
        }
        self.series.len() < KEYS_MAX
    }

    /// How long a gauge shows a value: that of a window until a later window has one.
    fn hold_ns(&self) -> i64 {
        if self.metric.over_ns > 0 { 0 } else { GAUGE_HOLD_NS }
    }

    /// The rows that it doesn't show as they are.
    pub(super) fn left_out(&self) -> RowsLeftOut {
        self.left_out
    }

    /// Writes its series.
    pub(super) fn write(&mut self, out: &mut Exposition) {
        let (kind, series) = match self.metric.kind {
            MetricKind::Gauge => (FamilyKind::Gauge, self.gauges()),
            MetricKind::Counter => (FamilyKind::Counter, self.totals()),
            MetricKind::Histogram(_) => (FamilyKind::Histogram, self.totals()),
        };
        let mut samples = Vec::new();
        for (key, values) in series {
            self.samples(&mut samples, &key, &values);
        }
        let about = match self.metric.help.as_str() {
            "" => "A column of a query.",
            help => help,
        };
        out.measured(&self.metric.name, kind, about, samples);
    }

    /// The values that a gauge shows: the largest, and the sum of the others.
    fn gauges(&self) -> Vec<(Key, Vec<f64>)> {
        let hold = self.hold_ns();
        let is_now = |series: &Series| self.latest.saturating_sub(series.at) <= hold;
        let now = self.series.iter().filter(|(_, series)| is_now(series));
        let mut all: Vec<(Key, f64)> = now.map(|(key, s)| (key.clone(), s.values[0])).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let rest = all.split_off(all.len().min(self.most()));
        let has_beyond = self.beyond.at > i64::MIN && is_now(&self.beyond);
        let beyond = has_beyond.then_some(self.beyond.values[0]);
        let others = rest
            .iter()
            .map(|(_, n)| *n)
            .chain(beyond)
            .fold(None, |sum, n| Some(sum.unwrap_or(0.0) + n));
        let others = others.map(|sum| (self.key_of_others(), sum));
        all.into_iter().chain(others).map(|(key, n)| (key, vec![n])).collect()
    }

    /// The sums of a counter or a histogram, none of which ever falls: a key that was shown among
    /// the others before has just what came since.
    fn totals(&mut self) -> Vec<(Key, Vec<f64>)> {
        let alone = |series: &Series| matches!(series.shown, Shown::Alone(_));
        let free = self.most().saturating_sub(self.series.values().filter(|s| alone(s)).count());
        let mut waiting: Vec<(Key, f64)> = self
            .series
            .iter()
            .filter(|(_, series)| !alone(series))
            .map(|(key, series)| (key.clone(), series.weight()))
            .collect();
        waiting.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        for (key, _) in waiting.into_iter().take(free) {
            if let Some(series) = self.series.get_mut(&key) {
                let hidden = match self.has_others {
                    true => series.values.clone(),
                    false => vec![0.0; series.values.len()],
                };
                series.shown = Shown::Alone(hidden);
            }
        }
        let (mut others, mut all) = (self.beyond.values.clone(), Vec::new());
        let mut has_others = self.has_others || self.beyond.at > i64::MIN;
        for (key, series) in &self.series {
            let hidden = match &series.shown {
                Shown::Alone(hidden) => {
                    let now = series.values.iter().zip(hidden).map(|(n, hidden)| n - hidden);
                    all.push((key.clone(), now.collect()));
                    hidden
                }
                Shown::Among => {
                    has_others = true;
                    &series.values
                }
            };
            others.iter_mut().zip(hidden).for_each(|(sum, n)| *sum += n);
        }
        self.has_others = has_others;
        if has_others {
            all.push((self.key_of_others(), others));
        }
        all
    }

    fn most(&self) -> usize {
        usize::try_from(self.metric.max_series).unwrap_or(usize::MAX)
    }

    fn key_of_others(&self) -> Key {
        vec![OTHER.to_owned(); self.metric.labels.len()]
    }

    /// Appends the samples of a series.
    fn samples(&self, out: &mut Vec<Measured>, key: &Key, values: &[f64]) {
        let names = self.metric.labels.iter().map(|(name, _)| name.clone());
        let labels: Vec<(String, String)> = names.zip(key.iter().cloned()).collect();
        let mut sample = |ending, more: Option<String>, value| {
            let bound = more.map(|bound| ("le".to_owned(), bound));
            let labels = labels.iter().cloned().chain(bound).collect();
            out.push(Measured { ending, labels, value });
        };
        match &self.metric.kind {
            MetricKind::Gauge => sample("", None, values[0]),
            MetricKind::Counter => sample("_total", None, values[0]),
            MetricKind::Histogram(step) => {
                let step = number(step).unwrap_or(1.0);
                let mut count = 0.0;
                for (i, n) in values[..=BOUNDS].iter().enumerate() {
                    count += n;
                    let bound = match i {
                        BOUNDS => "+Inf".to_owned(),
                        // A float with a point, as OpenMetrics wants it.
                        i => format!("{:?}", step * 2_f64.powi(i as i32)),
                    };
                    sample("_bucket", Some(bound), count);
                }
                sample("_count", None, count);
                sample("_sum", None, values[BOUNDS + 1]);
            }
        }
    }
}

impl Series {
    /// Takes in values: those of a gauge in place of the ones before.
    fn add(&mut self, values: &[f64], at: i64, replaces: bool) {
        if replaces {
            self.values.copy_from_slice(values);
        } else {
            self.values.iter_mut().zip(values).for_each(|(sum, n)| *sum += n);
        }
        self.at = self.at.max(at);
    }

    /// By what series are compared: the number, or how many values there are.
    fn weight(&self) -> f64 {
        match &self.values[..] {
            [n] => *n,
            [buckets @ .., _sum] => buckets.iter().sum(),
            [] => 0.0,
        }
    }
}

/// A value as a number: times and durations in seconds.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(n) => Some(*n as f64),
        Value::Float(n) if n.is_finite() => Some(*n),
        Value::Bool(b) => Some(f64::from(u8::from(*b))),
        Value::Time(ns) | Value::Duration(ns) => Some(*ns as f64 / 1e9),
        _ => None,
    }
}

/// A value as the value of a label.
fn label(value: &Value) -> String {
    match value {
        Value::Absent => String::new(),
        Value::Str(text) => text.chars().take(LABEL_MAX).collect(),
        other => other.to_string().chars().take(LABEL_MAX).collect(),
    }
}

/// The text of a `histogram()` as counts by bound, with the sum of its values to half a step;
/// nothing for a text that is none.
fn buckets(text: &str, step: &Value) -> Option<Vec<f64>> {
    let (Value::Int(width) | Value::Duration(width)) = step else { return None };
    let mut out = vec![0.0; BOUNDS + 2];
    for part in text.split_whitespace() {
        let (start, count) = part.rsplit_once('=')?;
        let start = match step {
            Value::Int(_) => start.parse::<i64>().ok()?,
            _ => time::parse_duration(start)?,
        };
        let count = count.parse::<u64>().ok()? as f64;
        let end = start.saturating_add(*width);
        let fits = |i: &usize| i128::from(end) <= i128::from(*width) << i;
        let bound = (0..BOUNDS).find(fits).unwrap_or(BOUNDS);
        out[bound] += count;
        let middle = start as f64 + *width as f64 / 2.0;
        let unit = if matches!(step, Value::Int(_)) { 1.0 } else { 1e9 };
        out[BOUNDS + 1] += count * middle / unit;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::rows::set_cell;
    use weir_http::MetricsFormat;
    use weir_plan::{Column, Type};

    fn schema() -> Schema {
        let column = |name: &str, ty: Type| Column { name: name.to_owned(), ty };
        let columns = vec![
            column("ts", Type::Time),
            column("port", Type::Int),
            column("n", Type::Int),
            column("h", Type::Str),
        ];
        Schema { columns }
    }

    fn family(kind: MetricKind, max_series: u64) -> Family {
        let value = Some(if matches!(kind, MetricKind::Histogram(_)) { 3 } else { 2 });
        let labels = vec![("port".to_owned(), 1)];
        let (name, help) = ("m".to_owned(), String::new());
        let metric =
            Metric { name, kind, value, labels, max_series, help, ts: Some(0), over_ns: 1 };
        Family::new(&metric, &schema())
    }

    /// Takes rows of a time, a port and a number, the number also as a text of a histogram.
    fn take(family: &mut Family, cells: &[(i64, i64, i64)]) {
        for &(ts, port, n) in cells {
            let mut rows = Rows::new(&schema());
            let text = Value::Str(format!("{n}=2").into());
            let values = [Value::Time(ts), Value::Int(port), Value::Int(n), text];
            for (column, value) in rows.columns.iter_mut().zip(values) {
                set_cell(column, 0, &value, &mut rows.arena);
            }
            rows.len = 1;
            family.row(&rows, 0);
        }
    }

    /// The samples, without comments.
    fn samples(family: &mut Family) -> Vec<String> {
        let mut out = Exposition::new(MetricsFormat::OpenMetrics);
        family.write(&mut out);
        let text = out.finish();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn a_counter_never_falls_and_the_rest_is_added_up() {
        let mut counter = family(MetricKind::Counter, 2);
        take(&mut counter, &[(1, 80, 5), (1, 53, 7), (2, 22, 1), (2, 80, 5), (2, 22, -9)]);
        let first =
            [r#"m_total{port="53"} 7"#, r#"m_total{port="80"} 10"#, r#"m_total{port="_other"} 1"#];
        assert_eq!(samples(&mut counter), first);
        take(&mut counter, &[(3, 22, 100), (3, 443, 1)]);
        let then = [
            r#"m_total{port="53"} 7"#,
            r#"m_total{port="80"} 10"#,
            r#"m_total{port="_other"} 102"#,
        ];
        assert_eq!(samples(&mut counter), then);
        assert_eq!(counter.left_out(), RowsLeftOut { skipped: 1, beyond: 0 });
        // A series that is shown later begins where the others go on.
        let mut counter = family(MetricKind::Counter, 2);
        counter.has_others = true;
        take(&mut counter, &[(1, 80, 5)]);
        assert_eq!(
            samples(&mut counter),
            [r#"m_total{port="80"} 0"#, r#"m_total{port="_other"} 5"#]
        );
        take(&mut counter, &[(1, 80, 2)]);
        assert_eq!(
            samples(&mut counter),
            [r#"m_total{port="80"} 2"#, r#"m_total{port="_other"} 5"#]
        );
    }

    #[test]
    fn a_gauge_shows_the_latest_window() {
        let mut gauge = family(MetricKind::Gauge, 1);
        take(&mut gauge, &[(1, 80, 5), (1, 53, 7), (2, 80, 3), (2, 22, 9), (2, 25, 1)]);
        let expected = [r#"m{port="22"} 9"#, r#"m{port="_other"} 4"#];
        assert_eq!(samples(&mut gauge), expected);
    }

    #[test]
    fn what_has_no_value_shows_nothing() {
        for kind in [MetricKind::Counter, MetricKind::Gauge] {
            assert_eq!(samples(&mut family(kind, 3)), Vec::<String>::new());
        }
    }

    #[test]
    fn keys_are_bounded() {
        for kind in [MetricKind::Counter, MetricKind::Gauge] {
            let mut many = family(kind, 3);
            let cells: Vec<_> = (0..2 * KEYS_MAX as i64).map(|port| (1, port, 1)).collect();
            take(&mut many, &cells);
            let all = samples(&mut many);
            assert_eq!((all.len(), many.series.len()), (4, KEYS_MAX));
            assert_eq!(many.left_out(), RowsLeftOut { skipped: 0, beyond: KEYS_MAX as u64 });
            assert!(all[3].ends_with(&format!("\"_other\"}} {}", 2 * KEYS_MAX - 3)), "{all:?}");
        }
    }

    #[test]
    fn a_histogram_has_bounds_that_stay() {
        let mut histogram = family(MetricKind::Histogram(Value::Int(64)), 9);
        take(&mut histogram, &[(1, 80, 0), (1, 80, 64), (1, 80, 1024), (1, 80, 1 << 40)]);
        let all = samples(&mut histogram);
        assert_eq!(all.len(), BOUNDS + 3);
        assert_eq!(all[0], r#"m_bucket{port="80",le="64.0"} 2"#);
        assert_eq!(all[1], r#"m_bucket{port="80",le="128.0"} 4"#);
        assert_eq!(all[5], r#"m_bucket{port="80",le="2048.0"} 6"#);
        assert_eq!(all[BOUNDS], r#"m_bucket{port="80",le="+Inf"} 8"#);
        assert_eq!(all[BOUNDS + 1], r#"m_count{port="80"} 8"#);
        assert!(buckets("1=x", &Value::Int(1)).is_none() && buckets("=", &Value::Int(1)).is_none());
        let durations = buckets("10ms=3 1s=1", &Value::Duration(10_000_000)).expect("a histogram");
        assert_eq!((durations[1], durations[BOUNDS + 1]), (3.0, 0.045 + 1.005));
    }
}
