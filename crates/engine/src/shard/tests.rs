//! Cases that only show with several workers: long captures, early ends, faults, and sources that
//! wait.

use super::MOST_WAITING;
use super::event_count::EventCount;
use super::exchange::block_len;
use crate::counters::Ledger;
use crate::functions::Functions;
use crate::limits::ROW_BATCHES_AHEAD;
use crate::ops::testing::{agg, binary, compare, field, int, project, state, summarize};
use crate::rows::{Collect, Output, Rows, Sink};
use crate::run::{Inquiry, Options, Outcome, RunError, run};
use crate::tests::{Frames, check, program};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use weir_packet::craft::Frame;
use weir_packet::craft::messages::dns_query;
use weir_packet::fields::key_by_name;
use weir_packet::limits::BATCH;
use weir_packet::source::{Account, Chunk, FrameBatch, LinkType, Source, SourceError};
use weir_plan::limits::SCAN_KEYS_MAX;
use weir_plan::place::Partition;
use weir_plan::stage::ScanState;
use weir_plan::{
    AggFunc, BinaryOp, Each, Expr, Input, Parts, Pipeline, Program, Scan, Schema, Stage, Type,
    Value, Window,
};

/// `n` packets of 97 hosts, a millisecond apart, now and then one that is late by two seconds.
fn frames(n: u32) -> Frames {
    let frames: Vec<_> = (0..n)
        .map(|i| {
            let from = [10, 0, 0, (i % 97 * (i % 97) % 97) as u8];
            let frame = Frame::ethernet().ipv4(from, [10, 0, 1, 1]).udp(i as u16 % 7, 53);
            let late = if i % 501 == 500 { 2_000 } else { 0 };
            ((10_000 + i as i64 - late) * 1_000_000, frame.bytes())
        })
        .collect();
    Frames::new(LinkType::ETHERNET, &frames)
}

/// Counts packets of each source every second.
fn counts() -> Vec<Stage> {
    let count = vec![agg(AggFunc::Count, None), agg(AggFunc::Last, Some(field("number")))];
    vec![summarize(&["ip.src"], count, Window::Tumbling(1_000_000_000))]
}

/// Numbers the packets of each source; `some` of them go on.
fn numbered(some: Option<Expr>) -> Vec<Stage> {
    numbered_by("ip.src", some)
}

/// The same by another key.
fn numbered_by(key: &str, some: Option<Expr>) -> Vec<Stage> {
    numbered_by_all(&[key], some)
}

/// The same by some keys.
fn numbered_by_all(keys: &[&str], some: Option<Expr>) -> Vec<Stage> {
    let update = binary(BinaryOp::Add, state(0, Type::Int), int(1));
    let states = vec![ScanState { name: "position".into(), output: 0, init: int(0), update }];
    let keys = keys.iter().map(|key| field(key)).collect();
    let mut stages =
        vec![Stage::Scan(Scan { states, keys, idle_ns: 1_000_000_000, max_keys: SCAN_KEYS_MAX })];
    stages.extend(some.map(Stage::Where));
    let position = ("position".to_owned(), Expr::column(0, Type::Int));
    stages.push(Stage::Project { columns: vec![("number".into(), field("number")), position] });
    stages
}

/// Counts packets of the first so many sources every second.
fn bounded(max_groups: u64) -> Vec<Stage> {
    let mut stages = counts();
    if let Stage::Summarize(s) = &mut stages[0] {
        s.max_groups = max_groups;
    }
    stages
}

/// A filter that one packet in seven passes.
fn few() -> Expr {
    compare(BinaryOp::Eq, field("sport"), int(3))
}

fn together(pipelines: Vec<Vec<Stage>>) -> Program {
    let pipeline = |stages: Vec<Stage>| {
        let schema = crate::tests::schema_after(&stages, &Schema::default());
        Pipeline { name: None, input: Input::Packets, stages, schema, printed: true }
    };
    Program::of(pipelines.into_iter().map(pipeline).collect())
}

#[test]
fn long_captures_of_every_kind() {
    let rows = || vec![Stage::Where(few()), project(&["number", "ip.src"])];
    for pipelines in [
        vec![counts()],
        vec![rows()],
        vec![rows(), counts()],
        vec![counts(), rows(), rows()],
        vec![numbered(None)],
        vec![numbered(Some(few()))],
        vec![numbered(Some(few())), counts(), rows()],
    ] {
        check(&together(pipelines), &Functions::default(), &frames(9_000));
    }
}

#[test]
fn pipelines_without_a_common_key_go_side_by_side() {
    let rows = || vec![Stage::Where(few()), project(&["number", "ip.src"])];
    let by_port = || numbered_by("sport", None);
    for (clusters, pipelines) in [
        (2, vec![numbered(None), by_port()]),
        (2, vec![numbered(Some(few())), counts(), by_port(), rows()]),
        (3, vec![by_port(), bounded(5), numbered(None), rows()]),
        (2, vec![bounded(5), rows()]),
        (2, vec![counts(), bounded(50), counts()]),
        (4, vec![bounded(5), bounded(9), bounded(96), counts()]),
        (3, vec![bounded(5), bounded(9), bounded(96)]),
    ] {
        let program = together(pipelines);
        let placed = weir_plan::place::place(&program).clusters;
        assert_eq!(placed.len(), clusters, "{placed:?}");
        check(&program, &Functions::default(), &frames(9_000));
    }
}

/// Packets of one key are plain or not, of one layout or another: all go to one worker.
#[test]
fn a_key_has_one_worker_however_its_packets_look() {
    let (to, to6) = ([10, 0, 1, 1], "::ffff:10.0.1.1".parse::<Ipv6Addr>().expect("an address"));
    let frames: Vec<_> = (0..2_000u32)
        .map(|i| {
            let (host, port, shape) = ((i % 23) as u8, i as u16 % 7, i / 5 % 6);
            let from6 = Ipv4Addr::from([10, 0, 0, host]).to_ipv6_mapped();
            let four = || Frame::ethernet().ipv4([10, 0, 0, host], to);
            let name = dns_query(i as u16, &format!("{}.example", i % 11), 1);
            let frame = match shape {
                0 => four().udp(port, 53),
                1 => four().options(&[1, 1, 1, 0]).udp(port, 53),
                2 => Frame::ethernet().ipv6(from6, to6).udp(port, 53),
                3 => Frame::ethernet()
                    .ipv6(from6, to6)
                    .extension(0, &[1, 4, 0, 0, 0, 0])
                    .udp(port, 53),
                4 => Frame::ethernet().vlan(i as u16 % 3).ipv4([10, 0, 0, host], to).udp(port, 53),
                _ => four().fragment(8, false),
            };
            (i64::from(i) * 1_000_000, frame.payload(&name).bytes())
        })
        .collect();
    let frames = Frames::new(LinkType::ETHERNET, &frames);
    for key in ["ip.src", "sport", "ip.proto", "vlan.id", "dns.qname", "flow", "conn", "hosts"] {
        let fields: Vec<&str> = match key_by_name(key) {
            Some(key) => key.fields.iter().map(|id| id.info().name).collect(),
            None => vec![key],
        };
        let stages = numbered_by_all(&fields, None);
        let placed = weir_plan::place::place(&together(vec![stages.clone()])).clusters;
        assert!(matches!(placed[0].partition, Partition::Key(_)) || key == "ip.proto", "{key}");
        check(&together(vec![stages, counts()]), &Functions::default(), &frames);
    }
}

/// Windows that close with every packet or two, in lanes of every kind.
#[test]
fn steps_of_one_packet() {
    let frames: Vec<_> = (0..700u32)
        .map(|i| {
            let frame = Frame::ethernet().ipv4([10, 0, 0, (i % 5) as u8], [10, 0, 1, 1]);
            (i64::from(i) * 700_000_000, frame.udp(i as u16 % 3, 53).bytes())
        })
        .collect();
    let frames = Frames::new(LinkType::ETHERNET, &frames);
    for pipelines in [
        vec![numbered(None), counts()],
        vec![numbered(None), bounded(3), counts(), numbered_by("sport", None)],
    ] {
        check(&together(pipelines), &Functions::default(), &frames);
    }
}

/// Counts rows. The first batch is taken as long as `is_busy` says so.
struct Slow<F>(F, usize);

impl<F: FnMut() -> bool> Sink for Slow<F> {
    fn open(&mut self, _: &[Output]) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, _: usize, rows: &Rows) -> io::Result<()> {
        while self.1 == 0 && (self.0)() {
            std::thread::yield_now();
        }
        self.1 += rows.len;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// While the sink is busy other workers go on, but only until many batches of rows wait for it. As
/// many as the ring has room for would be several times what is allowed here.
#[test]
fn rows_that_become_many_wait_in_bounded_memory() {
    const PARTS: usize = 100;
    const WORKERS: usize = 4;
    let each = |position| {
        let text = |text: String| Expr::constant(Value::Str(text.into()));
        let what = Parts::Split { text: text(["x"; PARTS].join(".")), by: text(".".to_owned()) };
        Stage::Each(Each { what, columns: vec![("part".to_owned(), position, Type::Str)] })
    };
    let mut keyed = numbered(None);
    keyed.push(each(2));
    // The rows that a worker makes at once: of a batch, or of a block of them.
    for (stages, packets, unit) in
        [(vec![each(0)], 20_000, BATCH), (keyed, 36_000, block_len(WORKERS, false) * BATCH)]
    {
        let asked = AtomicUsize::new(0);
        let mut source = Before(frames(packets), || {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(true)
        });
        // Until all that can be read has been read, or so it seems.
        let (mut last, mut looks) = (0, 0);
        let is_busy = || {
            let now = asked.load(Ordering::Relaxed);
            (last, looks) = (now, if now == last { looks + 1 } else { 0 });
            looks < 20_000
        };
        let mut sink = Slow(is_busy, 0);
        let outcome = go(stages, &mut source, &mut sink, workers(WORKERS));
        assert!(outcome.error.is_none());
        assert_eq!(sink.1, packets as usize * PARTS);
        // A batch in hand may leave some batches that are not full.
        let batches = unit * PARTS / BATCH + 4 * unit / BATCH;
        let (most, allowed) = (MOST_WAITING.get(), ROW_BATCHES_AHEAD + WORKERS * batches);
        assert!(most <= allowed, "{most} batches waited, {allowed} may");
        assert!(most > ROW_BATCHES_AHEAD / 2, "only {most} batches waited: nothing was tried");
    }
}

/// Hands on what another source has, and does something before each batch.
struct Before<F>(Frames, F);

impl<F: FnMut() -> Result<bool, SourceError> + Send> Source for Before<F> {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        if !(self.1)()? {
            batch.clear();
            return Ok(false);
        }
        self.0.fill(batch)
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        self.0.account()
    }
}

fn go(stages: Vec<Stage>, source: &mut dyn Source, sink: &mut dyn Sink, o: Options) -> Outcome {
    run(&program(stages), &Functions::default(), source, sink, &o, &mut |_| {})
}

fn workers(workers: usize) -> Options {
    Options { workers, ..Options::default() }
}

#[test]
fn a_source_that_fails_ends_the_run_after_what_it_gave() {
    for stages in [counts(), numbered(None), vec![project(&["number"])]] {
        let mut answers = Vec::new();
        for n in [1, 2, 3] {
            let mut left = 20;
            let mut source = Before(frames(9_000), || {
                left -= 1;
                let reason = || "no more".to_owned();
                (left > 0)
                    .then_some(true)
                    .ok_or_else(|| SourceError::Format { name: "x".into(), reason: reason() })
            });
            let mut sink = Collect::default();
            let outcome = go(stages.clone(), &mut source, &mut sink, workers(n));
            assert!(matches!(outcome.error, Some(RunError::Source(_))));
            assert_eq!(outcome.ledger.processed, 19 * 256);
            answers.push((sink.rows, outcome.ledger));
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

#[test]
fn the_stop_flag_ends_the_input() {
    for stages in [counts(), numbered(None), vec![project(&["number"])]] {
        for n in [1, 2, 4] {
            let (stop, mut calls) = (Arc::new(AtomicBool::new(false)), 0);
            let flag = Arc::clone(&stop);
            let mut source = Before(frames(9_000), || {
                calls += 1;
                flag.store(calls == 5, Ordering::Relaxed);
                Ok(true)
            });
            let options = Options { stop: Some(stop), ..workers(n) };
            let mut sink = Collect::default();
            let outcome = go(stages.clone(), &mut source, &mut sink, options);
            assert_eq!((outcome.ledger.processed, outcome.error.is_none()), (5 * 256, true));
            assert_eq!(outcome.ledger.rows, sink.rows.len() as u64);
        }
    }
}

#[test]
fn a_run_says_how_it_is_when_asked() {
    let long = frames(200_000);
    for stages in [counts(), numbered(None), vec![project(&["number"])]] {
        for n in [1, 2, 4] {
            let answers: Arc<Mutex<Vec<Ledger>>> = Arc::default();
            let told = Arc::clone(&answers);
            let answer = move |ledger: &Ledger, _: &[(String, Account)]| {
                told.lock().expect("no panic").push(ledger.clone());
            };
            let inquiry = Arc::new(Inquiry::new(answer));
            let (asks, mut calls) = (Arc::clone(&inquiry), 0);
            let mut source = Before(long.cut(&[256]), || {
                calls += 1;
                if calls % 200 == 5 {
                    asks.ask();
                }
                Ok(true)
            });
            let mut sink = Collect::default();
            let options = Options { inquiry: Some(inquiry), ..workers(n) };
            let outcome = go(stages.clone(), &mut source, &mut sink, options);
            let answers = answers.lock().expect("no panic");
            assert!(!answers.is_empty() && answers.len() <= 4, "{} answers", answers.len());
            assert!(answers.is_sorted_by_key(|ledger| ledger.processed));
            for ledger in &*answers {
                assert!(ledger.adds_up() && ledger.processed >= 5 * 256, "{ledger:?}");
                assert!(ledger.processed <= outcome.ledger.processed);
                assert!(ledger.rows <= outcome.ledger.rows);
            }
        }
    }
}

/// A limit that is reached ends the run only where all others are.
#[test]
fn a_limit_of_one_pipeline_ends_no_other() {
    let long = frames(200_000);
    let limited = |key| [numbered_by(key, None), vec![Stage::Limit(30)]].concat();
    for n in [1, 2, 4] {
        let go = |pipelines| {
            let (mut sink, options) = (Collect::default(), workers(n));
            let (program, functions) = (together(pipelines), Functions::default());
            let mut source = long.cut(&[256]);
            let outcome = run(&program, &functions, &mut source, &mut sink, &options, &mut |_| {});
            (outcome.ledger.processed, sink.rows.len())
        };
        assert_eq!(go(vec![limited("ip.src"), numbered_by("sport", None)]), (200_000, 200_030));
        let (read, rows) = go(vec![limited("ip.src"), limited("sport")]);
        assert!(read < 100_000 && rows == 60, "{read} {rows}");
    }
}

#[test]
fn a_limit_ends_a_long_input() {
    let long = frames(200_000);
    for mut stages in [counts(), numbered(Some(few())), vec![project(&["number"])]] {
        stages.push(Stage::Limit(30));
        for n in [1, 2, 4] {
            let mut sink = Collect::default();
            let outcome = go(stages.clone(), &mut long.cut(&[256]), &mut sink, workers(n));
            assert!(outcome.error.is_none() && outcome.ledger.processed < 100_000);
            assert_eq!(sink.rows.len(), 30);
        }
    }
}

/// Counts flushes; fails with the `fails`th rows.
struct Counter {
    flushes: Arc<AtomicUsize>,
    fails: usize,
    unwritten: u64,
}

impl Sink for Counter {
    fn open(&mut self, _: &[Output]) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, _: usize, rows: &Rows) -> io::Result<()> {
        self.fails = self.fails.wrapping_sub(1);
        if self.fails > 0 {
            return Ok(());
        }
        self.unwritten = rows.len as u64;
        Err(io::ErrorKind::StorageFull.into())
    }

    fn unwritten(&self) -> u64 {
        self.unwritten
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_sink_that_fails_ends_the_run() {
    let long = frames(200_000);
    for stages in [counts(), numbered(Some(few())), vec![project(&["number"])]] {
        for n in [1, 2, 4] {
            let mut sink = Counter { flushes: Arc::default(), fails: 3, unwritten: 0 };
            let outcome = go(stages.clone(), &mut long.cut(&[256]), &mut sink, workers(n));
            assert!(matches!(outcome.error, Some(RunError::Sink(_))));
            assert!(outcome.ledger.processed < 100_000);
            assert!(outcome.ledger.rows <= 2 * 256 && outcome.ledger.unwritten > 0);
        }
    }
}

/// A source that stands for a wire: it has nothing at once while its peer waits for answers, and
/// looks again and again whether they came. Batches have memory of their own, as blocks of a ring.
struct Wire {
    frames: Frames,
    /// Packets sent, and how many of these may be without an answer.
    sent: usize,
    window: usize,
    /// Packets that were answered.
    answered: Arc<AtomicUsize>,
    /// Memory that was lent.
    lent: Vec<Arc<Vec<u8>>>,
}

impl Wire {
    fn new(frames: Frames, window: usize, answered: &Arc<AtomicUsize>) -> Wire {
        Wire { frames, sent: 0, window, answered: Arc::clone(answered), lent: Vec::new() }
    }

    /// Waits until something has happened that workers do while nobody brings packets.
    fn until(what: &str, mut happened: impl FnMut() -> bool) {
        let mut patience = 20_000_000;
        while !happened() {
            assert!(patience > 0, "waited in vain until {what}");
            patience -= 1;
            std::thread::yield_now();
        }
    }
}

impl Source for Wire {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        batch.clear();
        if !self.is_ready() {
            let Wire { lent, answered, sent, window, .. } = self;
            Wire::until("memory is given back", || {
                lent.retain(|memory| Arc::strong_count(memory) > 1);
                lent.is_empty()
            });
            Wire::until("an answer comes", || *sent < answered.load(Ordering::Acquire) + *window);
        }
        let mut read = FrameBatch::new();
        let more = self.frames.fill(&mut read)?;
        let memory = Arc::new(read.bytes().to_vec());
        batch.restart(&(Arc::clone(&memory) as Chunk), 0, read.link);
        for i in 0..read.len() {
            let (ts, seq, offset) = (read.ts()[i], read.seq()[i], read.offsets()[i]);
            batch.push(ts, seq, offset, read.caplens()[i], read.lens()[i]);
        }
        self.sent += batch.len();
        self.lent.push(memory);
        Ok(more)
    }

    fn is_ready(&mut self) -> bool {
        self.sent < self.answered.load(Ordering::Acquire) + self.window
    }

    fn account(&self) -> Account {
        self.frames.account()
    }
}

/// Counts rows where others see them.
struct Answers(Arc<AtomicUsize>);

impl Sink for Answers {
    fn open(&mut self, _: &[Output]) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, _: usize, rows: &Rows) -> io::Result<()> {
        self.0.fetch_add(rows.len, Ordering::AcqRel);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A peer sends no more before it has an answer: a TCP connection through a network function. Then
/// nobody may wait for the source with packets in hand, however full their batch is, and no memory
/// of the source may be held by workers that have nothing to do.
#[test]
fn a_peer_that_waits_for_answers_gets_them() {
    for stages in [vec![project(&["number"])], numbered(None)] {
        for n in [1, 2, 4, 8] {
            for cuts in [&[1][..], &[7, 200, 1], &[BATCH], &[BATCH, BATCH, BATCH, BATCH, 1, 1]] {
                for window in [1, BATCH, 3 * BATCH, 20 * BATCH] {
                    let packets = if cuts == [1] { 300 } else { 9_000 };
                    let answered = Arc::new(AtomicUsize::new(0));
                    let mut source = Wire::new(frames(packets).cut(cuts), window, &answered);
                    let mut sink = Answers(Arc::clone(&answered));
                    let outcome = go(stages.clone(), &mut source, &mut sink, workers(n));
                    assert!(outcome.error.is_none(), "{n} workers, {cuts:?}: {:?}", outcome.error);
                    assert_eq!(answered.load(Ordering::Acquire), packets as usize);
                }
            }
        }
    }
}

/// Rows are flushed before the source is waited for.
#[test]
fn what_a_quiet_wire_brought_is_shown_while_the_source_waits() {
    for stages in [vec![project(&["number"])], numbered(None)] {
        for n in [1, 2, 4] {
            let sink_flushes = Arc::new(AtomicUsize::new(0));
            let (flushes, mut calls) = (Arc::clone(&sink_flushes), 0);
            let mut source = Waiting(Before(frames(2_000).cut(&[7, 200, BATCH, 1]), || {
                Wire::until("the batch before was shown", || {
                    flushes.load(Ordering::Relaxed) >= calls
                });
                calls += 1;
                Ok(true)
            }));
            let mut sink = Counter { flushes: sink_flushes, fails: 0, unwritten: 0 };
            let outcome = go(stages.clone(), &mut source, &mut sink, workers(n));
            assert_eq!((outcome.ledger.processed, outcome.error.is_none()), (2_000, true));
        }
    }
}

/// A source that never has anything at once.
struct Waiting<S>(S);

impl<S: Source> Source for Waiting<S> {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        self.0.fill(batch)
    }

    fn is_ready(&mut self) -> bool {
        false
    }

    fn account(&self) -> Account {
        self.0.account()
    }
}

#[test]
fn a_panic_of_one_worker_is_that_of_the_run() {
    for stages in [counts(), numbered(None), vec![project(&["number"])]] {
        for n in [1, 2, 4] {
            let mut calls = 0;
            let mut source = Before(frames(9_000), || {
                calls += 1;
                assert!(calls < 20, "this is meant to panic");
                Ok(true)
            });
            let outcome = go(stages.clone(), &mut source, &mut Collect::default(), workers(n));
            // That of the others, which find that it is gone, is not told.
            let said = outcome.error.expect("it panicked").to_string();
            assert!(said.starts_with("the run failed: this is meant to panic"), "{said}");
        }
    }
}

#[test]
fn no_event_is_missed() {
    let (events, turns) = (EventCount::default(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for me in 0..3 {
            let (events, turns) = (&events, &turns);
            scope.spawn(move || {
                for round in 0..500 {
                    loop {
                        let seen = events.current();
                        if turns.load(Ordering::SeqCst) == round * 3 + me {
                            break;
                        }
                        events.wait(seen);
                    }
                    turns.fetch_add(1, Ordering::SeqCst);
                    events.notify();
                }
            });
        }
    });
    assert_eq!(turns.into_inner(), 1500);
}
