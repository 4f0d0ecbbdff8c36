//! `frequent(x, n)` and `histogram(x, step)`: values with how often each came, as one text.
//!
//! | | |
//! |---|---|
//! | Syntax | `frequent(x, n)`, `histogram(x, step)`, each also with `where condition` |
//! | Takes | `frequent` any type; `histogram` int and a step of int, duration and a step of duration |
//! | Type | string: `443=120 80=33`; of `frequent` the `n` most frequent, equally frequent ones by value; of a `histogram` by value, each step under its start |
//! | Over nothing | absent |
//! | Full | beyond 256 Mi values of all groups together a new one is left out, and counted as evicted; a text beyond 4096 bytes is absent, and counted as undefined |
//! | State | 16 to 64 bytes a different value (of a histogram, step), and the text of strings |
//! | Merge | counts of equal values add |
//! | Exact? | exact |

use super::Finish;
use super::tally::{CountedValues, ResultReader, Values};
use crate::expr::Class;
use std::fmt::Write;
use weir_plan::limits::TEXT_MAX;
use weir_plan::{Type, Value};

pub(super) struct Frequent {
    ty: Type,
    class: Class,
    /// How many of the most frequent; `None`: all, by value.
    most: Option<usize>,
}

impl Frequent {
    pub(super) fn new(ty: &Type, most: Option<usize>) -> Frequent {
        Frequent { class: Class::of(ty), ty: ty.clone(), most }
    }

    fn value(&self, raw: u128, values: &Values<'_>) -> Value {
        match self.ty {
            Type::Bool => Value::Bool(raw != 0),
            Type::Float => Value::Float(f64::from_bits(raw as u64)),
            Type::Str => Value::Str(String::from_utf8_lossy(values.text(raw)).into()),
            Type::Bytes => Value::Bytes(values.text(raw).into()),
            Type::Ip => Value::Ip(raw),
            Type::Mac => Value::Mac(raw as u64),
            Type::Time => Value::Time(raw as i64),
            Type::Duration => Value::Duration(raw as i64),
            _ => Value::Int(raw as i64),
        }
    }
}

/// Values with their counts as text; `None` if it would be too long.
fn listed(values: impl Iterator<Item = (Value, u64)>) -> Option<String> {
    let mut text = String::new();
    for (value, times) in values {
        let blank = if text.is_empty() { "" } else { " " };
        match value {
            Value::Str(s) => write!(text, "{blank}{s}={times}"),
            v => write!(text, "{blank}{v}={times}"),
        }
        .expect("writing to a string");
        if text.len() > TEXT_MAX {
            return None;
        }
    }
    Some(text)
}

impl ResultReader for Frequent {
    fn read(&self, values: &Values<'_>, work: &mut CountedValues, i: usize, out: &mut Finish<'_>) {
        values.all(work);
        if let Some(most) = self.most.filter(|&most| most < work.len()) {
            // The values as frequent as the last one that is shown stay, to be told apart by value.
            let (.., last, _) = work.select_nth_unstable_by(most - 1, |a, b| b.1.cmp(&a.1));
            let least = last.1;
            work.retain(|(_, times)| *times >= least);
        }
        let more = |a: &(u128, u64), b: &(u128, u64)| match self.most {
            Some(_) => b.1.cmp(&a.1),
            None => std::cmp::Ordering::Equal,
        };
        work.sort_unstable_by(|a, b| {
            more(a, b).then_with(|| match self.class {
                Class::Text => values.text(a.0).cmp(values.text(b.0)),
                Class::Pair => a.0.cmp(&b.0),
                class => class.ordered(a.0 as u64).cmp(&class.ordered(b.0 as u64)),
            })
        });
        let shown = work.iter().take(self.most.unwrap_or(usize::MAX));
        match listed(shown.map(|&(raw, times)| (self.value(raw, values), times))) {
            Some(text) => out.column.set_raw(i, out.arena.put(text.as_bytes()) as u128),
            None => *out.undefined += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check, fuzz_decode, split};
    use crate::ops::testing::{agg, field, summarize};
    use crate::tests::check_stages;
    use weir_plan::{AggFunc, Type, Value, Window};

    #[test]
    fn the_most_frequent_first() {
        let f = AggFunc::Frequent;
        let text = |s: &str| Value::Str(s.into());
        let ports = [80, 443, 22, 443, 80, 443, -1].map(Given::Int);
        check(f(2), &Type::Int, &ports, text("443=3 80=2"));
        check(f(3), &Type::Int, &ports, text("443=3 80=2 -1=1"));
        check(f(9), &Type::Int, &ports, text("443=3 80=2 -1=1 22=1"));
        check(f(1), &Type::Int, &[], Value::Absent);
        let v4 = |n: u128| Given::Ip(0xffff_0a00_0000 + n);
        let ips = [v4(1), Given::Ip(1), v4(2), v4(2)];
        check(f(5), &Type::Ip, &ips, text("10.0.0.2=2 ::1=1 10.0.0.1=1"));
        let names = ["b", "a", "b"].map(|s| Given::Str(s.into()));
        check(f(5), &Type::Str, &names, text("b=2 a=1"));
        let gaps = [Given::Duration(1_000_000), Given::Duration(5)];
        check(f(1), &Type::Duration, &gaps, text("5ns=1"));
        fuzz_decode(f(2), &Type::Int, &ports);
    }

    #[test]
    fn a_histogram_goes_by_value() {
        let rows = [100, 0, -100, 100].map(Given::Int);
        check(AggFunc::Histogram, &Type::Int, &rows, Value::Str("-100=1 0=1 100=2".into()));
    }

    #[test]
    fn a_text_that_is_too_long_is_absent() {
        let rows: Vec<Given> = (0..5000).map(Given::Int).collect();
        assert_eq!(split(AggFunc::Histogram, &Type::Int, &rows, &[9]), Value::Absent);
        let Value::Str(text) = split(AggFunc::Frequent(3), &Type::Int, &rows, &[9]) else {
            panic!("a text")
        };
        assert_eq!(&*text, "0=1 1=1 2=1");
    }

    #[test]
    fn any_number_of_workers_gives_the_model() {
        for window in [Window::All, Window::Tumbling(1_000_000_000)] {
            for key in [&["dport"][..], &[]] {
                let of = |f, name: &str| agg(f, Some(field(name)));
                let aggs = vec![
                    of(AggFunc::Frequent(2), "len"),
                    of(AggFunc::Frequent(1), "ip.src"),
                    of(AggFunc::Histogram, "tcp.payload_len"),
                ];
                check_stages(vec![summarize(key, aggs, window)]);
            }
        }
    }
}
