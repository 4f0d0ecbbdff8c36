use super::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use weir_kafka::packets::PacketRecord;
use weir_packet::craft::Frame;

const SECOND: i64 = 1_000_000_000;

/// The bytes that were written. A clone is the same.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Written {
    /// The records of each partition, in order.
    fn records(&self) -> BTreeMap<u32, Vec<Vec<u8>>> {
        let bytes = self.0.lock().expect("nobody panicked").clone();
        let (mut rest, mut all) = (&bytes[..], BTreeMap::<u32, Vec<Vec<u8>>>::new());
        while let Some((front, after)) = rest.split_first_chunk::<8>() {
            let word = |at: usize| u32::from_le_bytes(front[at..at + 4].try_into().expect("four"));
            let (record, left) = after.split_at(word(4) as usize);
            all.entry(word(0)).or_default().push(record.to_vec());
            rest = left;
        }
        assert!(rest.is_empty(), "a record is not whole");
        all
    }
}

fn spreader(key: SpreadKey, partitions: usize, report: &SourceReport) -> (Spreader, Written) {
    let written = Written::default();
    let by = SpreadBy { name: "kafka://h:1/t".to_owned(), key, partitions, epoch: 7 };
    let to = Box::new(written.clone());
    (Spreader::new(by, &InterfaceNames::default(), report, to), written)
}

/// Frames one after the other, as the engine hands them out.
fn sent(frames: &[(i64, Vec<u8>)]) -> (Vec<u8>, Vec<Sent>) {
    let (mut memory, mut all) = (Vec::new(), Vec::new());
    for (ts, bytes) in frames {
        all.push(Sent {
            outlet: 0,
            link: LinkType::ETHERNET,
            ts: *ts,
            len: bytes.len() as u32,
            start: memory.len() as u32,
            caplen: bytes.len() as u32,
            trimmed: false,
            capture_point: CapturePoint::UNKNOWN,
        });
        memory.extend_from_slice(bytes);
    }
    (memory, all)
}

/// Datagram number `n`, in one direction or the other of one of many conversations.
fn datagram(n: u32) -> Vec<u8> {
    let (a, b) = ([10, 0, 0, (n % 7) as u8], [10, 0, 1, (n % 5) as u8]);
    let (port, other) = ((n % 11) as u16 + 1000, 53);
    match n % 2 {
        0 => Frame::ethernet().ipv4(a, b).udp(port, other).bytes(),
        _ => Frame::ethernet().ipv4(b, a).udp(other, port).bytes(),
    }
}

#[test]
fn each_packet_is_in_one_partition_and_in_order() {
    for (key, of) in [(SpreadKey::Conn, 4), (SpreadKey::Hosts, 3), (SpreadKey::Source, 1)] {
        let (mut spreader, written) = spreader(key, of, &SourceReport::default());
        let frames: Vec<_> = (0..5000).map(|n| (i64::from(n) * 1_000_000, datagram(n))).collect();
        for some in frames.chunks(700) {
            let (memory, all) = sent(some);
            spreader.take(&memory, &all).expect("memory takes it");
        }
        spreader.finish().expect("memory takes it");
        spreader.finish().expect("once is enough");
        let records = written.records();
        assert_eq!(records.len(), of, "each has an end");
        let mut found: Vec<(i64, Vec<u8>)> = Vec::new();
        let mut place: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for (partition, all) in &records {
            let (mut before, mut latest) = (0, i64::MIN);
            for (number, bytes) in (0..).zip(all) {
                let record = PacketRecord::read(bytes).expect("a record");
                let head = record.head;
                assert_eq!((head.number, head.before, head.epoch), (number, before, 7));
                before += u64::from(record.packets);
                let is_last = number + 1 == all.len() as u64;
                assert_eq!(head.kind == PacketKind::End, is_last);
                for entry in record.entries() {
                    assert!(entry.ts > latest, "in order");
                    latest = entry.ts;
                    let packet = &bytes[entry.start as usize..][..entry.caplen as usize];
                    // Both directions of a conversation: addresses and ports, sorted.
                    let mut ends =
                        [[&packet[26..30], &packet[34..36]], [&packet[30..34], &packet[36..38]]];
                    ends.sort_unstable();
                    let conversation = ends.as_flattened().concat();
                    if key != SpreadKey::Source {
                        assert_eq!(*place.entry(conversation).or_insert(*partition), *partition);
                    }
                    found.push((entry.ts, packet.to_vec()));
                }
            }
        }
        found.sort();
        assert_eq!(found, frames);
        let used = records.values().filter(|all| all.len() > 1).count();
        assert_eq!(used, of, "{key:?} spreads over all");
    }
}

#[test]
fn what_a_source_says_reaches_all_partitions() {
    let report = SourceReport::default();
    let (mut spreader, written) = spreader(SpreadKey::Conn, 4, &report);
    let (memory, all) = sent(&[(SECOND, datagram(0))]);
    spreader.take(&memory, &all).expect("memory takes it");
    assert!(written.records().is_empty(), "it waits for others");
    report.state().gaps.push(LostFrames { since: 1, until: 2, frames: 3 });
    report.state().reached = Some(10 * SECOND);
    spreader.flush().expect("memory takes it");
    let first = written.records();
    assert_eq!(first.len(), 4);
    for all in first.values() {
        let record = PacketRecord::read(&all[0]).expect("a record");
        assert_eq!(record.head.reached, Some(10 * SECOND));
        assert_eq!(record.gaps().map(|gap| gap.frames).collect::<Vec<_>>(), [3]);
    }
    // Nothing is said twice, and not too often.
    report.state().reached = Some(10 * SECOND + HEARTBEAT_NS - 1);
    spreader.flush().expect("memory takes it");
    assert_eq!(written.records(), first);
    report.state().reached = Some(12 * SECOND);
    spreader.flush().expect("memory takes it");
    assert!(written.records().values().all(|all| all.len() == 2));
    // A source that fails leaves partitions cut.
    report.state().has_failed = true;
    spreader.finish().expect("memory takes it");
    for all in written.records().values() {
        assert_eq!(PacketRecord::read(&all[2]).expect("a record").head.kind, PacketKind::Cut);
    }
}

#[test]
fn a_clock_that_steps_holds_nothing_back() {
    let report = SourceReport::default();
    let (mut spreader, written) = spreader(SpreadKey::Source, 1, &report);
    for ts in [i64::MAX, 0, i64::MIN, SECOND, 0, i64::MAX] {
        let (memory, all) = sent(&[(ts, datagram(0))]);
        spreader.take(&memory, &all).expect("memory takes it");
    }
    report.state().reached = Some(i64::MIN);
    spreader.flush().expect("memory takes it");
    report.state().reached = Some(i64::MAX);
    spreader.flush().expect("memory takes it");
    spreader.finish().expect("memory takes it");
    let records = written.records();
    let packets = records[&0].iter().map(|bytes| PacketRecord::read(bytes).expect("ours").packets);
    assert_eq!(packets.sum::<u32>(), 6);
}

#[test]
fn packets_that_are_too_long_are_counted() {
    let (mut spreader, written) = spreader(SpreadKey::Conn, 2, &SourceReport::default());
    let mut long = datagram(0);
    long.resize(PACKETS_BYTES_MAX + 1, 0);
    let mut longest = datagram(0);
    longest.resize(PACKETS_BYTES_MAX, 0);
    let (memory, all) = sent(&[(0, long), (0, longest), (0, datagram(0))]);
    spreader.take(&memory, &all).expect("memory takes it");
    spreader.finish().expect("memory takes it");
    assert_eq!(spreader.refused().total().0, 1);
    let sizes = written.records().into_values().flatten().map(|record| record.len());
    assert!(sizes.max().is_some_and(|len| len < 1_000_000), "a broker takes it");
}
