//! Which windows come out when, where they slide or are filled in.
//!
//! Times are 128 bits wide here: a window may begin before the first time there is.

use super::fill::Filling;
use super::groups::{Groups, Spec};
use super::panes::{Panes, Spent};
use super::window_time::{clamp, floor, is_start};
use crate::checkpoint::{BadState, Checkpoint, Passed};
use crate::counters::Ledger;
use std::sync::Arc;

/// Puts windows together from the panes that close.
pub(super) struct Windows {
    panes: Panes,
    filling: Option<Filling>,
    over: i128,
    every: i128,
    pane: i128,
    /// Windows are by whose clock, and how long they stay open.
    spec: Arc<Spec>,
    /// No window that starts before this one comes out any more.
    next: i128,
    /// A window that waits until those before it that lack its new keys are out: the next of these,
    /// its own start, and its groups.
    waiting: Option<(i128, i128, Groups)>,
    /// The start of the pane that is lent to be put out.
    lent: Option<i64>,
}

impl Windows {
    /// The windows of a `summarize` whose windows do not come out as they are.
    pub(super) fn of(spec: &Arc<Spec>) -> Option<Windows> {
        let window = spec.plan.window;
        if spec.plan.is_plain() {
            return None;
        }
        Some(Windows {
            panes: Panes::new(spec),
            filling: Filling::of(spec),
            over: window.over()? as i128,
            every: window.every()? as i128,
            pane: window.pane()? as i128,
            spec: Arc::clone(spec),
            next: i128::MIN,
            waiting: None,
            lent: None,
        })
    }

    /// Takes a pane that is later than all before; windows that end before it are out.
    pub(super) fn push(&mut self, start: i64, groups: Groups) {
        self.panes.push(start, groups);
    }

    /// Where the pane from `start` on begins: before all time, if it is the first there is.
    pub(super) fn begin(&self, start: i64) -> i128 {
        floor(start as i128, self.pane)
    }

    /// The panes up to here have closed when the watermark is there.
    pub(super) fn closed(&self, watermark: i64) -> i128 {
        let lateness = self.spec.plan.lateness_ns;
        let closing = match self.spec.plan.zone {
            None => watermark as i128 - lateness as i128,
            Some(zone) => zone.clock(watermark.saturating_sub(lateness)).into(),
        };
        floor(closing, self.pane)
    }

    /// The start of the first window from `start` on in which a time of rows may lie.
    fn first_shown(&self, start: i128) -> i128 {
        self.spec.plan.zone.map_or(start, |zone| zone.first_shown(start, self.every))
    }

    /// The next window that ends at or before `end`, or that holds a row if there is no end: its
    /// start and its groups.
    pub(super) fn next(&mut self, end: Option<i128>, spent: Spent<'_>) -> Option<(i64, Groups)> {
        loop {
            if let Some(window) = self.before_waiting(spent) {
                return Some(window);
            }
            // The next window with a row, and the next that is not to come out yet.
            let held = self.panes.first().map(|first| {
                let earliest = floor(self.begin(first) + self.pane - self.over - 1, self.every);
                self.first_shown(self.next.max(earliest + self.every))
            });
            let open = end.map(|end| floor(end - self.over, self.every) + self.every);
            let gap = held.into_iter().chain(open).min()?;
            let start = self.first_shown(self.next);
            if let Some(filling) = self.filling.as_mut().filter(|f| f.has_begun())
                && self.next < gap
            {
                if !filling.comes_out(start, gap, self.every) {
                    self.next = gap;
                    continue;
                }
                self.next = start + self.every;
                let mut groups = self.panes.memory();
                filling.complete(start, &mut groups);
                return Some((clamp(start), groups));
            }
            let start = held.filter(|held| open.is_none_or(|open| *held < open))?;
            let groups = self.take(start, spent);
            let filling = self.filling.as_ref();
            let first = filling.map_or(start, |filling| filling.first_without_new(start));
            self.waiting = Some((first, start, groups));
        }
    }

    /// The window that waits, or one before it with the keys that it lacks.
    fn before_waiting(&mut self, spent: Spent<'_>) -> Option<(i64, Groups)> {
        let (next, start, mut groups) = self.waiting.take()?;
        let next = self.first_shown(next);
        if next < start
            && let Some(filling) = &mut self.filling
        {
            let mut before = self.panes.memory();
            if filling.add_new(next, &mut before, (start, self.every)) {
                self.waiting = Some((next + self.every, start, groups));
                return Some((clamp(next), before));
            }
            self.panes.recycle(before, spent);
        }
        if let Some(filling) = &mut self.filling {
            filling.complete_held(start, &mut groups);
        }
        Some((clamp(start), groups))
    }

    /// The groups of the window from `start` on, which holds all panes there are.
    fn take(&mut self, start: i128, spent: Spent<'_>) -> Groups {
        self.next = start + self.every;
        let (next, pane) = (self.next, self.pane);
        let is_over = |start: i64| floor(start as i128, pane) < next;
        if self.filling.is_none()
            && let Some((pane, groups)) = self.panes.lend(is_over)
        {
            self.lent = Some(pane);
            return groups;
        }
        let groups = self.panes.take_window(is_over, spent);
        if let Some(filling) = &mut self.filling {
            filling.remember(start, &groups, spent);
        }
        groups
    }

    /// Takes groups back that were emitted.
    pub(super) fn recycle(&mut self, groups: Groups, spent: Spent<'_>) {
        match self.lent.take() {
            Some(pane) => self.panes.push(pane, groups),
            None => self.panes.recycle(groups, spent),
        }
    }

    /// Saves what it holds when all windows are out that can be, or restores it.
    pub(super) fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let is_next = |t: &i128| *t == i128::MIN || is_start(t);
        at.pass_if(&mut self.next, "a window is beyond all time", is_next)?;
        self.panes.pass_state(at)?;
        self.filling.iter_mut().try_for_each(|filling| filling.pass_state(at))?;
        let has_begun = self.filling.as_ref().is_some_and(Filling::has_begun);
        match has_begun && self.next == i128::MIN {
            true => Err(BadState("the first window is not known")),
            false => Ok(()),
        }
    }

    /// Adds what it counted to the ledger.
    pub(super) fn count(&self, ledger: &mut Ledger) {
        ledger.evicted += self.panes.evicted();
        self.filling.iter().for_each(|filling| filling.count(ledger));
    }
}

#[cfg(test)]
mod tests {
    use crate::functions::Functions;
    use crate::ops::testing::{agg, field, summarize};
    use crate::rows::Collect;
    use crate::run::{Options, run};
    use crate::table::HashKey;
    use crate::tests::{Frames, check, program};
    use proptest::prelude::*;
    use std::net::Ipv4Addr;
    use weir_model::TimeRules;
    use weir_packet::craft::Frame;
    use weir_packet::source::LinkType;
    use weir_plan::limits::{FILL_MAX, GROUPS_MAX};
    use weir_plan::{
        AggFunc, Expr, Fill, Order, SortKey, Stage, Summarize, TimeZone, Type, Value, Window,
    };

    const S: i64 = 1_000_000_000;

    /// A `summarize` of these windows.
    fn windows(keys: &[&str], window: Window) -> Summarize {
        let aggs = vec![agg(AggFunc::Count, None), agg(AggFunc::Sum, Some(field("len")))];
        match summarize(keys, aggs, window) {
            Stage::Summarize(s) => s,
            _ => unreachable!(),
        }
    }

    /// Packets of a length at a time, in milliseconds.
    fn frames(packets: &[(i64, usize)]) -> Frames {
        let frame = |&(ms, len): &(i64, usize)| (ms * 1_000_000, vec![0; len]);
        Frames::new(LinkType::ETHERNET, &packets.iter().map(frame).collect::<Vec<_>>())
    }

    /// The rows of `s` over `frames`, each as its start in seconds and its cells; and late rows,
    /// evicted ones, windows left out. They are those of the naive model.
    fn rows(s: Summarize, frames: &Frames) -> (Vec<String>, [u64; 3]) {
        let plan = program(vec![Stage::Summarize(s)]);
        let rows = check(&plan, &Functions::default(), frames);
        let line = |(_, cells): &(usize, Vec<Value>)| {
            let Value::Time(start) = cells[0] else { panic!("{cells:?}") };
            let cells: Vec<_> = cells[1..].iter().map(Value::to_string).collect();
            format!("{}: {}", start as f64 / S as f64, cells.join(" "))
        };
        let mut sink = Collect::default();
        let (mut source, functions) = (frames.cut(&[64]), Functions::default());
        let options = Options::default();
        let ledger = run(&plan, &functions, &mut source, &mut sink, &options, &mut |_| {}).ledger;
        (rows.iter().map(line).collect(), [ledger.late, ledger.evicted, ledger.unfilled])
    }

    #[test]
    fn each_row_counts_in_every_window_that_holds_it() {
        let s = windows(&[], Window::Sliding { over: 3 * S, every: S });
        let packets = frames(&[(500, 1), (600, 2), (1500, 10), (2500, 20), (9000, 100)]);
        let expected = [
            "-2: 2 3", "-1: 3 13", "0: 4 33", "1: 2 30", "2: 1 20", "7: 1 100", "8: 1 100",
            "9: 1 100",
        ];
        assert_eq!(rows(s, &packets), (expected.map(str::to_owned).to_vec(), [0; 3]));
    }

    #[test]
    fn a_window_need_not_be_a_multiple_of_their_distance() {
        let s = windows(&["len"], Window::Sliding { over: 5 * S / 2, every: S });
        let packets = frames(&[(200, 60), (700, 60), (1600, 70), (2700, 60)]);
        let expected = [
            "-2: 60 1 60",
            "-1: 60 2 120",
            "0: 60 2 120",
            "0: 70 1 70",
            "1: 60 1 60",
            "1: 70 1 70",
            "2: 60 1 60",
        ];
        assert_eq!(rows(s, &packets).0, expected);
    }

    #[test]
    fn a_row_is_late_when_its_pane_has_closed() {
        let s = windows(&[], Window::Sliding { over: 4 * S, every: 2 * S });
        let mut packets: Vec<_> = (0..5).map(|i| (i * 1000, 1)).collect();
        // The watermark is at 3: the pane up to 2 has closed, the window up to 4 has not.
        packets.extend([(1900, 10), (2100, 100)]);
        let expected = ["-2: 2 2", "0: 5 104", "2: 4 103", "4: 1 1"];
        let (got, [late, ..]) = rows(s, &frames(&packets));
        assert_eq!((got, late), (expected.map(str::to_owned).to_vec(), 1));
    }

    #[test]
    fn lateness_keeps_windows_open_and_counts_who_needed_it() {
        let packets =
            frames(&[(0, 1), (500, 1), (900, 1), (2500, 1), (800, 9), (4100, 1), (700, 9)]);
        for (lateness_ns, expected, late) in [
            (0, ["0: 3 3 0", "2: 1 1 0", "4: 1 1 0"], 2),
            (S, ["0: 4 12 1", "2: 1 1 0", "4: 1 1 0"], 1),
            (3 * S, ["0: 5 21 2", "2: 1 1 0", "4: 1 1 0"], 0),
        ] {
            let mut s = windows(&[], Window::Tumbling(S));
            s.aggs.push(agg(AggFunc::Late, None));
            s.lateness_ns = lateness_ns;
            let (got, [dropped, ..]) = rows(s, &packets);
            assert_eq!((got, dropped), (expected.map(str::to_owned).to_vec(), late));
        }
    }

    #[test]
    fn windows_without_rows_are_filled_in() {
        let packets = frames(&[(500, 60), (900, 70), (3500, 60), (9000, 60)]);
        let mut s = windows(&["len"], Window::Tumbling(S));
        s.fill = Some(Fill::idle(Some(2 * S)));
        let expected = [
            "0: 60 1 60",
            "0: 70 1 70",
            "1: 60 0 absent",
            "1: 70 0 absent",
            "2: 60 0 absent",
            "2: 70 0 absent",
            "3: 60 1 60",
            "4: 60 0 absent",
            "5: 60 0 absent",
            "9: 60 1 60",
        ];
        assert_eq!(rows(s.clone(), &packets), (expected.map(str::to_owned).to_vec(), [0; 3]));
        s.fill = Some(Fill::idle(None));
        assert_eq!(rows(s, &packets).0.len(), 20);
        let mut s = windows(&[], Window::Sliding { over: 2 * S, every: S });
        s.fill = Some(Fill::idle(None));
        let expected = [
            "-1: 2 130",
            "0: 2 130",
            "1: 0 absent",
            "2: 1 60",
            "3: 1 60",
            "4: 0 absent",
            "5: 0 absent",
            "6: 0 absent",
            "7: 0 absent",
            "8: 1 60",
            "9: 1 60",
        ];
        assert_eq!(rows(s, &packets).0, expected);
    }

    #[test]
    fn from_the_start_a_key_has_the_windows_before_its_first_one() {
        let packets = frames(&[(500, 60), (2500, 70), (3500, 60), (3600, 80), (4500, 90)]);
        let mut s = windows(&["len"], Window::Tumbling(S));
        s.fill = Some(Fill::from_start());
        let expected = [
            "0: 60 1 60",
            "1: 60 0 absent",
            // Here the second key comes: first its windows before, then the window.
            "0: 70 0 absent",
            "1: 70 0 absent",
            "2: 60 0 absent",
            "2: 70 1 70",
            "0: 80 0 absent",
            "1: 80 0 absent",
            "2: 80 0 absent",
            "3: 60 1 60",
            "3: 70 0 absent",
            "3: 80 1 80",
            "0: 90 0 absent",
            "1: 90 0 absent",
            "2: 90 0 absent",
            "3: 90 0 absent",
            "4: 60 0 absent",
            "4: 70 0 absent",
            "4: 80 0 absent",
            "4: 90 1 90",
        ];
        assert_eq!(rows(s.clone(), &packets), (expected.map(str::to_owned).to_vec(), [0; 3]));
        // Two rows at most: one window of the second key lacks it, and all of the others.
        s.fill = Some(Fill { max_rows: 2, ..Fill::from_start() });
        let (got, [late, evicted, unfilled]) = rows(s, &packets);
        assert_eq!((late, evicted), (0, 0));
        assert!(unfilled > 0 && got.len() < 20, "{unfilled}: {got:?}");
        let mut s = windows(&["len"], Window::Sliding { over: 2 * S, every: S });
        s.fill = Some(Fill::from_start());
        assert_eq!(rows(s, &packets).0.len(), 4 * 6);
    }

    #[test]
    fn a_gap_in_time_is_not_filled_without_end() {
        let mut s = windows(&[], Window::Tumbling(S));
        s.fill = Some(Fill::idle(None));
        let far = 1_000_000_000;
        let packets = frames(&[(1, 1), (2, 1), (far, 1), (far + 1, 1), (far + 2, 1), (far + 3, 1)]);
        let (got, counts) = rows(s, &packets);
        assert_eq!(got.len() as u64, 1 + FILL_MAX + 1);
        assert_eq!(counts, [0, 0, 1_000_000 - 1 - FILL_MAX]);
    }

    /// Three keys, so that a window without rows has three.
    #[test]
    fn rows_that_are_filled_in_are_bounded() {
        let mut packets = vec![(100, 60), (200, 70), (300, 80), (400, 60)];
        packets.extend((0..4).map(|i| (20_500 + i, 60)));
        packets.extend((0..4).map(|i| (40_500 + i, 60)));
        let mut s = windows(&["len"], Window::Tumbling(S));
        for (max_rows, all, left) in [
            // Windows 1 to 19 are filled in, then two rows of 20, and 21 to 39, and two rows of 40.
            (1000, 3 + 40 * 3, 0),
            (10, 3 + 4 * 3 + (3 + 3 * 3) + 3, 15 + 16),
            (3, 3 + 3 + (3 + 3) + 3, 18 + 18),
            (0, 3 + 1 + 1, (19 + 1) + (19 + 1)),
        ] {
            s.fill = Some(Fill { idle_ns: None, from_start: false, max_rows });
            let (got, counts) = rows(s.clone(), &frames(&packets));
            assert_eq!((got.len(), counts), (all, [0, 0, left]), "{max_rows}: {got:?}");
        }
    }

    #[test]
    fn what_is_filled_in_keeps_to_the_bound() {
        let many: Vec<_> = (0..200).map(|i| (i * 100, 60 + i as usize / 4 % 30)).collect();
        for (idle_ns, window) in [
            (None, Window::Tumbling(S)),
            (Some(2 * S), Window::Tumbling(S)),
            (Some(S), Window::Sliding { over: 2 * S, every: S }),
        ] {
            let mut s = windows(&["len"], window);
            (s.fill, s.max_groups) = (Some(Fill::idle(idle_ns)), 5);
            let (_, [_, evicted, _]) = rows(s, &frames(&many));
            assert!(evicted > 0, "{window:?}");
        }
    }

    /// Packets of some hosts in 20 s, out of order now and then; `hosts` of them at a time, and
    /// others after a while.
    fn traffic(hosts: u32, stay: u64) -> Frames {
        let frames: Vec<_> = (0..2000u64)
            .map(|i| {
                let h = HashKey::KNOWN.hash([i]);
                let host = (i / stay) as u32 * hosts + h as u32 % hosts;
                let back = if h >> 40 & 15 == 0 { (h >> 44) as i64 % 3000 } else { 0 };
                let frame = Frame::ethernet().ipv4(Ipv4Addr::from(host), Ipv4Addr::from(9));
                let frame = frame.udp(h as u16 % 5, 53).payload(&vec![0; (h >> 50) as usize % 40]);
                ((i as i64 * 10 - back) * 1_000_000, frame.bytes())
            })
            .collect();
        Frames::new(LinkType::ETHERNET, &frames)
    }

    fn all_aggregates() -> Vec<weir_plan::Agg> {
        let text = Expr {
            ty: Type::Str,
            kind: weir_plan::ExprKind::Call(weir_plan::Func::ToStr, vec![field("len")]),
        };
        let of = |f, name| agg(f, Some(field(name)));
        vec![
            agg(AggFunc::Count, None),
            agg(AggFunc::Late, None),
            of(AggFunc::Sum, "len"),
            of(AggFunc::First, "sport"),
            of(AggFunc::Last, "number"),
            of(AggFunc::Min, "len"),
            of(AggFunc::Max, "ip.src"),
            of(AggFunc::Distinct, "sport"),
            of(AggFunc::Distinct, "ip.src"),
            of(AggFunc::DistinctUpTo(3), "len"),
            of(AggFunc::ApproxDistinct, "number"),
            of(AggFunc::Quantile(500_000), "len"),
            of(AggFunc::Frequent(3), "len"),
            of(AggFunc::Entropy, "len"),
            of(AggFunc::Stddev, "len"),
            agg(AggFunc::Rate(5 * S), None),
            agg(AggFunc::Max, Some(text.clone())),
            agg(AggFunc::Last, Some(text)),
        ]
    }

    #[test]
    fn every_aggregate_in_every_kind_of_window() {
        // The same hosts all the time, and hosts that come and go, as many as packets.
        for (hosts, stay) in [(7, 10_000), (9, 300), (1000, 100)] {
            let frames = traffic(hosts, stay);
            for (over, every) in [(5 * S, S), (5 * S, 2 * S), (20 * S, S / 4), (S, S)] {
                for (keys, fill, lateness_ns) in [
                    (&["ip.src"][..], None, 0),
                    (&[], Some(None), S),
                    (&["ip.src", "sport"], Some(Some(3 * S)), 0),
                ] {
                    if fill.is_some() && every < S {
                        continue;
                    }
                    let window = Window::Sliding { over, every };
                    let Stage::Summarize(mut s) = summarize(keys, all_aggregates(), window) else {
                        unreachable!()
                    };
                    s.fill = fill.map(Fill::idle);
                    s.lateness_ns = lateness_ns;
                    check(&program(vec![Stage::Summarize(s)]), &Functions::default(), &frames);
                }
            }
        }
    }

    #[test]
    fn sums_of_floats_add_up_pane_by_pane() {
        let tenth = weir_plan::Expr {
            ty: Type::Float,
            kind: weir_plan::ExprKind::Binary(
                weir_plan::BinaryOp::Div,
                Box::new(field("len")),
                Box::new(Expr::constant(Value::Int(10))),
            ),
        };
        let aggs = [AggFunc::Sum, AggFunc::Avg, AggFunc::Variance, AggFunc::Stddev];
        let aggs = aggs.map(|f| agg(f, Some(tenth.clone()))).to_vec();
        let stage = summarize(&["ip.src"], aggs, Window::Sliding { over: 5 * S, every: S });
        let rows = check(&program(vec![stage]), &Functions::default(), &traffic(7, 10_000));
        assert!(rows.len() > 150, "{}", rows.len());
    }

    #[test]
    fn windows_of_windows_and_the_best_of_each() {
        let inner = windows(&["ip.src"], Window::Sliding { over: 4 * S, every: S });
        let aggs = vec![agg(AggFunc::Max, Some(Expr::column(2, Type::Int)))];
        let outer = Summarize {
            keys: Vec::new(),
            aggs,
            window: Window::Sliding { over: 6 * S, every: 3 * S },
            lateness_ns: S,
            until: None,
            unless: None,
            zone: None,
            fill: Some(Fill::idle(None)),
            max_groups: GROUPS_MAX,
        };
        let by = vec![SortKey { expr: Expr::column(1, Type::Int), order: Order::Descending }];
        let top = Stage::Top { n: 1, by, windowed: true, per: None };
        let stages = vec![Stage::Summarize(inner), Stage::Summarize(outer), top];
        check(&program(stages), &Functions::default(), &traffic(20, 50));
    }

    /// Half an hour, in minutes.
    const HALF: i64 = 30;
    const DAY: i64 = 48 * HALF;

    /// A zone whose clocks are set once; all in minutes.
    fn zone(first: i64, at: i64, then: i64) -> TimeZone {
        let ns = |minutes: i64| minutes * 60 * S;
        TimeZone::new("t", ns(first), &[(ns(at), ns(then))]).expect("a zone")
    }

    /// The starts in minutes, and the packets, of windows by the clock of a zone over packets at
    /// these minutes.
    fn by_clock(
        zone: TimeZone,
        (over, every): (i64, i64),
        fill: Option<Fill>,
        times: impl Iterator<Item = i64>,
    ) -> Vec<(i64, String)> {
        let [over, every] = [over, every].map(|minutes| minutes * 60 * S);
        let window = match over == every {
            true => Window::Tumbling(every),
            false => Window::Sliding { over, every },
        };
        let packets: Vec<_> = times.map(|t| (t * 60_000, 1)).collect();
        let s = Summarize { zone: Some(zone), fill, ..windows(&[], window) };
        let rows =
            check(&program(vec![Stage::Summarize(s)]), &Functions::default(), &frames(&packets));
        let row = |(_, cells): &(usize, Vec<Value>)| match cells[0] {
            Value::Time(start) => (start / S / 60, cells[1].to_string()),
            _ => panic!("{cells:?}"),
        };
        rows.iter().map(row).collect()
    }

    fn expect(rows: Vec<(i64, String)>, expected: &[(i64, u64)]) {
        let expected: Vec<_> = expected.iter().map(|(t, n)| (*t, n.to_string())).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn windows_that_local_clocks_skip_do_not_come_out() {
        let (hour, fill) = (2 * HALF, Some(Fill::idle(None)));
        let quarters = || (56..76).map(|i| i * 15);
        // As in Adelaide: from 02:00 to 03:00, by the clock and by that of windows of an hour.
        let adelaide = zone(19 * HALF, 33 * HALF, 21 * HALF);
        let filled = [(810, 2), (870, 4), (930, 4), (990, 4), (1050, 4), (1110, 2)];
        for (zone, in_change) in [(adelaide, 4), (adelaide.by(hour * 60 * S), 8)] {
            expect(by_clock(zone, (hour, hour), fill, quarters()), &filled);
            expect(by_clock(zone, (hour, hour), None, quarters()), &filled);
            let sliding = [(750, 2), (810, 6), (870, 8), (930, in_change)];
            let sliding = [&sliding[..], &[(990, 8), (1050, 6), (1110, 2)]].concat();
            expect(by_clock(zone, (2 * hour, hour), None, quarters()), &sliding);
            expect(by_clock(zone, (2 * hour, hour), fill, quarters()), &sliding);
        }
        // As in Samoa, which left out a day.
        let samoa = zone(-20 * HALF, 68 * HALF, 28 * HALF);
        let hours = || (0..72).map(|i| i * 60);
        let days = [(-840, 10), (600, 24), (2040, 24), (3480, 14)];
        let two = [(-2280, 10), (-840, 34), (600, 24), (2040, 38), (3480, 14)];
        expect(by_clock(samoa, (DAY, DAY), fill, hours()), &days);
        expect(by_clock(samoa.by(DAY * 60 * S), (DAY, DAY), fill, hours()), &days);
        expect(by_clock(samoa, (2 * DAY, DAY), fill, hours()), &two);
        // As on Lord Howe: from 02:00 to 02:30, which is one window of 20 minutes and half of one.
        let howe = zone(21 * HALF, 31 * HALF, 22 * HALF);
        let fives = (180..192).map(|i| i * 5);
        let thirds = [(890, 2), (910, 4), (930, 2), (940, 4)];
        expect(by_clock(howe, (20, 20), fill, fives), &thirds);
    }

    #[test]
    fn an_hour_that_comes_twice_is_two_windows() {
        let hour = 2 * HALF;
        let quarters = || (56..76).map(|i| i * 15);
        let adelaide = zone(21 * HALF, 33 * HALF, 19 * HALF);
        let by = adelaide.by(hour * 60 * S);
        let all = [(810, 2), (870, 4), (930, 4), (990, 4), (1050, 4), (1110, 2)];
        for fill in [None, Some(Fill::idle(None))] {
            expect(by_clock(by, (hour, hour), fill, quarters()), &all);
            // Where windows are longer, it is part of one.
            let two = [(810, 6), (930, 12), (1110, 2)];
            expect(by_clock(adelaide, (2 * hour, 2 * hour), fill, quarters()), &two);
        }
    }

    #[test]
    fn windows_that_local_clocks_skip_are_not_counted_as_left_out() {
        // 24 of 63 windows that would be between two with rows have no time.
        let mut s = windows(&["len"], Window::Tumbling(3600 * S));
        s.zone = Some(zone(-20 * HALF, 20 * HALF, 28 * HALF));
        let packets = frames(&[(0, 60), (40 * 3_600_000, 60)]);
        let mut count = |fill, packets: &Frames| {
            s.fill = Some(fill);
            let (rows, [.., unfilled]) = rows(s.clone(), packets);
            (rows.len() as u64, unfilled)
        };
        let some = |max_rows| Fill { max_rows, ..Fill::idle(None) };
        assert_eq!(count(some(1000), &packets), (41, 0));
        assert_eq!(count(some(5), &packets), (2 + 5, 34));
        let two = frames(&[(0, 60), (40 * 3_600_000, 70)]);
        let from_start = |max_rows| Fill { max_rows, ..Fill::from_start() };
        assert_eq!(count(from_start(1000), &two), (41 + 41, 0));
        assert_eq!(count(from_start(5), &two), (2 + 5 + 5, 34 + 35 + 1));
    }

    proptest! {
        #[test]
        fn any_windows_over_any_times(
            times in proptest::collection::vec(0i64..400, 1..120),
            (over, every) in (1i64..60, 1i64..40),
            lateness_ns in 0i64..30, fills: bool, idle in proptest::option::of(1i64..50),
            jump in proptest::option::of((0usize..120, any::<i64>())),
        ) {
            let mut times = times;
            times.sort_unstable_by_key(|t| t / 50);
            if let Some((at, t)) = jump {
                let at = at % times.len();
                times[at] = t;
            }
            let frame = |&t: &i64| (t, vec![0; 60 + t.rem_euclid(3) as usize]);
            let frames: Vec<_> = times.iter().map(frame).collect();
            let mut s = windows(&["len"], Window::Sliding { over: over.max(every), every });
            s.aggs.push(agg(AggFunc::Late, None));
            // A time that is far off the others makes any number of rows `from start`.
            let max_rows = if over % 3 == 0 { 20 } else { 50_000 };
            let from_start = idle.is_some_and(|idle| idle % 3 == 0);
            let idle_ns = idle.filter(|_| !from_start);
            s.fill = fills.then_some(Fill { idle_ns, from_start, max_rows });
            s.lateness_ns = lateness_ns;
            let plan = program(vec![Stage::Summarize(s)]);
            let frames = Frames::new(LinkType::ETHERNET, &frames);
            let (lateness_ns, jump_ns) = (10, 1000);
            let rules = TimeRules { lateness_ns, jump_ns };
            let functions = Functions::default();
            let want = weir_model::run(&plan, &functions, &mut frames.cut(&[7]), &rules);
            for workers in [1, 3] {
                let options = Options { workers, lateness_ns, jump_ns, ..Options::default() };
                let (mut sink, mut source) = (Collect::default(), frames.cut(&[5, 64]));
                let got = run(&plan, &functions, &mut source, &mut sink, &options, &mut |_| {});
                prop_assert_eq!(&sink.rows, &want.rows);
                prop_assert_eq!(&got.ledger, &want.ledger);
            }
        }
    }
}
