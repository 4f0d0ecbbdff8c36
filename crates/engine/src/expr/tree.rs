//! The tree that an expression is compiled to.

use super::class::Class;
use super::lookup_map::LookupMap;
use super::regs::Src;
use super::set::{Ranges, Strings};
use crate::anonymize::CryptoPan;
use crate::functions::ScalarForms;
use regex::bytes::Regex;
use weir_plan::functions::{Math, Part};
use weir_plan::{BinaryOp, TimeZone, Type, Value};

/// A condition: gives the rows for which it holds.
pub(crate) enum Cond {
    Const(bool),
    /// A boolean column that is there and true.
    Truth(Box<Val>),
    Exists(Vec<Val>),
    Not(Box<Cond>),
    And(Vec<Cond>),
    Or(Vec<Cond>),
    Cmp {
        op: BinaryOp,
        class: Class,
        a: Val,
        b: Val,
    },
    /// A word against a constant, both in ordered form.
    CmpConst {
        op: BinaryOp,
        class: Class,
        a: Val,
        ordered: u64,
    },
    /// The sum, difference or product of two integers, which always fits, against a constant.
    CmpArith {
        op: BinaryOp,
        arith: Arith,
        a: Val,
        b: Val,
        k: i64,
    },
    /// Tuples, part by part.
    CmpTuple {
        op: BinaryOp,
        parts: Vec<(Class, Val, Val)>,
    },
    InRanges {
        class: Class,
        a: Val,
        ranges: Ranges,
    },
    InStrings {
        a: Val,
        set: Strings,
    },
    /// A tuple among constant tuples.
    InTuples {
        parts: Vec<Val>,
        members: Vec<Vec<Value>>,
    },
    Text {
        f: TextTest,
        a: Val,
        b: Val,
    },
    Matches {
        a: Val,
        regex: Regex,
    },
    /// Whether an address is IPv6, or else IPv4.
    IsVersion {
        a: Val,
        six: bool,
    },
    If(Box<[Cond; 3]>),
}

/// A predicate over two texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TextTest {
    Contains,
    StartsWith,
    EndsWith,
}

/// A function that makes a text or bytes.
#[derive(Debug)]
pub(crate) enum TextFn {
    Show,
    /// As a person reads it.
    Short,
    Lower,
    Upper,
    Concat,
    Trim,
    Slice,
    Replace,
    Split,
    Extract(regex::Regex),
    RegisteredDomain,
    Hex,
    /// Bytes as text.
    Decode,
}

/// A value: makes sure that a column holds it for the rows wanted.
pub(crate) enum Val {
    Src(Src),
    Binary {
        op: Arith,
        a: Box<Val>,
        b: Box<Val>,
        out: usize,
    },
    /// With a constant on the right.
    BinaryConst {
        op: Arith,
        a: Box<Val>,
        k: u64,
        out: usize,
    },
    Unary {
        op: Convert,
        a: Box<Val>,
        out: usize,
    },
    /// A chain of `if`: the value of the first condition that holds, else the last.
    Cases {
        cases: Vec<(Cond, Branch)>,
        other: Box<Branch>,
        out: usize,
    },
    Coalesce {
        a: Box<Val>,
        b: Box<Val>,
        out: usize,
    },
    /// The smaller (or larger) of two.
    Extreme {
        larger: bool,
        class: Class,
        a: Box<Val>,
        b: Box<Val>,
        out: usize,
    },
    Bool {
        cond: Box<Cond>,
        out: usize,
    },
    /// The first bits of an address: `v4` is the mask of the low 32 bits of an IPv4 address.
    Prefix {
        a: Box<Val>,
        v4: u64,
        v6: u128,
        out: usize,
    },
    /// Another name for an address.
    Anonymize {
        names: Box<CryptoPan>,
        a: Box<Val>,
        out: usize,
    },
    /// The Community ID of source, port, destination, port, protocol, and ICMP type and code.
    CommunityId {
        seed: u16,
        parts: Vec<Val>,
        out: usize,
    },
    /// A text, or bytes.
    Text {
        f: TextFn,
        args: Vec<(Val, Type)>,
        out: usize,
    },
    /// The text that a table has for a key.
    Lookup {
        map: LookupMap,
        key: Box<Val>,
        out: usize,
    },
    /// The value that a text says.
    Parse {
        f: Parse,
        a: Box<Val>,
        out: usize,
    },
    User {
        f: ScalarForms,
        args: Vec<(Val, Type)>,
        ty: Type,
        out: usize,
    },
}

/// A branch of a chain of `if`.
pub(crate) enum Branch {
    /// A constant, as [`weir_packet::column::Column::raw`] gives it; `None` is absent.
    Const(Option<u128>),
    /// Any value.
    Val(Val),
}

impl Val {
    /// Where the result stands once it has been evaluated.
    pub(crate) fn out(&self) -> Src {
        match self {
            Val::Src(src) => *src,
            Val::Binary { out, .. }
            | Val::BinaryConst { out, .. }
            | Val::Unary { out, .. }
            | Val::Cases { out, .. }
            | Val::Coalesce { out, .. }
            | Val::Extreme { out, .. }
            | Val::Bool { out, .. }
            | Val::Prefix { out, .. }
            | Val::Anonymize { out, .. }
            | Val::CommunityId { out, .. }
            | Val::Text { out, .. }
            | Val::Lookup { out, .. }
            | Val::Parse { out, .. }
            | Val::User { out, .. } => Src::Slot(*out),
        }
    }
}

/// The kind of value that is read from a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Parse {
    Int,
    Float,
    Ip,
    Entropy,
}

/// Arithmetic on two words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arith {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    AddF,
    SubF,
    MulF,
    DivF,
    /// duration / duration
    Ratio,
    Bin,
    LocalBin(TimeZone),
    Pow,
    SeqDiff,
    SeqAdd,
    /// Of operands whose ranges say that the result fits.
    AddFits,
    SubFits,
    MulFits,
    ShlFits,
}

/// A word from one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Convert {
    Neg,
    NegF,
    BitNot,
    IntToFloat,
    DurationToFloat,
    FloatToInt,
    BoolToInt,
    /// Types that share one representation.
    Same,
    Abs,
    AbsF,
    TextLen,
    Floor,
    Ceil,
    Round,
    Math(Math),
    Part(Part),
    /// Of a time the local time of a zone.
    Local(TimeZone),
}
