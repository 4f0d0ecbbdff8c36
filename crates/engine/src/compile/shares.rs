//! The share of each stage in the memory of a run, by how much a key of it takes.

use crate::key::key_words;
use crate::limits::HELLO_PIECES_EACH;
use crate::ops::alert;
use crate::ops::analyze_tcp::Tracked;
use crate::peers::BuildContext;
use crate::room::{RoomShare, row_bytes};
use weir_plan::limits::{
    ALERT_KEYS_MAX, HELLO_FLOWS_MAX, JOIN_ROWS_MAX, SCAN_KEYS_MAX, TOP_KEYS_MAX,
};
use weir_plan::{Alert, AnalyzeTcp, Hello, Join, Per, Scan, Schema};

/// Words of a row beside key and cells: time, links of lists.
const ROW_HEAD: usize = 4;

/// Words of the state of a flow that a `hello` holds, QUIC keys among them.
const HELLO_WORDS: usize = 24;

/// Columns of a packet that a row of packets is taken to have, besides its own.
const PACKET_COLUMNS: usize = 8;

impl BuildContext<'_> {
    fn share(&self, bound: (u64, u64), each: u64) -> RoomShare {
        RoomShare::of(self.room, bound, each)
    }

    /// The share of a `scan`, or of a stage that is one, and whose bound is this by default.
    pub(crate) fn scan_share(&self, scan: &Scan, default: u64) -> RoomShare {
        let row = row_bytes(key_words(&scan.keys) + ROW_HEAD + scan.states.len());
        self.share((scan.max_keys, default), row)
    }

    /// The share of an `analyze tcp`.
    pub(crate) fn connections_share(&self, a: &AnalyzeTcp) -> RoomShare {
        let row = row_bytes(key_words(&a.keys) + ROW_HEAD + Tracked::ALL.words());
        self.share((a.max_keys, SCAN_KEYS_MAX), row)
    }

    /// The share of a `hello`.
    pub(crate) fn hello_share(&self, h: &Hello) -> RoomShare {
        let flow =
            row_bytes(key_words(&h.keys) + ROW_HEAD + HELLO_WORDS) + HELLO_PIECES_EACH as u64;
        self.share((h.max_flows, HELLO_FLOWS_MAX), flow)
    }

    /// The share of a `top` of the best `n` rows, of these columns, per key.
    pub(crate) fn top_share(&self, n: u64, per: &Per, rows: &Schema) -> RoomShare {
        let rows = (8 * (width(rows) + ROW_HEAD) as u64).saturating_mul(n);
        let key = row_bytes(key_words(&per.keys) + ROW_HEAD);
        self.share((per.max_keys, TOP_KEYS_MAX), key.saturating_add(rows))
    }

    /// The share of a `join` whose left rows have these columns.
    pub(crate) fn join_share(&self, j: &Join, left: &Schema) -> RoomShare {
        let row = width(left).max(width(&j.schema)) + ROW_HEAD;
        self.share((j.max_rows, JOIN_ROWS_MAX), row_bytes(row))
    }

    /// The share of an `alert` over rows of these columns.
    pub(crate) fn alert_share(&self, a: &Alert, rows: &Schema) -> RoomShare {
        self.share((a.max_keys, ALERT_KEYS_MAX), alert::key_bytes(a, rows) as u64)
    }
}

/// Words of the columns of a row.
fn width(schema: &Schema) -> usize {
    let words = schema.columns.iter().map(|c| c.ty.repr().words().max(1)).sum::<usize>();
    words + if schema.columns.is_empty() { PACKET_COLUMNS } else { 0 }
}
