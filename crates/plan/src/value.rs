//! Values: constants in a plan, and the cells of rows that leave the engine.

use crate::types::Type;
use std::cmp::Ordering;
use std::fmt;
use std::net::IpAddr;
use weir_base::address::{address, number};

/// A value of any type, or none. The order of two values of one type is the order that rows are
/// sorted by. Absent sorts before any value. Floats compare as numbers, so -0.0 equals 0.0;
/// there is no NaN in a query, and where one comes from elsewhere, it has a place by its bits.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value.
    Absent,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// Text.
    Str(Box<str>),
    /// Bytes.
    Bytes(Box<[u8]>),
    /// An address as its [number](weir_base::address).
    Ip(u128),
    /// A link address in the low 48 bits, first byte highest.
    Mac(u64),
    /// An address prefix: the network address as in [`Value::Ip`], and the prefix length counted
    /// in 128 bits (a /8 of IPv4 has length 104).
    Net(u128, u8),
    /// Nanoseconds since 1970, UTC.
    Time(i64),
    /// Nanoseconds.
    Duration(i64),
    /// Several values.
    Tuple(Vec<Value>),
}

impl Value {
    /// An IPv4 or IPv6 address.
    pub fn ip(addr: IpAddr) -> Value {
        Value::Ip(number(addr))
    }

    /// The address that 128 bits stand for.
    pub fn to_ip(bits: u128) -> IpAddr {
        address(bits)
    }

    /// The bits of a float as columns, keys, sets and sketches hold it. 0 has no sign there, since
    /// all of them compare bits, and -0.0 equals 0.0.
    #[inline(always)]
    pub fn float_bits(f: f64) -> u64 {
        (f + 0.0).to_bits()
    }

    /// The type, or `None` for an absent value.
    pub fn ty(&self) -> Option<Type> {
        Some(match self {
            Value::Absent => return None,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Float(_) => Type::Float,
            Value::Str(_) => Type::Str,
            Value::Bytes(_) => Type::Bytes,
            Value::Ip(_) => Type::Ip,
            Value::Mac(_) => Type::Mac,
            Value::Net(..) => Type::Net,
            Value::Time(_) => Type::Time,
            Value::Duration(_) => Type::Duration,
            Value::Tuple(parts) => Type::Tuple(parts.iter().map(Value::ty).collect::<Option<_>>()?),
        })
    }

    /// Whether there is a value.
    pub fn exists(&self) -> bool {
        !matches!(self, Value::Absent)
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Absent => 0,
            Value::Bool(_) => 1,
            Value::Int(_) => 2,
            Value::Float(_) => 3,
            Value::Str(_) => 4,
            Value::Bytes(_) => 5,
            Value::Ip(_) => 6,
            Value::Mac(_) => 7,
            Value::Net(..) => 8,
            Value::Time(_) => 9,
            Value::Duration(_) => 10,
            Value::Tuple(_) => 11,
        }
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b))
            | (Value::Time(a), Value::Time(b))
            | (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
            (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).unwrap_or(a.total_cmp(b)),
            (Value::Str(a), Value::Str(b)) => a.cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (Value::Ip(a), Value::Ip(b)) => a.cmp(b),
            (Value::Mac(a), Value::Mac(b)) => a.cmp(b),
            (Value::Net(a, m), Value::Net(b, n)) => (a, m).cmp(&(b, n)),
            (Value::Tuple(a), Value::Tuple(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Value {}

/// Writes a value the way a query would write it: `10.0.0.0/8`, `1.5s`, `"text"`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Absent => f.write_str("absent"),
            Value::Bool(v) => write!(f, "{v}"),
            Value::Int(v) => write!(f, "{v}"),
            Value::Float(v) => write!(f, "{v:?}"),
            Value::Str(v) => write!(f, "{:?}", v),
            Value::Bytes(v) => {
                f.write_str("0x")?;
                v.iter().try_for_each(|b| write!(f, "{b:02x}"))
            }
            Value::Ip(v) => write!(f, "{}", Value::to_ip(*v)),
            Value::Mac(v) => {
                let b = v.to_be_bytes();
                write!(
                    f,
                    "{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}",
                    b[2], b[3], b[4], b[5], b[6], b[7]
                )
            }
            Value::Net(v, len) => match Value::to_ip(*v) {
                IpAddr::V4(a) if *len >= 96 => write!(f, "{a}/{}", len - 96),
                IpAddr::V4(a) => write!(f, "{}/{len}", a.to_ipv6_mapped()),
                IpAddr::V6(a) => write!(f, "{a}/{len}"),
            },
            Value::Time(v) => f.write_str(&weir_packet::time::rfc3339(*v)),
            Value::Duration(v) => f.write_str(&weir_packet::time::duration(*v)),
            Value::Tuple(parts) => {
                f.write_str("(")?;
                for (i, p) in parts.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{p}")?;
                }
                f.write_str(")")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_as_a_query_writes() {
        let ip = |s: &str| Value::ip(s.parse().expect("an address"));
        let Value::Ip(ten) = ip("10.0.0.0") else { unreachable!() };
        let shown: Vec<String> = [
            ip("10.1.2.3"),
            ip("2001:db8::1"),
            Value::Net(ten, 104),
            Value::Mac(0x0200_5e10_0001),
            Value::Duration(1_500_000_000),
            Value::Time(0),
            Value::Float(2.0),
            Value::Tuple(vec![Value::Int(1), Value::Str("a".into())]),
        ]
        .iter()
        .map(Value::to_string)
        .collect();
        assert_eq!(
            shown,
            [
                "10.1.2.3",
                "2001:db8::1",
                "10.0.0.0/8",
                "02:00:5e:10:00:01",
                "1500ms",
                "1970-01-01T00:00:00Z",
                "2.0",
                "(1, \"a\")"
            ]
        );
    }

    #[test]
    fn zero_has_no_sign() {
        let edges = [f64::NEG_INFINITY, -1.0, -5e-324, 0.0, 5e-324, 1.0, f64::INFINITY, f64::NAN];
        for (i, a) in edges.into_iter().enumerate() {
            for (j, b) in edges.into_iter().enumerate() {
                assert_eq!(Value::Float(a).cmp(&Value::Float(b)), i.cmp(&j), "{a} {b}");
            }
        }
        assert_eq!(Value::Float(-0.0), Value::Float(0.0));
        assert!(Value::Float(-0.0) > Value::Float(-5e-324));
        assert_eq!(Value::float_bits(-0.0), 0);
        assert_eq!(Value::float_bits(-5e-324), (-5e-324f64).to_bits());
    }

    #[test]
    fn absent_sorts_first() {
        let mut v = vec![Value::Int(3), Value::Absent, Value::Int(-1)];
        v.sort();
        assert_eq!(v, [Value::Absent, Value::Int(-1), Value::Int(3)]);
    }
}
