//! Looks for packets: the stages that keep them run over frames that have passed.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_engine::discard::Discard;
use weir_engine::functions::Functions;
use weir_engine::room::MemoryRoom;
use weir_engine::rows::Sink;
use weir_engine::run::{Options, run_to};
use weir_http::PacketsForm;
use weir_lang::Query;
use weir_packet::egress::{Egress, Outlet, Sent};
use weir_packet::fields::by_name;
use weir_packet::source::Source;
use weir_plan::{BinaryOp, Expr, ExprKind, Program, Schema, Stage, Type, Value};

/// Packets that are decoded: at most, and if nothing is said.
const DECODED_MAX: u64 = 200;
const DECODED: u64 = 50;

/// Bytes of packets that are decoded.
const DECODED_BYTES_MAX: usize = 1 << 20;

/// Packets of a file at most, and their bytes.
const FILE_MAX: u64 = 100_000;
const FILE_BYTES_MAX: usize = 32 << 20;

/// How long a search lasts at most.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Bytes that the state of a search fits into.
const MEMORY: u64 = 64 << 20;

/// Bounds of what is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounds {
    frames: u64,
    bytes: usize,
    time: Duration,
    /// Whether of more frames the last are kept, and not the first.
    latest: bool,
}

impl Bounds {
    /// The bounds of an answer.
    pub(super) fn of(form: PacketsForm, limit: Option<u64>) -> Bounds {
        let (usual, most, bytes) = match form {
            PacketsForm::Json => (DECODED, DECODED_MAX, DECODED_BYTES_MAX),
            PacketsForm::Pcapng => (FILE_MAX, FILE_MAX, FILE_BYTES_MAX),
        };
        let frames = limit.unwrap_or(usual).clamp(1, most);
        Bounds { frames, bytes, time: TIME_MAX, latest: false }
    }

    /// As many as a file has; of more the last, or the first.
    pub(super) fn of_file(latest: bool) -> Bounds {
        Bounds { latest, ..Bounds::of(PacketsForm::Pcapng, None) }
    }

    /// As many as are decoded; of more the last, or the first.
    pub(super) fn of_list(latest: bool) -> Bounds {
        Bounds { latest, ..Bounds::of(PacketsForm::Json, Some(DECODED_MAX)) }
    }
}

/// Frames that were found.
pub(super) struct FoundFrames {
    /// In the order of the capture.
    pub(super) frames: Vec<(Sent, Box<[u8]>)>,
    /// Whether there are more of them.
    pub(super) more: bool,
    /// Whether the time was over.
    pub(super) cut_short: bool,
    /// Why the source ended early.
    pub(super) error: Option<String>,
}

/// The stages of a condition on packets.
///
/// # Errors
/// What is wrong with it, for people.
pub(super) fn condition(text: &str) -> Result<Vec<Stage>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    // A line of its own: it may end in a comment.
    let text = format!("packets\n| where {text}\n| pass");
    let mut program = compiled(&text)?;
    let stages = match program.pipelines.as_mut_slice() {
        [only] => std::mem::take(&mut only.stages),
        _ => Vec::new(),
    };
    match stages.split_last() {
        // Nothing else has come in by the text.
        Some((Stage::Ends(_), all)) if all.iter().all(|s| matches!(s, Stage::Where(_))) => {
            Ok(all.to_vec())
        }
        _ => Err("expected a condition, such as `tcp and dport == 443`".to_owned()),
    }
}

fn compiled(text: &str) -> Result<Program, String> {
    let query = Query { name: "condition", text };
    match weir_lang::compile(&query, &weir_lang::Options::default()) {
        Ok(compiled) => Ok(compiled.program),
        Err(all) => Err(weir_lang::render(&all, &query, false)),
    }
}

/// A search.
pub(super) struct Search {
    program: Program,
}

impl Search {
    /// For the packets that these stages keep, in this time.
    pub(super) fn new(stages: &[Stage], (from, until): (Option<i64>, Option<i64>)) -> Search {
        let mut program = compiled("packets | pass").expect("a query");
        let pipeline = &mut program.pipelines[0];
        let mut all: Vec<Stage> = stages.to_vec();
        let bound = |op, t| Some(Stage::Where(compared(op, t?)));
        // Last, since folds see what came before, too.
        all.extend(bound(BinaryOp::Ge, from));
        all.extend(bound(BinaryOp::Lt, until));
        all.append(&mut pipeline.stages);
        pipeline.schema = all.iter().fold(Schema::default(), |schema, s| s.output(&schema));
        pipeline.stages = all;
        Search { program }
    }

    /// Looks for them.
    #[expect(clippy::disallowed_methods, reason = "somebody waits for the answer")]
    pub(super) fn run(
        &self,
        source: &mut dyn Source,
        bounds: Bounds,
        stop: &Arc<AtomicBool>,
    ) -> FoundFrames {
        let frames = VecDeque::new();
        let mut gather = Gather { frames, more: false, bytes: 0, bounds, stop: Arc::clone(stop) };
        let options = Options {
            stop: Some(Arc::clone(stop)),
            memory: Some(MemoryRoom::new(MEMORY)),
            ..Options::default()
        };
        let (begin, mut late) = (Instant::now(), false);
        let ends = (&mut Discard as &mut dyn Sink, &mut gather as &mut dyn Egress);
        let functions = Functions::default();
        let outcome = run_to(&self.program, &functions, source, ends, &options, &mut |_| {
            if begin.elapsed() > bounds.time {
                late = true;
                stop.store(true, Ordering::Relaxed);
            }
        });
        let (more, frames) = (gather.more, gather.frames.into());
        let cut_short = late && (bounds.latest || !more);
        FoundFrames { frames, more, cut_short, error: outcome.error.map(|e| e.to_string()) }
    }
}

/// A comparison of the time of a packet.
fn compared(op: BinaryOp, time: i64) -> Expr {
    let field = Expr::field(by_name("ts").expect("a field of the catalogue"));
    let time = Expr::constant(Value::Time(time));
    Expr { ty: Type::Bool, kind: ExprKind::Binary(op, Box::new(field), Box::new(time)) }
}

/// Takes frames as long as there is room.
struct Gather {
    /// In the order of the capture.
    frames: VecDeque<(Sent, Box<[u8]>)>,
    /// Whether there are more of them.
    more: bool,
    bytes: usize,
    bounds: Bounds,
    stop: Arc<AtomicBool>,
}

impl Gather {
    /// Whether there is no room for a frame of so many bytes.
    fn is_full(&self, bytes: usize) -> bool {
        self.frames.len() as u64 >= self.bounds.frames
            || self.bytes + bytes > self.bounds.bytes && !self.frames.is_empty()
    }
}

impl Egress for Gather {
    fn open(&mut self, _: &[Outlet]) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, memory: &[u8], frames: &[Sent]) -> io::Result<()> {
        for sent in frames {
            let bytes = sent.bytes(memory);
            while self.is_full(bytes.len()) {
                self.more = true;
                if !self.bounds.latest {
                    break;
                }
                self.bytes -= self.frames.pop_front().map_or(0, |(_, bytes)| bytes.len());
            }
            if self.more && !self.bounds.latest {
                self.stop.store(true, Ordering::Relaxed);
                return Ok(());
            }
            self.bytes += bytes.len();
            self.frames.push_back((*sent, bytes.into()));
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
