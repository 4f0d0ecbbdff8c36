//! `analyze tcp`: what each segment is among the other segments of its connection.

use crate::expr::Expr;
use crate::schema::Schema;
use crate::types::Type;
use weir_packet::fields::{FieldId, FlowKey, by_name, key_by_name};

/// Follows the two directions of each TCP connection, and adds to every segment what it is:
/// retransmitted, out of order, a duplicate acknowledgment, and so on, with round-trip times. A row
/// without a whole TCP header gets no values.
#[derive(Clone, PartialEq, Debug)]
pub struct AnalyzeTcp {
    /// The parts of the connection's key, the same in both directions.
    pub keys: Vec<Expr>,
    /// The inputs that are read of each row: of the types of [`TCP_INPUTS`], in that order.
    pub inputs: Vec<Expr>,
    /// Name, position in the output schema and type of each column, in the order of
    /// [`TCP_COLUMNS`].
    pub columns: Vec<(String, usize, Type)>,
    /// Idle time after which a connection is forgotten, counted as by [`crate::Scan`].
    pub idle_ns: i64,
    /// Connections held at once; beyond it one is evicted and counted.
    pub max_keys: u64,
}

/// The fields that `analyze tcp` reads, with their types.
pub const TCP_INPUTS: &[(&str, Type)] = &[
    ("conn.forward", Type::Bool),
    ("tcp.seq", Type::Int),
    ("tcp.ackno", Type::Int),
    ("tcp.flags", Type::Int),
    ("tcp.window", Type::Int),
    ("tcp.payload_len", Type::Int),
    ("tcp.wscale", Type::Int),
    ("tcp.tsval", Type::Int),
    ("tcp.tsecr", Type::Int),
];

/// A column that `analyze tcp` adds.
#[derive(Debug)]
pub struct TcpColumn {
    /// Its name, as Wireshark calls it where that has the same.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// Its meaning.
    pub doc: &'static str,
}

/// The columns that `analyze tcp` adds: those that are true or false first.
pub const TCP_COLUMNS: &[TcpColumn] = &[
    flag("flags", "whether any of the next fifteen holds"),
    flag(
        "retransmission",
        "data, a SYN or a FIN that was sent before: these, the fast and the spurious ones",
    ),
    flag(
        "fast_retransmission",
        "retransmitted within 20 ms after the second or a later duplicate ACK that asks for it",
    ),
    flag("spurious_retransmission", "retransmitted after it was acknowledged"),
    flag(
        "out_of_order",
        "below the highest sequence number, but sent so soon after it that it was only overtaken: \
         sooner than `initial_rtt`, or 3 ms if that is not known",
    ),
    flag("lost_segment", "beyond the next sequence number: a segment before it was not captured"),
    flag("ack_lost_segment", "acknowledges data that was not captured"),
    flag("duplicate_ack", "repeats the acknowledgment and the window of the segment before"),
    flag("keep_alive", "no data or one byte, one below the next sequence number"),
    flag("keep_alive_ack", "repeats its acknowledgment to answer a keep-alive"),
    flag("zero_window", "has no room for data; not of SYN, FIN and RST"),
    flag("zero_window_probe", "one byte to ask a receiver whose window is zero"),
    flag("zero_window_probe_ack", "answers such a probe: the window is zero still"),
    flag("window_update", "changes nothing but the window"),
    flag("window_full", "sends as much as the receiver's window takes, if the scale is known"),
    flag("reused_ports", "a SYN or SYN-ACK of another connection between the same ports"),
    flag("new_connection", "the first segment of its connection"),
    flag("new_direction", "the first segment of its direction of the connection"),
    int("duplicate_ack_num", "which duplicate of that acknowledgment it is, from 1"),
    int("bytes_in_flight", "of a segment with data: bytes sent and not acknowledged, with it"),
    span(
        "ack_rtt",
        "of an ACK: the time since the segment was sent that ends where it acknowledges, unless \
         that was sent twice; at most eight segments of a direction are timed at once",
    ),
    span("initial_rtt", "from the latest SYN to the first ACK of the connection, once it was seen"),
    span("server_rtt", "of a SYN-ACK: the time since the SYN, unless one was sent twice"),
    span("client_rtt", "of the ACK of a SYN-ACK: the time since that, unless one was sent twice"),
    span(
        "tsval_rtt",
        "of the first ACK that echoes a time stamp (RFC 7323): the time since the first segment \
         with data, or SYN, that had it; one of a direction is waited for at once",
    ),
];

const fn flag(name: &'static str, doc: &'static str) -> TcpColumn {
    TcpColumn { name, ty: Type::Bool, doc }
}

const fn int(name: &'static str, doc: &'static str) -> TcpColumn {
    TcpColumn { name, ty: Type::Int, doc }
}

const fn span(name: &'static str, doc: &'static str) -> TcpColumn {
    TcpColumn { name, ty: Type::Duration, doc }
}

/// The prefix of the names of [`TCP_COLUMNS`].
pub const TCP_PREFIX: &str = "tcp.analysis.";

impl AnalyzeTcp {
    /// The fields of the key, where flows have these parts.
    pub fn key_fields(flow_key: FlowKey) -> Vec<FieldId> {
        flow_key.of(key_by_name("conn").expect("a key")).collect()
    }

    /// The fields that are read.
    pub fn input_fields() -> impl Iterator<Item = FieldId> {
        TCP_INPUTS.iter().map(|(name, _)| by_name(name).expect("in the catalogue"))
    }

    /// Puts its columns into a schema.
    pub fn put(&self, schema: &mut Schema) {
        for (name, _, ty) in &self.columns {
            schema.put(name, ty.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_fields_of_these_types() {
        let types: Vec<Type> =
            AnalyzeTcp::input_fields().map(|id| Type::from(id.info().ty)).collect();
        assert!(types.iter().eq(TCP_INPUTS.iter().map(|(_, ty)| ty)), "{types:?}");
        assert_eq!(AnalyzeTcp::key_fields(FlowKey::default()).len(), 5);
    }

    #[test]
    fn names_are_unique_and_flags_come_first() {
        let names: std::collections::BTreeSet<_> = TCP_COLUMNS.iter().map(|c| c.name).collect();
        assert_eq!(names.len(), TCP_COLUMNS.len());
        assert!(TCP_COLUMNS.is_sorted_by_key(|c| c.ty != Type::Bool));
    }

    /// WEIR_UPDATE_DOCS does not write these rows: a column that is added is added there by hand.
    #[test]
    fn the_reference_has_each_column() {
        let reference = include_str!("../../../docs/operators.md");
        for TcpColumn { name, ty, doc } in TCP_COLUMNS {
            let row = format!("| `{name}` | {ty} | {doc} |\n");
            assert!(reference.contains(&row), "docs/operators.md lacks {row}");
        }
    }
}
