//! `join` and `union` of the naive model.

use super::row::{Mark, Row};
use std::cmp::Ordering;
use weir_plan::limits::JOIN_PAIRS_EACH;
use weir_plan::{Join, JoinKind, Union, Value};

/// The rows that a join holds, and what it last heard of the watermark.
pub(super) struct JoinSides {
    left: Vec<Row>,
    right: Vec<Row>,
    mark: Mark,
    late: u64,
    evicted: u64,
    undecided: u64,
}

impl JoinSides {
    pub(super) fn new() -> JoinSides {
        let mark = Mark::At(i64::MIN);
        JoinSides { left: Vec::new(), right: Vec::new(), mark, late: 0, evicted: 0, undecided: 0 }
    }

    /// Takes in the rows of a step, and then its watermark. Gives what comes out with its
    /// watermark. `ended_at`: when the last packet came, once the input has ended.
    pub(super) fn step(
        &mut self,
        join: &Join,
        (left, left_mark): (Vec<Row>, Mark),
        (right, right_mark): (Vec<Row>, Mark),
        ended_at: i64,
    ) -> (Vec<Row>, Mark) {
        for row in left {
            if !is_open(join, time(&row).into(), self.mark) {
                self.late += 1;
            } else if self.left.len() as u64 >= join.max_rows {
                self.evicted += 1;
            } else {
                self.left.push(row);
            }
        }
        for row in right {
            if !may_meet(join, time(&row), self.mark) {
                self.late += 1;
            } else if self.right.len() as u64 >= join.max_rows {
                self.evicted += 1;
            } else {
                self.right.push(row);
            }
        }
        self.mark = left_mark.min(right_mark);
        let due = |row: &Row| !is_open(join, time(row).into(), self.mark);
        let (mut due, left): (Vec<Row>, Vec<Row>) =
            std::mem::take(&mut self.left).into_iter().partition(due);
        self.left = left;
        due.sort_by_key(time);
        let known_until = (self.mark == Mark::End).then_some(ended_at);
        let out = self.all_pairs(join, &due, known_until);
        self.right.retain(|row| may_meet(join, time(row), self.mark));
        let mark = match self.mark {
            Mark::At(watermark) => Mark::At(join.downstream(join.reached(watermark))),
            Mark::End => Mark::End,
        };
        (out, mark)
    }

    /// Rows that were late, that found no room, and that were undecided, since it was last asked.
    pub(super) fn counts(&mut self) -> [u64; 3] {
        [&mut self.late, &mut self.evicted, &mut self.undecided].map(std::mem::take)
    }

    /// The rows that come out for left rows, in the order of time. In each tick, only as many pairs
    /// as are allowed for the rows before do.
    fn all_pairs(&mut self, join: &Join, due: &[Row], known_until: Option<i64>) -> Vec<Row> {
        let mut out = Vec::new();
        let (mut tick, mut made, mut allowed) = (None, 0, 0);
        for row in due {
            let wait = join.within.map_or(0, |within| within.to_ns.max(0));
            let of_row = Some(join.reached(time(row).saturating_add(wait)));
            if tick != of_row {
                (tick, made, allowed) = (of_row, 0, join.max_rows);
            }
            let (rows, pairs) = self.pairs(join, row);
            let is_alone = pairs == 0 && !rows.is_empty();
            let until = time(row).saturating_add(wait);
            if is_alone && wait > 0 && known_until.is_some_and(|known| until > known) {
                self.undecided += 1;
            } else if pairs > 0 && made > allowed {
                self.evicted += 1;
            } else {
                out.extend(rows);
                made += pairs;
            }
            allowed = allowed.saturating_add(JOIN_PAIRS_EACH);
        }
        out
    }

    /// The rows that come out for a left row, and how many of them are pairs.
    fn pairs(&self, join: &Join, left: &Row) -> (Vec<Row>, u64) {
        let meets = |right: &&Row| {
            let equal = |&(l, r): &(usize, usize)| left.cells[l].cmp(&right.cells[r]);
            let same = join.keys.iter().all(|key| equal(key) == Ordering::Equal);
            let apart = i128::from(time(right)) - i128::from(time(left));
            let within = join.within.map_or(0..=0, |w| w.from_ns.into()..=w.to_ns.into());
            same && within.contains(&apart)
        };
        let mut partners: Vec<&Row> = self.right.iter().filter(meets).collect();
        partners.sort_by_key(|right| time(right));
        let with = |cells: Vec<Value>| {
            let cells = left.cells.iter().cloned().chain(cells).collect();
            Row { ts: left.ts, packet: None, cells }
        };
        let beside =
            |right: &Row| join.columns.iter().map(|c| right.cells[c.from].clone()).collect();
        let alone = || join.columns.iter().map(|c| c.default.clone().unwrap_or(Value::Absent));
        match (join.kind, partners.is_empty()) {
            (JoinKind::Anti, true) => (vec![left.clone()], 0),
            (JoinKind::Anti, false) | (JoinKind::Inner, true) => (Vec::new(), 0),
            (JoinKind::Left, true) => (vec![with(alone().collect())], 0),
            (_, false) => {
                let pairs = partners.len() as u64;
                (partners.into_iter().map(|right| with(beside(right))).collect(), pairs)
            }
        }
    }
}

/// The time that rows meet by.
fn time(row: &Row) -> i64 {
    row.ts.unwrap_or(0)
}

/// Whether a left row of this time is open: whether the watermark, as the join reads it, is not
/// past the end of the row's interval, nor past the row.
fn is_open(join: &Join, time: i128, mark: Mark) -> bool {
    let wait = join.within.map_or(0, |within| within.to_ns.max(0));
    match mark {
        Mark::At(watermark) => time + i128::from(wait) >= join.reached(watermark).into(),
        Mark::End => false,
    }
}

/// Whether a right row of this time can meet a left row that is open now or comes later: the last
/// one that it meets by its time is.
fn may_meet(join: &Join, time: i64, mark: Mark) -> bool {
    let from = join.within.map_or(0, |within| within.from_ns);
    is_open(join, i128::from(time) - i128::from(from), mark)
}

/// The rows of a step of several sides, and the watermark of all.
pub(super) fn union(union: &Union, sides: Vec<(Vec<Row>, Mark)>) -> (Vec<Row>, Mark) {
    let mark = sides.iter().map(|(_, mark)| *mark).min().expect("a union has sides");
    let mut out = Vec::new();
    for (side, (rows, _)) in sides.into_iter().enumerate() {
        for row in rows {
            let cell = |from: Option<usize>| from.map_or(Value::Absent, |c| row.cells[c].clone());
            let cells = union.columns.iter().map(|c| cell(c.from[side])).collect();
            out.push(Row { ts: row.ts.filter(|_| union.timed), packet: None, cells });
        }
    }
    (out, mark)
}
