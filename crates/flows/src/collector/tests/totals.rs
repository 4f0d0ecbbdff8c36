//! Counters that run on from record to record of a flow.

use super::*;

/// Records of a template with these elements of 4 bytes each: bytes and packets of each.
fn of_elements(c: &mut Collector, elements: &[u16], all: &[&[u32]]) -> Vec<(u64, u64)> {
    let fields: Vec<u16> = elements.iter().flat_map(|&element| [element, 4]).collect();
    let data = set(256, &all.iter().flat_map(|values| be32(values)).collect::<Vec<u8>>());
    let payload = ipfix(0, &[set(2, &template(256, &fields)), data]);
    read(c, &payload).into_iter().map(|(bytes, packets, _)| (bytes, packets)).collect()
}

const KEYED: [u16; 4] = [8, 12, 85, 86];

#[test]
fn running_totals_become_what_came_since_the_record_before() {
    let mut c = Collector::new();
    let all: [&[u32]; 4] = [&[1, 2, 100, 1], &[1, 2, 150, 2], &[1, 3, 70, 1], &[1, 2, 150, 2]];
    let expected = [(100, 1), (50, 1), (70, 1), (0, 0)];
    assert_eq!(of_elements(&mut c, &KEYED, &all), expected);
    // The counters began again.
    assert_eq!(of_elements(&mut c, &KEYED, &[&[1, 2, 10, 1]]), [(10, 1)]);
    assert_eq!(of_elements(&mut c, &KEYED, &[&[1, 2, 30, 3]]), [(20, 2)]);
    // Another direction is another flow.
    assert_eq!(of_elements(&mut c, &KEYED, &[&[2, 1, 500, 5]]), [(500, 5)]);
}

#[test]
fn a_flow_that_began_anew_has_totals_of_its_own() {
    let mut c = Collector::new();
    let elements = [8, 12, 150, 85];
    let all: [&[u32]; 3] = [&[1, 2, 500, 100], &[1, 2, 600, 300], &[1, 2, 600, 350]];
    let bytes: Vec<u64> = of_elements(&mut c, &elements, &all).iter().map(|r| r.0).collect();
    assert_eq!(bytes, [100, 300, 50]);
    // The record says that the flow is over, by an idle timeout.
    let ended = |reason: u32| [8, 12, 85, reason];
    let mut c = Collector::new();
    let all = [&ended(1)[..], &ended(1)];
    assert_eq!(of_elements(&mut c, &[8, 12, 85, 136], &all), [(85, u64::MAX); 2]);
    let mut c = Collector::new();
    let all = [&ended(2)[..], &ended(2)];
    let expected = [(85, u64::MAX), (0, u64::MAX)];
    assert_eq!(of_elements(&mut c, &[8, 12, 85, 136], &all), expected);
}

/// Of NetFlow 9 the start is reckoned from whole seconds, so that it moves from record to record.
#[test]
fn a_start_that_is_reckoned_does_not_make_another_flow() {
    let mut c = Collector::new();
    let fields = set(0, &template(256, &[8, 4, 12, 4, 22, 4, 85, 4]));
    let data = |began: u32, total: u32| set(256, &be32(&[1, 2, began, total]));
    let all = [(5000, 4500, 100), (5700, 4500, 150), (6100, 4500, 170), (6200, 6100, 40)];
    let bytes: Vec<u64> = (1..)
        .zip(all)
        .flat_map(|(n, (uptime, began, total))| {
            let sets = [fields.clone(), data(began, total)];
            read(&mut c, &netflow9(n, uptime, &sets))
        })
        .map(|seen| seen.0)
        .collect();
    assert_eq!(bytes, [100, 50, 20, 40]);
}

#[test]
fn deltas_come_before_totals() {
    for elements in [[8, 12, 1, 85], [8, 12, 85, 1]] {
        let mut c = Collector::new();
        let values = |delta, total| {
            if elements[2] == 1 { [1, 2, delta, total] } else { [1, 2, total, delta] }
        };
        let all = [values(10, 1000), values(20, 1020)];
        let bytes = of_elements(&mut c, &elements, &[&all[0], &all[1]]);
        assert_eq!(bytes.iter().map(|r| r.0).collect::<Vec<_>>(), [10, 20], "{elements:?}");
    }
}

#[test]
fn sessions_have_totals_of_their_own() {
    let mut c = Collector::new();
    assert_eq!(of_elements(&mut c, &KEYED, &[&[1, 2, 100, 1]]), [(100, 1)]);
    let sets = [set(2, &template(256, &[8, 4, 12, 4, 85, 4])), set(256, &be32(&[1, 2, 150]))];
    let (payload, mut seen) = (ipfix(0, &sets), Vec::new());
    let datagram = Datagram { address: EXPORTER, port: 9, received: 0, payload: &payload };
    c.read(&datagram, &mut |record, _| seen.push(record.get(Slot::Bytes)));
    assert_eq!(seen, [Some(150)], "another port");
}

#[test]
fn the_start_of_the_exporter_may_be_said_once() {
    let mut c = Collector::new();
    let options = set(3, &be16(&[257, 2, 1, 149, 4, 160, 8]));
    let value = set(257, &[be32(&[7]), 500_000u64.to_be_bytes().to_vec()].concat());
    let fields = set(2, &template(256, &[1, 4, 22, 4, 21, 4]));
    read(&mut c, &ipfix(0, &[options, value, fields]));
    let payload = ipfix(1, &[set(256, &be32(&[5, 1000, 3500]))]);
    let mut seen = Vec::new();
    let datagram =
        Datagram { address: EXPORTER, port: 2055, received: 2000 * SECOND, payload: &payload };
    c.read(&datagram, &mut |record, ts| seen.push((record.get(Slot::Start), ts)));
    assert_eq!(seen, [(Some(501 * SECOND as u64), 503_500_000_000)]);
}
