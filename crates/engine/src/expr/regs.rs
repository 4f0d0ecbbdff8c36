//! The registers that the operators of a chain share.

use crate::rows::{Arena, set_cell};
use std::collections::BTreeMap;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_plan::{Type, Value};

/// Where a column stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Src {
    /// A decoded field of the view, by position.
    Field(usize),
    /// A text field of the chain, by position: its texts are in the chain's arena.
    Text(usize),
    /// A register of the chain.
    Slot(usize),
}

/// The registers of a chain: columns that its operators share, and the strings in them.
#[derive(Debug, Default)]
pub(crate) struct Regs {
    /// The columns.
    pub columns: Vec<Column>,
    /// Bytes of all strings; constants come first and stay.
    pub arena: Arena,
    /// Bytes of the constants.
    pub constants_len: usize,
    /// The handles of the constants by their texts. Different ones are of different texts.
    constants: BTreeMap<Box<[u8]>, u64>,
    /// The text fields that the chain reads.
    pub(super) texts: Vec<TextField>,
}

/// A text field of packets, decoded on demand.
#[derive(Debug)]
pub(super) struct TextField {
    pub(super) id: FieldId,
    pub(super) column: Column,
    /// Rows of this batch that the column is valid for.
    pub(super) rows: Bits,
}

impl Regs {
    /// A constant as columns store it; `None` is absent. Its text, if it is one, is kept.
    pub(crate) fn constant(&mut self, v: &Value, ty: &Type) -> Option<u128> {
        let text = match v {
            Value::Str(s) => s.as_bytes(),
            Value::Bytes(b) => b,
            _ => {
                let mut column = Column::new(ty.repr());
                set_cell(&mut column, 0, v, &mut self.arena);
                return v.exists().then(|| column.raw(0));
            }
        };
        if let Some(handle) = self.constants.get(text) {
            return Some((*handle).into());
        }
        let handle = self.arena.put(text);
        self.constants.insert(text.into(), handle);
        self.constants_len = self.arena.len();
        Some(handle.into())
    }

    /// The position of a text field.
    pub(super) fn text_field(&mut self, id: FieldId) -> usize {
        self.texts.iter().position(|f| f.id == id).unwrap_or_else(|| {
            let column = Column::new(id.info().ty.repr());
            self.texts.push(TextField { id, column, rows: Bits::NONE });
            self.texts.len() - 1
        })
    }

    /// Whether a handle is of a constant.
    #[inline(always)]
    pub(super) fn is_constant(&self, handle: u64) -> bool {
        Arena::start_of(handle) < self.constants_len
    }

    /// Forgets the strings of the last batch.
    pub(crate) fn next_batch(&mut self) {
        self.arena.truncate(self.constants_len);
        self.texts.iter_mut().for_each(|f| f.rows = Bits::NONE);
    }
}
