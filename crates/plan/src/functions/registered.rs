//! The functions that a program registers.

use crate::types::Type;

/// Name and types of a registered scalar function.
#[derive(Clone, PartialEq, Debug)]
pub struct ScalarSignature {
    /// Name in queries.
    pub name: String,
    /// Types of the arguments.
    pub args: Vec<Type>,
    /// Type of the result.
    pub ret: Type,
}

/// Name and types of a registered aggregate.
#[derive(Clone, PartialEq, Debug)]
pub struct AggSignature {
    /// Name in queries.
    pub name: String,
    /// Type of the argument.
    pub arg: Type,
    /// Type of the result.
    pub ret: Type,
}

/// The functions that a program registered beside the built-in ones, as the language sees them.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Signatures {
    /// Scalar functions; [`Func::User`](super::Func::User) counts in this list.
    pub scalars: Vec<ScalarSignature>,
    /// Aggregates; [`crate::AggFunc::User`] counts in this list.
    pub aggregates: Vec<AggSignature>,
}
