use super::*;
use crate::names::Names;
use crate::options::RowOptions;
use crate::testing::{Full, output, rows};
use proptest::prelude::*;
use weir_plan::{Type, Value};

/// A record as read back: the number and bytes of each of its fields.
type Record = Vec<(u16, Vec<u8>)>;

/// A message as read back.
#[derive(Debug)]
struct Read {
    bytes: usize,
    seconds: u32,
    sequence: u32,
    records: Vec<Record>,
}

fn take<'a>(from: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (head, tail) = from.split_at(n);
    *from = tail;
    head
}

fn number(from: &mut &[u8], n: usize) -> u32 {
    take(from, n).iter().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// Reads messages by the rules of RFC 7011, each by its own templates.
fn read(mut bytes: &[u8]) -> Vec<Read> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let start = bytes.len();
        assert_eq!(number(&mut bytes, 2), 10);
        let length = number(&mut bytes, 2) as usize;
        let (seconds, sequence) = (number(&mut bytes, 4), number(&mut bytes, 4));
        assert_eq!(number(&mut bytes, 4), 0, "the observation domain");
        let mut sets = take(&mut bytes, length - 16);
        let mut templates = BTreeMap::new();
        let mut records = Vec::new();
        while !sets.is_empty() {
            let (set, length) = (number(&mut sets, 2), number(&mut sets, 2) as usize);
            let mut body = take(&mut sets, length - 4);
            while !body.is_empty() {
                if set == 2 {
                    let (id, fields) = (number(&mut body, 2), number(&mut body, 2));
                    let field = |_| (number(&mut body, 2) as u16, number(&mut body, 2) as usize);
                    templates.insert(id, (0..fields).map(field).collect::<Vec<_>>());
                } else {
                    let field = |&(id, length): &(u16, usize)| (id, value(&mut body, length));
                    records.push(templates[&set].iter().map(field).collect());
                }
            }
        }
        messages.push(Read { bytes: start - bytes.len(), seconds, sequence, records });
    }
    messages
}

fn value(body: &mut &[u8], length: usize) -> Vec<u8> {
    let length = match length {
        65535 => match number(body, 1) {
            255 => number(body, 2) as usize,
            short => short as usize,
        },
        fixed => fixed,
    };
    take(body, length).to_vec()
}

const FLOW: &[(&str, Type)] = &[
    ("ts", Type::Time),
    ("ip.src", Type::Ip),
    ("sport", Type::Int),
    ("packets", Type::Int),
    ("interface", Type::Str),
];

fn row(ip: &str, port: i64, text: &str) -> Vec<Value> {
    let ip = Value::ip(ip.parse().expect("an address"));
    let time = Value::Time(1_714_564_800_250_000_000);
    vec![time, ip, Value::Int(port), Value::Int(7), Value::Str(text.into())]
}

fn written(cells: &[Vec<Value>], flow: &[(&str, Type)]) -> Vec<u8> {
    let output = output(None, flow);
    let mut out = Vec::new();
    let mut sink = FORMAT.sink(&mut out, RowOptions::default(), Names::Native);
    sink.open(std::slice::from_ref(&output)).expect("opens");
    for chunk in cells.chunks(100) {
        let mut batch = rows(&output, chunk);
        batch.clock = vec![1_714_564_801_000_000_000; chunk.len()];
        sink.rows(0, &batch).expect("writes");
    }
    sink.finish().expect("finishes");
    drop(sink);
    out
}

#[test]
fn a_record_has_the_elements_of_its_row() {
    let bytes = written(&[row("10.0.0.1", 80, "eth0"), row("2001:db8::1", 81, "")], FLOW);
    let [message] = &read(&bytes)[..] else { panic!("one message") };
    assert_eq!((message.seconds, message.sequence), (1_714_564_801, 0));
    let milliseconds = 1_714_564_800_250u64.to_be_bytes().to_vec();
    let [four, six] = &message.records[..] else { panic!("two records") };
    assert_eq!(
        four[..],
        [
            (152, milliseconds),
            (156, vec![0xe9, 0xdc, 0xad, 0x40, 0x40, 0, 0, 0]),
            (8, vec![10, 0, 0, 1]),
            (7, vec![0, 80]),
            (2, vec![0, 0, 0, 0, 0, 0, 0, 7]),
            (82, b"eth0".to_vec()),
        ]
    );
    assert_eq!(six[2].0, 27);
    assert_eq!(six[2].1[..4], [0x20, 0x01, 0x0d, 0xb8]);
    assert_eq!(six[5], (82, Vec::new()));
}

#[test]
fn what_is_absent_or_cannot_be_held_is_left_out() {
    let mut absent = row("10.0.0.1", -1, "x");
    absent[0] = Value::Absent;
    absent[4] = Value::Absent;
    let bytes = written(&[absent.clone(), vec![Value::Absent; 5], row("::1", 65536, "y")], FLOW);
    let [message] = &read(&bytes)[..] else { panic!("one message") };
    let ids = |record: &Record| record.iter().map(|field| field.0).collect::<Vec<_>>();
    let all: Vec<_> = message.records.iter().map(ids).collect();
    assert_eq!(all, [vec![8, 2], vec![152, 156, 27, 2, 82]]);
}

#[test]
fn nothing_is_written_without_rows() {
    assert!(written(&[], FLOW).is_empty());
}

/// A row's columns are bits of a word.
const _: () = assert!(elements::ELEMENTS.len() <= 64);

#[test]
fn several_outputs_and_columns_without_elements_are_refused() {
    let (flow, other) = (output(None, FLOW), output(None, &[("n", Type::Int)]));
    let open = |outputs: &[Output]| {
        let e = Ipfix::file(Vec::new()).open(outputs).expect_err("is refused");
        assert_eq!(e.kind(), io::ErrorKind::InvalidInput);
        e.to_string()
    };
    assert_eq!(open(&[flow.clone(), flow.clone()]), "IPFIX holds the rows of one output");
    assert!(open(std::slice::from_ref(&other)).contains("`project-away n`"));
    assert_eq!((FORMAT.check)(std::slice::from_ref(&flow)), Ok(()));
    assert!((FORMAT.check)(&[flow, other]).is_err());
}

/// Datagrams, one for each call of `write`.
#[derive(Default)]
struct Datagrams(Vec<Vec<u8>>);

impl Write for &mut Datagrams {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn netflow_9_has_its_own_header_times_and_padding() {
    let output = output(None, &FLOW[..4]);
    let cells: Vec<_> = (0..100).map(|port| row("10.0.0.1", port, "")[..4].to_vec()).collect();
    let mut datagrams = Datagrams::default();
    let mut sink = Ipfix::netflow9(&mut datagrams);
    sink.open(std::slice::from_ref(&output)).expect("opens");
    let mut batch = rows(&output, &cells);
    batch.clock = vec![1_714_564_801_999_000_000; cells.len()];
    sink.rows(0, &batch).expect("writes");
    sink.finish().expect("finishes");
    drop(sink);
    let mut records = 0;
    for (i, datagram) in datagrams.0.iter().enumerate() {
        assert!(datagram.len() <= IPFIX_DATAGRAM_BYTES && datagram.len().is_multiple_of(4));
        let mut bytes = &datagram[..];
        let [version, count] = [number(&mut bytes, 2), number(&mut bytes, 2)];
        let [uptime, seconds] = [number(&mut bytes, 4), number(&mut bytes, 4)];
        assert_eq!((version, seconds, uptime), (9, 1_714_564_801, 1 << 31));
        assert_eq!([number(&mut bytes, 4), number(&mut bytes, 4)], [i as u32, 0]);
        // The template: start, address, port, packets.
        let template = [0u16, 24, 256, 4, 22, 4, 8, 4, 7, 2, 2, 8].map(u16::to_be_bytes).concat();
        assert_eq!(take(&mut bytes, 24), template);
        assert_eq!(number(&mut bytes, 2), 256);
        let length = number(&mut bytes, 2) as usize;
        assert_eq!(bytes.len(), length - 4);
        let n = bytes.len() / 18;
        assert_eq!(count as usize, n + 1);
        // The row began 750 ms before the datagram was sent.
        assert_eq!(number(&mut bytes, 4), uptime - 750);
        records += n;
    }
    assert_eq!(records, 100);
}

/// A collector that is not there: every second datagram is answered by an error.
#[derive(Default)]
struct Away {
    datagrams: Vec<Vec<u8>>,
    calls: usize,
}

impl Write for &mut Away {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(2) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        self.datagrams.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_collector_that_is_away_costs_rows_which_are_counted() {
    let output = output(None, FLOW);
    let cells: Vec<_> = (0..200).map(|port| row("10.0.0.1", port, "eth0")).collect();
    let mut away = Away::default();
    let mut sink = Ipfix::datagrams(&mut away);
    sink.open(std::slice::from_ref(&output)).expect("opens");
    sink.rows(0, &rows(&output, &cells)).expect("goes on");
    sink.finish().expect("goes on");
    let (refused, unwritten) = (sink.refused(), sink.unwritten());
    drop(sink);
    assert!(away.datagrams.iter().all(|datagram| datagram.len() <= IPFIX_DATAGRAM_BYTES));
    let received: Vec<Read> = away.datagrams.iter().flat_map(|bytes| read(bytes)).collect();
    let records: usize = received.iter().map(|message| message.records.len()).sum();
    assert_eq!((refused + records as u64, unwritten), (200, 0));
    assert!(refused > 50 && records > 50, "{refused} {records}");
    // The gap shows in the sequence numbers.
    let [first, second, ..] = &received[..] else { panic!("several datagrams") };
    assert_ne!(second.sequence, first.sequence + first.records.len() as u32);
}

#[test]
fn a_full_disk_ends_the_run_and_every_row_counts() {
    let output = output(None, FLOW);
    let mut sink = Ipfix::file(Full);
    sink.open(std::slice::from_ref(&output)).expect("opens");
    sink.rows(0, &rows(&output, &[row("10.0.0.1", 1, "a"), row("::1", 2, "b")])).expect("waits");
    assert_eq!(sink.unwritten(), 0);
    sink.finish().expect_err("is full");
    assert_eq!((sink.unwritten(), sink.refused()), (2, 0));
}

proptest! {
    /// Whatever rows come, each is read back by the templates of its own message.
    #[test]
    fn reads_back(
        cells in proptest::collection::vec(
            (
                proptest::option::of(prop_oneof![Just(0i64), Just(1), Just(65534), Just(65535)]),
                proptest::option::of(any::<u128>()),
                proptest::option::of(prop_oneof!["[a-zé]{0,9}", "[x]{250,260}", "[x]{8190,9000}"]),
            ),
            0..300,
        ),
    ) {
        let columns = &[("sport", Type::Int), ("ip.dst", Type::Ip), ("interface", Type::Str)];
        let row = |(port, ip, text): &(Option<i64>, Option<u128>, Option<String>)| {
            vec![
                port.map_or(Value::Absent, Value::Int),
                ip.map_or(Value::Absent, |ip| Value::ip(std::net::Ipv6Addr::from(ip).into())),
                text.as_ref().map_or(Value::Absent, |text| Value::Str(text.as_str().into())),
            ]
        };
        let bytes = written(&cells.iter().map(row).collect::<Vec<_>>(), columns);
        let messages = read(&bytes);
        let mut sequence = 0;
        for message in &messages {
            prop_assert_eq!(message.sequence, sequence);
            sequence += message.records.len() as u32;
            prop_assert!(message.bytes <= IPFIX_MESSAGE_BYTES);
        }
        let mut found: Vec<Record> = messages.into_iter().flat_map(|m| m.records).collect();
        let mut expected: Vec<Record> = cells.iter().map(|(port, ip, text)| {
            let mut record = Vec::new();
            record.extend(port.map(|port| (7, (port as u16).to_be_bytes().to_vec())));
            record.extend(ip.map(|ip| match std::net::Ipv6Addr::from(ip).to_ipv4_mapped() {
                Some(four) => (12, four.octets().to_vec()),
                None => (28, ip.to_be_bytes().to_vec()),
            }));
            record.extend(text.as_ref().map(|text| {
                let end = text.len().min(crate::limits::IPFIX_TEXT_BYTES);
                (82, text.as_bytes()[..end].to_vec())
            }));
            record
        }).filter(|record: &Record| !record.is_empty()).collect();
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
    }
}
