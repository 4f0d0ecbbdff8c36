//! Alerts that are not to be reported.

use crate::address;
use crate::alert::quote;
use crate::value::Value;
use std::fmt;
use std::net::IpAddr;

/// Says which alerts are not reported: those of a rule, or of all rules, whose row satisfies all
/// conditions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suppression {
    /// The name of the rule; `None` for all.
    pub rule: Option<String>,
    /// The conditions, on columns of the rows that assert the alert.
    pub conditions: Vec<SuppressedIf>,
    /// The first time at which it does not hold any more, in nanoseconds since 1970.
    pub until: Option<i64>,
}

/// A condition: the column is there, and has this value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SuppressedIf {
    /// The name of the column.
    pub column: String,
    /// Its value, as [`key_text`](crate::alert::key_text) writes it; of an address also a network.
    pub value: String,
    /// Whether the value stood in quotes, so that it is a text.
    pub quoted: bool,
}

impl SuppressedIf {
    /// The network that an address must be in: its first address and its length, both of 128 bits.
    pub fn network(&self) -> Option<(u128, u8)> {
        let (address, length) = self.value.split_once('/')?;
        let length: u8 = length.parse().ok().filter(|_| !self.quoted)?;
        let address: IpAddr = address.parse().ok()?;
        let (bits, width) = match (Value::ip(address), address) {
            (Value::Ip(bits), IpAddr::V4(_)) => (bits, 32),
            (Value::Ip(bits), IpAddr::V6(_)) => (bits, 128),
            _ => return None,
        };
        let length = (length <= width).then(|| length + (128 - width))?;
        Some((bits & network_mask(length), length))
    }

    /// Whether a cell has the value.
    pub fn holds(&self, cell: &Value) -> bool {
        let text = self.value.as_str();
        match cell {
            Value::Str(cell) => **cell == *text,
            _ if self.quoted => false,
            Value::Ip(cell) => match self.network() {
                Some(network) => address::contains(network, *cell),
                None => text.parse().is_ok_and(|a: IpAddr| Value::ip(a) == Value::Ip(*cell)),
            },
            Value::Int(cell) => text.parse() == Ok(*cell),
            Value::Float(cell) => text.parse().is_ok_and(|x: f64| x == *cell),
            cell => cell.to_string().eq_ignore_ascii_case(text),
        }
    }
}

/// The first bits of an address, so many of 128.
pub fn network_mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0)
}

/// Writes a text in quotes, or without where it needs none and none are asked for.
fn write_text(text: &str, in_quotes: bool, out: &mut String) {
    let mut quoted = String::new();
    quote(text, &mut quoted);
    match in_quotes && !quoted.starts_with('"') {
        true => out.extend(["\"", &quoted, "\""]),
        false => out.push_str(&quoted),
    }
}

/// Writes the line of a list.
impl fmt::Display for Suppression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::new();
        match &self.rule {
            Some(rule) => write_text(rule, rule == "*" || rule.contains('='), &mut line),
            None => line.push('*'),
        }
        for condition in &self.conditions {
            line.push(' ');
            line.push_str(&condition.column);
            line.push('=');
            match condition.quoted {
                true => write_text(&condition.value, true, &mut line),
                false => line.push_str(&condition.value),
            }
        }
        if let Some(until) = self.until {
            line.push_str(&format!(" until {}", Value::Time(until)));
        }
        f.write_str(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, cell: Value, expected: bool) {
        let condition = SuppressedIf { column: "a".into(), value: value.into(), quoted: false };
        assert_eq!(condition.holds(&cell), expected, "{value} and {cell}");
    }

    #[test]
    fn values_are_compared_as_what_the_column_holds() {
        let ip = |text: &str| Value::ip(text.parse().expect("an address"));
        check("192.0.2.1", ip("192.0.2.1"), true);
        check("192.0.2.1", ip("::ffff:192.0.2.1"), false);
        check("::ffff:192.0.2.1", ip("::ffff:192.0.2.1"), true);
        check("192.0.2.0/24", ip("192.0.2.255"), true);
        check("192.0.2.7/24", ip("192.0.3.0"), false);
        check("0.0.0.0/0", ip("255.255.255.255"), true);
        check("0.0.0.0/0", ip("2001:db8::1"), false);
        check("::/0", ip("192.0.2.1"), false);
        check("2001:DB8::/32", ip("2001:db8:ffff::1"), true);
        check("192.0.2.1/33", ip("192.0.2.1"), false);
        check("192.0.2.1/32", ip("192.0.2.1"), true);
        check("192.0.2.1", Value::Str("192.0.2.1".into()), true);
        check("80", Value::Int(80), true);
        check("080", Value::Int(80), true);
        check("x", Value::Int(80), false);
        check("absent", Value::Absent, true);
        check("absent", Value::Str("absent".into()), true);
        check("02:00:5E:10:00:01", Value::Mac(0x0200_5e10_0001), true);
        check("true", Value::Bool(true), true);
        check("2", Value::Float(2.0), true);
        check("nan", Value::Float(f64::NAN), false);
        let quoted = SuppressedIf { column: "a".into(), value: "80".into(), quoted: true };
        assert!(!quoted.holds(&Value::Int(80)) && quoted.holds(&Value::Str("80".into())));
        assert!(!quoted.holds(&Value::Absent));
    }
}
