//! The tables of `weir-bench cluster`.

use super::flink::Counter;
use super::transfer::{Carrier, Direction, Freight, TopicLoad, Transfer};
use crate::stats::Spread;
use crate::timing::Whole;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A transfer, what was carried, and what each round took.
pub(super) struct TransferLine {
    pub(super) transfer: Transfer,
    pub(super) load: TopicLoad,
    pub(super) rounds: Vec<Whole>,
}

impl TransferLine {
    fn title(&self) -> &'static str {
        let Transfer { direction, freight, .. } = self.transfer;
        match (direction, freight) {
            (Direction::IntoKafka, Freight::Packets) => "packets into Kafka",
            (Direction::IntoKafka, Freight::Partials) => "partial results into Kafka",
            (Direction::OutOfKafka, Freight::Packets) => "packets out of Kafka",
            (Direction::OutOfKafka, Freight::Partials) => "partial results out of Kafka",
        }
    }

    fn by(&self) -> &'static str {
        match self.transfer.carrier {
            Carrier::Weir => "Weir",
            Carrier::Bare => "bare client",
        }
    }

    /// The median of a figure.
    fn median(&self, figure: impl Fn(&Whole) -> f64) -> f64 {
        Spread::of(self.rounds.iter().map(figure)).median
    }

    /// The median and the quarters of a time of the bare client by ours in the same round.
    fn ratio(&self, bare: &TransferLine, time: fn(&Whole) -> f64) -> String {
        let pairs = self.rounds.iter().zip(&bare.rounds);
        let Spread { low, median, high } =
            Spread::of(pairs.map(|(run, bare)| time(bare) / time(run)));
        format!("{median:.2} ({low:.2}–{high:.2})")
    }

    fn row(&self, bare: Option<&TransferLine>) -> String {
        let TopicLoad { bytes, items, .. } = self.load;
        let wall: fn(&Whole) -> f64 = |whole| whole.wall.as_secs_f64();
        let cpu: fn(&Whole) -> f64 = |whole| whole.cpu.as_secs_f64();
        let per = |count: u64, time: fn(&Whole) -> f64| {
            self.median(|whole| count as f64 / 1e6 / time(whole))
        };
        let ratio = |time| match bare {
            Some(bare) if self.transfer.carrier == Carrier::Weir => self.ratio(bare, time),
            _ => String::new(),
        };
        format!(
            "| {} | {} | {:.2} | {:.0} | {:.2} | {:.0} | {} | {} |\n",
            self.title(),
            self.by(),
            per(items, wall),
            per(bytes, wall),
            per(items, cpu),
            per(bytes, cpu),
            ratio(wall),
            ratio(cpu),
        )
    }

    pub(super) fn json(&self) -> Value {
        let TopicLoad { records, bytes, items } = self.load;
        let rounds: Vec<Value> = self.rounds.iter().map(whole).collect();
        json!({
            "what": self.title(), "by": self.by(), "records": records, "bytes": bytes,
            "items": items, "rounds": rounds,
        })
    }
}

pub(super) fn whole(whole: &Whole) -> Value {
    json!({ "wall_s": whole.wall.as_secs_f64(), "cpu_s": whole.cpu.as_secs_f64() })
}

/// The table of transfers into Kafka and out of it, as Markdown.
pub(super) fn transfers(lines: &[TransferLine]) -> String {
    let mut out = String::from(
        "| | by | million a second | MB/s | million per CPU second | MB per CPU second \
         | throughput ÷ bare | per CPU second ÷ bare |\n|---|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for line in lines {
        let bare = Transfer { carrier: Carrier::Bare, ..line.transfer };
        out += &line.row(lines.iter().find(|other| other.transfer == bare));
    }
    for line in lines.iter().filter(|line| line.transfer.carrier == Carrier::Bare) {
        let TopicLoad { records, bytes, items } = line.load;
        let mb = bytes as f64 / 1e6;
        let _ = write!(out, "\n{}: {items} in {records} records of {mb:.0} MB.", line.title());
    }
    out
}

/// The program that counts packets, and what each round took.
pub(super) struct CountsLine {
    pub(super) counter: Counter,
    pub(super) packets: u64,
    pub(super) rounds: Vec<Whole>,
}

impl CountsLine {
    fn by(&self) -> &'static str {
        match self.counter {
            Counter::Weir => "Weir, out of Kafka, rows into Kafka",
            Counter::Flink => "Flink alone, out of Kafka, rows discarded",
            Counter::Probe => "Weir, a probe and `weir merge`, partial results by way of Kafka",
            Counter::Run => "Weir, from the capture to rows",
        }
    }

    fn rate(&self, time: fn(&Whole) -> f64) -> f64 {
        Spread::of(self.rounds.iter().map(|w| self.packets as f64 / 1e6 / time(w))).median
    }

    pub(super) fn json(&self) -> Value {
        let rounds: Vec<Value> = self.rounds.iter().map(whole).collect();
        json!({ "by": self.by(), "packets": self.packets, "rounds": rounds })
    }
}

/// Packets per source and second, by Weir and by Flink alone, as Markdown.
pub(super) fn counts(lines: &[CountsLine]) -> String {
    let mut out = String::from(
        "| packets per source and second | million packets a second \
         | million per CPU second | per CPU second ÷ Flink |\n|---|---:|---:|---:|\n",
    );
    let flink = lines.iter().find(|line| line.counter == Counter::Flink);
    for line in lines {
        let pairs = flink.into_iter().flat_map(|flink| line.rounds.iter().zip(&flink.rounds));
        let ratio = pairs.map(|(run, flink)| flink.cpu.as_secs_f64() / run.cpu.as_secs_f64());
        let Spread { low, median, high } = Spread::of(ratio);
        let (wall, cpu) = (line.rate(|w| w.wall.as_secs_f64()), line.rate(|w| w.cpu.as_secs_f64()));
        let _ = writeln!(
            out,
            "| {} | {wall:.2} | {cpu:.2} | {median:.1} ({low:.1}–{high:.1}) |",
            line.by()
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_ratio_is_of_throughputs_in_the_same_round() {
        let line = |carrier, ms: [u64; 3]| TransferLine {
            transfer: Transfer {
                direction: Direction::IntoKafka,
                freight: Freight::Packets,
                carrier,
            },
            load: TopicLoad { records: 10, bytes: 100_000_000, items: 1_000_000 },
            rounds: ms
                .map(Duration::from_millis)
                .map(|time| Whole { cpu: time / 2, wall: time })
                .to_vec(),
        };
        let lines =
            [line(Carrier::Weir, [1000, 2000, 1000]), line(Carrier::Bare, [500, 1500, 900])];
        let table = transfers(&lines);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        let expected = "| packets into Kafka | Weir | 1.00 | 100 | 2.00 | 200 | 0.75 (0.62–0.82) \
                        | 0.75 (0.62–0.82) |";
        assert_eq!(rows[0], expected);
        assert!(rows[1].ends_with("|  |  |") && rows[1].starts_with("| packets into Kafka | bare"));
        assert_eq!(rows[3], "packets into Kafka: 1000000 in 10 records of 100 MB.");
    }
}
