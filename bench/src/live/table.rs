//! The table of a live measurement, and everything measured as JSON.

use super::options::LiveOptions;
use super::receiver::Receiver;
use super::run::{LiveCase, LiveRun};
use crate::stats::{Spread, median};
use serde_json::{Value, json};

/// The part of the rate of the loop of its kind that Weir is to reach.
pub(super) const TARGET: f64 = 0.9;

/// Where less than this part of what was offered is lost, the sender was the limit.
const LOST_LITTLE: f64 = 0.01;

/// A case, and by round what each way received; none of those that are not to run.
pub(crate) struct Lines {
    pub(super) case: LiveCase,
    pub(super) rounds: Vec<Vec<(Receiver, LiveRun)>>,
}

impl Lines {
    fn runs(&self, way: Receiver) -> impl Iterator<Item = &LiveRun> + Clone {
        self.rounds.iter().flatten().filter(move |(w, _)| *w == way).map(|(_, run)| run)
    }

    fn has(&self, way: Receiver) -> bool {
        self.runs(way).next().is_some()
    }

    /// The fastest loop by hand that gets its frames as this way does.
    fn rival(&self, way: Receiver) -> Option<Receiver> {
        let all = Receiver::ALL.into_iter();
        let rivals = all.filter(|w| !w.is_weir() && w.is_xdp() == way.is_xdp() && self.has(*w));
        let rate = |way: &Receiver| median(self.runs(*way).map(LiveRun::rate));
        rivals.max_by(|a, b| rate(a).total_cmp(&rate(b)))
    }

    /// The rate of a way by that of another, in the same rounds.
    fn ratio(&self, way: Receiver, rival: Receiver) -> Spread {
        Spread::of(self.runs(way).zip(self.runs(rival)).map(|(a, b)| a.rate() / b.rate()))
    }

    fn row(&self, way: Receiver) -> String {
        let rate = Spread::of(self.runs(way).map(|run| run.rate() / 1e6));
        let share = Spread::of(self.runs(way).map(LiveRun::share));
        let bound = if share.median > 1.0 - LOST_LITTLE { "sender" } else { "receiver" };
        let (mut ratio, mut reached, mut than) = ("".to_owned(), "", "");
        if let Some(rival) = self.rival(way).filter(|_| way.is_weir()) {
            let spread = self.ratio(way, rival);
            ratio = show(spread, 2);
            reached = if spread.median >= TARGET { "yes" } else { "no" };
            than = rival.title();
        }
        let LiveCase { bytes, flows } = self.case;
        format!(
            "| {} | {bytes} | {flows} | {} | {:.2} | {bound} | {ratio} | {reached} | {than} |\n",
            way.title(),
            show(rate, 2),
            share.median,
        )
    }
}

fn show(spread: Spread, digits: usize) -> String {
    let Spread { low, median, high } = spread;
    format!("{median:.digits$} ({low:.digits$}–{high:.digits$})")
}

/// As Markdown.
pub(super) fn markdown(options: &LiveOptions, sender: &str, lines: &[Lines]) -> String {
    let mut out = format!(
        "Medians (and quartiles) of {} rounds of {} ms. Sent by {sender}.\n\n\
         | receiver | bytes | flows | million frames per second | received of what was offered \
         | the limit | × loop of its kind | at least {TARGET} | that loop |\n\
         |---|---:|---:|---:|---:|---|---:|---|---|\n",
        options.rounds, options.window_ms,
    );
    for line in lines {
        for way in Receiver::ALL.into_iter().filter(|&way| line.has(way)) {
            out += &line.row(way);
        }
    }
    out
}

/// Everything measured.
pub(super) fn json(sender: &str, lines: &[Lines]) -> Value {
    let run = |(way, run): &(Receiver, LiveRun)| {
        json!({
            "receiver": way.title(),
            "offered": run.offered,
            "received": run.received.frames,
            "lost_on_the_wire": run.wire,
            "lost_by_the_socket": run.received.lost,
            "in_window": run.received.in_window,
            "window_ns": run.received.window_ns,
            "flows_found": run.received.flows,
            "mode": run.mode,
        })
    };
    let line = |line: &Lines| {
        let rounds = line.rounds.iter().map(|r| r.iter().map(run).collect());
        let rounds: Vec<Value> = rounds.collect();
        json!({ "bytes": line.case.bytes, "flows": line.case.flows, "rounds": rounds })
    };
    json!({ "sender": sender, "cases": lines.iter().map(line).collect::<Vec<Value>>() })
}

#[cfg(test)]
mod tests {
    use super::super::receiver::Received;
    use super::*;

    fn run(offered: u64, million_per_second: u64) -> LiveRun {
        let frames = offered / 2;
        let (in_window, window_ns) = (million_per_second * 1000, 1_000_000);
        let received = Received { frames, lost: 0, in_window, window_ns, flows: 0, polls: false };
        LiveRun { offered, wire: offered - frames, received, mode: String::new() }
    }

    #[test]
    fn weir_is_compared_with_the_faster_loop_of_its_kind_in_the_same_round() {
        let round = |rates: [u64; 4]| {
            let ways =
                [Receiver::BareXdp, Receiver::BareXdpBusy, Receiver::WeirXdp, Receiver::BarePacket];
            ways.into_iter().zip(rates.map(|rate| run(100, rate))).collect()
        };
        let rounds = vec![round([2, 4, 3, 9]), round([3, 5, 5, 9]), round([9, 8, 6, 9])];
        let lines = Lines { case: LiveCase { bytes: 60, flows: 7 }, rounds };
        assert_eq!(
            lines.row(Receiver::WeirXdp),
            "| Weir, flow meter, AF_XDP | 60 | 7 | 5.00 (4.00–5.50) | 0.50 | receiver \
             | 0.75 (0.75–0.88) | no | loop over AF_XDP, busy-polling |\n"
        );
        assert!(lines.row(Receiver::BarePacket).ends_with("| receiver |  |  |  |\n"));
        assert_eq!(lines.rival(Receiver::WeirPacket), Some(Receiver::BarePacket));
    }
}
