//! The table of network functions, and everything measured as JSON.

use super::function::Function;
use super::run::{Datagrams, ForwardRun, Forwarder};
use crate::stats::Spread;
use serde_json::{Value, json};

/// A function, and by round what everybody measured who did it.
pub(super) struct Line {
    pub(super) function: Function,
    pub(super) rounds: Vec<Vec<ForwardRun>>,
}

impl Line {
    fn runs(&self, way: Forwarder) -> impl Iterator<Item = &ForwardRun> + Clone {
        self.rounds.iter().flatten().filter(move |run| run.way == way)
    }

    /// The median of a figure.
    fn median(&self, way: Forwarder, figure: impl Fn(&ForwardRun) -> f64) -> f64 {
        Spread::of(self.runs(way).map(figure)).median
    }

    /// A figure as `median × ratio`, where the ratio is to the kernel's in the same rounds.
    fn ratio(&self, way: Forwarder, digits: usize, figure: impl Fn(&ForwardRun) -> f64) -> String {
        let median = self.median(way, &figure);
        let pairs = self.runs(way).zip(self.runs(Forwarder::Kernel));
        let ratio = Spread::of(pairs.map(|(run, kernel)| figure(run) / figure(kernel))).median;
        if way == Forwarder::Kernel || ratio.is_nan() {
            return format!("{median:.digits$}");
        }
        format!("{median:.digits$} ({ratio:.2})")
    }

    fn row(&self, way: Forwarder) -> String {
        let percent =
            |figure: fn(&ForwardRun) -> f64| format!("{:.1}", 100.0 * self.median(way, figure));
        format!(
            "| {} | {} | {} | {:.0} | {:.2} | {} | {} | {} | {} | {:.0} | {:.0} |\n",
            self.function.title(),
            way.title(self.function),
            self.ratio(way, 2, |run| run.bits / 1e9),
            self.median(way, |run| run.again as f64),
            self.median(way, |run| run.busy),
            percent(|run| run.steady.lost()),
            self.ratio(way, 0, |run| run.small.rate() / 1e3),
            percent(|run| run.small.lost()),
            self.ratio(way, 0, |run| run.trip(0.5)),
            self.median(way, |run| run.trip(0.9)),
            self.median(way, |run| run.trip(0.99)),
        )
    }
}

/// As Markdown.
pub(super) fn markdown(rounds: u16, lines: &[Line], left_out: &[String]) -> String {
    let mut out = format!(
        "Medians of {rounds} rounds; in brackets by that of the kernel in the same round.\n\n\
         | function | by | TCP, Gbit/s | sent again | processors busy | steady datagrams lost, % \
         | small datagrams, thousand/s | lost, % | round trip, µs: median | 90 % | 99 % |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    for line in lines {
        let ways = Forwarder::ALL.into_iter().filter(|&way| line.runs(way).next().is_some());
        out.extend(ways.map(|way| line.row(way)));
    }
    for left_out in left_out {
        out += &format!("\nNot measured: {left_out}.\n");
    }
    out
}

/// Everything measured.
pub(super) fn json(lines: &[Line]) -> Value {
    let datagrams = |d: &Datagrams| json!({ "sent": d.sent, "received": d.received, "ns": d.ns });
    let run = |function: Function, run: &ForwardRun| {
        json!({
            "by": run.way.title(function),
            "trips_ns": run.trips,
            "trips_lost": run.trips_lost,
            "steady": datagrams(&run.steady),
            "small": datagrams(&run.small),
            "tcp_bits_per_s": run.bits,
            "tcp_sent_again": run.again,
            "processors_busy": run.busy,
        })
    };
    let line = |line: &Line| {
        let of =
            |runs: &Vec<ForwardRun>| runs.iter().map(|r| run(line.function, r)).collect::<Vec<_>>();
        let rounds: Vec<Vec<Value>> = line.rounds.iter().map(of).collect();
        json!({ "function": line.function.title(), "rounds": rounds })
    };
    json!({ "functions": lines.iter().map(line).collect::<Vec<Value>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(way: Forwarder, bits: f64, trips: &[u64]) -> ForwardRun {
        let datagrams = Datagrams { sent: 1000, received: 750, ns: 1_000_000 };
        let (steady, small) = (datagrams, datagrams);
        let trips = trips.to_vec();
        ForwardRun { way, trips, trips_lost: 0, steady, small, bits, again: 3, busy: 1.5 }
    }

    #[test]
    fn figures_stand_beside_those_of_the_kernel_in_the_same_round() {
        let round = |weir, kernel| {
            vec![
                run(Forwarder::Packet, weir, &[4000, 8000]),
                run(Forwarder::Kernel, kernel, &[2000]),
            ]
        };
        // Ratios 0.5, 1, 0.25: their median, not the ratio of the medians.
        let rounds = vec![round(1e9, 2e9), round(4e9, 4e9), round(2e9, 8e9)];
        let line = Line { function: Function::Bridge, rounds };
        assert_eq!(
            line.row(Forwarder::Packet),
            "| bridge | Weir, AF_PACKET | 2.00 (0.50) | 3 | 1.50 | 25.0 | 750 (1.00) | 25.0 \
             | 4 (2.00) | 8 | 8 |\n"
        );
        assert!(line.row(Forwarder::Kernel).starts_with("| bridge | Linux bridge | 4.00 | 3 |"));
    }

    #[test]
    fn a_share_of_no_round_trips_is_no_number() {
        let none = run(Forwarder::Xdp, 1.0, &[]);
        assert!(none.trip(0.5).is_nan());
        let some = run(Forwarder::Xdp, 1.0, &[1000, 2000, 3000]);
        assert_eq!([0.0, 0.5, 0.9, 1.0].map(|s| some.trip(s)), [1.0, 2.0, 3.0, 3.0]);
    }
}
