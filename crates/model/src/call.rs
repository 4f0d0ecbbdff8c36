//! Functions of the naive model: one call, over values that are there.

use super::community;
use super::crypto_pan::PanKey;
use super::eval::Eval;
use super::short;
use super::value::{bytes, declared, float, of_type, text, unsigned_zero, word};
use super::zones;
use psl::Psl;
use regex::Regex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_packet::time::rfc3339;
use weir_plan::functions::{Part, Rounding};
use weir_plan::pattern::{of_bytes, of_text};
use weir_plan::{Func, Type, Value, address};

impl Eval<'_> {
    /// A function of arguments that are all evaluated.
    pub(super) fn call(&mut self, func: &Func, ty: &Type, args: &[Value]) -> Value {
        if *func == Func::Exists {
            return Value::Bool(args[0].exists());
        }
        if let Func::CommunityId { seed } = func {
            return community::id(*seed, args);
        }
        if args.contains(&Value::Absent) {
            let predicate = func.always_present(&[]) && *ty == Type::Bool;
            return if predicate { Value::Bool(false) } else { Value::Absent };
        }
        match (func, args) {
            (Func::Contains, [a, b]) => {
                let (a, b) = (bytes(a), bytes(b));
                Value::Bool((0..=a.len()).any(|i| a[i..].starts_with(b)))
            }
            (Func::StartsWith, [a, b]) => Value::Bool(bytes(a).starts_with(bytes(b))),
            (Func::EndsWith, [a, b]) => Value::Bool(bytes(a).ends_with(bytes(b))),
            (Func::Matches, [Value::Bytes(a), b]) => {
                let regex = of_bytes(text(b)).expect("the pattern was checked");
                Value::Bool(regex.is_match(a))
            }
            (Func::Matches, [a, b]) => Value::Bool(self.pattern(text(b)).is_match(text(a))),
            (Func::MinOf, [a, b]) => a.min(b).clone(),
            (Func::MaxOf, [a, b]) => a.max(b).clone(),
            (Func::Clamp, [x, low, high]) => x.max(low).min(high).clone(),
            (Func::ToInt | Func::ToFloat | Func::ToIp | Func::ToDuration | Func::ToTime, [a]) => {
                self.conversion(func, ty, a)
            }
            (Func::Bin, [_, d]) if word(d) <= 0 => self.undefined(),
            (Func::Bin, [a, d]) => {
                let (a, d) = (word(a), word(d));
                self.checked(ty, a.checked_sub(a.rem_euclid(d)))
            }
            (Func::LocalBin(_), [_, d]) if word(d) <= 0 => self.undefined(),
            (Func::LocalBin(zone), [a, d]) => {
                let (a, d) = (word(a), word(d));
                self.checked(ty, zones::bin(*zone, a, d))
            }
            (Func::LocalTime(zone), [a]) => Value::Time(zones::local(*zone, word(a))),
            (Func::Part(part), [a]) => Value::Int(part_of_time(*part, word(a))),
            (Func::IsIpv4, [Value::Ip(a)]) => Value::Bool(Value::to_ip(*a).is_ipv4()),
            (Func::IsIpv6, [Value::Ip(a)]) => Value::Bool(Value::to_ip(*a).is_ipv6()),
            (Func::IsIn(block), [Value::Ip(a)]) => Value::Bool(block.holds(*a)),
            (Func::Prefix { v4, v6 }, [Value::Ip(a)]) => Value::Ip(address::prefix(*a, *v4, *v6)),
            (Func::Lookup(table), [key]) => {
                table.0.find(key).map_or(Value::Absent, |text| Value::Str(text.into()))
            }
            (Func::Anonymize(key), [Value::Ip(a)]) => {
                Value::ip(PanKey::new(key.0).ip(Value::to_ip(*a)))
            }
            (Func::User(i), args) => declared(ty, (self.functions.scalar_at(*i).by_row)(args)),
            _ if matches!(ty, Type::Int | Type::Float | Type::Duration) => {
                self.numeric(func, ty, args)
            }
            _ => self.textual(func, args),
        }
    }

    /// A number from something else than numbers.
    fn conversion(&mut self, func: &Func, ty: &Type, a: &Value) -> Value {
        match (func, a) {
            (Func::ToFloat, Value::Duration(ns)) => Value::Float(*ns as f64 / 1e9),
            (Func::ToFloat, Value::Str(s)) => match s.parse::<f64>() {
                Ok(x) if x.is_finite() => unsigned_zero(x),
                _ => Value::Absent,
            },
            (Func::ToFloat, a) => Value::Float(word(a) as f64),
            (Func::ToInt, Value::Bool(b)) => Value::Int(*b as i64),
            (Func::ToInt, Value::Mac(m)) => Value::Int(*m as i64),
            (Func::ToInt, Value::Str(s)) => s.parse().map_or(Value::Absent, Value::Int),
            (Func::ToInt, Value::Float(f)) => self.integer(*f),
            (Func::ToIp, a) => text(a).parse::<IpAddr>().map_or(Value::Absent, Value::ip),
            (_, a) => of_type(ty, word(a) as u128),
        }
    }

    fn numeric(&mut self, func: &Func, ty: &Type, args: &[Value]) -> Value {
        match (func, args) {
            (Func::Abs, [Value::Float(f)]) => Value::Float(f.abs()),
            (Func::Abs, [a]) => self.checked(ty, word(a).checked_abs()),
            (Func::Round(Rounding::Floor), [a]) => self.integer(float(a).floor()),
            (Func::Round(Rounding::Ceil), [a]) => self.integer(float(a).ceil()),
            (Func::Round(Rounding::Nearest), [a]) => self.integer(float(a).round()),
            (Func::Math(f), [a]) => self.checked_float(f.of(float(a))),
            (Func::Pow, [a, b]) => self.checked_float(float(a).powf(float(b))),
            (Func::SeqDiff, [a, b]) => {
                let ahead = (i128::from(word(a)) - i128::from(word(b))).rem_euclid(1 << 32) as i64;
                Value::Int(if ahead < 1 << 31 { ahead } else { ahead - (1 << 32) })
            }
            (Func::SeqAdd, [a, b]) => {
                let sum = i128::from(word(a)) + i128::from(word(b));
                Value::Int(sum.rem_euclid(1 << 32) as i64)
            }
            (Func::EntropyOf, [a]) => Value::Float(entropy(bytes(a))),
            (Func::StrLen | Func::BytesLen, [a]) => Value::Int(bytes(a).len() as i64),
            _ => unreachable!("{func:?} of {} arguments", args.len()),
        }
    }

    fn textual(&mut self, func: &Func, args: &[Value]) -> Value {
        match (func, args) {
            (Func::Lower, [a]) => self.short(text(a).to_lowercase()),
            (Func::Upper, [a]) => self.short(text(a).to_uppercase()),
            (Func::Concat, [a, b]) => self.short([text(a), text(b)].concat()),
            (Func::Trim, [a]) => Value::Str(text(a).trim().into()),
            (Func::Slice, [Value::Bytes(b), start, length]) => {
                let within = places(b.len(), word(start), word(length));
                let kept = b.iter().zip(0..).filter(|(_, at)| within(*at, *at));
                Value::Bytes(kept.map(|(b, _)| *b).collect())
            }
            (Func::Slice, [a, start, length]) => {
                let within = places(text(a).len(), word(start), word(length));
                let kept = text(a).char_indices().filter(|(at, c)| {
                    let at = *at as i128;
                    within(at, at + c.len_utf8() as i128 - 1)
                });
                Value::Str(kept.map(|(_, c)| c).collect::<String>().into())
            }
            (Func::Replace, [a, from, _]) if text(from).is_empty() => self.short(text(a).into()),
            (Func::Replace, [a, from, to]) => self.short(text(a).replace(text(from), text(to))),
            (Func::Split, [a, by, n]) => {
                let parts: Vec<&str> = match text(by) {
                    "" => vec![text(a)],
                    by => text(a).split(by).collect(),
                };
                let n = word(n) as i128;
                let n = if n < 0 { n + parts.len() as i128 } else { n };
                let part = usize::try_from(n).ok().and_then(|n| parts.get(n));
                part.map_or(Value::Absent, |part| Value::Str((*part).into()))
            }
            (Func::Extract, [a, b]) => {
                let regex = self.pattern(text(b));
                let group = usize::from(regex.captures_len() > 1);
                let found = regex.captures(text(a)).and_then(|found| found.get(group));
                found.map_or(Value::Absent, |found| Value::Str(found.as_str().into()))
            }
            (Func::RegisteredDomain, [a]) => {
                registered_domain(text(a)).map_or(Value::Absent, |name| Value::Str(name.into()))
            }
            (Func::Hex, [Value::Int(n)]) => Value::Str(format!("{n:x}").into()),
            (Func::Hex, [a]) => {
                self.short(bytes(a).iter().map(|b| format!("{b:02x}")).collect::<String>())
            }
            (Func::ToBytes, [a]) => Value::Bytes(text(a).as_bytes().into()),
            (Func::ToText, [a]) => self.short(String::from_utf8_lossy(bytes(a)).into_owned()),
            (Func::Short, [Value::Float(x)]) => Value::Str(short::float(*x).into()),
            (Func::Short, [Value::Duration(ns)]) => Value::Str(short::duration(*ns).into()),
            (Func::ToStr | Func::Short, [Value::Str(s)]) => self.short(s.to_string()),
            (Func::ToStr | Func::Short, [a]) => self.short(a.to_string()),
            _ => unreachable!("{func:?} of {} arguments", args.len()),
        }
    }

    fn pattern(&mut self, pattern: &str) -> &Regex {
        self.patterns
            .entry(pattern.into())
            .or_insert_with(|| of_text(pattern).expect("the pattern was checked"))
    }

    /// A float towards zero; one outside 64 bits is undefined.
    fn integer(&mut self, f: f64) -> Value {
        let fits = f >= i64::MIN as f64 && f < -(i64::MIN as f64);
        self.checked(&Type::Int, fits.then_some(f as i64))
    }
}

/// Whether bytes from one place to another lie in the slice of a text of so many.
fn places(len: usize, start: i64, length: i64) -> impl Fn(i128, i128) -> bool {
    let start = i128::from(start) + if start < 0 { len as i128 } else { 0 };
    let end = start + i128::from(length);
    move |first, last| start <= first && last < end
}

/// Shannon's entropy of bytes, term by term from the rarest byte to the most frequent.
fn entropy(bytes: &[u8]) -> f64 {
    let mut times: BTreeMap<u8, u32> = BTreeMap::new();
    bytes.iter().for_each(|b| *times.entry(*b).or_default() += 1);
    let mut times: Vec<f64> = times.into_values().map(f64::from).collect();
    times.sort_by(f64::total_cmp);
    let all = bytes.len() as f64;
    times.iter().map(|n| n / all * (all / n).log2()).fold(0.0, |sum, bits| sum + bits)
}

/// The shortest end of a name that is longer than the longest public suffix that it ends in.
fn registered_domain(name: &str) -> Option<String> {
    let labels = labels(&name.to_ascii_lowercase())?;
    // No rule of the list has such a label.
    let plain: Vec<String> = labels.iter().map(|label| label.replace('.', "+")).collect();
    let last = |n: usize, of: &[String]| of[of.len() - n..].join(".");
    let is_suffix = |n: &usize| {
        let end = last(*n, &plain);
        psl::List.suffix(end.as_bytes()).is_some_and(|suffix| suffix.as_bytes().len() == end.len())
    };
    let suffix = (1..=labels.len()).filter(is_suffix).max()?;
    (suffix < labels.len()).then(|| last(suffix + 1, &labels))
}

/// The labels of a name, of which a dot after a backslash is part; `None` if it is no name.
fn labels(name: &str) -> Option<Vec<String>> {
    let mut labels = vec![String::new()];
    let mut escaped = false;
    for c in name.chars() {
        match c {
            '.' if !escaped => labels.push(String::new()),
            c => labels.last_mut().expect("there is one").push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    labels.pop_if(|last| last.is_empty());
    let sound = !labels.iter().any(String::is_empty);
    let digits = |label: &String| label.bytes().all(|b| b.is_ascii_digit());
    (sound && !labels.last().is_none_or(digits)).then_some(labels)
}

/// A part of a time, as its text tells.
fn part_of_time(part: Part, ns: i64) -> i64 {
    let shown = rfc3339(ns);
    let digits = |from: usize, to: usize| shown[from..to].parse().expect("digits");
    match part {
        Part::Year => digits(0, 4),
        Part::Month => digits(5, 7),
        Part::Day => digits(8, 10),
        Part::Hour => digits(11, 13),
        Part::Minute => digits(14, 16),
        Part::Second => digits(17, 19),
        // 1970-01-05 was a Monday.
        Part::Weekday => (ns.div_euclid(86_400_000_000_000) - 4).rem_euclid(7) + 1,
    }
}
