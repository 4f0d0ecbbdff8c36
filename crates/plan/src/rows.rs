//! Stages that choose rows and take them apart: the best of each key, the first of each key, a
//! share of all, and the parts of one row as rows.

use crate::expr::Expr;
use crate::stage::Schema;
use crate::types::Type;
use crate::value::Value;
use weir_packet::fields::by_name;
use weir_packet::repeated::{PartType, Repeated};

/// The keys of which a `top` keeps the best rows each. Rows come by key, an absent key part first,
/// then as sorted.
#[derive(Clone, PartialEq, Debug)]
pub struct Per {
    /// Key parts, one at least. An absent part is a key value of its own.
    pub keys: Vec<Expr>,
    /// Keys of one window, those that come first; rows of further keys are counted as evicted.
    pub max_keys: u64,
}

/// Keeps the first row of each key, and its first after `idle_ns` or longer without one, as
/// [`crate::Scan`] counts idle time.
#[derive(Clone, PartialEq, Debug)]
pub struct Distinct {
    /// Key parts, one at least. An absent part is a key value of its own.
    pub keys: Vec<Expr>,
    /// Whether the input's rows come in windows, each looked at by itself.
    pub windowed: bool,
    /// Idle time after which a key is forgotten; `i64::MAX` for never.
    pub idle_ns: i64,
    /// Keys held at once; beyond it a key is evicted and counted.
    pub max_keys: u64,
}

/// Keeps of packets that are copies of each other ([`weir_packet::copies`]) the first, and the
/// first that comes more than `within_ns` before or after the one that was kept last, by their
/// times. A packet is forgotten when no copy came for longer than that, as [`crate::Scan`] counts
/// idle time. One without a time is compared with none.
#[derive(Clone, PartialEq, Debug)]
pub struct Deduplicate {
    /// Fields that copies share, by which packets are spread over workers.
    pub keys: Vec<Expr>,
    /// How far apart copies may come.
    pub within_ns: i64,
    /// Packets remembered at once; beyond it the one of which no copy came for longest is evicted,
    /// and counted.
    pub max_packets: u64,
}

impl Deduplicate {
    /// The addresses of the packet: the fields that copies share whatever became of fragments, and
    /// that most stages after it have in their keys.
    pub fn fields() -> Vec<Expr> {
        ["ip.src", "ip.dst"].map(|name| Expr::field(by_name(name).expect("a field"))).to_vec()
    }

    /// Time without a copy after which a packet is forgotten.
    pub fn idle_ns(&self) -> i64 {
        self.within_ns.saturating_add(1)
    }
}

/// Keeps `take` of `of` rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// How many, one at least.
    pub take: u64,
    /// Of how many; not less.
    pub of: u64,
    /// The rule by which rows are kept.
    pub by: SampleBy,
}

/// The rule by which a sample keeps rows.
#[derive(Clone, PartialEq, Debug)]
pub enum SampleBy {
    /// The number of the packet, counted from 1: the first `take` of every `of` numbers.
    Number(Expr),
    /// The order in which rows come: the first `take` of every `of`.
    Order,
    /// A hash of these values: rows with equal ones are all kept, or none of them is.
    Key(Vec<Expr>),
}

impl Sample {
    /// The largest hash of a key whose rows are kept. A share of all 2^64 hashes, rounded down:
    /// what a smaller share keeps, a larger one keeps too.
    pub fn hash_max(&self) -> u64 {
        let share = (u128::from(self.take) << 64) / u128::from(self.of.max(1));
        share.saturating_sub(1).min(u64::MAX.into()) as u64
    }

    /// Whether the row of this number, counted from 0, is kept.
    #[inline(always)]
    pub fn keeps(&self, number: u64) -> bool {
        number % self.of.max(1) < self.take
    }
}

/// The hash of a sample's key after one more word, from 0: MurmurHash3's finalizer over the sum of
/// a constant and what the hash and the word differ in. It is part of the language: other probes,
/// and other tools, choose the same flows by it.
///
/// An absent part gives the word 0. One that has a value gives the word 1, then: an int, a time or
/// a duration its 64 bits in two's complement; a float its IEEE bits; a bool 0 or 1; a mac its 48
/// bits; an ip the high and the low 64 bits, IPv4 as `::ffff:a.b.c.d`; a string or bytes their
/// length, then the bytes, eight a word, the first highest, zeros after the last.
#[inline(always)]
pub fn hash_step(hash: u64, word: u64) -> u64 {
    let mut x = (hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

/// The words of a text, as [`hash_step`] takes them.
pub fn text_words(text: &[u8]) -> impl Iterator<Item = u64> {
    let words = text.chunks(8).map(|chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        u64::from_be_bytes(bytes)
    });
    std::iter::once(text.len() as u64).chain(words)
}

/// The hash of a whole key, as [`hash_step`] says.
pub fn hash_key(values: &[Value]) -> u64 {
    let words = |v: &Value| -> Vec<u64> {
        match v {
            Value::Absent => vec![0],
            Value::Bool(b) => vec![1, u64::from(*b)],
            Value::Int(n) | Value::Time(n) | Value::Duration(n) => vec![1, *n as u64],
            Value::Float(x) => vec![1, Value::float_bits(*x)],
            Value::Mac(bits) => vec![1, *bits],
            Value::Ip(bits) => vec![1, (bits >> 64) as u64, *bits as u64],
            Value::Str(s) => std::iter::once(1).chain(text_words(s.as_bytes())).collect(),
            Value::Bytes(b) => std::iter::once(1).chain(text_words(b)).collect(),
            Value::Net(..) | Value::Tuple(_) => unreachable!("{v} is no part of a key"),
        }
    };
    values.iter().flat_map(words).fold(0, hash_step)
}

/// Makes a row of each part of a row, with all that the row had and the part as columns. A row
/// without parts gives none. Beyond [`weir_packet::limits::EACH_MAX`] of one row, parts are left
/// out and counted as evicted.
#[derive(Clone, PartialEq, Debug)]
pub struct Each {
    /// The parts of which rows are made.
    pub what: Parts,
    /// The columns of the part: name, position in the output schema, type.
    pub columns: Vec<(String, usize, Type)>,
}

/// The parts of which an `each` makes rows.
#[derive(Clone, PartialEq, Debug)]
pub enum Parts {
    /// Parts that a packet may have several of. Rows are packets, straight from the workers' view.
    Packet(Repeated),
    /// The pieces of a text between separators: one column. An empty separator stands nowhere, so
    /// all of the text is one part; of an absent text or separator there is none.
    Split {
        /// The text.
        text: Expr,
        /// The separator.
        by: Expr,
    },
}

/// How a query words a choice of columns other than by `project`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reshaping {
    /// `project-away`: by the columns that go.
    Away,
    /// `rename`: by the columns that get another name.
    Rename,
}

impl Each {
    /// Puts its columns into a schema.
    pub fn put(&self, schema: &mut Schema) {
        for (name, _, ty) in &self.columns {
            schema.put(name, ty.clone());
        }
    }
}

impl From<PartType> for Type {
    fn from(ty: PartType) -> Type {
        match ty {
            PartType::Bool => Type::Bool,
            PartType::Int => Type::Int,
            PartType::Ip => Type::Ip,
            PartType::Str => Type::Str,
            PartType::Bytes => Type::Bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other probes and tools rely on these.
    #[test]
    fn hashes_never_change() {
        let flow = [
            Value::ip([10, 0, 0, 1].into()),
            Value::Int(1234),
            Value::ip([10, 0, 0, 2].into()),
            Value::Int(80),
            Value::Int(6),
        ];
        let hashes = [
            hash_key(&[]),
            hash_key(&[Value::Absent]),
            hash_key(&[Value::Int(0)]),
            hash_key(&[Value::Str("www.example".into())]),
            hash_key(&flow),
        ];
        let expected = [
            0,
            0x9ca0_66f1_a4ab_2eea,
            0x5b9a_6eba_30ae_dee8,
            0xddae_0dc2_7e6a_dd41,
            0xe786_1cc5_fd31_de8d,
        ];
        assert_eq!(hashes, expected, "{hashes:x?}");
    }

    #[test]
    fn a_larger_share_keeps_what_a_smaller_one_does() {
        let max = |take, of| Sample { take, of, by: SampleBy::Order }.hash_max();
        assert_eq!(max(1, 1), u64::MAX);
        assert_eq!(max(1, 2), u64::MAX / 2);
        assert!(max(1, 100) < max(1, 10));
        assert_eq!(max(1, 100), max(10, 1000));
    }

    #[test]
    fn about_the_share_that_is_asked_for() {
        let sample = Sample { take: 1, of: 10, by: SampleBy::Order };
        let kept = (0..10_000).filter(|&n| hash_key(&[Value::Int(n)]) <= sample.hash_max()).count();
        assert!((900..1100).contains(&kept), "{kept}");
    }
}
