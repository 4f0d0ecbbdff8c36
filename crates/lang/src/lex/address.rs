//! Addresses and networks, told from numbers and names by their shape: two colons or two dots.

use super::literal::{LiteralRead, word};
use crate::diagnostic::{Code, Diagnostic, Span};
use std::net::{IpAddr, Ipv4Addr};
use weir_plan::Value;

/// Reads the address or network that `text` starts with; `None` if it starts with neither.
pub(super) fn read(text: &str) -> Option<LiteralRead> {
    let run = run(text);
    let colons = run.bytes().filter(|b| *b == b':').count();
    let dots = run.bytes().filter(|b| *b == b'.').count();
    let dotted = || run.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if colons < 2 && !(dots >= 2 && run.starts_with(|c: char| c.is_ascii_digit()) && dotted()) {
        return None;
    }
    let mut len = run.len();
    let prefix = &text[len..];
    let has_prefix =
        prefix.starts_with('/') && prefix[1..].starts_with(|c: char| c.is_ascii_digit());
    if has_prefix && let Some(mask) = mask(&prefix[1..]) {
        return Some(with_mask(run, mask));
    }
    if has_prefix {
        len += 1 + word(&prefix[1..]);
    }
    let tail = word(&text[len..]);
    let whole = &text[..len + tail];
    let read = match parse(run) {
        _ if tail > 0 => Err(bad_address(whole)),
        Some(Value::Ip(bits)) if has_prefix => network(whole, bits, &prefix[1..len - run.len()]),
        Some(value) if !has_prefix => Ok(value),
        _ => Err(bad_address(whole)),
    };
    Some((whole.len(), read))
}

/// The hexadecimal digits, colons and single dots that `text` starts with.
fn run(text: &str) -> &str {
    let fits = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    let run = &text[..text.find(|c| !fits(c)).unwrap_or(text.len())];
    &run[..run.find("..").unwrap_or(run.len())]
}

/// The mask of a network, dotted, that `text` starts with.
fn mask(text: &str) -> Option<&str> {
    let run = run(text);
    run.parse::<Ipv4Addr>().ok().map(|_| run)
}

/// Refuses a network with a mask instead of the length of its prefix.
fn with_mask(address: &str, mask: &str) -> LiteralRead {
    let len = address.len() + 1 + mask.len();
    let message = format!("`/{mask}` is a mask; a network has the length of its prefix");
    let d = Diagnostic::new(Code::BadNetwork, Span::new(address.len(), len), message);
    let bits = mask.parse::<Ipv4Addr>().map_or(0, u32::from);
    let prefix = bits.leading_ones();
    let whole = bits.checked_shl(prefix).unwrap_or(0) == 0;
    (len, Err(if whole { d.help(format!("write `{address}/{prefix}`")) } else { d }))
}

fn parse(run: &str) -> Option<Value> {
    let parts: Vec<&str> = run.split(':').collect();
    if parts.len() == 6 && parts.iter().all(|p| p.len() == 2) {
        let byte = |bits: u64, part: &&str| Some(bits << 8 | u64::from_str_radix(part, 16).ok()?);
        return parts.iter().try_fold(0, byte).map(Value::Mac);
    }
    run.parse::<IpAddr>().ok().map(Value::ip)
}

fn network(text: &str, bits: u128, prefix: &str) -> Result<Value, Diagnostic> {
    let v4 = !text.contains(':');
    let (width, shift) = if v4 { (32, 96) } else { (128, 0) };
    let span = Span::new(text.len() - prefix.len(), text.len());
    let Some(len) = prefix.parse::<u8>().ok().filter(|n| *n <= width) else {
        let family = if v4 { "IPv4" } else { "IPv6" };
        let message = format!("the prefix length of an {family} network is 0 to {width}");
        return Err(Diagnostic::new(Code::BadNetwork, span, message));
    };
    let mask = u128::MAX.checked_shl(u32::from(width - len)).unwrap_or(0);
    let masked = if v4 { bits & (mask | u128::MAX << 32) } else { bits & mask };
    if masked == bits {
        return Ok(Value::Net(bits, len + shift));
    }
    let base = Value::to_ip(masked);
    let message = format!("`{text}` has bits set after its prefix of {len}");
    Err(Diagnostic::new(Code::BadNetwork, Span::new(0, text.len()), message).help(format!(
        "the network is `{base}/{len}`, the single address `{}`",
        text[..span.start - 1].to_ascii_lowercase()
    )))
}

fn bad_address(text: &str) -> Diagnostic {
    let d = |what: &str| {
        let message = format!("`{text}` is not {what}");
        Diagnostic::new(Code::BadAddress, Span::new(0, text.len()), message)
    };
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() == 6 && !text.contains("::") {
        return d("a MAC address").help("a MAC address is six bytes: `02:00:5e:10:00:01`");
    }
    if matches!(parts.len(), 2 | 3) && parts.iter().all(|part| matches!(part.len(), 1 | 2)) {
        return d("a time").help(
            "a time has a date, as in @2026-11-21T17:29:30Z; of its clock there is `hour(ts)`",
        );
    }
    if text.contains(':') {
        return d("an IPv6 address").help("an IPv6 address is written like `2001:db8::1`");
    }
    let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
    let mut parts: Vec<&str> = address.split('.').filter(|p| !p.is_empty()).collect();
    if parts.len() < 4 && !prefix.is_empty() && address.split('.').all(|p| p.parse::<u8>().is_ok())
    {
        parts.resize(4, "0");
        let help = format!("write all four parts: `{}/{prefix}`", parts.join("."));
        return d("an IPv4 network").help(help);
    }
    d("an IPv4 address").help("an IPv4 address has four parts of 0 to 255: `10.0.0.1`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let check = |text: &str, shown: &str| {
            let (len, value) = read(text).expect(text);
            let value = value.unwrap_or_else(|d| panic!("{text}: {d}"));
            assert_eq!((len, value.to_string().as_str()), (text.len(), shown));
        };
        check("10.0.0.1", "10.0.0.1");
        check("10.0.0.0/8", "10.0.0.0/8");
        check("0.0.0.0/0", "0.0.0.0/0");
        check("::1", "::1");
        check("::", "::");
        check("::/0", "::/0");
        check("2001:DB8::1", "2001:db8::1");
        check("2001:db8::/32", "2001:db8::/32");
        check("::ffff:10.0.0.1", "::ffff:10.0.0.1");
        check("::ffff:0:0/96", "::ffff:0.0.0.0/96");
        check("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8");
        check("02:00:5e:10:00:01", "02:00:5e:10:00:01");
    }

    #[test]
    fn faults() {
        let check = |text: &str, code: Code, help: &str| {
            let (len, value) = read(text).expect(text);
            let d = value.expect_err(text);
            assert_eq!((len, d.code), (text.len(), code), "{text}");
            assert!(d.help.unwrap_or_default().contains(help), "{text}");
        };
        check("10.0.0", Code::BadAddress, "four parts");
        check("10.0.0/8", Code::BadAddress, "`10.0.0.0/8`");
        check("10.0.0.256", Code::BadAddress, "");
        check("10.0.0.1x", Code::BadAddress, "");
        check("02:00:5e:10:00:1", Code::BadAddress, "six bytes");
        check("02:00:5e:10:00:01/8", Code::BadAddress, "");
        check("1:::2", Code::BadAddress, "2001:db8::1");
        check("10.1.2.3/8", Code::BadNetwork, "`10.0.0.0/8`, the single address `10.1.2.3`");
        check("2001:db8::1/32", Code::BadNetwork, "`2001:db8::/32`");
        check("10.0.0.0/33", Code::BadNetwork, "");
        check("::/129", Code::BadNetwork, "");
        check("10.0.0.0/8x", Code::BadNetwork, "");
    }

    #[test]
    fn not_addresses() {
        for text in
            ["1.5", "1..2", "abc", "add: int", "a.b.c", "80", "tcp.dport", "bad.face.d", "="]
        {
            assert!(read(text).is_none(), "{text}");
        }
        assert_eq!(read("1.2.3.4..1.2.3.9").map(|r| r.0), Some(7));
    }
}
