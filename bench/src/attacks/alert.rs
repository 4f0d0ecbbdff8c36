//! An alert of any contestant, as far as it is compared.

use anyhow::{Context, Result};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use weir_packet::time;

/// For so long, alerts of one rule about the same addresses are one: Weir's own hold.
const HOLD_NS: i64 = 300_000_000_000;

/// An alert.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Alert {
    /// The rule that fired.
    pub(crate) rule: String,
    /// When it could be known, in nanoseconds since 1970: the end of the window in which its last
    /// packet is, or the time of that.
    pub(crate) known_ns: i64,
    /// The addresses that it names.
    pub(crate) addresses: Vec<IpAddr>,
}

impl Alert {
    /// Of a line that Weir put out with times in nanoseconds; nothing where it is not the start of
    /// an alert. Windows end each `step_ns`. A row that is no alert has the start of its window.
    pub(crate) fn of_weir(line: &str, rule: &str, step_ns: i64) -> Result<Option<Alert>> {
        let row: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        if row.get("alert.state").is_some_and(|state| state != "start") {
            return Ok(None);
        }
        let time = |name: &str| row.get(name).and_then(Value::as_i64);
        let ts = time("ts").with_context(|| format!("no ts: {line}"))?;
        let rule = row.get("alert.rule").and_then(Value::as_str).unwrap_or(rule).to_owned();
        let is_of_window = row.get("alert.window").is_some_and(|window| !window.is_null());
        let known_ns = match (time("alert.last"), is_of_window) {
            (Some(last), true) => ((last - 1).div_euclid(step_ns) + 1) * step_ns,
            (Some(last), false) => last,
            (None, _) => ts + step_ns,
        };
        Ok(Some(Alert { rule, known_ns, addresses: addresses(&row) }))
    }

    /// Of a line of Suricata's `eve.json`; nothing where it is not an alert.
    pub(crate) fn of_eve(line: &str) -> Result<Option<Alert>> {
        let row: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        if row.get("event_type").is_none_or(|kind| kind != "alert") {
            return Ok(None);
        }
        let text = |at: &str| row.pointer(at).and_then(Value::as_str).map(str::to_owned);
        let time = text("/timestamp").context("an alert without a time")?;
        // Times are those of UTC: Suricata is run so.
        let utc = time.replace("+0000", "Z");
        let known_ns = time::parse_rfc3339(&utc).with_context(|| time.clone())?;
        let rule = text("/alert/signature").context("an alert without a rule")?;
        Ok(Some(Alert { rule, known_ns, addresses: addresses(&row) }))
    }

    /// Whether it names the attacker, or else the victim; one of a domain, or of the whole link,
    /// names no address at all.
    pub(crate) fn concerns(&self, attacker: &str, victim: &str) -> bool {
        if self.addresses.is_empty() {
            return true;
        }
        [attacker, victim]
            .iter()
            .flat_map(|names| names.split([',', ' ']))
            .filter_map(|name| address(name.trim()))
            .any(|address| self.addresses.contains(&address))
    }
}

/// Without those that repeat an earlier one within the hold.
pub(crate) fn without_repeats(alerts: Vec<Alert>) -> Vec<Alert> {
    let mut kept: Vec<Alert> = Vec::new();
    for alert in alerts {
        let repeats = |k: &Alert| {
            k.rule == alert.rule
                && k.addresses == alert.addresses
                && (alert.known_ns - k.known_ns).abs() <= HOLD_NS
        };
        if !kept.iter().rev().any(repeats) {
            kept.push(alert);
        }
    }
    kept
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()))
}

/// All addresses in the texts of a row, each once, in order.
fn addresses(row: &Value) -> Vec<IpAddr> {
    let mut found = Vec::new();
    collect(row, &mut found);
    found.sort();
    found.dedup();
    found
}

fn collect(value: &Value, found: &mut Vec<IpAddr>) {
    match value {
        Value::String(text) => {
            let words = text.split([' ', '=', ',', '"']);
            found.extend(words.filter_map(|word| word.parse::<IpAddr>().ok()));
        }
        Value::Array(values) => values.iter().for_each(|v| collect(v, found)),
        Value::Object(map) => map.values().for_each(|v| collect(v, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = r#"{"ts":5000000000,"alert.rule":"trw","alert.state":"start",
        "alert.last":11000000000,"alert.window":3600,"alert.key":"source=192.0.2.66 port=80","server":"2001:db8::1"}"#;

    fn row(text: &str) -> Option<Alert> {
        Alert::of_weir(&text.replace('\n', ""), "naive", 5_000_000_000).expect("a row")
    }

    #[test]
    fn an_alert_is_known_at_the_end_of_its_window() {
        let alert = row(ROW).expect("a start");
        assert_eq!((alert.rule.as_str(), alert.known_ns), ("trw", 15_000_000_000));
        assert!(alert.concerns("192.0.2.66", "-"));
        assert!(alert.concerns("spoofed", "192.0.2.1, 2001:db8::1"));
        assert!(alert.concerns("spoofed", "[2001:db8::1]:80"));
        assert!(!alert.concerns("spoofed", "192.0.2.6"));
        let domain = Alert { addresses: Vec::new(), ..alert.clone() };
        assert!(domain.concerns("spoofed", "192.0.2.6"));
        assert_eq!(row(&ROW.replace("start", "end")), None);
        let naive = row(r#"{"ts":5000000000,"ip.src":"192.0.2.66"}"#).expect("a row");
        assert_eq!((naive.rule.as_str(), naive.known_ns), ("naive", 10_000_000_000));
        let of_packet = row(&ROW.replace(":3600", ":null")).expect("a start");
        assert_eq!(of_packet.known_ns, 11_000_000_000);
    }

    #[test]
    fn what_repeats_within_the_hold_is_one() {
        let at = |s: i64| Alert { known_ns: s * 1_000_000_000, ..row(ROW).expect("a start") };
        let kept = without_repeats(vec![at(0), at(300), at(301), at(700)]);
        assert_eq!(kept, [at(0), at(301), at(700)]);
        let other = Alert { addresses: Vec::new(), ..at(1) };
        assert_eq!(without_repeats(vec![at(0), other.clone()]), [at(0), other]);
    }

    #[test]
    fn suricatas_alerts_are_read() {
        let line = r#"{"timestamp":"2026-11-23T00:00:01.500000+0000","event_type":"alert",
            "src_ip":"192.0.2.66","dest_ip":"198.51.100.2","alert":{"signature":"port_scan"}}"#;
        let line = line.replace('\n', "");
        let alert = Alert::of_eve(&line).expect("a line").expect("an alert");
        assert_eq!(alert.rule, "port_scan");
        assert_eq!(alert.known_ns % 1_000_000_000, 500_000_000);
        assert!(alert.concerns("192.0.2.66", "-"));
        assert_eq!(Alert::of_eve(&line.replace("\"alert\",", "\"flow\",")).expect("a line"), None);
    }
}
