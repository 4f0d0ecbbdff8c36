//! Expressions of a job: one tree, printed as SQL for the views of a job and as JSON for its
//! operators. Both mean the same: an absent value is NULL, a comparison
//! with one is unknown, and `IS TRUE` makes false of that.

use serde_json::{Value as Json, json};
use std::fmt;

/// An expression of a job.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Term {
    /// A column of the row: by its name in SQL, by its position in operators, where the states of a
    /// scan stand after the columns.
    Column {
        name: String,
        at: usize,
    },
    /// No value, of this type of SQL.
    Null(&'static str),
    Bool(bool),
    Int(i64),
    /// An integer that stands in a comparison, where SQL takes one of 32 bits as one of 64.
    Small(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// The length of a network, which SQL has as an integer of 32 bits.
    Bits(u8),
    /// A function of the job, `weir_…`.
    Call(&'static str, Vec<Term>),
    Coalesce(Vec<Term>),
    /// An integer as a float.
    ToFloat(Box<Term>),
    Not(Box<Term>),
    /// Whether it is true: neither false nor unknown.
    IsTrue(Box<Term>),
    Exists(Box<Term>),
    And(Vec<Term>),
    /// Of none it is false.
    Or(Vec<Term>),
    /// By one of `=`, `<>`, `<`, `<=`, `>`, `>=`.
    Compare(&'static str, Box<[Term; 2]>),
    /// Whether the first is among the others and what lies between them.
    Between(Box<[Term; 3]>),
    /// A condition, and what holds where it is true and where it is not.
    If(Box<[Term; 3]>),
}

impl Term {
    pub(crate) fn call(name: &'static str, arg: Term) -> Term {
        Term::Call(name, vec![arg])
    }

    /// The bytes of a key of these parts.
    pub(crate) fn key(parts: Vec<Term>) -> Term {
        match parts {
            none if none.is_empty() => Term::Bytes(Vec::new()),
            parts => Term::Call("weir_key", parts),
        }
    }

    pub(crate) fn compare(sign: &'static str, left: Term, right: Term) -> Term {
        Term::Compare(sign, Box::new([left, right]))
    }

    /// The same, and false where it is unknown.
    pub(crate) fn true_only(self) -> Term {
        Term::IsTrue(Box::new(self))
    }

    /// The tree as the job reads it.
    pub(crate) fn json(&self) -> Json {
        let all = |terms: &[Term]| Json::from_iter(terms.iter().map(Term::json));
        match self {
            Term::Column { at, .. } => json!({ "column": at }),
            Term::Null(_) => json!({ "null": true }),
            Term::Bool(v) => json!({ "bool": v }),
            // Integers of 64 bits are strings.
            Term::Int(v) | Term::Small(v) => json!({ "int": v.to_string() }),
            Term::Float(v) => json!({ "float": format!("{v:e}") }),
            Term::Text(v) => json!({ "text": v }),
            Term::Bytes(v) => json!({ "bytes": digits(v) }),
            Term::Bits(v) => json!({ "bits": v }),
            Term::Call(name, args) => json!({ "call": name, "args": all(args) }),
            Term::Coalesce(args) => json!({ "op": "coalesce", "args": all(args) }),
            Term::ToFloat(a) => json!({ "op": "float", "args": [a.json()] }),
            Term::Not(a) => json!({ "op": "not", "args": [a.json()] }),
            Term::IsTrue(a) => json!({ "op": "is_true", "args": [a.json()] }),
            Term::Exists(a) => json!({ "op": "exists", "args": [a.json()] }),
            Term::And(args) => json!({ "op": "and", "args": all(args) }),
            Term::Or(args) => json!({ "op": "or", "args": all(args) }),
            Term::Compare(sign, args) => json!({ "op": sign, "args": all(&args[..]) }),
            Term::Between(args) => json!({ "op": "between", "args": all(&args[..]) }),
            Term::If(args) => json!({ "op": "if", "args": all(&args[..]) }),
        }
    }
}

/// As SQL.
impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Column { name, .. } => f.write_str(&ident(name)),
            Term::Null(ty) => write!(f, "CAST(NULL AS {ty})"),
            Term::Bool(v) => f.write_str(if *v { "TRUE" } else { "FALSE" }),
            // A bare number would be one of 32 bits, and choose other functions.
            Term::Int(v) => write!(f, "CAST('{v}' AS BIGINT)"),
            Term::Small(v) => write!(f, "{v}"),
            Term::Float(v) => write!(f, "CAST('{v:e}' AS DOUBLE)"),
            Term::Text(v) => write!(f, "'{}'", v.replace('\'', "''")),
            Term::Bytes(v) => write!(f, "CAST(X'{}' AS BYTES)", digits(v)),
            Term::Bits(v) => write!(f, "{v}"),
            Term::Call(name, args) => write!(f, "{name}({})", joined(args, ", ")),
            Term::Coalesce(args) => write!(f, "COALESCE({})", joined(args, ", ")),
            Term::ToFloat(a) => write!(f, "CAST({a} AS DOUBLE)"),
            Term::Not(a) => write!(f, "(NOT {a})"),
            Term::IsTrue(a) => match **a {
                // These have brackets of their own only where there are several.
                Term::Compare(..) | Term::Between(_) => write!(f, "(({a}) IS TRUE)"),
                _ => write!(f, "({a} IS TRUE)"),
            },
            Term::Exists(a) => write!(f, "({a} IS NOT NULL)"),
            Term::And(args) => write!(f, "({})", joined(args, " AND ")),
            Term::Or(args) if args.is_empty() => f.write_str("FALSE"),
            Term::Or(args) => write!(f, "({})", joined(args, " OR ")),
            Term::Compare(sign, args) => write!(f, "{} {sign} {}", args[0], args[1]),
            Term::Between(args) => {
                write!(f, "{} BETWEEN {} AND {}", args[0], args[1], args[2])
            }
            Term::If(args) => {
                write!(f, "CASE WHEN {} THEN {} ELSE {} END", args[0], args[1], args[2])
            }
        }
    }
}

fn joined(terms: &[Term], between: &str) -> String {
    terms.iter().map(Term::to_string).collect::<Vec<_>>().join(between)
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

/// A name in SQL.
pub(crate) fn ident(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
