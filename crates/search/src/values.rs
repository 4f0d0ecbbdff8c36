//! Cells of rows as JSON has them, read back.

use serde_json::Value as Json;
use weir_packet::time::parse_rfc3339;
use weir_plan::{Type, Value};

/// Durations up to so many seconds are exact to the nanosecond as the number that JSON has.
const EXACT_SECONDS: f64 = 4e6;

/// The value of a cell; `None` where the cell does not say it exactly: a float, or a text whose
/// bytes were not UTF-8.
///
/// # Errors
/// If the cell is not of the type.
pub(super) fn value(cell: &Json, ty: &Type) -> Result<Option<Value>, ()> {
    if cell.is_null() {
        return Ok(Some(Value::Absent));
    }
    let text = cell.as_str();
    let exact = match ty {
        Type::Bool => Value::Bool(cell.as_bool().ok_or(())?),
        Type::Int => Value::Int(cell.as_i64().ok_or(())?),
        Type::Float => return cell.as_f64().map(|_| None).ok_or(()),
        Type::Str => {
            let text = text.ok_or(())?;
            if text.contains('\u{fffd}') {
                return Ok(None);
            }
            Value::Str(text.into())
        }
        Type::Bytes => Value::Bytes(bytes(text.ok_or(())?).ok_or(())?.into()),
        Type::Ip => Value::ip(text.ok_or(())?.parse().map_err(|_| ())?),
        Type::Mac => Value::Mac(mac(text.ok_or(())?).ok_or(())?),
        Type::Time => Value::Time(text.and_then(parse_rfc3339).ok_or(())?),
        Type::Duration => {
            let seconds = cell.as_f64().ok_or(())?;
            if seconds.abs() > EXACT_SECONDS {
                return Ok(None);
            }
            Value::Duration((seconds * 1e9).round() as i64)
        }
        Type::Net | Type::Tuple(_) => return Err(()),
    };
    Ok(Some(exact))
}

/// Bytes in hexadecimal.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pairs = digits.len().is_multiple_of(2).then(|| digits.chunks_exact(2))?;
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// A link address, `02:00:5e:10:00:01`.
fn mac(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() != 6 || parts.iter().any(|part| part.len() != 2) {
        return None;
    }
    parts.iter().try_fold(0, |bits, part| Some(bits << 8 | u64::from(*bytes(part)?.first()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_read_back() {
        let day = 1_714_564_800_123_456_789;
        for (cell, ty, expected) in [
            (json!(true), Type::Bool, Value::Bool(true)),
            (json!(i64::MAX), Type::Int, Value::Int(i64::MAX)),
            (json!(i64::MIN), Type::Int, Value::Int(i64::MIN)),
            (json!("a\u{1b}\u{e9}"), Type::Str, Value::Str("a\u{1b}\u{e9}".into())),
            (json!("0aff"), Type::Bytes, Value::Bytes([10, 255].into())),
            (json!(""), Type::Bytes, Value::Bytes([].into())),
            (json!("10.0.0.1"), Type::Ip, Value::Ip(0xffff_0a00_0001)),
            (json!("::1"), Type::Ip, Value::Ip(1)),
            (json!("02:00:5e:10:00:01"), Type::Mac, Value::Mac(0x0200_5e10_0001)),
            (json!("2024-05-01T12:00:00.123456789Z"), Type::Time, Value::Time(day)),
            (json!(-0.000000001), Type::Duration, Value::Duration(-1)),
            (json!(1.5), Type::Duration, Value::Duration(1_500_000_000)),
            (json!(null), Type::Ip, Value::Absent),
        ] {
            assert_eq!(value(&cell, &ty), Ok(Some(expected)), "{cell}");
        }
        for (cell, ty) in [
            (json!(0.1), Type::Float),
            (json!("\u{fffd}"), Type::Str),
            (json!(1e300), Type::Duration),
        ] {
            assert_eq!(value(&cell, &ty), Ok(None), "{cell}");
        }
        for (cell, ty) in [
            (json!(1), Type::Bool),
            (json!(1.5), Type::Int),
            (json!(9_223_372_036_854_775_808_u64), Type::Int),
            (json!([]), Type::Str),
            (json!("0af"), Type::Bytes),
            (json!("0g"), Type::Bytes),
            (json!("\u{e9}"), Type::Bytes),
            (json!("10.0.0"), Type::Ip),
            (json!("2:0:5e:10:0:1"), Type::Mac),
            (json!("02:00:5e:10:00:\u{e9}"), Type::Mac),
            (json!("yesterday"), Type::Time),
            (json!({}), Type::Duration),
            (json!("x"), Type::Net),
        ] {
            assert_eq!(value(&cell, &ty), Err(()), "{cell}");
        }
    }
}
