//! Rust functions registered as scalars and aggregates of the language.
//!
//! ```
//! use weir_plan::registered::Functions;
//! use weir_plan::{Type, Value};
//!
//! let mut functions = Functions::default();
//! functions.scalar("is_even", &[Type::Int], Type::Bool, |args| match args {
//!     [Value::Int(n)] => Value::Bool(n % 2 == 0),
//!     _ => Value::Absent,
//! });
//! assert_eq!(functions.signatures().scalars[0].name, "is_even");
//! ```

use crate::{AggSignature, ScalarSignature, Signatures, Type, Value};
use std::sync::Arc;
use weir_packet::bits::Bits;
use weir_packet::column::Column;

/// A scalar: called once per row with all arguments present. The value that it returns must have
/// the declared type or be [`Value::Absent`]; anything else counts as absent.
pub type Scalar = Arc<dyn Fn(&[Value]) -> Value + Send + Sync>;

/// The same by the batch, of arguments and a result that are no texts or bytes: called with the
/// columns and the rows in which all arguments are present. It sets those rows of the result that
/// have one, to numbers of the declared type: floats are finite, and as [`Value::float_bits`] has
/// them.
pub type ColumnScalar = Arc<dyn Fn(&[&Column], Bits, &mut Column) + Send + Sync>;

/// A scalar, in its forms.
#[derive(Clone)]
pub struct ScalarForms {
    /// Row by row.
    pub by_row: Scalar,
    /// By the batch, with the same results.
    pub by_column: Option<ColumnScalar>,
}

/// The state of a registered aggregate for one group. It must obey the laws of all aggregates: a
/// new state is an identity of `merge`, and `merge` is associative and commutative, since a group
/// may be computed in parts on several workers.
pub trait UserState: Send {
    /// Takes one value; absent values never come.
    fn update(&mut self, value: &Value);
    /// Takes in what the other state has seen.
    fn merge(&mut self, other: &dyn UserState);
    /// The result; its type must be the declared one, or absent.
    fn finish(&self) -> Value;
    /// All that the state holds, as bytes that [`UserState::decode`] reads back.
    fn encode(&self) -> Vec<u8>;
    /// Replaces the state by an encoded one; `false` if the bytes are not one.
    fn decode(&mut self, bytes: &[u8]) -> bool;
    /// For `merge`, to find the other's own type again.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// Makes a fresh state.
pub type UserAggregate = Arc<dyn Fn() -> Box<dyn UserState> + Send + Sync>;

/// Everything registered, in the order it was; the language sees the signatures.
#[derive(Clone, Default)]
pub struct Functions {
    signatures: Signatures,
    scalars: Vec<ScalarForms>,
    aggregates: Vec<UserAggregate>,
}

impl Functions {
    /// Registers a scalar function. Columns can't be tuples or nets, so arguments and result can't
    /// either: panics if they are.
    pub fn scalar(
        &mut self,
        name: &str,
        args: &[Type],
        ret: Type,
        f: impl Fn(&[Value]) -> Value + Send + Sync + 'static,
    ) {
        self.scalar_of(name, args, ret, ScalarForms { by_row: Arc::new(f), by_column: None });
    }

    /// Registers a scalar function in both of its forms. Panics as [`Functions::scalar`] does.
    pub fn scalar_of(&mut self, name: &str, args: &[Type], ret: Type, forms: ScalarForms) {
        assert!(ret.is_scalar() && args.iter().all(Type::is_scalar), "{name} takes scalars");
        self.signatures.scalars.push(ScalarSignature {
            name: name.to_owned(),
            args: args.to_vec(),
            ret,
        });
        self.scalars.push(forms);
    }

    /// Registers an aggregate of one argument. Panics if a type is a tuple or net.
    pub fn aggregate(
        &mut self,
        name: &str,
        arg: Type,
        ret: Type,
        new: impl Fn() -> Box<dyn UserState> + Send + Sync + 'static,
    ) {
        assert!(ret.is_scalar() && arg.is_scalar(), "{name} takes a scalar");
        self.signatures.aggregates.push(AggSignature { name: name.to_owned(), arg, ret });
        self.aggregates.push(Arc::new(new));
    }

    /// Names and types, for the language.
    pub fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    /// The scalar of that number.
    pub fn scalar_at(&self, i: usize) -> &ScalarForms {
        &self.scalars[i]
    }

    /// The aggregate of that number.
    pub fn aggregate_at(&self, i: usize) -> &UserAggregate {
        &self.aggregates[i]
    }
}

impl std::fmt::Debug for Functions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Functions").field(&self.signatures).finish()
    }
}
