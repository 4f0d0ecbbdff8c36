//! The order for the process that talks to Kafka. The process that started it writes the order
//! first, so that secrets are neither among its arguments nor in its environment.

use crate::address::KafkaTopic;
use crate::limits::ORDER_MAX;
use crate::packets::SpreadKey;
use crate::properties::Properties;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The task of a process, and its permissions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CarrierOrder {
    /// Where records are.
    pub topic: KafkaTopic,
    /// Properties of the client.
    pub properties: Properties,
    /// The user that the process becomes, if it does.
    pub user: Option<String>,
    /// Whether it gives up what it does not need.
    pub sandbox: bool,
    /// How much it says.
    pub detail: Detail,
    /// Its task.
    pub task: Task,
}

/// How much is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Detail {
    /// Only what went wrong.
    Quiet,
    /// Also what is worth knowing.
    Usual,
    /// Everything.
    Verbose,
}

/// The task of the process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Produces the stream of a probe, which comes after the order.
    Produce(ProduceOrder),
    /// Looks whether the topic is there, and which probes it has.
    Look(Roster),
    /// Writes into the log of a probe that it is gone.
    Retire(LogName),
    /// Reads the log of a probe, and writes it as a stream.
    Consume(LogOrder),
    /// Produces records of packets, which come after the order, each for its partition.
    Packets(PacketsOrder),
    /// Produces rows, which come after the order.
    Rows,
    /// Is a member of a group of hosts, and says which partitions are for this one.
    Join(GroupOrder),
    /// Carries the packets of a partition to a run, and what that makes of them back.
    Process(PartitionOrder),
}

/// A group of hosts that share the partitions of a topic.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupOrder {
    /// Its name.
    pub group: String,
    /// Whether it is over where the log of each partition ends with the end of a run.
    pub until: LogEnd,
}

/// One partition that a host processes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartitionOrder {
    /// The group of hosts.
    pub group: String,
    /// The partition.
    pub partition: i32,
    /// The process that started this one.
    pub parent: u32,
    /// The keys that packets may be spread by, so that the rows are those of all packets.
    pub keys: Vec<SpreadKey>,
    /// The name of the probe that its partial results are of, if there are any.
    pub probe: String,
    /// The fate of rows.
    pub rows: RowsTo,
}

/// A run that processes a partition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerOrder {
    /// The arguments of the run that starts it, with the name of the program.
    pub arguments: Vec<String>,
    /// The partition.
    pub partition: i32,
    /// The runs that share the memory of the host.
    pub share: u64,
}

/// The fate of the rows of a partition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RowsTo {
    /// The process that gave the order gets them.
    Parent,
    /// They go into this topic, in one transaction with how far the partition was processed.
    Topic(String),
    /// There are no rows: partial results go into this topic, in the same way.
    Partials(String),
}

/// An event that a member of a group reports of its partitions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GroupEvent {
    /// These are for this host from now on.
    Assigned(Vec<i32>),
    /// These are not any more. The member waits for a byte before others get them.
    Revoked(Vec<i32>),
    /// All runs have ended that captured.
    Over,
}

/// An event of a partition that is processed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PartitionEvent {
    /// Processing begins with the record of this offset; with those from `from` on, state is
    /// rebuilt.
    Begun {
        /// The first record whose rows are new.
        offset: i64,
        /// The first record that is read.
        from: i64,
    },
    /// Rows, each with a newline.
    Rows(String),
    /// The run that captured has ended, and all is processed.
    Ended,
    /// Something went wrong that goes by itself: the partition is to be begun again.
    Again(String),
    /// It can't be processed.
    Failed(String),
    /// The counts of this process, in the end.
    Counts(PartitionCounts),
}

/// The counts of the part of a partition that was processed, and is committed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct PartitionCounts {
    /// Records.
    pub records: u64,
    /// Packets in them.
    pub packets: u64,
    /// Rows.
    pub rows: u64,
    /// Records that could not be used, and were left out.
    pub unusable: u64,
    /// Records that came twice, or of a run that another one had followed.
    pub repeated: u64,
    /// Packets of records that are missing.
    pub missing: u64,
}

impl PartitionCounts {
    /// Adds those of another time or partition.
    pub fn merge(&mut self, other: PartitionCounts) {
        self.records += other.records;
        self.packets += other.packets;
        self.rows += other.rows;
        self.unusable += other.unusable;
        self.repeated += other.repeated;
        self.missing += other.missing;
    }
}

/// The order to produce the stream of a probe.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProduceOrder {
    /// The probe, and its partition.
    pub log: LogName,
    /// Where records wait if there is no room in memory, if anywhere.
    pub spill: Option<SpillOrder>,
}

/// The order to produce records of packets.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct PacketsOrder {
    /// Where records wait if there is no room in memory, if anywhere.
    pub spill: Option<SpillOrder>,
}

/// Where records wait on disk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SpillOrder {
    /// A folder that is there.
    pub folder: PathBuf,
    /// Bytes that they may have.
    pub bytes_max: u64,
}

/// Which probes are looked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Roster {
    /// These. Only whether their partitions are there is looked at.
    Named(Vec<LogName>),
    /// All that have written something.
    Found,
}

/// A probe, and where its log is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct LogName {
    /// The name of the probe.
    pub probe: String,
    /// Its partition, if not that of its name.
    pub partition: Option<i32>,
}

impl LogName {
    /// Reads `NAME` or `NAME@PARTITION`.
    ///
    /// # Errors
    /// Says why it can't name a probe.
    pub fn parse(text: &str) -> Result<LogName, String> {
        let at = text.rsplit_once('@').filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()));
        let (probe, partition) = match at {
            Some((probe, n)) => {
                let n = n.parse().map_err(|_| format!("there is no partition `{n}`"))?;
                (probe, Some(n))
            }
            None => (text, None),
        };
        match weir_cluster::ProbeHead::name_fault(probe) {
            Some(fault) => Err(fault),
            None => Ok(LogName { probe: probe.to_owned(), partition }),
        }
    }
}

impl fmt::Display for LogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.probe)?;
        self.partition.map_or(Ok(()), |partition| write!(f, "@{partition}"))
    }
}

/// Which log is read, and how far.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LogOrder {
    /// The probe.
    pub log: LogName,
    /// Where reading begins.
    pub from: LogStart,
    /// Where it ends.
    pub until: LogEnd,
    /// Whether nobody is to wait for the probe where its log ends, even without an end of its run.
    pub is_retired: bool,
}

/// Where reading begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LogStart {
    /// With the oldest record there is.
    Earliest,
    /// With what comes from now on.
    Latest,
    /// With the record of this offset.
    Offset(i64),
}

impl LogStart {
    /// Reads `earliest`, `latest`, or a number.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn parse(text: &str) -> Result<LogStart, String> {
        match text {
            "earliest" => Ok(LogStart::Earliest),
            "latest" => Ok(LogStart::Latest),
            _ => match text.parse() {
                Ok(offset @ 0..) => Ok(LogStart::Offset(offset)),
                _ => Err("expected `earliest`, `latest`, or the offset of a record".to_owned()),
            },
        }
    }
}

/// Where reading ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LogEnd {
    /// Nowhere.
    Never,
    /// Where the log ends after the end of a run.
    OfRun,
}

/// Bytes of rows in one event. As JSON they take up to twice as many, and have room in
/// [`ORDER_MAX`].
const ROWS_BYTES: usize = ORDER_MAX / 4;

impl PartitionEvent {
    /// Rows that are committed together, as events that [`read_framed`] takes: of whole lines,
    /// unless one line is longer than an event.
    pub fn of_rows(text: &str) -> impl Iterator<Item = PartitionEvent> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let mut most = rest.len().min(ROWS_BYTES);
            while !rest.is_char_boundary(most) {
                most -= 1;
            }
            let end = match rest.len() == most {
                true => most,
                false => rest[..most].rfind('\n').map_or(most, |at| at + 1),
            };
            let (rows, left) = rest.split_at(end);
            rest = left;
            (!rows.is_empty()).then(|| PartitionEvent::Rows(rows.to_owned()))
        })
    }
}

/// The answer to an order, before the work begins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CarrierAnswer {
    /// All is well; the probes that were found, for [`Task::Look`].
    Ready(Vec<LogName>),
    /// All is well; the topic has so many partitions.
    Partitions(i32),
    /// It can't be done.
    Refused {
        /// Why.
        why: String,
        /// Whether the arguments are at fault.
        is_usage: bool,
    },
}

/// Writes an order or an answer, with its length.
///
/// # Errors
/// If it is longer than [`ORDER_MAX`], and those of the writer.
pub fn write_framed(what: &impl Serialize, to: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let json = serde_json::to_vec(what)?;
    check_len(json.len())?;
    let len = u32::try_from(json.len()).map_err(io::Error::other)?;
    to.write_all(&len.to_le_bytes())?;
    to.write_all(&json)?;
    to.flush()
}

/// Reads what [`write_framed`] wrote.
///
/// # Errors
/// If it ends early, is longer than [`ORDER_MAX`], or is something else.
pub fn read_framed<T: for<'a> Deserialize<'a>>(from: &mut impl Read) -> io::Result<T> {
    let mut len = [0; 4];
    from.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len) as usize;
    check_len(len)?;
    let mut json = vec![0; len];
    from.read_exact(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

/// Writes the same into a socket that nobody reads yet: what is longer than it holds would wait for
/// ever.
///
/// # Errors
/// If there is no room for it at once, and those of [`write_framed`].
pub fn write_framed_at_once(what: &impl Serialize, to: &mut UnixStream) -> io::Result<()> {
    to.set_nonblocking(true)?;
    let written = write_framed(what, to);
    to.set_nonblocking(false)?;
    written.map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(
            io::ErrorKind::OutOfMemory,
            "its order is longer than a socket holds (net.core.wmem_max)",
        ),
        _ => e,
    })
}

fn check_len(len: usize) -> io::Result<()> {
    match len > ORDER_MAX {
        true => {
            Err(io::Error::other(format!("it would have {len} bytes, and may have {ORDER_MAX}")))
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_that_nobody_reads_do_not_wait_for_ever() {
        let (mut one, mut other) = UnixStream::pair().expect("a pair");
        let order = "x".repeat(1000);
        write_framed_at_once(&order, &mut one).expect("there is room");
        assert_eq!(read_framed::<String>(&mut other).expect("an order"), order);
        let long = "x".repeat(ORDER_MAX - 2);
        let full = (0..64).find_map(|_| write_framed_at_once(&long, &mut one).err());
        let full = full.expect("a socket holds less");
        assert!(full.to_string().contains("net.core.wmem_max"), "{full}");
        let longer = write_framed(&"x".repeat(ORDER_MAX - 1), &mut Vec::new());
        assert!(longer.expect_err("it may not be").to_string().contains("1048577 bytes"));
    }

    /// A commit has up to 50,000 rows, which are more than one event takes.
    #[test]
    fn many_rows_arrive_in_whole_lines() {
        let row = "{\"source\":\"\u{e9}\",\"path\":\"\\\\\"}\n";
        let long = format!("{}\n", "\u{e9}\"".repeat(ROWS_BYTES / 2));
        let text = [&row.repeat(50_000), &*long, row].concat();
        let mut bytes = Vec::new();
        for event in PartitionEvent::of_rows(&text) {
            write_framed(&event, &mut bytes).expect("memory takes it");
        }
        let (mut from, mut found, mut whole) = (&bytes[..], String::new(), 0);
        while !from.is_empty() {
            let event = read_framed(&mut from).expect("an event that is not too long");
            let PartitionEvent::Rows(rows) = event else { panic!("{event:?}") };
            whole += usize::from(rows.ends_with('\n'));
            found += &rows;
        }
        assert!(found == text && whole > 6, "{} bytes of {}, {whole}", found.len(), text.len());
        assert_eq!(PartitionEvent::of_rows("").count(), 0);
    }

    #[test]
    fn orders_arrive() {
        let order = CarrierOrder {
            topic: KafkaTopic::parse("kafka://h:1/t").expect("an address"),
            properties: Properties::parse("security.protocol=ssl").expect("properties"),
            user: Some("nobody".to_owned()),
            sandbox: true,
            detail: Detail::Usual,
            task: Task::Consume(LogOrder {
                log: LogName::parse("north@3").expect("a name"),
                from: LogStart::Offset(7),
                until: LogEnd::OfRun,
                is_retired: false,
            }),
        };
        let mut bytes = Vec::new();
        write_framed(&order, &mut bytes).expect("memory takes it");
        assert_eq!(read_framed::<CarrierOrder>(&mut &bytes[..]).expect("an order"), order);
        assert!(read_framed::<CarrierOrder>(&mut &bytes[..9]).is_err());
        assert!(read_framed::<CarrierOrder>(&mut &b"\xff\xff\xff\xff"[..]).is_err());
    }

    #[test]
    fn names_of_logs_are_read() {
        let name = |text: &str| LogName::parse(text).map(|name| (name.probe, name.partition));
        assert_eq!(name("north"), Ok(("north".to_owned(), None)));
        assert_eq!(name("a@b:eth0@3"), Ok(("a@b:eth0".to_owned(), Some(3))));
        assert_eq!(name("a@b"), Ok(("a@b".to_owned(), None)));
        assert!(name("").is_err() && name("@3").is_err() && name("a\n").is_err());
        assert!(name("a@99999999999").is_err());
        assert_eq!(LogName::parse("a@0").expect("a name").to_string(), "a@0");
        assert_eq!(LogStart::parse("12"), Ok(LogStart::Offset(12)));
        assert!(LogStart::parse("-1").is_err() && LogStart::parse("").is_err());
    }
}
