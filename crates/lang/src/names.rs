//! The meaning of names: the params and lets of a query, and the columns and fields that a stage
//! sees.

use crate::diagnostic::Span;
use crate::tree::Expr;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use weir_packet::fields::{self, FieldId};
use weir_plan::ends::{Anonymize, Edit};
use weir_plan::{Member, Schema, SourceKind, Type, Value};

/// The params and lets above the place being checked.
#[derive(Default, Debug)]
pub(crate) struct Definitions<'t> {
    by_name: BTreeMap<&'t str, Definition<'t>>,
}

/// A param or a let.
#[derive(Debug)]
pub(crate) struct Definition<'t> {
    /// Its name where it is defined.
    pub(crate) span: Span,
    pub(crate) meaning: Meaning<'t>,
    /// Whether anything uses it.
    pub(crate) used: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Meaning<'t> {
    /// A param; its value, or `None` after a mistake.
    Param(Option<Value>),
    /// A param that is a set.
    Set(Rc<ParamSet>),
    /// `let name = expr`; whether the expression is sound by itself.
    Alias { expr: &'t Expr, sound: bool },
    /// `let name = pipeline`; its number among those built.
    Pipeline(usize),
    /// Something that could not be read.
    Unknown,
}

/// The value of a param that is a set.
#[derive(Debug)]
pub(crate) struct ParamSet {
    /// The type of what may be in it.
    pub(crate) ty: Type,
    /// Its members; none for an empty set.
    pub(crate) members: Vec<Member>,
}

impl<'t> Definitions<'t> {
    /// Defines `name`; gives the place of an earlier definition, which then stays.
    pub(crate) fn define(
        &mut self,
        name: &'t str,
        span: Span,
        meaning: Meaning<'t>,
    ) -> Result<(), Span> {
        match self.by_name.get(name) {
            Some(earlier) => Err(earlier.span),
            None => {
                self.by_name.insert(name, Definition { span, meaning, used: false });
                Ok(())
            }
        }
    }

    /// The definition of `name`, which is noted as used.
    pub(crate) fn find(&mut self, name: &str) -> Option<&Definition<'t>> {
        let definition = self.by_name.get_mut(name)?;
        definition.used = true;
        Some(definition)
    }

    /// All definitions, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'t str, &Definition<'t>)> {
        self.by_name.iter().map(|(name, d)| (*name, d))
    }
}

/// The names that the expressions of a stage see.
#[derive(Clone, Default, Debug)]
pub(crate) struct Scope {
    /// The columns so far.
    pub(crate) schema: Schema,
    /// Columns whose expression had a mistake: they are there, but of no known type.
    pub(crate) poisoned: BTreeSet<String>,
    /// Whether rows are packets still, whose fields can be read; or flow records.
    pub(crate) packets: bool,
    /// Which of the two the query reads.
    pub(crate) source: SourceKind,
    /// Which stage dropped the packets, and where it is.
    pub(crate) dropped: Option<(&'static str, Span)>,
    /// The time that rows have.
    pub(crate) time: EventTime,
    /// Names that the stage being checked gives: columns only for the stages after it.
    pub(crate) pending: Vec<String>,
    /// Within the update of a scan: its states.
    pub(crate) states: Schema,
    /// Whether names may exist that we do not know of, because of a mistake above.
    pub(crate) lenient: bool,
    /// The edits to the frames of packets that go out.
    pub(crate) edits: Vec<Edit>,
    /// Of packets: the columns that are printed unless a stage says otherwise, in order.
    pub(crate) listed: Vec<String>,
    /// Columns and fields that `project-away` and `rename` took. Fields of packets stay where they
    /// are, and nothing finds them by this name.
    pub(crate) gone: BTreeMap<String, Gone>,
    /// Which addresses of the packets have other names, and where they got them, in order.
    pub(crate) anonymized: Vec<(Anonymize, Span)>,
    /// Fields of packets that columns replace, and where: packets still have what they came with.
    pub(crate) replaced: BTreeMap<String, Span>,
    /// Columns that are quotients of whole numbers, and where they were divided.
    pub(crate) quotients: BTreeMap<String, Span>,
}

impl Scope {
    /// Forgets where in the text things were: they are in another text.
    pub(crate) fn forget_places(&mut self) {
        self.dropped = self.dropped.map(|(stage, _)| (stage, Span::NOWHERE));
        if let EventTime::None(place) = &mut self.time {
            *place = Span::NOWHERE;
        }
        self.gone.values_mut().for_each(|gone| gone.span = Span::NOWHERE);
        self.anonymized.iter_mut().for_each(|(_, span)| *span = Span::NOWHERE);
        self.replaced.values_mut().for_each(|span| *span = Span::NOWHERE);
        self.quotients.values_mut().for_each(|span| *span = Span::NOWHERE);
    }
}

/// Which stage took a column or a field.
#[derive(Clone, Debug)]
pub(crate) struct Gone {
    pub(crate) stage: &'static str,
    /// Where.
    pub(crate) span: Span,
    /// Its name now.
    pub(crate) renamed: Option<String>,
}

/// The columns that packets put out unless a query says otherwise, before the columns that it adds.
const PACKET_COLUMNS: &[&str] =
    &["ts", "len", "ip.src", "sport", "ip.dst", "dport", "ip.proto", "protocol"];

/// The same of flow records.
const RECORD_COLUMNS: &[&str] =
    &["ts", "ip.src", "sport", "ip.dst", "dport", "ip.proto", "packets", "bytes"];

/// The time that rows have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum EventTime {
    /// Each the time of its packet.
    #[default]
    Packet,
    /// The start of their window.
    Window,
    /// When the latest row of their session came, or what their alert tells of happened.
    Session,
    /// None, since the stage at that place took the whole input together.
    None(Span),
}

impl Scope {
    /// The scope of the first stage of a pipeline over packets, or over flow records.
    pub(crate) fn of(source: SourceKind) -> Scope {
        let listed = match source {
            SourceKind::Packets => PACKET_COLUMNS,
            SourceKind::FlowRecords => RECORD_COLUMNS,
        };
        let listed = listed.iter().map(|&name| name.to_owned()).collect();
        Scope { packets: true, source, listed, ..Scope::default() }
    }

    /// The scope after a mistake that hides which rows there are.
    pub(crate) fn unknown() -> Scope {
        Scope { packets: true, lenient: true, ..Scope::default() }
    }

    /// Whether the query reads flow records.
    pub(crate) fn of_records(&self) -> bool {
        self.source == SourceKind::FlowRecords
    }

    /// The field of the source called `name`, whether or not rows have it still.
    pub(crate) fn field(&self, name: &str) -> Option<FieldId> {
        match self.source {
            SourceKind::Packets => fields::by_name(name),
            SourceKind::FlowRecords => fields::record_field_by_name(name),
        }
    }

    /// The names of all fields of the source.
    pub(crate) fn field_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let all = match self.source {
            SourceKind::Packets => fields::FIELDS,
            SourceKind::FlowRecords => fields::RECORD_FIELDS,
        };
        all.iter().map(|field| field.name)
    }

    /// Adds or replaces a column; `None` for one whose expression had a mistake.
    pub(crate) fn put(&mut self, name: &str, ty: Option<Type>) -> usize {
        match ty {
            Some(_) => self.poisoned.remove(name),
            None => self.poisoned.insert(name.to_owned()),
        };
        self.gone.remove(name);
        if self.packets && !self.listed.iter().any(|listed| listed == name) {
            self.listed.push(name.to_owned());
        }
        self.schema.put(name, ty.unwrap_or(Type::Int))
    }

    /// The position of the column called `name`.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.schema.position(name).filter(|_| !self.gone.contains_key(name))
    }

    /// The names of columns, in order.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> + Clone {
        let names = self.schema.columns.iter().map(|c| c.name.as_str());
        names.filter(|name| !self.gone.contains_key(*name))
    }

    /// Notes that the column `name`, given at that place, replaces a field of packets, if it does.
    pub(crate) fn replaces(&mut self, name: &str, span: Span) {
        if self.packets && self.field(name).is_some() {
            self.replaced.entry(name.to_owned()).or_insert(span);
        }
    }

    /// Notes whether the column `name` is a quotient of whole numbers, and where it was divided.
    pub(crate) fn set_quotient(&mut self, name: &str, divided: Option<Span>) {
        match divided {
            Some(span) => self.quotients.insert(name.to_owned(), span),
            None => self.quotients.remove(name),
        };
    }

    /// Where the column `name` was divided, if it is a quotient of whole numbers.
    pub(crate) fn quotient(&self, name: &str) -> Option<Span> {
        self.quotients.get(name).copied()
    }

    /// The rows after a stage that keeps nothing but its own columns.
    pub(crate) fn reduced(&self, stage: &'static str, span: Span, time: EventTime) -> Scope {
        let dropped = if self.packets { Some((stage, span)) } else { self.dropped };
        Scope {
            packets: false,
            source: self.source,
            dropped,
            time,
            lenient: self.lenient,
            ..Scope::default()
        }
    }
}
