//! Which Rust types stand for which types of columns.

use jiff::{SignedDuration, Timestamp};
use std::net::IpAddr;
use weir_base::address::{address, number as to_number};
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

    /// Whether columns hold the value itself, and not where a text is.
    const IS_FIXED: bool = true;

    /// The value of a column's [number](weir_packet::column::Column::raw), of a type that is fixed.
    fn from_raw(raw: u128) -> Option<Self>;

    /// That number, of a value that a column can hold.
    fn into_raw(self) -> Option<u128>;
}

/// Types with their values, and the numbers by which columns hold them.
macro_rules! cells {
    ($(
        $rust:ty: $variant:ident, $v:ident => $from:expr, $into:expr, $from_raw:expr, $raw:expr;
    )*) => {$(
        impl TypedCell for $rust {
            const TYPE: Type = Type::$variant;

            fn from_value(value: &Value) -> Option<Self> {
                let Value::$variant($v) = value else { return None };
                $from
            }

            fn into_value(self) -> Value {
                let $v = self;
                $into.map_or(Value::Absent, Value::$variant)
            }

            fn from_raw($v: u128) -> Option<Self> {
                $from_raw
            }

            fn into_raw(self) -> Option<u128> {
                let $v = self;
                $raw
            }
        }
    )*};
}

cells! {
    bool: Bool, v => Some(*v), Some(v), Some(v != 0), Some(v.into());
    i64: Int, v => Some(*v), Some(v), Some(v as i64), Some(word(v));
    f64: Float, v => Some(*v), finite(v), Some(f64::from_bits(v as u64)),
        finite(v).map(|v| Value::float_bits(v).into());
    [u8; 6]: Mac, v => Some(mac(*v)), Some(number(v)), Some(mac(v as u64)), Some(number(v).into());
    IpAddr: Ip, v => Some(address(*v)), Some(to_number(v)), Some(address(v)), Some(to_number(v));
    Timestamp: Time, v => time(*v), nanoseconds(v.as_nanosecond()), time(v as i64),
        nanoseconds(v.as_nanosecond()).map(word);
    SignedDuration: Duration, v => Some(SignedDuration::from_nanos(*v)), nanoseconds(v.as_nanos()),
        Some(SignedDuration::from_nanos(v as i64)), nanoseconds(v.as_nanos()).map(word);
}

/// Types of which columns hold where the bytes are.
macro_rules! texts {
    ($($rust:ty: $variant:ident, $v:ident => $from:expr;)*) => {$(
        impl TypedCell for $rust {
            const TYPE: Type = Type::$variant;
            const IS_FIXED: bool = false;

            fn from_value(value: &Value) -> Option<Self> {
                let Value::$variant($v) = value else { return None };
                Some($from)
            }

            fn into_value(self) -> Value {
                Value::$variant(self.into())
            }

            fn from_raw(_: u128) -> Option<Self> {
                None
            }

            fn into_raw(self) -> Option<u128> {
                None
            }
        }
    )*};
}

texts! {
    String: Str, v => v.to_string();
    Vec<u8>: Bytes, v => v.to_vec();
}

fn word(v: i64) -> u128 {
    u128::from(v as u64)
}

fn finite(v: f64) -> Option<f64> {
    v.is_finite().then_some(v)
}

fn mac(number: u64) -> [u8; 6] {
    let [_, _, mac @ ..] = number.to_be_bytes();
    mac
}

fn number(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn time(v: i64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(v.into()).ok()
}

fn nanoseconds(v: i128) -> Option<i64> {
    v.try_into().ok()
}

/// A cell of a row: a [`TypedCell`], or an `Option` of one where it may be absent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of a column",
    note = "columns are bool, i64, f64, String, Vec<u8>, IpAddr, [u8; 6], jiff::Timestamp or \
            jiff::SignedDuration; an Option of one may be absent"
)]
pub trait RowCell: Sized {
    /// The type of the column.
    const COLUMN: Type;

    /// The cell of a value; `None` if it is absent and may not be.
    fn of(value: &Value) -> Option<Self>;

    /// The value of a cell.
    fn value(self) -> Value;

    /// Whether [`TypedCell::IS_FIXED`] is so.
    const IS_FIXED: bool;

    /// [`TypedCell::into_raw`] of a cell that is present.
    fn raw(self) -> Option<u128>;
}

impl<T: TypedCell> RowCell for T {
    const COLUMN: Type = T::TYPE;

    fn of(value: &Value) -> Option<T> {
        T::from_value(value)
    }

    fn value(self) -> Value {
        self.into_value()
    }

    const IS_FIXED: bool = T::IS_FIXED;

    fn raw(self) -> Option<u128> {
        self.into_raw()
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

    const IS_FIXED: bool = T::IS_FIXED;

    fn raw(self) -> Option<u128> {
        self.and_then(T::into_raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;
    use weir_engine::rows::{Arena, set_cell};
    use weir_packet::column::Column;

    fn there_and_back<T: TypedCell + PartialEq + Debug + Clone>(values: &[T]) {
        for value in values {
            let cell = value.clone().into_value();
            assert_eq!(cell.ty(), Some(T::TYPE), "{value:?}");
            assert_eq!(T::from_value(&cell).as_ref(), Some(value));
            let raw = value.clone().into_raw();
            assert_eq!(raw.is_some(), <T as TypedCell>::IS_FIXED, "{value:?}");
            assert_eq!(raw.and_then(T::from_raw), raw.map(|_| value.clone()));
            let mut column = Column::new(T::TYPE.repr());
            set_cell(&mut column, 7, &cell, &mut Arena::default());
            assert!(raw.is_none_or(|raw| raw == column.raw(7)), "{value:?}");
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
        assert_eq!((f64::NAN.raw(), Some(Timestamp::MAX).raw()), (None, None));
        assert!(!Timestamp::MAX.into_value().exists());
        assert!(!SignedDuration::MAX.into_value().exists());
    }
}
