//! The field of LLDP.

use super::entry::{Entry, whether};
use super::ethernet::with_type;
use crate::ethernet::LLDP;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[whether(
    "lldp",
    "Whether the frame is of LLDP, by its EtherType 0x88cc (IEEE 802.1AB).",
    |rows| with_type(rows, LLDP),
)];
