//! Functions with states: programs and workers hold them by turns, and do with frames what the
//! engine alone does.

use super::act::outlets;
use super::choices::Choices;
use super::common::{self, Kernel, acting_kernel, handed_out_at, program_of};
use proptest::test_runner::{Config, TestRunner};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weir_engine::functions::Functions;
use weir_engine::kernel::{KernelFeed, KernelGroups, KernelState, KernelStates};
use weir_engine::rows::Collect;
use weir_engine::run::{Options, run_to};
use weir_offload::{Control, FrameCount};
use weir_packet::craft::Frame;
use weir_packet::egress::{Egress, Outlet, Sent};
use weir_packet::source::{Account, Chunk, FrameBatch, LinkType, Source, SourceError};
use weir_plan::physical::PipelineId;

/// A firewall that opens to those who know the knock, and keeps open what was let in.
const KNOCK: &str = "packets
    | where tcp
    | scan stage = 0 by ip.src, ip.dst idle 60s =>
        match (stage, tcp.dport) {
            (0, 5123) => 1,
            (1, 6234) => 2,
            (2, 7345) => 3,
            (3, 8456) => 4,
            (4, _) => 4,
            _ => 0,
        }
    | where tcp.dport == 22
    | scan open = false by flow idle 1h => open or stage == 4
    | branch when open -> pass else -> drop";

/// Functions of packets, of which `drop` is a word of its own.
const FUNCTIONS: [&str; 9] = [
    KNOCK,
    "packets | where ip | scan n = 0 by ip.src idle 10s => min_of(n + 1, 5)
        | branch when n <= 3 -> forward \"eth1\" else -> drop",
    // More states than an automaton has, so that the engine works in rounds.
    "packets | scan last = 0, n = 7 by ip.src, sport idle 30s => (len, (n + len + last) % 1000)
        | branch when n > 500 -> forward \"eth2\" when last == 60 -> drop else -> pass",
    // Parts of keys that may be absent, and a direction.
    "packets | scan seen = false, there = 0 by conn, tcp.dport idle 20s
            => (seen or conn.forward, (there << 1 | int(conn.forward)) & 255)
        | branch when seen and there % 3 == 1 -> forward \"host:\" else -> drop",
    // Two pipelines, each with states of its own.
    "packets | where tcp | scan n = 0 by ip.src idle 10s => (n + 1) % 4 | where n == 2 | drop
     packets | where udp or tcp.dport == 22 | scan m = 1 by hosts idle 15s => m * 5 % 7
        | branch when m > 3 -> forward \"eth1\" else -> forward \"eth3\"",
    // Frames that a later arm can't decide about go up, and take their states along.
    "packets | where ip | scan n = 0 by ip.dst idle 10s => (n + 1) & 7
        | branch when n > 5 -> forward \"out.pcap\" when n > 3 -> pass else -> drop",
    // Another pipeline wants some.
    "packets | where tcp.dport == 6234 | forward \"out.pcap\"
     packets | where tcp | scan n = 0 by ip.src, sport idle 5s => max_of(0, min_of(n - 1 + 2, 9))
        | branch when n > 2 -> pass else -> drop",
    // A state that may be absent: such frames go up.
    "packets | where ip | scan port = 0 by ip.src idle 10s => tcp.dport
        | branch when port == 22 -> pass else -> drop",
    "packets | where ip | scan a = tcp.ack, b = ip.ttl by hosts idle 20s => (not a, b - 1 & 63)
        | steer by a, b to (\"eth1\", \"eth2\", \"eth3\")",
];

/// The ports of a knock, and the one that it opens.
const PORTS: [u16; 5] = [5123, 6234, 7345, 8456, 22];

/// A frame of one of few keys; some can't be read for certain. `knock`: the place in the ports of a
/// client who knows them.
fn frame(c: &mut Choices, knock: &mut usize) -> Vec<u8> {
    if c.once_in(4) {
        let port = PORTS[(*knock).min(PORTS.len() - 1)];
        *knock = if c.once_in(9) { 0 } else { *knock + 1 };
        let (client, server) = (Ipv4Addr::new(10, 0, 0, 9), Ipv4Addr::new(10, 0, 0, 8));
        return Frame::ethernet().ipv4(client, server).tcp(1234, port).payload(&[0; 6]).bytes();
    }
    let v4 = |c: &mut Choices| Ipv4Addr::new(10, 0, 0, c.below(3) as u8);
    let v6 = |c: &mut Choices| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, c.below(2) as u16);
    let mut frame = Frame::ethernet();
    if c.once_in(8) {
        frame = frame.vlan(7);
    }
    if c.once_in(20) {
        return frame.arp(1, ([2; 6], v4(c)), ([0; 6], v4(c))).payload(&[0; 18]).bytes();
    }
    let frame = if c.once_in(4) {
        let frame = frame.ipv6(v6(c), v6(c));
        // More headers than a program steps over.
        let n = if c.once_in(24) { 7 } else { c.below(2) };
        (0..n).fold(frame, |frame, _| frame.extension(60, &[1, 0, 0, 0, 0, 0]))
    } else {
        frame.ipv4(v4(c), v4(c)).ttl(*c.pick(&[64, 0, 1, 254, 255]))
    };
    let sport = *c.pick(&[40_000, 1, 0xffff]);
    let dport = *c.pick(&[5123, 6234, 7345, 8456, 22, 22, 22, 0, 0xffff]);
    let payload = vec![0; *c.pick(&[6, 6, 7, 100])];
    let mut bytes = match c.below(6) {
        0 => frame.udp(sport, dport).payload(&payload).bytes(),
        1 => frame.icmp(8, 0).echo(1, 2).payload(&payload).bytes(),
        _ => frame.tcp(sport, dport).flags(*c.pick(&[2, 16, 18])).payload(&payload).bytes(),
    };
    if c.once_in(80) {
        // It is cut.
        bytes.truncate(bytes.len() - payload.len() - 3);
    }
    bytes
}

/// After how long functions forget keys.
const IDLE_S: [i64; 7] = [5, 10, 15, 20, 30, 60, 3600];

/// From one frame to the next.
const APART_NS: [i64; 5] = [2_000_000, 500_000_000, 3_000_000_000, 70_000_000_000, 7_700_000_000];

fn frames(c: &mut Choices, n: usize) -> Vec<(i64, Vec<u8>)> {
    let (mut now, mut knock, mut all) = (1_700_000_000_000_000_000, 0, Vec::new());
    while all.len() < n {
        now += if c.once_in(6) { *c.pick(&APART_NS) } else { APART_NS[0] };
        // The kernel's clock is read a little later than the test sets it.
        let is_near = |(before, _): &(i64, Vec<u8>)| {
            IDLE_S.iter().any(|idle| (now - before - idle * 1_000_000_000).abs() < 400_000_000)
        };
        if !all.iter().any(is_near) {
            all.push((now, frame(c, &mut knock)));
        }
    }
    all
}

/// For how long a frame waits at most.
const MOMENT_NS: i64 = 100_000_000;

/// States of a program.
#[derive(Clone)]
struct SharedKernel(Arc<Kernel>);

impl std::fmt::Debug for SharedKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedKernel")
    }
}

#[derive(Debug)]
struct OfStage(SharedKernel, usize);

impl KernelStates for OfStage {
    fn take(&self, key: &[Option<u128>], now: i64) -> Option<KernelState> {
        let (SharedKernel(kernel), at) = (&self.0, self.1);
        let taken = kernel.program.states[at].take(kernel.states(at), key, now)?;
        let states = taken.states.into_iter().map(i64::cast_unsigned).collect();
        Some(KernelState { last: taken.last, states })
    }
}

impl KernelFeed for SharedKernel {
    fn pipelines(&self) -> Vec<PipelineId> {
        Vec::new()
    }

    fn close(&self, _: PipelineId, _: Option<i64>, _: &mut dyn FnMut(KernelGroups)) {}

    fn hand_up(&self, _: bool) {}

    fn count_by(&self, _: i64) {}

    fn finished_before(&self, _: i64) -> u64 {
        0
    }

    fn states(&self, pipeline: PipelineId, stage: usize) -> Option<Arc<dyn KernelStates>> {
        let mut all = self.0.program.states.iter();
        let at = all.position(|table| (table.pipeline, table.stage) == (pipeline, stage))?;
        Some(Arc::new(OfStage(self.clone(), at)))
    }
}

/// Hands frames to the program first, and on to the engine what goes up.
struct Below<'a> {
    kernel: &'a SharedKernel,
    frames: &'a [(i64, Vec<u8>)],
    at: usize,
    /// The outlets that got each frame, where the program finished it.
    done: Vec<Option<Vec<Outlet>>>,
    up: Vec<usize>,
}

impl Below<'_> {
    /// The fate of a frame in the program; `None`: it goes up.
    fn run(&self, at: usize) -> (FrameCount, Option<Vec<Outlet>>) {
        let SharedKernel(kernel) = self.kernel;
        let (time, frame) = &self.frames[at];
        let now = clock_gettime(ClockId::Monotonic);
        let ahead = time - (now.tv_sec * 1_000_000_000 + now.tv_nsec);
        let tables = kernel.program.tables.len();
        kernel.control()[Control { tables }.clock()].store(ahead as u64, Relaxed);
        let before = kernel.deeds();
        let (count, run) = kernel.run(frame).expect("a frame that can be tried");
        let after = kernel.deeds();
        assert_eq!(run.data, *frame);
        let grew = before.iter().zip(&after).enumerate().filter(|(_, (b, a))| b.0 < a.0);
        let outlet = |n: usize| match n {
            0 => Outlet::Named("gone".to_owned()),
            n => outlets()[n - 1].outlet.clone(),
        };
        let to: Vec<Outlet> = grew
            .flat_map(|(n, (b, a))| std::iter::repeat_n(outlet(n), (a.0 - b.0) as usize))
            .collect();
        match count {
            FrameCount::Acted | FrameCount::Filtered => (count, Some(to)),
            _ => {
                assert!(to.is_empty(), "it goes up");
                (count, None)
            }
        }
    }
}

impl Source for Below<'_> {
    /// One frame after the other: as long as they are of keys that workers hold, several at once.
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let (mut bytes, mut came) = (Vec::new(), Vec::new());
        while self.at < self.frames.len() && came.len() < 5 {
            // No key is forgotten while a frame of it waits.
            let time = |at: usize| self.frames[at].0;
            if came.first().is_some_and(|(at, _)| time(self.at) - time(*at) > MOMENT_NS) {
                break;
            }
            let (count, done) = self.run(self.at);
            let goes_up = done.is_none();
            self.done.push(done);
            if goes_up {
                came.push((self.at, bytes.len() as u32));
                bytes.extend_from_slice(&self.frames[self.at].1);
            }
            self.at += 1;
            if !came.is_empty() && (count == FrameCount::Unclear || !goes_up) {
                break;
            }
        }
        let chunk: Chunk = Arc::new(bytes);
        batch.restart(&chunk, 0, LinkType::ETHERNET);
        for (at, start) in came {
            let (time, frame) = &self.frames[at];
            let len = frame.len() as u32;
            batch.push(*time, self.up.len() as u64, start, len, len);
            self.up.push(at);
        }
        Ok(!batch.is_empty())
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        Account { received: self.up.len() as u64, ..Account::default() }
    }
}

/// Where the engine hands frames out, by time.
#[derive(Default)]
struct Handed {
    outlets: Vec<Outlet>,
    frames: Vec<(i64, Outlet)>,
}

impl Egress for Handed {
    fn open(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        self.outlets = outlets.to_vec();
        Ok(())
    }

    fn send(&mut self, _: &[u8], frames: &[Sent]) -> io::Result<()> {
        let to = |sent: &Sent| (sent.ts, self.outlets[sent.outlet as usize].clone());
        self.frames.extend(frames.iter().map(to));
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How many frames programs finished by states, and how many went up.
#[derive(Default, Debug)]
struct Levels {
    acted: u64,
    filtered: u64,
    up: u64,
}

/// Compares a program, and the engine for what goes up, with the model.
fn check(text: &str, frames: &[(i64, Vec<u8>)], levels: &mut Levels) {
    let kernel = acting_kernel(text, &outlets()).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert!(!kernel.program.states.is_empty(), "{text}");
    (0..outlets().len()).for_each(|n| kernel.set_longest(n, u64::MAX));
    let shown = text.replace("drop", "forward \"gone\"");
    let want = handed_out_at(&shown, frames);
    let kernel = SharedKernel(Arc::new(kernel));
    let mut below = Below { kernel: &kernel, frames, at: 0, done: Vec::new(), up: Vec::new() };
    let (mut rows, mut handed) = (Collect::default(), Handed::default());
    let options = Options {
        kernel: Some(Arc::new(kernel.clone())),
        lateness_ns: 0,
        jump_ns: i64::MAX,
        ..Options::default()
    };
    let ends = (&mut rows as _, &mut handed as _);
    let functions = Functions::default();
    run_to(&program_of(&shown), &functions, &mut below, ends, &options, &mut |_| {});
    assert_eq!(below.at, frames.len());
    let Below { done, .. } = below;
    for (i, ((time, frame), done)) in frames.iter().zip(done).enumerate() {
        let by_engine = || handed.frames.iter().filter(|out| out.0 == *time);
        let got = match done {
            None => {
                levels.up += 1;
                by_engine().map(|out| out.1.clone()).collect()
            }
            Some(to) => {
                *(if to.is_empty() { &mut levels.filtered } else { &mut levels.acted }) += 1;
                assert_eq!(by_engine().count(), 0);
                to
            }
        };
        assert_eq!(got, want[i], "{text}\nframe {i} at {time}: {frame:02x?}");
    }
}

#[test]
fn functions_with_states_do_what_the_engine_does() {
    if !common::may("functions_with_states_do_what_the_engine_does") {
        return;
    }
    let config = Config { failure_persistence: None, ..Config::with_cases(12) };
    let tape = proptest::collection::vec(proptest::num::u16::ANY, 9000);
    for text in FUNCTIONS {
        let levels = std::cell::RefCell::new(Levels::default());
        let result = TestRunner::new(config.clone()).run(&tape, |tape| {
            let frames = frames(&mut Choices::new(tape), 600);
            check(text, &frames, &mut levels.borrow_mut());
            Ok(())
        });
        if let Err(e) = result {
            panic!("{e}");
        }
        let levels = levels.into_inner();
        eprintln!("{levels:?}: {text}");
        let acts = levels.acted + levels.filtered;
        assert!(levels.acted > 300 && acts > 1000 && levels.up > 100, "{levels:?}: {text}");
    }
}

/// Counts the frames of each source.
const COUNT: &str = "packets | where ip | scan n = 0 by ip.src idle 1h => n + 1 & 0x3fffffff
    | branch when n > 0 -> drop else -> pass";

fn tcp_from(source: u32) -> Vec<u8> {
    let to = Ipv4Addr::new(192, 0, 2, 1);
    Frame::ethernet().ipv4(Ipv4Addr::from(source), to).tcp(1, 2).payload(&[0; 6]).bytes()
}

/// The parts of the key of that frame.
fn key_of(source: u32) -> [Option<u128>; 1] {
    [Some(0xffff << 32 | u128::from(source))]
}

/// The time of the last frame, as programs take it.
fn set_time(kernel: &Kernel, time: i64) {
    let now = clock_gettime(ClockId::Monotonic);
    let ahead = time - (now.tv_sec * 1_000_000_000 + now.tv_nsec);
    kernel.control()[Control { tables: 0 }.clock()].store(ahead as u64, Relaxed);
}

/// A time in nanoseconds since 1970.
const NOON: i64 = 1_700_000_000_000_000_000;
const HOUR: i64 = 3_600_000_000_000;

#[test]
fn keys_without_room_go_up_until_they_were_idle() {
    if !common::may("keys_without_room_go_up_until_they_were_idle") {
        return;
    }
    let kernel = acting_kernel(COUNT, &[]).unwrap_or_else(|e| panic!("{e}"));
    set_time(&kernel, NOON);
    let decide = |source| kernel.decide(&tcp_from(source)).expect("a frame").0;
    let mut lacking = Vec::new();
    let keys = 150_000;
    for source in 0..keys {
        match decide(source) {
            FrameCount::Acted => {}
            FrameCount::Full => lacking.push(source),
            other => panic!("{other:?}"),
        }
    }
    assert!(lacking.len() > 20_000 && lacking.len() < 100_000, "{}", lacking.len());
    // A source that has a place keeps it, and who has none finds none.
    for source in (0..keys).step_by(97) {
        let is_lacking = lacking.binary_search(&source).is_ok();
        let want = if is_lacking { FrameCount::Full } else { FrameCount::Acted };
        assert_eq!(decide(source) as usize, want as usize, "{source}");
    }
    let table = &kernel.program.states[0];
    assert_eq!(table.take(kernel.states(0), &key_of(lacking[0]), NOON), None);
    let taken = table.take(kernel.states(0), &key_of(0), NOON).expect("it has states");
    assert_eq!(taken.states, [2]);
    // The workers hold it now.
    assert_eq!(table.take(kernel.states(0), &key_of(0), NOON), None);
    assert_eq!(decide(0) as usize, FrameCount::Wanted as usize);
    // All keys were idle.
    set_time(&kernel, NOON + HOUR + HOUR / 60);
    assert_eq!(decide(lacking[0]) as usize, FrameCount::Acted as usize);
    assert_eq!(decide(0) as usize, FrameCount::Acted as usize);
    let now = NOON + HOUR + HOUR / 60;
    let taken = table.take(kernel.states(0), &key_of(0), now).expect("it has states");
    assert_eq!(taken.states, [1], "it began anew");
}

#[test]
fn a_clock_that_steps_back_forgets_no_key() {
    if !common::may("a_clock_that_steps_back_forgets_no_key") {
        return;
    }
    let kernel = acting_kernel(COUNT, &[]).unwrap_or_else(|e| panic!("{e}"));
    for time in [NOON, NOON - 3 * HOUR, i64::MIN / 2, NOON + HOUR / 2] {
        set_time(&kernel, time);
        let decision = kernel.decide(&tcp_from(7)).expect("a frame").0;
        assert_eq!(decision as usize, FrameCount::Acted as usize, "{time}");
    }
    let taken = kernel.program.states[0].take(kernel.states(0), &key_of(7), 0);
    assert_eq!(taken.expect("it has states").states, [4]);
}

/// Programs on several processors and the process fold frames of one key in by turns.
#[test]
fn no_frame_of_a_key_is_folded_in_twice_or_lost() {
    if !common::may("no_frame_of_a_key_is_folded_in_twice_or_lost") {
        return;
    }
    let kernel = acting_kernel(COUNT, &[]).unwrap_or_else(|e| panic!("{e}"));
    set_time(&kernel, NOON);
    let (mut taken, mut times) = (0, 0);
    let table = &kernel.program.states[0];
    for round in 0..30 {
        let source = 100 + round;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| kernel.loaded.test_run(&tcp_from(source), 3000).expect("it runs"));
            }
            std::thread::yield_now();
            let states = table.take(kernel.states(0), &key_of(source), NOON);
            times += u32::from(states.is_some());
            taken += states.map_or(0, |taken| taken.states[0]);
        });
        // The frames that a program folded in after that, before it saw that the workers hold the
        // key: none.
        assert_eq!(table.take(kernel.states(0), &key_of(source), NOON), None, "{round}");
    }
    let dropped = kernel.deeds()[0].0;
    assert_eq!(i64::try_from(dropped), Ok(taken), "taken {times} times");
}
