//! Constant sets on the right of `in`.

use super::Class;
use weir_plan::{Member, Value, address};

/// Ranges that are all compared with a value sooner than the right one is found by halving.
const FEW: usize = 8;

/// Disjoint, ascending ranges of ordered numbers, both ends included.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranges {
    words: Vec<(u64, u64)>,
    pairs: Vec<(u128, u128)>,
    /// Of the pairs what is IPv4: the first and how many more.
    four: Vec<(u32, u32)>,
}

impl Ranges {
    /// The members as ranges; they have the type that `class` stands for.
    pub(crate) fn new(class: Class, members: &[Member]) -> Ranges {
        let raw = |v: &Value| match v {
            Value::Int(n) | Value::Time(n) | Value::Duration(n) => class.ordered(*n as u64) as u128,
            Value::Float(f) => class.ordered(Value::float_bits(*f)) as u128,
            Value::Mac(m) => *m as u128,
            Value::Ip(a) => *a,
            Value::Bool(b) => *b as u128,
            other => unreachable!("{other} in a set of words"),
        };
        let mut all: Vec<(u128, u128)> = members
            .iter()
            .flat_map(|m| match m {
                Member::Value(Value::Absent) => Vec::new(),
                Member::Value(v) => vec![(raw(v), raw(v))],
                Member::Range(a, b) => vec![(raw(a), raw(b))],
                Member::Net(Value::Net(a, len)) => address::ranges((*a, *len)).collect(),
                Member::Net(other) => unreachable!("{other} as a network"),
            })
            .filter(|(a, b)| a <= b)
            .collect();
        all.sort_unstable();
        let mut pairs: Vec<(u128, u128)> = Vec::new();
        for (a, b) in all {
            match pairs.last_mut() {
                Some(last) if a <= last.1.saturating_add(1) => last.1 = last.1.max(b),
                _ => pairs.push((a, b)),
            }
        }
        if class == Class::Pair {
            return Ranges::of_pairs(pairs);
        }
        let words = pairs.iter().map(|&(a, b)| (a as u64, b as u64)).collect();
        Ranges { words, pairs: Vec::new(), four: Vec::new() }
    }

    /// Ranges of pairs, disjoint and ascending.
    pub(crate) fn of_pairs(pairs: Vec<(u128, u128)>) -> Ranges {
        let (least, most) = address::IPV4;
        let four = pairs.iter().filter(|(first, last)| *first <= most && *last >= least);
        let four = four.map(|&(first, last)| {
            let first = first.max(least);
            (first as u32, (last.min(most) - first) as u32)
        });
        Ranges { words: Vec::new(), four: four.collect(), pairs }
    }

    /// The range, where there is just one of words.
    pub(crate) fn single(&self) -> Option<(u64, u64)> {
        match self.words[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Whether an ordered word is in the set.
    #[inline(always)]
    pub(crate) fn has_word(&self, n: u64) -> bool {
        let at = self.words.partition_point(|&(_, last)| last < n);
        self.words.get(at).is_some_and(|&(first, _)| first <= n)
    }

    /// Whether an IPv4 address is in the set.
    #[inline(always)]
    pub(crate) fn has_ipv4(&self, n: u32) -> bool {
        if self.four.len() <= FEW {
            let inside = |&(first, more): &(u32, u32)| n.wrapping_sub(first) <= more;
            return self.four.iter().fold(false, |any, range| any | inside(range));
        }
        let at = self.four.partition_point(|&(first, _)| first <= n);
        at.checked_sub(1).is_some_and(|at| n - self.four[at].0 <= self.four[at].1)
    }

    /// Whether a pair is in the set.
    #[inline(always)]
    pub(crate) fn has_pair(&self, n: u128) -> bool {
        if self.pairs.len() <= FEW {
            // Without a branch that depends on the address.
            let inside = |&(first, last): &(u128, u128)| n.wrapping_sub(first) <= last - first;
            return self.pairs.iter().fold(false, |any, range| any | inside(range));
        }
        let at = self.pairs.partition_point(|&(_, last)| last < n);
        self.pairs.get(at).is_some_and(|&(first, _)| first <= n)
    }
}

/// A set of texts and of ranges of texts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Strings {
    sorted: Vec<Text>,
    ranges: Vec<(Text, Text)>,
}

type Text = Box<[u8]>;

impl Strings {
    pub(crate) fn new(members: &[Member]) -> Strings {
        let bytes = |v: &Value| -> Text {
            match v {
                Value::Str(s) => s.as_bytes().into(),
                Value::Bytes(b) => b.clone(),
                other => unreachable!("{other} in a set of texts"),
            }
        };
        let mut set = Strings { sorted: Vec::new(), ranges: Vec::new() };
        for m in members {
            match m {
                Member::Value(Value::Absent) => {}
                Member::Value(v) => set.sorted.push(bytes(v)),
                Member::Range(a, b) => set.ranges.push((bytes(a), bytes(b))),
                Member::Net(other) => unreachable!("{other} in a set of texts"),
            }
        }
        set.sorted.sort_unstable();
        set
    }

    pub(crate) fn has(&self, s: &[u8]) -> bool {
        self.sorted.binary_search_by(|m| (**m).cmp(s)).is_ok()
            || self.ranges.iter().any(|(a, b)| **a <= *s && *s <= **b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_answer() {
        let int = |n| Value::Int(n);
        let set = Ranges::new(
            Class::Signed,
            &[
                Member::Value(int(80)),
                Member::Range(int(-5), int(3)),
                Member::Value(int(4)),
                Member::Range(int(9), int(2)),
            ],
        );
        assert_eq!(set.words.len(), 2);
        let has = |n: i64| set.has_word(Class::Signed.ordered(n as u64));
        assert!(has(-5) && has(4) && has(80));
        assert!(!has(-6) && !has(5) && !has(79) && !has(81));
    }

    #[test]
    fn a_network_is_a_range() {
        let Value::Ip(ten) = Value::ip("10.0.0.0".parse().expect("an address")) else {
            unreachable!()
        };
        let set = Ranges::new(Class::Pair, &[Member::Net(Value::Net(ten, 104))]);
        assert!(set.has_pair(ten) && set.has_pair(ten + 0xff_ffff) && !set.has_pair(ten - 1));
        assert!(!set.has_pair(ten + 0x100_0000));
        let (least, _) = address::IPV4;
        let everything = Ranges::new(Class::Pair, &[Member::Net(Value::Net(0, 0))]);
        assert!(everything.has_pair(0) && everything.has_pair(u128::MAX));
        // IPv4 has numbers among those of IPv6, and is no part of it.
        assert!(everything.has_pair(least - 1) && !everything.has_pair(least));
        assert!(!everything.has_pair(ten) && everything.has_pair(least + (1 << 32)));
    }

    #[test]
    fn few_ranges_and_many_answer_alike() {
        let edges = [0, 1, u128::from(u64::MAX), 1 << 64, u128::MAX - 1, u128::MAX];
        let (least, most) = address::IPV4;
        // Ranges of IPv6, of IPv4, and across the first and the last address of IPv4.
        for start in [0, least, least - 7, most - 97, most - 9] {
            for n in [0, 1, FEW, FEW + 1, 3 * FEW] {
                let range = |i: usize| {
                    let i = i as u128;
                    (start + i * 10 + 3, start + i * 10 + 5 + i % 2)
                };
                let mut pairs: Vec<_> = (0..n).map(range).collect();
                pairs.extend((n % 2 == 1).then_some((u128::MAX - 1, u128::MAX)));
                let set = Ranges::of_pairs(pairs.clone());
                for n in (start..start + 300).chain(edges).chain([least, most]) {
                    let naive = pairs.iter().any(|(first, last)| (first..=last).contains(&&n));
                    assert_eq!(set.has_pair(n), naive, "{n} in {pairs:?}");
                    if (least..=most).contains(&n) {
                        assert_eq!(set.has_ipv4(n as u32), naive, "{n} in {pairs:?}");
                    }
                }
            }
        }
        assert!(Ranges::of_pairs(vec![(0, u128::MAX)]).has_ipv4(u32::MAX));
    }

    #[test]
    fn texts_are_found() {
        let s = |t: &str| Value::Str(t.into());
        let set = Strings::new(&[
            Member::Value(s("b")),
            Member::Value(s("a")),
            Member::Range(s("x"), s("z")),
        ]);
        assert!(set.has(b"a") && set.has(b"b") && set.has(b"y"));
        assert!(!set.has(b"c") && !set.has(b"zz"));
    }
}
