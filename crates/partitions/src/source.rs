//! A partition as the source of a run: its records come by a socket, and after each one the run
//! says that it is processed.

use super::starts::Starts;
use super::up::Up;
use super::{fields_of, fits};
use std::fs::File;
use std::io::{self, BufReader};
use std::sync::Arc;
use weir_engine::clock::Clock;
use weir_engine::run::Options;
use weir_kafka::packets::{LostFrames, PacketEntry, PacketKind, PacketRecord, SpreadKey};
use weir_kafka::worker::{FromWorker, Mark, ToWorker, VALUE_AT};
use weir_packet::interface::{CapturePoint, Direction, InterfaceNames};
use weir_packet::source::{Account, Chunk, FrameBatch, Gap, LinkType, Source, SourceError};
use weir_plan::Program;
use weir_plan::partitions::reach_back;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// How the partition ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// Not yet.
    Ahead,
    /// With the run that captured: windows close.
    Closed,
    /// The process that carries records has gone: no row is out any more.
    Gone,
}

/// The records of a partition.
pub struct PartitionSource {
    from: BufReader<File>,
    up: Up,
    program: Program,
    /// Whether its partial results are wanted, not rows.
    publishes: bool,
    /// The key that packets are spread by, once it is known to fit.
    key: Option<SpreadKey>,
    names: InterfaceNames,
    clock: Clock,
    starts: Starts,
    current: Option<Current>,
    frame: Vec<u8>,
    account: Account,
    /// The run that captured, and packets in its records so far.
    life: Option<(u64, u64)>,
    /// Whether the next record should be the first of its run.
    is_at_start: bool,
    latest: i64,
    end: End,
}

/// The record that is processed.
struct Current {
    chunk: Chunk,
    entries: std::vec::IntoIter<PacketEntry>,
    points: Vec<Option<u16>>,
    gaps: std::vec::IntoIter<Gap>,
    link: LinkType,
    reached: Option<i64>,
    kind: PacketKind,
    offset: i64,
    is_live: bool,
    packets: u32,
    missing: u64,
    before: u64,
}

impl PartitionSource {
    /// The partition that the process at the other end of the pipe `from` reads.
    pub fn new(
        from: File,
        up: Up,
        (program, publishes): (&Program, bool),
        names: &InterfaceNames,
        options: &Options,
    ) -> PartitionSource {
        PartitionSource {
            from: BufReader::with_capacity(BUFFER_BYTES, from),
            up,
            program: program.clone(),
            publishes,
            key: None,
            names: names.clone(),
            clock: Clock::new(options.lateness_ns, options.jump_ns),
            starts: Starts::new(reach_back(program)),
            current: None,
            frame: Vec::new(),
            account: Account::default(),
            life: None,
            is_at_start: false,
            latest: i64::MIN,
            end: End::Ahead,
        }
    }

    fn watermark(&self) -> Option<i64> {
        Some(self.clock.watermark()).filter(|at| *at != i64::MIN)
    }

    /// Takes a further record, whose value is in a frame.
    fn begin(&mut self, offset: i64, is_live: bool, frame: Vec<u8>) -> io::Result<()> {
        let record = PacketRecord::read(&frame[VALUE_AT..]).map_err(io::Error::other)?;
        self.check_key(record.head.spread)?;
        let is_sure = self.clock.watermark_after(i64::MIN).is_some();
        self.starts.record(offset, self.watermark(), is_sure);
        let known = self.life.filter(|(epoch, _)| *epoch == record.head.epoch);
        let is_at_start = std::mem::take(&mut self.is_at_start);
        let expected = known.map(|(_, next)| next).or(is_at_start.then_some(0));
        let missing = expected.map_or(0, |next| record.head.before.saturating_sub(next));
        let next = record.head.before + u64::from(record.packets);
        self.life = Some((record.head.epoch, next));
        let entries: Vec<PacketEntry> = record.entries().collect();
        let mut gaps: Vec<Gap> = record.gaps().map(gap_of).collect();
        if missing > 0 {
            let first = entries.first().map(|entry| entry.ts).or(record.head.reached);
            let (since, until) = (self.latest, first.unwrap_or(self.latest).max(self.latest));
            gaps.insert(0, Gap { frames: missing, since, until });
            self.account.lost.ring = self.account.lost.ring.saturating_add(missing);
        }
        let number = |name: &&[u8]| self.names.number(name);
        let current = Current {
            points: record.interfaces().iter().map(number).collect(),
            gaps: gaps.into_iter(),
            link: LinkType(record.head.link),
            reached: record.head.reached,
            kind: record.head.kind,
            packets: record.packets,
            before: record.head.before,
            entries: entries.into_iter(),
            chunk: Arc::new(frame),
            offset,
            is_live,
            missing,
        };
        self.up.set_live(is_live);
        self.current = Some(current);
        Ok(())
    }

    /// Refuses a query whose rows need packets of other partitions, too.
    fn check_key(&mut self, key: SpreadKey) -> io::Result<()> {
        if self.key == Some(key) {
            return Ok(());
        }
        if let Err(why) = fits(&self.program, self.publishes, &fields_of(key)) {
            let why = format!("{why}; capture with another --spread-by");
            self.up.say(&FromWorker::Refused(why.clone()))?;
            return Err(io::Error::other(why));
        }
        self.key = Some(key);
        Ok(())
    }

    /// The next part of the record; `false` if it is processed.
    fn next_batch(&mut self, batch: &mut FrameBatch) -> bool {
        let Some(current) = &mut self.current else { return false };
        if let Some(gap) = current.gaps.next() {
            batch.set_gap(gap);
            return true;
        }
        if current.entries.len() > 0 {
            batch.restart(&current.chunk, VALUE_AT, current.link);
            let mut seq = current.before + u64::from(current.packets);
            seq -= current.entries.len() as u64;
            let mut points = Vec::new();
            while !batch.is_full()
                && let Some(entry) = current.entries.next()
            {
                batch.push(entry.ts, seq, entry.start, entry.caplen, entry.len);
                seq += 1;
                self.starts.packet(entry.ts);
                self.latest = self.latest.max(entry.ts);
                points.push(current.point(&entry));
            }
            if points.iter().any(|point| *point != CapturePoint::UNKNOWN) {
                batch.set_capture_points(points.into_iter(), &self.names);
            }
            batch.ts().iter().for_each(|ts| _ = self.clock.observe(*ts));
            self.account.received += batch.len() as u64;
            return true;
        }
        match current.reached.take() {
            Some(reached) => {
                self.clock.reach(reached);
                batch.set_reached(reached);
                true
            }
            None => false,
        }
    }

    /// The run that captured has ended: windows close.
    fn close(&mut self, last: Option<Mark>) {
        self.end = End::Closed;
        self.up.set_closed(last);
    }

    /// Says that the record is processed.
    fn mark(&mut self) -> io::Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let start = self.starts.oldest(self.clock.watermark());
        let (from, at) = start.map_or((current.offset, None), |start| (start.offset, start.at));
        let (offset, packets, missing) = (current.offset, current.packets, current.missing);
        let mark = Mark { offset, from, at, packets, missing };
        match (current.kind, current.is_live) {
            (PacketKind::Packets, true) => self.up.say(&FromWorker::Mark(mark)),
            (PacketKind::Packets, false) => Ok(()),
            // It is processed once the last windows are out.
            (PacketKind::End | PacketKind::Cut, is_live) => {
                self.close(is_live.then_some(mark));
                Ok(())
            }
        }
    }

    fn advance(&mut self, batch: &mut FrameBatch) -> io::Result<bool> {
        loop {
            if self.next_batch(batch) {
                return Ok(true);
            }
            self.mark()?;
            if self.end != End::Ahead {
                return Ok(false);
            }
            match ToWorker::read(&mut self.from, &mut self.frame)? {
                Some(ToWorker::Start(None)) => {}
                Some(ToWorker::Start(Some(at))) => {
                    self.clock.reach(at);
                    batch.set_reached(at);
                    return Ok(true);
                }
                Some(ToWorker::Record { offset, is_live, .. }) => {
                    let frame = std::mem::take(&mut self.frame);
                    self.begin(offset, is_live, frame)?;
                }
                Some(ToWorker::First) => self.is_at_start = true,
                Some(ToWorker::Over) => {
                    // Its windows are not out, though its records were processed before.
                    self.up.set_live(true);
                    self.close(None);
                }
                None => {
                    self.end = End::Gone;
                    self.up.set_live(false);
                }
            }
        }
    }
}

impl Current {
    fn point(&self, entry: &PacketEntry) -> CapturePoint {
        let interface = entry.interface.and_then(|place| *self.points.get(usize::from(place))?);
        let direction = match entry.direction {
            1 => Some(Direction::In),
            2 => Some(Direction::Out),
            _ => None,
        };
        CapturePoint::new(interface, direction)
    }
}

fn gap_of(lost: LostFrames) -> Gap {
    let LostFrames { since, until, frames } = lost;
    Gap { frames, since, until }
}

impl Source for PartitionSource {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        batch.clear();
        let name = || "the partition".to_owned();
        let more = self.advance(batch).or_else(|e| match e.kind() {
            // As where nothing more comes.
            io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::UnexpectedEof => {
                self.end = End::Gone;
                Ok(false)
            }
            _ => Err(SourceError::Io { name: name(), source: e }),
        });
        if self.end == End::Gone || more.is_err() {
            // The groups that windows hold are for the next process of the partition.
            self.up.set_live(false);
        }
        more
    }

    /// Rows that are there are shown between two records.
    fn is_ready(&mut self) -> bool {
        self.current.as_ref().is_some_and(|current| current.entries.len() > 0)
    }

    fn account(&self) -> Account {
        self.account
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use weir_kafka::packets::{PacketHead, PacketRecordBuilder};
    use weir_packet::craft::Frame;

    fn record(number: u64, before: u64, kind: PacketKind, packets: &[i64]) -> Vec<u8> {
        let (mut builder, mut bytes) = (PacketRecordBuilder::default(), Vec::new());
        let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).bytes();
        packets.iter().for_each(|ts| builder.push(*ts, 60, &frame, 0, 0));
        let spread = SpreadKey::Conn;
        let head = PacketHead { kind, spread, link: 1, epoch: 9, number, before, reached: None };
        builder.finish(&head, &mut bytes);
        bytes
    }

    /// A source, the way of its run, and the other end of the socket.
    fn source() -> (PartitionSource, Up, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a socket");
        let socket = File::from(OwnedFd::from(theirs));
        let up = Up::new(socket.try_clone().expect("a number for it"));
        let (program, names) = (Program::default(), InterfaceNames::default());
        let options = Options::default();
        let source = PartitionSource::new(socket, up.clone(), (&program, false), &names, &options);
        (source, up, ours)
    }

    fn send(to: &mut UnixStream, offset: i64, is_live: bool, value: &[u8]) {
        ToWorker::Record { offset, is_live, value }.write(to).expect("the socket takes it");
        to.flush().expect("the socket takes it");
    }

    fn drain(source: &mut PartitionSource) -> Vec<u64> {
        let (mut batch, mut all) = (FrameBatch::new(), Vec::new());
        while source.fill(&mut batch).expect("no error") {
            all.extend_from_slice(batch.seq());
        }
        all
    }

    fn marks(from: &mut UnixStream) -> Vec<FromWorker> {
        std::iter::from_fn(|| FromWorker::read(from).expect("frames")).collect()
    }

    /// Otherwise a host that takes over between the two would put the last windows out nowhere.
    #[test]
    fn the_last_record_is_processed_with_the_last_rows() {
        let (mut source, up, mut ours) = source();
        ToWorker::Start(None).write(&mut ours).expect("the socket takes it");
        send(&mut ours, 5, false, &record(0, 0, PacketKind::Packets, &[1, 2]));
        send(&mut ours, 6, true, &record(1, 2, PacketKind::Packets, &[3]));
        send(&mut ours, 7, true, &record(2, 3, PacketKind::End, &[4]));
        assert_eq!(drain(&mut source), [0, 1, 2, 3]);
        up.finish().expect("the socket takes it");
        drop((source, up));
        let said = marks(&mut ours);
        let [FromWorker::Mark(first), FromWorker::Finished(Some(last))] = said[..] else {
            panic!("{said:?}");
        };
        assert_eq!((first.offset, first.packets, first.from), (6, 1, 5));
        assert_eq!((last.offset, last.packets), (7, 1));
    }

    #[test]
    fn packets_of_missing_records_are_counted() {
        let (mut source, up, mut ours) = source();
        send(&mut ours, 0, true, &record(0, 0, PacketKind::Packets, &[1]));
        send(&mut ours, 1, true, &record(4, 8, PacketKind::Packets, &[9]));
        ToWorker::Over.write(&mut ours).expect("the socket takes it");
        assert_eq!(drain(&mut source), [0, 8]);
        assert_eq!(source.account().lost.ring, 7);
        up.finish().expect("the socket takes it");
        drop((source, up));
        let said = marks(&mut ours);
        let [FromWorker::Mark(_), FromWorker::Mark(second), FromWorker::Finished(None)] = said[..]
        else {
            panic!("{said:?}");
        };
        assert_eq!((second.offset, second.missing), (1, 7));
    }

    /// Also before the first record that came of a run.
    #[test]
    fn packets_are_missing_before_what_should_be_the_first_record() {
        for (is_first, missing) in [(true, 8), (false, 0)] {
            let (mut source, up, mut ours) = source();
            if is_first {
                ToWorker::First.write(&mut ours).expect("the socket takes it");
            }
            send(&mut ours, 1, true, &record(4, 8, PacketKind::Packets, &[9]));
            send(&mut ours, 2, true, &record(5, 9, PacketKind::End, &[]));
            assert_eq!(drain(&mut source), [8]);
            assert_eq!(source.account().lost.ring, missing);
            up.finish().expect("the socket takes it");
            drop((source, up));
            let said = marks(&mut ours);
            let [FromWorker::Mark(first), FromWorker::Finished(Some(last))] = said[..] else {
                panic!("{said:?}");
            };
            assert_eq!((first.missing, last.missing), (missing, 0));
        }
    }

    /// A socket that ends is no end of the input: what windows hold is for the next process.
    #[test]
    fn nothing_is_out_where_the_carrying_process_has_gone() {
        let (mut source, up, mut ours) = source();
        send(&mut ours, 0, true, &record(0, 0, PacketKind::Packets, &[1]));
        ours.shutdown(std::net::Shutdown::Write).expect("a socket");
        assert_eq!(drain(&mut source), [0]);
        assert!(!up.is_live());
        up.finish().expect("it says nothing");
        drop((source, up));
        assert!(matches!(marks(&mut ours)[..], [FromWorker::Mark(_)]));
    }
}
