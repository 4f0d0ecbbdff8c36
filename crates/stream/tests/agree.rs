//! Random programs, written in the language and with closures: both give the rows of the naive
//! model, with any number of workers.

use proptest::prelude::*;
use weir_engine::limits::{JUMP_NS, LATENESS_NS};
use weir_engine::rows::Collect;
use weir_engine::run::Options;
use weir_model::{Frames, TimeRules};
use weir_plan::Value;
use weir_stream::{Aggregate, Stream, StreamProgram, aggregate, packets};

/// One stage, which can be written both ways. `k` is a constant of it.
#[derive(Clone, Copy, Debug)]
enum Step {
    Longer,
    PortsRise,
    Sum,
    PortOr,
    Positions,
    Gaps,
}

const STEPS: [Step; 6] =
    [Step::Longer, Step::PortsRise, Step::Sum, Step::PortOr, Step::Positions, Step::Gaps];

impl Step {
    fn in_words(self, stream: Stream, i: usize, k: i64) -> Stream {
        match self {
            Step::Longer => stream.query(&format!("where len > {k}")),
            Step::PortsRise => stream.query("where sport < dport"),
            Step::Sum => stream.query(&format!("extend x{i} = len * 2 + {k} - number")),
            Step::PortOr => stream.query(&format!("extend x{i} = coalesce(sport, {k})")),
            Step::Positions => stream.query(&format!(
                "scan x{i} = {k}, y{i} = false by ip.src => (x{i} + 1, x{i} % 2 == 0)"
            )),
            Step::Gaps => stream.query(&format!(
                "scan x{i} = 0, y{i} = 0 by conn idle 1s => (int(ts), int(ts) - x{i})"
            )),
        }
    }

    fn in_rust(self, stream: Stream, i: usize, k: i64) -> Stream {
        let (x, y) = (format!("x{i}"), format!("y{i}"));
        match self {
            Step::Longer => stream.filter_by(["len"], move |len: i64| len > k),
            Step::PortsRise => stream.filter_by(["sport", "dport"], |a: i64, b: i64| a < b),
            Step::Sum => stream.extend_by(&x, ["len", "number"], move |len: i64, number: i64| {
                len * 2 + k - number
            }),
            Step::PortOr => {
                stream.extend_by(&x, ["sport"], move |port: Option<i64>| port.unwrap_or(k))
            }
            Step::Positions => stream.scan_by(
                [&x, &y],
                (k, false),
                "ip.src",
                ["true"],
                |(x, _): (i64, bool), _: bool| (x + 1, x % 2 == 0),
            ),
            Step::Gaps => stream.scan_by(
                [&x, &y],
                (0, 0),
                "conn idle 1s",
                ["int(ts)"],
                |(x, _): (i64, i64), now: i64| (now, now - x),
            ),
        }
    }
}

/// The sum of what it takes in.
#[derive(Default)]
struct Total(i64);

impl Aggregate for Total {
    type Input = i64;
    type Output = i64;

    fn update(&mut self, n: i64) {
        self.0 += n;
    }

    fn merge(&mut self, other: &Total) {
        self.0 += other.0;
    }

    fn finish(&self) -> i64 {
        self.0
    }

    fn encode(&self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }

    fn decode(bytes: &[u8]) -> Option<Total> {
        Some(Total(i64::from_be_bytes(bytes.try_into().ok()?)))
    }
}

/// How the rows are put together in the end.
fn finish(stream: Stream, ending: usize, total: &str) -> Stream {
    match ending {
        0 => stream,
        1 => stream.query(&format!("summarize n = {total}(len) by ip.src every 1s")),
        _ => stream.query(&format!("summarize n = {total}(len), packets = count() by conn")),
    }
}

type Found = Vec<(usize, Vec<Value>)>;

fn run(stream: &Stream, cuts: &[usize], workers: usize) -> Found {
    let mut collect = Collect::default();
    let mut source = Frames::sample().cut(cuts);
    let options = Options { workers, ..Options::default() };
    stream.clone().run(&mut source).options(options).to(&mut collect).expect("it runs");
    collect.rows
}

fn model(stream: &Stream) -> Found {
    let program = StreamProgram::default().output("rows", stream.clone());
    let (program, functions) = program.compile().expect("it compiles");
    let rules = TimeRules { lateness_ns: LATENESS_NS, jump_ns: JUMP_NS };
    weir_model::run(&program, &functions, &mut Frames::sample(), &rules).rows
}

/// Up to five steps with their constants.
fn steps() -> impl Strategy<Value = Vec<(Step, i64)>> {
    let constants = prop::sample::select(&[0, 1, 59, 60, 61, 100, 1514][..]);
    prop::collection::vec((prop::sample::select(&STEPS[..]), constants), 0..=5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn words_and_closures_say_the_same(
        steps in steps(),
        ending in 0..3_usize,
        cuts in prop::collection::vec(1..50_usize, 1..4),
    ) {
        let start = packets().query("project ts, number, len, ip.src, sport, dport, conn");
        let (mut words, mut rust) = (start.clone(), start.uses(&aggregate::<Total>("total")));
        for (i, (step, k)) in steps.into_iter().enumerate() {
            words = step.in_words(words, i, k);
            rust = step.in_rust(rust, i, k);
        }
        let (words, rust) = (finish(words, ending, "sum"), finish(rust, ending, "total"));
        let wanted = run(&words, &cuts, 1);
        prop_assert_eq!(&model(&rust), &wanted);
        for workers in [1, 2, 4] {
            prop_assert_eq!(&run(&rust, &cuts, workers), &wanted);
        }
    }
}
