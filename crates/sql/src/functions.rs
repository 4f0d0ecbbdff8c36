//! Functions of addresses.

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, BooleanArray, FixedSizeBinaryArray, FixedSizeBinaryBuilder,
    StringArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use std::fmt;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use weir_base::address;

/// `in_net(a, '10.0.0.0/8', …)`: whether an address is in one of the networks.
pub(crate) const IN_NET: &str = "in_net";

/// `ip('10.0.0.1')`: an address as bytes.
pub(crate) const IP: &str = "ip";

/// `mac('02:00:5e:10:00:01')`: the same of a link address.
pub(crate) const MAC: &str = "mac";

/// All functions.
pub(crate) fn all() -> [ScalarUDF; 5] {
    [Name::InNet, Name::Prefix, Name::Ip, Name::IpText, Name::Mac].map(|name| {
        let signature = Signature::user_defined(Volatility::Immutable);
        ScalarUDF::new_from_impl(Function { name, signature })
    })
}

/// An address and how many of its bits count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Reads a network, or an address, which is a network of one host.
    pub(crate) fn parse(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address.parse().ok()?, Some(bits.parse().ok()?)),
            None => (text.parse().ok()?, None),
        };
        let most = most_bits(address);
        let bits = bits.unwrap_or(most);
        let is_network = bits <= most && first_bits(address, bits) == address;
        is_network.then_some(Network { address, bits })
    }

    fn has(&self, other: IpAddr) -> bool {
        self.address.is_ipv4() == other.is_ipv4() && first_bits(other, self.bits) == self.address
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

fn most_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// An address of which all but the first bits are zero.
fn first_bits(address: IpAddr, bits: u8) -> IpAddr {
    let mask = |of: u32| (of - u32::from(bits).min(of), of);
    match address {
        IpAddr::V4(four) => {
            let (cut, _) = mask(u32::BITS);
            IpAddr::V4((four.to_bits() & u32::MAX.checked_shl(cut).unwrap_or(0)).into())
        }
        IpAddr::V6(six) => {
            let (cut, _) = mask(u128::BITS);
            IpAddr::V6((six.to_bits() & u128::MAX.checked_shl(cut).unwrap_or(0)).into())
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Name {
    InNet,
    Prefix,
    Ip,
    IpText,
    Mac,
}

/// A function of addresses, which are texts, or their 16 bytes.
#[derive(PartialEq, Eq, Hash, Debug)]
struct Function {
    name: Name,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        match self.name {
            Name::InNet => IN_NET,
            Name::Prefix => "prefix",
            Name::Ip => IP,
            Name::IpText => "ip_text",
            Name::Mac => MAC,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let usage = match (self.name, given.len()) {
            (Name::InNet, 2..) => None,
            (Name::InNet, _) => {
                Some("in_net takes an address and networks: in_net(a, '10.0.0.0/8')")
            }
            (Name::Prefix, 2 | 3) => None,
            (Name::Prefix, _) => Some("prefix takes an address, and bits: prefix(a, 24, 48)"),
            (Name::Ip | Name::IpText | Name::Mac, 1) => None,
            (Name::Ip, _) => Some("ip takes a text: ip('10.0.0.1')"),
            (Name::IpText, _) => Some("ip_text takes an address"),
            (Name::Mac, _) => Some("mac takes a text: mac('02:00:5e:10:00:01')"),
        };
        if let Some(usage) = usage {
            return plan_err!("{usage}");
        }
        let address = match &given[0] {
            bytes @ DataType::FixedSizeBinary(16) if self.name != Name::Mac => bytes.clone(),
            text if text.is_string() || text.is_null() => DataType::Utf8,
            DataType::Dictionary(_, value) if value.is_string() => DataType::Utf8,
            other => return plan_err!("{} takes an address, not a {other}", self.name()),
        };
        let rest = if self.name == Name::Prefix { DataType::Int64 } else { DataType::Utf8 };
        Ok([address].into_iter().chain(given[1..].iter().map(|_| rest.clone())).collect())
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        Ok(match self.name {
            Name::InNet => DataType::Boolean,
            Name::Prefix => given[0].clone(),
            Name::Ip => DataType::FixedSizeBinary(16),
            Name::IpText => DataType::Utf8,
            Name::Mac => DataType::FixedSizeBinary(6),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let of = args.args[0].to_array(rows)?;
        if self.name == Name::Mac {
            let result = macs(&of, is_constant)?;
            return Ok(match is_constant {
                true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
                false => ColumnarValue::Array(result),
            });
        }
        let addresses = Addresses::of(&of)?;
        if is_constant && self.name == Name::Ip && addresses.get(0).is_none() && of.is_valid(0) {
            return exec_err!("ip: `{}` is no address", ScalarValue::try_from_array(&of, 0)?);
        }
        let result = match self.name {
            Name::InNet => in_net(&addresses, &args.args[1..])?,
            Name::Prefix => {
                let bits = bits(&args.args[1..])?;
                let cut = |a: IpAddr| first_bits(a, if a.is_ipv4() { bits.0 } else { bits.1 });
                addresses.map(matches!(addresses, Addresses::Texts(_)), cut)
            }
            Name::Ip => addresses.map(false, |a| a),
            Name::IpText | Name::Mac => addresses.map(true, |a| a),
        };
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }
}

/// A column of addresses.
enum Addresses<'a> {
    Texts(&'a StringArray),
    Bytes(&'a FixedSizeBinaryArray),
}

impl<'a> Addresses<'a> {
    fn of(column: &'a ArrayRef) -> Result<Addresses<'a>> {
        Ok(match column.data_type() {
            DataType::Utf8 => Addresses::Texts(column.as_string()),
            _ => Addresses::Bytes(column.as_fixed_size_binary()),
        })
    }

    fn len(&self) -> usize {
        match self {
            Addresses::Texts(texts) => texts.len(),
            Addresses::Bytes(bytes) => bytes.len(),
        }
    }

    /// The address of a row; none where there is none, or the text is of something else.
    fn get(&self, i: usize) -> Option<IpAddr> {
        match self {
            Addresses::Texts(texts) => texts.is_valid(i).then(|| texts.value(i).parse().ok())?,
            Addresses::Bytes(bytes) => {
                let bytes = bytes.is_valid(i).then(|| bytes.value(i))?;
                Some(address::address(u128::from_be_bytes(bytes.try_into().ok()?)))
            }
        }
    }

    /// Other addresses, as texts or as bytes.
    fn map(&self, are_texts: bool, f: impl Fn(IpAddr) -> IpAddr) -> ArrayRef {
        let mapped = (0..self.len()).map(|i| self.get(i).map(&f));
        if are_texts {
            return Arc::new(mapped.map(|a| a.map(|a| a.to_string())).collect::<StringArray>());
        }
        let mut bytes = FixedSizeBinaryBuilder::new(16);
        for a in mapped {
            match a {
                Some(a) => {
                    let number = address::number(a).to_be_bytes();
                    bytes.append_value(number).expect("it has 16 bytes");
                }
                None => bytes.append_null(),
            }
        }
        Arc::new(bytes.finish())
    }
}

fn in_net(addresses: &Addresses<'_>, networks: &[ColumnarValue]) -> Result<ArrayRef> {
    let mut all = Vec::new();
    for network in networks {
        let ColumnarValue::Scalar(text) = network else {
            return exec_err!("the networks of in_net are constants");
        };
        let Some(Some(text)) = text.try_as_str() else {
            return exec_err!("in_net: {text} is no network");
        };
        match Network::parse(text) {
            Some(network) => all.push(network),
            None => {
                return exec_err!(
                    "in_net: `{text}` is no network: 10.0.0.0/8 is one, whose other bits are zero"
                );
            }
        }
    }
    let is_in = |a: IpAddr| all.iter().any(|network| network.has(a));
    let result = (0..addresses.len()).map(|i| addresses.get(i).map(is_in));
    Ok(Arc::new(result.collect::<BooleanArray>()))
}

/// Link addresses of texts. A constant that is none is an error.
fn macs(texts: &ArrayRef, is_constant: bool) -> Result<ArrayRef> {
    let texts = texts.as_string::<i32>();
    let mut bytes = FixedSizeBinaryBuilder::new(6);
    for text in texts {
        match text.and_then(mac) {
            Some(mac) => bytes.append_value(mac)?,
            None if is_constant && text.is_some() => {
                return exec_err!("mac: `{}` is no link address", text.unwrap_or_default());
            }
            None => bytes.append_null(),
        }
    }
    Ok(Arc::new(bytes.finish()))
}

/// The six bytes of a link address.
pub(crate) fn mac(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() == 2 && !part.starts_with('+'))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(bytes)
}

/// The bits of addresses of IPv4 and of IPv6 that `prefix` keeps.
fn bits(given: &[ColumnarValue]) -> Result<(u8, u8)> {
    let bits = |value: &ColumnarValue| match value {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(n @ 0..=128))) => Ok(*n as u8),
        _ => exec_err!("the bits of prefix are a constant from 0 to 128"),
    };
    let four = bits(&given[0])?;
    Ok((four, given.get(1).map_or(Ok(four), bits)?))
}

/// A column of addresses as texts, if it is one of bytes.
pub(crate) fn texts_of(column: &ArrayRef) -> Result<ArrayRef> {
    Ok(match column.data_type() {
        DataType::FixedSizeBinary(16) => Addresses::of(column)?.map(true, |a| a),
        _ => cast(column, &DataType::Utf8)?,
    })
}
