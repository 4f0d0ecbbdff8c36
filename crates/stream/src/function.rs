//! Functions and aggregates in Rust, under names that queries call.

use crate::cell::{RowCell, TypedCell};
use crate::closure::{Closure, ClosureInputs, ClosureStep, ScanState};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_plan::registered::{ColumnScalar, Functions, ScalarForms, UserAggregate, UserState};
use weir_plan::{Type, Value};

/// A function or an aggregate in Rust. A closure of a stage is named after its place in the
/// program; [`function`] and [`aggregate`] give a name to call one by.
#[derive(Clone)]
pub struct Function(pub(crate) Arc<FunctionKind>);

/// The kinds of functions.
pub(crate) enum FunctionKind {
    /// A function of a row.
    Scalar {
        /// The name, unless its place gives it one.
        name: Option<String>,
        args: Vec<Type>,
        ret: Type,
        forms: ScalarForms,
    },
    /// An aggregate of a group.
    Aggregate { name: String, arg: Type, ret: Type, new: UserAggregate },
}

/// Both forms of a function: how it is called with the values of a row, and, where columns hold all
/// of them themselves, with a row of columns.
fn forms(
    by_row: impl Fn(&[Value]) -> Value + Send + Sync + 'static,
    of_row: Option<impl Fn(&[&Column], usize) -> Option<u128> + Send + Sync + 'static>,
) -> ScalarForms {
    let by_column = of_row.map(|of_row| {
        Arc::new(move |columns: &[&Column], rows: Bits, out: &mut Column| {
            rows.each(|i| of_row(columns, i).into_iter().for_each(|raw| out.set_raw(i, raw)));
        }) as ColumnScalar
    });
    ScalarForms { by_row: Arc::new(by_row), by_column }
}

impl Function {
    pub(crate) fn of_closure<Args, Out, const N: usize, F>(
        name: Option<&str>,
        closure: F,
    ) -> Function
    where
        Args: ClosureInputs<N>,
        Out: RowCell,
        F: Closure<Args, Out, N>,
    {
        let (by_row, by_column) = (Arc::new(closure), Args::IS_FIXED && Out::IS_FIXED);
        let closure = Arc::clone(&by_row);
        let forms = forms(
            move |values| {
                Args::take(values).map_or(Value::Absent, |args| by_row.call(args).value())
            },
            by_column.then_some(move |columns: &[&Column], row| {
                closure.call(Args::take_of(columns, row)?).raw()
            }),
        );
        Function::scalar(name, Args::types(), Out::COLUMN, forms)
    }

    /// One without arguments, which gives a value that has a type.
    pub(crate) fn of_constant(value: Value) -> Function {
        let ret = value.ty().expect("a value");
        let by_row = Arc::new(move |_: &[Value]| value.clone());
        Function::scalar(None, Vec::new(), ret, ScalarForms { by_row, by_column: None })
    }

    /// One function for each cell of the state.
    pub(crate) fn of_step<State, Args, const CELLS: usize, const N: usize, F>(
        step: F,
    ) -> Vec<Function>
    where
        State: ScanState<CELLS>,
        Args: ClosureInputs<N>,
        F: ClosureStep<State, Args, N>,
    {
        let (step, states) = (Arc::new(step), State::types());
        let of_cell = |(at, ret): (usize, &Type)| {
            let (by_row, step) = (Arc::clone(&step), Arc::clone(&step));
            let next = move |values: &[Value]| {
                let (state, inputs) = values.split_at(CELLS);
                Some(by_row.step(State::of(state)?, Args::take(inputs)?))
            };
            let forms = forms(
                move |values| {
                    next(values).map_or(Value::Absent, |state| state.values().swap_remove(at))
                },
                (Args::IS_FIXED && State::IS_FIXED).then_some(move |columns: &[&Column], row| {
                    let (state, inputs) = columns.split_at(CELLS);
                    let inputs = Args::take_of(inputs, row)?;
                    step.step(State::of_columns(state, row)?, inputs).raw(at)
                }),
            );
            let args = [states.clone(), Args::types()].concat();
            Function::scalar(None, args, ret.clone(), forms)
        };
        states.iter().enumerate().map(of_cell).collect()
    }

    fn scalar(name: Option<&str>, args: Vec<Type>, ret: Type, forms: ScalarForms) -> Function {
        let name = name.map(str::to_owned);
        Function(Arc::new(FunctionKind::Scalar { name, args, ret, forms }))
    }

    /// The name that it was given.
    pub(crate) fn name(&self) -> Option<&str> {
        match &*self.0 {
            FunctionKind::Scalar { name, .. } => name.as_deref(),
            FunctionKind::Aggregate { name, .. } => Some(name),
        }
    }

    pub(crate) fn is(&self, other: &Function) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Registers it under a name.
    pub(crate) fn register(&self, name: &str, functions: &mut Functions) {
        match &*self.0 {
            FunctionKind::Scalar { args, ret, forms, .. } => {
                functions.scalar_of(name, args, ret.clone(), forms.clone());
            }
            FunctionKind::Aggregate { arg, ret, new, .. } => {
                let new = Arc::clone(new);
                functions.aggregate(name, arg.clone(), ret.clone(), move || new());
            }
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function").field(&self.name()).finish()
    }
}

/// A function that queries call by name, once a stream [uses](crate::Stream::uses) it.
///
/// ```
/// use weir_stream::{function, packets};
///
/// let padded = function("padded", |len: i64| (len + 63) / 64 * 64);
/// let mut capture = weir_stream::open("../../fixtures/web.pcap")?;
/// let (rows, _) = packets()
///     .uses(&padded)
///     .query("where tcp | extend bytes = padded(len) | summarize bytes = sum(bytes)")
///     .run(&mut capture)
///     .collect::<(i64,)>()?;
/// assert_eq!(rows.len(), 1);
/// # Ok::<(), weir_stream::StreamError>(())
/// ```
pub fn function<Args: ClosureInputs<N>, Out: RowCell, const N: usize>(
    name: &str,
    closure: impl Closure<Args, Out, N>,
) -> Function {
    Function::of_closure(Some(name), closure)
}

/// The state of an aggregate in Rust. It obeys the laws of all aggregates: the default is an
/// identity of `merge`, and `merge` is associative and commutative, since several workers, or
/// several probes, each see a part of a group.
///
/// ```
/// use weir_stream::{Aggregate, aggregate, packets};
///
/// /// The greatest common divisor.
/// #[derive(Default)]
/// struct Divisor(i64);
///
/// impl Aggregate for Divisor {
///     type Input = i64;
///     type Output = i64;
///
///     fn update(&mut self, n: i64) {
///         let (mut a, mut b) = (self.0, n.abs());
///         while b > 0 {
///             (a, b) = (b, a % b);
///         }
///         self.0 = a;
///     }
///
///     fn merge(&mut self, other: &Divisor) {
///         self.update(other.0);
///     }
///
///     fn finish(&self) -> i64 {
///         self.0
///     }
///
///     fn encode(&self) -> Vec<u8> {
///         self.0.to_be_bytes().to_vec()
///     }
///
///     fn decode(bytes: &[u8]) -> Option<Divisor> {
///         Some(Divisor(i64::from_be_bytes(bytes.try_into().ok()?)))
///     }
/// }
///
/// let divisor = aggregate::<Divisor>("divisor");
/// let mut capture = weir_stream::open("../../fixtures/web.pcap")?;
/// let (rows, _) = packets()
///     .uses(&divisor)
///     .query("where tcp | summarize d = divisor(tcp.window) by ip.src | project d, ip.src")
///     .run(&mut capture)
///     .collect::<(i64, std::net::IpAddr)>()?;
/// # Ok::<(), weir_stream::StreamError>(())
/// ```
pub trait Aggregate: Default + Send + 'static {
    /// A value that it takes; absent ones never come.
    type Input: TypedCell;
    /// Its result, an `Option` where there may be none.
    type Output: RowCell;

    /// Takes in one value.
    fn update(&mut self, value: Self::Input);
    /// Takes in what another state has seen.
    fn merge(&mut self, other: &Self);
    /// The result.
    fn finish(&self) -> Self::Output;
    /// All that the state holds, for other machines.
    fn encode(&self) -> Vec<u8>;
    /// The state of such bytes; `None` if they are of none.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// An aggregate that `summarize` calls by name, once a stream [uses](crate::Stream::uses) it.
pub fn aggregate<A: Aggregate>(name: &str) -> Function {
    let new = || Box::new(AggregateState(A::default())) as Box<dyn UserState>;
    let (arg, ret) = (A::Input::TYPE, A::Output::COLUMN);
    Function(Arc::new(FunctionKind::Aggregate {
        name: name.to_owned(),
        arg,
        ret,
        new: Arc::new(new),
    }))
}

/// An aggregate as the engine takes it.
struct AggregateState<A>(A);

impl<A: Aggregate> UserState for AggregateState<A> {
    fn update(&mut self, value: &Value) {
        // The call was checked: each value is one.
        A::Input::from_value(value).into_iter().for_each(|value| self.0.update(value));
    }

    fn merge(&mut self, other: &dyn UserState) {
        let other = other.as_any().downcast_ref::<AggregateState<A>>().expect("the same aggregate");
        self.0.merge(&other.0);
    }

    fn finish(&self) -> Value {
        self.0.finish().value()
    }

    fn encode(&self) -> Vec<u8> {
        self.0.encode()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        let state = A::decode(bytes);
        let is_one = state.is_some();
        state.into_iter().for_each(|state| self.0 = state);
        is_one
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
