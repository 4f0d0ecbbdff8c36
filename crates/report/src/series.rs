//! A picture of the rows of any query that have a time: a panel for each column of numbers, with a
//! line for each key.

use crate::grid::{Grid, Merge};
use crate::limits::{KEYS_MAX, LINES_MAX, PANELS_MAX, STEPS_MAX};
use crate::number::length;
use crate::plot::{self, Caption, Panel, PlotLine, Unit};
use crate::rows::shown;
use std::collections::BTreeMap;
use std::fmt;
use weir_engine::rows::{Output, Rows};
use weir_plan::{Schema, TimeZone, Type, Value};

/// The key under which all keys beyond the first are added up.
const OTHER: u32 = u32::MAX;

/// Why rows can't be drawn over time.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoPlot {
    /// There are no rows.
    NoOutput,
    /// The rows of an output have no column of a time.
    NoTime(String),
    /// They have no column of numbers beside their keys.
    NoNumbers(String),
    /// There are more columns of numbers than a picture has panels.
    TooMany(usize),
}

impl fmt::Display for NoPlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoPlot::NoOutput => f.write_str("no rows are printed, so there is nothing to draw"),
            NoPlot::NoTime(name) => write!(
                f,
                "the rows of {name} have no time: count them by `every 1s`, or keep the column `ts`"
            ),
            NoPlot::NoNumbers(name) => write!(
                f,
                "the rows of {name} have no column of numbers beside their time and their keys: \
                 add one, such as `n = count()`"
            ),
            NoPlot::TooMany(n) => write!(
                f,
                "there are {n} columns of numbers, and a picture has at most {PANELS_MAX} panels: \
                 choose some by `project`"
            ),
        }
    }
}

impl std::error::Error for NoPlot {}

/// A column that is drawn.
#[derive(Clone, Debug)]
struct Drawn {
    at: usize,
    name: String,
    unit: Unit,
}

/// The values of keys in a step of time: of each column the largest value; NaN where there is none.
#[derive(Default, Debug)]
struct Cell(BTreeMap<u32, Vec<f64>>);

impl Cell {
    /// Takes in the values of a key.
    fn take(&mut self, key: u32, values: Vec<f64>) {
        match self.0.get_mut(&key) {
            Some(known) => known.iter_mut().zip(values).for_each(|(a, b)| *a = a.max(b)),
            None => drop(self.0.insert(key, values)),
        }
    }

    /// Adds the values of a key to those of the others.
    fn give_to_others(&mut self, key: u32) {
        let Some(values) = self.0.remove(&key) else { return };
        match self.0.get_mut(&OTHER) {
            Some(sums) => sums.iter_mut().zip(values).for_each(|(sum, n)| *sum = plus(*sum, n)),
            None => drop(self.0.insert(OTHER, values)),
        }
    }
}

impl Merge for Cell {
    fn merge(&mut self, other: Cell) {
        other.0.into_iter().for_each(|(key, values)| self.take(key, values));
    }
}

/// A sum of two values, of which one may be missing.
fn plus(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ => a + b,
    }
}

/// A key of an output.
#[derive(Debug)]
struct KnownKey {
    number: u32,
    /// The sum of what it has in each column.
    totals: Vec<f64>,
}

/// The rows of an output, as far as they are drawn.
#[derive(Debug)]
struct OutputPlot {
    name: Option<String>,
    schema: Schema,
    ts: usize,
    keys: Vec<usize>,
    columns: Vec<Drawn>,
    known: BTreeMap<String, KnownKey>,
    /// The number of the next key.
    next: u32,
    /// Keys that were added to the others, and come again as new ones if they do.
    added_up: u64,
    /// Rows without a time.
    timeless: u64,
    grid: Grid<Cell>,
}

impl OutputPlot {
    fn new(output: &Output, number: usize, several: bool) -> Result<OutputPlot, NoPlot> {
        let name = match &output.name {
            Some(name) => format!("`{name}`"),
            None if several => format!("output {}", number + 1),
            None => "the query".to_owned(),
        };
        let columns = &output.schema.columns;
        let is_time = |at: &usize| columns[*at].ty == Type::Time;
        let ts = output.schema.position("ts").filter(is_time);
        let ts = ts.or_else(|| (0..columns.len()).find(is_time));
        let ts = ts.ok_or_else(|| NoPlot::NoTime(name.clone()))?;
        let drawn = |(at, column): (usize, &weir_plan::Column)| {
            let unit = match column.ty {
                Type::Int | Type::Float => Unit::Plain,
                Type::Duration => Unit::Duration,
                _ => return None,
            };
            let is_key = output.keys.contains(&at);
            (!is_key).then(|| Drawn { at, name: column.name.clone(), unit })
        };
        let drawn: Vec<Drawn> = columns.iter().enumerate().filter_map(drawn).collect();
        if drawn.is_empty() {
            return Err(NoPlot::NoNumbers(name));
        }
        Ok(OutputPlot {
            name: output.name.clone(),
            schema: output.schema.clone(),
            ts,
            keys: output.keys.clone(),
            columns: drawn,
            known: BTreeMap::new(),
            next: 0,
            added_up: 0,
            timeless: 0,
            grid: Grid::new(1, STEPS_MAX),
        })
    }

    fn row(&mut self, rows: &Rows, i: usize) {
        let value = |at: usize| rows.value(i, at, &self.schema.columns[at].ty);
        let Value::Time(ts) = value(self.ts) else {
            self.timeless += 1;
            return;
        };
        let number = |drawn: &Drawn| match value(drawn.at) {
            Value::Int(n) | Value::Duration(n) => n as f64,
            Value::Float(n) if n.is_finite() => n,
            _ => f64::NAN,
        };
        let values: Vec<f64> = self.columns.iter().map(number).collect();
        let key: Vec<String> = self.keys.iter().map(|at| shown(&value(*at), None)).collect();
        let number = self.number(key.join(" "), &values);
        self.grid.at(ts).take(number, values);
    }

    /// The number of a key, which has these values more.
    fn number(&mut self, key: String, values: &[f64]) -> u32 {
        if self.known.len() >= KEYS_MAX && !self.known.contains_key(&key) {
            self.forget();
        }
        let next = &mut self.next;
        let known = self.known.entry(key).or_insert_with(|| {
            *next += 1;
            KnownKey { number: *next - 1, totals: vec![0.0; values.len()] }
        });
        let more = values.iter().map(|n| if n.is_nan() { 0.0 } else { n.abs() });
        known.totals.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
        known.number
    }

    /// Adds the half of the keys that has the least in the first column to the others.
    fn forget(&mut self) {
        let mut order: Vec<(f64, String)> =
            self.known.iter().map(|(key, known)| (known.totals[0], key.clone())).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, key) in order.split_off(KEYS_MAX / 2) {
            let Some(known) = self.known.remove(&key) else { continue };
            self.grid.cells_mut().for_each(|cell| cell.give_to_others(known.number));
            self.added_up += 1;
        }
    }

    /// Its panels.
    fn panels(&self) -> Vec<Panel> {
        let mut times = self.grid.cells().map(|(ts, _)| ts).collect::<Vec<_>>();
        times.dedup();
        let apart = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).min();
        let step_ns = apart.unwrap_or(1).max(self.grid.step_ns());
        (0..self.columns.len()).map(|at| self.panel(at, step_ns)).collect()
    }

    fn panel(&self, at: usize, step_ns: i64) -> Panel {
        let column = &self.columns[at];
        let mut order: Vec<_> = self.known.iter().collect();
        order.sort_by(|a, b| b.1.totals[at].total_cmp(&a.1.totals[at]).then(a.0.cmp(b.0)));
        let (first, rest) = order.split_at(order.len().min(LINES_MAX));
        let points = |numbers: &dyn Fn(u32) -> bool| {
            let mut all = Vec::new();
            for (ts, cell) in self.grid.cells() {
                let own = cell.0.iter().filter(|(number, _)| numbers(**number));
                let sum = own.fold(f64::NAN, |sum, (_, values)| plus(sum, values[at]));
                if !sum.is_nan() {
                    all.push((ts, sum));
                }
            }
            all
        };
        let line = |(key, known): &(&String, &KnownKey)| {
            let name = (*key).clone();
            PlotLine { name, points: points(&|number| number == known.number) }
        };
        let mut lines: Vec<PlotLine> = first.iter().map(line).collect();
        let others = rest.len() as u64 + self.added_up;
        if others > 0 {
            let mut rest: Vec<u32> = rest.iter().map(|(_, known)| known.number).collect();
            rest.push(OTHER);
            let name = format!("other ({others} keys, added up)");
            lines.push(PlotLine { name, points: points(&|number| rest.contains(&number)) });
        }
        let output = self.name.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
        let largest = match self.grid.step_ns() {
            1 => String::new(),
            ns => format!(", the largest in each {}", length(ns)),
        };
        let title = format!("{output}{}{largest}", column.name);
        Panel { title, unit: column.unit, step_ns, lines }
    }
}

/// The rows of a run, as far as a picture shows them.
#[derive(Debug)]
pub struct Plot {
    /// The subject of the picture.
    about: String,
    zone: Option<TimeZone>,
    outputs: Vec<OutputPlot>,
}

impl Plot {
    /// A picture of these outputs in a time zone, which says what it is `about`.
    ///
    /// # Errors
    /// Where one of them can't be drawn.
    pub fn new(outputs: &[Output], about: &str, zone: Option<TimeZone>) -> Result<Plot, NoPlot> {
        let several = outputs.len() > 1;
        let one = |(i, output)| OutputPlot::new(output, i, several);
        let plots = outputs.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?;
        let panels = plots.iter().map(|plot| plot.columns.len()).sum();
        match panels {
            0 => Err(NoPlot::NoOutput),
            n if n > PANELS_MAX => Err(NoPlot::TooMany(n)),
            _ => Ok(Plot { about: about.to_owned(), zone, outputs: plots }),
        }
    }

    /// Takes rows of an output.
    pub fn rows(&mut self, output: usize, rows: &Rows) {
        let Some(plot) = self.outputs.get_mut(output) else { return };
        (0..rows.len).for_each(|i| plot.row(rows, i));
    }

    /// Rows that have no time, and are not in the picture.
    pub fn timeless(&self) -> u64 {
        self.outputs.iter().map(|plot| plot.timeless).sum()
    }

    /// The picture, as SVG. The same rows give the same bytes.
    pub fn svg(&self) -> String {
        let panels: Vec<Panel> = self.outputs.iter().flat_map(OutputPlot::panels).collect();
        let names = panels.iter().map(|panel| panel.title.as_str()).collect::<Vec<_>>().join("; ");
        let caption = Caption { title: &self.about, about: &names, number: 1, zone: self.zone };
        plot::panels(caption, &panels, plot::STYLE).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::rows::set_cell;
    use weir_plan::Column;

    fn output(columns: &[(&str, Type)], keys: &[usize]) -> Output {
        let columns = columns.iter().map(|(name, ty)| Column::new(name, ty)).collect();
        Output {
            name: None,
            schema: Schema { columns },
            keys: keys.to_vec(),
            capture: None,
            metrics: Vec::new(),
        }
    }

    fn rows(output: &Output, cells: &[Vec<Value>]) -> Rows {
        let mut rows = Rows::new(&output.schema);
        for (i, row) in cells.iter().enumerate() {
            for (column, value) in rows.columns.iter_mut().zip(row) {
                set_cell(column, i, value, &mut rows.arena);
            }
        }
        rows.len = cells.len();
        rows
    }

    fn by_port() -> Output {
        output(&[("ts", Type::Time), ("port", Type::Int), ("n", Type::Int)], &[1])
    }

    #[test]
    fn what_has_no_time_or_numbers_is_refused_by_name() {
        let refused = |output: &Output| {
            Plot::new(std::slice::from_ref(output), "x", None).expect_err("refused").to_string()
        };
        let named = Output { name: Some("q".to_owned()), ..output(&[("n", Type::Int)], &[]) };
        assert!(refused(&named).starts_with("the rows of `q` have no time"));
        let keys = output(&[("ts", Type::Time), ("port", Type::Int)], &[1]);
        assert!(refused(&keys).starts_with("the rows of the query have no column of numbers"));
        assert_eq!(Plot::new(&[], "x", None).expect_err("nothing"), NoPlot::NoOutput);
        let many = vec![by_port(); PANELS_MAX + 1];
        assert_eq!(Plot::new(&many, "x", None).expect_err("many"), NoPlot::TooMany(PANELS_MAX + 1));
    }

    #[test]
    fn the_largest_keys_have_lines_and_the_rest_is_added_up() {
        let output = by_port();
        let mut plot = Plot::new(std::slice::from_ref(&output), "x", None).expect("draws");
        let second = 1_000_000_000;
        for ts in 0..3 {
            let cells: Vec<_> = (1..=15)
                .map(|port| [Value::Time(ts * second), Value::Int(port), Value::Int(100 * port)])
                .map(Vec::from)
                .collect();
            plot.rows(0, &rows(&output, &cells));
        }
        plot.rows(0, &rows(&output, &[vec![Value::Absent, Value::Int(1), Value::Int(1)]]));
        assert_eq!(plot.timeless(), 1);
        let panels = plot.outputs[0].panels();
        let lines = &panels[0].lines;
        assert_eq!((lines.len(), lines[0].name.as_str()), (13, "15"));
        assert_eq!(lines[0].points, [(0, 1500.0), (second, 1500.0), (2 * second, 1500.0)]);
        assert_eq!(lines[12].name, "other (3 keys, added up)");
        assert_eq!(lines[12].points[0], (0, 600.0));
        assert_eq!(panels[0].step_ns, second);
        assert_eq!(plot.svg(), plot.svg());
    }

    #[test]
    fn keys_and_points_are_bounded_and_sums_agree() {
        let output = by_port();
        let mut plot = Plot::new(std::slice::from_ref(&output), "x", None).expect("draws");
        for i in 0..5_000_i64 {
            let values = vec![Value::Time(0), Value::Int(i), Value::Int(i + 1)];
            plot.rows(0, &rows(&output, &[values]));
        }
        assert!(plot.outputs[0].known.len() <= KEYS_MAX);
        let sum: f64 = plot.outputs[0].panels()[0].lines.iter().map(|line| line.points[0].1).sum();
        assert_eq!(sum, (5_000 * 5_001 / 2) as f64);
        for i in 0..100_000 {
            let values = vec![Value::Time(i * 7), Value::Int(0), Value::Int(1)];
            plot.rows(0, &rows(&output, &[values]));
        }
        assert!(plot.outputs[0].grid.cells().count() <= STEPS_MAX);
    }
}
