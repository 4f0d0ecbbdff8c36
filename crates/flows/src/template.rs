//! Templates: which elements a record has, and how long each is (RFC 7011, section 3.4; RFC 3954,
//! section 5.2).

use crate::bytes::Bytes;
use crate::counts::Fault;
use crate::limits::TEMPLATE_FIELDS_MAX;

/// The length that says that each value tells its own (RFC 7011, section 7).
const VARIABLE: u16 = u16::MAX;

/// The least number of a data set, and of the template that it follows.
pub(crate) const DATA_MIN: u16 = 256;

/// A field of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TemplateField {
    /// The organisation that defined the element: 0 for IANA.
    pub(crate) enterprise: u32,
    pub(crate) element: u16,
    len: u16,
}

/// The fields of the records of a data set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Template {
    fields: Vec<TemplateField>,
    /// So many fields at the beginning say what the options of a record are about; `None` for
    /// records of flows.
    pub(crate) scopes: Option<usize>,
    /// The least bytes of a record.
    len_min: usize,
    /// When it came last: nanoseconds since 1970.
    pub(crate) seen: i64,
}

impl Template {
    fn new(fields: Vec<TemplateField>, scopes: Option<usize>, seen: i64) -> Option<Template> {
        let len = |field: &TemplateField| if field.len == VARIABLE { 1 } else { field.len.into() };
        let len_min = fields.iter().map(len).sum();
        (len_min > 0).then_some(Template { fields, scopes, len_min, seen })
    }

    /// Whether another one says the same of records.
    pub(crate) fn is_same(&self, other: &Template) -> bool {
        self.fields == other.fields && self.scopes == other.scopes
    }

    /// Takes the next record off a data set and hands out its values; `Ok(false)` at the end, where
    /// only padding may follow.
    pub(crate) fn record<'a>(
        &self,
        set: &mut Bytes<'a>,
        mut value: impl FnMut(usize, &TemplateField, &'a [u8]),
    ) -> Result<bool, Fault> {
        if set.len() < self.len_min {
            return Ok(false);
        }
        for (i, field) in self.fields.iter().enumerate() {
            let len = match field.len {
                VARIABLE => variable(set).ok_or(Fault::RecordLength)?,
                len => len.into(),
            };
            value(i, field, set.take(len).ok_or(Fault::RecordLength)?);
        }
        Ok(true)
    }
}

/// The length in front of a value.
fn variable(set: &mut Bytes<'_>) -> Option<usize> {
    match set.u8()? {
        u8::MAX => set.u16().map(usize::from),
        len => Some(len.into()),
    }
}

/// The content of a record of a template set.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// There is a template of this number.
    Template(u16, Template),
    /// There is none of this number any more; of all, if it is the number of the set.
    Withdrawn(u16),
}

/// Which form a template set has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Of NetFlow 9, which has no elements of enterprises.
    Netflow9,
    Ipfix,
}

/// The next template of a set; `None` at the end of the set, where padding may follow.
pub(crate) fn template(
    set: &mut Bytes<'_>,
    form: Form,
    of_options: bool,
    seen: i64,
) -> Option<Result<Told, Fault>> {
    if set.len() < 4 {
        return None;
    }
    let number = set.u16()?;
    // Padding of a set may be longer than a head.
    if number == 0 {
        return None;
    }
    let told = match form {
        Form::Netflow9 => netflow9(set, number, of_options, seen),
        Form::Ipfix => ipfix(set, number, of_options, seen),
    };
    Some(told)
}

fn netflow9(set: &mut Bytes<'_>, number: u16, of_options: bool, seen: i64) -> Result<Told, Fault> {
    let short = || Fault::TemplateFields;
    let count = set.u16().ok_or_else(short)?;
    let (fields, scopes) = match of_options {
        false => (usize::from(count), None),
        // Lengths in bytes: of the scopes, and of the options.
        true => {
            let (scopes, options) = (count / 4, set.u16().ok_or_else(short)? / 4);
            (usize::from(scopes) + usize::from(options), Some(scopes.into()))
        }
    };
    let fields = read_fields(set, fields, Form::Netflow9)?;
    made(number, fields, scopes, seen)
}

fn ipfix(set: &mut Bytes<'_>, number: u16, of_options: bool, seen: i64) -> Result<Told, Fault> {
    let short = || Fault::TemplateFields;
    let count = set.u16().ok_or_else(short)?;
    if count == 0 {
        return Ok(Told::Withdrawn(number));
    }
    let scopes = match of_options {
        false => None,
        true => Some(usize::from(set.u16().ok_or_else(short)?)),
    };
    if scopes.is_some_and(|scopes| scopes > usize::from(count)) {
        return Err(Fault::TemplateFields);
    }
    let fields = read_fields(set, count.into(), Form::Ipfix)?;
    made(number, fields, scopes, seen)
}

fn made(
    number: u16,
    fields: Vec<TemplateField>,
    scopes: Option<usize>,
    seen: i64,
) -> Result<Told, Fault> {
    if number < DATA_MIN {
        return Err(Fault::TemplateNumber);
    }
    let template = Template::new(fields, scopes, seen).ok_or(Fault::TemplateEmpty)?;
    Ok(Told::Template(number, template))
}

fn read_fields(set: &mut Bytes<'_>, n: usize, form: Form) -> Result<Vec<TemplateField>, Fault> {
    // Fields that can't be there are not waited for: each takes 4 bytes at least.
    if n > TEMPLATE_FIELDS_MAX || n * 4 > set.len() {
        return Err(Fault::TemplateFields);
    }
    let mut field = || {
        let (element, len) = (set.u16()?, set.u16()?);
        let is_own = form == Form::Ipfix && element & 0x8000 != 0;
        let enterprise = if is_own { set.u32()? } else { 0 };
        let element = if is_own { element & 0x7fff } else { element };
        Some(TemplateField { enterprise, element, len })
    };
    (0..n).map(|_| field().ok_or(Fault::TemplateFields)).collect()
}
