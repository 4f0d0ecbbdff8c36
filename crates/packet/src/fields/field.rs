//! The catalogue's description of a field.

use crate::column::Repr;

/// The type of a field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FieldType {
    /// True or false.
    Bool,
    /// A 64-bit signed integer.
    Int,
    /// Nanoseconds since 1970.
    Time,
    /// An IPv4 or IPv6 address.
    Ip,
    /// A 48-bit link address.
    Mac,
    /// A text of at most [`crate::limits::TEXT_MAX`] bytes.
    Str,
    /// At most so many bytes as they are.
    Bytes,
}

impl FieldType {
    /// How columns store it.
    pub fn repr(self) -> Repr {
        match self {
            FieldType::Bool => Repr::Bit,
            FieldType::Ip => Repr::Pair,
            _ => Repr::Word,
        }
    }

    /// Whether a column holds handles of what stands elsewhere: of texts and bytes.
    pub fn is_text(self) -> bool {
        matches!(self, FieldType::Str | FieldType::Bytes)
    }
}

/// One line of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name in queries and in output, such as `tcp.dport`.
    pub name: &'static str,
    /// Its type.
    pub ty: FieldType,
    /// Width in bits of the largest value, for integers, and 64 if they may be negative; 0
    /// otherwise.
    pub bits: u8,
    /// Whether every packet has it.
    pub always: bool,
    /// One sentence: meaning, unit, when absent, source.
    pub doc: &'static str,
}

/// Whether two names are the same, in constants too.
pub(super) const fn is_same_name(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
