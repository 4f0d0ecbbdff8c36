//! Data sets by their templates: records of flows, and of options.

use crate::bytes::Bytes;
use crate::element::Filling;
use crate::reading::Reading;
use crate::template::Template;
use weir_packet::record::Slot;

/// Reads a data set; returns how many records it has.
pub(crate) fn read(reading: &mut Reading<'_>, template: &Template, set: &[u8]) -> u32 {
    let (mut set, mut units) = (Bytes(set), 0);
    loop {
        let (mut filling, export) = (Filling::new(), reading.export);
        let value = |_: usize, field: &crate::template::TemplateField, bytes: &[u8]| {
            filling.value(field.enterprise, field.element, bytes, &export);
        };
        match template.record(&mut set, value) {
            Ok(true) => units += 1,
            Ok(false) => return units,
            Err(fault) => {
                reading.fault(fault);
                return units;
            }
        }
        match template.scopes {
            None => flow(reading, filling),
            Some(_) => options(reading, &filling),
        }
    }
}

/// A record of a flow.
fn flow(reading: &mut Reading<'_>, filling: Filling) {
    let (sampler, export) = (filling.sampler, reading.export);
    let (mut record, ts) = filling.finish(&export);
    if record.get(Slot::Sampling).is_none()
        && let Some(rate) = reading.session.rate(sampler)
    {
        record.set(Slot::Sampling, rate);
    }
    reading.record(record, ts);
}

/// A record of options, which may say how packets are sampled (RFC 3954, section 6.1; RFC 5476).
fn options(reading: &mut Reading<'_>, filling: &Filling) {
    reading.counts.options += 1;
    if let Some(rate) = filling.rate() {
        reading.session.set_sampler(filling.sampler, rate);
    }
}
