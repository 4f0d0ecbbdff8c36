//! The states of an aggregate as bytes, one group after the other.

use super::bytes::{read_number, read_words};

/// How the states of an aggregate are written: what the bytes of one group are, and by which rule
/// two of them merge. The numbers are part of the format; docs/partials.md lists them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum StateKind {
    /// A sum of 64 bits that sticks at the top.
    Add = 1,
    /// The same, and whether there was a value.
    AddSeen = 2,
    /// A sum of 128 bits.
    Wide = 3,
    /// The same, and whether there was a value.
    WideSeen = 4,
    /// A sum of 128 bits, and how many values it is of.
    WideCount = 5,
    /// A sum of floats, and whether there was a value.
    FloatSeen = 6,
    /// A sum of floats, and how many values it is of.
    FloatCount = 7,
    /// The least of unsigned numbers; of times of packets, all bits say that there was none.
    Least = 8,
    /// The same, and whether there was a value.
    LeastSeen = 9,
    /// The least of unsigned numbers of 128 bits, and whether there was one.
    LeastPair = 10,
    /// Bits, of which all that were ever set are set.
    Or = 11,
    /// The same, and whether there was a value.
    OrSeen = 12,
    /// Count, sum, and sum of squares of integers.
    Spread = 13,
    /// Count, mean, and sum of squared distances from it.
    SpreadFloat = 14,
    /// The least text.
    LeastText = 15,
    /// The greatest text.
    GreatestText = 16,
    /// A value, and two words of order of which the least count.
    First = 17,
    /// A value, and two words of order of which the greatest count.
    Last = 18,
    /// Different values.
    Values = 19,
    /// A sketch, and different values.
    ValuesOrSketch = 20,
    /// A sketch.
    Sketch = 21,
    /// Different values, each with how often it came.
    Counts = 22,
    /// The same, after the least and the greatest of them as they came.
    RoundedCounts = 23,
    /// The bytes of a registered aggregate.
    User = 24,
    /// Why a session ended.
    EndReason = 25,
    /// Nothing: it is made of messages about losses.
    Completeness = 26,
    /// When a session started, and when its latest row came.
    Session = 27,
    /// Two values, of which the least first one counts, and of equal ones the least second.
    LeastBy = 28,
    /// Two values, of which the greatest first one counts, and of equal ones the least second.
    GreatestBy = 29,
}

/// The states of several groups: their bytes, and where those of each end.
#[derive(Default, Debug)]
pub(crate) struct States {
    /// All bytes.
    pub bytes: Vec<u8>,
    /// Where the bytes of each group end.
    pub ends: Vec<usize>,
}

impl States {
    /// Adds the state of the next group, which `write` appends.
    pub(crate) fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// The bytes of some groups.
    pub(crate) fn of(&self, groups: std::ops::Range<usize>) -> &[u8] {
        let end = |n: usize| n.checked_sub(1).map_or(0, |i| self.ends[i]);
        &self.bytes[end(groups.start)..end(groups.end)]
    }
}

/// Values of groups on their way into bytes: they come in any order, of all groups together, and
/// are written group by group, those of a group in the order of their bytes. So all groups are
/// written by one pass over a set that holds the values of all.
pub(super) struct Gathered {
    /// By number of a group its place among those asked for.
    places: Vec<u32>,
    groups: usize,
    values: Vec<GatheredValue>,
    bytes: Vec<u8>,
    /// Values that were looked at.
    #[cfg(test)]
    pub(super) looked: usize,
}

/// One value: whose it is, how often it came, and its bytes.
struct GatheredValue {
    place: u32,
    start: usize,
    end: usize,
    times: u64,
}

/// A group that was not asked for.
const NOWHERE: u32 = u32::MAX;

impl Gathered {
    /// No values of these groups.
    pub(super) fn new(groups: &[u32]) -> Gathered {
        let most = groups.iter().max().map_or(0, |&group| group as usize + 1);
        let mut places = vec![NOWHERE; most];
        (0..).zip(groups).for_each(|(place, &group)| places[group as usize] = place);
        Gathered {
            places,
            groups: groups.len(),
            values: Vec::new(),
            bytes: Vec::new(),
            #[cfg(test)]
            looked: 0,
        }
    }

    /// Adds a value of a group, if that was asked for; `write` appends its bytes.
    pub(super) fn add(&mut self, group: u32, times: u64, write: impl FnOnce(&mut Vec<u8>)) {
        #[cfg(test)]
        {
            self.looked += 1;
        }
        let place = self.places.get(group as usize).copied().unwrap_or(NOWHERE);
        if place != NOWHERE {
            let start = self.bytes.len();
            write(&mut self.bytes);
            self.values.push(GatheredValue { place, start, end: self.bytes.len(), times });
        }
    }

    /// Writes all groups: `head` appends what stands before the values of the group at a place,
    /// then comes how many values there are, then each, after how often it came if that is
    /// `counted`.
    pub(super) fn write(
        mut self,
        counted: bool,
        out: &mut States,
        mut head: impl FnMut(usize, &mut Vec<u8>),
    ) {
        let bytes = &self.bytes;
        let of = |value: &GatheredValue| &bytes[value.start..value.end];
        self.values.sort_unstable_by(|a, b| a.place.cmp(&b.place).then_with(|| of(a).cmp(of(b))));
        self.values.dedup_by(|next, kept| {
            let same = next.place == kept.place && of(next) == of(kept);
            if same {
                kept.times = kept.times.saturating_add(next.times);
            }
            same
        });
        let mut values = self.values.chunk_by(|a, b| a.place == b.place).peekable();
        for place in 0..self.groups {
            let is_mine = |values: &&[GatheredValue]| values[0].place as usize == place;
            let mine = values.next_if(is_mine).unwrap_or_default();
            out.put(|out| {
                head(place, out);
                out.extend_from_slice(&(mine.len() as u32).to_le_bytes());
                for value in mine {
                    if counted {
                        out.extend_from_slice(&value.times.to_le_bytes());
                    }
                    out.extend_from_slice(of(value));
                }
            });
        }
    }
}

/// Reads so many values that [`Gathered`] wrote: of each how often it came (once, unless that is
/// `counted`), and what `read` makes of its bytes. `None` where a value never came, or they do not
/// rise: no set is written so.
pub(super) fn read_values<T>(
    from: &mut &[u8],
    counted: bool,
    mut read: impl FnMut(&mut &[u8]) -> Option<T>,
    mut take: impl FnMut(T, u64),
) -> Option<()> {
    let mut before: Option<&[u8]> = None;
    for _ in 0..read_number(from)? {
        let times = if counted { read_words::<1>(from)?[0] } else { 1 };
        let start = *from;
        let value = read(from)?;
        let bytes = &start[..start.len() - from.len()];
        if times == 0 || before.is_some_and(|before| before >= bytes) {
            return None;
        }
        before = Some(bytes);
        take(value, times);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agg::distinct::Distinct;
    use crate::agg::quantile::Quantile;
    use crate::agg::tally::Tally;
    use crate::agg::{Aggregate, Cells, CellsRef, Input};
    use crate::key::KeyPart;
    use crate::rows::Arena;
    use crate::table::HashKey;
    use weir_packet::bits::Bits;
    use weir_packet::column::Column;
    use weir_packet::limits::BATCH;
    use weir_plan::{Expr, Type};

    const GROUPS: u32 = 100_000;

    /// Takes two values into each of so many groups; returns the cells.
    fn fill(agg: &mut dyn Aggregate, groups: u32) -> Vec<u64> {
        let stride = agg.cells().max(1);
        let mut rows = vec![0; stride * groups as usize];
        rows.chunks_exact_mut(stride).for_each(|row| agg.fresh(&mut row[..agg.cells()]));
        let all: Vec<u32> = (0..groups).flat_map(|group| [group, group]).collect();
        let mut column = Column::new(Type::Int.repr());
        column.present = Bits::ALL;
        for (at, groups) in all.chunks(BATCH).enumerate() {
            let values = column.word_mut().iter_mut();
            values.zip(0..).for_each(|(value, i)| *value = (at as u64 * 7 + i) % 1000);
            let positions: Vec<u16> = (0..groups.len() as u16).collect();
            let input = Input {
                rows: &positions,
                groups,
                columns: &[&column],
                counted: None,
                seq: &[0; BATCH],
                frames: None,
                arena: &Arena::default(),
                lone: false,
            };
            agg.update(&input, &mut Cells { rows: &mut rows, stride, at: 0 });
        }
        rows
    }

    /// Writes all groups, and reads them back into `again`, which then writes the same.
    fn there_and_back(agg: &dyn Aggregate, rows: &[u64], again: &mut dyn Aggregate) {
        let stride = agg.cells().max(1);
        let groups: Vec<u32> = (0..(rows.len() / stride) as u32).collect();
        let mut written = States::default();
        agg.encode(CellsRef { rows, stride, at: 0 }, &groups, &mut written);
        assert_eq!(written.ends.len(), groups.len());
        let mut cells = vec![0; rows.len()];
        cells.chunks_exact_mut(stride).for_each(|row| again.fresh(&mut row[..agg.cells()]));
        let mut rest = &written.bytes[..];
        for &group in &groups {
            let mut cells = Cells { rows: &mut cells, stride, at: 0 };
            assert!(again.decode(&mut cells, group, &mut rest), "group {group}");
        }
        assert!(rest.is_empty());
        let mut twice = States::default();
        again.encode(CellsRef { rows: &cells, stride, at: 0 }, &groups, &mut twice);
        assert_eq!(twice.bytes, written.bytes);
    }

    /// Once every group looked at the values of all: 10^10 looks for these.
    #[test]
    fn a_hundred_thousand_groups_are_written_in_one_pass() {
        let arg = Expr::column(0, Type::Int);
        let distinct = || Distinct::new(vec![KeyPart::of(&arg)], HashKey::KNOWN);
        let median = || Box::new(Quantile::new(500_000, &arg)) as Box<_>;
        let tally = || Tally::new(vec![KeyPart::of(&arg)], vec![median()], HashKey::KNOWN);
        for groups in [1000, GROUPS] {
            let all: Vec<u32> = (0..groups).collect();
            let mut values = distinct();
            let rows = fill(&mut values, groups);
            assert_eq!(values.gathered(&all).looked, 2 * groups as usize);
            there_and_back(&values, &rows, &mut distinct());
            let mut counts = tally();
            let rows = fill(&mut counts, groups);
            assert_eq!(counts.gathered(&all).looked, 2 * groups as usize);
            there_and_back(&counts, &rows, &mut tally());
        }
    }
}
