//! The shape of values, as it is known before there are any.

/// The known shape of the values of an expression that the kernel evaluates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueShape {
    /// Integers, times, durations, link addresses and booleans, as signed words, none of them
    /// outside these bounds.
    Word {
        /// The least.
        least: i64,
        /// The greatest.
        greatest: i64,
        /// Whether it may be absent.
        is_nullable: bool,
    },
    /// Addresses, of 128 bits.
    Address {
        /// Whether it may be absent.
        is_nullable: bool,
    },
}

impl ValueShape {
    /// Whether it may be absent.
    pub fn is_nullable(self) -> bool {
        match self {
            ValueShape::Word { is_nullable, .. } | ValueShape::Address { is_nullable } => {
                is_nullable
            }
        }
    }
}
