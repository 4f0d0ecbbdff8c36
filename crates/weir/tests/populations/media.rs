//! RTP: streams in order, always out of order, with losses, that start over, and that are no RTP.

use crate::{MS, Own, Packet, SECOND};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use weir_packet::craft::Frame;

const CALLER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const CALLED: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// A packet of a stream: its number, time stamp, and the sender's number, which is the port, too.
fn rtp_packet(at: i64, number: i64, stamp: i64, ssrc: u32) -> Packet {
    let (number, stamp) = (number as u16, stamp as u32);
    let mut payload = vec![0x80, 0];
    payload.extend(number.to_be_bytes());
    payload.extend(stamp.to_be_bytes());
    payload.extend(ssrc.to_be_bytes());
    payload.extend([0; 160]);
    let frame = Frame::ethernet().ipv4(CALLER, CALLED).udp(ssrc as u16, 5004).payload(&payload);
    let mut packet = Packet::new(at, (CALLER, CALLED), 17, &frame);
    packet.ports = Some((ssrc as u16, 5004));
    packet
}

/// The numbers of each stream in the order that they come, and how many of them were sent.
fn streams() -> BTreeMap<u32, (Vec<i64>, i64)> {
    let plain: Vec<i64> = (65_500..65_600).collect();
    let swapped: Vec<i64> = (0..100).map(|i| if i % 2 == 0 { i + 1 } else { i - 1 }).collect();
    // As in `swapped`, but that the first comes first: no two follow each other.
    let never: Vec<i64> = std::iter::once(0).chain(swapped.iter().map(|n| n + 1)).collect();
    let far: Vec<i64> = (0..99).map(|i| i / 3 * 3 + 2 - i % 3).collect();
    let lossy: Vec<i64> = (0..100).filter(|i| i % 4 == 0 || i % 7 == 0).collect();
    let twice: Vec<i64> = (0..40).flat_map(|i| [i, i]).collect();
    let over: Vec<i64> = (100..150).chain(30_000..30_050).collect();
    BTreeMap::from([
        (40_000, (plain, 100)),
        (40_001, (swapped, 100)),
        (40_002, (never, 101)),
        (40_003, (far, 99)),
        (40_004, (lossy.clone(), lossy[lossy.len() - 1] + 1)),
        (40_005, (twice, 40)),
        (40_006, (over, 100)),
    ])
}

pub(crate) fn packets() -> Vec<Packet> {
    let mut all = Vec::new();
    for (ssrc, (numbers, _)) in streams() {
        for (turn, number) in numbers.into_iter().enumerate() {
            // Up to 9 ms late, one way or another.
            let late = (turn as i64 * 7 % 10) * MS;
            all.push(rtp_packet(turn as i64 * 20 * MS + late, number, number * 160, ssrc));
        }
    }
    // Numbers that are never near each other are no stream.
    for turn in 0..60 {
        all.push(rtp_packet(turn * 20 * MS, turn * 977, turn * 160, 50_000));
    }
    all.sort_by_key(|packet| packet.at);
    all
}

/// Loss by the numbers that were sent; jitter as RFC 3550, A.8 computes it, in milliseconds.
pub(crate) fn rtp(packets: &[Packet]) -> Own {
    let mut own = Own::new();
    for (ssrc, (numbers, sent)) in streams() {
        let times = packets.iter().filter(|p| p.ports.is_some_and(|ports| ports.0 == ssrc as u16));
        let (mut jitter, mut most, mut before) = (0.0f64, 0.0f64, None);
        for (p, number) in times.zip(&numbers) {
            let clock = (p.at as f64 / SECOND as f64, *number as f64 * 160.0 / 8000.0);
            if let Some((at, stamp)) = before.replace(clock) {
                let off: f64 = (clock.0 - at) - (clock.1 - stamp);
                jitter += (off.abs() - jitter) / 16.0;
                most = most.max(jitter);
            }
        }
        let lost = sent - numbers.len() as i64;
        let keys = vec![CALLER.to_string(), ssrc.to_string(), ssrc.to_string()];
        own.push((keys, vec![lost as f64 / sent as f64, jitter * 1000.0, most * 1000.0]));
    }
    own
}
