//! IPFIX (RFC 7011).

use crate::bytes::Bytes;
use crate::counts::Fault;
use crate::export::Export;
use crate::limits::LATE_RECORDS_MAX;
use crate::netflow9::next_set;
use crate::reading::Reading;
use crate::sequence::Numbered;
use crate::template::{DATA_MIN, Form};

const TEMPLATES: u16 = 2;
const OPTIONS_TEMPLATES: u16 = 3;

/// Bytes of the header of a message.
const HEADER: usize = 16;

/// The header before the sets, after the version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpfixHeader {
    /// Bytes of the message, with its header.
    len: u16,
    pub(crate) export: Export,
    /// When it was sent: seconds since 1970.
    seconds: u32,
    sequence: u32,
    /// The observation domain.
    pub(crate) domain: u32,
}

/// Reads the header of a message that came at this time.
pub(crate) fn header(bytes: &mut Bytes<'_>, received: i64) -> Option<IpfixHeader> {
    let (len, seconds) = (bytes.u16()?, bytes.u32()?);
    let sent = i64::from(seconds) * 1_000_000_000;
    let export = Export { received, sent, uptime: None };
    Some(IpfixHeader { len, export, seconds, sequence: bytes.u32()?, domain: bytes.u32()? })
}

/// Reads the sets.
pub(crate) fn sets(reading: &mut Reading<'_>, header: &IpfixHeader, bytes: Bytes<'_>) {
    let announced = usize::from(header.len).saturating_sub(HEADER);
    let mut sets = Bytes(bytes.0.get(..announced).unwrap_or(bytes.0));
    if announced > bytes.len() || usize::from(header.len) < HEADER {
        reading.fault(Fault::Short);
    }
    let (mut units, faults) = (Some(0), reading.counts.faults);
    while let Some((number, set)) = next_set(reading, &mut sets) {
        match number {
            TEMPLATES => reading.template_set(Form::Ipfix, false, set),
            OPTIONS_TEMPLATES => reading.template_set(Form::Ipfix, true, set),
            DATA_MIN.. => {
                let more = reading.data_set(number, set);
                units = units.zip(more).map(|(so_far, more): (u32, u32)| so_far + more);
            }
            _ => {}
        }
    }
    // A set that can't be read hides how many records the message has.
    let units = units.filter(|_| faults == reading.counts.faults && announced <= bytes.len());
    reading.number(Numbered {
        number: header.sequence,
        units,
        late_max: LATE_RECORDS_MAX,
        clock: header.seconds,
        is_uptime: false,
    });
}
