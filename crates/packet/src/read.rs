//! Field readers: one field, for the wanted rows of a batch, into a column.
//!
//! The field is chosen once per batch; then one loop runs over the rows. A loop loads from where
//! [`crate::walk::classify`] says the layer is. Headers that the walk found whole are read without
//! asking again; of a header that is cut or malformed each field is read for which there are bytes
//! inside the captured part of the packet.

mod field;
mod plain;
mod repeated;
mod transport;

pub use field::{read_field, read_field_text};
pub use plain::{Family, HEADERS, Place, Plain};
#[cfg(any(test, fuzzing))]
pub use repeated::fuzz_parts;
pub use repeated::read_parts;
pub use transport::{Transport, Transports};
