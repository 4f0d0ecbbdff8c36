//! The merge of several probes' streams: it gives the rows of one run, whatever the streams are
//! like that can be merged, and says what was wrong with the others.

use std::cell::RefCell;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use weir_cluster::{
    Begin, Merge, MergeControl, MergeOutcome, MixedProbes, OpenedStreams, PacketRules, ProbeClock,
    ProbeHead, ProbeProgress, ProbeReader, ProbeStanding, ProbeStream, ProbeWriter, SkewWatch,
    StreamEnd, StreamItem,
};
use weir_engine::exchange::{Producer, ProducerId, Receiver};
use weir_engine::functions::Functions;
use weir_engine::rows::{Collect, Sink};
use weir_engine::run::{Options, run};
use weir_lang::Query;
use weir_model::Frames;
use weir_packet::craft::Frame;
use weir_packet::source::LinkType;
use weir_plan::physical::Physical;
use weir_plan::{Program, Value};

const S: i64 = 1_000_000_000;
const PACKETS: u16 = 6000;

/// Probes that read no wire have no clocks.
const NO_SKEW: SkewWatch<'static> =
    SkewWatch { most: Duration::ZERO, tell: &|probe, _| panic!("{probe} has no clock") };

/// A merge that is neither stopped nor asked.
fn unasked() -> MergeControl<'static> {
    MergeControl {
        stop: &NEVER,
        asked: &NEVER,
        tell: &|_| unreachable!("nobody asked"),
        skew: NO_SKEW,
        lost: &|_| {},
    }
}

static NEVER: AtomicBool = AtomicBool::new(false);

type Rows = Vec<(usize, Vec<Value>)>;

fn program(text: &str) -> Program {
    let functions = Functions::default();
    let options = weir_lang::Options {
        params: &[],
        program: "test",
        signatures: functions.signatures(),
        ..weir_lang::Options::default()
    };
    let compiled = weir_lang::compile(&Query { name: "test.weir", text }, &options);
    compiled.expect("the query compiles").program
}

fn windows() -> Program {
    program(
        "packets | summarize n = count(), first = first(udp.sport), sizes = distinct(len), \
         share = completeness() by ip.src every 2s",
    )
}

/// Packets of some hosts in a minute, one each 10 ms, of those the ones that `mine` says.
fn frames(mine: impl Fn(u16) -> bool) -> Frames {
    let all = (0..PACKETS).filter(|i| mine(*i)).map(|i| {
        let ip = Ipv4Addr::new(10, 0, 0, (i % 7) as u8);
        let frame = Frame::ethernet().ipv4(ip, Ipv4Addr::LOCALHOST).udp(i, 53);
        (i64::from(i) * S / 100, frame.payload(&vec![0; usize::from(i % 50)]).bytes())
    });
    Frames::new(LinkType::ETHERNET, &all.collect::<Vec<_>>())
}

fn rules() -> PacketRules {
    PacketRules {
        headers: "outer".to_owned(),
        fragments: false,
        lateness_ns: Options::default().lateness_ns,
    }
}

fn head(producer: &Producer, probe: &str, epoch: u64) -> ProbeHead {
    ProbeHead {
        probe: probe.to_owned(),
        epoch,
        weir: "0.1.0".to_owned(),
        fingerprint: ProbeHead::fingerprint_text(producer.fingerprint()),
        rules: rules(),
        resumes: false,
        clock: None,
    }
}

/// The stream that a probe writes: its head, and each of its messages.
fn publish(
    program: &Program,
    probe: &str,
    epoch: u64,
    mut frames: Frames,
) -> (ProbeHead, Vec<Vec<u8>>) {
    let (functions, options) = (Functions::default(), Options::default());
    let (plan, id) = (Physical::new(program, &[]), ProducerId::named(probe, epoch));
    let producer = Producer::new(&plan, &functions, &options, id).expect("it can be spread");
    let (head, mut messages) = (head(&producer, probe, epoch), Vec::new());
    let outcome = producer.run(&mut frames, &mut |message| {
        messages.push(message.to_vec());
        Ok(())
    });
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    (head, messages)
}

/// The same as a stream.
fn stream((head, messages): &(ProbeHead, Vec<Vec<u8>>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ProbeWriter::new(&mut bytes, head).expect("memory takes it");
    for message in messages {
        writer.message(message).expect("memory takes it");
    }
    bytes
}

fn opened(name: &str, bytes: Vec<u8>) -> ProbeStream {
    reads(name, Box::new(io::Cursor::new(bytes)))
}

fn reads(name: &str, from: Box<dyn Read + Send>) -> ProbeStream {
    let input = vec![(name.to_owned(), from)];
    let read = ProbeStream::read_heads(input, &AtomicBool::new(false)).expect("a stream");
    read.expect("it is not stopped").streams.remove(0)
}

fn merge_with(
    program: &Program,
    streams: Vec<ProbeStream>,
    control: &MergeControl<'_>,
    sink: &mut dyn Sink,
) -> MergeOutcome {
    run_merge(program, Merge::new(streams).expect("they belong together"), control, sink)
}

fn run_merge(
    program: &Program,
    merge: Merge,
    control: &MergeControl<'_>,
    sink: &mut dyn Sink,
) -> MergeOutcome {
    let (functions, options) = (Functions::default(), Options::default());
    let plan = Physical::new(program, &[]);
    let receiver = Receiver::new(&plan, &functions, &options, &merge.probes()).expect("as above");
    merge.check_query(receiver.fingerprint()).expect("the same query");
    sink.open(receiver.outputs()).expect("memory opens");
    merge.run(receiver, sink, control).expect("threads start")
}

fn merge(program: &Program, streams: Vec<Vec<u8>>) -> (Rows, MergeOutcome) {
    let input = |(n, bytes): (u32, Vec<u8>)| -> (String, Box<dyn Read + Send>) {
        (n.to_string(), Box::new(io::Cursor::new(bytes)))
    };
    let inputs = (1..).zip(streams).map(input).collect();
    let read = ProbeStream::read_heads(inputs, &AtomicBool::new(false)).expect("one has a head");
    let OpenedStreams { streams, headless } = read.expect("it is not stopped");
    let merge = Merge::new(streams).expect("they belong together").without(headless);
    let mut sink = Collect::default();
    let merged = run_merge(program, merge, &unasked(), &mut sink);
    assert!(merged.outcome.error.is_none(), "{:?}", merged.outcome.error);
    assert!(!merged.was_stopped);
    (sink.rows, merged)
}

/// The rows of one run over the packets that `mine` says.
fn rows_of_one(program: &Program, mine: impl Fn(u16) -> bool) -> Rows {
    let (mut sink, functions) = (Collect::default(), Functions::default());
    run(program, &functions, &mut frames(mine), &mut sink, &Options::default(), &mut |_| {});
    sink.rows
}

fn ends(merged: &MergeOutcome) -> Vec<String> {
    merged.streams.iter().map(|stream| format!("{:?}", stream.end)).collect()
}

#[test]
fn three_probes_give_the_rows_of_one_run() {
    let program = windows();
    let want = rows_of_one(&program, |_| true);
    assert_eq!(want.len(), 30 * 7);
    let of = |k: u16| {
        let name = format!("probe {k}");
        stream(&publish(&program, &name, 5, frames(|i| i.wrapping_mul(7) % 3 == k)))
    };
    let (rows, merged) = merge(&program, vec![of(0), of(1), of(2)]);
    assert_eq!(rows, want);
    assert_eq!(merged.outcome.ledger.processed, u64::from(PACKETS));
    assert!(merged.outcome.ledger.adds_up());
    for report in &merged.streams {
        assert!(report.is_whole() && report.messages > 60, "{report}");
        assert_eq!((report.repeated, report.missing, report.late), (0, 0, 0), "{report}");
    }
}

/// The stream of a merge that passes on what it merges.
fn passed_on(program: &Program, name: &str, streams: Vec<Vec<u8>>) -> Vec<u8> {
    let (functions, options) = (Functions::default(), Options::default());
    let opened = (1..).zip(streams).map(|(n, bytes): (u32, _)| opened(&n.to_string(), bytes));
    let merge = Merge::new(opened.collect()).expect("they belong together");
    let plan = Physical::new(program, &[]);
    let id = ProducerId::named(name, 5);
    let producer = Producer::new(&plan, &functions, &options, id).expect("it can be spread");
    let head = head(&producer, name, 5);
    let writer = ProbeWriter::new(Vec::new(), &head).expect("memory takes it");
    let writer = Rc::new(RefCell::new(writer));
    let to = Rc::clone(&writer);
    let send = Box::new(move |message: &[u8]| to.borrow_mut().message(message));
    let probes = merge.probes();
    let receiver = Receiver::passing_on(&plan, &functions, &options, &probes, id, send);
    let mut sink = Collect::default();
    let merged = merge.run(receiver.expect("as above"), &mut sink, &unasked());
    let merged = merged.expect("threads start");
    assert!(merged.outcome.error.is_none() && sink.rows.is_empty(), "{:?}", merged.outcome.error);
    Rc::into_inner(writer).expect("the merge has ended").into_inner().into_inner()
}

/// As docs/cluster.md plans for a large network: sites merge what their probes see, and one merge
/// stands above them.
#[test]
fn fifteen_hundred_probes_merge_by_site() {
    const SITES: u16 = 12;
    const PROBES: u16 = 1500;
    let program = windows();
    let probe = |probe: u16| {
        let mine = frames(|i| i.wrapping_mul(7) % PROBES == probe);
        stream(&publish(&program, &format!("probe {probe}"), 5, mine))
    };
    let site = |site: u16| {
        let own = (0..PROBES).filter(|n| n % SITES == site).map(probe).collect();
        passed_on(&program, &format!("site {site}"), own)
    };
    let (rows, merged) = merge(&program, (0..SITES).map(site).collect());
    assert_eq!(rows, rows_of_one(&program, |_| true));
    assert_eq!(merged.outcome.ledger.processed, u64::from(PACKETS));
    assert!(merged.streams.iter().all(|report| report.is_whole()), "{:?}", merged.streams);
}

/// Messages of a probe that are missing below are missing above, and nothing else is.
#[test]
fn a_probe_that_breaks_off_below_is_missing_above() {
    let program = windows();
    let [a, b] = [0, 1].map(|k| publish(&program, &format!("{k}"), 1, frames(|i| i % 2 == k)));
    let (head, mut messages) = a;
    messages.truncate(messages.len() / 2);
    let streams = vec![stream(&(head, messages)), stream(&b)];
    let (direct, _) = merge(&program, streams.clone());
    let (above, merged) = merge(&program, vec![passed_on(&program, "site", streams)]);
    assert_eq!(above, direct);
    assert!(merged.streams[0].is_whole(), "the merge below has ended as it should");
    let Some((_, last)) = above.last() else { panic!("there are rows") };
    assert!(matches!(last[5], Value::Float(share) if share < 1e-6), "{last:?}");
}

#[test]
fn a_probe_that_saw_nothing_keeps_nobody_waiting() {
    let program = windows();
    let all = stream(&publish(&program, "a", 1, frames(|_| true)));
    let none = stream(&publish(&program, "b", 1, frames(|_| false)));
    let (rows, merged) = merge(&program, vec![none, all]);
    assert_eq!(rows, rows_of_one(&program, |_| true));
    assert_eq!(ends(&merged), ["Ended", "Ended"]);
}

/// The second life of a probe begins where the first was killed: what it did not see is missing,
/// and nothing else.
#[test]
fn the_lives_of_a_probe_follow_each_other() {
    let program = windows();
    let b = stream(&publish(&program, "b", 9, frames(|i| i % 2 == 1)));
    let saw = |i: u16| i % 2 == 1 || !(2000..3000).contains(&i);
    let first = stream(&publish(&program, "a", 1, frames(|i| i % 2 == 0 && i < 2000)));
    let second = stream(&publish(&program, "a", 2, frames(|i| i % 2 == 0 && i >= 3000)));
    // In any order: epochs say which life is the first.
    let (rows, merged) = merge(&program, vec![second.clone(), b.clone(), first.clone()]);
    assert_eq!(rows, rows_of_one(&program, saw));
    assert_eq!(merged.outcome.ledger.processed, 5500);
    assert!(merged.streams.iter().all(|stream| stream.late == 0), "{:?}", merged.streams);
    // Also where the first was killed: its stream has no end.
    let (head, mut messages) = publish(&program, "a", 1, frames(|i| i % 2 == 0 && i < 2000));
    messages.pop();
    let killed = stream(&(head, messages));
    let (again, merged) = merge(&program, vec![killed, second, b]);
    assert_eq!(counted(&again), counted(&rows));
    // From the last window that the first life closed to the first one that the second closes, the
    // number of frames is unknown.
    for (_, row) in &again {
        let (Value::Time(ts), Value::Float(share)) = (&row[0], &row[5]) else { panic!("{row:?}") };
        match ts / S {
            20..30 => assert!(*share < 1e-6, "{row:?}"),
            ..18 | 32.. => assert!(*share == 1.0, "{row:?}"),
            _ => {}
        }
    }
    assert_eq!(ends(&merged), ["Gone(None)", "Ended", "Ended"]);
    assert!(!merged.streams[0].is_whole());
}

#[test]
fn a_stream_that_comes_twice_counts_once() {
    let program = windows();
    let (a, b) = (frames(|i| i % 2 == 0), frames(|i| i % 2 == 1));
    let (a, b) = (stream(&publish(&program, "a", 1, a)), stream(&publish(&program, "b", 1, b)));
    let (rows, merged) = merge(&program, vec![a.clone(), b, a]);
    assert_eq!(rows, rows_of_one(&program, |_| true));
    let [first, _, second] = &merged.streams[..] else { panic!("three streams") };
    assert_eq!((first.repeated, second.messages), (0, 0));
    assert_eq!((second.repeated, second.is_whole()), (first.messages, true));
}

/// Wherever a stream breaks off, what came before counts, the rest is told, and the other probe
/// loses nothing.
#[test]
fn a_stream_that_breaks_off_costs_the_other_probe_nothing() {
    let program = windows();
    let a = publish(&program, "a", 1, frames(|i| i % 2 == 0));
    let whole = stream(&a);
    let b = stream(&publish(&program, "b", 1, frames(|i| i % 2 == 1)));
    let head = stream(&(a.0.clone(), Vec::new())).len();
    for len in (head..whole.len()).step_by(whole.len() / 40).chain([head, whole.len() - 1]) {
        let (rows, merged) = merge(&program, vec![whole[..len].to_vec(), b.clone()]);
        let [cut, other] = &merged.streams[..] else { panic!("two streams") };
        assert!(matches!(cut.end, StreamEnd::Gone(_)), "{len}: {cut}");
        assert!(!cut.is_whole() && other.is_whole() && other.late == 0, "{len}: {cut}, {other}");
        let of_b: i128 = rows.iter().map(|(_, row)| count(&row[2])).sum();
        assert!((3000..=6000).contains(&of_b), "{len}: {of_b} packets in rows");
        assert!(merged.outcome.ledger.processed >= 3000, "{len}");
        assert!(merged.outcome.ledger.adds_up(), "{len}: {:?}", merged.outcome.ledger);
    }
}

/// Rows without their completeness.
fn counted(rows: &[(usize, Vec<Value>)]) -> Vec<Vec<Value>> {
    rows.iter().map(|(_, row)| row[..5].to_vec()).collect()
}

/// Whether the completeness of all rows is next to 0, but not 0.
fn is_unseen(rows: &[(usize, Vec<Value>)]) -> bool {
    let is_so = |(_, row): &(usize, Vec<Value>)| matches!(row[5], Value::Float(x) if x < 1e-6);
    !rows.is_empty() && rows.iter().all(is_so)
}

/// The merge said that completeness was next to 0, and it was 1: a life without messages was none.
#[test]
fn nobody_knows_what_a_probe_saw_that_left_only_its_head() {
    let program = windows();
    let [first, second, other] = two_lives(&program);
    let (b, want) = (stream(&other), rows_of_one(&program, |i| i % 2 == 1));
    let head = |(head, _): &(ProbeHead, Vec<Vec<u8>>)| stream(&(head.clone(), Vec::new()));
    let within = stream(&first)[..head(&first).len() + 9].to_vec();
    for left in [head(&first), within, [head(&first), head(&second)].concat()] {
        let (rows, merged) = merge(&program, vec![left, b.clone()]);
        assert!(!merged.streams[0].is_whole() && merged.streams[1].is_whole());
        assert_eq!((rows.len(), is_unseen(&rows)), (want.len(), true));
    }
    // The life after it knows what it saw itself.
    let (rows, _) = merge(&program, vec![head(&first), stream(&second), b.clone()]);
    let (before, after): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|(_, row)| matches!(row[0], Value::Time(ts) if ts < 30 * S));
    assert!(is_unseen(&before));
    assert!(after[7..].iter().all(|(_, row)| row[5] == Value::Float(1.0)), "{after:?}");
    // So does the life before it.
    let (rows, _) = merge(&program, vec![stream(&first), head(&second), b]);
    let (before, after): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|(_, row)| matches!(row[0], Value::Time(ts) if ts < 30 * S));
    assert!(is_unseen(&after));
    assert!(before[..80].iter().all(|(_, row)| row[5] == Value::Float(1.0)), "{before:?}");
}

/// One stream without a whole head cost all other probes everything.
#[test]
fn a_stream_without_a_head_costs_the_other_probes_nothing() {
    let program = windows();
    let [first, _, other] = two_lives(&program);
    let (head, b) = (stream(&(first.0.clone(), Vec::new())), stream(&other));
    let want = rows_of_one(&program, |i| i % 2 == 1);
    for cut in [0, 3, 6, head.len() - 1] {
        for streams in [[head[..cut].to_vec(), b.clone()], [b.clone(), head[..cut].to_vec()]] {
            let (rows, merged) = merge(&program, streams.into());
            assert_eq!(counted(&rows), counted(&want), "{cut}");
            assert!(is_unseen(&rows), "nobody knows what its probe saw: {cut}");
            assert_eq!((merged.streams.len(), merged.headless.len()), (1, 1), "{cut}");
            assert!(merged.streams[0].is_whole() && merged.streams[0].late == 0, "{cut}");
        }
    }
}

fn count(value: &Value) -> i128 {
    match value {
        Value::Int(n) => i128::from(*n),
        other => panic!("{other:?} is no count"),
    }
}

#[test]
fn messages_that_are_missing_are_counted_and_hold_nothing_back() {
    let program = windows();
    let (head, mut messages) = publish(&program, "a", 1, frames(|_| true));
    let all = messages.len();
    messages.drain(10..13);
    messages.remove(40);
    let left = messages.len() as u64;
    let (rows, merged) = merge(&program, vec![stream(&(head, messages))]);
    let report = &merged.streams[0];
    assert_eq!((report.missing, report.messages), (4, left), "{report}");
    assert!(!report.is_whole() && matches!(report.end, StreamEnd::Ended), "{report}");
    let want = rows_of_one(&program, |_| true);
    assert!(rows.len() < want.len() && rows.len() > want.len() - 5 * 7, "{} rows", rows.len());
    let is_whole = |(_, row): &(usize, Vec<Value>)| {
        let mut one = want.iter().filter(|(_, one)| one[..2] == row[..2]);
        one.any(|(_, one)| one[..5] == row[..5])
    };
    assert!(rows.iter().all(is_whole), "windows are whole or missing");
    // It is not known what was in the windows that are missing, and all of the others are seen.
    let is_unseen = |row: &&(usize, Vec<Value>)| matches!(row.1[5], Value::Float(x) if x < 1e-6);
    let unseen = rows.iter().filter(is_unseen).count();
    assert!(unseen <= 5 * 7, "{unseen} of {} rows", rows.len());
    let seen = rows.iter().filter(|(_, row)| row[5] == Value::Float(1.0)).count();
    assert_eq!(seen + unseen, rows.len());
    assert!(report.to_string().contains("4 missing between them"), "{report} of {all}");
}

#[test]
fn messages_of_another_probe_or_another_query_end_their_stream() {
    let program = windows();
    let a = publish(&program, "a", 1, frames(|i| i % 2 == 0));
    let b = publish(&program, "b", 1, frames(|i| i % 2 == 1));
    let want = counted(&rows_of_one(&program, |i| i % 2 == 1));
    let forged = stream(&(a.0.clone(), b.1.clone()));
    let (rows, merged) = merge(&program, vec![forged, stream(&b)]);
    assert_eq!(ends(&merged), ["OtherProbe", "Ended"]);
    // The merge does not know what the probe saw of which only the head is its own.
    assert_eq!((counted(&rows), is_unseen(&rows)), (want.clone(), true));

    let other = self::program("packets | summarize n = count() by ip.dst every 2s");
    let (_, others) = publish(&other, "a", 1, frames(|i| i % 2 == 0));
    let (rows, merged) = merge(&program, vec![stream(&(a.0.clone(), others)), stream(&b)]);
    assert!(ends(&merged)[0].starts_with("Unreadable(Target"), "{:?}", ends(&merged));
    assert_eq!((counted(&rows), is_unseen(&rows)), (want, true));
}

#[test]
fn probes_that_do_not_belong_together_are_refused_by_name() {
    let program = windows();
    let (head, messages) = publish(&program, "a", 1, frames(|i| i < 10));
    let with = |name: &str, change: fn(&mut ProbeHead)| {
        let mut head = head.clone();
        change(&mut head);
        opened(name, stream(&(head, messages.clone())))
    };
    let refused = |change: fn(&mut ProbeHead)| {
        let streams = vec![with("first", |_| {}), with("second", change)];
        Merge::new(streams).err().expect("it is refused").to_string()
    };
    let inner = refused(|head| head.rules.headers = "inner".to_owned());
    assert!(inner.starts_with("second: its probe has --headers inner, and that of first"));
    assert!(refused(|head| head.rules.fragments = true).contains("--fragments true"));
    assert!(refused(|head| head.rules.lateness_ns = 0).contains("--lateness 0ns"));
    assert_eq!(Merge::new(Vec::new()).err(), Some(MixedProbes::None));
    let merge = Merge::new(vec![with("first", |_| {}), with("second", |_| {})]).expect("alike");
    let other = merge.check_query(7).expect_err("another query").to_string();
    assert!(other.contains("first: its probe (weir 0.1.0) runs another query"), "{other}");
}

/// Bytes that come when they are sent.
struct Piped(mpsc::Receiver<Vec<u8>>, Vec<u8>);

impl Read for Piped {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.1.is_empty() {
            self.1 = self.0.recv().unwrap_or_default();
        }
        let n = self.1.len().min(into.len());
        into[..n].copy_from_slice(&self.1[..n]);
        self.1.drain(..n);
        Ok(n)
    }
}

/// Emitted rows, as they come, to another thread.
struct Reported(mpsc::Sender<usize>);

impl Sink for Reported {
    fn open(&mut self, _: &[weir_engine::rows::Output]) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, _: usize, rows: &weir_engine::rows::Rows) -> io::Result<()> {
        self.0.send(rows.len).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn rows_come_as_soon_as_the_slowest_probe_has_sent_its_window() {
    let program = windows();
    let (fast, slow) = (frames(|i| i % 2 == 0), frames(|i| i % 2 == 1));
    let fast = stream(&publish(&program, "fast", 1, fast));
    let (head, messages) = publish(&program, "slow", 1, slow);
    let (send, come) = mpsc::channel();
    let (report, rows) = mpsc::channel();
    send.send(stream(&(head, Vec::new()))).expect("it is read");
    let piped = Box::new(Piped(come, Vec::new()));
    let streams = vec![opened("fast", fast), reads("slow", piped)];
    let flags = Arc::<[AtomicBool; 2]>::default();
    let theirs = Arc::clone(&flags);
    let (answer, answers) = mpsc::channel();
    let merging = std::thread::spawn(move || {
        let [stop, asked] = &*theirs;
        let tell = |probes: &[ProbeProgress]| answer.send(probes.to_vec()).expect("it is heard");
        let control = MergeControl { stop, asked, tell: &tell, skew: NO_SKEW, lost: &|_| {} };
        merge_with(&windows(), streams, &control, &mut Reported(report))
    });
    let [stop, asked] = &*flags;
    let framed =
        |message: &Vec<u8>| [&(message.len() as u32).to_le_bytes()[..], &message[..]].concat();
    // Enough for 15 of the 30 windows.
    for message in &messages[..messages.len() / 2] {
        send.send(framed(message)).expect("it is read");
    }
    let mut seen = 0;
    while seen < 12 * 7 {
        seen += rows.recv().expect("rows come before the end");
    }
    assert!(seen <= 16 * 7, "{seen} rows");
    // The probe is silent now; nothing but a word ends the wait, and who asks is told of it.
    let waits_for_slow = |_| {
        asked.store(true, Ordering::Relaxed);
        let told = answers.recv().expect("it answers");
        let of = |name: &str| told.iter().find(|probe| probe.probe == name).expect("it is there");
        let (fast, slow) = (of("fast"), of("slow"));
        slow.standing == ProbeStanding::Slowest
            && fast.standing == ProbeStanding::Ahead
            && slow.closed >= Some(24 * S)
            && fast.closed > slow.closed
    };
    assert!((0..100).any(waits_for_slow), "the fast one is read as far as it is ahead");
    stop.store(true, Ordering::Relaxed);
    let merged = merging.join().expect("it ends");
    assert!(merged.was_stopped);
    seen += rows.iter().sum::<usize>();
    assert!(seen < 30 * 7 && matches!(merged.streams[1].end, StreamEnd::Unread), "{seen} rows");
}

/// The probe of a stream that is not read on finds it closed, while the merge waits for others.
#[test]
fn a_stream_that_is_given_up_is_closed() {
    let program = windows();
    let (_, of_another) = publish(&program, "a", 1, frames(|i| i < 10));
    let head_of = |probe| {
        let (head, _) = publish(&program, probe, 1, frames(|_| false));
        stream(&(head, Vec::new()))
    };
    let (forger, forged) = mpsc::channel();
    let (other, silent) = mpsc::channel();
    forger.send(head_of("b")).expect("it is read");
    other.send(head_of("silent")).expect("it is read");
    let streams = [("forged", forged), ("silent", silent)];
    let streams = streams.map(|(name, come)| reads(name, Box::new(Piped(come, Vec::new()))));
    let merging = std::thread::spawn(move || {
        let (stop, asked) = (&AtomicBool::new(false), &AtomicBool::new(false));
        let control = MergeControl {
            stop,
            asked,
            tell: &|_| unreachable!("nobody asked"),
            skew: NO_SKEW,
            lost: &|_| {},
        };
        merge_with(&windows(), streams.into(), &control, &mut Collect::default())
    });
    let message = &of_another[0];
    let framed = [&(message.len() as u32).to_le_bytes()[..], message].concat();
    while forger.send(framed.clone()).is_ok() {
        std::thread::yield_now();
    }
    drop(other);
    let merged = merging.join().expect("it ends");
    assert_eq!(ends(&merged), ["OtherProbe", "Gone(None)"]);
}

#[test]
fn heads_are_waited_for_until_it_is_stopped() {
    let (send, come) = mpsc::channel();
    let input = |come| -> Vec<(String, Box<dyn Read + Send>)> {
        vec![("waits".to_owned(), Box::new(Piped(come, Vec::new())))]
    };
    let stopped = ProbeStream::read_heads(input(come), &AtomicBool::new(true));
    assert!(stopped.expect("it is not known what comes").is_none());
    drop(send);
    let (send, come) = mpsc::channel();
    drop(send);
    let foreign = ProbeStream::read_heads(input(come), &AtomicBool::new(false)).err();
    let foreign = foreign.expect("its writer has gone").to_string();
    assert_eq!(foreign, "waits: it is empty: no probe has written to it");
}

#[test]
fn what_a_stream_holds_can_be_read_back() {
    let program = windows();
    let (head, messages) = publish(&program, "a", u64::MAX, frames(|i| i < 100));
    let bytes = stream(&(head.clone(), messages.clone()));
    let (mut reader, found) = ProbeReader::new(&bytes[..]).expect("a stream");
    let (mut read, mut message) = (Vec::new(), Vec::new());
    while reader.next(&mut message).expect("whole") == StreamItem::Message {
        read.push(message.clone());
    }
    assert_eq!((found, read), (head, messages));
}

/// The streams of a probe with two lives, each over half of the time, and of another over all.
fn two_lives(program: &Program) -> [(ProbeHead, Vec<Vec<u8>>); 3] {
    let half = PACKETS / 2;
    [
        publish(program, "a", 1, frames(|i| i % 2 == 0 && i < half)),
        publish(program, "a", 2, frames(|i| i % 2 == 0 && i >= half)),
        publish(program, "b", 1, frames(|i| i % 2 == 1)),
    ]
}

#[test]
fn lives_within_a_stream_follow_each_other() {
    let program = windows();
    let [first, second, other] = two_lives(&program);
    let want = rows_of_one(&program, |_| true);
    let both = [stream(&first), stream(&second)].concat();
    let (rows, merged) = merge(&program, vec![both.clone(), stream(&other)]);
    assert_eq!(rows, want);
    assert_eq!(ends(&merged), ["Ended", "Ended"]);
    let report = &merged.streams[0];
    assert!(report.is_whole() && report.to_string().ends_with("in 2 lives"), "{report}");

    // Heads and messages that come again, even those of an earlier life, count once.
    let again = [both.clone(), stream(&second), both].concat();
    let (rows, merged) = merge(&program, vec![stream(&other), again]);
    assert_eq!(rows, want);
    let report = &merged.streams[1];
    assert!(report.is_whole() && report.lives == 2 && report.repeated > 10, "{report}");
}

#[test]
fn a_life_that_breaks_off_within_a_stream_is_told() {
    let program = windows();
    let [mut first, second, other] = two_lives(&program);
    first.1.truncate(first.1.len() - 2);
    let both = [stream(&first), stream(&second)].concat();
    let (rows, merged) = merge(&program, vec![both, stream(&other)]);
    let report = &merged.streams[0];
    assert!(!report.is_whole() && report.broken == 1, "{report}");
    assert!(report.to_string().contains("in 2 lives, of which 1 broke off"), "{report}");
    assert!(!rows.is_empty());
}

/// A message missing just before the end of a life was not counted if another life followed.
#[test]
fn a_message_missing_before_the_end_of_a_life_is_counted() {
    let program = windows();
    let [mut first, second, other] = two_lives(&program);
    first.1.remove(first.1.len() - 2);
    for streams in [
        vec![[stream(&first), stream(&second)].concat(), stream(&other)],
        vec![stream(&first), stream(&other), stream(&second)],
    ] {
        let (_, merged) = merge(&program, streams);
        let report = &merged.streams[0];
        assert_eq!((report.missing, report.is_whole()), (1, false), "{report}");
    }
}

#[test]
fn a_life_of_another_query_or_another_probe_is_refused() {
    let program = windows();
    let [first, second, other] = two_lives(&program);
    for change in [
        (|head| head.fingerprint = ProbeHead::fingerprint_text(7)) as fn(&mut ProbeHead),
        |head| head.rules.fragments = true,
        |head| head.probe = "c".to_owned(),
    ] {
        let mut changed = second.clone();
        change(&mut changed.0);
        let both = [stream(&first), stream(&changed)].concat();
        let (_, merged) = merge(&program, vec![both, stream(&other)]);
        let report = &merged.streams[0];
        let refused = matches!(report.end, StreamEnd::Mixed(_) | StreamEnd::OtherProbe);
        assert!(refused && !report.is_whole(), "{report}");
    }
}

#[test]
fn a_life_whose_clock_may_differ_too_much_is_refused() {
    let program = windows();
    let [mut first, mut second, mut other] = two_lives(&program);
    let clock = |max_error_us| Some(ProbeClock { max_error_us });
    (first.0.clock, other.0.clock) = (clock(Some(15)), clock(Some(5)));
    for (error, is_refused) in [(Some(15), false), (Some(16), true), (None, true)] {
        second.0.clock = clock(error);
        let streams = [[stream(&first), stream(&second)].concat(), stream(&other)];
        let streams = streams.map(|bytes| opened("a", bytes)).into();
        let merge = Merge::new(streams).expect("they belong together");
        let merge = merge.with_max_skew(Duration::from_micros(20)).expect("they are in step");
        let (stop, asked) = (&AtomicBool::new(false), &AtomicBool::new(false));
        let skew = SkewWatch { most: Duration::MAX, tell: &|_, _| () };
        let tell = &|_: &[ProbeProgress]| unreachable!("nobody asked");
        let control = MergeControl { stop, asked, tell, skew, lost: &|_| {} };
        let merged = run_merge(&program, merge, &control, &mut Collect::default());
        let end = &merged.streams[0].end;
        let refused = matches!(end, StreamEnd::Mixed(MixedProbes::Clocks(_)));
        assert_eq!(refused, is_refused, "{error:?}: {end:?}");
    }
}

fn paused((head, messages): &(ProbeHead, Vec<Vec<u8>>)) -> Vec<u8> {
    [&stream(&(head.clone(), messages.clone()))[..], b"WPSP"].concat()
}

/// A probe that has ended, or was retired, holds no window back while its stream stays open; once
/// its next life begins, windows wait for it again.
#[test]
fn nobody_waits_for_a_probe_that_rests() {
    let program = windows();
    let [first, second, other] = two_lives(&program);
    let want = rows_of_one(&program, |_| true).len();
    for cut in [0, 1] {
        let mut first = first.clone();
        first.1.truncate(first.1.len() - cut);
        let (send, come) = mpsc::channel();
        let (report, rows) = mpsc::channel();
        send.send(paused(&first)).expect("it is read");
        let piped = Box::new(Piped(come, Vec::new()));
        // The other one has sent all but its last seconds.
        let (all, last) = other.1.split_at(other.1.len() - 6);
        let (more, others) = mpsc::channel();
        more.send(stream(&(other.0.clone(), all.to_vec()))).expect("it is read");
        let others = Box::new(Piped(others, Vec::new()));
        let streams = vec![reads("rests", piped), reads("goes on", others)];
        let merging = std::thread::spawn(move || {
            let (stop, asked) = (&AtomicBool::new(false), &AtomicBool::new(false));
            let control = MergeControl {
                stop,
                asked,
                tell: &|_| unreachable!("nobody asked"),
                skew: NO_SKEW,
                lost: &|_| {},
            };
            merge_with(&windows(), streams, &control, &mut Reported(report))
        });
        let mut seen = 0;
        // Far more than the first life has to do with.
        while seen < want * 8 / 10 {
            seen += rows.recv().expect("rows come while the stream is open");
        }
        send.send(paused(&second)).expect("it is read");
        for message in last {
            let framed = [&(message.len() as u32).to_le_bytes()[..], message].concat();
            more.send(framed).expect("it is read");
        }
        drop((send, more));
        let merged = merging.join().expect("it ends");
        let report = &merged.streams[0];
        assert_eq!((report.lives, report.broken), (2, cut as u64), "{report}");
        assert!(report.late > 0, "windows went on without it: {report}");
    }
}

#[test]
fn a_stream_that_begins_anywhere_lacks_nothing() {
    let program = windows();
    let (head, mut messages) = publish(&program, "a", 1, frames(|_| true));
    messages.drain(..10);
    for (begin, missing) in [(Begin::Anywhere, 0), (Begin::OfLife, 10)] {
        let bytes = stream(&(head.clone(), messages.clone()));
        let merge = Merge::new(vec![opened("late", bytes)]).expect("one").begin(begin);
        let (functions, options) = (Functions::default(), Options::default());
        let plan = Physical::new(&program, &[]);
        let receiver = Receiver::new(&plan, &functions, &options, &merge.probes());
        let (stop, asked) = (&AtomicBool::new(false), &AtomicBool::new(false));
        let control = MergeControl {
            stop,
            asked,
            tell: &|_| unreachable!("nobody asked"),
            skew: NO_SKEW,
            lost: &|_| {},
        };
        let (mut sink, receiver) = (Collect::default(), receiver.expect("it can be spread"));
        sink.open(receiver.outputs()).expect("memory opens");
        let merged = merge.run(receiver, &mut sink, &control);
        assert_eq!(merged.expect("it runs").streams[0].missing, missing);
    }
}
