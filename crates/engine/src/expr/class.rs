//! How the words of a type compare.

use weir_plan::Type;

/// How two words of one type compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Two's complement.
    Signed,
    /// Unsigned.
    Unsigned,
    /// IEEE total order, over floats as [`weir_plan::Value::float_bits`] has them.
    Float,
    /// 128 bits unsigned.
    Pair,
    /// Bytes behind a handle.
    Text,
    /// Truth bits.
    Bit,
}

impl Class {
    pub(crate) fn of(ty: &Type) -> Class {
        match ty {
            Type::Int | Type::Time | Type::Duration => Class::Signed,
            Type::Mac => Class::Unsigned,
            Type::Float => Class::Float,
            Type::Ip => Class::Pair,
            Type::Str | Type::Bytes => Class::Text,
            Type::Bool => Class::Bit,
            Type::Net | Type::Tuple(_) => panic!("no column has the type {ty}"),
        }
    }

    /// A word as an unsigned number of the same order.
    #[inline(always)]
    pub(crate) fn ordered(self, word: u64) -> u64 {
        match self {
            Class::Signed => word ^ (1 << 63),
            Class::Float => word ^ (((word as i64 >> 63) as u64) | (1 << 63)),
            _ => word,
        }
    }

    /// The word that [`Class::ordered`] made a number of.
    #[inline(always)]
    pub(crate) fn unordered(self, n: u64) -> u64 {
        match self {
            Class::Signed => n ^ (1 << 63),
            Class::Float => n ^ (((!n as i64 >> 63) as u64) | (1 << 63)),
            _ => n,
        }
    }
}
