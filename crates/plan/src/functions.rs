//! The functions of the language, built in and registered.

mod builtins;
mod func;
pub(crate) mod parameter;
mod registered;

pub use builtins::{BUILTINS, Builtin, by_name};
pub use func::{Func, Math, Part, Rounding, Secret};
pub use parameter::{Gives, Parameter, Relation, Role};
pub use registered::{AggSignature, ScalarSignature, Signatures};
