//! Parts that a packet may have several of: the answers of a DNS message, the options of a TCP
//! header.
//!
//! A field is one value of a packet; these are rows of values, which [`crate::read::read_parts`]
//! hands out one after the other. Language, engine and documentation share this table.

use crate::column::Repr;
use crate::fields::FieldType;

/// A kind of parts that a packet may have several of; the discriminant is the place in
/// [`REPEATED`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each is described by its line in REPEATED")]
pub enum Repeated {
    DnsAnswer,
    TcpOption,
    VlanTag,
    MplsEntry,
}

/// The description of a kind of parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// Its name, such as `dns.answer`.
    pub name: &'static str,
    /// The kind.
    pub what: Repeated,
    /// The values of a part, in order.
    pub parts: &'static [Part],
    /// One sentence.
    pub doc: &'static str,
}

/// A value of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its name behind that of the part: `ttl` of `answer.ttl`.
    pub name: &'static str,
    /// Its type.
    pub ty: PartType,
}

/// The type of a value of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each is the type of that name")]
pub enum PartType {
    Bool,
    Int,
    Ip,
    Str,
    Bytes,
}

/// A value of a part; texts and bytes as they are to be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartValue<'a> {
    /// The part does not have it.
    Absent,
    /// A bool.
    Bool(bool),
    /// An int.
    Int(u64),
    /// An address, IPv4 as IPv4-mapped IPv6.
    Ip(u128),
    /// A string, of printable ASCII and at most [`crate::limits::TEXT_MAX`] bytes; or bytes.
    Bytes(&'a [u8]),
}

impl PartType {
    /// How a column stores it.
    pub fn repr(self) -> Repr {
        match self {
            PartType::Bool => FieldType::Bool.repr(),
            PartType::Ip => FieldType::Ip.repr(),
            PartType::Int | PartType::Str | PartType::Bytes => FieldType::Int.repr(),
        }
    }
}

const fn part(name: &'static str, ty: PartType) -> Part {
    Part { name, ty }
}

/// All kinds, in the order of [`Repeated`].
pub const REPEATED: &[Info] = &[
    Info {
        name: "dns.answer",
        what: Repeated::DnsAnswer,
        parts: &[
            part("name", PartType::Str),
            part("type", PartType::Int),
            part("class", PartType::Int),
            part("ttl", PartType::Int),
            part("addr", PartType::Ip),
            part("data", PartType::Str),
        ],
        doc: "An answer of a DNS message: whose it is, its type and class, the seconds it may be \
              kept, the address that it holds, and its data as text: addresses and names as they \
              are written, what is not known as `\\# LENGTH HEX` (RFC 3597).",
    },
    Info {
        name: "tcp.option",
        what: Repeated::TcpOption,
        parts: &[
            part("kind", PartType::Int),
            part("len", PartType::Int),
            part("value", PartType::Bytes),
        ],
        doc: "An option of the TCP header: its kind, its length with kind and length, and its \
              value. Padding (kinds 0 and 1) is left out.",
    },
    Info {
        name: "vlan.tag",
        what: Repeated::VlanTag,
        parts: &[
            part("id", PartType::Int),
            part("pcp", PartType::Int),
            part("dei", PartType::Bool),
        ],
        doc: "A VLAN tag, the outermost first: its identifier, its priority, and whether the \
              frame may rather be dropped.",
    },
    Info {
        name: "mpls.entry",
        what: Repeated::MplsEntry,
        parts: &[
            part("label", PartType::Int),
            part("exp", PartType::Int),
            part("ttl", PartType::Int),
            part("bottom", PartType::Bool),
        ],
        doc: "An entry of the MPLS label stack, the outermost first: its label, its traffic \
              class, its time to live, and whether it is the last.",
    },
];

impl Repeated {
    /// The description of the kind.
    pub fn info(self) -> &'static Info {
        &REPEATED[self as usize]
    }
}

impl Info {
    /// The last word of its name, which the names of its columns begin with: `answer`.
    pub fn prefix(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }
}

/// The kind of parts of that name.
pub fn by_name(name: &str) -> Option<&'static Info> {
    REPEATED.iter().find(|info| info.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        for (i, info) in REPEATED.iter().enumerate() {
            assert_eq!(info.what as usize, i);
            assert_eq!(by_name(info.name), Some(info));
            assert_eq!(info.what.info(), info);
            assert!(crate::fields::by_name(info.name).is_none(), "{} is a field too", info.name);
            assert!(info.doc.ends_with('.'));
        }
        assert_eq!(by_name("dns.answer").map(|i| i.prefix()), Some("answer"));
    }
}
