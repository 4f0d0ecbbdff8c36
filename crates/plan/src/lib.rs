//! The meaning of a query: typed stages, expressions, keys, placement.
//!
//! No text and no packets: the language lowers to these plain values, the engine runs them, and
//! `weir explain` prints them. Everything here is checked before it is built, so the engine may
//! rely on the types that nodes carry.

#![forbid(unsafe_code)]

pub mod address;
pub mod aggregates;
pub mod alert;
pub mod analyze;
pub mod capture;
pub mod change;
pub mod cluster;
pub mod counters;
pub mod ends;
pub mod expr;
pub mod flow;
pub mod functions;
mod hello;
pub mod join;
pub mod keys;
pub mod limits;
pub mod metric;
pub mod origin;
pub mod partitions;
pub mod pattern;
pub mod physical;
pub mod place;
pub mod print;
mod program;
pub mod registered;
mod row_keys;
pub mod rows;
mod schema;
mod share;
pub mod stage;
pub mod suppress;
pub mod table;
pub mod together;
pub mod types;
pub mod value;
pub mod window;
mod zone;

pub use aggregates::{Agg, AggFunc};
pub use alert::Alert;
pub use analyze::AnalyzeTcp;
pub use capture::Capture;
pub use ends::Ends;
pub use expr::{BinaryOp, Expr, ExprKind, Member, UnaryOp};
pub use functions::{AggSignature, Func, ScalarSignature, Signatures};
pub use hello::{HELLO_COLUMNS, Hello};
pub use join::{Join, JoinColumn, JoinKind, Union, UnionColumn, Within};
pub use metric::{Metric, MetricKind};
pub use program::{Input, Pipeline, Program, SourceKind};
pub use rows::{Deduplicate, Distinct, Each, Parts, Per, Reshaping, Sample, SampleBy};
pub use stage::{
    Column, EndReason, Order, Scan, Schema, Session, SortKey, Stage, Summarize, Window,
};
pub use suppress::{SuppressedIf, Suppression};
pub use types::Type;
pub use value::Value;
pub use window::Fill;
pub use zone::{TimeZone, ZoneSpan};
