//! Which cases there are: the table of targets.

use super::case::{Comparison, Runner, TableCase};
use crate::compressed::PACKERS;
use crate::contestant::{ALONE, Setup};
use crate::roofline::Mode;
use crate::trace::Preset;
use crate::work::{DETECTORS, FLOW_METER, FLOW_METER_API, WORKS, Work};

/// The subject of a line of the table, before it is known who runs.
struct Aim {
    work: &'static Work,
    trace: &'static str,
    target: Option<f64>,
    /// Whether the tables of both sides are made beforehand, or both grow.
    tables: Tables,
}

/// How tables begin.
#[derive(Clone, Copy, PartialEq)]
enum Tables {
    /// The yardstick's made beforehand, ours growing.
    Usual,
    /// The yardstick's made beforehand, ours told how many groups come.
    Hinted,
    /// Both growing from small.
    Growing,
}

/// Groups that come in trace b: what a user would say who knows the link.
const HINT: u64 = 4_000_000;

/// The cases of these traces, which have `packets` unless that is none; `roofline`: whether the
/// loop in C is there.
pub(super) fn cases(
    presets: &[&'static Preset],
    packets: Option<u64>,
    roofline: bool,
) -> Vec<TableCase> {
    let chosen = |aim: &Aim| {
        let preset = presets.iter().find(|p| p.name == aim.trace).copied()?;
        Some((preset, packets.unwrap_or(preset.options.packets)))
    };
    let aims: Vec<_> = aims().into_iter().filter_map(|aim| Some((chosen(&aim)?, aim))).collect();
    let timed = aims.iter().filter_map(|(trace, aim)| time(aim, *trace, roofline));
    let scaled = aims.iter().map(|(trace, aim)| scaling(aim, *trace, roofline));
    let mut all: Vec<TableCase> = timed.chain(scaled).collect();
    if presets.iter().any(|p| p.name == "a") {
        all.extend(packed());
    }
    all
}

fn aims() -> Vec<Aim> {
    let usual = |work, trace, target| Aim { work, trace, target, tables: Tables::Usual };
    let meter = |trace, target, tables| Aim { work: &FLOW_METER, trace, target, tables };
    let mut all = vec![
        usual(&FLOW_METER_API, "a", Some(1.65)),
        usual(&FLOW_METER_API, "b", None),
        usual(&FLOW_METER_API, "c", None),
        meter("a", Some(1.1), Tables::Usual),
        meter("b", Some(1.1), Tables::Hinted),
        meter("b", Some(1.0), Tables::Growing),
        meter("c", Some(1.15), Tables::Usual),
    ];
    let targets = [
        ("general-key", Some(1.25)),
        ("source-counts", Some(0.8)),
        ("syn-by-destination", Some(0.55)),
        ("predicate", Some(0.5)),
        ("distinct-sources", Some(1.5)),
        ("approx-distinct", Some(1.5)),
        ("quantiles", Some(1.5)),
        ("frequent", Some(1.5)),
        ("sliding", Some(1.3)),
        ("interval-join", None),
        ("port-knocking", Some(1.5)),
        ("library", Some(3.0)),
    ];
    for (name, target) in targets {
        let work = WORKS.iter().find(|w| w.name == name).expect("a work of the list");
        all.push(usual(work, "a", target));
    }
    all.push(usual(&DETECTORS, "c", Some(6.0)));
    all
}

impl Aim {
    fn title(&self) -> String {
        let how = match self.tables {
            Tables::Usual => "",
            Tables::Hinted => ", size hint",
            Tables::Growing => ", growing against growing",
        };
        format!("{}{how}", self.work.title)
    }

    fn yardstick(&self, (preset, packets): (&Preset, u64), threads: usize) -> Runner {
        let made = Mode::made(preset, packets);
        let tables = made.tables.filter(|_| self.tables != Tables::Growing);
        Runner::Roofline(Mode { tables, threads })
    }

    fn ours(&self, workers: usize) -> Runner {
        let groups = (self.tables == Tables::Hinted).then_some(HINT);
        let setup = Setup { workers, groups, ..ALONE };
        Runner::Work { work: self.work, setup, packed: None }
    }
}

/// Without the loop in C, there is none whose tables grow.
fn time(aim: &Aim, trace: (&Preset, u64), roofline: bool) -> Option<TableCase> {
    let yardstick = match (roofline, aim.tables) {
        (true, _) => aim.yardstick(trace, 1),
        (false, Tables::Growing) => return None,
        (false, _) => Runner::Reference,
    };
    Some(TableCase {
        kind: Comparison::Time,
        title: aim.title(),
        trace: aim.trace,
        target: aim.target,
        runners: vec![yardstick, aim.ours(1)],
    })
}

/// Two workers against one, for what is not bound to one thread.
fn scaling(aim: &Aim, trace: (&Preset, u64), roofline: bool) -> TableCase {
    let mut runners = Vec::new();
    if roofline {
        runners.extend([aim.yardstick(trace, 1), aim.yardstick(trace, 2)]);
    }
    runners.extend([aim.ours(1), aim.ours(2)]);
    let title = aim.title();
    TableCase { kind: Comparison::Scaling, title, trace: aim.trace, target: Some(1.7), runners }
}

/// Packed input, with one worker and with two.
fn packed() -> impl Iterator<Item = TableCase> {
    PACKERS.into_iter().flat_map(|packer| {
        [1, 2].map(|workers| {
            let setup = Setup { workers, ..ALONE };
            let ours = Runner::Work { work: &FLOW_METER, setup, packed: Some(packer) };
            let s = if workers == 1 { "" } else { "s" };
            TableCase {
                kind: Comparison::Packed,
                title: format!("{} input, flow meter, {workers} worker{s}", packer.name),
                trace: "a",
                target: Some(1.0),
                runners: vec![Runner::Unpack(packer), ours],
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::PRESETS;

    fn titles(presets: &[&'static Preset], roofline: bool, kind: Comparison) -> Vec<String> {
        let all = cases(presets, None, roofline).into_iter().filter(|c| c.kind == kind);
        all.map(|c| format!("{} {}", c.trace, c.title)).collect()
    }

    #[test]
    fn the_table_of_targets() {
        let all = [&PRESETS[0], &PRESETS[1], &PRESETS[2]];
        assert_eq!(titles(&all, true, Comparison::Time).len(), 20);
        assert_eq!(titles(&all, true, Comparison::Scaling).len(), 20);
        assert_eq!(titles(&all, true, Comparison::Packed).len(), 4);
        // Of the trace with many flows, and without the loop in C.
        assert_eq!(
            titles(&all[1..2], false, Comparison::Time),
            ["b flow meter, a closure on each packet", "b flow meter, language, size hint"]
        );
        assert!(titles(&all[1..2], false, Comparison::Packed).is_empty());
        let mut names: Vec<String> =
            cases(&all, None, true).iter().map(|c| format!("{:?} {}", c.kind, c.name())).collect();
        let n = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), n, "no case is there twice");
    }
}
