//! Plans as text: what `weir explain` prints.
//!
//! Expressions and stages read as a query would write them, so that an explanation can be compared
//! with the query it came from; what the query left to defaults is spelled out.

mod alert;
mod ends;
mod explain;
mod expr;
mod levels;
mod metric;
mod placed;
mod rows;
mod stage;
mod text;

pub use explain::{explain, explain_with_kernel};
pub use expr::expr;
pub use levels::levels;
pub use stage::{columns, stage};

use stage::state;
use text::{line, list};
