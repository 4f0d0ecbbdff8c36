//! Partial results of many probes: what one probe has written, under as many names as are wanted,
//! window by window.

use super::record::KafkaRecord;
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::process::Command;
use weir_cluster::{ProbeHead, ProbeReader, StreamItem};
use weir_engine::exchange::{Body, Message};

/// Where a message has the number of its probe and that of its life (docs/partials.md).
const PROBE_AT: usize = 25;
const EPOCH_AT: usize = 41;

/// A broker takes records of up to a megabyte, and longer messages in parts, which are not made
/// here.
const RECORD_MAX: usize = 900_000;

/// The messages that each of the probes sends, and the rows that come of them.
pub(super) struct ProbeLoad {
    /// As that of the one probe that wrote it.
    head: ProbeHead,
    names: Vec<String>,
    /// The messages of each window. The windows of the last one end the life of the probe.
    pub(super) windows: Vec<Vec<Vec<u8>>>,
    /// Rows of each window, by their `ts`.
    pub(super) rows: BTreeMap<String, u64>,
    /// The sum of their column `packets`, all probes together.
    pub(super) packets: u64,
}

impl ProbeLoad {
    /// Runs a query over a capture: the partial results of its windows, for so many probes.
    pub(super) fn new(
        weir: &Path,
        query: &str,
        trace: &Path,
        probes: usize,
        folder: &Path,
    ) -> Result<ProbeLoad> {
        let (stream, rows) = (folder.join("probe.wps"), folder.join("probe.json"));
        let mut publish = Command::new(weir);
        // The packets of the trace are in order.
        publish.args(["run", "-q", "-e", query, "--lateness", "0s", "--probe", "p0", "-r"]);
        publish.arg(trace);
        crate::process::run("weir", publish.arg("--publish").arg(&stream))?;
        let mut run = Command::new(weir);
        run.args(["run", "-q", "-e", query, "-o", "json", "-r"]).arg(trace);
        crate::process::time("weir", run.stdout(File::create(&rows).context("a file for rows")?))?;
        let (head, windows) = read_windows(&stream)?;
        let text = fs::read_to_string(&rows).context("rows of weir")?;
        let (mut rows, mut packets) = (BTreeMap::new(), 0);
        for row in text.lines().map(Row::read) {
            let Row { ts, packets: of_row } = row?;
            packets += of_row;
            *rows.entry(ts.to_owned()).or_default() += 1;
        }
        let windows_and_rows = (windows.len(), rows.len());
        ensure!(windows.len() == rows.len(), "windows sent and of rows: {windows_and_rows:?}");
        let names = (0..probes).map(|number| format!("p{number}")).collect();
        Ok(ProbeLoad { head, names, windows, rows, packets: packets * probes as u64 })
    }

    /// The names of all probes, as a job takes them.
    pub(super) fn roster(&self) -> String {
        self.names.join(",")
    }

    pub(super) fn probes(&self) -> usize {
        self.names.len()
    }

    /// Groups that all probes send.
    pub(super) fn partials(&self) -> u64 {
        self.rows.values().sum::<u64>() * self.names.len() as u64
    }

    /// The heads of all probes.
    pub(super) fn heads(&self, partitions: usize) -> Result<Vec<KafkaRecord>> {
        let head = |number: usize| -> Result<KafkaRecord> {
            let head = ProbeHead { probe: self.names[number].clone(), ..self.head.clone() };
            let value = head.bytes().context("the head of a probe")?;
            Ok(self.record(number, partitions, value))
        };
        (0..self.names.len()).map(head).collect()
    }

    /// Hands on the messages of a window, of all probes.
    pub(super) fn window(
        &self,
        at: usize,
        partitions: usize,
        send: &mut dyn FnMut(&KafkaRecord) -> Result<()>,
    ) -> Result<()> {
        for (number, name) in self.names.iter().enumerate() {
            let id = ProbeHead { probe: name.clone(), ..self.head.clone() }.id();
            for message in &self.windows[at] {
                let mut value = message.clone();
                value[PROBE_AT..EPOCH_AT].copy_from_slice(&id.probe.to_le_bytes());
                send(&self.record(number, partitions, value))?;
            }
        }
        Ok(())
    }

    fn record(&self, number: usize, partitions: usize, value: Vec<u8>) -> KafkaRecord {
        KafkaRecord {
            partition: i32::try_from(number % partitions).unwrap_or(0),
            key: Some(self.names[number].clone().into_bytes()),
            value,
            headers: vec![("weir-epoch".to_owned(), self.head.epoch.to_string().into_bytes())],
        }
    }
}

/// The head of a stream, and its messages by windows: each ends with the word that it is closed.
fn read_windows(stream: &Path) -> Result<(ProbeHead, Vec<Vec<Vec<u8>>>)> {
    let file = File::open(stream).with_context(|| stream.display().to_string())?;
    let (mut reader, head) = ProbeReader::new(BufReader::new(file))?;
    let (mut windows, mut open, mut has_groups) = (Vec::new(), Vec::new(), false);
    let mut message = Vec::new();
    while reader.next(&mut message)? == StreamItem::Message {
        ensure!(message.len() <= RECORD_MAX, "a message has {} bytes", message.len());
        let read = Message::read(&message)?;
        let probe = &message[PROBE_AT..EPOCH_AT];
        ensure!(*probe == read.probe.to_le_bytes(), "messages have the probe in another place");
        has_groups |= matches!(read.body, Body::Window { .. });
        let is_closed = matches!(read.body, Body::Closed(_));
        open.push(std::mem::take(&mut message));
        if is_closed && has_groups {
            windows.push(std::mem::take(&mut open));
            has_groups = false;
        }
    }
    if has_groups {
        windows.push(std::mem::take(&mut open));
    }
    windows.last_mut().context("no window is in the stream")?.append(&mut open);
    Ok((head, windows))
}

/// The columns of a row of JSON that are looked at.
pub(super) struct Row<'a> {
    pub(super) ts: &'a str,
    pub(super) packets: u64,
}

impl Row<'_> {
    /// Reads a line.
    pub(super) fn read(line: &str) -> Result<Row<'_>> {
        let cell = |name: &str| {
            let rest = line.split_once(&format!("\"{name}\":"))?.1;
            rest.find([',', '}']).map(|end| &rest[..end])
        };
        let ts = cell("ts").with_context(|| format!("no ts in {line}"))?;
        let packets = cell("packets").with_context(|| format!("no packets in {line}"))?;
        let packets = packets.parse().with_context(|| format!("packets in {line}"))?;
        Ok(Row { ts: ts.trim_matches('"'), packets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read() {
        let row = Row::read(r#"{"ts":"2023-11-14T22:13:20.05Z","packets":7,"bytes":9}"#);
        let row = row.expect("a row");
        assert_eq!((row.ts, row.packets), ("2023-11-14T22:13:20.05Z", 7));
        assert_eq!(Row::read(r#"{"ts":"x","packets":12}"#).expect("a row").packets, 12);
        assert!(Row::read(r#"{"ts":"x"}"#).is_err());
        assert!(Row::read(r#"{"ts":"x","packets":null}"#).is_err());
    }
}
