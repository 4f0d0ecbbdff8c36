//! The messages between the run and the process that delivers, a line of JSON each. First comes the
//! [`Setup`] and a report that all is ready, then alerts go one way and reports the other. After
//! the last alert comes [`END`]: where it is missing, the run was killed.

use crate::counts::TargetCounts;
use crate::limits::SETUP_BYTES_MAX;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read as _, Write};
use std::path::PathBuf;

/// The line after the last alert.
pub(crate) const END: &[u8] = b"end\n";

/// The settings of the delivering process.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Setup {
    /// Whom alerts go to.
    pub targets: Vec<Target>,
    /// The name of this host.
    pub host: String,
    /// The user that it becomes, if any.
    pub user: Option<String>,
    /// The folder in which alerts that wait are kept, if they are.
    pub spill: Option<PathBuf>,
    /// Whether it gives up what it does not need.
    pub confines: bool,
}

/// A report of the delivering process.
#[derive(Serialize, Deserialize, Clone, PartialEq, Default, Debug)]
pub(crate) struct Report {
    /// Why it can't begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<String>,
    /// Lines that it has read.
    pub(crate) seen: u64,
    pub(crate) targets: Vec<TargetCounts>,
    /// Messages for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) say: Vec<String>,
}

impl Report {
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        to.write_all(&line)?;
        to.flush()
    }

    /// The next report; `None` at the end.
    pub(crate) fn read(from: &mut dyn BufRead) -> io::Result<Option<Report>> {
        let mut line = String::new();
        match from.take(SETUP_BYTES_MAX).read_line(&mut line)? {
            0 => Ok(None),
            _ => Ok(Some(serde_json::from_str(&line)?)),
        }
    }
}

/// Reads the setup, the first line.
///
/// # Errors
/// Of reading; or if the line is none.
pub fn read_setup(from: &mut dyn BufRead) -> io::Result<Setup> {
    let mut line = String::new();
    from.take(SETUP_BYTES_MAX).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// Reports why nothing can be delivered.
///
/// # Errors
/// Of writing.
pub fn refuse(to: &mut dyn Write, fault: String) -> io::Result<()> {
    Report { fault: Some(fault), ..Report::default() }.write(to)
}
