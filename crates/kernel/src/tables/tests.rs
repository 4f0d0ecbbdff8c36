//! Frames that a program counts, and windows that end meanwhile, against runs over all frames.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicI64};
use weir_capture::ebpf::{Program, ProgramKind, SharedMemory, can_wait_for_programs, cpu_numbers};
use weir_ebpf::Reg::*;
use weir_ebpf::{Assembler, Cond, Size};
use weir_engine::functions::Functions;
use weir_engine::rows::Collect;
use weir_engine::run::{Options, run};
use weir_model::Frames;
use weir_offload::{FrameCount, TableCode, TableExits, TableOptions, TablePlaces, ValueShape};
use weir_packet::craft::Frame;
use weir_packet::source::{Account, FrameBatch, Gap, LinkType, Source, SourceError};
use weir_plan::{Stage, Summarize, Value};

/// Whether this test may load programs; says that it is skipped where not.
#[expect(clippy::print_stderr, reason = "tests say what they leave out")]
fn may(test: &str) -> bool {
    let refused = SharedMemory::new("weir-test", 1).err();
    if let Some(why) = &refused {
        eprintln!("SKIPPED {test} needs root and bpf(2): {why}");
    }
    refused.is_none() && can_wait_for_programs()
}

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_800_000_000 * SECOND;

fn query(text: &str) -> weir_plan::Program {
    let query = weir_lang::Query { name: "-e", text };
    weir_lang::compile(&query, &weir_lang::Options::default()).expect("right").program
}

fn summarize(program: &weir_plan::Program, p: usize) -> &Summarize {
    let stage = program.pipelines[p].stages.iter().find_map(|stage| match stage {
        Stage::Summarize(summarize) => Some(summarize),
        _ => None,
    });
    stage.expect("it summarizes")
}

/// Two pipelines: bytes by UDP port, and the time of the last frame.
const QUERY: &str = "packets | summarize n = count(), bytes = sum(len) by udp.dport every 1s
packets | summarize n = count(), last = max(ts) every 2s";

/// Tables of both pipelines, whose clock shows `time`, and a program that counts UDP over IPv4:
/// returns 1 for frames that go up.
fn kernel(program: &weir_plan::Program, time: &Arc<AtomicI64>) -> (Arc<KernelTables>, Program) {
    let word = |greatest, is_nullable| ValueShape::Word { least: 0, greatest, is_nullable };
    let cpus = u32::try_from(cpu_numbers().expect("there are CPUs")).expect("few");
    let options = TableOptions { cpus, secret: [3, 0x9e37_79b9_7f4a_7c15] };
    let new = |p, keys: &[ValueShape], args: &[Option<ValueShape>]| {
        Table::new(PipelineId(p), summarize(program, p), keys, args, options).expect("it can")
    };
    let tables = vec![
        new(0, &[word(0xffff, true)], &[None, Some(word(0x3ffff, false))]),
        new(1, &[], &[None, Some(word(i64::MAX - 1, false))]),
    ];
    let mut a = Assembler::new();
    let up = a.label("up");
    a.load(Size::W, R6, R1, 0).load(Size::W, R7, R1, 4);
    a.mov(R5, R6).add(R5, 42).jump_if(Cond::Gt, R5, R7, up);
    let a = &mut a;
    TableCode::begin(a, -8);
    let codes: Vec<_> = (0_usize..2)
        .map(|number| {
            let slot = -16 - 8 * number as i16;
            let places = TablePlaces { cpu: -8, key: -40, slot, arrival: -48 };
            let (map, control) = (1 + number as i32, 0);
            TableCode { table: &tables[number], map, control, number, places }
        })
        .collect();
    codes[0].key().begin(a);
    a.load(Size::H, R0, R6, 36).be(Size::H, R0);
    codes[0].key().set_word(a, 0, R0, R1);
    codes.iter().for_each(|code| code.find(a, TableExits { full: up, ended: up }));
    codes[0].slot(a, R8);
    codes[0].count(a, R8, R0);
    a.mov(R0, R7).alu(weir_ebpf::Alu::Sub, R0, R6);
    codes[0].update(a, 1, R8, [R0, R0], R1);
    TableCode::clock(a, Control { tables: 2 }, 0, R0);
    codes[1].slot(a, R8);
    codes[1].count(a, R8, R1);
    codes[1].update(a, 1, R8, [R0, R0], R1);
    a.mov(R0, 0).exit();
    a.bind(up);
    a.mov(R0, 1).exit();
    let code = a.finish().unwrap_or_else(|e| panic!("{e}"));
    let time = Arc::clone(time);
    let clocks = move || Clocks { real: time.load(Ordering::SeqCst), monotonic: 0 };
    let kernel = Arc::new(KernelTables::new(tables, Box::new(clocks), Box::new(|_| {})));
    let frames = SharedMemory::new("weir-frames", FrameCount::WORDS).expect("memory");
    let memory = kernel
        .add(FrameCounts { memory: Arc::new(frames), may_change: false }, None, &[])
        .expect("the kernel has memory");
    let fds = [&memory.control, &memory.memory[0], &memory.memory[1]].map(SharedMemory::number);
    let loaded = Program::load(ProgramKind::Xdp, "weir-test", &code.with_maps(&fds));
    kernel.read_from(memory);
    (kernel, loaded.unwrap_or_else(|e| panic!("{e}\n{code}")))
}

/// Rows, without the last column of the second pipeline: the kernel has its own time for a frame.
fn rows(
    program: &weir_plan::Program,
    frames: &[(i64, Vec<u8>)],
    options: &Options,
) -> Vec<(usize, Vec<Value>)> {
    let mut sink = Collect::default();
    let mut source = Frames::new(LinkType::ETHERNET, frames);
    let functions = Functions::default();
    let outcome = run(program, &functions, &mut source, &mut sink, options, &mut |_| {});
    assert!(outcome.error.is_none() && outcome.ledger.late == 0, "{:?}", outcome.error);
    let shown = |(output, mut cells): (usize, Vec<Value>)| {
        cells.truncate(if output == 0 { 4 } else { 2 });
        (output, cells)
    };
    sink.rows.into_iter().map(shown).collect()
}

fn frame(n: i64) -> Vec<u8> {
    let from = std::net::Ipv4Addr::new(10, 0, 0, n as u8);
    let frame = Frame::ethernet().ipv4(from, from);
    frame.udp(7, (n % 5) as u16).payload(&vec![0; n as usize % 90]).bytes()
}

/// A frame every 70 ms, of which the program counts some.
fn frames() -> Vec<(i64, Vec<u8>, bool)> {
    (0..200).map(|n| (START + n * 70_000_000, frame(n), n % 3 != 1)).collect()
}

#[test]
fn windows_that_end_on_time_give_the_rows_of_one_run() {
    if !may("windows_that_end_on_time_give_the_rows_of_one_run") {
        return;
    }
    for workers in [1, 2, 4] {
        let (program, time) = (query(QUERY), Arc::new(AtomicI64::new(START)));
        let (kernel, loaded) = kernel(&program, &time);
        let mut up = Vec::new();
        for (ts, frame, counted) in frames() {
            time.store(ts, Ordering::SeqCst);
            kernel.tick();
            if counted {
                assert_eq!(loaded.test_run(&frame, 1).expect("a packet").returned, 0);
            } else {
                up.push((ts, frame));
            }
        }
        assert!(kernel.latest() < Duration::from_millis(70), "{:?}", kernel.latest());
        let all: Vec<_> = frames().into_iter().map(|(ts, frame, _)| (ts, frame)).collect();
        let wanted = rows(&program, &all, &Options::default());
        let feed: Arc<dyn KernelFeed> = Arc::clone(&kernel) as _;
        let options = Options { workers, kernel: Some(feed), ..Options::default() };
        assert_eq!(rows(&program, &up, &options), wanted);
        // From here on frames go up.
        assert_eq!(loaded.test_run(&frame(1), 1).expect("a packet").returned, 1);
    }
}

#[test]
fn the_clocks_show_the_time() {
    let [first, second] = [Clocks::now(), Clocks::now()];
    assert!(first.real > START - 86_400 * 365 * 4 * SECOND, "{first:?}");
    assert!(first.monotonic > 0 && second.monotonic >= first.monotonic);
}

fn closed(kernel: &KernelTables, p: usize, before: Option<i64>) -> Vec<(i64, u64)> {
    let mut all = Vec::new();
    kernel.close(PipelineId(p), before, &mut |groups| {
        // The first aggregate of both is the count.
        all.push((groups.start, groups.cells.iter().step_by(2).map(|cell| cell.word).sum()));
    });
    all
}

#[test]
fn a_window_ends_when_the_watermark_passes_it_at_the_latest() {
    if !may("a_window_ends_when_the_watermark_passes_it_at_the_latest") {
        return;
    }
    let time = Arc::new(AtomicI64::new(START));
    let (kernel, loaded) = kernel(&query(QUERY), &time);
    let count = |n| (0..n).for_each(|i| _ = loaded.test_run(&frame(i), 1).expect("a packet"));
    count(10);
    assert_eq!(closed(&kernel, 0, Some(START)), [], "its window is open");
    // The clock is behind the time of packets.
    assert_eq!(closed(&kernel, 0, Some(START + SECOND)), [(START, 10)]);
    count(7);
    assert_eq!(closed(&kernel, 0, Some(START + SECOND)), []);
    assert_eq!(closed(&kernel, 1, Some(START)), []);
    time.store(START + 5 * SECOND + 1, Ordering::SeqCst);
    kernel.tick();
    assert_eq!(kernel.latest(), Duration::from_nanos(3_000_000_001));
    count(1);
    // A clock that steps back ends nothing.
    time.store(START - SECOND, Ordering::SeqCst);
    kernel.tick();
    count(1);
    assert_eq!(closed(&kernel, 0, Some(START + 5 * SECOND)), [(START + SECOND, 7)]);
    assert_eq!(closed(&kernel, 1, None), [(START, 17), (START + 4 * SECOND, 2)]);
    count(3);
    assert_eq!(closed(&kernel, 0, None), [(START + 5 * SECOND, 2)], "those went up");
}

#[test]
fn nothing_is_lost_while_windows_end() {
    if !may("nothing_is_lost_while_windows_end") {
        return;
    }
    let time = Arc::new(AtomicI64::new(START));
    let (kernel, loaded) = kernel(&query(QUERY), &time);
    kernel.start().expect("a thread");
    let ended = AtomicBool::new(false);
    let (mut sums, mut windows) = ([0, 0], [0, 0]);
    let (sent, up) = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let (mut sent, mut up) = (0, 0);
            while !ended.load(Ordering::Relaxed) {
                up += u64::from(loaded.test_run(&frame(sent as i64), 1).expect("run").returned);
                sent += 1;
            }
            (sent, up)
        });
        for n in 1..60 {
            let now = START + n * SECOND / 2;
            time.store(now, Ordering::SeqCst);
            kernel.tick();
            for (p, (sum, windows)) in sums.iter_mut().zip(&mut windows).enumerate() {
                for (_, count) in closed(&kernel, p, Some(now - now.rem_euclid(2 * SECOND))) {
                    *sum += count;
                    *windows += 1;
                }
            }
        }
        ended.store(true, Ordering::Relaxed);
        sender.join().expect("no panic")
    });
    for (p, sum) in sums.iter_mut().enumerate() {
        *sum += closed(&kernel, p, None).iter().map(|window| window.1).sum::<u64>();
    }
    assert_eq!(sums.map(|sum| sum + up), [sent, sent]);
    assert!(windows[0] > 20 && windows[1] > 10 && up == 0, "{windows:?} {up}");
}

/// Batches of one frame each, and what was found lost at some times.
struct Lossy(std::collections::VecDeque<Batch>);

#[derive(Clone)]
enum Batch {
    Frame(i64, Vec<u8>),
    /// This time has come, and so many frames were lost.
    Lost(i64, u64),
}

impl Source for Lossy {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        match self.0.pop_front() {
            None => return Ok(false),
            Some(Batch::Frame(ts, frame)) => {
                return Frames::new(LinkType::ETHERNET, &[(ts, frame)]).fill(batch);
            }
            Some(Batch::Lost(time, frames)) => {
                batch.clear();
                batch.set_reached(time);
                batch.set_gap(Gap { frames, since: time, until: time });
            }
        }
        Ok(true)
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        Account::default()
    }
}

/// The tables of a program's part in the kernel, whose clock shows `time`, and that part, loaded.
fn offloaded(program: &weir_plan::Program, time: &Arc<AtomicI64>) -> (Arc<KernelTables>, Program) {
    let cpus = u32::try_from(cpu_numbers().expect("there are CPUs")).expect("few");
    let options = weir_offload::OffloadOptions {
        groups: Some([5, 7]),
        ..weir_offload::OffloadOptions::new(weir_offload::Hook::Xdp, cpus)
    };
    let plan = weir_plan::physical::Physical::new(program, &[]);
    let compiled = weir_offload::compile(&plan, &options).unwrap_or_else(|e| panic!("{e}"));
    assert!(compiled.asks_for_losses);
    let clock = Arc::clone(time);
    let clocks = move || Clocks { real: clock.load(Ordering::SeqCst), monotonic: 0 };
    let kernel =
        Arc::new(KernelTables::new(compiled.tables.clone(), Box::new(clocks), Box::new(|_| {})));
    let frames = SharedMemory::new("weir-frames", compiled.maps[0].words).expect("memory");
    let memory = kernel
        .add(FrameCounts { memory: Arc::new(frames), may_change: false }, None, &[])
        .expect("memory");
    let mut fds = vec![memory.frames.memory.number(), memory.control.number()];
    fds.extend(memory.memory.iter().map(SharedMemory::number));
    let code = compiled.code.with_maps(&fds);
    let loaded = Program::load(ProgramKind::Xdp, "weir-test", &code);
    let loaded = loaded.unwrap_or_else(|e| panic!("{e}\n{code}"));
    kernel.read_from(memory);
    // As an engine asks before the first packet.
    for stage in program.pipelines.iter().flat_map(|p| &p.stages) {
        if let Stage::Summarize(s) = stage {
            let ticks = match s.window {
                weir_plan::Window::Session(session) => Some(session.tick_ns()),
                window => window.pane(),
            };
            ticks.into_iter().for_each(|span| kernel.count_by(span));
        }
    }
    (kernel, loaded)
}

/// With losses, rows are those of a run in which all frames come up: whether the kernel filters
/// frames, counts them, or both.
#[test]
fn completeness_counts_frames_that_the_kernel_finished() {
    if !may("completeness_counts_frames_that_the_kernel_finished") {
        return;
    }
    let queries = [
        // It counts.
        "packets | where udp | summarize n = count(), completeness() by udp.dport every 1s",
        "packets | summarize n = count(), completeness() over 3s every 1s",
        "packets | summarize n = count(), completeness()",
        // It filters, and workers do the rest.
        "packets | where udp.dport < 2 | summarize n = count(), ports = distinct(udp.dport), \
         completeness() by ip.src every 2s",
        "packets | where udp.dport == 3 | summarize s = distinct(ip.src), completeness() \
         by ip.dst session 300ms",
        "packets | where udp.dport == 2 | summarize n = distinct(ip.src), completeness()
         packets | where udp.dport == 4 | summarize n = count(), completeness() every 1s
         packets | where tcp | summarize worst = count(), completeness() every 500ms",
    ];
    let mut imperfect = 0;
    for text in queries {
        let (program, time) = (query(text), Arc::new(AtomicI64::new(START)));
        let (kernel, loaded) = offloaded(&program, &time);
        let (mut all, mut up) = (Vec::new(), Vec::new());
        for n in 0..200 {
            let (ts, frame) = (START + n * 70_000_001, frame(n));
            time.store(ts, Ordering::SeqCst);
            kernel.tick();
            all.push(Batch::Frame(ts, frame.clone()));
            if loaded.test_run(&frame, 1).expect("a packet").returned != 0 {
                up.push(Batch::Frame(ts, frame));
            }
            let lost = if n % 13 == 12 { n as u64 } else { 0 };
            all.push(Batch::Lost(ts, lost));
            up.push(Batch::Lost(ts, lost));
        }
        let run = |batches: &[Batch], kernel: Option<Arc<dyn KernelFeed>>| {
            let mut sink = Collect::default();
            let mut source = Lossy(batches.to_vec().into());
            let (functions, options) =
                (Functions::default(), Options { kernel, ..Options::default() });
            let outcome = run(&program, &functions, &mut source, &mut sink, &options, &mut |_| {});
            assert!(outcome.error.is_none() && outcome.ledger.late == 0, "{:?}", outcome.error);
            sink.rows
        };
        let wanted = run(&all, None);
        assert_eq!(run(&up, Some(Arc::clone(&kernel) as _)), wanted, "{text}");
        let cells = wanted.iter().flat_map(|(_, cells)| cells);
        imperfect += cells.filter(|c| matches!(c, Value::Float(f) if *f < 1.0)).count();
    }
    assert!(imperfect > 50, "{imperfect}");
}
