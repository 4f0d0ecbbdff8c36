//! Runs of which some frames are counted elsewhere give the rows of runs over all frames.

use crate::functions::Functions;
use crate::kernel::{KernelCell, KernelFeed, KernelGroups};
use crate::ops::testing::{agg, field, summarize};
use crate::rows::Collect;
use crate::run::{Options, run};
use crate::tests::{Frames, program};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use weir_packet::craft::Frame;
use weir_packet::source::{Account, FrameBatch, Gap, LinkType, Source, SourceError};
use weir_plan::physical::PipelineId;
use weir_plan::{Agg, AggFunc, Expr, Program, Stage, Window};

/// The contents of a frame.
#[derive(Clone, Debug)]
struct Told {
    ts: i64,
    from: IpAddr,
    port: Option<u16>,
    payload: usize,
    syn: Option<bool>,
}

impl Told {
    fn frame(&self) -> Vec<u8> {
        let frame = match self.from {
            IpAddr::V4(from) => Frame::ethernet().ipv4(from, Ipv4Addr::new(1, 2, 3, 4)),
            IpAddr::V6(from) => Frame::ethernet().ipv6(from, Ipv6Addr::from(7)),
        };
        let frame = match (self.port, self.syn) {
            (Some(port), Some(syn)) => {
                let frame = frame.tcp(port, 80);
                frame.flags(if syn { 2 } else { 16 })
            }
            (Some(port), None) => frame.udp(port, 53),
            (None, _) => frame,
        };
        frame.payload(&vec![0; self.payload]).bytes()
    }

    fn len(&self) -> i64 {
        self.frame().len() as i64
    }

    fn ip(&self) -> u128 {
        weir_base::address::number(self.from)
    }
}

fn aggs() -> Vec<Agg> {
    let port = || Some(field("tcp.sport"));
    let minus = |e: Expr| {
        let kind = weir_plan::ExprKind::Unary(weir_plan::UnaryOp::Neg, Box::new(e));
        Expr { ty: weir_plan::Type::Int, kind }
    };
    vec![
        agg(AggFunc::Count, None),
        agg(AggFunc::Count, port()),
        agg(AggFunc::Sum, Some(field("len"))),
        agg(AggFunc::Sum, port()),
        agg(AggFunc::Sum, Some(minus(field("len")))),
        agg(AggFunc::Avg, port()),
        agg(AggFunc::Min, Some(field("len"))),
        agg(AggFunc::Max, Some(minus(field("len")))),
        agg(AggFunc::Max, port()),
        agg(AggFunc::Min, Some(field("ts"))),
        agg(AggFunc::Any, Some(field("tcp.syn"))),
        agg(AggFunc::All, Some(field("tcp.syn"))),
        agg(AggFunc::BitOr, port()),
        agg(AggFunc::Rate(1_000_000_000), Some(field("len"))),
        agg(AggFunc::Completeness, None),
        agg(AggFunc::First, port()),
        agg(AggFunc::Last, Some(field("len"))),
        agg(AggFunc::First, Some(field("tcp.syn"))),
        agg(AggFunc::Last, Some(field("ts"))),
        agg(AggFunc::Last, Some(field("ip.src"))),
    ]
}

/// The cells of one frame.
fn cells(told: &Told) -> Vec<KernelCell> {
    let some = |word: i64| KernelCell { word: word as u64, values: 1, ..KernelCell::default() };
    let none = KernelCell::default();
    let port = told.port.filter(|_| told.syn.is_some()).map_or(none, |port| some(port.into()));
    let syn = told.syn.map_or(none, |syn| some(1 << i64::from(syn)));
    let count = KernelCell { word: port.values, ..port };
    let len = told.len();
    let at = |cell: KernelCell| KernelCell { time: told.ts, ..cell };
    let truth = told.syn.map_or(none, |syn| some(syn.into()));
    let (high, low) = ((told.ip() >> 64) as u64, told.ip() as u64);
    vec![
        some(1),
        count,
        some(len),
        port,
        some(-len),
        port,
        some(len),
        some(-len),
        port,
        some(told.ts),
        syn,
        syn,
        port,
        some(len),
        some(1),
        at(port),
        at(some(len)),
        at(truth),
        at(some(told.ts)),
        KernelCell { high, ..at(some(low as i64)) },
    ]
}

/// Frames counted elsewhere: each is a group of its own, or not yet handed out.
#[derive(Debug)]
struct Fake {
    window: Window,
    keys: usize,
    open: Mutex<BTreeMap<i64, Vec<Told>>>,
    /// The times of frames that were finished, in order, those of `open` among them.
    finished: Vec<i64>,
}

impl Fake {
    fn new(window: Window, keys: usize, frames: &[Told]) -> Fake {
        let every = window.pane();
        let mut open: BTreeMap<i64, Vec<Told>> = BTreeMap::new();
        for told in frames {
            let start = every.map_or(0, |every| told.ts.div_euclid(every) * every);
            open.entry(start).or_default().push(told.clone());
        }
        let finished = frames.iter().map(|told| told.ts).collect();
        Fake { window, keys, open: Mutex::new(open), finished }
    }
}

impl KernelFeed for Fake {
    fn pipelines(&self) -> Vec<PipelineId> {
        vec![PipelineId(0)]
    }

    fn close(&self, pipeline: PipelineId, before: Option<i64>, out: &mut dyn FnMut(KernelGroups)) {
        assert_eq!(pipeline, PipelineId(0));
        assert!(before.is_none() || self.window != Window::All);
        let mut open = self.open.lock().expect("no panic");
        let later = before.map_or_else(BTreeMap::new, |before| open.split_off(&before));
        for (start, frames) in std::mem::replace(&mut *open, later) {
            let key = |t: &Told| [Some(t.ip()), t.port.map(u128::from)][..self.keys].to_vec();
            out(KernelGroups {
                start,
                groups: frames.len(),
                keys: frames.iter().flat_map(key).collect(),
                cells: frames.iter().flat_map(cells).collect(),
            });
        }
    }

    fn count_by(&self, span_ns: i64) {
        assert_eq!(Some(span_ns), self.window.pane());
    }

    fn finished_before(&self, time: i64) -> u64 {
        self.finished.partition_point(|ts| *ts < time) as u64
    }

    fn orders_by_time(&self) -> bool {
        true
    }

    fn hand_up(&self, _: bool) {
        unreachable!("no program of these runs changes");
    }
}

/// An event on the wire, one of several in order.
#[derive(Clone, Debug)]
enum Happens {
    Comes(Told),
    /// So many frames are lost, just after the one that came last.
    Lost(u64),
}

/// The frames that come up over a wire.
struct Wire {
    frames: Frames,
    /// Batches of frames; or times, and how many were lost then.
    batches: VecDeque<Option<(i64, Option<u64>)>>,
}

impl Wire {
    /// All that happens, but for frames that are counted elsewhere.
    fn new(happens: &[Happens], is_up: impl Fn(&Told) -> bool) -> Wire {
        let (mut up, mut sizes, mut batches, mut last) = (Vec::new(), vec![], VecDeque::new(), 0);
        let mut open = 0;
        for happens in happens {
            let mut lost = None;
            match happens {
                Happens::Comes(told) => {
                    last = told.ts;
                    if is_up(told) {
                        up.push((told.ts, told.frame()));
                        open += 1;
                    }
                }
                Happens::Lost(frames) => lost = Some(*frames),
            }
            if open == 7 || open > 0 && lost.is_some() {
                sizes.push(std::mem::take(&mut open));
                batches.push_back(None);
            }
            if lost.is_some() {
                // It is found at a time that does not depend on what comes up.
                batches.extend([Some((last, None)), Some((last, lost))]);
            }
        }
        if open > 0 {
            sizes.push(open);
            batches.push_back(None);
        }
        sizes.push(1);
        Wire { frames: Frames::new(LinkType::ETHERNET, &up).cut(&sizes), batches }
    }

    /// The wire of these frames, of which none is lost.
    fn of(frames: &[Told]) -> Wire {
        let happens: Vec<Happens> = frames.iter().cloned().map(Happens::Comes).collect();
        Wire::new(&happens, |_| true)
    }
}

impl Source for Wire {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let Some(next) = self.batches.pop_front() else { return Ok(false) };
        let Some((time, lost)) = next else { return self.frames.fill(batch) };
        batch.clear();
        batch.set_reached(time);
        if let Some(frames) = lost {
            batch.set_gap(Gap { frames, since: time, until: time });
        }
        Ok(true)
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        self.frames.account()
    }
}

fn rows(plan: &Program, mut wire: Wire, kernel: Option<Fake>, workers: usize) -> Vec<String> {
    let kernel = kernel.map(|kernel| Arc::new(kernel) as Arc<dyn KernelFeed>);
    let options = Options { workers, kernel, ..Options::default() };
    let mut sink = Collect::default();
    let outcome = run(plan, &Functions::default(), &mut wire, &mut sink, &options, &mut |_| {});
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!((outcome.ledger.late, outcome.ledger.evicted), (0, 0));
    sink.rows.iter().map(|row| format!("{row:?}")).collect()
}

fn told() -> impl Strategy<Value = (Told, bool)> {
    let from = prop_oneof![
        (0..4_u32).prop_map(|n| IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n))),
        (0..3_u128).prop_map(|n| IpAddr::V6(Ipv6Addr::from(n << 90 | n))),
        Just(IpAddr::V6(Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped())),
    ];
    let port =
        prop_oneof![Just(None), Just(Some(0)), Just(Some(u16::MAX)), (1_u16..4).prop_map(Some)];
    let syn = prop_oneof![Just(None), any::<bool>().prop_map(Some)];
    let frame = (0..400_000_000_i64, from, port, 0..60_usize, syn);
    let frame = frame.prop_map(|(ts, from, port, payload, syn)| {
        let syn = syn.filter(|_| port.is_some());
        Told { ts, from, port, payload, syn }
    });
    (frame, any::<bool>())
}

/// How many frames are lost after one, if any are.
fn lost() -> impl Strategy<Value = Option<u64>> {
    proptest::option::weighted(0.1, 1..9_u64)
}

proptest! {
    #[test]
    fn frames_counted_elsewhere_change_no_row(
        frames in proptest::collection::vec((told(), lost()), 1..150),
        keys in 0..3_usize,
        window in 0..3,
    ) {
        let mut at = 0;
        let (mut all, mut elsewhere) = (Vec::new(), Vec::new());
        for ((mut told, is_elsewhere), lost) in frames {
            at += told.ts;
            // Each has a time of its own.
            told.ts = at + all.len() as i64;
            if is_elsewhere {
                elsewhere.push(told.clone());
            }
            all.push(Happens::Comes(told));
            all.extend(lost.map(Happens::Lost));
        }
        let window = match window {
            0 => Window::All,
            1 => Window::Tumbling(1_000_000_000),
            _ => Window::Sliding { over: 3_000_000_000, every: 2_000_000_000 },
        };
        let plan = program(vec![summarize(&["ip.src", "sport"][..keys], aggs(), window)]);
        let wanted = rows(&plan, Wire::new(&all, |_| true), None, 1);
        for workers in [1, 2, 4] {
            let kernel = Fake::new(window, keys, &elsewhere);
            let is_up = |told: &Told| elsewhere.iter().all(|other| other.ts != told.ts);
            let found = rows(&plan, Wire::new(&all, is_up), Some(kernel), workers);
            prop_assert_eq!(&found, &wanted, "{} workers", workers);
        }
    }
}

/// Of nine frames three are lost, and the kernel finishes all but one of the others.
#[test]
fn completeness_counts_what_the_kernel_finished() {
    let told = |n: i64| Told {
        ts: n * 100_000_000,
        from: IpAddr::V4(Ipv4Addr::from(7)),
        port: None,
        payload: 0,
        syn: None,
    };
    let mut happens: Vec<Happens> = (0..6).map(|n| Happens::Comes(told(n))).collect();
    happens.push(Happens::Lost(3));
    happens.push(Happens::Comes(told(12)));
    let completeness = || vec![agg(AggFunc::Completeness, None)];
    for (window, first) in [(Window::Tumbling(1_000_000_000), 6.0 / 9.0), (Window::All, 0.7)] {
        let plan = program(vec![summarize(&[], completeness(), window)]);
        let finished: Vec<Told> = (0..5).map(told).collect();
        // Which rows its groups make is not asked here.
        let kernel = Fake { open: Mutex::default(), ..Fake::new(window, 0, &finished) };
        let wire = Wire::new(&happens, |told| told.ts >= 500_000_000);
        let found = rows(&plan, wire, Some(kernel), 1);
        assert!(found[0].contains(&format!("Float({first}")), "{found:?}");
    }
}

/// A second stage over the rows of the first, which closes its windows as well.
#[test]
fn windows_of_frames_counted_elsewhere_go_on() {
    let second = 1_000_000_000;
    let frames: Vec<Told> = (0..50)
        .map(|i| Told {
            ts: i * second / 5,
            from: IpAddr::V4(Ipv4Addr::from(i as u32 % 3)),
            port: None,
            payload: 0,
            syn: None,
        })
        .collect();
    let first = summarize(&["ip.src"], aggs(), Window::Tumbling(second));
    let again = Stage::Limit(7);
    let plan = program(vec![first, again]);
    let wanted = rows(&plan, Wire::of(&frames), None, 1);
    assert_eq!(wanted.len(), 7);
    // Workers see two frames alone.
    let seen = [frames[0].clone(), frames[49].clone()];
    let kernel = Fake::new(Window::Tumbling(second), 1, &frames[1..49]);
    assert_eq!(rows(&plan, Wire::of(&seen), Some(kernel), 1), wanted);
}
