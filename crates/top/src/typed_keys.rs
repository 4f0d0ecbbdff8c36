//! Keys that people type, to count packets by them.

use crate::filter::{self, Fault};
use crate::key::{Part, RowKey};
use crate::limits::FILTER_MAX;
use std::sync::LazyLock;
use weir_plan::{Expr, ExprKind, Schema, Stage, Summarize, print};

/// The text before the keys.
const BEFORE: &str = "packets\n| summarize packets = count(), bytes = sum(len) by ";

/// The message where there are none.
const NONE: &str = "type what packets are counted by, such as dport, or ip.src, tcp.flags";

/// Checks keys.
///
/// # Errors
/// The first mistake.
pub(crate) fn check(keys: &str) -> Result<(), Fault> {
    summarize(keys).map(drop)
}

/// The condition that the packets of a row of these keys meet; `None` if a value can't be written.
pub(crate) fn condition(keys: &str, row: &RowKey) -> Option<String> {
    let summarize = summarize(keys).ok()?;
    let schema = Schema::default();
    let one = |((_, expr), part): (&(String, Expr), &Part)| {
        let text = print::expr(expr, &schema, &[]);
        // Operators may bind less tightly than a comparison, or not chain with one.
        match expr.kind {
            ExprKind::Field(_) | ExprKind::Call(..) | ExprKind::Const(_) => part.condition(&text),
            _ => part.condition(&format!("({text})")),
        }
    };
    let all: Option<Vec<String>> = summarize.keys.iter().zip(row).map(one).collect();
    Some(all?.join(" and "))
}

/// The stage that counts by keys.
fn summarize(keys: &str) -> Result<Summarize, Fault> {
    let whole = |message: &str| Fault::of_all(keys, message.to_owned());
    if keys.trim().is_empty() {
        return Err(whole(NONE));
    }
    if keys.len() > FILTER_MAX {
        return Err(whole(&format!("keys are at most {FILTER_MAX} bytes long")));
    }
    let stages = filter::stages(BEFORE, keys)?;
    // Over interfaces there is the start of a window beside them.
    filter::stages(BEFORE, &format!("{keys}\nevery 1s"))?;
    // Nothing but keys has come in by the text.
    match (&stages[..], &PLAIN[..]) {
        ([Stage::Summarize(typed)], [Stage::Summarize(plain)]) => {
            let without_keys = |s: &Summarize| Summarize { keys: Vec::new(), ..s.clone() };
            match without_keys(typed) == without_keys(plain) {
                true => Ok(typed.clone()),
                false => Err(whole("keys come without windows and bounds")),
            }
        }
        _ => Err(whole("keys come without further stages")),
    }
}

/// The stages of keys that are no more than that.
static PLAIN: LazyLock<Vec<Stage>> =
    LazyLock::new(|| filter::stages(BEFORE, "ip").unwrap_or_default());

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_plan::Value;

    #[test]
    fn keys_are_checked_at_their_place() {
        for good in ["dport", "ip.src, tcp.flags", "port = min_of(sport, dport)", "flow # all"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let fault = |text: &str| check(text).expect_err(text);
        let wrong = fault("ip.src, dprt");
        assert_eq!((wrong.from, wrong.to), (8, 12));
        assert_eq!(wrong.help.as_deref(), Some("did you mean `dport`?"));
        assert_eq!(fault("").message, NONE);
        for more in ["dport every 1s", "dport max 5", "dport | limit 1", "dport\nlet a = packets"] {
            assert!(!fault(more).message.is_empty(), "{more}");
        }
        assert!(fault("packets = sport").message.contains("packets"));
        assert!(fault("ts").message.contains("ts"));
        assert!(fault(&"x".repeat(FILTER_MAX + 1)).message.contains("2048"));
    }

    #[test]
    fn a_row_of_keys_is_a_condition() {
        let parts = |values: &[Value]| values.iter().map(Part::from_value).collect::<RowKey>();
        let cases = [
            ("dport", vec![Value::Int(443)], "dport == 443"),
            ("dport", vec![Value::Absent], "not exists(dport)"),
            (
                "port = min_of(sport, dport), tcp.syn",
                vec![Value::Int(22), Value::Bool(false)],
                "min_of(sport, dport) == 22 and tcp.syn == false",
            ),
            ("eth.src", vec![Value::Mac(0x0200_5e10_0001)], "eth.src == 02:00:5e:10:00:01"),
            ("dns.qname", vec![Value::Str("a\"b\\".into())], "dns.qname == \"a\\\"b\\\\\""),
            (
                "x = tcp or udp, y = not ip, ttl = ip.ttl + 1",
                vec![Value::Bool(true), Value::Bool(false), Value::Int(65)],
                "(tcp or udp) == true and (not ip) == false and (ip.ttl + 1) == 65",
            ),
            ("gap = 2s", vec![Value::Duration(2_000_000_000)], "2s == 2s"),
            (
                "inside = ip.src in 10.0.0.0/8, x = if(tcp, 1, 2)",
                vec![Value::Bool(true), Value::Int(2)],
                "(ip.src in 10.0.0.0/8) == true and (if(tcp, 1, 2)) == 2",
            ),
            (
                "payload, minute = bin(ts, 1m)",
                vec![Value::Bytes([0, b'"', 0xff].into()), Value::Time(60_000_000_000)],
                "payload == b\"\\x00\\x22\\xff\" and bin(ts, 1m) == @1970-01-01T00:01:00Z",
            ),
            (
                "dns.qname",
                vec![Value::Str("a\u{1b}[2J\u{202e}\n".into())],
                "dns.qname == \"a\\u{1b}[2J\\u{202e}\\u{a}\"",
            ),
        ];
        for (keys, values, expected) in cases {
            let condition = condition(keys, &parts(&values)).expect(keys);
            assert_eq!(condition, expected, "{keys}");
            assert_eq!(crate::check(&condition), Ok(()), "{keys}: {condition}");
        }
        assert_eq!(condition("dprt", &RowKey::new()), None);
        assert_eq!(condition("x = sqrt(-1.0)", &parts(&[Value::Float(f64::NAN)])), None);
        assert_eq!(condition("payload", &parts(&[Value::Bytes(vec![7; 2000].into())])), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "[ -~é\t\n]{0,40}") {
            if let Err(fault) = check(&text) {
                prop_assert!(fault.from < fault.to || text.is_empty());
                prop_assert!(fault.from <= text.chars().count());
            }
        }
    }
}
