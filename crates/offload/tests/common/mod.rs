//! Programs in the kernel beside the engine.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use weir_capture::ebpf::{Program, ProgramKind, SharedMemory, TestRun};
use weir_capture::{Options, open};
use weir_engine::functions::Functions;
use weir_engine::reading::Reading;
use weir_model::Frames;
use weir_model::TimeRules;
use weir_offload::{
    FrameCount, Hook, KernelOutlet, KernelProgram, MapSpec, NotOffloaded, OffloadOptions, compile,
};
use weir_packet::craft::Frame;
use weir_packet::egress::Outlet;
use weir_packet::fields::FieldId;
use weir_packet::source::{FrameBatch, LinkType};
use weir_packet::walk::Headers;
use weir_plan::physical::Physical;
use weir_plan::stage::{Column, Schema, Stage};
use weir_plan::{Expr, Input, SampleBy, Value};

/// A program that was loaded.
pub(crate) struct Kernel {
    pub(crate) program: KernelProgram,
    pub(crate) loaded: Program,
    /// Of its maps, the first of which counts frames.
    memory: Vec<SharedMemory>,
}

/// The fate of frames.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) filtered: u64,
    pub(crate) counted: u64,
    pub(crate) wanted: u64,
    pub(crate) unclear: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { filtered, counted, wanted, unclear } = self;
        write!(f, "{filtered} filtered, {counted} counted, {wanted} wanted, {unclear} unclear")
    }
}

/// Whether this test may load programs; says that it is skipped where not.
pub(crate) fn may(test: &str) -> bool {
    match SharedMemory::new("weir-test", 1) {
        Ok(_) => true,
        Err(why) => {
            eprintln!("SKIPPED {test} needs root and bpf(2): {why}");
            false
        }
    }
}

/// The root of the repository, from the folder of this crate.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The files that queries name.
#[derive(Debug)]
struct Checkout;

impl weir_lang::Files for Checkout {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let read = |folder: &str| std::fs::read(format!("{ROOT}/{folder}{path}"));
        read("").or_else(|_| read("queries/")).map_err(|e| e.to_string())
    }
}

fn try_program(text: &str) -> Result<weir_plan::Program, String> {
    let options = weir_lang::Options { files: Some(&Checkout), ..weir_lang::Options::default() };
    let query = weir_lang::Query { name: "query", text };
    let compiled = weir_lang::compile(&query, &options);
    compiled.map(|compiled| compiled.program).map_err(|diagnostics| format!("{diagnostics:?}"))
}

pub(crate) fn program_of(text: &str) -> weir_plan::Program {
    try_program(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The plan of a query, unless it has a mistake.
pub(crate) fn try_plan(text: &str) -> Option<Physical> {
    try_program(text).ok().map(|program| Physical::new(&program, &[]))
}

/// The plan of a query.
pub(crate) fn plan_of(text: &str) -> Physical {
    Physical::new(&program_of(text), &[])
}

/// The program for a query, in the kernel.
pub(crate) fn kernel(text: &str, hook: Hook) -> Result<Kernel, NotOffloaded> {
    kernel_read_by(Headers::OUTER, text, hook)
}

/// The same, which reads this packet of a frame.
pub(crate) fn kernel_read_by(
    headers: Headers,
    text: &str,
    hook: Hook,
) -> Result<Kernel, NotOffloaded> {
    let options = OffloadOptions { headers, ..OffloadOptions::new(hook, processors()) };
    kernel_of(&plan_of(text), options)
}

/// The same, which makes groups where it can.
pub(crate) fn counting_kernel(text: &str, hook: Hook) -> Result<Kernel, NotOffloaded> {
    let options =
        OffloadOptions { groups: Some([7, 13]), ..OffloadOptions::new(hook, processors()) };
    kernel_of(&plan_of(text), options)
}

/// A secret that keys are hashed with, such as a run draws.
const SECRET: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x9e37_79b9_7f4a_7c15];

/// The program in XDP for a query that hands packets out, to these outlets.
pub(crate) fn acting_kernel(text: &str, outlets: &[KernelOutlet]) -> Result<Kernel, NotOffloaded> {
    let options = OffloadOptions::new(Hook::Xdp, processors());
    let options = OffloadOptions { groups: Some(SECRET), outlets: Ok(outlets), ..options };
    kernel_of(&plan_of(text), options)
}

/// The same for packets that come by this interface.
pub(crate) fn kernel_at(
    text: &str,
    outlets: &[KernelOutlet],
    interface: &str,
) -> Result<Kernel, NotOffloaded> {
    let options = OffloadOptions::new(Hook::Xdp, processors());
    let interface = Some(interface);
    kernel_of(&plan_of(text), OffloadOptions { outlets: Ok(outlets), interface, ..options })
}

fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u32
}

fn kernel_of(plan: &Physical, options: OffloadOptions<'_>) -> Result<Kernel, NotOffloaded> {
    let hook = options.hook;
    let program = compile(plan, &OffloadOptions { may_change: true, ..options })?;
    let make = |map: &MapSpec| SharedMemory::new(&map.name, map.words).expect("memory");
    let memory: Vec<SharedMemory> = program.maps.iter().map(make).collect();
    let kind = match hook {
        Hook::Socket => ProgramKind::SocketFilter,
        Hook::Tcx => ProgramKind::TrafficControl,
        Hook::Xdp => ProgramKind::Xdp,
    };
    let numbers: Vec<i32> = memory.iter().map(SharedMemory::number).collect();
    let code = program.code.with_maps(&numbers);
    let loaded = Program::load(kind, "weir-oracle", &code);
    let loaded = loaded.unwrap_or_else(|e| panic!("{hook}: {e}\n{}", program.code));
    Ok(Kernel { program, loaded, memory })
}

impl Kernel {
    /// Says how long frames for an outlet may be.
    pub(crate) fn set_longest(&self, outlet: usize, longest: u64) {
        let actions = self.program.actions.as_ref().expect("it hands packets out");
        let words = self.memory.last().expect("that is the last map").words();
        words[actions.memory.longest(outlet)].store(longest, Relaxed);
    }

    /// Lets all frames go up, or as the plan says.
    pub(crate) fn hand_up(&self, all: bool) {
        self.memory[0].words()[FrameCount::hand_up(processors())].store(all.into(), Relaxed);
    }

    /// The words of the control memory, of programs that have it.
    pub(crate) fn control(&self) -> &[AtomicU64] {
        self.memory[1].words()
    }

    /// The words of a table of states.
    pub(crate) fn states(&self, table: usize) -> &[AtomicU64] {
        self.memory[2 + self.program.tables.len() + table].words()
    }

    /// Frames and bytes that it dropped, and those that went to each outlet.
    pub(crate) fn deeds(&self) -> Vec<(u64, u64)> {
        let actions = self.program.actions.as_ref().expect("it hands packets out");
        actions.memory.sums(self.memory.last().expect("that is the last map").words())
    }

    /// How many frames it counted so.
    fn count(&self, count: FrameCount) -> u64 {
        let words = self.memory[0].words().chunks_exact(FrameCount::WORDS);
        words.map(|cpu| cpu[count as usize].load(Relaxed)).sum()
    }

    /// The fate of a frame, and the return value of the program; `None` for frames that it can't be
    /// tried on.
    pub(crate) fn decide(&self, frame: &[u8]) -> Option<(FrameCount, u32)> {
        self.run(frame).map(|(count, run)| (count, run.returned))
    }

    /// The same, with the frame as it is afterwards.
    pub(crate) fn run(&self, frame: &[u8]) -> Option<(FrameCount, TestRun)> {
        let before = FrameCounts::of(self);
        let run = match self.program.hook {
            // The kernel takes off an Ethernet header first.
            Hook::Socket => self.loaded.test_run(&[&[0; 14][..], frame].concat(), 1),
            Hook::Tcx | Hook::Xdp => self.loaded.test_run(frame, 1),
        };
        let run = run.ok()?;
        let after = FrameCounts::of(self);
        Some((after.since(&before), run))
    }
}

/// All counts that a frame may be in.
struct FrameCounts([u64; FrameCount::COUNT]);

const DECISIONS: [FrameCount; FrameCount::COUNT] = [
    FrameCount::Filtered,
    FrameCount::Counted,
    FrameCount::Wanted,
    FrameCount::Unclear,
    FrameCount::Full,
    FrameCount::Acted,
];

impl FrameCounts {
    fn of(kernel: &Kernel) -> FrameCounts {
        FrameCounts(DECISIONS.map(|count| kernel.count(count)))
    }

    /// The one count that went up by one.
    fn since(&self, before: &FrameCounts) -> FrameCount {
        let up: Vec<usize> =
            (0..FrameCount::COUNT).filter(|&i| self.0[i] == before.0[i] + 1).collect();
        assert_eq!(up.len(), 1, "{:?} after {:?}", self.0, before.0);
        assert_eq!(self.0.iter().sum::<u64>(), before.0.iter().sum::<u64>() + 1);
        DECISIONS[up[0]]
    }
}

/// Which frames the engine keeps.
pub(crate) struct Oracle {
    kept: Vec<bool>,
    /// The frames that the walk finds malformed or cut, which have to go up.
    faulty: Vec<bool>,
}

impl Oracle {
    /// By the first stages of each pipeline over packets, as far as they are conditions and
    /// columns.
    pub(crate) fn new(text: &str, frames: &[Vec<u8>]) -> Oracle {
        Oracle::of(program_of(text), frames)
    }

    /// The same of a program.
    pub(crate) fn of(program: weir_plan::Program, frames: &[Vec<u8>]) -> Oracle {
        Oracle::read_by(Headers::OUTER, program, frames)
    }

    /// The same where fields are those of this packet of a frame.
    pub(crate) fn read_by(
        headers: Headers,
        program: weir_plan::Program,
        frames: &[Vec<u8>],
    ) -> Oracle {
        let kept = rows(&numbered(program), headers, frames);
        let faulty = numbered(program_of("packets | where malformed or cut"));
        Oracle { kept, faulty: rows(&faulty, headers, frames) }
    }
}

/// The conditions of each pipeline over packets, with the numbers of the packets that it keeps.
fn numbered(mut program: weir_plan::Program) -> weir_plan::Program {
    program.pipelines.retain(|p| p.input == Input::Packets);
    for pipeline in &mut program.pipelines {
        let plain = |s: &Stage| match s {
            Stage::Where(_) | Stage::Extend { .. } => true,
            Stage::Sample(sample) => matches!(sample.by, SampleBy::Key(_)),
            _ => false,
        };
        let n = pipeline.stages.iter().take_while(|s| plain(s)).count();
        pipeline.stages.truncate(n);
        numbers(pipeline);
    }
    program
}

/// Has a pipeline put out the numbers of its packets.
fn numbers(pipeline: &mut weir_plan::Pipeline) {
    let number = Expr::field(FieldId::named("number"));
    pipeline.schema = Schema { columns: vec![Column::new("number", &number.ty)] };
    pipeline.stages.push(Stage::Project { columns: vec![("number".to_owned(), number)] });
    pipeline.printed = true;
}

/// A frame that an outlet gets.
#[derive(Clone, Debug)]
pub(crate) struct Leaves {
    pub(crate) outlet: Outlet,
    /// Its length on the wire, which trimming does not change.
    pub(crate) len: u32,
    /// As an interface sends it.
    pub(crate) bytes: Vec<u8>,
}

/// The frames that outlets get for each frame, in order.
pub(crate) fn sent(text: &str, frames: &[Vec<u8>]) -> Vec<Vec<Leaves>> {
    sent_at(text, &timed(frames))
}

/// The same of frames with these times, which rise.
fn sent_at(text: &str, frames: &[(i64, Vec<u8>)]) -> Vec<Vec<Leaves>> {
    let mut source = Frames::new(LinkType::ETHERNET, frames);
    let answer = weir_model::run(&program_of(text), &Functions::default(), &mut source, &TIME);
    let mut outlets = vec![Vec::new(); frames.len()];
    for mut out in answer.frames {
        if out.bytes.len() < out.len as usize {
            weir_packet::shorten::make_whole(out.link, &mut out.bytes);
        }
        let number = frames.binary_search_by_key(&out.ts, |frame| frame.0).expect("a frame's time");
        let (outlet, len) = (out.outlet, out.len);
        outlets[number].push(Leaves { outlet, len, bytes: out.bytes });
    }
    outlets
}

/// The outlets that a program hands each frame to, in order, as it came.
pub(crate) fn handed_out_at(text: &str, frames: &[(i64, Vec<u8>)]) -> Vec<Vec<Outlet>> {
    let mut all = Vec::new();
    for (sent, (_, frame)) in sent_at(text, frames).into_iter().zip(frames) {
        assert!(sent.iter().all(|leaves| leaves.bytes == *frame), "frames leave as they came");
        all.push(sent.into_iter().map(|leaves| leaves.outlet).collect());
    }
    all
}

/// Nanoseconds from one frame to the next.
const APART_NS: i64 = 1000;

/// Frames with their times.
fn timed(frames: &[Vec<u8>]) -> Vec<(i64, Vec<u8>)> {
    frames.iter().enumerate().map(|(i, f)| (i as i64 * APART_NS, f.clone())).collect()
}

/// No frame is late.
const TIME: TimeRules = TimeRules { lateness_ns: 0, jump_ns: i64::MAX };

/// Which frames' numbers a program puts out.
fn rows(program: &weir_plan::Program, headers: Headers, frames: &[Vec<u8>]) -> Vec<bool> {
    let source = Frames::new(LinkType::ETHERNET, &timed(frames));
    let mut source = Reading::new(source).headers(headers);
    let answer = weir_model::run(program, &Functions::default(), &mut source, &TIME);
    let mut kept = vec![false; frames.len()];
    for (_, row) in answer.rows {
        let Value::Int(number) = row[0] else { panic!("a number") };
        kept[number as usize - 1] = true;
    }
    kept
}

/// Compares a program with the engine.
pub(crate) fn check(
    kernel: &Kernel,
    oracle: &Oracle,
    frames: &[Vec<u8>],
    name: &str,
    tally: &mut Tally,
) {
    let all = kernel.program.prefixes.iter().all(|p| {
        let stage = |why: &String| why.starts_with("the kernel does not") || why.contains("groups");
        p.counts || p.stopped_by.as_ref().is_none_or(stage)
    });
    for (i, frame) in frames.iter().enumerate() {
        let Some((decision, returned)) = kernel.decide(frame) else { continue };
        let (kept, hook) = (oracle.kept[i], kernel.program.hook);
        let shown =
            || format!("{name} at {hook}, frame {i}: {frame:02x?}\n{}", kernel.program.code);
        match decision {
            FrameCount::Filtered => {
                assert!(!kept, "filtered: {}", shown());
                assert!(!oracle.faulty[i], "filtered, but faulty: {}", shown());
                assert_eq!(returned, 0);
                tally.filtered += 1;
            }
            FrameCount::Wanted => {
                assert!(kept || !all, "wanted: {}", shown());
                assert_ne!(returned, 0);
                tally.wanted += 1;
            }
            FrameCount::Counted => {
                assert!(kept, "counted: {}", shown());
                assert!(!oracle.faulty[i], "counted, but faulty: {}", shown());
                assert_eq!(returned, 0);
                tally.counted += 1;
            }
            FrameCount::Unclear | FrameCount::Full => {
                assert_ne!(returned, 0);
                tally.unclear += 1;
            }
            FrameCount::Acted => panic!("it hands nothing out: {}", shown()),
        }
    }
}

/// Frames of our fixtures.
pub(crate) fn fixtures() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for entry in std::fs::read_dir(format!("{ROOT}/fixtures")).expect("fixtures").flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "pcap") {
            frames.extend(capture(&path.to_string_lossy()));
        }
    }
    assert!(frames.len() > 1000);
    frames.truncate(3000);
    frames
}

/// The whole Ethernet frames of a capture.
pub(crate) fn capture(path: &str) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let Ok(mut source) = open(path, &Options::default()) else { return frames };
    let mut batch = FrameBatch::new();
    while let Ok(true) = source.fill(&mut batch) {
        for i in 0..batch.len() {
            let frame = batch.frame(i);
            let whole = batch.lens()[i] as usize == frame.len();
            if batch.link == LinkType::ETHERNET && whole && (14..3000).contains(&frame.len()) {
                frames.push(frame.to_vec());
            }
        }
    }
    frames
}

/// The texts of our queries.
pub(crate) fn queries() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for folder in ["queries", "queries/detectors"] {
        for entry in std::fs::read_dir(format!("{ROOT}/{folder}")).expect("queries").flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "weir") {
                let text = std::fs::read_to_string(&path).expect("a query");
                all.push((path.display().to_string(), text));
            }
        }
    }
    all.sort();
    all
}

/// Frames of many forms, each also with bytes changed, and cut in many places.
pub(crate) fn crafted() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for (_, frame) in forms() {
        let bytes = frame.bytes();
        frames.push(bytes.clone());
        for at in 0..bytes.len().min(110) {
            for value in [0, 1, 0x7f, 0xff, bytes[at] ^ 1, bytes[at] ^ 0x20] {
                let mut changed = bytes.clone();
                changed[at] = value;
                frames.push(changed);
            }
        }
        for cut in 14..bytes.len().min(110) {
            frames.push(bytes[..cut].to_vec());
        }
    }
    frames.retain(|frame| frame.len() >= 14);
    frames
}

/// An IPv6 packet with so many headers of destination options.
fn extensions(n: usize) -> Frame {
    let from = std::net::Ipv6Addr::LOCALHOST;
    (0..n).fold(Frame::ethernet().ipv6(from, from), |frame, i| {
        frame.extension(60, &[1, 0, 0, 0, 0, i as u8])
    })
}

/// Names and forms.
fn forms() -> Vec<(&'static str, Frame)> {
    use std::net::{Ipv4Addr, Ipv6Addr};
    let (a, b) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 2));
    let (a6, b6) = (
        Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1),
        Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 2),
    );
    let eth = Frame::ethernet;
    vec![
        ("tcp", eth().ipv4(a, b).tcp(40_000, 80).flags(2).seq(u32::MAX).payload(&[1; 20])),
        ("udp", eth().ipv4(b, a).udp(53, 53).payload(&[7; 30])),
        ("options", eth().ipv4(a, b).options(&[1; 8]).tcp(1, 2).options(&[1; 12]).payload(&[1])),
        ("tcp6", eth().ipv6(a6, b6).tcp(65_535, 0).flags(18)),
        ("held4", eth().ipv6(Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped(), b6).udp(53, 53)),
        ("udp6", eth().vlan(10).ipv6(b6, a6).udp(1024, 22).payload(&[0; 9])),
        ("qinq", eth().vlan(10).vlan(20).ipv4(a, b).udp(53, 1).payload(&[3; 3])),
        ("three tags", eth().vlan(1).vlan(2).vlan(3).ipv4(a, b).udp(53, 1)),
        ("old tag", eth().tag(0x9100, 0xffff).ipv4(a, a).tcp(80, 80)),
        ("ping", eth().ipv4(a, b).icmp(8, 0).echo(1, 2)),
        ("ping6", eth().ipv6(a6, b6).icmp6(128, 0).echo(1, 2)),
        ("first fragment", eth().ipv4(a, b).fragment(0, true).udp(53, 53).payload(&[1; 16])),
        ("later fragment", eth().ipv4(a, b).fragment(64, false).payload(&[1; 16])),
        ("hop by hop", eth().ipv6(a6, b6).extension(0, &[0; 6]).icmp6(143, 0)),
        ("fragment6", eth().ipv6(a6, b6).extension(44, &[0, 1, 0, 0, 0, 9]).udp(53, 53)),
        ("later6", eth().ipv6(a6, b6).extension(44, &[0, 9, 0, 0, 0, 9]).payload(&[9; 40])),
        ("atomic6", eth().ipv6(a6, b6).extension(44, &[0, 0, 0, 0, 0, 9]).udp(53, 53)),
        ("routing", eth().ipv6(a6, b6).extension(43, &[0; 14]).extension(60, &[0; 6]).tcp(1, 2)),
        ("six", extensions(6).tcp(443, 9).flags(16).payload(&[1; 5])),
        ("seven", extensions(7).udp(53, 9)),
        (
            "fragment after options",
            eth().ipv6(a6, b6).extension(60, &[0; 22]).extension(44, &[0, 1, 0, 0, 0, 9]).tcp(5, 6),
        ),
        (
            "options after fragment",
            eth().ipv6(a6, b6).extension(44, &[0, 1, 0, 0, 0, 9]).extension(60, &[0; 6]).udp(5, 6),
        ),
        (
            "two fragments",
            eth()
                .ipv6(a6, b6)
                .extension(44, &[0, 0, 0, 0, 0, 9])
                .extension(44, &[0, 9, 0, 0, 0, 8])
                .payload(&[4; 20]),
        ),
        ("mobility", eth().vlan(3).ipv6(a6, b6).extension(135, &[0; 14]).put(6, &[135])),
        ("ah6", eth().ipv6(a6, b6).extension(60, &[0; 6]).extension(51, &[0; 10]).tcp(1, 2)),
        ("esp6", eth().ipv6(a6, b6).extension(0, &[0; 6]).extension(50, &[0; 14])),
        ("long", eth().ipv6(a6, b6).extension(43, &[0; 2046]).udp(53, 53).payload(&[0; 4])),
        ("gre", eth().ipv4(a, b).put(9, &[47]).payload(&[0; 28])),
        ("ah", eth().ipv4(a, b).extension(51, &[0; 10]).tcp(1, 2)),
        ("sctp", eth().ipv4(a, b).put(9, &[132]).payload(&[0, 53, 0, 9, 0, 0, 0, 0])),
        ("none6", eth().ipv6(a6, b6).put(6, &[59])),
        ("arp", eth().arp(1, ([2, 0, 0, 0, 0, 1], a), ([0; 6], b)).payload(&[0; 18])),
        ("arp in vlan", eth().vlan(7).arp(2, ([9; 6], b), ([8; 6], a)).payload(&[0; 18])),
        ("padded", eth().ipv4(a, b).put(2, &[0, 28]).udp(53, 53).put(4, &[0, 8]).payload(&[0; 18])),
        ("llc", eth().payload(&[0, 8, 0x42, 0x42, 3, 0, 0, 0, 0, 0])),
        ("unknown type", eth().header(0x88cc, &[1; 20])),
    ]
}
