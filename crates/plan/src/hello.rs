//! The stage that puts ClientHellos together.

use crate::expr::Expr;
use crate::schema::Schema;
use crate::types::Type;
use weir_packet::fields::{FlowKey, key_by_name};

/// Keeps of packets those that complete a ClientHello, of TLS over TCP or of QUIC, and adds what
/// the hello says as columns ([`HELLO_COLUMNS`]). A hello may span segments, records and Initial
/// packets, which come in any order, and more than once; what came first holds.
///
/// A flow is forgotten after `idle_ns` without a packet that is taken in, as [`crate::Scan`] counts
/// idle time. Taken in are the SYN of a client, segments at the place where a hello is awaited or
/// was complete, and Initial packets that a client protected.
#[derive(Clone, PartialEq, Debug)]
pub struct Hello {
    /// Key parts, one at least, that tell flows apart.
    pub keys: Vec<Expr>,
    /// Idle time after which a flow is forgotten.
    pub idle_ns: i64,
    /// Flows held at once; beyond it the one that took in no packet for longest is evicted, and
    /// counted if it holds the start of a hello.
    pub max_flows: u64,
    /// Where the columns stand in the output schema.
    pub columns: Vec<usize>,
}

/// The columns: what carries the hello (`tcp`, `quic`); of the hello the highest version, the name
/// of the server, protocols, fingerprint and whether it has the extension of an encrypted one; how
/// many packets brought bytes of it, and the time of the first of them.
pub const HELLO_COLUMNS: [(&str, Type); 8] = [
    ("hello.transport", Type::Str),
    ("hello.version", Type::Int),
    ("hello.sni", Type::Str),
    ("hello.alpn", Type::Str),
    ("hello.ja4", Type::Str),
    ("hello.ech", Type::Bool),
    ("hello.packets", Type::Int),
    ("hello.first", Type::Time),
];

impl Hello {
    /// The parts of the key `flow`, where it has these.
    pub fn flow(flow_key: FlowKey) -> Vec<Expr> {
        let key = key_by_name("flow").expect("a key of the catalogue");
        flow_key.of(key).map(Expr::field).collect()
    }

    /// Puts its columns into a schema; says where they stand.
    pub fn put(schema: &mut Schema) -> Vec<usize> {
        HELLO_COLUMNS.into_iter().map(|(name, ty)| schema.put(name, ty)).collect()
    }
}
