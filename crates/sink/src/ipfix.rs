//! IPFIX (RFC 7011): messages for collectors, and the file format made of them (RFC 5655).
//! Collectors also get NetFlow 9 (RFC 3954), whose messages are much the same.
//!
//! A record has the columns of its row for which there is a value, since IPFIX knows no absent
//! ones: rows that lack different columns have different templates. A value that its element can't
//! hold, such as a negative count, is left out, too. Each message begins with the templates of its
//! records, so that a collector that starts later, or loses one, can read the next.
//!
//! The export time of a message is the event time of its latest row; no clock is read. The times of
//! flows in NetFlow 9 are milliseconds since the exporter started, which is said to be some days
//! before the first row.

mod elements;
mod version;

use crate::format::{Format, Holds};
use crate::limits::{IPFIX_DATAGRAM_BYTES, IPFIX_MESSAGE_BYTES};
use elements::{ElementColumn, Values};
use std::collections::BTreeMap;
use std::io::{self, Write};
use version::{MessageHeader, Version};
use weir_engine::rows::{Output, Rows, Sink};

/// IPFIX messages.
pub static FORMAT: Format = Format {
    name: "ipfix",
    title: "IPFIX",
    about: "Flow records of IPFIX, in binary, for collectors",
    ending: "ipfix",
    holds: Holds::OneOutput,
    is_text: false,
    check,
    make: |out, _| Box::new(Ipfix::file(out)),
};

/// Messages of NetFlow 9, which are datagrams only: there is no file format of them.
pub static NETFLOW9: Format = Format {
    name: "netflow9",
    title: "NetFlow 9",
    about: "Flow records of NetFlow 9, in binary, for collectors",
    ending: "netflow9",
    holds: Holds::OneOutput,
    is_text: false,
    check: check_netflow9,
    make: |out, _| Box::new(Ipfix::netflow9(out)),
};

/// The number of the first template.
const FIRST_TEMPLATE: u16 = 256;

/// Bytes before the first record of a set, and before the fields of a template.
const SET_HEADER: usize = 4;

/// Sees whether IPFIX can carry each column of these outputs.
///
/// # Errors
/// The first one that it can't carry, with a remedy.
fn check(outputs: &[Output]) -> Result<(), String> {
    check_columns(outputs, Version::Ipfix)
}

/// The same of NetFlow 9.
///
/// # Errors
/// As with IPFIX; texts are among what it can't carry.
fn check_netflow9(outputs: &[Output]) -> Result<(), String> {
    check_columns(outputs, Version::Netflow9)
}

fn check_columns(outputs: &[Output], version: Version) -> Result<(), String> {
    outputs.iter().try_for_each(|output| elements::columns(&output.schema, version).map(drop))
}

/// The fate of a message that can't be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failure {
    /// The run fails.
    Ends,
    /// Its rows count as refused, as when a collector is away.
    Counts,
}

/// Writes rows as messages of IPFIX.
#[derive(Debug)]
pub struct Ipfix<W> {
    out: W,
    version: Version,
    message_max: usize,
    failure: Failure,
    columns: Vec<ElementColumn>,
    /// The template of the rows that have just these columns, a bit each.
    templates: BTreeMap<u64, u16>,
    sets: Vec<DataSet>,
    /// A record while it is made.
    record: Vec<u8>,
    /// A message while it is made.
    message: Vec<u8>,
    /// Records of all messages before this one.
    sequence: u32,
    /// The latest event time so far, in nanoseconds.
    latest: i64,
    /// When the exporter started, as NetFlow 9 has it: milliseconds since 1970. It is known from
    /// the first row on.
    started_ms: Option<i64>,
    /// Rows given so far, those of the present message, and those that came to a message's end.
    given: u64,
    pending: u64,
    written: u64,
    refused: u64,
    failed: bool,
}

/// The records of one template in a message.
#[derive(Debug)]
struct DataSet {
    mask: u64,
    template: u16,
    records: u32,
    bytes: Vec<u8>,
}

impl<W: Write> Ipfix<W> {
    /// A sink that writes a file or a stream, and fails where that can't be written.
    pub fn file(out: W) -> Ipfix<W> {
        Ipfix::new(out, Version::Ipfix, IPFIX_MESSAGE_BYTES, Failure::Ends)
    }

    /// A sink whose messages are datagrams, one for each call of `write`. The rows of those that
    /// can't be sent are counted as refused, and the run goes on.
    pub fn datagrams(out: W) -> Ipfix<W> {
        Ipfix::new(out, Version::Ipfix, IPFIX_DATAGRAM_BYTES, Failure::Counts)
    }

    /// The same with messages of NetFlow 9.
    pub fn netflow9(out: W) -> Ipfix<W> {
        Ipfix::new(out, Version::Netflow9, IPFIX_DATAGRAM_BYTES, Failure::Counts)
    }

    fn new(out: W, version: Version, message_max: usize, failure: Failure) -> Ipfix<W> {
        Ipfix {
            out,
            version,
            message_max,
            failure,
            columns: Vec::new(),
            templates: BTreeMap::new(),
            sets: Vec::new(),
            record: Vec::new(),
            message: Vec::new(),
            sequence: 0,
            latest: 0,
            started_ms: None,
            given: 0,
            pending: 0,
            written: 0,
            refused: 0,
            failed: false,
        }
    }

    /// Makes the record of a row; which columns it has.
    fn make_record(&mut self, rows: &Rows, i: usize) -> u64 {
        self.record.clear();
        let values = Values { arena: &rows.arena, started_ms: self.started_ms.unwrap_or(0) };
        let mut mask = 0;
        for (bit, ElementColumn { column, element }) in self.columns.iter().enumerate() {
            let column = &rows.columns[*column];
            if column.present.has(i) && element.form.put(column.raw(i), &values, &mut self.record) {
                mask |= 1 << bit;
            }
        }
        mask
    }

    /// Puts the record in the set of its template, after a new message has begun if there is no
    /// room left.
    fn push_record(&mut self, mask: u64) -> io::Result<()> {
        let template_bytes = SET_HEADER + 4 * mask.count_ones() as usize;
        let is_new = |sets: &[DataSet]| sets.iter().all(|set| set.mask != mask);
        let padding = self.version.padding_max();
        let added = if is_new(&self.sets) { template_bytes + SET_HEADER + padding } else { 0 };
        let is_full = self.message_bytes() + added + self.record.len() > self.message_max;
        if is_full && !self.sets.is_empty() {
            self.write_message()?;
        }
        if is_new(&self.sets) {
            let template = self.template(mask)?;
            self.sets.push(DataSet { mask, template, records: 0, bytes: Vec::new() });
        }
        let set = self.sets.iter_mut().find(|set| set.mask == mask).expect("it was made");
        set.bytes.extend_from_slice(&self.record);
        set.records += 1;
        self.pending += 1;
        Ok(())
    }

    /// The number of the template for these columns.
    fn template(&mut self, mask: u64) -> io::Result<u16> {
        if let Some(&template) = self.templates.get(&mask) {
            return Ok(template);
        }
        let number = u16::try_from(self.templates.len()).ok();
        let number = number.and_then(|number| FIRST_TEMPLATE.checked_add(number));
        let number = number.ok_or_else(|| {
            let title = self.version.title();
            let why = "rows lack too many different sets of columns for its templates";
            io::Error::new(io::ErrorKind::InvalidData, format!("{title}: {why}"))
        })?;
        self.templates.insert(mask, number);
        Ok(number)
    }

    /// Bytes of the present message.
    fn message_bytes(&self) -> usize {
        let set = |set: &DataSet| {
            let template = SET_HEADER + 4 * set.mask.count_ones() as usize;
            template + SET_HEADER + set.bytes.len() + self.version.padding_max()
        };
        self.version.header_bytes() + SET_HEADER + self.sets.iter().map(set).sum::<usize>()
    }

    /// Writes the present message, if it has a record.
    fn write_message(&mut self) -> io::Result<()> {
        if self.sets.is_empty() {
            return Ok(());
        }
        let seconds = u32::try_from(self.latest / 1_000_000_000).unwrap_or(0);
        let sets = std::mem::take(&mut self.sets);
        let records: u32 = sets.iter().map(|set| set.records).sum();
        // Of whole seconds, so that a collector finds the start to the millisecond.
        let uptime_ms = i64::from(seconds) * 1000 - self.started_ms.unwrap_or(0);
        let header = MessageHeader {
            seconds,
            // It wraps after 49 days, as that of a router does.
            uptime_ms: uptime_ms as u32,
            records,
            templates: sets.len() as u32,
            sequence: self.sequence,
        };
        let message = &mut self.message;
        message.clear();
        self.version.put_header(&header, message);
        put_set(message, self.version, self.version.template_set(), |message| {
            for set in &sets {
                put_template(message, set, &self.columns);
            }
        });
        for set in &sets {
            let put = |message: &mut Vec<u8>| message.extend_from_slice(&set.bytes);
            put_set(message, self.version, set.template, put);
        }
        self.version.end(message);
        self.sequence = self.sequence.wrapping_add(self.version.units(records));
        let rows = std::mem::take(&mut self.pending);
        match (self.send(), self.failure) {
            (Ok(()), _) => self.written += rows,
            (Err(_), Failure::Counts) => self.refused += rows,
            (Err(e), Failure::Ends) => {
                self.failed = true;
                return Err(e);
            }
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        match self.failure {
            Failure::Ends => self.out.write_all(&self.message),
            Failure::Counts => match self.out.write(&self.message)? {
                whole if whole == self.message.len() => Ok(()),
                _ => Err(io::ErrorKind::WriteZero.into()),
            },
        }
    }
}

fn put_u16(out: &mut Vec<u8>, number: u16) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends a set with its number and length.
fn put_set(message: &mut Vec<u8>, version: Version, id: u16, body: impl FnOnce(&mut Vec<u8>)) {
    let start = message.len();
    put_u16(message, id);
    put_u16(message, 0);
    body(message);
    if version == Version::Netflow9 {
        let end = start + (message.len() - start).next_multiple_of(4);
        message.resize(end, 0);
    }
    let length = (message.len() - start) as u16;
    message[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends the template of a set: the number and length of each element.
fn put_template(message: &mut Vec<u8>, set: &DataSet, columns: &[ElementColumn]) {
    put_u16(message, set.template);
    put_u16(message, set.mask.count_ones() as u16);
    for (bit, column) in columns.iter().enumerate() {
        if set.mask & 1 << bit != 0 {
            put_u16(message, column.element.id);
            put_u16(message, column.element.form.length());
        }
    }
}

/// When an exporter whose first row is of this time is said to have started: milliseconds since
/// 1970. Flows may have begun long before their row: half of what an uptime can say is for them.
fn start_before(ns: i64) -> i64 {
    (ns / 1_000_000_000 * 1000 - (1 << 31)).max(0)
}

impl<W: Write> Sink for Ipfix<W> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let refused = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        self.columns = match outputs {
            [] => Vec::new(),
            [output] => elements::columns(&output.schema, self.version).map_err(refused)?,
            _ => {
                let title = self.version.title();
                return Err(refused(format!("{title} holds the rows of one output")));
            }
        };
        Ok(())
    }

    fn rows(&mut self, _output: usize, rows: &Rows) -> io::Result<()> {
        self.given += rows.len as u64;
        self.latest = rows.clock.iter().copied().fold(self.latest, i64::max);
        self.started_ms.get_or_insert(start_before(self.latest));
        for i in 0..rows.len {
            match self.make_record(rows, i) {
                // Nothing of the row can be said in IPFIX.
                0 => self.refused += 1,
                mask => self.push_record(mask).inspect_err(|_| self.failed = true)?,
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_message()?;
        self.out.flush().inspect_err(|_| self.failed = true)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn unwritten(&self) -> u64 {
        if self.failed { self.given - self.written - self.refused } else { 0 }
    }
}

#[cfg(test)]
mod tests;
