use super::*;
use crate::fuzz::fuzz_datagrams;
use crate::limits::{HELD_BYTES_MAX, HELD_NS, SESSION_TEMPLATES_MAX};
use proptest::prelude::*;
use std::net::Ipv4Addr;
use weir_packet::record::Slot;

mod bounds;
mod totals;

const SECOND: i64 = 1_000_000_000;
const EXPORTER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// The records that came out: bytes and packets of each, and its time in milliseconds.
type Seen = Vec<(u64, u64, i64)>;

fn read_at(collector: &mut Collector, received: i64, payload: &[u8]) -> Seen {
    let mut seen = Vec::new();
    let datagram = Datagram { address: EXPORTER, port: 2055, received, payload };
    collector.read(&datagram, &mut |record, ts| {
        let number = |slot| record.get(slot).unwrap_or(u64::MAX);
        seen.push((number(Slot::Bytes), number(Slot::Packets), ts / 1_000_000));
    });
    seen
}

fn read(collector: &mut Collector, payload: &[u8]) -> Seen {
    read_at(collector, 2000 * SECOND, payload)
}

fn be16(all: &[u16]) -> Vec<u8> {
    all.iter().flat_map(|n| n.to_be_bytes()).collect()
}

fn be32(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|n| n.to_be_bytes()).collect()
}

fn set(number: u16, body: &[u8]) -> Vec<u8> {
    [&be16(&[number, body.len() as u16 + 4])[..], body].concat()
}

/// An IPFIX message of domain 7, sent 1000 seconds after 1970.
fn ipfix(sequence: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let body = sets.concat();
    [be16(&[10, body.len() as u16 + 16]), be32(&[1000, sequence, 7]), body].concat()
}

/// A NetFlow 9 datagram of source 7, sent when the exporter had been up for 5 seconds.
fn netflow9(sequence: u32, uptime: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    [be16(&[9, 1]), be32(&[uptime, 1000, sequence, 7]), sets.concat()].concat()
}

fn template(number: u16, fields: &[u16]) -> Vec<u8> {
    be16(&[&[number, fields.len() as u16 / 2][..], fields].concat())
}

/// A template of bytes, packets and the end in seconds.
fn plain(number: u16) -> Vec<u8> {
    set(2, &template(number, &[1, 4, 2, 2, 151, 4]))
}

fn record(bytes: u32, packets: u16, end: u32) -> Vec<u8> {
    [be32(&[bytes]), be16(&[packets]), be32(&[end])].concat()
}

fn faults(collector: &Collector) -> Vec<(Fault, u64)> {
    let all = Fault::ALL.into_iter().zip(collector.counts().faults);
    all.filter(|(_, n)| *n > 0).collect()
}

#[test]
fn records_by_their_template() {
    let mut c = Collector::new();
    let data = set(256, &[record(5, 2, 900), record(6, 3, 901), vec![0; 3]].concat());
    let seen = read(&mut c, &ipfix(0, &[plain(256), data.clone()]));
    assert_eq!(seen, [(5, 2, 900_000), (6, 3, 901_000)]);
    assert_eq!(read(&mut c, &ipfix(2, &[data])).len(), 2);
    let exporter = &c.exporters()[0];
    assert_eq!((exporter.records, exporter.lost, exporter.restarts), (4, 0, 0));
    assert_eq!(exporter.to_string(), "192.0.2.1/7 ipfix");
    assert_eq!(faults(&c), []);
}

#[test]
fn values_of_variable_length() {
    let mut c = Collector::new();
    let fields = set(2, &template(256, &[82, 65535, 1, 65535, 0, 0, 2, 1]));
    let text = vec![b'x'; 300];
    let body = [
        [&[2][..], b"e0", &[2, 1, 0], &[7]].concat(),
        [&[255, 1, 44][..], &text, &[0], &[8]].concat(),
        // One that reaches beyond its set.
        vec![200, 1, 1],
    ];
    let seen = read(&mut c, &ipfix(0, &[fields, set(256, &body.concat())]));
    assert_eq!(seen, [(256, 7, 1_000_000), (u64::MAX, 8, 1_000_000)]);
    assert_eq!(faults(&c), [(Fault::RecordLength, 1)]);
}

#[test]
fn data_waits_for_its_template() {
    let mut c = Collector::new();
    let data = |n| set(256, &record(n, 1, 900));
    assert_eq!(read(&mut c, &ipfix(0, &[data(1)])), []);
    assert_eq!(read(&mut c, &ipfix(1, &[data(2)])), []);
    assert_eq!(c.counts().untemplated, 2);
    let seen = read(&mut c, &ipfix(2, &[plain(256), data(3)]));
    assert_eq!(seen.iter().map(|seen| seen.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((c.counts().untemplated, c.exporters()[0].lost), (0, 0));
    // For so long only, and so many.
    let late = 2000 * SECOND + HELD_NS + 1;
    assert_eq!(read(&mut c, &ipfix(3, &[set(300, &record(9, 1, 900))])), []);
    assert_eq!(read_at(&mut c, late, &ipfix(4, &[set(301, &record(9, 1, 900))])), []);
    assert_eq!(read_at(&mut c, late, &ipfix(5, &[plain(300)])), []);
    assert_eq!(c.counts().untemplated, 2);
    let large = ipfix(6, &[set(302, &vec![0; 60_000])]);
    (0..40).for_each(|_| drop(read_at(&mut c, late, &large)));
    assert_eq!(c.counts().untemplated, 42);
    const { assert!(HELD_BYTES_MAX < 40 * 60_000) };
}

#[test]
fn templates_are_withdrawn_and_expire() {
    let mut c = Collector::new();
    let data = || set(256, &record(1, 1, 900));
    let both = [plain(256), plain(257), set(3, &be16(&[258, 1, 1, 34, 4]))];
    read(&mut c, &ipfix(0, &both));
    assert_eq!(c.sizes(), (1, 3));
    read(&mut c, &ipfix(0, &[set(2, &be16(&[257, 0]))]));
    assert_eq!(c.sizes(), (1, 2));
    assert_eq!(read(&mut c, &ipfix(0, &[data()])).len(), 1);
    read(&mut c, &ipfix(1, &[set(2, &be16(&[2, 0]))]));
    assert_eq!(c.sizes(), (1, 1));
    assert_eq!(read(&mut c, &ipfix(1, &[data()])), []);
    read(&mut c, &ipfix(2, &[plain(256)]));
    let late = 2000 * SECOND + TIMEOUT_NS;
    assert_eq!(read_at(&mut c, late, &ipfix(2, &[data()])).len(), 1);
    assert_eq!(read_at(&mut c, late + 1, &ipfix(3, &[data()])), []);
    assert_eq!(c.sizes(), (1, 1));
}

#[test]
fn netflow_9_has_uptimes_and_options() {
    let mut c = Collector::new();
    let fields = set(0, &template(256, &[1, 4, 21, 4, 48, 1]));
    let options = set(1, &[be16(&[300, 4, 8, 1, 4, 34, 4, 48, 1]), vec![0, 0]].concat());
    let rate = set(300, &[be32(&[0, 100]), vec![3]].concat());
    let data = set(256, &[be32(&[5, 4500]), vec![3], be32(&[6, 4600]), vec![4]].concat());
    let payload = netflow9(1, 5000, &[fields, options, rate, data]);
    let mut rates = Vec::new();
    let datagram = Datagram { address: EXPORTER, port: 1, received: 0, payload: &payload };
    c.read(&datagram, &mut |record, ts| rates.push((record.get(Slot::Sampling), ts)));
    assert_eq!(rates, [(Some(100), 999_500_000_000), (None, 999_600_000_000)]);
    assert_eq!((c.counts().options, c.counts().records), (1, 2));
    read(&mut c, &netflow9(5, 5100, &[]));
    read(&mut c, &netflow9(3, 5050, &[]));
    assert_eq!(c.exporters()[0].lost, 0, "another port is another session");
    read(&mut c, &netflow9(9, 5200, &[]));
    assert_eq!(c.exporters()[0].lost, 3);
    read(&mut c, &netflow9(7, 5150, &[]));
    assert_eq!(c.exporters()[0].lost, 2, "one of them was only late");
    read(&mut c, &netflow9(1, 10, &[]));
    assert_eq!((c.exporters()[0].lost, c.exporters()[0].restarts), (2, 1));
}

fn netflow5(count: u16, sequence: u32, records: &[[u32; 12]]) -> Vec<u8> {
    let header =
        [be16(&[5, count]), be32(&[5000, 1000, 500_000_000, sequence]), be16(&[0x0102, 0x4064])];
    [header.concat(), be32(&records.concat())].concat()
}

#[test]
fn netflow_5_in_full() {
    let mut c = Collector::new();
    let flow = [
        0x0a00_0001,
        0x0a00_0002,
        0x0a00_0003,
        0x0005_0006,
        10,
        1000,
        4000,
        4500,
        0x0050_1f90,
        0x0012_06b8,
        0xfde8_fde9,
        0x1820_0000,
    ];
    let mut all = Vec::new();
    let payload = netflow5(1, 0, &[flow]);
    let datagram = Datagram { address: EXPORTER, port: 1, received: 7, payload: &payload };
    c.read(&datagram, &mut |record, ts| all.push((record.clone(), ts)));
    let (r, ts) = &all[0];
    assert_eq!(*ts, 1_000_000_000_000);
    let slots = [
        (Slot::Start, 999_500_000_000),
        (Slot::End, 1_000_000_000_000),
        (Slot::Received, 7),
        (Slot::Bytes, 1000),
        (Slot::Packets, 10),
        (Slot::Sampling, 100),
        (Slot::Domain, 0x0102),
        (Slot::Protocol, 0),
        (Slot::SourcePort, 80),
        (Slot::DestinationPort, 8080),
        (Slot::IpProtocol, 6),
        (Slot::TrafficClass, 0xb8),
        (Slot::TcpFlags, 0x12),
        (Slot::InInterface, 5),
        (Slot::OutInterface, 6),
        (Slot::SourceAs, 65000),
        (Slot::DestinationAs, 65001),
        (Slot::SourceMask, 24),
        (Slot::DestinationMask, 32),
    ];
    slots.iter().for_each(|(slot, n)| assert_eq!(r.get(*slot), Some(*n), "{slot:?}"));
    assert_eq!(r.address(Slot::NextHop), Some(0xffff_0a00_0003));
    // A count that lies: 30 announced, two there. The announced ones are what the exporter sent.
    assert_eq!(read(&mut c, &netflow5(30, 1, &[flow, flow])).len(), 2);
    assert_eq!(faults(&c), [(Fault::Short, 1)]);
    assert_eq!(read(&mut c, &netflow5(0, 41, &[flow])).len(), 0);
}

#[test]
fn hostile_templates_are_refused() {
    let refused = |set: Vec<u8>, fault: Fault| {
        let mut c = Collector::new();
        let data = crate::collector::tests::set(256, &[0; 64]);
        assert_eq!(read(&mut c, &ipfix(0, &[set, data])), []);
        assert_eq!(faults(&c), [(fault, 1)]);
        assert_eq!(c.sizes(), (1, 0));
    };
    refused(set(2, &template(256, &[1, 0])), Fault::TemplateEmpty);
    refused(set(2, &template(255, &[1, 4])), Fault::TemplateNumber);
    refused(set(2, &be16(&[256, 9, 1, 4])), Fault::TemplateFields);
    refused(set(2, &be16(&[256, u16::MAX, 1, 4])), Fault::TemplateFields);
    refused(set(3, &be16(&[256, 1, 2, 1, 4])), Fault::TemplateFields);
    let mut c = Collector::new();
    for (len, fault) in [(0, Fault::SetLength), (3, Fault::SetLength), (99, Fault::SetLength)] {
        let before = faults(&c).first().map_or(0, |(_, n)| *n);
        read(&mut c, &ipfix(0, &[be16(&[256, len]), vec![0; 8]]));
        assert_eq!(faults(&c), [(fault, before + 1)]);
    }
}

#[test]
fn one_exporter_does_not_use_up_the_templates_of_all() {
    let mut c = Collector::new();
    let all: Vec<u8> = (256..2256).flat_map(|n| template(n, &[1, 4])).collect();
    read(&mut c, &ipfix(0, &[set(2, &all)]));
    assert_eq!(c.sizes().1, SESSION_TEMPLATES_MAX);
    assert_eq!(c.counts().templates_refused, 2000 - SESSION_TEMPLATES_MAX as u64);
    // One that it has may be sent again.
    read(&mut c, &ipfix(0, &[set(2, &template(256, &[1, 4]))]));
    assert_eq!(c.counts().templates_refused, 2000 - SESSION_TEMPLATES_MAX as u64);
}

#[test]
fn zeros_of_the_other_version_are_no_addresses() {
    let (four, six) = ([192, 0, 2, 1], [0x20; 16]);
    for (is_six, fields) in [
        (true, &[27, 16, 8, 4][..]),
        (true, &[8, 4, 27, 16]),
        (false, &[27, 16, 8, 4]),
        (false, &[8, 4, 27, 16]),
    ] {
        let (four, six) = if is_six { ([0; 4], six) } else { (four, [0; 16]) };
        let body = match fields[0] {
            27 => [&six[..], &four].concat(),
            _ => [&four[..], &six].concat(),
        };
        let mut c = Collector::new();
        let sets = [set(2, &template(256, fields)), set(256, &body)];
        let (payload, mut seen) = (ipfix(0, &sets), Vec::new());
        let datagram = Datagram { address: EXPORTER, port: 9, received: 0, payload: &payload };
        c.read(&datagram, &mut |record, _| seen.push(record.address(Slot::Source)));
        let expected = match is_six {
            true => u128::from_be_bytes(six),
            false => u128::from(u32::from_be_bytes(four)) | 0xffff << 32,
        };
        assert_eq!(seen, [Some(expected)], "{fields:?}");
    }
}

#[test]
fn zeros_of_the_other_version_are_no_prefixes() {
    for (body, expected) in [([24, 0], 24), ([0, 64], 64), ([0, 0], 0)] {
        let (mut c, mut seen) = (Collector::new(), Vec::new());
        let sets = [set(2, &template(256, &[9, 1, 29, 1])), set(256, &body)];
        let payload = ipfix(0, &sets);
        let datagram = Datagram { address: EXPORTER, port: 9, received: 0, payload: &payload };
        c.read(&datagram, &mut |record, _| seen.push(record.get(Slot::SourceMask)));
        assert_eq!(seen, [Some(expected)]);
    }
}

#[test]
fn exporters_that_are_silent_make_room() {
    let mut c = Collector::new();
    let from = |c: &mut Collector, address: u32, received: i64| {
        let address = IpAddr::V4(Ipv4Addr::from_bits(address));
        let payload = ipfix(0, &[plain(256)]);
        c.read(&Datagram { address, port: 9, received, payload: &payload }, &mut |_, _| {});
    };
    (0..SESSIONS_MAX as u32 + 3).for_each(|i| from(&mut c, i, 0));
    assert_eq!((c.sizes(), c.counts().exporters_refused), ((SESSIONS_MAX, SESSIONS_MAX), 3));
    assert_eq!(c.exporters().len(), EXPORTERS_NAMED_MAX + 1);
    from(&mut c, SESSIONS_MAX as u32, TIMEOUT_NS + 1);
    assert_eq!((c.sizes(), c.counts().exporters_refused), ((1, 1), 3));
}

/// A sample of an Ethernet frame with TCP over IPv4, and what switch, router and gateway say.
fn sflow_flow_sample(expanded: bool, header: &[u8]) -> Vec<u8> {
    let item = |format: u32, body: &[u8]| [&be32(&[format, body.len() as u32])[..], body].concat();
    let mut padded = header.to_vec();
    padded.resize(header.len().div_ceil(4) * 4, 0);
    let raw = [be32(&[1, 1518, 4, header.len() as u32]), padded].concat();
    let mut records = item(1, &raw);
    records.extend(item(1001, &be32(&[30, 0, 31, 0])));
    records.extend(item(1002, &be32(&[1, 0x0a00_00fe, 24, 16])));
    records.extend(item(1003, &be32(&[1, 0x0a00_00fe, 1, 65000, 2, 1, 2, 2, 64999, 65001])));
    let interfaces = match expanded {
        true => be32(&[9, 0, 5, 512, 1000, 0, 0, 3, 0, 4, 4]),
        false => be32(&[9, 5, 512, 1000, 0, 3, 4, 4]),
    };
    item(if expanded { 3 } else { 1 }, &[interfaces, records].concat())
}

fn sflow(sequence: u32, samples: &[Vec<u8>]) -> Vec<u8> {
    let header = be32(&[5, 1, 0xc000_0202, 0, sequence, 9000, samples.len() as u32]);
    [header, samples.concat()].concat()
}

const FRAME: &[u8] = &[
    2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0xb8, 0, 60, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0,
    0, 1, 10, 0, 0, 2, 0, 80, 0x1f, 0x90, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x12, 0, 0, 0, 0, 0, 0,
];

#[test]
fn samples_of_sflow() {
    for expanded in [false, true] {
        let mut c = Collector::new();
        let counters = [be32(&[2, 8]), vec![0; 8]].concat();
        let payload = sflow(1, &[counters, sflow_flow_sample(expanded, FRAME)]);
        let mut all = Vec::new();
        let datagram = Datagram { address: EXPORTER, port: 2055, received: 7, payload: &payload };
        c.read(&datagram, &mut |record, ts| all.push((record.clone(), ts)));
        let (r, ts) = &all[0];
        assert_eq!((*ts, all.len()), (7, 1));
        let slots = [
            (Slot::Bytes, 1518),
            (Slot::Packets, 1),
            (Slot::Sampling, 512),
            (Slot::SourcePort, 80),
            (Slot::DestinationPort, 8080),
            (Slot::IpProtocol, 6),
            (Slot::TrafficClass, 0xb8),
            (Slot::TcpFlags, 0x12),
            (Slot::Vlan, 30),
            (Slot::SourceMac, 0x0200_0000_0002),
            (Slot::DestinationMac, 0x0200_0000_0001),
            (Slot::InInterface, 3),
            (Slot::OutInterface, 4),
            (Slot::SourceAs, 65000),
            (Slot::DestinationAs, 65001),
            (Slot::SourceMask, 24),
            (Slot::DestinationMask, 16),
        ];
        slots.iter().for_each(|(slot, n)| assert_eq!(r.get(*slot), Some(*n), "{slot:?}"));
        assert_eq!(r.address(Slot::Source), Some(0xffff_0a00_0001));
        assert_eq!(r.address(Slot::Destination), Some(0xffff_0a00_0002));
        assert_eq!(r.address(Slot::NextHop), Some(0xffff_0a00_00fe));
        assert_eq!(r.address(Slot::Exporter), Some(0xffff_c000_0202), "the agent");
        assert_eq!((c.counts().counters, faults(&c)), (1, vec![]));
        assert_eq!(read_at(&mut c, 8, &sflow(4, &[])), []);
        assert_eq!(c.exporters()[0].lost, 2);
        // Samples that are announced, and not there; a header that reaches beyond its record.
        let mut payload = sflow(5, &[sflow_flow_sample(expanded, FRAME)]);
        payload[27] = 9;
        assert_eq!(read_at(&mut c, 8, &payload).len(), 1);
        assert_eq!(faults(&c), [(Fault::Short, 1)]);
        let at = payload.windows(4).position(|w| w == [0, 0, 5, 0xee]).expect("the length");
        payload[at + 4 + 4] = 0xff;
        assert_eq!(read_at(&mut c, 8, &payload).len(), 0);
    }
}

/// Datagrams that are almost right.
fn almost() -> impl Strategy<Value = Vec<u8>> {
    let data = || set(256, &[record(5, 2, 900), record(6, 3, 901)].concat());
    let options = set(3, &be16(&[257, 2, 1, 149, 4, 34, 4]));
    let some = vec![
        ipfix(0, &[plain(256), data(), options, set(257, &[1; 16])]),
        ipfix(2, &[set(2, &template(256, &[82, 65535, 1, 65535])), set(256, &[1; 40])]),
        netflow9(1, 5000, &[set(0, &template(256, &[1, 4, 21, 4])), set(256, &[1; 33])]),
        ipfix(
            4,
            &[set(2, &template(256, &[8, 4, 85, 8, 86, 4, 136, 1, 148, 2])), set(256, &[1; 57])],
        ),
        ipfix(4, &[set(3, &be16(&[258, 2, 1, 149, 4, 160, 8])), set(258, &[1; 12])]),
        netflow5(2, 0, &[[7; 12], [9; 12]]),
        sflow(1, &[sflow_flow_sample(false, FRAME), sflow_flow_sample(true, FRAME)]),
    ];
    let byte = prop_oneof![Just(0u8), Just(1), Just(0x7f), Just(0x80), Just(0xfe), Just(0xff)];
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), byte), 0..6);
    (prop::sample::select(some), changes, any::<prop::sample::Index>()).prop_map(
        |(mut payload, changes, cut)| {
            changes.iter().for_each(|(at, byte)| {
                let at = at.index(payload.len());
                payload[at] = *byte;
            });
            if cut.index(4) == 0 {
                payload.truncate(cut.index(payload.len()));
            }
            payload
        },
    )
}

proptest! {
    #[test]
    fn any_bytes_are_datagrams(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        fuzz_datagrams(&data);
    }

    #[test]
    fn almost_right_datagrams(all in proptest::collection::vec(almost(), 1..12)) {
        let framed = all.iter().flat_map(|d| [&(d.len() as u16).to_be_bytes()[..], d].concat());
        fuzz_datagrams(&framed.collect::<Vec<_>>());
    }

    /// Template and data in any order, and in any cut into messages: the same records come out.
    #[test]
    fn the_order_of_templates_does_not_matter(
        values in proptest::collection::vec(any::<u32>(), 1..40),
        at in any::<prop::sample::Index>(),
    ) {
        let mut messages: Vec<Vec<u8>> = values
            .iter()
            .enumerate()
            .map(|(i, n)| ipfix(i as u32, &[set(256, &record(*n, 1, 900))]))
            .collect();
        let at = at.index(messages.len() + 1);
        messages.insert(at, ipfix(at as u32, &[plain(256)]));
        let mut c = Collector::new();
        let seen: Vec<u64> =
            messages.iter().flat_map(|m| read(&mut c, m)).map(|seen| seen.0).collect();
        prop_assert_eq!(seen, values.iter().map(|n| u64::from(*n)).collect::<Vec<_>>());
        prop_assert_eq!((c.exporters()[0].lost, c.counts().untemplated), (0, 0));
    }
}
