//! Rows of the naive model, the packets that they are at first, and what is said of time.

use super::transport::TransportBytes;
use std::collections::BTreeMap;
use std::rc::Rc;
use weir_packet::fields::FieldId;
use weir_packet::interface::CapturePoint;
use weir_packet::source::{FrameBatch, LinkType};
use weir_plan::Value;

/// A row between stages.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Event time.
    pub(super) ts: Option<i64>,
    /// The packet, while the row still is one.
    pub(super) packet: Option<Rc<PacketValues>>,
    pub(super) cells: Vec<Value>,
}

/// The statement of a step about time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Mark {
    /// No row before this time is on its way.
    At(i64),
    /// No row at all.
    End,
}

/// A packet: the fields and parts that the program reads, and the frame as it was captured.
#[derive(Debug)]
pub(super) struct PacketValues {
    pub(super) fields: BTreeMap<FieldId, Value>,
    /// The parts of each kind, as [`super::decode`] says; none where none are read.
    pub(super) parts: Vec<Value>,
    pub(super) link: LinkType,
    pub(super) ts: i64,
    pub(super) len: u32,
    pub(super) capture_point: CapturePoint,
    pub(super) bytes: Vec<u8>,
    /// Where the IP packet starts, and what follows its headers, where they were read.
    pub(super) ip: Option<(usize, Option<usize>)>,
    /// The transport, where it is TCP or UDP.
    pub(super) segment: Option<TransportBytes>,
}

impl PacketValues {
    /// Frame `i` of a batch.
    pub(super) fn new(
        fields: BTreeMap<FieldId, Value>,
        parts: Vec<Value>,
        segment: Option<TransportBytes>,
        ip: Option<(usize, Option<usize>)>,
        batch: &FrameBatch,
        i: usize,
    ) -> Rc<PacketValues> {
        let (ts, len, bytes) = (batch.ts()[i], batch.lens()[i], batch.frame(i).to_vec());
        let (link, capture_point) = (batch.link, batch.capture_point(i));
        Rc::new(PacketValues { fields, parts, link, ts, len, capture_point, bytes, ip, segment })
    }
}

/// Sets a cell; a position beyond the last cell is the next one.
pub(super) fn set_cell(cells: &mut Vec<Value>, position: usize, value: Value) {
    match cells.get_mut(position) {
        Some(cell) => *cell = value,
        None => cells.insert(position, value),
    }
}
