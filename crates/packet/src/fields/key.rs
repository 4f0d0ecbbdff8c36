//! Named groups of fields.

use super::id::FieldId;

/// A named group of fields that queries use as a key, such as `flow`.
#[derive(Debug)]
pub struct Key {
    /// The name in queries.
    pub name: &'static str,
    /// Its parts, in order.
    pub fields: &'static [FieldId],
    /// One sentence.
    pub doc: &'static str,
}

/// The named key called `name`.
pub fn key_by_name(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.name == name)
}

/// The named keys.
pub static KEYS: &[Key] = &[
    Key {
        name: "flow",
        fields: &[
            FieldId::named("ip.src"),
            FieldId::named("sport"),
            FieldId::named("ip.dst"),
            FieldId::named("dport"),
            FieldId::named("ip.proto"),
        ],
        doc: "One direction of a connection: the 5-tuple of addresses, ports and protocol.",
    },
    Key {
        name: "conn",
        fields: &[
            FieldId::named("conn.a_ip"),
            FieldId::named("conn.a_port"),
            FieldId::named("conn.b_ip"),
            FieldId::named("conn.b_port"),
            FieldId::named("ip.proto"),
        ],
        doc: "A connection in both directions: the smaller (address, port) endpoint first.",
    },
    Key {
        name: "hosts",
        fields: &[FieldId::named("hosts.a"), FieldId::named("hosts.b")],
        doc: "A pair of IP addresses, the same in both directions.",
    },
    Key {
        name: "link",
        fields: &[FieldId::named("link.a"), FieldId::named("link.b")],
        doc: "A pair of Ethernet addresses, the same in both directions.",
    },
];
