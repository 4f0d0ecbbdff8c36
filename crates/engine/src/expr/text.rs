//! Texts and bytes that functions make, and what is read from them.
//!
//! A part of a text is a handle into the same bytes; only what is new is written.

use super::domain::registered;
use super::short;
use super::{Ctx, Parse, Src, TextFn, Val};
use crate::rows::{Arena, Memo, cell};
use std::net::IpAddr;
use std::ops::Range;
use weir_packet::bits::Bits;
use weir_plan::limits::TEXT_MAX;
use weir_plan::{Type, Value};

impl Ctx<'_> {
    /// Makes a text for each row that has all arguments.
    pub(super) fn text(&mut self, f: &TextFn, args: &[(Val, Type)], out: usize, rows: Bits) -> Src {
        let mut there = rows;
        for (a, _) in args {
            let src = self.value(a, rows);
            there = there.and(self.column(src).present);
        }
        let mut col = self.take(out);
        let (mut present, mut bad) = (Bits::NONE, Bits::NONE);
        for i in there.iter() {
            let handle = match f {
                TextFn::Trim | TextFn::Slice | TextFn::Split | TextFn::Extract(_) => {
                    let whole = self.word(args, 0, i);
                    self.part(f, args, i).map(|part| self.regs.part(whole, part))
                }
                TextFn::RegisteredDomain => {
                    let whole = self.word(args, 0, i);
                    let part = registered(self.bytes(args, 0, i));
                    part.map(|part| self.regs.lower_part(whole, part))
                }
                _ => {
                    let made = self.made(f, args, i);
                    match made.len() > TEXT_MAX {
                        true => {
                            bad.set(i);
                            Some(0)
                        }
                        false => Some(self.regs.arena.put(&made)),
                    }
                }
            };
            if let Some(handle) = handle {
                present.set(i);
                col.word_mut()[i] = handle;
            }
        }
        self.put_checked(out, col, present, bad)
    }

    fn word(&self, args: &[(Val, Type)], k: usize, i: usize) -> u64 {
        self.column(args[k].0.out()).word()[i]
    }

    fn bytes(&self, args: &[(Val, Type)], k: usize, i: usize) -> &[u8] {
        self.regs.arena.get(self.word(args, k, i))
    }

    fn str(&self, args: &[(Val, Type)], k: usize, i: usize) -> &str {
        std::str::from_utf8(self.bytes(args, k, i)).unwrap_or("")
    }

    /// Which part of its first argument a function gives.
    fn part(&self, f: &TextFn, args: &[(Val, Type)], i: usize) -> Option<Range<usize>> {
        let int = |k: usize| self.word(args, k, i) as i64;
        match f {
            TextFn::Slice if args[0].1 == Type::Bytes => {
                Some(slice(self.bytes(args, 0, i).len(), int(1), int(2)))
            }
            TextFn::Slice => {
                let s = self.str(args, 0, i);
                let Range { mut start, mut end } = slice(s.len(), int(1), int(2));
                while !s.is_char_boundary(start) {
                    start += 1;
                }
                while !s.is_char_boundary(end) {
                    end -= 1;
                }
                Some(start..end.max(start))
            }
            TextFn::Trim => {
                let s = self.str(args, 0, i);
                let start = s.len() - s.trim_start().len();
                Some(start..start + s.trim().len())
            }
            TextFn::Split => split(self.str(args, 0, i), self.str(args, 1, i), int(2)),
            TextFn::Extract(regex) => {
                let found = regex.captures(self.str(args, 0, i))?;
                let group = if regex.captures_len() > 1 { found.get(1) } else { found.get(0) };
                group.map(|group| group.range())
            }
            _ => unreachable!("text() asks only for parts"),
        }
    }

    /// A new text.
    fn made(&self, f: &TextFn, args: &[(Val, Type)], i: usize) -> Vec<u8> {
        match f {
            TextFn::Lower => self.str(args, 0, i).to_lowercase().into(),
            TextFn::Upper => self.str(args, 0, i).to_uppercase().into(),
            TextFn::Concat => [self.bytes(args, 0, i), self.bytes(args, 1, i)].concat(),
            TextFn::Replace => match self.str(args, 1, i) {
                "" => self.bytes(args, 0, i).into(),
                from => self.str(args, 0, i).replace(from, self.str(args, 2, i)).into(),
            },
            TextFn::Hex if args[0].1 == Type::Int => format!("{:x}", self.word(args, 0, i)).into(),
            TextFn::Hex => self.bytes(args, 0, i).iter().flat_map(|b| digits(*b)).collect(),
            TextFn::Decode => String::from_utf8_lossy(self.bytes(args, 0, i)).into_owned().into(),
            TextFn::Show | TextFn::Short => {
                let (column, ty) = (self.column(args[0].0.out()), &args[0].1);
                let is_short = matches!(f, TextFn::Short);
                match cell(column, i, ty, &self.regs.arena) {
                    Value::Str(s) => s.into_string().into(),
                    Value::Float(x) if is_short => short::float(x).into(),
                    Value::Duration(ns) if is_short => short::duration(ns).into(),
                    v => v.to_string().into(),
                }
            }
            _ => unreachable!("text() asks for parts elsewhere"),
        }
    }

    /// Reads texts; those seen last are known.
    pub(super) fn parse(&mut self, f: Parse, a: &Val, out: usize, rows: Bits) -> Src {
        let a = self.value(a, rows);
        let mut col = self.take(out);
        col.present = Bits::NONE;
        let (from, arena, mut memo) = (self.column(a), &self.regs.arena, Memo::new());
        for i in from.present.and(rows).iter() {
            let handle = from.word()[i];
            if let Some(raw) = memo.get(handle, || parse(f, arena.get(handle))) {
                col.set_raw(i, raw);
            }
        }
        let present = col.present;
        self.put_checked(out, col, present, Bits::NONE)
    }
}

impl super::Regs {
    /// The handle of a part of a text. Constants keep handles of their own: of those a part is
    /// copied.
    fn part(&mut self, handle: u64, part: Range<usize>) -> u64 {
        match self.is_constant(handle) {
            true => {
                let copy = self.arena.get(handle)[part].to_vec();
                self.arena.put(&copy)
            }
            false => Arena::part(handle, part),
        }
    }

    /// The handle of a part of a text in lower case: a copy, unless it is that already.
    fn lower_part(&mut self, handle: u64, part: Range<usize>) -> u64 {
        let bytes = &self.arena.get(handle)[part.clone()];
        match bytes.iter().any(u8::is_ascii_uppercase) {
            true => {
                let lower = bytes.to_ascii_lowercase();
                self.arena.put(&lower)
            }
            false => self.part(handle, part),
        }
    }
}

/// The value that a text says, as columns store it.
fn parse(f: Parse, bytes: &[u8]) -> Option<u128> {
    if f == Parse::Entropy {
        return Some(entropy(bytes).to_bits().into());
    }
    let text = std::str::from_utf8(bytes).ok()?;
    match f {
        Parse::Int => text.parse::<i64>().ok().map(|n| n as u64 as u128),
        Parse::Float => {
            let x = text.parse::<f64>().ok().filter(|x| x.is_finite())?;
            Some(Value::float_bits(x).into())
        }
        Parse::Ip => match Value::ip(text.parse::<IpAddr>().ok()?) {
            Value::Ip(bits) => Some(bits),
            other => unreachable!("{other} is no address"),
        },
        Parse::Entropy => unreachable!("it is of bytes"),
    }
}

/// Shannon's entropy of bytes: for each different one its share of all times the logarithm of the
/// whole over its part, added from the rarest to the most frequent.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    bytes.iter().for_each(|b| counts[usize::from(*b)] += 1);
    let mut seen = 0;
    for i in 0..counts.len() {
        if counts[i] > 0 {
            counts.swap(i, seen);
            seen += 1;
        }
    }
    counts[..seen].sort_unstable();
    let n = bytes.len() as f64;
    counts[..seen].iter().fold(0.0, |sum, &c| {
        let c = f64::from(c);
        sum + c / n * (n / c).log2()
    })
}

/// The bytes from `start` on, of so many; counted from the end where it is negative.
fn slice(len: usize, start: i64, length: i64) -> Range<usize> {
    let whole = len as i128;
    let start = if start < 0 { whole + start as i128 } else { start.into() };
    let end = start + i128::from(length.max(0));
    let start = start.clamp(0, whole);
    start as usize..end.clamp(start, whole) as usize
}

/// Where part number `n` of a text is.
fn split(s: &str, by: &str, n: i64) -> Option<Range<usize>> {
    if by.is_empty() {
        return matches!(n, 0 | -1).then_some(0..s.len());
    }
    let parts = || s.split(by);
    let n = match usize::try_from(n) {
        Ok(n) => n,
        Err(_) => parts().count().checked_sub(usize::try_from(n.unsigned_abs()).ok()?)?,
    };
    let part = parts().nth(n)?;
    let start = part.as_ptr() as usize - s.as_ptr() as usize;
    Some(start..start + part.len())
}

/// The two hexadecimal digits of a byte.
fn digits(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_stay_within() {
        for (len, start, length, expected) in [
            (5, 0, 2, 0..2),
            (5, 3, 9, 3..5),
            (5, -2, 1, 3..4),
            (5, -9, 5, 0..1),
            (5, 7, 1, 5..5),
            (5, 1, -1, 1..1),
            (5, i64::MAX, i64::MAX, 5..5),
            (5, i64::MIN, i64::MAX, 0..4),
            (0, 0, 1, 0..0),
        ] {
            assert_eq!(slice(len, start, length), expected, "{start} {length}");
        }
    }

    #[test]
    fn parts_are_counted_from_both_ends() {
        let part = |s: &str, by: &str, n| split(s, by, n).map(|r| s[r].to_owned());
        assert_eq!(part("a.bc.d", ".", 1).as_deref(), Some("bc"));
        assert_eq!(part("a.bc.d", ".", -1).as_deref(), Some("d"));
        assert_eq!(part("a.bc.d", ".", -3).as_deref(), Some("a"));
        assert_eq!(part("a.bc.d", ".", 3), None);
        assert_eq!(part("a.bc.d", ".", -4), None);
        assert_eq!(part("a.bc.d", ".", i64::MIN), None);
        assert_eq!(part("abc", "", 0).as_deref(), Some("abc"));
        assert_eq!(part("", ".", 0).as_deref(), Some(""));
    }

    #[test]
    fn texts_are_read() {
        assert_eq!(parse(Parse::Int, b"-5"), Some(-5i64 as u64 as u128));
        assert_eq!(parse(Parse::Int, b"5.0"), None);
        assert_eq!(parse(Parse::Float, b"inf"), None);
        assert_eq!(parse(Parse::Ip, b"10.0.0.1"), Some(0xffff_0a00_0001));
        assert_eq!(parse(Parse::Ip, b"10.0.0.1 "), None);
    }
}
