//! Packets as JSON: every field of the catalogue that they have.

use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use weir_engine::functions::Functions;
use weir_engine::rows::Sink as _;
use weir_engine::run::{Options, run};
use weir_packet::egress::Sent;
use weir_packet::fields::{FIELDS, by_name};
use weir_packet::interface::InterfaceNames;
use weir_packet::source::{Account, Chunk, FrameBatch, Source, SourceError};
use weir_packet::time::rfc3339;
use weir_packet::walk::Headers;
use weir_plan::{Expr, Input, Pipeline, Program, Schema, SourceKind, Stage};
use weir_sink::{JsonLines, TimeFormat, each_line};

/// Bytes of a frame that are shown.
const SHOWN_MAX: usize = 2048;

/// Fields whose values stand beside the fields of the frame, or depend on where it was found.
const LEFT_OUT: [&str; 3] = ["number", "ts", "len"];

/// Packets as clients get them.
pub(super) fn packets(
    frames: &[(Sent, Box<[u8]>)],
    names: &InterfaceNames,
    headers: Headers,
) -> Vec<Json> {
    let all = fields(frames, names, headers);
    frames
        .iter()
        .zip(all)
        .map(|((sent, bytes), fields)| packet(sent, bytes, names, fields))
        .collect()
}

fn packet(sent: &Sent, bytes: &[u8], names: &InterfaceNames, fields: Map<String, Json>) -> Json {
    use std::fmt::Write as _;
    let mut hex = String::new();
    for byte in bytes.iter().take(SHOWN_MAX) {
        let _ = write!(hex, "{byte:02x}");
    }
    let mut value = json!({
        "time": rfc3339(sent.ts),
        "length": sent.len,
        "captured": sent.caplen,
        "fields": fields,
        "hex": hex,
    });
    let interface = sent.capture_point.interface().and_then(|number| names.name(number));
    if let Some(name) = interface {
        value["interface"] = String::from_utf8_lossy(&name.raw).into();
    }
    if let Some(direction) = sent.capture_point.direction() {
        value["direction"] = direction.name().into();
    }
    value
}

/// A program whose rows are all fields of each packet.
fn program() -> Program {
    let column = |field: &weir_packet::fields::Field| {
        by_name(field.name).map(|id| (field.name.to_owned(), Expr::field(id)))
    };
    let shown = FIELDS.iter().filter(|field| !LEFT_OUT.contains(&field.name));
    let stage = Stage::Project { columns: shown.filter_map(column).collect() };
    let schema = stage.output(&Schema::default());
    let (name, input, stages) = (None, Input::Packets, vec![stage]);
    Program {
        pipelines: vec![Pipeline { name, input, stages, schema, printed: true }],
        source: SourceKind::Packets,
    }
}

/// The fields that each of the frames has.
fn fields(
    frames: &[(Sent, Box<[u8]>)],
    names: &InterfaceNames,
    headers: Headers,
) -> Vec<Map<String, Json>> {
    let mut lines = Vec::new();
    let mut sink = JsonLines::new(&mut lines, TimeFormat::Rfc3339);
    let mut source = FrameList { frames, at: 0, names, headers };
    let functions = Functions::default();
    run(&program(), &functions, &mut source, &mut sink, &Options::default(), &mut |_| {});
    // It writes to memory.
    drop(sink.finish());
    drop(sink);
    let row = |line: &[u8]| {
        let mut row: Map<String, Json> = serde_json::from_slice(line).unwrap_or_default();
        row.retain(|_, value| !value.is_null());
        row
    };
    let mut all: Vec<_> = each_line(&lines).map(row).collect();
    // The engine may give up only where memory ends; what is left has no fields.
    all.resize(frames.len(), Map::new());
    all
}

/// Frames in memory, each of its link type.
struct FrameList<'a> {
    frames: &'a [(Sent, Box<[u8]>)],
    at: usize,
    names: &'a InterfaceNames,
    headers: Headers,
}

impl Source for FrameList<'_> {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let Some(((first, _), rest)) = self.frames[self.at..].split_first() else {
            batch.clear();
            return Ok(false);
        };
        let same = rest.iter().take_while(|(sent, _)| sent.link == first.link).count();
        let n = (same + 1).min(weir_packet::limits::BATCH);
        let some = &self.frames[self.at..self.at + n];
        let bytes: Vec<u8> = some.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        let chunk: Chunk = Arc::new(bytes);
        batch.restart(&chunk, 0, first.link);
        batch.headers = self.headers;
        let mut start = 0;
        for (i, (sent, bytes)) in some.iter().enumerate() {
            let caplen = bytes.len() as u32;
            batch.push(sent.ts, (self.at + i) as u64, start, caplen, sent.len);
            start += caplen;
        }
        batch.set_capture_points(some.iter().map(|(sent, _)| sent.capture_point), self.names);
        self.at += n;
        Ok(true)
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        Account { received: self.at as u64, ..Account::default() }
    }
}
