//! The ground floor: what several crates need, and none of them has to itself. It uses no other
//! crate of Weir.

#![forbid(unsafe_code)]

pub mod address;
pub mod alert;
pub mod fnv;
pub mod full;
pub mod harmless;
pub mod spool;
