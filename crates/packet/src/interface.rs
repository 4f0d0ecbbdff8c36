//! Capture points: by which interface frames came, and in which direction.
//!
//! A frame carries no name, but a number of 32 bits ([`CapturePoint`]); the names are in a table
//! ([`InterfaceNames`]) that all sources of a run share, so that one interface has one number
//! wherever its frames are captured, kept or written.

use crate::limits::{INTERFACE_NAMES_MAX, TEXT_MAX};
use crate::text::Text;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The direction of a frame, as seen from the machine that captured it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// The interface received it.
    In,
    /// The interface sent it.
    Out,
}

impl Direction {
    /// As queries write it.
    pub fn name(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
        }
    }

    /// The direction of a packet type in the header of a Linux cooked capture (`PACKET_OUTGOING` of
    /// packet(7)).
    pub fn of_packet_type(packet_type: u8) -> Direction {
        const OUTGOING: u8 = 4;
        if packet_type == OUTGOING { Direction::Out } else { Direction::In }
    }
}

/// The interface by which a frame came, and its direction there, as far as they are known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CapturePoint(u32);

/// Bits of [`CapturePoint`] for the direction; above them is the interface's number, and 1.
const DIRECTION: u32 = 3;
const DIRECTION_BITS: u32 = 2;

impl CapturePoint {
    /// Nothing is known.
    pub const UNKNOWN: CapturePoint = CapturePoint(0);

    /// Of the interface with this number in [`InterfaceNames`].
    pub fn new(interface: Option<u16>, direction: Option<Direction>) -> CapturePoint {
        let interface = interface.map_or(0, |number| u32::from(number) + 1);
        CapturePoint(interface << DIRECTION_BITS).with_direction(direction)
    }

    /// The same interface, with this direction.
    #[must_use]
    pub fn with_direction(self, direction: Option<Direction>) -> CapturePoint {
        let direction = match direction {
            None => 0,
            Some(Direction::In) => 1,
            Some(Direction::Out) => 2,
        };
        CapturePoint(self.0 & !DIRECTION | direction)
    }

    /// The number of the interface.
    pub fn interface(self) -> Option<u16> {
        (self.0 >> DIRECTION_BITS).checked_sub(1).and_then(|number| u16::try_from(number).ok())
    }

    /// The direction of the frame.
    pub fn direction(self) -> Option<Direction> {
        match self.0 & DIRECTION {
            1 => Some(Direction::In),
            2 => Some(Direction::Out),
            _ => None,
        }
    }

    /// As a word, for [`CapturePoint::of`].
    pub fn word(self) -> u32 {
        self.0
    }

    /// The point of a word that [`CapturePoint::word`] gave.
    pub fn of(word: u32) -> CapturePoint {
        CapturePoint(word)
    }
}

impl fmt::Debug for CapturePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CapturePoint({:?}, {:?})", self.interface(), self.direction())
    }
}

/// The names of interfaces, numbered as they come up. A clone is the same table.
#[derive(Clone, Default)]
pub struct InterfaceNames(Arc<RwLock<Table>>);

#[derive(Default)]
struct Table {
    names: Vec<InterfaceName>,
    numbers: HashMap<Box<[u8]>, u16>,
}

impl Table {
    fn is_full(&self) -> bool {
        self.names.len() >= INTERFACE_NAMES_MAX
    }
}

/// The name of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterfaceName {
    /// As the system, or a file, has it; at most [`TEXT_MAX`] bytes.
    pub raw: Box<[u8]>,
    /// As queries see it: printable ASCII, as all texts of packets.
    pub text: Box<str>,
}

impl InterfaceNames {
    /// The number of this name. `None` for an empty one, and where [`INTERFACE_NAMES_MAX`] others
    /// are known: frames of such an interface have none.
    pub fn number(&self, name: impl AsRef<[u8]>) -> Option<u16> {
        let name = name.as_ref();
        let raw = &name[..name.len().min(TEXT_MAX)];
        if raw.is_empty() {
            return None;
        }
        let known = self.0.read();
        let number = known.numbers.get(raw).copied();
        if number.is_some() || known.is_full() {
            return number;
        }
        drop(known);
        let mut table = self.0.write();
        // Somebody else may have come first.
        let number = table.numbers.get(raw).copied();
        number.or_else(|| {
            let number = u16::try_from(table.names.len()).ok().filter(|_| !table.is_full())?;
            table.names.push(InterfaceName::new(raw));
            table.numbers.insert(raw.into(), number);
            Some(number)
        })
    }

    /// Whether there are as many as there may be, so that further interfaces have no name.
    pub fn is_full(&self) -> bool {
        self.0.read().is_full()
    }

    /// The name of this number.
    pub fn name(&self, number: u16) -> Option<InterfaceName> {
        self.read(|names| names.get(usize::from(number)).cloned())
    }

    /// Looks at all of them, by their numbers.
    pub fn read<R>(&self, look: impl FnOnce(&[InterfaceName]) -> R) -> R {
        look(&self.0.read().names)
    }
}

impl InterfaceName {
    fn new(raw: &[u8]) -> InterfaceName {
        let mut text = Text::new();
        text.push_escaped(raw);
        InterfaceName { raw: raw.into(), text: String::from_utf8_lossy(text.bytes()).into() }
    }
}

/// Whether both are the same table.
impl PartialEq for InterfaceNames {
    fn eq(&self, other: &InterfaceNames) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for InterfaceNames {}

impl fmt::Debug for InterfaceNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read(|names| f.debug_list().entries(names.iter().map(|name| &name.text)).finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_said() {
        for interface in [None, Some(0), Some(1), Some(u16::MAX)] {
            for direction in [None, Some(Direction::In), Some(Direction::Out)] {
                let point = CapturePoint::new(interface, direction);
                assert_eq!((point.interface(), point.direction()), (interface, direction));
                assert_eq!(CapturePoint::of(point.word()), point);
                assert_eq!(point.with_direction(None), CapturePoint::new(interface, None));
                assert_eq!(
                    point == CapturePoint::UNKNOWN,
                    interface.is_none() && direction.is_none()
                );
            }
        }
    }

    #[test]
    fn a_name_has_one_number() {
        let names = InterfaceNames::default();
        let same = names.clone();
        let numbers = [names.number("lo"), same.number("eth0"), names.number("lo")];
        assert_eq!(numbers, [Some(0), Some(1), Some(0)]);
        let text = |number| names.name(number).map(|name| name.text.to_string());
        assert_eq!(text(1).as_deref(), Some("eth0"));
        assert_eq!((text(2), names.number("")), (None, None));
        assert_eq!(names.number("a\u{e9}\\"), Some(2));
        assert_eq!(text(2).as_deref(), Some(r"a\xc3\xa9\\"));
        assert_eq!(names.name(2).map(|name| name.raw), Some("a\u{e9}\\".as_bytes().into()));
        assert_eq!(format!("{names:?}"), r#"["lo", "eth0", "a\\xc3\\xa9\\\\"]"#);
    }

    #[test]
    fn a_long_name_is_cut() {
        let names = InterfaceNames::default();
        let number = names.number([b'x'; 2 * TEXT_MAX]).expect("a number");
        let name = names.name(number).expect("a name");
        assert_eq!((name.raw.len(), name.text.len()), (TEXT_MAX, TEXT_MAX));
    }

    #[test]
    fn there_are_not_more_than_there_may_be() {
        let names = InterfaceNames::default();
        for i in 0..INTERFACE_NAMES_MAX {
            assert_eq!(names.number(format!("veth{i}")), u16::try_from(i).ok());
        }
        assert!(names.is_full() && names.number("one-more").is_none());
        assert_eq!(names.number("veth7"), Some(7));
    }
}
