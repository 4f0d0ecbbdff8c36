//! Default bounds of keyed state that fit into a share of the machine's memory.
//!
//! A stage that keeps something by key has a bound: `max` in the query, or a default that suits a
//! large machine. [`fit`] lowers defaults until all of a program's stages fit together into the
//! memory they are given. What a query names stays as it is, and so does every row of a run that
//! stays below the bounds. The engine asks no system how much memory there is: who runs it says.
//!
//! What one key takes is reckoned from above: its row, its place in an index that is growing, and
//! what is needed to sort it, for every window that is open and every worker that may hold it.
//! Not reckoned are texts (see [`POOL_MAX`](crate::limits::POOL_MAX)), the values that
//! aggregates such as `distinct` and `median` keep beside their groups (see
//! [`VALUES_MAX`](crate::limits::VALUES_MAX)), and sessions that end in one tick in numbers far
//! above the bound of those open (see
//! [`SESSIONS_WAITING_MAX`](crate::limits::SESSIONS_WAITING_MAX)): these have bounds of their own.

use crate::agg;
use crate::functions::Functions;
use crate::key::{KeyPart, Layout};
use crate::limits::{HELLO_PIECES_EACH, WORKERS_MAX};
use crate::ops::alert;
use crate::ops::analyze_tcp::Tracked;
use crate::ops::deduplicate;
use crate::pages::row_words;
use crate::peers::{BuildContext, Peers};
use crate::table::HashKey;
use weir_plan::limits::{
    ALERT_KEYS_MAX, DISTINCT_KEYS_MAX, GROUPS_MAX, HELLO_FLOWS_MAX, JOIN_ROWS_MAX,
    LATENESS_WINDOWS_MAX, SCAN_KEYS_MAX, SESSIONS_MAX, TOP_KEYS_MAX,
};
use weir_plan::place::place;
use weir_plan::{Expr, Input, Program, Schema, Stage, Summarize, Window};

/// Bytes that a key takes beside its row: its slots in an index that is being doubled, and its
/// place in a sort.
const BESIDE_ROW: u64 = 48;

/// Words of a row beside key and cells: time, links of lists.
const ROW_HEAD: usize = 4;

/// Words of the state of a flow that a `hello` holds, QUIC keys among them.
const HELLO_WORDS: usize = 24;

/// Columns of a packet that a row of packets is taken to have, besides its own.
const PACKET_COLUMNS: usize = 8;

/// A default bound that was lowered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FittedBound {
    /// The number of the pipeline.
    pub pipeline: usize,
    /// The place of the stage there.
    pub stage: usize,
    /// What is bounded: `groups`, `keys`, `sessions`, `flows` or `rows`.
    pub what: &'static str,
    /// The default.
    pub default: u64,
    /// What it became.
    pub bound: u64,
}

/// A stage whose bound is the default.
struct Need {
    bound: FittedBound,
    /// Bytes that each unit of the bound may take, over all windows and workers.
    each: u64,
}

/// The program with default bounds that fit into so many bytes together, and those that had to be
/// lowered for it. `workers` are those that may hold state of their own.
pub fn fit(
    program: &Program,
    functions: &Functions,
    memory: u64,
    workers: usize,
) -> (Program, Vec<FittedBound>) {
    let workers = workers.clamp(1, WORKERS_MAX) as u64;
    let mut needs = Vec::new();
    for (p, pipeline) in program.pipelines.iter().enumerate() {
        let (mut schema, copies) = match pipeline.input {
            Input::Packets => (Schema::default(), workers),
            Input::Pipeline(i) => (program.pipelines[i].schema.clone(), 1),
        };
        for (s, stage) in pipeline.stages.iter().enumerate() {
            if let Some((what, default, each)) = need(stage, &schema, functions, copies) {
                let bound = FittedBound { pipeline: p, stage: s, what, default, bound: default };
                needs.push(Need { bound, each });
            }
            schema = stage.output(&schema);
        }
    }
    // The ones that need least come first: what they leave is for the others.
    needs.sort_by_key(|need| need.each.saturating_mul(need.bound.default));
    let (mut left, mut fitted, mut lowered) = (memory, program.clone(), Vec::new());
    let stages = needs.len() as u64;
    for (n, Need { mut bound, each }) in needs.into_iter().enumerate() {
        let share = left / (stages - n as u64);
        bound.bound = bound.default.min(share / each).max(1);
        left = left.saturating_sub(bound.bound.saturating_mul(each));
        if bound.bound < bound.default {
            set(&mut fitted.pipelines[bound.pipeline].stages[bound.stage], bound.bound);
            lowered.push(bound);
        }
    }
    lowered.sort_by_key(|bound| (bound.pipeline, bound.stage));
    (fitted, lowered)
}

/// The default bounds that are lowered where a program runs with so many workers at most.
pub fn lowered(
    program: &Program,
    functions: &Functions,
    memory: u64,
    workers: usize,
) -> Vec<FittedBound> {
    fit(program, functions, memory, place(program).workers(workers)).1
}

/// What a stage keeps by its default bound, that bound, and the bytes that each may take; `None`
/// where it keeps nothing by key or the query names the bound.
fn need(
    stage: &Stage,
    input: &Schema,
    functions: &Functions,
    copies: u64,
) -> Option<(&'static str, u64, u64)> {
    let bytes = |words: usize| 8 * row_words(words) as u64 + BESIDE_ROW;
    let width = |schema: &Schema| {
        let words = schema.columns.iter().map(|c| c.ty.repr().words().max(1)).sum::<usize>();
        words + if copies > 1 || schema.columns.is_empty() { PACKET_COLUMNS } else { 0 }
    };
    let (what, bound, default, each) = match stage {
        Stage::Summarize(s) => {
            let (what, default) = match s.window {
                Window::Session(_) => ("sessions", SESSIONS_MAX),
                _ => ("groups", GROUPS_MAX),
            };
            let row = bytes(key_words(s.keys.iter().map(|(_, e)| e)) + cells(s, functions));
            // Partial groups of workers are merged into further ones.
            let copies = if copies > 1 { copies + 1 } else { 1 };
            (what, s.max_groups, default, row.saturating_mul(windows(s)).saturating_mul(copies))
        }
        Stage::Scan(s) => {
            let row = bytes(key_words(&s.keys) + ROW_HEAD + s.states.len());
            ("keys", s.max_keys, SCAN_KEYS_MAX, row * copies)
        }
        Stage::AnalyzeTcp(a) => {
            let row = bytes(key_words(&a.keys) + ROW_HEAD + Tracked::ALL.words());
            ("keys", a.max_keys, SCAN_KEYS_MAX, row * copies)
        }
        Stage::Distinct(d) => {
            let row = bytes(key_words(&d.keys) + ROW_HEAD + 1);
            ("keys", d.max_keys, DISTINCT_KEYS_MAX, row * copies)
        }
        Stage::Deduplicate(d) => {
            let row =
                bytes(key_words(&deduplicate::digest_columns(0)) + ROW_HEAD + deduplicate::STATES);
            ("packets", d.max_packets, DISTINCT_KEYS_MAX, row * copies)
        }
        Stage::Hello(h) => {
            let row = bytes(key_words(&h.keys) + ROW_HEAD + HELLO_WORDS) + HELLO_PIECES_EACH as u64;
            ("flows", h.max_flows, HELLO_FLOWS_MAX, row * copies)
        }
        Stage::Top { n, per: Some(per), .. } => {
            let rows = (8 * (width(input) + ROW_HEAD) as u64).saturating_mul(*n);
            let key = bytes(key_words(&per.keys) + ROW_HEAD);
            ("keys", per.max_keys, TOP_KEYS_MAX, key.saturating_add(rows))
        }
        Stage::Join(j) => {
            let side = |schema: &Schema| bytes(width(schema) + ROW_HEAD);
            ("rows", j.max_rows, JOIN_ROWS_MAX, side(input) + side(&j.schema))
        }
        Stage::Alert(a) => ("keys", a.max_keys, ALERT_KEYS_MAX, alert::key_bytes(a, input) as u64),
        Stage::Where(_)
        | Stage::Extend { .. }
        | Stage::Project { .. }
        | Stage::Reshape { .. }
        | Stage::Limit(_) => {
            return None;
        }
        Stage::Top { per: None, .. } | Stage::Union(_) | Stage::Sample(_) => return None,
        Stage::Each(_) | Stage::Ends(_) | Stage::Capture(_) | Stage::Metric(_) => return None,
    };
    (bound == default).then_some((what, default, each.max(1)))
}

/// Gives a stage another bound.
fn set(stage: &mut Stage, bound: u64) {
    match stage {
        Stage::Summarize(s) => s.max_groups = bound,
        Stage::Scan(s) => s.max_keys = bound,
        Stage::AnalyzeTcp(a) => a.max_keys = bound,
        Stage::Distinct(d) => d.max_keys = bound,
        Stage::Deduplicate(d) => d.max_packets = bound,
        Stage::Hello(h) => h.max_flows = bound,
        Stage::Top { per: Some(per), .. } => per.max_keys = bound,
        Stage::Join(j) => j.max_rows = bound,
        Stage::Alert(a) => a.max_keys = bound,
        _ => {}
    }
}

/// Words of a key, addresses being IPv6.
fn key_words<'a>(keys: impl IntoIterator<Item = &'a Expr>) -> usize {
    let parts: Vec<KeyPart> = keys.into_iter().map(KeyPart::of).collect();
    let (narrow, wide) = Layout::both(&parts);
    wide.unwrap_or(narrow).words
}

/// Words of state of a group, those of a session included.
fn cells(s: &Summarize, functions: &Functions) -> usize {
    // They are built to be measured: no key is ever hashed with this.
    let with = BuildContext { functions, hash_key: HashKey::new(0, 0), peers: Peers::None };
    let states = agg::sharing(&s.aggs).into_iter();
    let cells = states.map(|state| {
        let own: Vec<_> = state.into_iter().cloned().collect();
        agg::build(&own, with, s.keys.is_empty()).cells()
    });
    cells.sum::<usize>() + ROW_HEAD
}

/// Tables that may be there at once: of the windows (panes, where they slide) that are open, and of
/// one that is being emitted. Of sessions, one for those open and one for those that have ended.
fn windows(s: &Summarize) -> u64 {
    let Some(pane) = s.window.pane().filter(|pane| *pane > 0) else {
        return if matches!(s.window, Window::Session(_)) { 2 } else { 1 };
    };
    let span = match s.window {
        Window::Sliding { over, .. } => over,
        _ => pane,
    };
    let open = span.saturating_add(s.lateness_ns) / pane;
    2 + open.clamp(0, 2 * LATENESS_WINDOWS_MAX) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plan::{Distinct, Pipeline, Scan};

    const GIB: u64 = 1 << 30;

    fn field(name: &str) -> Expr {
        Expr::field(weir_packet::fields::by_name(name).expect("a field"))
    }

    fn groups(window: Window, max_groups: u64) -> Stage {
        let keys = vec![("ip.src".to_owned(), field("ip.src"))];
        let (aggs, lateness_ns, fill, until) = (Vec::new(), 0, None, None);
        Stage::Summarize(Summarize {
            keys,
            aggs,
            window,
            lateness_ns,
            fill,
            until,
            unless: None,
            zone: None,
            max_groups,
        })
    }

    fn scan(max_keys: u64) -> Stage {
        let keys = vec![field("ip.src"), field("dport")];
        Stage::Scan(Scan { states: Vec::new(), keys, idle_ns: 1, max_keys })
    }

    fn distinct(max_keys: u64) -> Stage {
        let keys = vec![field("ip.src")];
        Stage::Distinct(Distinct { keys, windowed: false, idle_ns: 1, max_keys })
    }

    fn program(stages: Vec<Vec<Stage>>) -> Program {
        let pipeline = |stages| Pipeline {
            name: None,
            input: Input::Packets,
            stages,
            schema: Schema::default(),
            printed: true,
        };
        Program::of(stages.into_iter().map(pipeline).collect())
    }

    fn fitted(stages: Vec<Vec<Stage>>, memory: u64, workers: usize) -> Vec<(usize, u64)> {
        let (_, lowered) = fit(&program(stages), &Functions::default(), memory, workers);
        lowered.iter().map(|bound| (bound.pipeline, bound.bound)).collect()
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let all = || vec![vec![groups(Window::All, GROUPS_MAX)], vec![scan(SCAN_KEYS_MAX)]];
        let (same, lowered) = fit(&program(all()), &Functions::default(), 1 << 50, 4);
        assert_eq!((same, lowered), (program(all()), Vec::new()));
    }

    #[test]
    fn defaults_fit_together_whatever_the_memory_and_the_workers() {
        let stages = || {
            vec![
                vec![groups(Window::All, GROUPS_MAX), distinct(DISTINCT_KEYS_MAX)],
                vec![scan(SCAN_KEYS_MAX)],
                vec![groups(Window::Tumbling(5), GROUPS_MAX)],
                vec![groups(Window::Sliding { over: 60, every: 1 }, GROUPS_MAX)],
            ]
        };
        for workers in [1, 2, 4, 256] {
            for memory in [0, 1, 1 << 20, GIB, 4 * GIB, 1 << 45, u64::MAX] {
                let (fitted, _) = fit(&program(stages()), &Functions::default(), memory, workers);
                let mut sum = 0u64;
                for stage in fitted.pipelines.iter().flat_map(|p| &p.stages) {
                    // Bounds that were lowered count as named ones: ask for the default's need.
                    let mut asked = stage.clone();
                    let bound = match stage {
                        Stage::Summarize(s) => s.max_groups,
                        Stage::Scan(s) => s.max_keys,
                        Stage::Distinct(d) => d.max_keys,
                        _ => unreachable!("no other stage"),
                    };
                    assert!(bound >= 1);
                    let default = match stage {
                        Stage::Summarize(_) => GROUPS_MAX,
                        Stage::Scan(_) => SCAN_KEYS_MAX,
                        _ => DISTINCT_KEYS_MAX,
                    };
                    set(&mut asked, default);
                    let schema = Schema::default();
                    let (.., each) =
                        need(&asked, &schema, &Functions::default(), workers as u64).expect("one");
                    sum = sum.saturating_add(bound.saturating_mul(each));
                }
                // One key of each stage is there whatever it takes.
                assert!(sum <= memory.max(1 << 25), "{memory} {workers}: {sum}");
            }
        }
    }

    #[test]
    fn what_a_query_names_is_left_alone() {
        let (same, lowered) =
            fit(&program(vec![vec![scan(7), groups(Window::All, 9)]]), &Functions::default(), 0, 1);
        assert_eq!((same, lowered), (program(vec![vec![scan(7), groups(Window::All, 9)]]), vec![]));
    }

    #[test]
    fn small_needs_leave_the_rest_to_large_ones() {
        // A scan needs some 130 MB, and a summarize gets what is left of a gibibyte.
        let alone = fitted(vec![vec![groups(Window::All, GROUPS_MAX)]], GIB, 1);
        let both = vec![vec![groups(Window::All, GROUPS_MAX)], vec![scan(SCAN_KEYS_MAX)]];
        let both = fitted(both, GIB, 1);
        assert_eq!((alone.len(), both.len(), both[0].0), (1, 1, 0));
        assert!(both[0].1 > alone[0].1 * 4 / 5, "{} of {}", both[0].1, alone[0].1);
    }
}
