//! Why packets can't be written to a file.

use std::path::PathBuf;
use std::{error, fmt, io};
use weir_packet::ethernet::link_name;
use weir_packet::source::LinkType;

/// Why packets can't be written to a file: the error within an [`io::Error`].
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The name is that of a compressed file.
    Compressed {
        /// The file.
        name: String,
        /// A name that it may have instead.
        plain: String,
    },
    /// The folder for further files is not there.
    NoFolder {
        /// The file.
        name: String,
        /// The folder.
        folder: PathBuf,
    },
    /// Two outlets are standard output.
    SecondStdout,
    /// Standard output was to be cut into files, by this option.
    StdoutInFiles(&'static str),
    /// The file is one that is read.
    IsRead {
        /// The file.
        name: String,
        /// Its content.
        what: ReadAs,
        /// Its name where it is read.
        other: String,
    },
    /// An outlet that comes later would be a file in a folder that was not given for that.
    NotAllowed {
        /// The file.
        name: String,
        /// The folders that were.
        folders: Vec<PathBuf>,
    },
    /// An outlet that comes later would be a file that is there.
    Exists {
        /// The file.
        name: String,
    },
    /// The root of the file system was given for new files.
    Root,
    /// Two outlets are one file.
    Same {
        /// The file.
        name: String,
        /// The other outlet's name for it.
        other: String,
    },
    /// A further file is read or written otherwise by this run.
    Taken {
        /// The file.
        name: String,
    },
    /// The name says nothing of time, and each file would be written over the one before.
    NoTime {
        /// The name.
        name: String,
    },
    /// The name has something after `%` that stands for nothing.
    UnknownTime {
        /// The name.
        name: String,
    },
    /// A pcap file has frames of one link type, and others came.
    OtherLink {
        /// The file.
        name: String,
        /// Of the frames before.
        first: LinkType,
        /// Of the frame that came.
        other: LinkType,
    },
    /// The reader of a pipe took nothing for so many seconds while the run was to end.
    Stalled {
        /// How many.
        seconds: u32,
    },
    /// The system refused something.
    System {
        /// The file.
        name: String,
        /// The system's words.
        source: io::Error,
    },
}

/// A name that says when.
const EXAMPLE: &str = "such as -w x-%Y%m%d-%H%M%S.pcap";

impl WriteError {
    /// Says of which file the system refused something. That it is in use is said of it already.
    pub fn of(name: &str) -> impl Fn(io::Error) -> io::Error + use<> {
        let name = name.to_owned();
        move |source| {
            let inner = source.get_ref().and_then(|inner| inner.downcast_ref::<WriteError>());
            match inner {
                Some(WriteError::IsRead { .. } | WriteError::Same { .. }) => source,
                _ => WriteError::System { name: name.clone(), source }.into(),
            }
        }
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> io::Error {
        let kind = match &error {
            WriteError::NoFolder { .. } => io::ErrorKind::NotFound,
            WriteError::NotAllowed { .. } => io::ErrorKind::PermissionDenied,
            WriteError::Exists { .. } => io::ErrorKind::AlreadyExists,
            WriteError::Stalled { .. } => io::ErrorKind::TimedOut,
            WriteError::OtherLink { .. } => io::ErrorKind::InvalidData,
            WriteError::System { source, .. } => source.kind(),
            _ => io::ErrorKind::InvalidInput,
        };
        io::Error::new(kind, error)
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Compressed { name, plain } => {
                write!(f, "{name}: captures are not written compressed; name it {plain}")
            }
            WriteError::NoFolder { name, folder } => {
                write!(f, "{name}: there is no folder {}", folder.display())
            }
            WriteError::SecondStdout => {
                f.write_str("standard output takes the packets of one end only")
            }
            WriteError::StdoutInFiles(option) => {
                write!(f, "standard output can't be cut into files: -w needs a name for {option}")
            }
            WriteError::IsRead { name, what, other } if name == other => {
                write!(f, "{name} is {what} being read, and would be overwritten")
            }
            WriteError::IsRead { name, what, other } => {
                write!(f, "{name} is {what} being read, {other}, and would be overwritten")
            }
            WriteError::NotAllowed { name, folders } if folders.is_empty() => write!(
                f,
                "{name}: programs that come later make no files here; start the run with \
                 --allow-write FOLDER"
            ),
            WriteError::NotAllowed { name, folders } => {
                let folders: Vec<_> = folders.iter().map(|f| f.display().to_string()).collect();
                let folders = folders.join(", ");
                write!(
                    f,
                    "{name}: programs that come later make files only in {folders} (--allow-write)"
                )
            }
            WriteError::Exists { name } => {
                write!(f, "{name} exists already, and programs that come later only make new files")
            }
            WriteError::Root => {
                f.write_str("this is the whole file system; name a folder for new files")
            }
            WriteError::Same { name, other } if name == other => {
                write!(f, "{name} is the file of two outputs")
            }
            WriteError::Same { name, other } => write!(f, "{name} is the same file as {other}"),
            WriteError::Taken { name } => {
                write!(f, "{name} is read or written otherwise by this run")
            }
            WriteError::NoTime { name } => {
                write!(f, "{name}: -G needs a time in the name, {EXAMPLE}")
            }
            WriteError::UnknownTime { name } => {
                write!(f, "{name}: what % stands for there is not known, {EXAMPLE}")
            }
            WriteError::OtherLink { name, first, other } => write!(
                f,
                "{name}: a pcap file has frames of one link type, and these are {} and {}; a name \
                 that ends in .pcapng takes both",
                link_name(*first),
                link_name(*other)
            ),
            WriteError::Stalled { seconds } => {
                write!(f, "the reader took nothing for {seconds} s")
            }
            WriteError::System { name, source } => write!(f, "{name}: {source}"),
        }
    }
}

impl error::Error for WriteError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            WriteError::System { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The reason for which a run reads a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadAs {
    /// Its packets.
    Capture,
    /// Partial results of a probe.
    Partials,
    /// A query.
    Query,
    /// A table or a list that a query names.
    OfQuery,
    /// An option names it: settings of a site, filters, suppressed alerts, receivers.
    OfOption,
}

impl fmt::Display for ReadAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReadAs::Capture => "a capture",
            ReadAs::Partials => "a stream of partial results",
            ReadAs::Query => "a query",
            ReadAs::OfQuery => "a file of a query",
            ReadAs::OfOption => "a file of an option",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Callers tell errors apart by their types, and those of the system by their kinds.
    #[test]
    fn an_error_keeps_its_type_kind_and_cause() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let words = full.to_string();
        let error = WriteError::of("x.pcap")(full);
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(error.to_string(), format!("x.pcap: {words}"));
        let inner = error.get_ref().and_then(|e| e.downcast_ref::<WriteError>());
        assert!(matches!(inner, Some(WriteError::System { name, .. }) if name == "x.pcap"));
        let cause = inner.and_then(error::Error::source);
        assert_eq!(cause.map(ToString::to_string), Some(words));
    }
}
