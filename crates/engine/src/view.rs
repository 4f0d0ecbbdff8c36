//! A batch of packets with its fields decoded on demand.
//!
//! All pipelines of a worker look at the same view, so a field that several ask for is decoded
//! once, and only for the rows that somebody asked for.

use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_packet::read::{Family, Plain, read, read_text};
use weir_packet::source::FrameBatch;
use weir_packet::walk::Layers;

/// The fields of the batch at hand that were decoded so far.
#[derive(Debug)]
pub struct View {
    fields: Vec<Decoded>,
}

#[derive(Debug)]
struct Decoded {
    id: FieldId,
    column: Column,
    /// Rows of this batch that the column is valid for.
    rows: Bits,
}

impl View {
    /// A view that will decode these fields; operators name them by position.
    pub fn new(fields: &[FieldId]) -> View {
        let decoded = |&id: &FieldId| {
            let column = Column::new(id.info().ty.repr());
            Decoded { id, column, rows: Bits::NONE }
        };
        View { fields: fields.iter().map(decoded).collect() }
    }

    /// Forgets decoded fields: another batch is at hand.
    pub fn next_batch(&mut self) {
        self.fields.iter_mut().for_each(|f| f.rows = Bits::NONE);
    }

    /// The packets of the batch at hand as operators see them; `layers` is what
    /// [`weir_packet::walk::classify`] said of `frames`.
    pub fn packets<'a>(&'a mut self, frames: &'a FrameBatch, layers: &'a Layers) -> Packets<'a> {
        Packets { frames, layers, fields: &mut self.fields }
    }
}

/// The packets as operators see them.
pub struct Packets<'a> {
    frames: &'a FrameBatch,
    layers: &'a Layers,
    fields: &'a mut [Decoded],
}

impl Packets<'_> {
    /// Makes field number `i` valid for `rows`.
    #[inline]
    pub fn ensure(&mut self, i: usize, rows: Bits) {
        let f = &mut self.fields[i];
        let need = rows.minus(f.rows);
        if !need.is_empty() {
            read(f.id.info().item, self.frames, self.layers, need, &mut f.column);
            f.rows = f.rows.or(need);
        }
    }

    /// Decodes a text field for `rows` into a column: `put` takes each text and gives the word that
    /// the column holds for it. Where texts stand is the caller's affair, so each decodes its own.
    pub fn texts(
        &self,
        id: FieldId,
        rows: Bits,
        column: &mut Column,
        put: impl FnMut(&[u8]) -> u64,
    ) {
        read_text(id.info().item, self.frames, self.layers, rows, column, put);
    }

    /// The packets of a family whose headers stand at fixed places.
    #[inline]
    pub fn plain(&self, family: Family) -> Plain<'_> {
        Plain::new(self.frames, self.layers, family)
    }

    /// The column of field number `i`; only rows that were ensured mean anything.
    #[inline]
    pub fn column(&self, i: usize) -> &Column {
        &self.fields[i].column
    }
}
