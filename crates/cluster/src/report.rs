//! The reports of a merge: its result, how far probes are, and how each stream ended.

use crate::framing::StreamFault;
use crate::probes::{ForeignStream, MixedProbes};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use weir_engine::exchange::UnreadableMessage;
use weir_engine::run::Outcome;

/// The result of a merge.
#[derive(Debug)]
pub struct MergeOutcome {
    /// The counts of all probes, and what ended the merge early, if something did.
    pub outcome: Outcome,
    /// A report for each stream, in the order in which they were given.
    pub streams: Vec<StreamReport>,
    /// The streams that had no head.
    pub headless: Vec<ForeignStream>,
    /// Whether it was stopped before all streams had ended.
    pub was_stopped: bool,
    /// How many probes were reported as late.
    pub late: usize,
}

/// How a merge is stopped and asked while it goes on.
pub struct MergeControl<'a> {
    /// Ends it once it is set.
    pub stop: &'a AtomicBool,
    /// Asks how far the probes are: it is cleared, and `tell` gets the answer.
    pub asked: &'a AtomicBool,
    /// Takes the answer: the probes whose streams have not ended.
    pub tell: &'a dyn Fn(&[ProbeProgress]),
    /// When probes are reported as late.
    pub skew: SkewWatch<'a>,
    /// Takes the report of a stream, when messages are first missing in it, and when the life of
    /// its probe breaks off.
    pub lost: &'a dyn Fn(&StreamReport),
}

/// By how much the windows of a live probe come later than those of another: one of their clocks is
/// off, or the messages of one take so long.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProbeDelay {
    /// So much, at least.
    pub delay: Duration,
    /// The name of the other probe, which was the first of all.
    pub first: String,
}

/// When probes are reported as late.
#[derive(Clone, Copy)]
pub struct SkewWatch<'a> {
    /// How much later their windows may come, besides how long windows wait for late packets: a
    /// busy probe closes them by a packet, a quiet one by its clock.
    pub most: Duration,
    /// Takes the name of a late probe, once.
    pub tell: &'a dyn Fn(&str, &ProbeDelay),
}

/// How far a probe is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProbeProgress {
    /// The name of the probe.
    pub probe: String,
    /// All windows that end at or before this time have come from it, if any have, in nanoseconds
    /// since 1970.
    pub closed: Option<i64>,
    /// By how much its last windows came later than those of another live probe, at least; `None`
    /// where too little is known, or it is not live.
    pub delay: Option<ProbeDelay>,
    /// Messages that are missing in its stream.
    pub missing: u64,
    /// Lives that broke off in its stream.
    pub broken: u64,
    /// Whether others wait for it.
    pub standing: ProbeStanding,
}

/// How a probe stands to the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ProbeStanding {
    /// Windows of other probes wait for it.
    Slowest,
    /// It is as far as the others, or waits for them.
    Ahead,
    /// Its run has ended, and windows don't wait for it until it starts again.
    Ended,
    /// It was retired, or its run broke off, and windows don't wait for it until it sends again.
    Retired,
    /// Its run was refused, and windows don't wait for it until its next one.
    Refused,
}

/// How much came from a stream, and how it ended.
#[derive(Debug)]
pub struct StreamReport {
    /// The name by which it was opened, such as the path of a file.
    pub name: String,
    /// The probe that wrote it.
    pub probe: String,
    /// Messages that were taken in.
    pub messages: u64,
    /// Messages that had come before, in this stream or in another of the same probe.
    pub repeated: u64,
    /// Messages that are missing between others.
    pub missing: u64,
    /// Groups that came after their window was out, and were left out.
    pub late: u64,
    /// Lives of the probe that came in the stream.
    pub lives: u64,
    /// Lives before the last one that broke off, or whose source failed.
    pub broken: u64,
    /// How it ended.
    pub end: StreamEnd,
}

/// How a stream ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamEnd {
    /// With the end of the probe's run.
    Ended,
    /// With the end of the probe's run, whose source had failed: the probe has said why.
    SourceFailed,
    /// Before the probe's run did: it was killed, or the stream was cut here.
    Gone(Option<StreamFault>),
    /// With a message that can't be used.
    Unreadable(UnreadableMessage),
    /// With a message of another probe than its head says, or of a life whose head has not come.
    OtherProbe,
    /// With a life of the probe that does not go together with the others.
    Mixed(MixedProbes),
    /// It was not read to its end: nothing in it could change the result, or the merge was stopped.
    Unread,
}

impl StreamReport {
    /// Whether all messages of the probe came in time, as far as they were wanted.
    pub fn is_whole(&self) -> bool {
        self.missing == 0
            && self.late == 0
            && self.broken == 0
            && matches!(self.end, StreamEnd::Ended | StreamEnd::Unread)
    }
}

impl fmt::Display for StreamReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StreamReport { name, probe, messages, .. } = self;
        write!(f, "probe {probe} ({name}): {messages} messages")?;
        if self.repeated > 0 {
            write!(f, ", {} that came twice", self.repeated)?;
        }
        if self.missing > 0 {
            write!(f, ", {} missing between them", self.missing)?;
        }
        if self.late > 0 {
            write!(f, ", {} groups left out, whose windows were out", self.late)?;
        }
        match (self.lives, self.broken) {
            (1, _) => {}
            (lives, 0) => write!(f, ", in {lives} lives")?,
            (lives, broken) => write!(f, ", in {lives} lives, of which {broken} broke off")?,
        }
        match &self.end {
            StreamEnd::Ended => Ok(()),
            StreamEnd::SourceFailed => f.write_str("; the source of the probe failed"),
            StreamEnd::Gone(None) => {
                f.write_str("; the stream ended before the run of the probe did")
            }
            StreamEnd::Gone(Some(fault)) => write!(f, "; {fault}"),
            StreamEnd::Unreadable(why) => write!(f, "; {why}"),
            StreamEnd::OtherProbe => {
                f.write_str("; it holds a message of another probe, and was not read on")
            }
            StreamEnd::Mixed(why) => write!(f, "; its next life is refused: {why}"),
            StreamEnd::Unread => f.write_str("; not read to its end"),
        }
    }
}
