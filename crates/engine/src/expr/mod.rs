//! Expressions over columns, a batch at a time.
//!
//! [`Compiler`] turns a typed expression into a small tree whose nodes own a column each for their
//! result; [`Ctx`] walks that tree once per batch, and each node is one loop over the rows of the
//! selection. Conditions never build a column: they give the set of rows for which they hold.

mod address;
mod automaton;
mod call;
mod compare;
mod compile;
mod eval;
mod fold;
mod kernels;
mod lookup;
mod range;
mod set;
mod text;

pub use automaton::Automaton;
pub(crate) use automaton::{AUTOMATON_STATES, START};
pub(crate) use compile::flat;
pub use compile::{Compiler, Scope};
pub use eval::Ctx;
pub(crate) use eval::copy_rows;

use crate::anonymize::CryptoPan;
use crate::functions::Scalar;
use lookup::Map;
use regex::bytes::Regex;
use set::{Ranges, Strings};
use std::collections::BTreeMap;
pub use text::TextFn;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_plan::functions::{Math, Part};
use weir_plan::{BinaryOp, Type, Value};

use crate::rows::{Arena, set_cell};

/// Where a column stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Src {
    /// A decoded field of the view, by position.
    Field(usize),
    /// A text field of the chain, by position: its texts are in the chain's arena.
    Text(usize),
    /// A register of the chain.
    Slot(usize),
}

/// The registers of a chain: columns that its operators share, and the strings in them.
#[derive(Debug, Default)]
pub struct Regs {
    /// The columns.
    pub columns: Vec<Column>,
    /// Bytes of all strings; constants come first and stay.
    pub arena: Arena,
    /// Bytes of the constants.
    pub constants_len: usize,
    /// The handles of the constants by their texts. Different ones are of different texts.
    constants: BTreeMap<Box<[u8]>, u64>,
    /// The text fields that the chain reads.
    texts: Vec<TextField>,
}

/// A text field of packets, decoded on demand.
#[derive(Debug)]
struct TextField {
    id: FieldId,
    column: Column,
    /// Rows of this batch that the column is valid for.
    rows: Bits,
}

impl Regs {
    /// A constant as columns store it; `None` is absent. Its text, if it is one, is kept.
    pub(crate) fn constant(&mut self, v: &Value, ty: &Type) -> Option<u128> {
        let text = match v {
            Value::Str(s) => s.as_bytes(),
            Value::Bytes(b) => b,
            _ => {
                let mut column = Column::new(ty.repr());
                set_cell(&mut column, 0, v, &mut self.arena);
                return v.exists().then(|| column.raw(0));
            }
        };
        if let Some(handle) = self.constants.get(text) {
            return Some((*handle).into());
        }
        let handle = self.arena.put(text);
        self.constants.insert(text.into(), handle);
        self.constants_len = self.arena.len();
        Some(handle.into())
    }

    /// The position of a text field.
    fn text_field(&mut self, id: FieldId) -> usize {
        self.texts.iter().position(|f| f.id == id).unwrap_or_else(|| {
            let column = Column::new(id.info().ty.repr());
            self.texts.push(TextField { id, column, rows: Bits::NONE });
            self.texts.len() - 1
        })
    }

    /// Whether a handle is of a constant.
    #[inline(always)]
    fn is_constant(&self, handle: u64) -> bool {
        Arena::start_of(handle) < self.constants_len
    }

    /// Forgets the strings of the last batch.
    pub fn next_batch(&mut self) {
        self.arena.truncate(self.constants_len);
        self.texts.iter_mut().for_each(|f| f.rows = Bits::NONE);
    }
}

/// How two words of one type compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Two's complement.
    Signed,
    /// Unsigned.
    Unsigned,
    /// IEEE total order.
    Float,
    /// 128 bits unsigned.
    Pair,
    /// Bytes behind a handle.
    Text,
    /// Truth bits.
    Bit,
}

impl Class {
    pub(crate) fn of(ty: &Type) -> Class {
        match ty {
            Type::Int | Type::Time | Type::Duration => Class::Signed,
            Type::Mac => Class::Unsigned,
            Type::Float => Class::Float,
            Type::Ip => Class::Pair,
            Type::Str | Type::Bytes => Class::Text,
            Type::Bool => Class::Bit,
            Type::Net | Type::Tuple(_) => panic!("no column has the type {ty}"),
        }
    }

    /// A word as an unsigned number of the same order.
    #[inline(always)]
    pub(crate) fn ordered(self, word: u64) -> u64 {
        match self {
            Class::Signed => word ^ (1 << 63),
            Class::Float => word ^ (((word as i64 >> 63) as u64) | (1 << 63)),
            _ => word,
        }
    }

    /// The word that [`Class::ordered`] made a number of.
    #[inline(always)]
    pub(crate) fn unordered(self, n: u64) -> u64 {
        match self {
            Class::Signed => n ^ (1 << 63),
            Class::Float => n ^ (((!n as i64 >> 63) as u64) | (1 << 63)),
            _ => n,
        }
    }
}

/// A condition: gives the rows for which it holds.
#[expect(missing_docs, reason = "each variant is the loop of that name")]
pub enum Cond {
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
        parts: Vec<(Class, Val)>,
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
#[expect(missing_docs, reason = "each variant is the loop of that name")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextTest {
    Contains,
    StartsWith,
    EndsWith,
}

/// A value: makes sure that a column holds it for the rows wanted.
#[expect(missing_docs, reason = "each variant is the loop of that name")]
pub enum Val {
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
    /// A chain of `if`: the value behind the first condition that holds, else the last.
    Cases {
        cases: Vec<(Cond, Arm)>,
        other: Box<Arm>,
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
        map: Map,
        key: Box<Val>,
        out: usize,
    },
    /// What a text says.
    Parse {
        f: Parse,
        a: Box<Val>,
        out: usize,
    },
    User {
        f: Scalar,
        args: Vec<(Val, Type)>,
        ty: Type,
        out: usize,
    },
}

/// A branch of a chain of `if`.
pub enum Arm {
    /// A constant, as [`Column::raw`] gives it; `None` is absent.
    Const(Option<u128>),
    /// Any value.
    Val(Val),
}

impl Val {
    /// Where the result stands once it has been evaluated.
    pub fn out(&self) -> Src {
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

/// What is read from a text.
#[expect(missing_docs, reason = "each variant is the type of that name")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parse {
    Int,
    Float,
    Ip,
}

/// Arithmetic on two words.
#[expect(missing_docs, reason = "each variant is the loop of that name")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arith {
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
    Pow,
    SeqDiff,
    /// Of operands whose ranges say that the result fits.
    AddFits,
    SubFits,
    MulFits,
    ShlFits,
}

/// A word from one value.
#[expect(missing_docs, reason = "each variant is the loop of that name")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Convert {
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
}

/// The rows among `rows` for which a boolean column is there and true.
#[inline(always)]
pub(crate) fn truth(c: &Column, rows: Bits) -> Bits {
    c.truth.and(c.present).and(rows)
}
