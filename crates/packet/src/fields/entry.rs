//! One row of the catalogue: what it says of a field, and what reads the field.

use super::field::{Field, FieldType};
use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;

/// A field with its reader.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) field: Field,
    pub(super) reader: Reader,
}

/// The function that reads a field of the wanted rows of a batch.
#[derive(Clone, Copy)]
pub(crate) enum Reader {
    /// Writes the values into a column.
    Column(fn(&Rows<'_>, &mut Column)),
    /// Gives the rows for which the field is true; for all others it is false.
    Whether(fn(&Rows<'_>) -> Bits),
    /// A function of [`crate::read::read_field_text`], which is compiled anew for each place that
    /// texts are put into, so that no loop over rows calls through a pointer.
    Text,
}

/// A bool that every packet has.
pub(super) const fn whether(
    name: &'static str,
    doc: &'static str,
    read: fn(&Rows<'_>) -> Bits,
) -> Entry {
    entry(name, FieldType::Bool, 0, doc, Reader::Whether(read)).always()
}

/// A bool.
pub(super) const fn flag(
    name: &'static str,
    doc: &'static str,
    read: fn(&Rows<'_>, &mut Column),
) -> Entry {
    entry(name, FieldType::Bool, 0, doc, Reader::Column(read))
}

/// An integer of so many bits, 64 if it may be negative.
pub(super) const fn int(
    name: &'static str,
    bits: u8,
    doc: &'static str,
    read: fn(&Rows<'_>, &mut Column),
) -> Entry {
    entry(name, FieldType::Int, bits, doc, Reader::Column(read))
}

/// A point in time.
pub(super) const fn time(
    name: &'static str,
    doc: &'static str,
    read: fn(&Rows<'_>, &mut Column),
) -> Entry {
    entry(name, FieldType::Time, 0, doc, Reader::Column(read))
}

/// An IPv4 or IPv6 address.
pub(super) const fn ip(
    name: &'static str,
    doc: &'static str,
    read: fn(&Rows<'_>, &mut Column),
) -> Entry {
    entry(name, FieldType::Ip, 0, doc, Reader::Column(read))
}

/// A link address.
pub(super) const fn mac(
    name: &'static str,
    doc: &'static str,
    read: fn(&Rows<'_>, &mut Column),
) -> Entry {
    entry(name, FieldType::Mac, 0, doc, Reader::Column(read))
}

/// A text, which has a line in [`crate::read::read_field_text`].
pub(super) const fn string(name: &'static str, doc: &'static str) -> Entry {
    entry(name, FieldType::Str, 0, doc, Reader::Text)
}

/// Bytes, which have a line in [`crate::read::read_field_text`].
pub(super) const fn bytes(name: &'static str, doc: &'static str) -> Entry {
    entry(name, FieldType::Bytes, 0, doc, Reader::Text)
}

const fn entry(
    name: &'static str,
    ty: FieldType,
    bits: u8,
    doc: &'static str,
    reader: Reader,
) -> Entry {
    Entry { field: Field { name, ty, bits, always: false, doc }, reader }
}

impl Entry {
    /// The same field, which every packet has.
    pub(super) const fn always(mut self) -> Entry {
        self.field.always = true;
        self
    }
}
