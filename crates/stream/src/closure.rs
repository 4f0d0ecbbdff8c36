//! Closures over cells, as functions of the language.

use crate::cell::TypedCell;
use weir_packet::column::Column;
use weir_plan::{Type, Value};

/// An argument of a closure: a [`TypedCell`], or an `Option` of one. One that is an `Option` may be
/// absent; where another is, the closure is not called, and its result is absent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no argument of a closure",
    note = "columns are bool, i64, f64, String, Vec<u8>, IpAddr, [u8; 6], jiff::Timestamp or \
            jiff::SignedDuration; an Option of one may be absent"
)]
pub trait ClosureInput: Sized {
    /// The types of the arguments that stand for it in a call.
    fn types() -> Vec<Type>;

    /// These arguments, of the expression that it is of.
    fn arguments(expression: &str) -> String;

    /// Takes as many values. `None` if they are of other types, which the call was checked against.
    fn take(values: &mut &[Value]) -> Option<Self>;

    /// Whether it can be taken of columns.
    const IS_FIXED: bool;

    /// Takes the values of a row of as many columns.
    fn take_of(columns: &mut &[&Column], row: usize) -> Option<Self>;
}

impl<T: TypedCell> ClosureInput for T {
    fn types() -> Vec<Type> {
        vec![T::TYPE]
    }

    fn arguments(expression: &str) -> String {
        expression.to_owned()
    }

    fn take(values: &mut &[Value]) -> Option<T> {
        let (first, rest) = values.split_first()?;
        *values = rest;
        T::from_value(first)
    }

    const IS_FIXED: bool = <T as TypedCell>::IS_FIXED;

    fn take_of(columns: &mut &[&Column], row: usize) -> Option<T> {
        let (first, rest) = columns.split_first()?;
        *columns = rest;
        T::from_raw(first.raw(row))
    }
}

/// Types that have a value to stand in where one is absent, since functions of the language are
/// called where all arguments are present.
pub trait HasNone: TypedCell {
    /// That value, as the language writes it.
    const NONE: &'static str;
}

/// Implements [`HasNone`] by a table of such values.
macro_rules! none {
    ($($rust:ty, $none:literal;)*) => {$(
        impl HasNone for $rust {
            const NONE: &'static str = $none;
        }
    )*};
}

none! {
    bool, "false";
    i64, "0";
    f64, "0.0";
    String, "\"\"";
    std::net::IpAddr, "0.0.0.0";
    [u8; 6], "00:00:00:00:00:00";
    jiff::SignedDuration, "0s";
    jiff::Timestamp, "@1970-01-01";
    Vec<u8>, "b\"\"";
}

impl<T: HasNone> ClosureInput for Option<T> {
    fn types() -> Vec<Type> {
        vec![Type::Bool, T::TYPE]
    }

    fn arguments(expression: &str) -> String {
        format!("exists({expression}), coalesce({expression}, {})", T::NONE)
    }

    fn take(values: &mut &[Value]) -> Option<Option<T>> {
        let exists = bool::take(values)?;
        let value = T::take(values)?;
        Some(exists.then_some(value))
    }

    const IS_FIXED: bool = <T as TypedCell>::IS_FIXED;

    fn take_of(columns: &mut &[&Column], row: usize) -> Option<Option<T>> {
        let exists = bool::take_of(columns, row)?;
        let value = T::take_of(columns, row)?;
        Some(exists.then_some(value))
    }
}

/// The arguments of a closure, one to six in a tuple, to each of which an expression belongs.
pub trait ClosureInputs<const N: usize>: Sized + 'static {
    /// The types of the arguments of a call.
    fn types() -> Vec<Type>;

    /// The arguments of a call, given the expressions.
    fn arguments(expressions: &[&str; N]) -> String;

    /// Takes all values of a row.
    fn take(values: &[Value]) -> Option<Self>;

    /// Whether they can be taken of columns.
    const IS_FIXED: bool;

    /// Takes the values of a row of columns.
    fn take_of(columns: &[&Column], row: usize) -> Option<Self>;
}

/// A closure over [`ClosureInputs`]. It has to be a function of its arguments alone: how often it
/// is called is not promised, nor on which thread.
#[diagnostic::on_unimplemented(
    message = "this is no closure over {N} columns",
    note = "it takes one to six arguments, of which each says its type, and as many expressions"
)]
pub trait Closure<Args, Out, const N: usize>: Send + Sync + 'static {
    /// Calls it.
    fn call(&self, arguments: Args) -> Out;
}

/// The next state of a `scan`, from the state before and [`ClosureInputs`].
pub trait ClosureStep<State, Args, const N: usize>: Send + Sync + 'static {
    /// Calls it.
    fn step(&self, state: State, arguments: Args) -> State;
}

/// Implements what closures of each number of arguments are.
macro_rules! closures {
    ($($n:literal: $($arg:ident $at:tt),*;)*) => {$(
        impl<$($arg: ClosureInput + 'static),*> ClosureInputs<$n> for ($($arg,)*) {
            fn types() -> Vec<Type> {
                [$($arg::types()),*].concat()
            }

            fn arguments(expressions: &[&str; $n]) -> String {
                [$($arg::arguments(expressions[$at])),*].join(", ")
            }

            fn take(mut values: &[Value]) -> Option<Self> {
                Some(($($arg::take(&mut values)?,)*))
            }

            const IS_FIXED: bool = true $(&& $arg::IS_FIXED)*;

            fn take_of(mut columns: &[&Column], row: usize) -> Option<Self> {
                Some(($($arg::take_of(&mut columns, row)?,)*))
            }
        }

        impl<F, Out, $($arg),*> Closure<($($arg,)*), Out, $n> for F
        where
            F: Fn($($arg),*) -> Out + Send + Sync + 'static,
        {
            fn call(&self, arguments: ($($arg,)*)) -> Out {
                self($(arguments.$at),*)
            }
        }

        impl<F, State, $($arg),*> ClosureStep<State, ($($arg,)*), $n> for F
        where
            F: Fn(State, $($arg),*) -> State + Send + Sync + 'static,
        {
            fn step(&self, state: State, arguments: ($($arg,)*)) -> State {
                self(state, $(arguments.$at),*)
            }
        }
    )*};
}

closures! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, G 5;
}

/// The state of a `scan`: one to four cells, in a tuple.
pub trait ScanState<const CELLS: usize>: Sized + 'static {
    /// The types of the cells.
    fn types() -> Vec<Type>;

    /// The cells; one that no column can hold is absent.
    fn values(self) -> Vec<Value>;

    /// A state of as many values.
    fn of(values: &[Value]) -> Option<Self>;

    /// Whether it can be taken of columns.
    const IS_FIXED: bool;

    /// A state of a row of as many columns.
    fn of_columns(columns: &[&Column], row: usize) -> Option<Self>;

    /// The number of a cell.
    fn raw(self, at: usize) -> Option<u128>;
}

/// Implements [`ScanState`] for tuples of each length.
macro_rules! states {
    ($($n:literal: $($cell:ident $at:tt),*;)*) => {$(
        impl<$($cell: TypedCell),*> ScanState<$n> for ($($cell,)*) {
            fn types() -> Vec<Type> {
                vec![$($cell::TYPE),*]
            }

            fn values(self) -> Vec<Value> {
                vec![$(self.$at.into_value()),*]
            }

            fn of(values: &[Value]) -> Option<Self> {
                Some(($($cell::from_value(values.get($at)?)?,)*))
            }

            const IS_FIXED: bool = true $(&& <$cell as TypedCell>::IS_FIXED)*;

            fn of_columns(columns: &[&Column], row: usize) -> Option<Self> {
                Some(($($cell::from_raw(columns.get($at)?.raw(row))?,)*))
            }

            fn raw(self, at: usize) -> Option<u128> {
                match at {
                    $($at => self.$at.into_raw(),)*
                    _ => None,
                }
            }
        }
    )*};
}

states! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
}
