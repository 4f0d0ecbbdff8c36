//! What goes over the control socket: a line of JSON each way, and behind a question the files that
//! its query names, one after the other.

use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read, Write};
use weir_capture::lookback::LookbackCounts;
use weir_engine::counters::Ledger;
use weir_packet::source::Account;

/// Bytes of a line at most.
const LINE_MAX: u64 = 16 << 20;

/// Bytes of files that come with a question at most, all together.
const FILES_MAX: u64 = 512 << 20;

/// What is asked of a run.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "command", rename_all = "lowercase")]
pub(crate) enum Request {
    /// Which programs run.
    List,
    /// What happened so far.
    Stats,
    /// Run a further program.
    Add(Text),
    /// Run this program instead of the one of its name.
    Replace(Text),
    /// End a program.
    Remove {
        /// Its name.
        name: String,
    },
}

/// A query on its way.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub(crate) struct Text {
    /// What its program is to be called.
    pub(crate) name: String,
    /// Where the text is from, for messages.
    pub(crate) source: String,
    /// The text.
    pub(crate) text: String,
    /// Values of its params.
    pub(crate) params: Vec<(String, String)>,
    /// The files that it names.
    pub(crate) files: Vec<Attached>,
}

/// A file that a query names.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub(crate) struct Attached {
    /// As the query names it.
    pub(crate) path: String,
    /// How many bytes it has.
    pub(crate) len: u64,
    /// They stand behind the line.
    #[serde(skip)]
    pub(crate) bytes: Vec<u8>,
}

impl Request {
    fn files_mut(&mut self) -> &mut [Attached] {
        match self {
            Request::Add(text) | Request::Replace(text) => &mut text.files,
            Request::List | Request::Stats | Request::Remove { .. } => &mut [],
        }
    }
}

/// What a run answers.
#[derive(Serialize, Deserialize, Default, PartialEq, Debug)]
pub(crate) struct Reply {
    /// Why nothing was done, if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// What there is to say besides, in lines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) text: String,
    /// The programs that run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) programs: Vec<State>,
    /// What happened so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) counts: Option<Counts>,
}

impl Reply {
    /// That nothing was done, and why.
    pub(crate) fn refusal(error: impl Into<String>) -> Reply {
        Reply { error: Some(error.into()), ..Reply::default() }
    }
}

/// How a program is.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub(crate) struct State {
    /// Its name.
    pub(crate) name: String,
    /// Where its query is from.
    pub(crate) source: String,
    /// When it came or was last replaced, in seconds since 1970.
    pub(crate) since: u64,
    /// Rows that it has put out, ...
    pub(crate) rows: u64,
    /// ... those among them that were left out since nobody took them in time.
    pub(crate) refused: u64,
    /// Why its rows are not written any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
}

/// The numbers of a ledger.
#[derive(Serialize, Deserialize, Default, PartialEq, Debug)]
pub(crate) struct Counts {
    pub(crate) received: u64,
    pub(crate) filtered: u64,
    pub(crate) processed: u64,
    pub(crate) cut: u64,
    pub(crate) malformed: u64,
    pub(crate) lost_by_interface: u64,
    pub(crate) lost_in_kernel: u64,
    pub(crate) lost_in_ring: u64,
    pub(crate) late: u64,
    pub(crate) wild: u64,
    pub(crate) evicted: u64,
    pub(crate) undefined: u64,
    pub(crate) unfilled: u64,
    pub(crate) rows: u64,
    pub(crate) refused: u64,
    #[serde(default)]
    pub(crate) unwritten: u64,
    /// Of each interface its name, what was received from it and what was lost.
    pub(crate) interfaces: Vec<(String, u64, u64)>,
    /// What became of packets around rows, where some are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) captured: Option<Captured>,
}

/// What became of packets around rows: see [`LookbackCounts`].
#[derive(Serialize, Deserialize, Default, PartialEq, Debug)]
pub(crate) struct Captured {
    pub(crate) files: u64,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) short: u64,
    pub(crate) full: u64,
    pub(crate) left_out: u64,
    pub(crate) missed: u64,
    pub(crate) refused: u64,
    pub(crate) existed: u64,
    pub(crate) failed: u64,
    /// Why, of the first that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl From<LookbackCounts> for Captured {
    fn from(captures: LookbackCounts) -> Captured {
        let LookbackCounts { files, frames, bytes, short, full, left_out, missed, .. } = captures;
        let LookbackCounts { refused, existed, failed, error, .. } = captures;
        Captured {
            files,
            frames,
            bytes,
            short,
            full,
            left_out,
            missed,
            refused,
            existed,
            failed,
            error,
        }
    }
}

impl Counts {
    /// Those of a ledger, of each interface, and of packets around rows.
    pub(crate) fn new(
        ledger: &Ledger,
        interfaces: &[(String, Account)],
        captures: Option<LookbackCounts>,
    ) -> Counts {
        let of = |(name, account): &(String, Account)| {
            (name.clone(), account.received, account.lost.total())
        };
        Counts {
            received: ledger.received,
            filtered: ledger.filtered,
            processed: ledger.processed,
            cut: ledger.cut,
            malformed: ledger.malformed_total(),
            lost_by_interface: ledger.lost.interface,
            lost_in_kernel: ledger.lost.kernel,
            lost_in_ring: ledger.lost.ring,
            late: ledger.late,
            wild: ledger.wild,
            evicted: ledger.evicted,
            undefined: ledger.undefined,
            unfilled: ledger.unfilled,
            rows: ledger.rows,
            refused: ledger.refused,
            unwritten: ledger.unwritten,
            interfaces: interfaces.iter().map(of).collect(),
            captured: captures.map(Captured::from),
        }
    }
}

/// Writes a question with its files.
///
/// # Errors
/// Where the other side does not take them.
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

/// Reads a question with its files.
///
/// # Errors
/// Where it is none, or larger than questions are, or does not come.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(path: &str, bytes: &[u8]) -> Attached {
        Attached { path: path.to_owned(), len: bytes.len() as u64, bytes: bytes.to_vec() }
    }

    fn text(files: Vec<Attached>) -> Text {
        let [name, source, text] = ["a", "a.weir", "packets\n| \"é\""].map(str::to_owned);
        Text { name, source, text, params: vec![("n".to_owned(), "5".to_owned())], files }
    }

    #[test]
    fn questions_come_as_they_were_asked() {
        let files = vec![attached("x.csv", b"1\n2\n"), attached("empty", b""), attached("y", &[0])];
        let all = [
            Request::List,
            Request::Add(text(files)),
            Request::Replace(text(Vec::new())),
            Request::Remove { name: "a \"b\"".to_owned() },
            Request::Stats,
        ];
        let mut bytes = Vec::new();
        let again = |request: &Request| -> Request {
            serde_json::from_value(serde_json::to_value(request).expect("JSON")).expect("the same")
        };
        for request in &all {
            let mut copy = again(request);
            let (to, from) = (
                copy.files_mut(),
                match request {
                    Request::Add(text) => &text.files[..],
                    _ => &[],
                },
            );
            to.iter_mut().zip(from).for_each(|(to, from)| to.bytes.clone_from(&from.bytes));
            write(&mut bytes, copy).expect("memory");
        }
        let mut from = &bytes[..];
        for request in &all {
            assert_eq!(read(&mut from).expect("a question"), *request);
        }
        assert_eq!(read(&mut from).expect_err("the end").kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_no_question_is_refused() {
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
}
