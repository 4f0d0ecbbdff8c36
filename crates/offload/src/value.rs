//! Expressions that the kernel can evaluate: what [`crate::lower`] makes and [`crate::emit`] writes
//! as instructions.
//!
//! Each gives what the engine gives: a value or none. No number leaves 64 bits and nothing faults,
//! as the ranges show.

use crate::facts::Facts;
use crate::frame::{Header, Slot};

/// A number: an int, or a link address. Also a truth, as 0 or 1.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Num {
    pub(crate) kind: NumKind,
    pub(crate) range: Range,
}

/// The least and the largest value of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) min: i64,
    pub(crate) max: i64,
}

/// The expression that gives a number.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum NumKind {
    Const(i64),
    Read(NumRead),
    Op(NumOp, Box<Num>, Box<Num>),
    /// `~`.
    Not(Box<Num>),
    Neg(Box<Num>),
    If(Box<Test>, Box<Num>, Box<Num>),
    /// The first that has a value.
    Either(Box<Num>, Box<Num>),
    Truth(Box<Test>),
    /// A number on the stack, which is there.
    Stack(i16),
}

/// An operation on two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NumOp {
    Add,
    Sub,
    Mul,
    /// Of numbers that are not negative.
    Div,
    /// Of numbers that are not negative.
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Min,
    Max,
}

/// A field that is a number, of frames of which any of these facts holds; of all frames where none
/// is named.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct NumRead {
    pub(crate) needs: Facts,
    pub(crate) from: From,
}

/// Where a number comes from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum From {
    /// Bits of a header.
    Bits(HeaderBits),
    /// Bits of an IPv4 header, or of an IPv6 header.
    ByVersion(HeaderBits, HeaderBits),
    /// 4 or 6.
    Version,
    /// A number on the stack: some of its bits.
    Slot { slot: Slot, shift: u8, mask: i32 },
    /// The same one for all.
    Same(i32),
    /// The smaller or larger of both link addresses.
    LinkEnd(End),
    /// The port of the smaller or larger end of a connection.
    ConnPort(End),
    /// Whether a packet goes from the smaller end of its connection to the larger.
    ConnForward,
    /// Bytes of TCP payload.
    TcpPayload,
}

/// Which of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Smaller,
    Larger,
}

/// Some bits of some bytes of a header: `(bytes >> shift & mask) * times`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct HeaderBits {
    pub(crate) header: Header,
    pub(crate) at: u8,
    pub(crate) bytes: u8,
    pub(crate) shift: u8,
    /// How many bits.
    pub(crate) bits: u8,
    pub(crate) times: u8,
}

/// An address.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Addr {
    Const(u128),
    Read(AddrRead),
    If(Box<Test>, Box<Addr>, Box<Addr>),
    Either(Box<Addr>, Box<Addr>),
    /// Its first bits, by version.
    Prefix {
        of: Box<Addr>,
        v4: u8,
        v6: u8,
    },
}

/// A field that is an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddrRead {
    Source,
    Destination,
    HostsEnd(End),
    ConnEnd(End),
    ArpSender,
    ArpTarget,
}

/// A condition: true, false or absent.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Test {
    Const(Option<bool>),
    /// Whether any of these facts holds; where none is named, none does.
    Fact(Facts),
    /// Whether the number is not 0; absent where it is.
    NonZero(Num),
    Not(Box<Test>),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Compare(Cmp, Num, Num),
    /// Whether the number is in one of these ranges, which are sorted and disjoint.
    Within(Num, Vec<(i64, i64)>),
    CompareAddr(Cmp, Addr, Addr),
    AddrWithin(Addr, Vec<(u128, u128)>),
    If(Box<Test>, Box<Test>, Box<Test>),
    Either(Box<Test>, Box<Test>),
    NumExists(Num),
    AddrExists(Addr),
    /// Whether the hash of a key is at most `max`, as of those that a `sample` keeps.
    Sampled {
        key: Vec<Lowered>,
        max: u64,
    },
    Whether(Box<Test>),
}

/// A comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Any expression.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Lowered {
    Num(Num),
    Addr(Addr),
    Test(Test),
}

impl Range {
    pub(crate) const ALL: Range = Range { min: i64::MIN, max: i64::MAX };

    /// A range that 64 bits hold.
    pub(crate) fn checked(min: i128, max: i128) -> Option<Range> {
        Some(Range { min: i64::try_from(min).ok()?, max: i64::try_from(max).ok()? })
    }

    /// Whether no number in it is negative.
    pub(crate) fn is_natural(self) -> bool {
        self.min >= 0
    }

    /// Both together.
    pub(crate) fn or(self, other: Range) -> Range {
        Range { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl Num {
    pub(crate) fn constant(value: i64) -> Num {
        Num { kind: NumKind::Const(value), range: Range { min: value, max: value } }
    }

    /// A number of this range on the stack.
    pub(crate) fn on_stack(at: i16, range: Range) -> Num {
        Num { kind: NumKind::Stack(at), range }
    }

    pub(crate) fn truth(test: Test) -> Num {
        Num { kind: NumKind::Truth(Box::new(test)), range: Range { min: 0, max: 1 } }
    }
}

impl HeaderBits {
    /// All bits of so many bytes.
    pub(crate) const fn bytes(header: Header, at: usize, bytes: u8) -> HeaderBits {
        HeaderBits { header, at: at as u8, bytes, shift: 0, bits: bytes * 8, times: 1 }
    }

    /// So many bits, of which the lowest is bit `shift`.
    pub(crate) const fn bits(self, shift: u8, bits: u8) -> HeaderBits {
        HeaderBits { shift, bits, ..self }
    }

    pub(crate) const fn times(self, times: u8) -> HeaderBits {
        HeaderBits { times, ..self }
    }

    pub(crate) fn max(self) -> i64 {
        ((1_i64 << self.bits) - 1) * i64::from(self.times)
    }
}
