//! The words of the language, for those who complete what people type.

use crate::{foreign, parse, suggest};
use weir_packet::fields::{FIELDS, KEYS, RECORD_FIELDS, by_name};
use weir_packet::repeated::REPEATED;
use weir_plan::Type;
use weir_plan::aggregates::AGGREGATES;
use weir_plan::functions::BUILTINS;

/// Where a word may stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WordKind {
    /// A field of packets.
    Field,
    /// A field of flow records that packets do not have.
    RecordField,
    /// A key that is made of several fields.
    Key,
    /// A part of a packet of which there may be several.
    Part,
    /// A function.
    Function,
    /// An aggregate.
    Aggregate,
    /// The beginning of a stage.
    Stage,
}

impl WordKind {
    /// The common name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            WordKind::Field | WordKind::RecordField => "field",
            WordKind::Key => "key",
            WordKind::Part => "part",
            WordKind::Function => "function",
            WordKind::Aggregate => "aggregate",
            WordKind::Stage => "stage",
        }
    }
}

/// A word of the language.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LanguageWord {
    /// The word itself.
    pub name: &'static str,
    /// Where it may stand.
    pub kind: WordKind,
    /// The type of its values, or how it is called.
    pub ty: String,
    /// The description of the word.
    pub doc: &'static str,
}

/// Whether a stage of this version may be meant by a word: it is spelled nearly so, or called so in
/// other languages.
pub fn is_near_stage(word: &str) -> bool {
    let near = suggest::closest(word, parse::STAGES.iter().copied());
    near.is_some() || suggest::stage(word).is_some() || foreign::stage(word).is_some()
}

/// The words that stages begin with.
pub fn stages() -> &'static [&'static str] {
    parse::STAGES
}

/// All words.
pub fn words() -> Vec<LanguageWord> {
    let word = |kind, name, ty: &str, doc| LanguageWord { name, kind, ty: ty.to_owned(), doc };
    let fields = FIELDS.iter().map(|f| (WordKind::Field, f));
    let of_records = RECORD_FIELDS.iter().filter(|f| by_name(f.name).is_none());
    let fields = fields.chain(of_records.map(|f| (WordKind::RecordField, f)));
    let fields = fields.map(|(kind, f)| word(kind, f.name, &Type::from(f.ty).to_string(), f.doc));
    let keys = KEYS.iter().map(|key| word(WordKind::Key, key.name, "key", key.doc));
    let parts = REPEATED.iter().map(|part| word(WordKind::Part, part.name, "part", part.doc));
    let called = |kind, call: &'static str, doc| {
        word(kind, call.split('(').next().unwrap_or(call), call, doc)
    };
    let functions = BUILTINS.iter().map(|f| called(WordKind::Function, f.call, f.doc));
    let aggregates = AGGREGATES.iter().map(|a| called(WordKind::Aggregate, a.call, a.doc));
    let stages = parse::STAGES.iter().map(|stage| word(WordKind::Stage, stage, "", ""));
    fields.chain(keys).chain(parts).chain(functions).chain(aggregates).chain(stages).collect()
}
