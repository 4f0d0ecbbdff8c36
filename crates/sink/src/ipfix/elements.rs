//! Information elements of IPFIX, by the names, numbers and types of IANA's registry, and the
//! columns that they carry.

use super::version::Version;
use crate::limits::IPFIX_TEXT_BYTES;
use crate::names::Names;
use weir_base::address::{is_v4, v6_of_number};
use weir_engine::rows::Arena;
use weir_plan::{Column, Schema, Type};

/// How a value of an element is written (RFC 7011, section 6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// An unsigned number of so many bytes.
    Unsigned(u16),
    /// A time: milliseconds since 1970, 8 bytes.
    Milliseconds,
    /// A time: seconds since 1900 and fractions of 2^-32 of them, 4 bytes each.
    Nanoseconds,
    /// A time: milliseconds since the exporter started, 4 bytes.
    Uptime,
    /// The lowest byte of a number.
    LowByte,
    /// A duration: milliseconds, 4 bytes.
    DurationMilliseconds,
    /// An address of IPv4.
    V4,
    /// An address of IPv6.
    V6,
    /// A MAC address.
    Mac,
    /// UTF-8 of any length.
    Text,
}

/// An information element.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Element {
    pub(super) name: &'static str,
    pub(super) id: u16,
    pub(super) form: Form,
}

const fn element(id: u16, name: &'static str, form: Form) -> Element {
    Element { name, id, form }
}

/// The elements that a column can be, by number.
#[rustfmt::skip]
pub(super) const ELEMENTS: &[Element] = &[
    element(1, "octetDeltaCount", Form::Unsigned(8)),
    element(2, "packetDeltaCount", Form::Unsigned(8)),
    element(3, "deltaFlowCount", Form::Unsigned(8)),
    element(4, "protocolIdentifier", Form::Unsigned(1)),
    element(5, "ipClassOfService", Form::Unsigned(1)),
    element(6, "tcpControlBits", Form::Unsigned(2)),
    element(7, "sourceTransportPort", Form::Unsigned(2)),
    element(8, "sourceIPv4Address", Form::V4),
    element(10, "ingressInterface", Form::Unsigned(4)),
    element(11, "destinationTransportPort", Form::Unsigned(2)),
    element(12, "destinationIPv4Address", Form::V4),
    element(14, "egressInterface", Form::Unsigned(4)),
    element(27, "sourceIPv6Address", Form::V6),
    element(28, "destinationIPv6Address", Form::V6),
    element(31, "flowLabelIPv6", Form::Unsigned(4)),
    element(52, "minimumTTL", Form::Unsigned(1)),
    element(53, "maximumTTL", Form::Unsigned(1)),
    element(56, "sourceMacAddress", Form::Mac),
    element(58, "vlanId", Form::Unsigned(2)),
    element(60, "ipVersion", Form::Unsigned(1)),
    element(80, "destinationMacAddress", Form::Mac),
    element(82, "interfaceName", Form::Text),
    element(85, "octetTotalCount", Form::Unsigned(8)),
    element(86, "packetTotalCount", Form::Unsigned(8)),
    element(136, "flowEndReason", Form::Unsigned(1)),
    element(152, "flowStartMilliseconds", Form::Milliseconds),
    element(153, "flowEndMilliseconds", Form::Milliseconds),
    element(156, "flowStartNanoseconds", Form::Nanoseconds),
    element(157, "flowEndNanoseconds", Form::Nanoseconds),
    element(161, "flowDurationMilliseconds", Form::DurationMilliseconds),
    element(176, "icmpTypeIPv4", Form::Unsigned(1)),
    element(177, "icmpCodeIPv4", Form::Unsigned(1)),
    element(178, "icmpTypeIPv6", Form::Unsigned(1)),
    element(179, "icmpCodeIPv6", Form::Unsigned(1)),
    element(192, "ipTTL", Form::Unsigned(1)),
    element(195, "ipDiffServCodePoint", Form::Unsigned(1)),
    element(243, "dot1qVlanId", Form::Unsigned(2)),
    element(245, "dot1qCustomerVlanId", Form::Unsigned(2)),
    element(323, "observationTimeMilliseconds", Form::Milliseconds),
    element(325, "observationTimeNanoseconds", Form::Nanoseconds),
    element(457, "httpStatusCode", Form::Unsigned(2)),
    element(459, "httpRequestMethod", Form::Text),
    element(460, "httpRequestHost", Form::Text),
    element(461, "httpRequestTarget", Form::Text),
    element(468, "httpUserAgent", Form::Text),
];

/// Elements that NetFlow 9 has in another form, or alone.
const NETFLOW9: &[Element] = &[
    element(6, "tcpControlBits", Form::LowByte),
    element(21, "flowEndSysUpTime", Form::Uptime),
    element(22, "flowStartSysUpTime", Form::Uptime),
];

/// The arena and the start time that values are written with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    pub(super) arena: &'a Arena,
    /// When the exporter started: milliseconds since 1970.
    pub(super) started_ms: i64,
}

/// Columns whose elements are others than `--names ipfix` calls them, or which it has no name for.
/// Times have two: every collector reads milliseconds, nanoseconds lose nothing.
const COLUMNS: &[(&str, Type, &[&str])] = &[
    ("first", Type::Time, FLOW_START),
    ("last", Type::Time, FLOW_END),
    ("end", Type::Time, FLOW_END),
    ("duration", Type::Duration, &["flowDurationMilliseconds"]),
    ("end_reason", Type::Int, &["flowEndReason"]),
    ("flows", Type::Int, &["deltaFlowCount"]),
    ("interface", Type::Str, &["interfaceName"]),
    ("icmp.type", Type::Int, &["icmpTypeIPv4"]),
    ("icmp.code", Type::Int, &["icmpCodeIPv4"]),
    ("icmp6.type", Type::Int, &["icmpTypeIPv6"]),
    ("icmp6.code", Type::Int, &["icmpCodeIPv6"]),
];

const FLOW_START: &[&str] = &["flowStartMilliseconds", "flowStartNanoseconds"];
const FLOW_END: &[&str] = &["flowEndMilliseconds", "flowEndNanoseconds"];
const OBSERVED: &[&str] = &["observationTimeMilliseconds", "observationTimeNanoseconds"];

/// A column, and an element that carries it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementColumn {
    pub(super) column: usize,
    pub(super) element: &'static Element,
}

/// The elements of all columns, in their order.
///
/// # Errors
/// The first column that has none, or whose element another column has, with a remedy.
pub(super) fn columns(schema: &Schema, version: Version) -> Result<Vec<ElementColumn>, String> {
    let title = version.title();
    let mut found: Vec<ElementColumn> = Vec::new();
    for (c, column) in schema.columns.iter().enumerate() {
        for name in names(column, schema, version) {
            let element = find(&name, version).ok_or_else(|| unknown(column, version))?;
            if element.form == Form::Text && version == Version::Netflow9 {
                return Err(format!(
                    "{title}: `{0}` is a column of texts, which can be of any length, and only \
                     IPFIX has a form for these; leave it out by `project-away {0}`",
                    column.name
                ));
            }
            if !element.form.takes(&column.ty) {
                let (name, ty) = (&column.name, &column.ty);
                return Err(format!(
                    "{title}: `{name}` is a column of type {ty}, which its element {} can't hold",
                    element.name
                ));
            }
            if let Some(other) = found.iter().find(|other| other.element == element) {
                let other = &schema.columns[other.column].name;
                return Err(format!(
                    "{title}: `{other}` and `{}` are both {name}; leave one out by `project-away`",
                    column.name
                ));
            }
            found.push(ElementColumn { column: c, element });
        }
    }
    Ok(found)
}

/// The element of this name.
fn find(name: &str, version: Version) -> Option<&'static Element> {
    let own = if version == Version::Netflow9 { NETFLOW9 } else { &[] };
    own.iter().chain(ELEMENTS).find(|element| element.name == name)
}

fn unknown(column: &Column, version: Version) -> String {
    format!(
        "{1} has no information element for the column `{0}` that Weir knows of; leave it out by \
         `project-away {0}`, or give it the name of an element: `rename octetDeltaCount = {0}`",
        column.name,
        version.title()
    )
}

/// The names of the elements of a column.
fn names(column: &Column, schema: &Schema, version: Version) -> Vec<String> {
    let has = |name: &str| schema.position(name).is_some();
    let all = |names: &[&str]| {
        let names = match version {
            Version::Netflow9 if names == FLOW_START => &["flowStartSysUpTime"],
            Version::Netflow9 if names == FLOW_END => &["flowEndSysUpTime"],
            _ => names,
        };
        names.iter().map(|&name| name.to_owned()).collect()
    };
    if column.name == "ts" && column.ty == Type::Time {
        // A row of a window or a session begins then, unless it says itself when it began.
        return all(if has("first") { OBSERVED } else { FLOW_START });
    }
    let of = |(name, ty, _): &&(&str, Type, &[&str])| column.name == *name && column.ty == *ty;
    if let Some((_, _, names)) = COLUMNS.iter().find(of) {
        return all(names);
    }
    let known = Names::Ipfix.of(column, has("ip.src"));
    let name = known.unwrap_or(&column.name);
    let six = name.replace("IPv4", "IPv6");
    match column.ty == Type::Ip && six != name && !has(&six) {
        true => vec![name.to_owned(), six],
        false => vec![name.to_owned()],
    }
}

impl Form {
    /// Bytes of a value, as in a template; 65535 where they vary.
    pub(super) fn length(self) -> u16 {
        match self {
            Form::Unsigned(bytes) => bytes,
            Form::Milliseconds | Form::Nanoseconds => 8,
            Form::Uptime | Form::DurationMilliseconds | Form::V4 => 4,
            Form::LowByte => 1,
            Form::V6 => 16,
            Form::Mac => 6,
            Form::Text => 65535,
        }
    }

    fn takes(self, ty: &Type) -> bool {
        match self {
            Form::Unsigned(_) | Form::LowByte => *ty == Type::Int,
            Form::Milliseconds | Form::Nanoseconds | Form::Uptime => *ty == Type::Time,
            Form::DurationMilliseconds => *ty == Type::Duration,
            Form::V4 | Form::V6 => *ty == Type::Ip,
            Form::Mac => *ty == Type::Mac,
            Form::Text => *ty == Type::Str,
        }
    }

    /// Appends a value, given in the raw form of its column; whether the element can hold it.
    pub(super) fn put(self, raw: u128, values: &Values<'_>, out: &mut Vec<u8>) -> bool {
        let number = raw as u64 as i64;
        match self {
            Form::Unsigned(bytes) => put_unsigned(number, bytes.into(), out),
            Form::Milliseconds => put_unsigned(number.div_euclid(1_000_000), 8, out),
            Form::Nanoseconds => put_nanoseconds(number, out),
            Form::Uptime => put_uptime(number.div_euclid(1_000_000) - values.started_ms, out),
            Form::LowByte => put_unsigned(number & 0xff, 1, out),
            Form::DurationMilliseconds => put_unsigned(number.div_euclid(1_000_000), 4, out),
            Form::V4 | Form::V6 => {
                let is_four = is_v4((raw >> 64) as u64, raw as u64);
                match (is_four, self) {
                    (true, Form::V4) => out.extend_from_slice(&(raw as u32).to_be_bytes()),
                    (false, Form::V6) => out.extend_from_slice(&v6_of_number(raw).to_be_bytes()),
                    _ => return false,
                }
                true
            }
            Form::Mac => {
                out.extend_from_slice(&(raw as u64).to_be_bytes()[2..]);
                true
            }
            Form::Text => {
                put_text(values.arena.get(raw as u64), out);
                true
            }
        }
    }
}

fn put_unsigned(number: i64, bytes: usize, out: &mut Vec<u8>) -> bool {
    let fits = number >= 0 && (bytes >= 8 || (number as u64) >> (8 * bytes) == 0);
    if fits {
        out.extend_from_slice(&number.to_be_bytes()[8 - bytes..]);
    }
    fits
}

/// Milliseconds of an uptime, which wraps; there is none before the start.
fn put_uptime(ms: i64, out: &mut Vec<u8>) -> bool {
    if ms >= 0 {
        out.extend_from_slice(&(ms as u32).to_be_bytes());
    }
    ms >= 0
}

/// RFC 7011, section 6.1.9: the format of NTP, whose seconds begin anew in 2036.
fn put_nanoseconds(ns: i64, out: &mut Vec<u8>) -> bool {
    const SECONDS_1900_TO_1970: i64 = 2_208_988_800;
    if ns < 0 {
        return false;
    }
    let seconds = (ns / 1_000_000_000 + SECONDS_1900_TO_1970) as u32;
    // Rounded up, so that a reader that rounds down has the nanosecond that was written.
    let fraction = (((ns % 1_000_000_000) as u64) << 32).div_ceil(1_000_000_000) as u32;
    out.extend_from_slice(&seconds.to_be_bytes());
    out.extend_from_slice(&fraction.to_be_bytes());
    true
}

/// A text with its length (RFC 7011, section 7), cut to a whole character where it is too long.
fn put_text(bytes: &[u8], out: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(bytes);
    let mut end = text.len().min(IPFIX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    match u8::try_from(end) {
        Ok(short) if short < 255 => out.push(short),
        _ => {
            out.push(255);
            out.extend_from_slice(&(end as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(&text.as_bytes()[..end]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::output;

    #[test]
    fn elements_are_sorted_and_named_once() {
        assert!(ELEMENTS.is_sorted_by(|a, b| a.id < b.id));
        for element in ELEMENTS {
            assert_eq!(ELEMENTS.iter().filter(|other| other.name == element.name).count(), 1);
        }
        let columns = COLUMNS.iter().flat_map(|(_, ty, names)| names.iter().map(move |n| (n, ty)));
        for (name, ty) in columns.chain(OBSERVED.iter().map(|n| (n, &Type::Time))) {
            let element = ELEMENTS.iter().find(|element| element.name == *name).expect(name);
            assert!(element.form.takes(ty), "{name}");
        }
    }

    #[track_caller]
    fn names_of(columns_are: &[(&str, Type)], expected: Result<&str, &str>) {
        let found = columns(&output(None, columns_are).schema, Version::Ipfix);
        let names = |found: Vec<ElementColumn>| {
            found.iter().map(|found| found.element.name).collect::<Vec<_>>().join(" ")
        };
        match (found.map(names), expected) {
            (Ok(names), Ok(expected)) => assert_eq!(names, expected),
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn columns_are_elements() {
        names_of(
            &[("ts", Type::Time), ("ip.src", Type::Ip), ("sport", Type::Int), ("end", Type::Time)],
            Ok("flowStartMilliseconds flowStartNanoseconds sourceIPv4Address sourceIPv6Address \
                sourceTransportPort flowEndMilliseconds flowEndNanoseconds"),
        );
        names_of(
            &[("ts", Type::Time), ("first", Type::Time)],
            Ok("observationTimeMilliseconds observationTimeNanoseconds flowStartMilliseconds \
                flowStartNanoseconds"),
        );
        // As `--names ipfix` has them, and as a query may call them.
        names_of(
            &[("sourceIPv4Address", Type::Ip), ("sourceIPv6Address", Type::Ip)],
            Ok("sourceIPv4Address sourceIPv6Address"),
        );
        names_of(
            &[("destinationIPv4Address", Type::Ip), ("octetTotalCount", Type::Int)],
            Ok("destinationIPv4Address destinationIPv6Address octetTotalCount"),
        );
    }

    #[test]
    fn columns_without_an_element_are_refused() {
        names_of(&[("n", Type::Int)], Err("the column `n` that Weir knows of"));
        names_of(&[("sport", Type::Str)], Err("the column `sport` that Weir knows of"));
        names_of(
            &[("vlanId", Type::Str)],
            Err("`vlanId` is a column of type string, which its element vlanId can't hold"),
        );
        names_of(&[("last", Type::Time), ("end", Type::Time)], Err("`last` and `end` are both"));
    }

    #[test]
    fn values_at_the_edges_of_each_width() {
        let arena = Arena::default();
        let put = |form: Form, number: i64| {
            let mut out = Vec::new();
            let values = Values { arena: &arena, started_ms: 1000 };
            form.put(u128::from(number as u64), &values, &mut out).then_some(out)
        };
        for bytes in [1, 2, 4] {
            let most = (1i64 << (8 * bytes)) - 1;
            let written = |n: i64| Some(n.to_be_bytes()[8 - usize::from(bytes)..].to_vec());
            for n in [0, 1, most - 1, most] {
                assert_eq!(put(Form::Unsigned(bytes), n), written(n), "{bytes}");
            }
            for n in [-1, most + 1, i64::MIN, i64::MAX] {
                assert_eq!(put(Form::Unsigned(bytes), n), None, "{bytes}");
            }
        }
        assert_eq!(put(Form::Unsigned(8), i64::MAX), Some(i64::MAX.to_be_bytes().to_vec()));
        assert_eq!(put(Form::Unsigned(8), -1), None);
        assert_eq!(put(Form::Milliseconds, -1), None);
        assert_eq!(put(Form::DurationMilliseconds, i64::MAX), None);
        // 1970 is 2,208,988,800 seconds after 1900.
        assert_eq!(put(Form::Nanoseconds, 0), Some(vec![0x83, 0xaa, 0x7e, 0x80, 0, 0, 0, 0]));
        for ns in [1, 499_999_999, 500_000_000, 999_999_999] {
            let bytes = put(Form::Nanoseconds, ns).expect("a time");
            let fraction = u32::from_be_bytes(bytes[4..].try_into().expect("4 bytes"));
            assert_eq!((u64::from(fraction) * 1_000_000_000) >> 32, ns as u64);
        }
        assert_eq!(put(Form::Nanoseconds, -1), None);
        // Milliseconds since the start, a second after 1970.
        let uptime = |ms: i64| put(Form::Uptime, ms * 1_000_000);
        assert_eq!((uptime(999), uptime(1000)), (None, Some(vec![0; 4])));
        assert_eq!(uptime(1000 + i64::from(u32::MAX)), Some(vec![255; 4]));
        assert_eq!(uptime(1001 + i64::from(u32::MAX)), Some(vec![0; 4]));
        assert_eq!(
            (put(Form::Uptime, i64::MIN), put(Form::LowByte, 0x1ff)),
            (None, Some(vec![255]))
        );
    }

    #[test]
    fn texts_have_their_length_and_are_cut_between_characters() {
        let mut arena = Arena::default();
        let mut put = |text: &str| {
            let mut out = Vec::new();
            let handle = arena.put(text.as_bytes());
            let values = Values { arena: &arena, started_ms: 0 };
            assert!(Form::Text.put(handle.into(), &values, &mut out));
            out
        };
        assert_eq!(put(""), [0]);
        assert_eq!(put("ab"), [2, b'a', b'b']);
        assert_eq!(put(&"x".repeat(254))[0], 254);
        assert_eq!(put(&"x".repeat(255))[..3], [255, 0, 255]);
        let long = put(&"é".repeat(IPFIX_TEXT_BYTES));
        assert_eq!(long.len(), 3 + IPFIX_TEXT_BYTES);
        let odd = put(&format!("x{}", "é".repeat(IPFIX_TEXT_BYTES)));
        assert_eq!(odd.len(), 3 + IPFIX_TEXT_BYTES - 1);
        assert!(std::str::from_utf8(&odd[3..]).is_ok());
    }
}
