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

/// A part of the keys of flows besides addresses, ports and protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyPart {
    /// The VLAN tags of the frame.
    Vlan,
    /// The identifier of the tunnel that the packet is in.
    Tunnel,
}

impl KeyPart {
    /// All of them.
    pub const ALL: [KeyPart; 2] = [KeyPart::Vlan, KeyPart::Tunnel];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            KeyPart::Vlan => "vlan",
            KeyPart::Tunnel => "tunnel",
        }
    }

    fn fields(self) -> &'static [FieldId] {
        const VLAN: &[FieldId] = &[FieldId::named("vlan.id"), FieldId::named("vlan.inner")];
        const TUNNEL: &[FieldId] = &[FieldId::named("tunnel.id")];
        match self {
            KeyPart::Vlan => VLAN,
            KeyPart::Tunnel => TUNNEL,
        }
    }
}

/// The parts that the keys `flow`, `conn` and `hosts` have in a run besides their own.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlowKey(u8);

impl FlowKey {
    /// The same, with another part.
    #[must_use]
    pub fn with(self, part: KeyPart) -> FlowKey {
        FlowKey(self.0 | 1 << part as u8)
    }

    /// Whether it has a part.
    pub fn has(self, part: KeyPart) -> bool {
        self.0 >> part as u8 & 1 != 0
    }

    /// The fields of all parts.
    pub fn fields(self) -> impl Iterator<Item = FieldId> {
        let parts = KeyPart::ALL.into_iter().filter(move |part| self.has(*part));
        parts.flat_map(|part| part.fields()).copied()
    }

    /// The fields of a key: with those of its parts where the key tells flows apart.
    pub fn of(self, key: &Key) -> impl Iterator<Item = FieldId> {
        let more = FlowKey(if key.name == "link" { 0 } else { self.0 });
        key.fields.iter().copied().chain(more.fields())
    }
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
