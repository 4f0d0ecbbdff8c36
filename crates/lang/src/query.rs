//! A query as it is handed in, and what it is compiled with.

use crate::files::Files;
use weir_packet::fields::FlowKey;
use weir_packet::walk::TunnelPorts;
use weir_plan::{Signatures, TimeZone};

/// A query and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The name of the query in diagnostics: a file name, or `-e`.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// The options that a query is compiled with.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Values of params by name, as text; the last one of a name counts.
    pub params: &'a [(String, String)],
    /// The name of the program: its alerts are named after it.
    pub program: &'a str,
    /// Functions beside the built-in ones.
    pub signatures: &'a Signatures,
    /// Where the files that a query names are found; without it, they are not.
    pub files: Option<&'a dyn Files>,
    /// The options of a run that change what the text means.
    pub rules: ReadingRules,
    /// The texts of a library, by name: its queries are sources of this one.
    pub library: Option<Library>,
}

/// The text of a query of a library, by its name.
pub type Library = fn(&str) -> Option<&'static str>;

/// The options of a run that change what the text of a query means.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadingRules {
    /// The parts that the keys of flows have besides their own.
    pub flow_key: FlowKey,
    /// Which ports mean tunnels besides their own: `anonymize` looks into them.
    pub tunnel_ports: TunnelPorts,
    /// Where windows of days begin, and what parts of a time are of, if that is not UTC.
    pub zone: Option<TimeZone>,
}

impl Default for Options<'_> {
    /// No values for params, no functions, no files, and a program called `query`.
    fn default() -> Self {
        static NONE: Signatures = Signatures { scalars: Vec::new(), aggregates: Vec::new() };
        let rules = ReadingRules::default();
        let program = "query";
        Options { params: &[], program, signatures: &NONE, files: None, rules, library: None }
    }
}
