//! Packets and bytes over time, by kind of traffic.

use crate::grid::{Grid, Merge};
use crate::limits::{KINDS_MAX, POINTS_MAX, STEPS_MAX};

/// Packets and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Traffic {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// The counts of each kind, by its number.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Kinds([Traffic; KINDS_MAX]);

impl Merge for Kinds {
    fn merge(&mut self, other: Kinds) {
        for (sum, n) in self.0.iter_mut().zip(other.0) {
            sum.packets = sum.packets.saturating_add(n.packets);
            sum.bytes = sum.bytes.saturating_add(n.bytes);
        }
    }
}

impl Kinds {
    fn packets(&self) -> u64 {
        self.0.iter().map(|n| n.packets).sum()
    }
}

/// The packets and bytes of each step of time, by kind of traffic.
#[derive(Clone, Debug)]
pub(crate) struct TimeLine {
    names: Vec<String>,
    grid: Grid<Kinds>,
}

/// A time line that is ready to be drawn.
#[derive(Clone, Debug)]
pub(crate) struct DrawnTime {
    /// When the first step starts.
    pub(crate) from: i64,
    pub(crate) step_ns: i64,
    /// The kinds, those with the most bytes first.
    pub(crate) names: Vec<String>,
    /// For each kind, what came in each step.
    pub(crate) kinds: Vec<Vec<Traffic>>,
    /// Packets that lie outside, and when the first and the last of them came.
    pub(crate) outside: Option<Outside>,
}

/// Packets far from all others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    pub(crate) packets: u64,
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl TimeLine {
    /// Nothing yet, in steps of this length at least.
    pub(crate) fn new(step_ns: i64) -> TimeLine {
        TimeLine { names: Vec::new(), grid: Grid::new(step_ns, STEPS_MAX) }
    }

    /// Counts what came at a time.
    pub(crate) fn add(&mut self, ts: i64, kind: &str, traffic: Traffic) {
        let known = self.names.iter().position(|name| name == kind);
        let number = known.unwrap_or_else(|| {
            if self.names.len() < KINDS_MAX {
                self.names.push(kind.to_owned());
            }
            self.names.len() - 1
        });
        let mut more = Kinds::default();
        more.0[number] = traffic;
        self.grid.at(ts).merge(more);
    }

    /// The time line in steps that fit into a picture.
    pub(crate) fn drawn(&self, most: usize) -> Option<DrawnTime> {
        let mut grid = self.grid.clone();
        let far = grid.split_off_far(Kinds::packets);
        grid.fit(most.min(POINTS_MAX));
        let (from, to) = grid.span()?;
        let step_ns = grid.step_ns();
        let place = |ts: i64| (ts.saturating_sub(from) / step_ns) as usize;
        let mut kinds = vec![vec![Traffic::default(); place(to) + 1]; self.names.len()];
        for (ts, all) in grid.cells() {
            kinds.iter_mut().zip(all.0).for_each(|(steps, n)| steps[place(ts)] = n);
        }
        let bytes = |kind: usize| kinds[kind].iter().map(|n| n.bytes).sum::<u64>();
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by(|a, b| bytes(*b).cmp(&bytes(*a)).then(self.names[*a].cmp(&self.names[*b])));
        let outside = (!far.is_empty()).then(|| Outside {
            packets: far.iter().map(|(_, kinds)| kinds.packets()).sum(),
            first: far.iter().map(|(ts, _)| *ts).min().unwrap_or(0),
            last: far.iter().map(|(ts, _)| *ts).max().unwrap_or(0),
        });
        Some(DrawnTime {
            from,
            step_ns,
            names: order.iter().map(|kind| self.names[*kind].clone()).collect(),
            kinds: order.iter().map(|kind| kinds[*kind].clone()).collect(),
            outside,
        })
    }
}

impl DrawnTime {
    /// How many steps there are.
    pub(crate) fn steps(&self) -> usize {
        self.kinds.first().map_or(0, Vec::len)
    }

    /// When a step starts.
    pub(crate) fn start(&self, step: usize) -> i64 {
        self.from.saturating_add(self.step_ns.saturating_mul(step as i64))
    }

    /// The packets and bytes of a step.
    pub(crate) fn of_step(&self, step: usize) -> Traffic {
        let steps = self.kinds.iter().map(|steps| steps[step]);
        steps.fold(Traffic::default(), |sum, n| Traffic {
            packets: sum.packets.saturating_add(n.packets),
            bytes: sum.bytes.saturating_add(n.bytes),
        })
    }

    /// A number of packets or bytes in a step, by second.
    pub(crate) fn by_second(&self, n: u64) -> f64 {
        n as f64 * 1e9 / self.step_ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_the_order_of_their_bytes() {
        let mut line = TimeLine::new(1_000_000_000);
        let traffic = |packets, bytes| Traffic { packets, bytes };
        line.add(0, "UDP", traffic(5, 50));
        line.add(2_000_000_000, "TCP", traffic(1, 1_000));
        line.add(2_000_000_000, "UDP", traffic(1, 10));
        let drawn = line.drawn(100).expect("something");
        assert_eq!(
            (drawn.names.clone(), drawn.steps()),
            (vec!["TCP".to_owned(), "UDP".to_owned()], 3)
        );
        assert_eq!(drawn.kinds[1], [traffic(5, 50), traffic(0, 0), traffic(1, 10)]);
        assert_eq!(drawn.of_step(2), traffic(2, 1_010));
        assert!(TimeLine::new(1).drawn(10).is_none());
    }
}
