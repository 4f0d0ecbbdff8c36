//! NetFlow version 9 (RFC 3954).

use crate::bytes::Bytes;
use crate::counts::Fault;
use crate::export::Export;
use crate::limits::LATE_DATAGRAMS_MAX;
use crate::reading::Reading;
use crate::sequence::Numbered;
use crate::template::{DATA_MIN, Form};

const TEMPLATES: u16 = 0;
const OPTIONS_TEMPLATES: u16 = 1;

/// The header before the sets, after the version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Netflow9Header {
    pub(crate) export: Export,
    sequence: u32,
    /// The source ID.
    pub(crate) source: u32,
}

/// Reads the header of a datagram that came at this time. How many records it announces is of no
/// use: sets say where they end.
pub(crate) fn header(bytes: &mut Bytes<'_>, received: i64) -> Option<Netflow9Header> {
    let (_count, uptime, seconds) = (bytes.u16()?, bytes.u32()?, bytes.u32()?);
    let sent = i64::from(seconds) * 1_000_000_000;
    let export = Export { received, sent, uptime: Some(uptime) };
    Some(Netflow9Header { export, sequence: bytes.u32()?, source: bytes.u32()? })
}

/// Reads the sets.
pub(crate) fn sets(reading: &mut Reading<'_>, header: &Netflow9Header, mut bytes: Bytes<'_>) {
    while let Some((number, set)) = next_set(reading, &mut bytes) {
        match number {
            TEMPLATES => reading.template_set(Form::Netflow9, false, set),
            OPTIONS_TEMPLATES => reading.template_set(Form::Netflow9, true, set),
            DATA_MIN.. => {
                reading.data_set(number, set);
            }
            // Reserved.
            _ => {}
        }
    }
    reading.number(Numbered {
        number: header.sequence,
        units: Some(1),
        late_max: LATE_DATAGRAMS_MAX,
        clock: header.export.uptime.unwrap_or(0),
        is_uptime: true,
    });
}

/// The next set, of NetFlow 9 or IPFIX: its number, and what it holds.
pub(crate) fn next_set<'a>(
    reading: &mut Reading<'_>,
    bytes: &mut Bytes<'a>,
) -> Option<(u16, &'a [u8])> {
    if bytes.is_empty() {
        return None;
    }
    let mut set = || {
        let (number, len) = (bytes.u16()?, bytes.u16()?);
        Some((number, bytes.take(usize::from(len).checked_sub(4)?)?))
    };
    let found = set();
    if found.is_none() {
        reading.fault(Fault::SetLength);
    }
    found
}
