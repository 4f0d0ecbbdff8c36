//! The state of a level as bytes, and back.
//!
//! One description serves both ways: a node [passes](Checkpoint::pass) all that it holds to a
//! [`Checkpoint`], which writes it down, or overwrites it with what was written. The bytes are
//! those of one version of Weir and one plan. They may come from anywhere: they are checked, and no
//! more memory is taken than they have bytes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::{fmt, mem};
use weir_plan::Value;

/// Where state goes to, or comes from.
pub(crate) enum Checkpoint<'a> {
    /// It is appended to these bytes.
    Save(&'a mut Vec<u8>),
    /// It comes from the front of these bytes.
    Restore(&'a [u8]),
}

/// The bytes hold something that no node can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadState(pub(crate) &'static str);

/// Whether state was passed.
pub(crate) type Passed = Result<(), BadState>;

/// Why bytes are no state of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UnreadableState {
    /// They do not begin as a state of this version does.
    Version,
    /// They are the state of another plan.
    Plan,
    /// Something is what it can't be, or the bytes break off.
    Wrong(&'static str),
    /// Bytes are left over.
    Rest(usize),
}

impl fmt::Display for UnreadableState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnreadableState::Version => {
                f.write_str("this is no state that this version of Weir has saved")
            }
            UnreadableState::Plan => f.write_str("the state is one of other queries"),
            UnreadableState::Wrong(what) => write!(f, "the state can't be read: {what}"),
            UnreadableState::Rest(bytes) => {
                write!(f, "the state goes on for {bytes} bytes after its end")
            }
        }
    }
}

impl std::error::Error for UnreadableState {}

impl From<BadState> for UnreadableState {
    fn from(BadState(what): BadState) -> UnreadableState {
        UnreadableState::Wrong(what)
    }
}

/// A value that a checkpoint passes by itself. It takes at least one byte, so the bytes that are
/// left bound how many values a list may have.
pub(crate) trait Saved {
    /// Writes it down, or overwrites it.
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed;
}

impl Checkpoint<'_> {
    /// Whether state comes back.
    pub(crate) fn restores(&self) -> bool {
        matches!(self, Checkpoint::Restore(_))
    }

    /// Passes a value.
    pub(crate) fn pass<T: Saved + ?Sized>(&mut self, value: &mut T) -> Passed {
        value.pass(self)
    }

    /// Passes something that is checked when it comes back.
    pub(crate) fn pass_if<T: Saved>(
        &mut self,
        value: &mut T,
        wrong: &'static str,
        is_right: impl FnOnce(&T) -> bool,
    ) -> Passed {
        value.pass(self)?;
        if self.restores() && !is_right(value) { Err(BadState(wrong)) } else { Ok(()) }
    }

    /// Passes how often something happened, which can be added to.
    pub(crate) fn count(&mut self, n: &mut u64) -> Passed {
        self.pass_if(n, "a count is too large", |n| *n < COUNT_MAX)
    }

    /// How many things follow: `n`, or as many as were written.
    pub(crate) fn len(&mut self, n: usize) -> Result<usize, BadState> {
        let mut n = n as u64;
        n.pass(self)?;
        match self {
            Checkpoint::Restore(rest) if n > rest.len() as u64 => {
                Err(BadState("there are more parts than bytes"))
            }
            _ => Ok(n as usize),
        }
    }

    /// Passes bytes, all at once.
    pub(crate) fn bytes(&mut self, bytes: &mut Vec<u8>) -> Passed {
        let n = self.len(bytes.len())?;
        match self {
            Checkpoint::Save(out) => out.extend_from_slice(bytes),
            Checkpoint::Restore(from) => {
                let (head, rest) = from.split_at_checked(n).ok_or(BREAKS_OFF)?;
                bytes.clear();
                bytes.extend_from_slice(head);
                *from = rest;
            }
        }
        Ok(())
    }

    /// Passes so many words, one after the other.
    pub(crate) fn words(&mut self, words: &mut [u64]) -> Passed {
        words.iter_mut().try_for_each(|word| word.pass(self))
    }

    /// Passes a list whose items can't be made of nothing.
    pub(crate) fn list<T>(
        &mut self,
        list: &mut Vec<T>,
        mut new: impl FnMut() -> T,
        mut each: impl FnMut(&mut T, &mut Checkpoint<'_>) -> Passed,
    ) -> Passed {
        let n = self.len(list.len())?;
        if !self.restores() {
            return list.iter_mut().try_for_each(|item| each(item, self));
        }
        list.clear();
        for _ in 0..n {
            let mut item = new();
            each(&mut item, self)?;
            list.push(item);
        }
        Ok(())
    }

    /// The same for a queue.
    pub(crate) fn queue<T>(
        &mut self,
        queue: &mut VecDeque<T>,
        new: impl FnMut() -> T,
        each: impl FnMut(&mut T, &mut Checkpoint<'_>) -> Passed,
    ) -> Passed {
        let mut list = Vec::from(mem::take(queue));
        let passed = self.list(&mut list, new, each);
        *queue = list.into();
        passed
    }

    /// The same for a map.
    pub(crate) fn map<K: Saved + Default + Ord + Clone, V>(
        &mut self,
        map: &mut BTreeMap<K, V>,
        mut new: impl FnMut() -> V,
        mut each: impl FnMut(&mut V, &mut Checkpoint<'_>) -> Passed,
    ) -> Passed {
        let n = self.len(map.len())?;
        if !self.restores() {
            return map.iter_mut().try_for_each(|(key, value)| {
                key.clone().pass(self)?;
                each(value, self)
            });
        }
        map.clear();
        for _ in 0..n {
            let (mut key, mut value) = (K::default(), new());
            key.pass(self)?;
            each(&mut value, self)?;
            map.insert(key, value);
        }
        Ok(())
    }
}

/// A bound that no count of a run reaches: a thousand such counts can be added up.
pub(crate) const COUNT_MAX: u64 = 1 << 54;

const BREAKS_OFF: BadState = BadState("it breaks off");

macro_rules! numbers {
    ($($of:ty),*) => {$(
        impl Saved for $of {
            fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
                match at {
                    Checkpoint::Save(out) => out.extend_from_slice(&self.to_le_bytes()),
                    Checkpoint::Restore(from) => {
                        let (head, rest) = from.split_first_chunk().ok_or(BREAKS_OFF)?;
                        *self = <$of>::from_le_bytes(*head);
                        *from = rest;
                    }
                }
                Ok(())
            }
        }
    )*};
}

numbers!(u8, u32, u64, i64, u128, i128, f64);

impl Saved for usize {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let mut wide = *self as u64;
        wide.pass(at)?;
        *self = usize::try_from(wide).map_err(|_| BadState("a number is too large"))?;
        Ok(())
    }
}

impl Saved for bool {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let mut byte = u8::from(*self);
        at.pass_if(&mut byte, "a flag is neither true nor false", |byte| *byte < 2)?;
        *self = byte == 1;
        Ok(())
    }
}

impl<A: Saved, B: Saved> Saved for (A, B) {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        self.0.pass(at)?;
        self.1.pass(at)
    }
}

impl<T: Saved + Default> Saved for Option<T> {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let mut there = self.is_some();
        there.pass(at)?;
        match there {
            true => self.get_or_insert_with(T::default).pass(at),
            false => {
                *self = None;
                Ok(())
            }
        }
    }
}

impl<T: Saved + Default> Saved for Vec<T> {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.list(self, T::default, Saved::pass)
    }
}

impl<T: Saved + Default> Saved for VecDeque<T> {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.queue(self, T::default, Saved::pass)
    }
}

impl<K: Saved + Default + Ord + Clone, V: Saved + Default> Saved for BTreeMap<K, V> {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.map(self, V::default, Saved::pass)
    }
}

impl<T: Saved + Default + Ord> Saved for BTreeSet<T> {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let mut list: Vec<T> = mem::take(self).into_iter().collect();
        let passed = list.pass(at);
        self.extend(list);
        passed
    }
}

impl Saved for Box<[u8]> {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let mut bytes = mem::take(self).into_vec();
        let passed = at.bytes(&mut bytes);
        *self = bytes.into();
        passed
    }
}

/// The values that rows have in their columns.
impl Saved for Value {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let mut kind: u8 = match self {
            Value::Absent | Value::Net(..) | Value::Tuple(_) => 0,
            Value::Bool(_) => 1,
            Value::Int(_) => 2,
            Value::Float(_) => 3,
            Value::Str(_) => 4,
            Value::Bytes(_) => 5,
            Value::Ip(_) => 6,
            Value::Mac(_) => 7,
            Value::Time(_) => 8,
            Value::Duration(_) => 9,
        };
        kind.pass(at)?;
        if at.restores() {
            *self = match kind {
                0 => Value::Absent,
                1 => Value::Bool(false),
                2 => Value::Int(0),
                3 => Value::Float(0.0),
                4 => Value::Str(Box::default()),
                5 => Value::Bytes(Box::default()),
                6 => Value::Ip(0),
                7 => Value::Mac(0),
                8 => Value::Time(0),
                9 => Value::Duration(0),
                _ => return Err(BadState("a value is of no type")),
            };
        }
        match self {
            Value::Absent | Value::Net(..) | Value::Tuple(_) => Ok(()),
            Value::Bool(b) => b.pass(at),
            Value::Int(n) | Value::Time(n) | Value::Duration(n) => n.pass(at),
            Value::Float(x) => x.pass(at),
            Value::Str(text) => {
                let mut bytes = mem::take(text).into_string().into_bytes();
                at.bytes(&mut bytes)?;
                let read = String::from_utf8(bytes).map_err(|_| BadState("a text is none"))?;
                *text = read.into();
                Ok(())
            }
            Value::Bytes(bytes) => bytes.pass(at),
            Value::Ip(bits) => bits.pass(at),
            Value::Mac(bits) => bits.pass(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(value: &mut impl Saved) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.pass(&mut Checkpoint::Save(&mut bytes)).expect("saving can't fail");
        bytes
    }

    fn check<T: Saved + Default + Clone + PartialEq + fmt::Debug>(value: T) {
        let bytes = saved(&mut value.clone());
        assert!(!bytes.is_empty());
        let (mut back, mut at) = (T::default(), Checkpoint::Restore(&bytes));
        back.pass(&mut at).expect("what was saved");
        assert_eq!(back, value);
        assert!(matches!(at, Checkpoint::Restore([])), "all of it");
        for cut in 0..bytes.len() {
            let mut at = Checkpoint::Restore(&bytes[..cut]);
            assert!(T::default().pass(&mut at).is_err(), "{value:?} cut at {cut}");
        }
    }

    #[test]
    fn what_was_saved_comes_back() {
        check(u64::MAX);
        check((i64::MIN, true));
        check(vec![(1u32, Some(2i128)), (0, None)]);
        check(BTreeMap::from([(7u128, vec![1.5f64]), (u128::MAX, Vec::new())]));
        check(BTreeSet::from([3i64, -3]));
        check(VecDeque::from([1usize, usize::MAX]));
        for mut value in [
            Value::Absent,
            Value::Bool(true),
            Value::Int(-1),
            Value::Float(-0.5),
            Value::Str("é".into()),
            Value::Bytes([0, 255].into()),
            Value::Ip(u128::MAX),
            Value::Mac(1),
            Value::Time(i64::MAX),
            Value::Duration(-7),
        ] {
            let (bytes, mut back) = (saved(&mut value), Value::Absent);
            back.pass(&mut Checkpoint::Restore(&bytes)).expect("what was saved");
            assert_eq!(back, value);
        }
    }

    #[test]
    fn a_length_beyond_the_bytes_takes_no_memory() {
        let mut most = u64::MAX;
        let bytes = saved(&mut most);
        let mut list = Vec::<u8>::new();
        assert!(list.pass(&mut Checkpoint::Restore(&bytes)).is_err());
        assert_eq!(list.capacity(), 0);
    }
}
