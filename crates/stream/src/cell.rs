//! Which Rust types stand for which types of columns.

use jiff::{SignedDuration, Timestamp};
use std::net::IpAddr;
use weir_plan::{Type, Value};

/// A Rust type of the values of a column. A cell that may be absent is an `Option` of it.
///
/// | column | Rust |
/// |---|---|
/// | bool | `bool` |
/// | int | `i64` |
/// | float | `f64` |
/// | string | `String` |
/// | bytes | `Vec<u8>` |
/// | ip | [`IpAddr`] |
/// | mac | `[u8; 6]` |
/// | time | [`Timestamp`] |
/// | duration | [`SignedDuration`] |
pub trait TypedCell: Sized + 'static {
    /// The type of the column.
    const TYPE: Type;

    /// A value of that type; `None` for one of another, and for an absent one.
    fn from_value(value: &Value) -> Option<Self>;

    /// The value; absent where it is beyond what a column can hold, as a float that is no number,
    /// or a duration of more than 292 years.
    fn into_value(self) -> Value;
}

/// Types whose value is that of a [`Value`], but for its form.
macro_rules! cells {
    ($($rust:ty, $variant:ident, $v:ident => $from:expr, $into:expr;)*) => {$(
        impl TypedCell for $rust {
            const TYPE: Type = Type::$variant;

            fn from_value(value: &Value) -> Option<Self> {
                let Value::$variant($v) = value else { return None };
                Some($from)
            }

            fn into_value(self) -> Value {
                let $v = self;
                Value::$variant($into)
            }
        }
    )*};
}

cells! {
    bool, Bool, v => *v, v;
    i64, Int, v => *v, v;
    String, Str, v => v.to_string(), v.into();
    Vec<u8>, Bytes, v => v.to_vec(), v.into();
    [u8; 6], Mac, v => mac(*v), number(v);
}

fn mac(number: u64) -> [u8; 6] {
    let [_, _, mac @ ..] = number.to_be_bytes();
    mac
}

fn number(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl TypedCell for f64 {
    const TYPE: Type = Type::Float;

    fn from_value(value: &Value) -> Option<f64> {
        let Value::Float(v) = value else { return None };
        Some(*v)
    }

    fn into_value(self) -> Value {
        if self.is_finite() { Value::Float(self) } else { Value::Absent }
    }
}

impl TypedCell for IpAddr {
    const TYPE: Type = Type::Ip;

    fn from_value(value: &Value) -> Option<IpAddr> {
        let Value::Ip(v) = value else { return None };
        Some(Value::to_ip(*v))
    }

    fn into_value(self) -> Value {
        Value::ip(self)
    }
}

impl TypedCell for Timestamp {
    const TYPE: Type = Type::Time;

    fn from_value(value: &Value) -> Option<Timestamp> {
        let Value::Time(v) = value else { return None };
        Timestamp::from_nanosecond((*v).into()).ok()
    }

    fn into_value(self) -> Value {
        i64::try_from(self.as_nanosecond()).map_or(Value::Absent, Value::Time)
    }
}

impl TypedCell for SignedDuration {
    const TYPE: Type = Type::Duration;

    fn from_value(value: &Value) -> Option<SignedDuration> {
        let Value::Duration(v) = value else { return None };
        Some(SignedDuration::from_nanos(*v))
    }

    fn into_value(self) -> Value {
        i64::try_from(self.as_nanos()).map_or(Value::Absent, Value::Duration)
    }
}

/// A cell of a row: a [`TypedCell`], or an `Option` of one where it may be absent.
pub trait RowCell: Sized {
    /// The type of the column.
    const COLUMN: Type;

    /// The cell of a value; `None` if it is absent and may not be.
    fn of(value: &Value) -> Option<Self>;

    /// The value of a cell.
    fn value(self) -> Value;
}

impl<T: TypedCell> RowCell for T {
    const COLUMN: Type = T::TYPE;

    fn of(value: &Value) -> Option<T> {
        T::from_value(value)
    }

    fn value(self) -> Value {
        self.into_value()
    }
}

impl<T: TypedCell> RowCell for Option<T> {
    const COLUMN: Type = T::TYPE;

    fn of(value: &Value) -> Option<Option<T>> {
        Some(T::from_value(value))
    }

    fn value(self) -> Value {
        self.map_or(Value::Absent, T::into_value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn there_and_back<T: TypedCell + PartialEq + Debug + Clone>(values: &[T]) {
        for value in values {
            let cell = value.clone().into_value();
            assert_eq!(cell.ty(), Some(T::TYPE), "{value:?}");
            assert_eq!(T::from_value(&cell).as_ref(), Some(value));
            assert_eq!(Option::<T>::of(&cell), Some(Some(value.clone())));
        }
        assert_eq!((T::from_value(&Value::Absent), T::of(&Value::Tuple(Vec::new()))), (None, None));
        assert_eq!(Option::<T>::of(&Value::Absent), Some(None));
        assert!(!None::<T>.value().exists());
    }

    #[test]
    fn values_come_back() {
        there_and_back(&[false, true]);
        there_and_back(&[i64::MIN, -1, 0, 1, i64::MAX]);
        there_and_back(&[f64::MIN, -0.5, 0.0, f64::MIN_POSITIVE, f64::MAX]);
        there_and_back(&[String::new(), "a\0ü".to_owned()]);
        there_and_back(&[Vec::new(), vec![0, 255]]);
        there_and_back(&[[0; 6], [1, 2, 3, 4, 5, 6], [255; 6]]);
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        there_and_back(&["0.0.0.0", "255.255.255.255", "::", "ffff::1"].map(address));
        let time = |ns: i64| Timestamp::from_nanosecond(ns.into()).expect("a time");
        there_and_back(&[i64::MIN, -1, 0, 1, i64::MAX].map(time));
        there_and_back(&[i64::MIN, -1, 0, 1, i64::MAX].map(SignedDuration::from_nanos));
    }

    #[test]
    fn what_no_column_holds_is_absent() {
        assert!([f64::NAN, f64::INFINITY].iter().all(|v| !v.into_value().exists()));
        assert!(!Timestamp::MAX.into_value().exists());
        assert!(!SignedDuration::MAX.into_value().exists());
    }
}
