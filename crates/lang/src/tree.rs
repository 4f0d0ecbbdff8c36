//! The syntax tree: what the text says, before any name or type is looked up.
//!
//! Trees compare by what they say: where a node stands in the text is not part of it. Literals
//! and brackets are kept as written, so that formatting loses nothing.

use crate::diagnostic::Span;
use weir_plan::{BinaryOp, JoinKind, UnaryOp, Value};

/// A node and its place.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    pub(crate) node: T,
    pub(crate) span: Span,
}

impl<T> Spanned<T> {
    pub(crate) fn new(node: T, span: Span) -> Spanned<T> {
        Spanned { node, span }
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Spanned<T>) -> bool {
        self.node == other.node
    }
}

/// A name as written, dots included.
pub(crate) type Name = Spanned<String>;

/// A query.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Tree {
    pub(crate) statements: Vec<Spanned<Statement>>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Statement {
    /// `param name: ty = default`; of a type that is no set, the default is one value.
    Param { name: Name, ty: Name, default: Spanned<Set> },
    /// `let name = body`
    Let { name: Name, body: LetBody },
    /// A pipeline whose rows are printed.
    Pipeline(Pipeline),
    /// A param or let that could not be read but for its name.
    Broken(Name),
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum LetBody {
    Pipeline(Pipeline),
    /// A constant, an alias of an expression, or the bare name of a pipeline.
    Expr(Expr),
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Pipeline {
    /// `packets`, or the name of a pipeline.
    pub(crate) source: Name,
    pub(crate) stages: Vec<Spanned<Stage>>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Stage {
    Where(Expr),
    Extend(Vec<Item>),
    Project(Vec<Item>),
    /// Items without names of their own, which are to be names.
    ProjectAway(Vec<Item>),
    /// Items with names.
    Rename(Vec<Item>),
    Summarize(Summarize),
    Scan(Scan),
    AnalyzeTcp(KeyBounds),
    Top(Top),
    Limit(Expr),
    Join(Join),
    Union(Vec<Name>),
    Distinct(Distinct),
    Deduplicate(Deduplicate),
    Sample(Sample),
    Each(Item),
    Capture(Capture),
    Alert(Box<Alert>),
    Metric(Metric),
    Hello(KeyBounds),
    /// Something that is done with all packets.
    Act(Act),
    Branch(Vec<Spanned<BranchArm>>),
    Print,
    /// A stage of the design that this version does not have.
    Unsupported(Name),
    /// A stage that could not be read. A mistake inside a stage that adds or drops no columns
    /// leaves the columns known (`harmless`).
    Broken {
        harmless: bool,
    },
}

/// `capture DURATION by …`, or with `before` and `after` of their own.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Capture {
    pub(crate) around: Option<Expr>,
    pub(crate) before: Option<Expr>,
    pub(crate) after: Option<Expr>,
    pub(crate) keys: Vec<Item>,
}

/// `alert "text" severity high key … hold D repeat D storm N max N`
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Alert {
    /// A string.
    pub(crate) text: Expr,
    pub(crate) severity: Option<Name>,
    /// Texts, too.
    pub(crate) category: Option<Expr>,
    pub(crate) technique: Option<Expr>,
    pub(crate) next: Option<Expr>,
    pub(crate) keys: Vec<Name>,
    pub(crate) hold: Option<Expr>,
    pub(crate) repeat: Option<Expr>,
    /// Keys that begin within a minute and are reported one by one.
    pub(crate) storm: Option<Expr>,
    pub(crate) max: Option<Expr>,
}

/// `metric kind "name" of column by columns max N help "text"`
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Metric {
    pub(crate) kind: Name,
    /// A string.
    pub(crate) name: Expr,
    pub(crate) of: Option<Name>,
    pub(crate) keys: Vec<Name>,
    pub(crate) max: Option<Expr>,
    /// A string.
    pub(crate) help: Option<Expr>,
}

/// An act on a packet.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Act {
    Pass,
    Drop,
    Forward(Expr),
    Mirror(Expr),
    Broadcast(Expr),
    Steer {
        keys: Vec<Expr>,
        to: Expr,
    },
    Trim(Expr),
    Tag(Expr),
    /// The fields are to be names.
    Anonymize {
        fields: Vec<Expr>,
        key: Expr,
    },
    /// Only in arms: the row goes on after the branch.
    Next,
}

impl Act {
    /// Whether the packet goes on after it.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Act::Trim(_) | Act::Tag(_) | Act::Mirror(_) | Act::Anonymize { .. })
    }
}

/// `when cond -> act | act`, or `else -> …`
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct BranchArm {
    pub(crate) when: Option<Expr>,
    pub(crate) acts: Vec<Spanned<Act>>,
}

/// `name = expr`, or an expression that gives its own name.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Item {
    pub(crate) name: Option<Name>,
    pub(crate) expr: Expr,
}

impl Item {
    pub(crate) fn span(&self) -> Span {
        self.name.as_ref().map_or(self.expr.span, |n| n.span.to(self.expr.span))
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Summarize {
    pub(crate) aggs: Vec<AggItem>,
    pub(crate) keys: Vec<Item>,
    pub(crate) over: Option<Expr>,
    pub(crate) every: Option<Expr>,
    pub(crate) lateness: Option<Expr>,
    pub(crate) fill: Option<Fill>,
    pub(crate) sessions: Box<Sessions>,
    pub(crate) max: Option<Expr>,
}

/// `fill idle DURATION`, `fill from start`, or just the word, which stands there.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Fill {
    pub(crate) word: Spanned<()>,
    pub(crate) from_start: bool,
    pub(crate) idle: Option<Expr>,
}

/// The clauses of a `summarize` that make sessions.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Sessions {
    /// Whether `every` counts rows.
    pub(crate) rows: bool,
    pub(crate) idle: Option<Expr>,
    /// The expression after `session`.
    pub(crate) gap: Option<Expr>,
    pub(crate) active: Option<Expr>,
    pub(crate) until: Option<Expr>,
    pub(crate) linger: Option<Expr>,
    pub(crate) unless: Option<Expr>,
}

impl Sessions {
    /// The words that clauses start with.
    pub(crate) const WORDS: [&str; 6] = ["session", "active", "until", "linger", "unless", "idle"];

    /// The clauses, in that order.
    pub(crate) fn clauses(&self) -> [&Option<Expr>; 6] {
        [&self.gap, &self.active, &self.until, &self.linger, &self.unless, &self.idle]
    }

    /// The clause that starts with a word.
    pub(crate) fn clause_mut(&mut self, word: &str) -> Option<&mut Option<Expr>> {
        let Sessions { gap, active, until, linger, unless, idle, .. } = self;
        let clauses = [gap, active, until, linger, unless, idle];
        Sessions::WORDS.into_iter().zip(clauses).find(|(w, _)| *w == word).map(|(_, c)| c)
    }
}

/// `name = func(arg) where cond`
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct AggItem {
    pub(crate) item: Item,
    pub(crate) cond: Option<Expr>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Scan {
    /// Each with a name.
    pub(crate) states: Vec<Item>,
    pub(crate) keys: Vec<Expr>,
    pub(crate) idle: Option<Expr>,
    pub(crate) max: Option<Expr>,
    pub(crate) update: Expr,
}

/// `idle … max …`, after `analyze tcp` and `hello`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct KeyBounds {
    pub(crate) idle: Option<Expr>,
    pub(crate) max: Option<Expr>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Join {
    /// The word for what comes out, if it is there.
    pub(crate) kind: Option<JoinKind>,
    pub(crate) right: Name,
    pub(crate) keys: Vec<JoinKey>,
    pub(crate) within: Option<Member>,
    /// Each with a name.
    pub(crate) defaults: Vec<Item>,
    pub(crate) max: Option<Expr>,
}

/// `column`, or `column == column`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct JoinKey {
    pub(crate) left: Name,
    pub(crate) right: Option<Name>,
}

impl JoinKey {
    pub(crate) fn span(&self) -> Span {
        self.right.as_ref().map_or(self.left.span, |right| self.left.span.to(right.span))
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Top {
    pub(crate) n: Expr,
    pub(crate) by: Vec<SortKey>,
    pub(crate) per: Vec<Expr>,
    pub(crate) max: Option<Expr>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Distinct {
    pub(crate) keys: Vec<Expr>,
    pub(crate) idle: Option<Expr>,
    pub(crate) max: Option<Expr>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Deduplicate {
    pub(crate) within: Expr,
    pub(crate) max: Option<Expr>,
}

/// `sample take in of by keys`; `None` for `sample take% by keys`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Sample {
    pub(crate) take: Expr,
    pub(crate) of: Option<Expr>,
    pub(crate) keys: Vec<Expr>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct SortKey {
    pub(crate) expr: Expr,
    /// `Some(true)` for `asc`, `Some(false)` for `desc`.
    pub(crate) ascending: Option<bool>,
}

pub(crate) type Expr = Spanned<ExprKind>;

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum ExprKind {
    Literal {
        value: Value,
        text: String,
    },
    Name(String),
    Unary(UnaryOp, Box<Expr>),
    /// Operands joined by operators of one level, to be taken from left to right. A chain and not
    /// nested pairs, so that a long sum is no deep tree.
    Chain {
        first: Box<Expr>,
        rest: Vec<(Spanned<BinaryOp>, Expr)>,
    },
    Compare(Box<Expr>, Spanned<BinaryOp>, Box<Expr>),
    In {
        value: Box<Expr>,
        negated: bool,
        set: Spanned<Set>,
    },
    Call {
        func: Name,
        args: Vec<Expr>,
    },
    /// `header[offset:size]`
    Bytes {
        header: Name,
        offset: Box<Expr>,
        size: Option<Box<Expr>>,
    },
    Match {
        value: Box<Expr>,
        arms: Vec<Arm>,
    },
    Paren(Box<Expr>),
    Tuple(Vec<Expr>),
    /// An expression that could not be read; already reported.
    Error,
}

/// The set on the right of `in`, and the value of a param of a set.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Set {
    /// `{a, b, 1..9}`; only a param's has no members.
    Braces(Vec<Member>),
    /// A range, a network, or the name of one.
    One(Box<Member>),
}

impl Set {
    /// Its members, as written.
    pub(crate) fn members(&self) -> &[Member] {
        match self {
            Set::Braces(members) => members,
            Set::One(member) => std::slice::from_ref(member),
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Member {
    Value(Expr),
    /// Both ends included.
    Range(Expr, Expr),
}

impl Member {
    pub(crate) fn span(&self) -> Span {
        match self {
            Member::Value(e) => e.span,
            Member::Range(a, b) => a.span.to(b.span),
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Arm {
    pub(crate) pattern: Pattern,
    pub(crate) body: Expr,
}

pub(crate) type Pattern = Spanned<PatternKind>;

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum PatternKind {
    /// `_`
    Any,
    Member(Member),
    /// `{22, 80}`
    Braces(Vec<Member>),
    /// `22 or 80`
    Or(Vec<Pattern>),
    /// `(0, _)`; with one part, a bracketed pattern.
    Tuple(Vec<Pattern>),
    /// A pattern that could not be read; already reported.
    Error,
}

impl ExprKind {
    /// The expression without the brackets around it.
    pub(crate) fn unbracketed(&self) -> &ExprKind {
        let mut kind = self;
        while let ExprKind::Paren(inner) = kind {
            kind = &inner.node;
        }
        kind
    }
}
