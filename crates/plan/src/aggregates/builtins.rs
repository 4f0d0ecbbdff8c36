//! The table of built-in aggregates: what each takes, what it gives, and its row of the reference.
//! The language checks calls by it, a plan that is read is checked by it, tests of the engine take
//! their cases from it, and the table of the reference is written from it.

use super::func::AggFunc;
use crate::functions::parameter::{
    ANY, BOOL, DURATION_STEP, INT, INT_OR_DURATION, INT_TO_RATE, NUMBER, ONE_ORDERED, SHARE,
    SIGNED, UP_TO,
};
use crate::functions::{Parameter, Role};
use crate::types::Type;
use crate::value::Value;
use ResultType::{Argument, Mean, This};
use Type::{Bool, Duration, Float, Int, Str};

/// One way to call a built-in aggregate.
#[derive(Debug)]
pub struct BuiltinAggregate {
    /// The call with the names of its arguments, such as `sum(x)`.
    pub call: &'static str,
    /// The aggregate that plans compute. Where a constant of the call or the window becomes part of
    /// it, the one here is an example.
    pub func: AggFunc,
    /// Its arguments. Several that are evaluated for each row are a tuple in a plan.
    pub takes: &'static [Parameter],
    /// Whether its one argument may be a tuple: then a row counts where any part has a value.
    pub tuples: bool,
    /// Whether a bool is a condition on rows, and no argument.
    pub condition: bool,
    /// The type of the result.
    pub gives: ResultType,
    /// The result of a group in which no row counts.
    pub over_nothing: OverNothing,
    /// The part of the result that is due to the order of rows.
    pub order: RowOrder,
    /// The meaning of the result, for the reference.
    pub doc: &'static str,
    /// A call, where a constant is easily forgotten.
    pub example: Option<&'static str>,
}

/// The type of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResultType {
    /// This one.
    This(Type),
    /// That of the first argument.
    Argument,
    /// A duration of durations, else a float.
    Mean,
}

/// The result of a group in which no row counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverNothing {
    /// None.
    Absent,
    /// 0.
    Zero,
    /// Always a value: it is not made of rows.
    Present,
}

/// The part of a result that is due to the order of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowOrder {
    /// Nothing.
    Free,
    /// A sum of floats rounds in the order in which they are added.
    Rounds,
    /// It is of the row with the smallest or the largest number.
    Numbers,
}

impl BuiltinAggregate {
    /// The name in queries.
    pub fn name(&self) -> &'static str {
        self.call.split('(').next().unwrap_or(self.call)
    }

    /// The arguments that are evaluated for each row.
    pub fn values(&self) -> impl Iterator<Item = &'static Parameter> {
        self.takes.iter().filter(|parameter| parameter.role != Role::Constant)
    }

    /// Types of its argument, each that a part may have at least once; none without an argument.
    pub fn argument_types(&self) -> Vec<Type> {
        let most = self.values().map(|parameter| parameter.types.len()).max().unwrap_or(0);
        let parts = |i: usize| -> Vec<Type> {
            let part = |parameter: &Parameter| parameter.types[i % parameter.types.len()].clone();
            self.values().map(part).collect()
        };
        let argument = |parts: Vec<Type>| match <[Type; 1]>::try_from(parts) {
            Ok([one]) => one,
            Err(parts) => Type::Tuple(parts),
        };
        let tuple = self.tuples.then(|| Type::Tuple(vec![Type::Ip, Str]));
        (0..most).map(parts).map(argument).chain(tuple).collect()
    }

    /// The type of the result for an argument of this type, or for none; `None` where it does not
    /// take that.
    pub fn result(&self, arg: Option<&Type>) -> Option<Type> {
        let parameters: Vec<_> = self.values().collect();
        let first = match (&parameters[..], arg) {
            ([], None) => None,
            ([_], Some(arg @ Type::Tuple(_))) if self.tuples => Some(arg),
            ([one], Some(arg)) if one.types.contains(arg) => Some(arg),
            ([_, _, ..], Some(Type::Tuple(parts))) => {
                let fits = parameters.iter().zip(parts).all(|(one, ty)| one.types.contains(ty));
                Some(parts.first().filter(|_| fits && parts.len() == parameters.len())?)
            }
            _ => return None,
        };
        Some(match (&self.gives, first) {
            (This(ty), _) => ty.clone(),
            (Argument, first) => first?.clone(),
            (Mean, Some(Duration)) => Duration,
            (Mean, _) => Float,
        })
    }

    const fn tuples(mut self) -> BuiltinAggregate {
        self.tuples = true;
        self
    }

    const fn condition(mut self) -> BuiltinAggregate {
        self.condition = true;
        self
    }

    const fn zero(mut self) -> BuiltinAggregate {
        self.over_nothing = OverNothing::Zero;
        self
    }

    const fn present(mut self) -> BuiltinAggregate {
        self.over_nothing = OverNothing::Present;
        self
    }

    const fn order(mut self, order: RowOrder) -> BuiltinAggregate {
        self.order = order;
        self
    }

    const fn example(mut self, example: &'static str) -> BuiltinAggregate {
        self.example = Some(example);
        self
    }
}

impl OverNothing {
    /// The value of a type, where it is known without asking more.
    pub fn value(self, ty: &Type) -> Value {
        match (self, ty) {
            (OverNothing::Absent | OverNothing::Present, _) => Value::Absent,
            (OverNothing::Zero, Float) => Value::Float(0.0),
            (OverNothing::Zero, _) => Value::Int(0),
        }
    }
}

impl AggFunc {
    /// The rows of a built-in aggregate, whatever its constants; none for one that is registered.
    pub fn builtins(self) -> impl Iterator<Item = &'static BuiltinAggregate> {
        let kind = std::mem::discriminant(&self);
        AGGREGATES.iter().filter(move |row| std::mem::discriminant(&row.func) == kind)
    }

    /// How queries write it; registered ones have their own name.
    pub fn name(self) -> &'static str {
        self.builtins().next().map_or("user", BuiltinAggregate::name)
    }

    /// The type of the result of a built-in aggregate for an argument of this type, or for none;
    /// `None` where it does not take that.
    pub fn result(self, arg: Option<&Type>) -> Option<Type> {
        self.builtins().find_map(|row| row.result(arg)).filter(|_| self.is_within_bounds())
    }

    /// The result of a group in which no row counts. Registered aggregates say that themselves.
    pub fn over_nothing(self, ty: &Type) -> Value {
        self.builtins().next().map_or(Value::Absent, |row| row.over_nothing.value(ty))
    }

    /// The part of the result that is due to the order of rows; registered aggregates say nothing
    /// of that.
    pub fn order(self) -> RowOrder {
        self.builtins().next().map_or(RowOrder::Free, |row| row.order)
    }
}

/// The ways to call the built-in aggregate of this name.
pub fn by_name(name: &str) -> impl Iterator<Item = &'static BuiltinAggregate> {
    AGGREGATES.iter().filter(move |row| row.name() == name)
}

const fn row(
    call: &'static str,
    func: AggFunc,
    takes: &'static [Parameter],
    gives: ResultType,
    doc: &'static str,
) -> BuiltinAggregate {
    BuiltinAggregate {
        call,
        func,
        takes,
        tuples: false,
        condition: false,
        gives,
        over_nothing: OverNothing::Absent,
        order: RowOrder::Free,
        doc,
        example: None,
    }
}

/// All built-in aggregates, in the order of the reference.
pub static AGGREGATES: &[BuiltinAggregate] = &[
    row("count()", AggFunc::Count, &[], This(Int), "how many rows").zero(),
    row(
        "count(x)",
        AggFunc::Count,
        &[ANY],
        This(Int),
        "how many rows where `x` has a value; of a bool, where it holds",
    )
    .condition()
    .zero(),
    row(
        "late()",
        AggFunc::Late,
        &[],
        This(Int),
        "how many rows came after the end of their window, thanks to `lateness`",
    )
    .zero(),
    row("sum(x)", AggFunc::Sum, &[SIGNED], Argument, "the sum").order(RowOrder::Rounds),
    row("min(x)", AggFunc::Min, &[ONE_ORDERED], Argument, "the smallest value"),
    row("max(x)", AggFunc::Max, &[ONE_ORDERED], Argument, "the largest value"),
    row(
        "max_by(x, y)",
        AggFunc::MaxBy,
        &[ANY, ONE_ORDERED],
        Argument,
        "the value of `x` in the row with the largest `y`; of several the smallest",
    ),
    row(
        "min_by(x, y)",
        AggFunc::MinBy,
        &[ANY, ONE_ORDERED],
        Argument,
        "the value of `x` in the row with the smallest `y`; of several the smallest",
    ),
    row("avg(x)", AggFunc::Avg, &[SIGNED], Mean, "the mean").order(RowOrder::Rounds),
    row("first(x)", AggFunc::First, &[ANY], Argument, "the value in the first row that has one")
        .order(RowOrder::Numbers),
    row("last(x)", AggFunc::Last, &[ANY], Argument, "the value in the last row that has one")
        .order(RowOrder::Numbers),
    row("any(x)", AggFunc::Any, &[BOOL], This(Bool), "whether `x` holds in any row"),
    row("all(x)", AggFunc::All, &[BOOL], This(Bool), "whether `x` holds in all rows"),
    row("distinct(x)", AggFunc::Distinct, &[ANY], This(Int), "how many different values, exactly")
        .tuples()
        .zero(),
    row(
        "distinct(x, limit)",
        AggFunc::DistinctUpTo(10_000),
        &[ANY, UP_TO],
        This(Int),
        "the same, exact for up to `limit` values in a group, beyond that as `approx_distinct`; \
         the column `NAME_exact` says which",
    )
    .tuples()
    .zero(),
    row(
        "approx_distinct(x)",
        AggFunc::ApproxDistinct,
        &[ANY],
        This(Int),
        "how many different values, within some 3 %, in at most 4.2 KB a group",
    )
    .tuples()
    .zero(),
    row("bit_or(x)", AggFunc::BitOr, &[INT], This(Int), "all bits that were set"),
    row(
        "quantile(x, share)",
        AggFunc::Quantile(950_000),
        &[SIGNED, SHARE],
        Argument,
        "the value that such a share of all values are not above",
    )
    .example("quantile(len, 0.95)"),
    row(
        "percentile(x, percent)",
        AggFunc::Quantile(990_000),
        &[SIGNED, SHARE],
        Argument,
        "the same, with the share in percent",
    )
    .example("percentile(len, 95)"),
    row("median(x)", AggFunc::Quantile(500_000), &[SIGNED], Argument, "the same for one half"),
    row(
        "mad(x)",
        AggFunc::Mad,
        &[SIGNED],
        Argument,
        "the median absolute deviation: the median of how far each value is from the median",
    ),
    row(
        "frequent(x, n)",
        AggFunc::Frequent(2),
        &[ANY, UP_TO],
        This(Str),
        "the `n` most frequent values, as text: `443=120 80=33`",
    )
    .example("frequent(dport, 5)"),
    row(
        "histogram(x, step)",
        AggFunc::Histogram,
        &[INT_OR_DURATION, DURATION_STEP],
        This(Str),
        "how many values in each step, as such a text",
    )
    .example("histogram(len, 100)"),
    row("entropy(x)", AggFunc::Entropy, &[ANY], This(Float), "how mixed values are, in bits")
        .tuples(),
    row("rate()", AggFunc::Rate(2_000_000_000), &[], This(Float), "rows by second of the window")
        .zero(),
    row(
        "rate(x)",
        AggFunc::Rate(2_000_000_000),
        &[INT_TO_RATE],
        This(Float),
        "the sum of `x` by second of the window; of a bool, the rows where it holds",
    )
    .condition()
    .zero(),
    row(
        "completeness()",
        AggFunc::Completeness,
        &[],
        This(Float),
        "of the frames that passed in the time of the window, the share that was seen",
    )
    .present(),
    row(
        "end_reason()",
        AggFunc::EndReason,
        &[],
        This(Int),
        "why a session ended: 1 idle, 2 active, 3 `until`, 4 end of input, 5 no room",
    )
    .present(),
    row("variance(x)", AggFunc::Variance, &[NUMBER], This(Float), "the variance of a sample")
        .order(RowOrder::Rounds),
    row("stddev(x)", AggFunc::Stddev, &[SIGNED], Mean, "the square root of the variance")
        .order(RowOrder::Rounds),
];
