//! The outcome of a run.

use crate::counters::Ledger;
use crate::panics::Panicked;
use std::fmt;
use std::io;
use weir_packet::source::SourceError;
use weir_plan::Program;

/// Why a run ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The source could not go on. Everything before was processed and emitted.
    Source(SourceError),
    /// The sink could not take rows.
    Sink(io::Error),
    /// An outlet could not take frames; the error names it.
    Egress(io::Error),
    /// A stage, or something else that the run is made of, panicked: a fault of this library, or of
    /// a registered function. Rows that were emitted before are written.
    Panicked {
        /// The pipeline whose stage it was, where that is known and has a name.
        pipeline: Option<String>,
        /// The message of the panic.
        words: String,
    },
}

impl RunError {
    /// A panic in a stage of a program, or elsewhere.
    pub(crate) fn panicked(panicked: Panicked, program: &Program) -> RunError {
        let Panicked { pipeline, words } = panicked;
        let pipeline = pipeline.and_then(|p| name(program, p));
        RunError::Panicked { pipeline, words }
    }
}

/// The name of a pipeline, or of the first one with a name that takes its rows.
fn name(program: &Program, p: usize) -> Option<String> {
    let mut at = p;
    loop {
        let pipeline = program.pipelines.get(at)?;
        if pipeline.name.is_some() {
            return pipeline.name.clone();
        }
        // Pipelines stand after those whose rows they take.
        let readers = program.pipelines.iter().enumerate().skip(at + 1);
        at = readers
            .filter(|(_, reader)| reader.sources().any(|i| i == at))
            .map(|(i, _)| i)
            .next()?;
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Source(e) => write!(f, "{e}"),
            RunError::Sink(e) => write!(f, "writing rows: {e}"),
            RunError::Egress(e) => write!(f, "{e}"),
            RunError::Panicked { pipeline, words } => {
                match pipeline {
                    Some(name) => write!(f, "a stage of `{name}` failed: {words}")?,
                    None => write!(f, "the run failed: {words}")?,
                }
                write!(
                    f,
                    "; this is a fault of the program, not of the packets: please report it. Rows \
                     that came before have been written; the query has stopped"
                )
            }
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Source(e) => Some(e),
            RunError::Sink(e) | RunError::Egress(e) => Some(e),
            RunError::Panicked { .. } => None,
        }
    }
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The counts of all packets received, by their fate.
    pub ledger: Ledger,
    /// Why it ended early, if it did.
    pub error: Option<RunError>,
}
