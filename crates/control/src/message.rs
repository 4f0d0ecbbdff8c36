//! The messages on the control socket: a line of JSON each way, and after a request the files that
//! its query names, one after the other.

use crate::limits::{FILES_MAX, LINE_MAX};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read, Write};

/// A request of a client to a run.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(tag = "command", rename_all = "lowercase")]
pub enum Request {
    /// List the programs that run.
    List,
    /// Report what has happened so far.
    Stats,
    /// Run a further program.
    Add(QueryText),
    /// Run this program instead of the one with its name.
    Replace(QueryText),
    /// End a program.
    Remove {
        /// Its name.
        name: String,
    },
    /// List the lines that say which alerts are not reported.
    Suppressions,
    /// Add a line.
    Suppress {
        /// The line.
        line: String,
    },
    /// Remove a line.
    Unsuppress {
        /// The line; `until` says nothing.
        line: String,
    },
    /// Put the lines of these files in place of those that came from files.
    #[serde(rename = "reload-suppressions")]
    ReloadSuppressions {
        /// The files.
        files: Vec<Attached>,
    },
}

/// A query on its way to a run.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct QueryText {
    /// The name of its program.
    pub name: String,
    /// Where the text comes from, for messages.
    pub source: String,
    /// The text.
    pub text: String,
    /// Values of its parameters.
    pub params: Vec<(String, String)>,
    /// The files that it names.
    pub files: Vec<Attached>,
}

/// A file that a query names.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Attached {
    /// The path, as the query writes it.
    pub path: String,
    /// How many bytes it has.
    pub len: u64,
    /// The bytes, which follow the line.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

impl Request {
    fn files_mut(&mut self) -> &mut [Attached] {
        match self {
            Request::Add(text) | Request::Replace(text) => &mut text.files,
            Request::ReloadSuppressions { files } => files,
            Request::List | Request::Stats | Request::Remove { .. } => &mut [],
            Request::Suppressions | Request::Suppress { .. } | Request::Unsuppress { .. } => {
                &mut []
            }
        }
    }
}

/// The answer of a run.
#[derive(Serialize, Deserialize, Default, PartialEq, Debug)]
pub struct Reply {
    /// Why the run did nothing, if it refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Lines for the user.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The programs that run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramState>,
    /// The lines that say which alerts are not reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suppressions: Vec<SuppressionState>,
    /// The counts of the run so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
}

impl Reply {
    /// Says why the run did nothing.
    pub fn refusal(error: impl Into<String>) -> Reply {
        Reply { error: Some(error.into()), ..Reply::default() }
    }
}

/// A line that says which alerts are not reported.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct SuppressionState {
    /// The line.
    pub line: String,
    /// Where it comes from: `file` or `ctl`.
    pub from: String,
}

/// The state of a program.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct ProgramState {
    /// Its name.
    pub name: String,
    /// Where its query comes from.
    pub source: String,
    /// When it was added or last replaced, in seconds since 1970.
    pub since: u64,
    /// Rows that it has emitted.
    pub rows: u64,
    /// Rows that are not written: the sink did not take them in time, or failed.
    pub refused: u64,
    /// Why its rows are not written any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The numbers of a ledger, as docs/control.md lists them.
#[derive(Serialize, Deserialize, Default, PartialEq, Debug)]
pub struct Counts {
    /// Packets that the source delivered.
    pub received: u64,
    /// Packets that the capture filter refused.
    pub filtered: u64,
    /// Packets that the kernel finished since no query wanted them.
    #[serde(default)]
    pub kernel_filtered: u64,
    /// Packets that the kernel finished by aggregating them.
    #[serde(default)]
    pub kernel_counted: u64,
    /// Packets that the kernel handed up since a query wanted them.
    #[serde(default)]
    pub kernel_wanted: u64,
    /// Packets that the kernel handed up since it could not tell what they are.
    #[serde(default)]
    pub kernel_unclear: u64,
    /// Packets that the kernel handed up since a table had no room for their group.
    #[serde(default)]
    pub kernel_full: u64,
    /// Packets that the kernel dropped or handed out, as a query says.
    #[serde(default)]
    pub kernel_acted: u64,
    /// Whether the kernel hands all packets up, since programs have changed; of runs whose kernel
    /// runs a part of the programs that they began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_hands_up: Option<bool>,
    /// Packets that the programs saw.
    pub processed: u64,
    /// Packets that the snap length cut.
    pub cut: u64,
    /// Malformed packets.
    pub malformed: u64,
    /// Packets that the interface lost.
    pub lost_by_interface: u64,
    /// Packets that the kernel lost.
    pub lost_in_kernel: u64,
    /// Packets that found the ring full.
    pub lost_in_ring: u64,
    /// Packets that came after their window had closed.
    pub late: u64,
    /// Rows that came so late to sessions that their order by time gives others.
    #[serde(default)]
    pub lagging: u64,
    /// Packets whose time is before that of one that came earlier.
    #[serde(default)]
    pub disordered: u64,
    /// Packets whose time is far ahead of the others.
    pub wild: u64,
    /// Packets without a time.
    #[serde(default)]
    pub untimed: u64,
    /// Packets whose record claims more than 1 MiB.
    #[serde(default)]
    pub overlong: u64,
    /// Groups and rows that were left out for want of room.
    pub evicted: u64,
    /// Values left absent: out of range, or divided by zero.
    pub undefined: u64,
    /// Windows that lack the rows of `fill`.
    pub unfilled: u64,
    /// Rows of `join left` and `join anti` that were left out at the end of the input.
    #[serde(default)]
    pub undecided: u64,
    /// Packets that `deduplicate` left out, being copies of others.
    #[serde(default)]
    pub copies: u64,
    /// TLS hellos that did not complete.
    #[serde(default)]
    pub unfinished: u64,
    /// Data of packets that fields did not show, by protocol and reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<UnreadCount>,
    /// Alerts that a list of suppressions left out.
    #[serde(default)]
    pub suppressed: u64,
    /// Rows that were emitted.
    pub rows: u64,
    /// Rows that the sink did not take in time.
    pub refused: u64,
    /// Rows that could not be written.
    #[serde(default)]
    pub unwritten: u64,
    /// Packets that `anonymize` withheld.
    #[serde(default)]
    pub withheld: u64,
    /// Packets that outlets took and may have dropped, at most, since interfaces went down.
    #[serde(default)]
    pub doubtful: u64,
    /// Each interface: its name, the packets received from it, and the packets lost.
    pub interfaces: Vec<(String, u64, u64)>,
    /// The packets that each worker processed, once for each way in which packets are spread.
    #[serde(default)]
    pub workers: Vec<u64>,
    /// The packets around rows, where `capture` keeps some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured: Option<Captured>,
    /// The fate of alerts, where they are delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<Deliveries>,
}

/// Data that fields of a protocol did not show, for one reason.
#[derive(Serialize, Deserialize, Default, PartialEq, Debug)]
pub struct UnreadCount {
    /// The name of the protocol, such as `dns`.
    pub protocol: String,
    /// Why, such as `further in the packet`.
    pub reason: String,
    /// How much.
    pub count: u64,
}

/// The fate of alerts that are delivered, all receivers together.
#[derive(Serialize, Deserialize, Default, PartialEq, Debug)]
pub struct Deliveries {
    /// Rows of alerts that were emitted.
    pub alerts: u64,
    /// Alerts that a receiver took.
    pub delivered: u64,
    /// Alerts that wait for a receiver.
    pub waiting: u64,
    /// Alerts that a receiver will not get.
    pub undelivered: u64,
}

/// The numbers of the files that `capture` writes, with the packets around rows.
#[derive(Serialize, Deserialize, Default, PartialEq, Debug)]
pub struct Captured {
    /// Files that were begun.
    pub files: u64,
    /// Packets in them.
    pub frames: u64,
    /// Bytes of those packets.
    pub bytes: u64,
    /// Files that may lack packets from the beginning.
    pub short: u64,
    /// Files that are full.
    pub full: u64,
    /// Packets that full files lack.
    pub left_out: u64,
    /// Packets that the disk did not take in time.
    pub missed: u64,
    /// Files that were not begun: too many, or too many at once.
    pub refused: u64,
    /// Files that were not begun: a file of that name existed.
    pub existed: u64,
    /// Files that failed.
    pub failed: u64,
    /// Why the first of those that failed did so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Writes a request with its files.
///
/// # Errors
/// If the other side does not take them.
pub(crate) fn write(out: &mut dyn Write, mut request: Request) -> io::Result<()> {
    write_line(out, &request)?;
    request.files_mut().iter().try_for_each(|file| out.write_all(&file.bytes))?;
    out.flush()
}

/// Writes a line.
///
/// # Errors
/// As for [`write()`].
pub(crate) fn write_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

/// Reads a request with its files.
///
/// # Errors
/// If the line is no request, the request is too large, or it does not come.
pub(crate) fn read(from: &mut dyn BufRead) -> io::Result<Request> {
    let mut request: Request = read_line(from)?;
    let files = request.files_mut();
    let all = files.iter().try_fold(0u64, |sum, file| sum.checked_add(file.len));
    if all.is_none_or(|all| all > FILES_MAX) {
        let reason = format!("files of more than {} MiB", FILES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    for file in files {
        let n = (&mut *from).take(file.len).read_to_end(&mut file.bytes)?;
        if (n as u64) < file.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(request)
}

/// Reads a line.
///
/// # Errors
/// As for [`read`].
pub(crate) fn read_line<T: for<'de> Deserialize<'de>>(from: &mut dyn BufRead) -> io::Result<T> {
    let mut line = Vec::new();
    from.take(LINE_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&line).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// Reads any bytes as a request. A request is the same when it is written and read again.
#[cfg(any(test, fuzzing))]
pub fn fuzz_request(bytes: &[u8]) {
    let Ok(request) = read(&mut &*bytes) else { return };
    let mut written = Vec::new();
    write(&mut written, request.clone()).expect("memory takes it");
    assert_eq!(read(&mut &written[..]).expect("it was one"), request);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(path: &str, bytes: &[u8]) -> Attached {
        Attached { path: path.to_owned(), len: bytes.len() as u64, bytes: bytes.to_vec() }
    }

    fn text(files: Vec<Attached>) -> QueryText {
        let [name, source, text] = ["a", "a.weir", "packets\n| \"é\""].map(str::to_owned);
        QueryText { name, source, text, params: vec![("n".to_owned(), "5".to_owned())], files }
    }

    #[test]
    fn requests_arrive_as_they_were_sent() {
        let files = vec![attached("x.csv", b"1\n2\n"), attached("empty", b""), attached("y", &[0])];
        let all = [
            Request::List,
            Request::Add(text(files)),
            Request::Replace(text(Vec::new())),
            Request::Remove { name: "a \"b\"".to_owned() },
            Request::Stats,
            Request::Suppressions,
            Request::Suppress { line: "x a=1".to_owned() },
            Request::Unsuppress { line: String::new() },
            Request::ReloadSuppressions { files: vec![attached("l", b"x\n")] },
        ];
        let mut bytes = Vec::new();
        for request in &all {
            write(&mut bytes, request.clone()).expect("memory");
        }
        let mut from = &bytes[..];
        for request in &all {
            assert_eq!(read(&mut from).expect("a request"), *request);
        }
        assert_eq!(read(&mut from).expect_err("the end").kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn anything_but_a_request_is_refused() {
        let kind = |bytes: &[u8]| read(&mut &bytes[..]).expect_err("refused").kind();
        assert_eq!(kind(b""), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(b"GET / HTTP/1.1\r\n"), io::ErrorKind::InvalidData);
        assert_eq!(kind(b"{\"command\":\"sing\"}\n"), io::ErrorKind::InvalidData);
        let missing = "{\"command\":\"add\",\"name\":\"\",\"source\":\"\",\"text\":\"\",\
                       \"params\":[],\"files\":[{\"path\":\"x\",\"len\":LEN}]}\nshort";
        assert_eq!(kind(missing.replace("LEN", "9").as_bytes()), io::ErrorKind::UnexpectedEof);
        let huge = missing.replace("LEN", "9999999999");
        assert_eq!(kind(huge.as_bytes()), io::ErrorKind::InvalidData);
    }

    #[test]
    fn damaged_requests_are_refused_or_read_as_others() {
        let mut bytes = Vec::new();
        let request = Request::Add(text(vec![attached("x.csv", b"1\n2\n")]));
        write(&mut bytes, request).expect("memory");
        for at in 0..bytes.len() {
            fuzz_request(&bytes[..at]);
            for flip in [1, 0x20, 0x80] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                fuzz_request(&damaged);
            }
        }
    }
}
