//! The closures against the naive model's way of counting: plain maps.

use crate::limits::WINDOWS_MAX;
use crate::{Batches, Group, Packet, Packets, Stream};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_engine::clock::Clock;
use weir_model::Frames;
use weir_packet::craft::Frame;
use weir_packet::interface::Direction;
use weir_packet::source::LinkType;

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
    while windows.batch(|t, g| seen.push((t.ts(), g.value))).expect("frames in memory").is_some() {}
    windows.finish(|t, g| seen.push((t.ts(), g.value)));
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
fn packets_say_which_way_they_went() {
    let mut source = Frames::sample();
    let out = |p: &Packet<'_>| p.capture_point().direction() == Some(Direction::Out);
    let sent = Packets::new(&mut source).filter(out).map(|p| p.number()).collect();
    assert_eq!(sent.expect("frames in memory")[..4], [5, 6, 13, 14]);
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

/// Frames of some hosts of both families, with their times.
fn traffic(packets: &[(i64, u8)]) -> Frames {
    let frame = |host: u8| match host % 2 {
        0 => Frame::ethernet().ipv4(Ipv4Addr::new(10, 0, 0, host), Ipv4Addr::new(10, 0, 1, 1)),
        _ => Frame::ethernet().ipv6(Ipv6Addr::from(host as u128), Ipv6Addr::from(1u128 << 100)),
    };
    let frames: Vec<_> =
        packets.iter().map(|&(ts, host)| (ts, frame(host).udp(host as u16, 53).bytes())).collect();
    Frames::new(LinkType::ETHERNET, &frames)
}

/// The results of windows of 10 ns over [`traffic`]: packets and the time of the last, by window
/// and source, and how many packets were late.
type Windows = (BTreeMap<(i64, IpAddr), (u64, i64)>, u64);

/// One packet after the other, as the specification says it.
fn windows_plainly(packets: &[(i64, u8)], lateness: i64) -> Windows {
    let mut clock = Clock::new(lateness, 100);
    let (mut groups, mut late) = (BTreeMap::new(), 0);
    for &(ts, host) in packets {
        let start = ts - ts.rem_euclid(10);
        if start + 10 <= clock.observe(ts) {
            late += 1;
            continue;
        }
        let ip = match host % 2 {
            0 => Ipv4Addr::new(10, 0, 0, host).into(),
            _ => Ipv6Addr::from(host as u128).into(),
        };
        let group = groups.entry((start, ip)).or_insert((0, ts));
        *group = (group.0 + 1, ts);
    }
    (groups, late)
}

fn windows_of(mut source: Frames, lateness: i64, mapped: bool) -> Windows {
    let packets = Packets::new(&mut source).time(lateness, 100);
    let mut seen = Vec::new();
    macro_rules! run {
        ($stream:expr) => {{
            let mut stream =
                $stream.tumbling(10).reduce(|x| (1, x.ts()), |a, b| *a = (a.0 + 1, b.1));
            while let Some(watermark) = stream.batch(|_, g| seen.push(g)).expect("in memory") {
                assert!(watermark == i64::MIN || watermark % 10 == 0, "{watermark}");
            }
            stream.finish(|_, g| seen.push(g));
            stream.late()
        }};
    }
    /// An item that has left its packet.
    struct Seen(Option<IpAddr>, i64);
    impl Seen {
        fn ts(&self) -> i64 {
            self.1
        }
    }
    let late = if mapped {
        run!(packets.map(|p| Seen(p.ip().map(|ip| ip.0), p.ts())).key_by(|s| s.0))
    } else {
        run!(packets.key_by(|p| p.ip().map(|ip| ip.0)))
    };
    let keys: Vec<_> = seen.iter().map(|g| (g.start, g.key)).collect();
    assert!(keys.is_sorted(), "windows in order, and keys in theirs: {keys:?}");
    (seen.into_iter().map(|g| ((g.start, g.key), g.value)).collect(), late)
}

proptest! {
    #[test]
    fn any_cut_gives_what_packets_one_by_one_give(
        packets in proptest::collection::vec((0i64..70, 0u8..9), 1..200),
        slow in any::<bool>(),
        cut in 1usize..90,
        lateness in 0i64..25,
    ) {
        // In order but for some, as captures are, or in no order at all.
        let packets: Vec<_> = packets
            .iter()
            .enumerate()
            .map(|(i, &(t, host))| (if slow { i as i64 / 2 + t / 4 } else { t }, host))
            .collect();
        let want = windows_plainly(&packets, lateness);
        let source = traffic(&packets);
        for mapped in [false, true] {
            prop_assert_eq!(&windows_of(source.cut(&[cut]), lateness, mapped), &want);
            prop_assert_eq!(&windows_of(source.cut(&[256]), lateness, mapped), &want);
        }
    }

    #[test]
    fn states_see_their_items_in_order(
        hosts in proptest::collection::vec(0u8..200, 1..600), cut in 1usize..257,
    ) {
        let packets: Vec<_> = hosts.iter().map(|&h| (0, h)).collect();
        let mut source = traffic(&packets).cut(&[cut]);
        let got = Packets::new(&mut source)
            .key_by(|p| p.flow())
            .map_with_state(|_| 0u32, |n, p| {
                *n += 1;
                Some((p.number(), *n))
            })
            .collect()
            .expect("frames in memory");
        let mut counts = BTreeMap::new();
        let want: Vec<_> = hosts
            .iter()
            .zip(1u64..)
            .map(|(host, number)| {
                let n = counts.entry(host).or_insert(0u32);
                *n += 1;
                (number, *n)
            })
            .collect();
        prop_assert_eq!(got, want);
    }
}

#[test]
fn windows_of_windows_lose_nothing() {
    let mut source = Frames::sample().cut(&[3]);
    let seconds = Packets::new(&mut source)
        .key_by(|p| p.proto())
        .tumbling(500_000_000)
        .reduce(|_| 1u32, |a, b| *a += b)
        .key_by(|g| Some(g.key))
        .tumbling(1_000_000_000)
        .reduce(|g| (1u32, g.value), |a, b| *a = (a.0 + b.0, a.1 + b.1))
        .collect()
        .expect("frames in memory");
    let got: Vec<_> = seconds.iter().map(|g| (g.start / 1_000_000_000, g.value)).collect();
    assert_eq!(got, [(0, (2, 10)), (1, (2, 10)), (2, (2, 10)), (3, (2, 10))]);
}

#[test]
fn items_of_one_window_too_many_are_left_out_and_counted() {
    let open = WINDOWS_MAX as i64;
    // All windows stay open; then time moves on and there is room again.
    let times = (0..open + 5).map(|i| i * 10).chain([open * 10 + 2_000_000, open * 10 + 2_000_000]);
    let packets: Vec<_> = times.map(|t| (t, 0)).collect();
    for cut in [1, 7, 256] {
        let mut source = traffic(&packets).cut(&[cut]);
        let mut windows = Packets::new(&mut source)
            .time(1_000_000, 10_000_000)
            .key_by(|_| Some(0u8))
            .tumbling(10)
            .reduce(|_| 1, |a, b| *a += b);
        let mut seen = 0;
        while windows.batch(|_, g| seen += g.value).expect("frames in memory").is_some() {}
        windows.finish(|_, g| seen += g.value);
        assert_eq!((seen, windows.evicted(), windows.late()), (open + 2, 5, 0), "cut {cut}");
    }
}
