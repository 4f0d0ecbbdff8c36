//! The closures against the naive model's way of counting: plain maps.

use super::{Group, Packets, Stream};
use crate::conform::Frames;
use std::collections::BTreeMap;

#[test]
fn the_flow_meter_counts_each_flow() {
    let mut source = Frames::sample().cut(&[7]);
    let mut want = BTreeMap::new();
    Packets::new(&mut Frames::sample())
        .for_each(|_, p| {
            if let Some(flow) = p.flow() {
                let (packets, bytes) = want.entry(flow).or_insert((0, 0));
                *packets += 1;
                *bytes += p.len();
            }
        })
        .expect("frames in memory");
    let flows = Packets::new(&mut source)
        .filter(|p| p.is_ip())
        .key_by(|p| p.flow())
        .reduce(|p| (1, p.len()), |a, b| *a = (a.0 + b.0, a.1 + b.1))
        .collect()
        .expect("frames in memory");
    let got: BTreeMap<_, _> = flows.iter().map(|g| (g.key, g.value)).collect();
    assert_eq!(got, want);
    assert_eq!(got.len(), 2);
    let first = flows[0].key;
    assert_eq!(first.to_string(), "10.0.0.1:40000 > 10.0.0.2:80 proto 6");
}

#[test]
fn windows_close_on_the_watermark() {
    let mut source = Frames::sample().cut(&[1]);
    let windows = Packets::new(&mut source)
        .key_by(|p| p.proto())
        .tumbling(1_000_000_000)
        .reduce(|_| 1, |a, b| *a += b)
        .collect()
        .expect("frames in memory");
    let group = |start: i64, value| Group { start: start * 1_000_000_000, key: 6u8, value };
    assert_eq!(windows, [group(0, 10), group(1, 10), group(2, 10), group(3, 10)]);
}

#[test]
fn late_items_are_left_out() {
    let frame = |ts: i64| (ts, vec![0u8; 60]);
    let times: Vec<_> = [0, 1, 2, 3, 25, 4, 26].into_iter().map(frame).collect();
    let mut source = Frames::new(weir_packet::source::LinkType::ETHERNET, &times).cut(&[1]);
    let mut windows = Packets::new(&mut source)
        .time(0, 1000)
        .key_by(|_| Some(0u8))
        .tumbling(10)
        .reduce(|_| 1, |a, b| *a += b);
    let mut seen = Vec::new();
    while windows.batch(|t, g| seen.push((t, g.value))).expect("frames in memory").is_some() {}
    windows.finish(|t, g| seen.push((t, g.value)));
    assert_eq!(seen, [(0, 4), (20, 2)]);
    assert_eq!(windows.late(), 1);
}

#[test]
fn states_follow_their_key() {
    let mut source = Frames::sample();
    let positions = Packets::new(&mut source)
        .key_by(|p| p.flow())
        .map_with_state(
            |_| 0u32,
            |n, p| {
                *n += 1;
                (*n % 10 == 0).then_some((p.number(), *n))
            },
        )
        .collect()
        .expect("frames in memory");
    assert_eq!(positions, [(14, 10), (29, 20), (30, 10)]);
}

#[test]
fn items_map_and_flatten() {
    let mut source = Frames::sample();
    let ports: Vec<u16> = Packets::new(&mut source)
        .flat_map(|p| p.ports().into_iter().flat_map(|(a, b)| [a, b]))
        .filter(|port| *port != 80)
        .map(|port| port + 1)
        .collect()
        .expect("frames in memory");
    assert_eq!(ports, [40_001; 40]);
}

#[test]
fn keys_beyond_the_limit_are_left_out_and_counted() {
    let mut source = Frames::sample();
    let mut flows =
        Packets::new(&mut source).key_by(|p| p.flow()).max_keys(1).reduce(|_| 1, |a, b| *a += b);
    while flows.batch(|_, _| {}).expect("frames in memory").is_some() {}
    let mut seen = Vec::new();
    flows.finish(|_, g| seen.push(g.value));
    assert_eq!((seen, flows.evicted()), (vec![27], 13));
}
