//! The identifiers of fields.

use super::Reader;
use super::bytes::{Header, HeaderBytes};
use super::catalogue::FIELDS;
use super::field::{Field, is_same_name};
use super::records::{self, RECORD_FIELDS};
use std::borrow::Cow;

/// Above the positions of the catalogue: from here on a field is header, size and offset.
const BYTES: u32 = 1 << 31;

/// Above the positions of the catalogue: from here on a field is a place in [`RECORD_FIELDS`].
const RECORDS: u32 = 1 << 30;

/// A field: one of the catalogue, by its position in [`FIELDS`]; one that only flow records have,
/// by its place in [`RECORD_FIELDS`]; or bytes by their place ([`HeaderBytes`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FieldId(u32);

/// The catalogue entry called `name`.
pub fn by_name(name: &str) -> Option<FieldId> {
    FieldId::all().find(|id| id.info().name == name)
}

/// The field of flow records called `name`. One that packets have, too, is the same field.
pub fn record_field_by_name(name: &str) -> Option<FieldId> {
    let place = RECORD_FIELDS.iter().position(|field| field.name == name)?;
    Some(by_name(name).unwrap_or(FieldId(RECORDS | place as u32)))
}

impl FieldId {
    /// All of the catalogue.
    pub fn all() -> impl Iterator<Item = FieldId> {
        (0..FIELDS.len() as u32).map(FieldId)
    }

    /// The field that code knows by its name, for constants: a name that is not in the catalogue
    /// panics, which there is an error of the compiler.
    pub const fn named(name: &str) -> FieldId {
        let mut i = 0;
        while i < FIELDS.len() {
            if is_same_name(FIELDS[i].name.as_bytes(), name.as_bytes()) {
                return FieldId(i as u32);
            }
            i += 1;
        }
        panic!("no field of the catalogue has this name")
    }

    /// Its position in the catalogue, if it is in there.
    pub fn position(self) -> Option<usize> {
        (self.0 < RECORDS).then_some(self.0 as usize)
    }

    /// Its place in [`RECORD_FIELDS`], if only flow records have it.
    fn record_place(self) -> Option<usize> {
        (self.0 & (BYTES | RECORDS) == RECORDS).then_some((self.0 & !RECORDS) as usize)
    }

    /// The reader of the field in frames that are flow records, if they can have it.
    pub(crate) fn record_reader(self) -> Option<Reader> {
        let place = self.record_place().or_else(|| records::shared(self.position()?))?;
        Some(records::reader_at(place))
    }

    /// Whether only flow records have it.
    pub fn is_of_records(self) -> bool {
        self.record_place().is_some()
    }

    /// Its description in the catalogue. Bytes by their place have no name of their own there.
    pub fn info(self) -> &'static Field {
        match (self.bytes(), self.record_place()) {
            (Some(bytes), _) => bytes.info(),
            (None, Some(place)) => &RECORD_FIELDS[place],
            (None, None) => &FIELDS[self.0 as usize],
        }
    }

    /// How queries write it.
    pub fn name(self) -> Cow<'static, str> {
        match self.bytes() {
            Some(bytes) => bytes.to_string().into(),
            None => self.info().name.into(),
        }
    }

    /// The field that is these bytes.
    pub fn of_bytes(bytes: HeaderBytes) -> FieldId {
        let (header, size) = (bytes.header as u32, u32::from(bytes.size));
        FieldId(BYTES | header << 24 | size << 16 | u32::from(bytes.offset))
    }

    /// The bytes that the field is, if it is not of the catalogue.
    pub fn bytes(self) -> Option<HeaderBytes> {
        (self.0 & BYTES != 0).then(|| {
            let (_, header) = Header::ALL[(self.0 >> 24 & 0x7f) as usize];
            HeaderBytes { header, offset: self.0 as u16, size: (self.0 >> 16) as u8 }
        })
    }
}
