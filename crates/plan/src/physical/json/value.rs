//! The form of values, types and fields in JSON.

use super::error::{Mistake, Unwritable};
use super::wire::{Members, Reader, Wire, Writer, expected, tagged, untag};
use crate::keys::{FieldSet, KeyField, PrefixBits};
use crate::types::Type;
use crate::value::Value;
use serde_json::Value as Json;
use weir_packet::fields::{FieldId, Header, HeaderBytes, by_name, record_field_by_name};
use weir_packet::repeated::{self, Repeated};

const SCALARS: [Type; 10] = [
    Type::Bool,
    Type::Int,
    Type::Float,
    Type::Str,
    Type::Bytes,
    Type::Ip,
    Type::Mac,
    Type::Net,
    Type::Time,
    Type::Duration,
];

/// By its name in queries; a tuple is an array of types.
impl Wire for Type {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        match self {
            Type::Tuple(parts) => parts.write(to),
            scalar => Ok(scalar.to_string().into()),
        }
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<Type, Mistake> {
        if json.is_array() {
            return Vec::read(json, from).map(Type::Tuple);
        }
        let name = String::read(json, from)?;
        let found = SCALARS.iter().find(|ty| ty.to_string() == name);
        found.cloned().ok_or_else(|| Mistake::new(format!("there is no type `{name}`")))
    }
}

/// By type and text; the text is that of queries, but for floats (the hexadecimal digits of their
/// bits) and times (nanoseconds).
impl Wire for Value {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        let text = |ty: &str, text: String| tagged(ty, Some(text.into()));
        Ok(match self {
            Value::Absent => "absent".into(),
            Value::Bool(v) => tagged("bool", Some((*v).into())),
            Value::Int(v) => text("int", v.to_string()),
            Value::Float(v) => text("float", format!("{:016x}", v.to_bits())),
            Value::Str(v) => text("string", v.to_string()),
            Value::Bytes(v) => text("bytes", v.iter().map(|b| format!("{b:02x}")).collect()),
            Value::Ip(_) => text("ip", self.to_string()),
            Value::Mac(_) => text("mac", self.to_string()),
            Value::Net(..) => text("net", self.to_string()),
            Value::Time(v) => text("time_ns", v.to_string()),
            Value::Duration(v) => text("duration_ns", v.to_string()),
            Value::Tuple(parts) => tagged("tuple", Some(parts.write(to)?)),
        })
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<Value, Mistake> {
        let (ty, body) = untag(json)?;
        let body = body.unwrap_or(&Json::Null);
        if ty == "tuple" {
            return Vec::read(body, from).map(Value::Tuple);
        }
        let text = body.as_str();
        let whole = || text.and_then(|text| text.parse().ok());
        let value = match ty {
            "absent" => body.is_null().then_some(Value::Absent),
            "bool" => body.as_bool().map(Value::Bool),
            "int" => whole().map(Value::Int),
            "float" => text.and_then(float).map(Value::Float),
            "string" => text.map(|text| Value::Str(text.into())),
            "bytes" => text.and_then(bytes).map(|bytes| Value::Bytes(bytes.into())),
            "ip" => text.and_then(|text| text.parse().ok()).map(Value::ip),
            "mac" => text.and_then(mac).map(Value::Mac),
            "net" => text.and_then(net),
            "time_ns" => whole().map(Value::Time),
            "duration_ns" => whole().map(Value::Duration),
            _ => return Err(Mistake::new(format!("`{ty}` is no type of a value"))),
        };
        value.ok_or_else(|| expected(&format!("a value of type {ty}"), body))
    }
}

/// A finite number: queries know no others.
fn float(text: &str) -> Option<f64> {
    let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    u64::from_str_radix(text, 16)
        .ok()
        .filter(|_| digits)
        .map(f64::from_bits)
        .filter(|f| f.is_finite())
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|digit| digit as u8);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

fn mac(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.split(':').collect();
    let whole = parts.len() == 6 && parts.iter().all(|part| part.len() == 2);
    let bytes = bytes(&parts.concat()).filter(|_| whole)?;
    Some(bytes.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
}

/// A network as it prints: the length of IPv4 counts in 32 bits.
fn net(text: &str) -> Option<Value> {
    let (address, len) = text.split_once('/')?;
    let (address, len): (std::net::IpAddr, u8) = (address.parse().ok()?, len.parse().ok()?);
    let len = if address.is_ipv4() { len.checked_add(96)? } else { len };
    let Value::Ip(bits) = Value::ip(address) else { return None };
    (len <= 128).then_some(Value::Net(bits, len))
}

/// By its name.
impl Wire for FieldId {
    fn write(&self, _: &mut Writer<'_>) -> Result<Json, Unwritable> {
        Ok(self.name().into())
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<FieldId, Mistake> {
        let name = String::read(json, from)?;
        let found = by_name(&name).or_else(|| record_field_by_name(&name));
        let found = found.or_else(|| by_place(&name));
        found.ok_or_else(|| Mistake::new(format!("there is no packet field `{name}`")))
    }
}

/// The field of bytes by their place: `tcp[13]` or `tcp[4:4]`.
fn by_place(name: &str) -> Option<FieldId> {
    let (header, place) = name.strip_suffix(']')?.split_once('[')?;
    let (offset, size) = place.split_once(':').unwrap_or((place, "1"));
    let (offset, size) = (offset.parse().ok()?, size.parse().ok()?);
    HeaderBytes::new(Header::by_name(header)?, offset, size).map(FieldId::of_bytes)
}

/// By the name of its field, or as an object with that and the bits that count.
impl Wire for KeyField {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        let Some(PrefixBits { v4, v6 }) = self.network else { return self.field.write(to) };
        to.members(|to, object| {
            to.member(object, "prefix", &self.field)?;
            to.member(object, "v4", &v4)?;
            to.member(object, "v6", &v6)
        })
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<KeyField, Mistake> {
        if !json.is_object() {
            return FieldId::read(json, from).map(KeyField::from);
        }
        let object = Members::new(json, &["prefix", "v4", "v6"])?;
        let bits = PrefixBits { v4: object.read("v4", from)?, v6: object.read("v6", from)? };
        let part = KeyField::with(object.read("prefix", from)?, bits);
        let known = part.filter(|part| part.network.is_some());
        known.ok_or_else(|| Mistake::new("there is no such network of a packet field"))
    }
}

impl Wire for FieldSet {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        to.list(self)
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<FieldSet, Mistake> {
        Ok(Vec::read(json, from)?.into_iter().collect())
    }
}

/// By its name.
impl Wire for Repeated {
    fn write(&self, _: &mut Writer<'_>) -> Result<Json, Unwritable> {
        Ok(self.info().name.into())
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<Repeated, Mistake> {
        let name = String::read(json, from)?;
        let unknown = || Mistake::new(format!("a packet has no `{name}` to take apart"));
        repeated::by_name(&name).map(|info| info.what).ok_or_else(unknown)
    }
}
