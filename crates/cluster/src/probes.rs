//! The streams of probes, open, and whether they belong together.

use crate::framing::{ProbeReader, StreamFault};
use crate::head::ProbeHead;
use crate::limits::STREAMS_MAX;
use crate::skew::ClockFault;
use std::fmt;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use weir_engine::exchange::ProducerId;

/// How long is waited at a time before it is looked whether the merge is to stop.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// The name by which a stream was opened, and its bytes. Reads are small: give it a buffer.
pub type ProbeInput = (String, Box<dyn Read + Send>);

/// A probe stream of which the head was read.
pub struct ProbeStream {
    /// The name by which it was opened, such as the path of a file.
    pub(crate) name: String,
    pub(crate) head: ProbeHead,
    pub(crate) reader: ProbeReader<Box<dyn Read + Send>>,
}

/// The streams of which the head was read, and the others, both in the order of the inputs.
pub struct OpenedStreams {
    /// The streams of probes.
    pub streams: Vec<ProbeStream>,
    /// The streams without a head: nobody knows which probe wrote them, and what it saw.
    pub headless: Vec<ForeignStream>,
}

impl ProbeStream {
    /// Reads the heads of all streams at once, since each waits for its probe; `None` if `stop` was
    /// set before all had come.
    ///
    /// # Errors
    /// The first stream, where none has a head.
    pub fn read_heads(
        inputs: Vec<ProbeInput>,
        stop: &AtomicBool,
    ) -> Result<Option<OpenedStreams>, ForeignStream> {
        let (to, heads) = mpsc::channel();
        let mut all: Vec<Option<Result<ProbeStream, ForeignStream>>> =
            inputs.iter().map(|_| None).collect();
        for (number, input) in inputs.into_iter().enumerate() {
            let (to, name) = (to.clone(), input.0.clone());
            // No thread may wait for it any more.
            let read = move || drop(to.send((number, ProbeStream::read(input))));
            let started = thread::Builder::new().name("probe-head".to_owned()).spawn(read);
            started.map_err(|e| ForeignStream { name, fault: StreamFault::Io(e) })?;
        }
        while all.iter().any(Option::is_none) {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            match heads.recv_timeout(PATIENCE) {
                Ok((number, stream)) => all[number] = Some(stream),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        let (mut streams, mut headless) = (Vec::new(), Vec::new());
        for stream in all.into_iter().flatten() {
            match stream {
                Ok(stream) => streams.push(stream),
                Err(foreign) => headless.push(foreign),
            }
        }
        match streams.is_empty() && !headless.is_empty() {
            true => Err(headless.swap_remove(0)),
            false => Ok(Some(OpenedStreams { streams, headless })),
        }
    }

    fn read((name, from): ProbeInput) -> Result<ProbeStream, ForeignStream> {
        match ProbeReader::new(from) {
            Ok((reader, head)) => Ok(ProbeStream { name, head, reader }),
            Err(fault) => Err(ForeignStream { name, fault }),
        }
    }
}

/// Where the streams begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// With the first message of a life: those that are not there are missing.
    OfLife,
    /// Anywhere, as somebody wanted: what was before is not asked for.
    Anywhere,
}

/// A stream that is none of a probe, or was cut before its head was whole.
#[derive(Debug)]
pub struct ForeignStream {
    name: String,
    fault: StreamFault,
}

impl ForeignStream {
    /// A number for the probe that wrote it, which has no name that is known.
    pub(crate) fn id(&self) -> ProducerId {
        // Names of probes have no such character.
        ProducerId::named(&format!("\0{}", self.name), 0)
    }
}

impl fmt::Display for ForeignStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.fault)
    }
}

impl std::error::Error for ForeignStream {}

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
    /// Clocks may differ by more than they are to.
    Clocks(ClockFault),
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
            MixedProbes::Clocks(fault) => fault.fmt(f),
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
    let named = |stream: &ProbeStream| NamedHead::new(&stream.name, &stream.head);
    let first = named(first);
    streams[1..].iter().try_for_each(|other| first.reads_as(&named(other)))
}

/// A head, and the name of its stream.
#[derive(Clone)]
pub(crate) struct NamedHead {
    name: String,
    head: ProbeHead,
}

impl NamedHead {
    pub(crate) fn new(name: &str, head: &ProbeHead) -> NamedHead {
        NamedHead { name: name.to_owned(), head: head.clone() }
    }

    /// Refuses a probe that reads packets in another way.
    pub(crate) fn reads_as(&self, other: &NamedHead) -> Result<(), MixedProbes> {
        for ((option, a), (_, b)) in values(&self.head).into_iter().zip(values(&other.head)) {
            if a != b {
                let streams = [self.name.clone(), other.name.clone()];
                return Err(MixedProbes::Rules { streams, option, values: [a, b] });
            }
        }
        Ok(())
    }

    /// How long windows wait for packets that come out of order, in nanoseconds.
    pub(crate) fn lateness_ns(&self) -> i64 {
        self.head.rules.lateness_ns
    }

    /// Refuses a probe that does not run this query.
    pub(crate) fn runs_as(&self, other: &NamedHead) -> Result<(), MixedProbes> {
        other.runs(&self.head.fingerprint)
    }

    /// Refuses a probe that runs another query.
    pub(crate) fn runs(&self, expected: &str) -> Result<(), MixedProbes> {
        if self.head.fingerprint == expected {
            return Ok(());
        }
        Err(MixedProbes::Query {
            stream: self.name.clone(),
            weir: self.head.weir.clone(),
            found: self.head.fingerprint.clone(),
            expected: expected.to_owned(),
        })
    }
}

fn values(head: &ProbeHead) -> [(&'static str, String); 3] {
    let rules = &head.rules;
    [
        ("--headers", rules.headers.clone()),
        ("--fragments", rules.fragments.to_string()),
        ("--lateness", format!("{}ns", rules.lateness_ns)),
    ]
}
