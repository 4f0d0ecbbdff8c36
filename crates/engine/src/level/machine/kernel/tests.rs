//! Runs of which some frames are counted elsewhere give the rows of runs over all frames.

use crate::conform::{Frames, program};
use crate::functions::Functions;
use crate::kernel::{KernelCell, KernelFeed, KernelGroups};
use crate::ops::testing::{agg, field, summarize};
use crate::rows::Collect;
use crate::run::{Options, run};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use weir_packet::craft::Frame;
use weir_packet::source::LinkType;
use weir_plan::physical::PipelineId;
use weir_plan::{Agg, AggFunc, Expr, Program, Stage, Window};

/// What a frame says.
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
        match self.from {
            IpAddr::V4(from) => u128::from(from.to_ipv6_mapped()),
            IpAddr::V6(from) => u128::from(from),
        }
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
    ]
}

/// The cells of one frame.
fn cells(told: &Told) -> Vec<KernelCell> {
    let some = |word: i64| KernelCell { word: word as u64, values: 1 };
    let none = KernelCell { word: 0, values: 0 };
    let port = told.port.filter(|_| told.syn.is_some()).map_or(none, |port| some(port.into()));
    let syn = told.syn.map_or(none, |syn| some(1 << i64::from(syn)));
    let count = KernelCell { word: port.values, values: port.values };
    let len = told.len();
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
    ]
}

/// Frames counted elsewhere: each is a group of its own, or not yet handed out.
#[derive(Debug)]
struct Fake {
    window: Window,
    keys: usize,
    open: Mutex<BTreeMap<i64, Vec<Told>>>,
}

impl Fake {
    fn new(window: Window, keys: usize, frames: &[Told]) -> Fake {
        let every = window.pane();
        let mut open: BTreeMap<i64, Vec<Told>> = BTreeMap::new();
        for told in frames {
            let start = every.map_or(0, |every| told.ts.div_euclid(every) * every);
            open.entry(start).or_default().push(told.clone());
        }
        Fake { window, keys, open: Mutex::new(open) }
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
}

fn rows(plan: &Program, frames: &[Told], kernel: Option<Fake>, workers: usize) -> Vec<String> {
    let frames: Vec<_> = frames.iter().map(|told| (told.ts, told.frame())).collect();
    let mut frames = Frames::new(LinkType::ETHERNET, &frames).cut(&[7]);
    let kernel = kernel.map(|kernel| Arc::new(kernel) as Arc<dyn KernelFeed>);
    let options = Options { workers, kernel, ..Options::default() };
    let mut sink = Collect::default();
    let outcome = run(plan, &Functions::default(), &mut frames, &mut sink, &options, &mut |_| {});
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

proptest! {
    #[test]
    fn frames_counted_elsewhere_change_no_row(
        frames in proptest::collection::vec(told(), 1..150), keys in 0..3_usize, window in 0..3,
    ) {
        let mut at = 0;
        let mut frames = frames;
        for (told, _) in &mut frames {
            at += told.ts;
            told.ts = at;
        }
        let window = match window {
            0 => Window::All,
            1 => Window::Tumbling(1_000_000_000),
            _ => Window::Sliding { over: 3_000_000_000, every: 2_000_000_000 },
        };
        let plan = program(vec![summarize(&["ip.src", "sport"][..keys], aggs(), window)]);
        let all: Vec<Told> = frames.iter().map(|(told, _)| told.clone()).collect();
        let of = |counted: bool| -> Vec<Told> {
            let mine = frames.iter().filter(|(_, elsewhere)| *elsewhere == counted);
            mine.map(|(told, _)| told.clone()).collect()
        };
        let wanted = rows(&plan, &all, None, 1);
        for workers in [1, 2, 4] {
            let kernel = Fake::new(window, keys, &of(true));
            let found = rows(&plan, &of(false), Some(kernel), workers);
            prop_assert_eq!(&found, &wanted, "{} workers", workers);
        }
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
    let wanted = rows(&plan, &frames, None, 1);
    assert_eq!(wanted.len(), 7);
    // Workers see two frames alone.
    let seen = [frames[0].clone(), frames[49].clone()];
    let kernel = Fake::new(Window::Tumbling(second), 1, &frames[1..49]);
    assert_eq!(rows(&plan, &seen, Some(kernel), 1), wanted);
}
