//! Stages that choose rows and take them apart.

use super::{expr, list};
use crate::capture::Capture;
use crate::expr::Expr;
use crate::hello::Hello;
use crate::limits::{DISTINCT_KEYS_MAX, HELLO_FLOWS_MAX, HELLO_IDLE_NS, TOP_KEYS_MAX};
use crate::rows::{Deduplicate, Distinct, Each, Parts, Per, Sample, SampleBy};
use crate::stage::Schema;
use crate::value::Value;
use weir_packet::fields::FieldId;

fn keys(keys: &[Expr], input: &Schema) -> String {
    list(keys, |k| expr(k, input, &[]))
}

/// The end of a `top … per`, if it has one.
pub(super) fn per(per: Option<&Per>, input: &Schema) -> String {
    let Some(per) = per else { return String::new() };
    let max = match per.max_keys {
        TOP_KEYS_MAX => String::new(),
        n => format!(" max {n}"),
    };
    format!(" per {}{max}", keys(&per.keys, input))
}

pub(super) fn per_state(n: u64, windowed: bool, per: &Per, input: &Schema) -> String {
    let until = if windowed { " and open window" } else { ", to the end of input" };
    format!(
        "{n} rows per {}{until}; at most {} keys, counting rows of others as evicted",
        keys(&per.keys, input),
        per.max_keys
    )
}

pub(super) fn distinct(d: &Distinct, input: &Schema) -> String {
    let mut out = format!("distinct {}", keys(&d.keys, input));
    if d.idle_ns != i64::MAX && !d.windowed {
        out += &format!(" idle {}", Value::Duration(d.idle_ns));
    }
    if d.max_keys != DISTINCT_KEYS_MAX {
        out += &format!(" max {}", d.max_keys);
    }
    out
}

pub(super) fn distinct_state(d: &Distinct, input: &Schema) -> String {
    let until = match (d.windowed, d.idle_ns) {
        (true, _) => " per open window".to_owned(),
        (false, i64::MAX) => " to the end of input".to_owned(),
        (false, idle) => format!(" for {} after its last row", Value::Duration(idle)),
    };
    format!(
        "each {}{until}; at most {} keys, evicting and counting beyond",
        keys(&d.keys, input),
        d.max_keys
    )
}

pub(super) fn deduplicate(d: &Deduplicate) -> String {
    let mut out = format!("deduplicate within {}", Value::Duration(d.within_ns));
    if d.max_packets != DISTINCT_KEYS_MAX {
        out += &format!(" max {}", d.max_packets);
    }
    out
}

pub(super) fn deduplicate_state(d: &Deduplicate) -> String {
    format!(
        "a digest per packet, for {} after its last copy; at most {} packets, evicting and \
         counting beyond",
        Value::Duration(d.within_ns),
        d.max_packets
    )
}

pub(super) fn hello(h: &Hello) -> String {
    let mut out = "hello".to_owned();
    if h.idle_ns != HELLO_IDLE_NS {
        out += &format!(" idle {}", Value::Duration(h.idle_ns));
    }
    if h.max_flows != HELLO_FLOWS_MAX {
        out += &format!(" max {}", h.max_flows);
    }
    out
}

pub(super) fn hello_state(h: &Hello) -> String {
    format!(
        "pieces of unfinished hellos per flow, for {} after its last packet; at most {} flows, \
         evicting and counting beyond",
        Value::Duration(h.idle_ns),
        h.max_flows
    )
}

pub(super) fn sample(s: &Sample, input: &Schema) -> String {
    let by = match &s.by {
        SampleBy::Key(parts) => format!(" by {}", keys(parts, input)),
        SampleBy::Number(_) | SampleBy::Order => String::new(),
    };
    format!("sample {} in {}{by}", s.take, s.of)
}

pub(super) fn sample_state(s: &Sample) -> Option<String> {
    (s.by == SampleBy::Order).then(|| "the number of rows so far".to_owned())
}

pub(super) fn each(e: &Each, input: &Schema) -> String {
    let name = e.columns.first().map_or("", |(name, ..)| name);
    match &e.what {
        Parts::Split { text, by } => {
            format!("each {name} = split({}, {})", expr(text, input, &[]), expr(by, input, &[]))
        }
        Parts::Packet(what) => {
            let prefix = name.rsplit_once('.').map_or(name, |(prefix, _)| prefix);
            let what = what.info();
            match what.prefix() == prefix {
                true => format!("each {}", what.name),
                false => format!("each {prefix} = {}", what.name),
            }
        }
    }
}

/// As a query writes it.
pub(super) fn capture(c: &Capture, input: &Schema) -> String {
    let [before, after] = [c.before_ns, c.after_ns].map(Value::Duration);
    let mut out = format!("capture before {before} after {after}");
    if !c.keys.is_empty() {
        let key = |(id, column): &(FieldId, usize)| {
            let name = input.columns.get(*column).map_or("", |c| c.name.as_str());
            match id.info().name {
                field if field == name => field.to_owned(),
                field => format!("{field} = {name}"),
            }
        };
        out += &format!(" by {}", list(&c.keys, key));
    }
    out
}
