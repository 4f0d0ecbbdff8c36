//! Keys of groups: packed into few words, unpacked into columns, compared in order.
//!
//! A part that may be absent has one more bit. Addresses are packed in 32 bits as long as all
//! addresses of a key are IPv4, which makes a 5-tuple two words; other keys take 128 bits per
//! address. The two kinds of key live in two tables, so a key has one packed form.

mod bytes;
mod direct;
mod layout;
mod pack;
mod part;
mod pool;
mod saved;

pub(crate) use bytes::{is_narrow, read_parts, read_text, write_text};
pub(crate) use direct::Direct;
pub(crate) use layout::{Layout, key_words};
pub(crate) use layout::{MAPPED, PACKED_WORDS_MAX};
pub(crate) use pack::{Chosen, narrow_rows, pack};
pub(crate) use pack::{choose, rows_at};
pub(crate) use part::KeyPart;
pub(crate) use pool::Pool;
pub(crate) use saved::pass_keys;
