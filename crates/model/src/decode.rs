//! Frames as rows of the naive model: what a program reads of one frame at a time.
//!
//! The readers of fields are those of the engine. The values that they read are compared with what
//! tshark says (`weir/tests/tshark`), which knows more than a model could state here.

use super::row::{PacketValues, Row};
use super::transport::TransportBytes;
use super::value::of_type;
use std::collections::BTreeSet;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::{FieldId, FieldType};
use weir_packet::read::{Transport, Transports, read_field, read_field_text, read_parts};
use weir_packet::repeated::{Info, PartType, PartValue, REPEATED, Repeated};
use weir_packet::source::FrameBatch;
use weir_packet::tcp::{ACK, SYN};
use weir_packet::unread::UnreadCounts;
use weir_packet::walk::{self, Layer, Layers};
use weir_plan::physical::{fields_read, parts_read};
use weir_plan::{Program, Value};

/// Decodes frames one by one: the fields that a program asks for, and repeated parts if it does.
pub(super) struct Decoder {
    one: FrameBatch,
    pub(super) layers: Layers,
    pub(super) unread: UnreadCounts,
    columns: Vec<(FieldId, Column)>,
    /// Whether repeated parts are asked for.
    parts: bool,
}

impl Decoder {
    pub(super) fn new(program: &Program) -> Decoder {
        let asked: BTreeSet<FieldId> =
            program.pipelines.iter().flat_map(|p| fields_read(&p.stages)).collect();
        let column = |id: FieldId| (id, Column::new(id.info().ty.repr()));
        let parts: Vec<Repeated> =
            program.pipelines.iter().flat_map(|p| parts_read(&p.stages)).collect();
        Decoder {
            one: FrameBatch::new(),
            layers: Layers::new(),
            unread: UnreadCounts::of(asked.iter().copied(), parts.iter().copied()),
            columns: asked.into_iter().map(column).collect(),
            parts: !parts.is_empty(),
        }
    }

    /// The row of frame `i` of `batch`.
    pub(super) fn row(&mut self, batch: &FrameBatch, i: usize) -> Row {
        let (chunk, base) = batch.chunk();
        self.one.restart(chunk, base, batch.link);
        self.one.extend_from(batch, &[i as u16], 0);
        walk::classify(&self.one, &mut self.layers);
        self.unread.observe(&self.one, &self.layers);
        let fields = self.columns.iter_mut().map(|(id, column)| {
            let (one, ty, mut text) = (Bits::first(1), id.info().ty, Vec::new());
            if ty.is_text() {
                let put = |bytes: &[u8]| {
                    text = bytes.to_vec();
                    0
                };
                read_field_text(*id, &self.one, &self.layers, one, column, put);
            } else {
                read_field(*id, &self.one, &self.layers, one, column);
            }
            let value = match (column.present.has(0), ty) {
                (false, _) => Value::Absent,
                (true, FieldType::Str) => Value::Str(String::from_utf8_lossy(&text).into()),
                (true, FieldType::Bytes) => Value::Bytes(text.into()),
                (true, ty) => of_type(&ty.into(), column.raw(0)),
            };
            (*id, value)
        });
        let parts = if self.parts { parts(&self.one, &self.layers) } else { Vec::new() };
        let segment =
            Transports::new(&self.one, &self.layers).of(0).map(|transport| match transport {
                Transport::Tcp(tcp) => {
                    let [syn, ack] = [SYN, ACK].map(|flag| tcp.flags() & flag != 0);
                    TransportBytes::Tcp { seq: tcp.seq(), syn, ack, data: tcp.payload().to_vec() }
                }
                Transport::Udp(udp) => TransportBytes::Udp(udp.payload().to_vec()),
            });
        let is_ip = self.layers.has(Layer::Ipv4).or(self.layers.has(Layer::Ipv6)).has(0);
        let transport = self.layers.proto_known.has(0).then(|| self.layers.l4[0].into());
        let ip = is_ip.then(|| (self.layers.l3[0].into(), transport));
        let packet = PacketValues::new(fields.collect(), parts, segment, ip, batch, i);
        let ts = Some(batch.ts()[i]).filter(|&ts| ts != weir_packet::time::NO_TIME);
        Row { ts, packet: Some(packet), cells: Vec::new() }
    }
}

/// The parts of each kind that the one frame of a batch has: how many were left out,
/// and a tuple for each.
fn parts(one: &FrameBatch, layers: &Layers) -> Vec<Value> {
    let kind = |info: &Info| {
        let mut tuples = Vec::new();
        let left_out = read_parts(info.what, one, layers, Bits::first(1), |_, values| {
            let values = info.parts.iter().zip(values).map(|(part, v)| value(part.ty, v));
            tuples.push(Value::Tuple(values.collect()));
        });
        Value::Tuple(vec![Value::Int(left_out as i64), Value::Tuple(tuples)])
    };
    REPEATED.iter().map(kind).collect()
}

fn value(ty: PartType, v: &PartValue<'_>) -> Value {
    match (ty, *v) {
        (_, PartValue::Absent) => Value::Absent,
        (_, PartValue::Bool(b)) => Value::Bool(b),
        (_, PartValue::Int(n)) => Value::Int(n as i64),
        (_, PartValue::Ip(bits)) => Value::Ip(bits),
        (PartType::Bytes, PartValue::Bytes(b)) => Value::Bytes(b.into()),
        (_, PartValue::Bytes(b)) => Value::Str(String::from_utf8_lossy(b).into()),
    }
}
