//! The messages of the compiler about a query.
//!
//! A diagnostic is one mistake, reported once: a stable code, the place it is about, one sentence
//! in the words of the query's author, and a remedy where we know one. This file says what a
//! diagnostic is and which kinds there are; [`crate::render`] draws them, and nothing else in the
//! crate knows how they look. Each kind has a snapshot in `tests/bad_errors.rs`.

use std::fmt;

/// Bytes `start..end` of the query text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    /// The place of what is not in the text at all, such as a parameter given on the command line.
    pub const NOWHERE: Span = Span { start: 0, end: 0 };

    /// The bytes `start..end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// From the start of this span to the end of `other`.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end.max(self.start) }
    }

    /// The text it covers; empty if it reaches outside of `text`.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("")
    }
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The query cannot run.
    Error,
    /// The query runs, and probably does not do what was meant.
    Warning,
}

/// One mistake in a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Which kind of mistake.
    pub code: Code,
    /// Whether the query can run all the same.
    pub severity: Severity,
    /// The place it is about.
    pub span: Span,
    /// One sentence, without a full stop.
    pub message: String,
    /// A few words under the place; may be empty.
    pub label: String,
    /// The text to write instead, where we know it.
    pub help: Option<String>,
    /// Further remarks that the reader must know, in order.
    pub notes: Vec<Note>,
}

/// A remark beside a diagnostic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// The place it is about; `None` for a remark on the whole.
    pub span: Option<Span>,
    /// The text of the remark.
    pub text: String,
}

impl Diagnostic {
    /// A diagnostic without label, help or notes.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: code.severity(),
            span,
            message: message.into(),
            label: String::new(),
            help: None,
            notes: Vec::new(),
        }
    }

    /// Puts a few words under the place.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.label = text.into();
        self
    }

    /// Says what to write instead.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    /// Says what to write instead, where there is something to say.
    #[must_use]
    pub fn maybe_help(mut self, text: Option<String>) -> Diagnostic {
        self.help = text.or(self.help);
        self
    }

    /// Adds a remark on the whole.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(Note { span: None, text: text.into() });
        self
    }

    /// Adds a remark on another place of the query.
    #[must_use]
    pub fn note_at(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.notes.push(Note { span: Some(span), text: text.into() });
        self
    }

    /// Whether the query cannot run because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// Declares [`Code`] with its numbers, so that a kind and its sentence are written once.
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The kinds of mistakes. The number of a kind never changes; new ones are added at the
        /// end.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// All kinds, each with its sentence, in the order of their numbers.
            pub const ALL: &[(Code, &str)] = &[$((Code::$name, concat!($($doc),+)),)+];
        }
    };
}

codes! {
    /// A character that no query uses.
    StrayCharacter,
    /// A string without its closing quote.
    OpenString,
    /// A backslash in a string, followed by something it does not stand with.
    BadEscape,
    /// A number that cannot be read, or is too large.
    BadNumber,
    /// An IP or MAC address that cannot be read.
    BadAddress,
    /// A network with a wrong prefix length, or with bits set after the prefix.
    BadNetwork,
    /// A time that cannot be read.
    BadTime,
    /// Something else was expected at this place.
    Unexpected,
    /// A bracket that is never closed.
    Unclosed,
    /// An operator or word of another language.
    ForeignWord,
    /// Two comparisons in a row, as in `1 < x < 10`.
    ChainedComparison,
    /// A stage that does not exist.
    UnknownStage,
    /// A stage, a function or a protocol that this version does not have yet.
    Unsupported,
    /// A query without a pipeline.
    NoPipeline,
    /// A name that a param, a let or a column cannot have.
    BadName,
    /// A name that is no field, column, param or let.
    UnknownName,
    /// A function or an aggregate that does not exist.
    UnknownFunction,
    /// A pipeline that starts from rows nobody defines.
    UnknownPipeline,
    /// A name that is already taken.
    TakenName,
    /// A name that is defined only further down.
    NotYetDefined,
    /// A pipeline where a value is needed, or a value where a pipeline is.
    NotAValue,
    /// A packet field after a stage that drops the packets.
    FieldGone,
    /// Two columns of one name.
    ColumnClash,
    /// A column whose expression gives it no name.
    NeedsName,
    /// An aggregate outside of `summarize`.
    MisplacedAggregate,
    /// Something that is no aggregate where `summarize` needs one.
    NotAnAggregate,
    /// Two values whose types do not fit together.
    TypeMismatch,
    /// A condition that is neither true nor false.
    NotBool,
    /// A network compared with `==`.
    NetworkEquality,
    /// A function with too few or too many arguments.
    WrongArity,
    /// A function with an argument of the wrong type.
    WrongArgument,
    /// Values that have no order, where an order is needed.
    NotOrdered,
    /// An `if` or a `match` whose results have different types.
    BranchTypes,
    /// A tuple or a network where one plain value is needed.
    NotAColumn,
    /// A value that changes from row to row, where a constant is needed.
    NotConstant,
    /// A constant outside of what the place allows.
    BadConstant,
    /// A regular expression that cannot be read.
    BadRegex,
    /// The right side of an `in` that is no set.
    BadSet,
    /// A pattern of a `match` that does not fit its value.
    BadPattern,
    /// Windows over rows that have no time, or something of windows where there are none.
    NoEventTime,
    /// A `scan` whose update does not give each state its value.
    StateCount,
    /// A stage after `print`.
    AfterPrint,
    /// A parameter was given that the query does not have.
    UnknownParam,
    /// A parameter whose value does not have its type.
    BadParam,
    /// A type that does not exist.
    UnknownType,
    /// A query beyond one of the named limits.
    TooLarge,
    /// A param or a let that nothing uses, a let whose rows are printed beside others, or a `trim`
    /// or `tag` that changes no frame.
    Unused,
    /// A pattern of a `match` that earlier ones leave nothing to.
    UnreachableArm,
    /// A question whose answer is always yes, such as `exists(tcp)`.
    AlwaysPresent,
    /// A computation that never has a value, such as a division by zero.
    AlwaysAbsent,
    /// A file that cannot be read, or does not hold what the query takes from it.
    BadFile,
    /// Packets where rows of columns are needed.
    NeedsColumns,
    /// A stage after an end, where no rows are left.
    AfterEnd,
    /// An end for packets after a stage that made rows of them.
    NotPackets,
    /// An output for packets that has no name, or is named twice.
    BadOutput,
    /// A field that a column replaces, of packets that leave with the field as it was.
    ReplacedField,
    /// A query that reads packets and flow records.
    MixedSources,
    /// A comparison whose answer is the same for all values, such as a port above 65535.
    OneAnswer,
    /// A constant in another unit than the place takes, such as 0.95 of a percent.
    OddConstant,
    /// A sum or difference of a sequence number, which starts again at 0 after 2^32.
    SequenceNumber,
    /// A quotient of whole numbers, which has no fraction, where a share is meant.
    WholeQuotient,
    /// A `distinct` of rows of windows, which starts anew with each of them.
    DistinctPerWindow,
}

impl Code {
    /// How bad this kind is.
    pub fn severity(self) -> Severity {
        match self {
            Code::Unused
            | Code::UnreachableArm
            | Code::AlwaysPresent
            | Code::AlwaysAbsent
            | Code::OneAnswer
            | Code::OddConstant
            | Code::SequenceNumber
            | Code::WholeQuotient
            | Code::DistinctPerWindow => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// The meaning of the kind, in one sentence.
    pub fn doc(self) -> &'static str {
        Code::ALL[self as usize].1.trim()
    }
}

/// Writes the stable number: `W001`.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "W{:03}", *self as usize + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stable() {
        let numbered: Vec<String> =
            Code::ALL.iter().map(|(code, _)| format!("{code} {code:?}")).collect();
        assert_eq!(numbered[0], "W001 StrayCharacter");
        assert_eq!(numbered[9], "W010 ForeignWord");
        assert_eq!(numbered[26], "W027 TypeMismatch");
        assert_eq!(numbered[45], "W046 TooLarge");
        assert_eq!(numbered.last().unwrap(), "W062 DistinctPerWindow");
    }

    #[test]
    fn each_kind_is_described() {
        for (i, (code, doc)) in Code::ALL.iter().enumerate() {
            assert_eq!(*code as usize, i);
            assert!(doc.ends_with('.') && doc.len() > 20, "{code}: {doc}");
        }
        assert_eq!(Code::OpenString.doc(), "A string without its closing quote.");
    }

    #[test]
    fn spans_outside_the_text_cover_nothing() {
        assert_eq!(Span::new(2, 4).of("abcdef"), "cd");
        assert_eq!(Span::new(4, 9).of("abcdef"), "");
        assert_eq!(Span::new(1, 2).of("é"), "");
    }
}
