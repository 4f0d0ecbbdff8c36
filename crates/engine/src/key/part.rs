//! The parts of a key.

use crate::expr::Class;
use weir_plan::{Expr, ExprKind, Type};

/// The shape of one part of a key, by which it is packed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct KeyPart {
    pub(super) class: Class,
    /// Bits of the largest value: an integer field's width, else the type's.
    pub(super) bits: u32,
    pub(super) nullable: bool,
}

impl KeyPart {
    /// The shape of the values of `e`.
    pub(crate) fn of(e: &Expr) -> KeyPart {
        let bits = match (&e.kind, &e.ty) {
            (_, Type::Bool) => 1,
            (_, Type::Mac) => 48,
            (_, Type::Ip) => 128,
            (ExprKind::Field(id), Type::Int) if id.info().bits < 63 => id.info().bits as u32,
            _ => 64,
        };
        KeyPart { class: Class::of(&e.ty), bits, nullable: !e.always_present() }
    }

    /// The same, of rows in which it is present.
    #[must_use]
    pub(crate) fn present(self) -> KeyPart {
        KeyPart { nullable: false, ..self }
    }

    /// The same, with a hash in place of a text.
    #[must_use]
    pub(crate) fn hashed(self) -> KeyPart {
        match self.class {
            Class::Text => KeyPart { class: Class::Unsigned, bits: 64, ..self },
            _ => self,
        }
    }

    /// The largest word that fits: what is made of a value before it is packed must not exceed it.
    pub(crate) fn largest(&self) -> u64 {
        u64::MAX >> 64u32.saturating_sub(self.bits)
    }

    /// A row number of a table.
    pub(crate) fn row_number() -> KeyPart {
        KeyPart { class: Class::Unsigned, bits: 32, nullable: false }
    }
}
