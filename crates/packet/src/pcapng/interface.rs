//! Interfaces of a file: their link types and their clocks.

use super::block::{
    INTERFACE, OPTION_END, OPTION_NAME, OPTION_TSOFFSET, OPTION_TSRESOL, PcapngFault,
};
use crate::interface::CapturePoint;
use crate::pcap::{ByteOrder, link_from_file};
use crate::source::LinkType;
use crate::time::{LAST_TIME, NO_TIME};

/// The fields of an interface description block that matter for reading its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface<'a> {
    /// Link type of its packets.
    pub link: LinkType,
    /// Most bytes captured of a frame; 0 for no limit.
    pub snaplen: u32,
    /// Units of its timestamps (`if_tsresol`): 10^-n seconds, or 2^-(n - 128) from 128 on.
    pub resolution: u8,
    /// Seconds to add to its timestamps (`if_tsoffset`).
    pub offset_s: i64,
    /// Its name (`if_name`); empty where it has none.
    pub name: &'a [u8],
}

impl<'a> Interface<'a> {
    /// An interface with the default clock: microseconds since 1970.
    pub fn new(link: LinkType) -> Interface<'a> {
        Interface { link, snaplen: 0, resolution: 6, offset_s: 0, name: &[] }
    }

    pub(super) fn parse(order: ByteOrder, body: &'a [u8]) -> Result<Interface<'a>, PcapngFault> {
        let (fixed, mut options) =
            body.split_first_chunk::<8>().ok_or(PcapngFault::BlockShort(INTERFACE))?;
        let mut out = Interface::new(link_from_file(order.u16([fixed[0], fixed[1]])));
        out.snaplen = order.u32([fixed[4], fixed[5], fixed[6], fixed[7]]);
        while let Some((head, rest)) = options.split_first_chunk::<4>() {
            let code = order.u16([head[0], head[1]]);
            let len = usize::from(order.u16([head[2], head[3]]));
            let value = rest.get(..len).ok_or(PcapngFault::Option(code))?;
            match (code, value) {
                (OPTION_END, _) => break,
                (OPTION_NAME, name) => {
                    // Some writers end it as C does.
                    out.name = name.split(|&b| b == 0).next().unwrap_or(&[]);
                }
                (OPTION_TSRESOL, &[resolution]) => out.resolution = resolution,
                (OPTION_TSOFFSET, &[a, b, c, d, e, f, g, h]) => {
                    out.offset_s = match order {
                        ByteOrder::Little => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
                        ByteOrder::Big => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
                    };
                }
                (OPTION_TSRESOL | OPTION_TSOFFSET, _) => return Err(PcapngFault::Option(code)),
                _ => {}
            }
            options = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        }
        Ok(out)
    }
}

/// From an interface's ticks to nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Clock {
    unit: Unit,
    offset_s: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    /// So many nanoseconds.
    Nanos(u64),
    /// So many in a nanosecond.
    PerNano(u128),
    /// 2^-n seconds.
    Binary(u32),
}

impl Clock {
    pub(super) fn new(interface: &Interface<'_>) -> Clock {
        let n = u32::from(interface.resolution);
        let unit = match n {
            0..=9 => Unit::Nanos(10u64.pow(9 - n)),
            10..128 => Unit::PerNano(10u128.checked_pow(n - 9).unwrap_or(u128::MAX)),
            _ => Unit::Binary(n - 128),
        };
        Clock { unit, offset_s: interface.offset_s }
    }

    /// Times that 64 bits can't say become the nearest one they can.
    #[inline(always)]
    pub(super) fn ns(self, ticks: u64) -> i64 {
        if let (Unit::Nanos(unit), 0) = (self.unit, self.offset_s) {
            return ticks.saturating_mul(unit).min(LAST_TIME as u64) as i64;
        }
        self.ns_wide(ticks)
    }

    fn ns_wide(self, ticks: u64) -> i64 {
        let ticks = u128::from(ticks);
        let ns = match self.unit {
            Unit::Nanos(unit) => ticks * u128::from(unit),
            Unit::PerNano(per) => ticks / per,
            Unit::Binary(n) => (ticks * 1_000_000_000) >> n,
        };
        // At most 94 bits, so the sum can't overflow.
        let ns = ns as i128 + i128::from(self.offset_s) * 1_000_000_000;
        ns.clamp(i128::from(NO_TIME + 1), i128::from(LAST_TIME)) as i64
    }
}

/// An interface of the current section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    pub(super) link: LinkType,
    pub(super) snaplen: u32,
    pub(super) clock: Clock,
    pub(super) point: CapturePoint,
}
