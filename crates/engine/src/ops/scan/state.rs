//! One state of a scan, compiled.

use crate::expr::Val;
use weir_plan::Type;

/// One state of a scan.
pub(crate) struct State {
    /// Its initial value, evaluated over a key's first row.
    pub init: Val,
    /// Its next value.
    pub update: Val,
    /// Where the update reads the value before the row.
    pub before: usize,
    /// Where the value after the row goes.
    pub after: usize,
    /// Its type.
    pub ty: Type,
}
