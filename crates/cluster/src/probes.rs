//! The streams of probes, open, and whether they belong together.

use crate::framing::{ProbeReader, StreamFault};
use crate::head::ProbeHead;
use crate::limits::STREAMS_MAX;
use std::fmt;
use std::io::Read;

/// A probe stream of which the head was read.
pub struct ProbeStream {
    /// What it was opened by, such as the path of a file.
    pub(crate) name: String,
    pub(crate) head: ProbeHead,
    pub(crate) reader: ProbeReader<Box<dyn Read + Send>>,
}

impl ProbeStream {
    /// Reads the head of a stream, which it waits for. Reads are small: give it a buffer.
    ///
    /// # Errors
    /// Where this is no stream of a probe.
    pub fn new(name: &str, from: Box<dyn Read + Send>) -> Result<ProbeStream, StreamFault> {
        let (reader, head) = ProbeReader::new(from)?;
        Ok(ProbeStream { name: name.to_owned(), head, reader })
    }

    /// What it begins with.
    pub fn head(&self) -> &ProbeHead {
        &self.head
    }
}

/// Why streams can't be merged.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MixedProbes {
    /// There are none.
    None,
    /// There are more than [`STREAMS_MAX`].
    TooMany(usize),
    /// A probe runs another query than the merging process: the stream, the version of Weir that
    /// wrote it, and its fingerprint, which is not the other one.
    Query {
        /// The stream.
        stream: String,
        /// The version of Weir that wrote it.
        weir: String,
        /// Its fingerprint.
        found: String,
        /// That of the query to be merged.
        expected: String,
    },
    /// Two probes read packets in different ways.
    Rules {
        /// The first stream, and another.
        streams: [String; 2],
        /// The option of `weir run` that differs.
        option: &'static str,
        /// Its values.
        values: [String; 2],
    },
}

impl fmt::Display for MixedProbes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MixedProbes::None => f.write_str("there is no stream of a probe"),
            MixedProbes::TooMany(n) => {
                write!(f, "there are {n} streams, and at most {STREAMS_MAX} are read at once")
            }
            MixedProbes::Query { stream, weir, found, expected } => write!(
                f,
                "{stream}: its probe (weir {weir}) runs another query, or has other parameters: \
                 the fingerprint of its partial results is {found}, and that of this query \
                 {expected}"
            ),
            MixedProbes::Rules { streams: [first, other], option, values: [a, b] } => write!(
                f,
                "{other}: its probe has {option} {b}, and that of {first} has {option} {a}: what \
                 they counted can't be added up"
            ),
        }
    }
}

impl std::error::Error for MixedProbes {}

/// Refuses streams whose probes read packets in different ways.
pub(crate) fn check(streams: &[ProbeStream]) -> Result<(), MixedProbes> {
    let first = streams.first().ok_or(MixedProbes::None)?;
    if streams.len() > STREAMS_MAX {
        return Err(MixedProbes::TooMany(streams.len()));
    }
    for other in &streams[1..] {
        for ((option, a), (_, b)) in values(&first.head).into_iter().zip(values(&other.head)) {
            if a != b {
                let streams = [first.name.clone(), other.name.clone()];
                return Err(MixedProbes::Rules { streams, option, values: [a, b] });
            }
        }
    }
    Ok(())
}

fn values(head: &ProbeHead) -> [(&'static str, String); 3] {
    let rules = &head.rules;
    [
        ("--headers", rules.headers.clone()),
        ("--fragments", rules.fragments.to_string()),
        ("--lateness", format!("{}ns", rules.lateness_ns)),
    ]
}
