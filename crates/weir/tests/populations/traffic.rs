//! Traffic of all kinds: TCP, UDP and ICMP of hosts inside and outside, frames that are no IP and so
//! lack addresses and ports, packets out of order, hosts that fall silent or come late.

use crate::{Dice, MS, Own, Packet, SECOND, time};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use weir_packet::craft::Frame;
use weir_packet::tcp::{ACK, FIN, RST, SYN};
use weir_plan::Value;

/// Sums by the keys of rows.
type Sums = BTreeMap<Vec<String>, f64>;

pub(crate) fn packets() -> Vec<Packet> {
    let mut dice = Dice::new(34);
    let mut all = Vec::new();
    for i in 0..700i64 {
        let inside = Ipv4Addr::new(10, 0, dice.below(2) as u8, 1 + dice.below(3) as u8);
        let outside = Ipv4Addr::new(203, 0, 113, 1 + dice.below(4) as u8);
        let (src, dst) = match dice.below(5) {
            0 | 1 => (inside, outside),
            // One host outside is never answered.
            _ if outside.octets()[3] == 4 => (inside, outside),
            2 | 3 => (outside, inside),
            _ => (inside, Ipv4Addr::new(10, 0, 3, 1)),
        };
        // Some come up to 300 ms after packets that are younger.
        let back = if dice.below(6) == 0 { dice.below(300) as i64 } else { 0 };
        let at = (i * 50 * MS - back * MS).max(0) + dice.below(900_000) as i64;
        let payload = vec![b'x'; dice.below(1200) as usize];
        let frame = Frame::ethernet().ipv4(src, dst);
        let ports = (1024 + dice.below(4) as u16, [80, 443, 53][dice.below(3) as usize]);
        let (proto, flags, ports, frame) = match dice.below(6) {
            0 => (1, 0, None, frame.icmp(8, 0).payload(&payload)),
            1 | 2 => (17, 0, Some(ports), frame.udp(ports.0, ports.1).payload(&payload)),
            3 if i % 7 == 0 => {
                let address = Ipv4Addr::new(10, 0, 0, 1);
                let frame = Frame::ethernet().arp(1, ([2; 6], address), ([0; 6], address));
                (0, 0, None, frame)
            }
            _ => {
                let flags = [ACK, SYN, SYN | ACK, FIN | ACK, RST, ACK][dice.below(6) as usize];
                let tcp = frame.tcp(ports.0, ports.1).flags(flags);
                let data = if flags == ACK { &payload[..] } else { &[] };
                (6, flags, Some(ports), tcp.payload(data))
            }
        };
        let mut packet = Packet::new(at, (src, dst), proto, &frame);
        (packet.flags, packet.ports) = (flags, ports);
        all.push(packet);
    }
    // In the order of the capture, which is not quite that of time.
    all
}

/// Connections of two clients in 24 s: one calls each second, one whenever it likes.
pub(crate) fn beacons() -> Vec<Packet> {
    let mut dice = Dice::new(35);
    let server = Ipv4Addr::new(203, 0, 113, 99);
    let mut all = Vec::new();
    let mut call = |at: i64, client: Ipv4Addr, port: u16, bytes: u32| {
        let frame = || Frame::ethernet().ipv4(client, server).tcp(port, 8443);
        let ends = [(0, SYN, 1000), (90 * MS, FIN | ACK, 1001 + bytes)];
        for (after, flags, seq) in ends {
            let frame = frame().flags(flags).seq(seq);
            let mut packet = Packet::new(at + after, (client, server), 6, &frame);
            (packet.flags, packet.ports) = (flags, Some((port, 8443)));
            packet.data = i64::from(bytes);
            all.push(packet);
        }
    };
    let start = 24 * SECOND;
    for i in 0..24 {
        let client = Ipv4Addr::new(10, 0, 9, 1);
        call(start + i * SECOND + 5 * MS, client, 2000 + i as u16, 300 + (i % 3) as u32);
        if dice.below(3) > 0 {
            let client = Ipv4Addr::new(10, 0, 9, 2);
            let at = start + i * SECOND + (100 + dice.below(700) as i64) * MS;
            for n in 0..1 + dice.below(3) as u16 {
                let port = 3000 + i as u16 * 10 + n;
                call(at + i64::from(n) * MS, client, port, dice.below(5000) as u32);
            }
        }
    }
    all.sort_by_key(|packet| packet.at);
    all
}

/// Connections that a server takes up in 24 s: of a client that calls each second, and of one that
/// calls after one to three.
pub(crate) fn answered_calls() -> Vec<Packet> {
    let mut dice = Dice::new(36);
    let server = Ipv4Addr::new(203, 0, 113, 99);
    let mut all = Vec::new();
    for client in [1, 2] {
        let host = Ipv4Addr::new(10, 0, 9, client);
        let (mut second, mut port) = (24, 2000);
        while second < 48 {
            let at = second * SECOND + (100 + dice.below(700) as i64) * MS;
            let frame = Frame::ethernet().ipv4(server, host).tcp(8443, port).flags(SYN | ACK);
            let mut packet = Packet::new(at, (server, host), 6, &frame);
            (packet.flags, packet.ports) = (SYN | ACK, Some((8443, port)));
            all.push(packet);
            second += if client == 1 { 1 } else { 1 + dice.below(3) as i64 };
            port += 1;
        }
    }
    all.sort_by_key(|packet| packet.at);
    all
}

fn absent() -> String {
    Value::Absent.to_string()
}

fn is_ip(p: &&Packet) -> bool {
    p.proto != 0
}

/// Sums of what `of` says, by the keys that it says.
fn sums<'a>(
    packets: impl Iterator<Item = &'a Packet>,
    of: impl Fn(&Packet) -> Option<(Vec<String>, f64)>,
) -> Sums {
    let mut sums = Sums::new();
    packets.filter_map(of).for_each(|(keys, n)| *sums.entry(keys).or_default() += n);
    sums
}

/// Each sum as a share of that of its window, which is the first of its keys.
fn shares_of_windows(sums: &Sums) -> Own {
    let all = |window: &String| -> f64 {
        sums.iter().filter(|(keys, _)| keys[0] == *window).map(|(_, n)| n).sum()
    };
    sums.iter().map(|(keys, n)| (keys.clone(), vec![n / all(&keys[0])])).collect()
}

/// Bits of all packets by second, those without IP, too.
pub(crate) fn timeline(packets: &[Packet]) -> Own {
    let mut windows: BTreeMap<i64, f64> = BTreeMap::new();
    for p in packets {
        *windows.entry(p.at.div_euclid(SECOND)).or_default() += p.len() as f64 * 8.0;
    }
    let ends = windows.keys().next().zip(windows.keys().next_back());
    let Some((first, last)) = ends.map(|(first, last)| (*first, *last)) else { return Own::new() };
    let bits = |window: i64| windows.get(&window).copied().unwrap_or(0.0);
    (first..=last).map(|window| (vec![time(window * SECOND)], vec![bits(window)])).collect()
}

pub(crate) fn entropy(packets: &[Packet]) -> Own {
    let mut windows: BTreeMap<String, [BTreeMap<String, f64>; 4]> = BTreeMap::new();
    for p in packets.iter().filter(is_ip) {
        let of = windows.entry(p.window(10 * SECOND)).or_default();
        let ports = p.ports.map(|(s, d)| [s.to_string(), d.to_string()]);
        let values =
            [p.src.to_string(), p.dst.to_string()].into_iter().chain(ports.into_iter().flatten());
        of.iter_mut().zip(values).for_each(|(of, value)| *of.entry(value).or_default() += 1.0);
    }
    let mixed = |counts: &BTreeMap<String, f64>| {
        let all: f64 = counts.values().sum();
        let bits: f64 = counts.values().map(|n| -(n / all) * (n / all).log2()).sum();
        if counts.len() > 1 { bits / (counts.len() as f64).log2() } else { 0.0 }
    };
    windows.into_iter().map(|(w, of)| (vec![w], of.iter().map(mixed).collect())).collect()
}

pub(crate) fn packet_sizes(packets: &[Packet]) -> Own {
    let mut windows: BTreeMap<String, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    let mut last: Option<i64> = None;
    for p in packets.iter().filter(is_ip) {
        let of = windows.entry(p.window(10 * SECOND)).or_default();
        of.0.push(p.len() as f64);
        of.1.extend(last.map(|last| (p.at - last).max(0) as f64));
        last = Some(last.map_or(p.at, |last| last.max(p.at)));
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let row = |(window, (sizes, gaps)): (String, (Vec<f64>, Vec<f64>))| {
        let middle = mean(&gaps);
        let squares = gaps.iter().map(|gap| (gap - middle).powi(2)).sum::<f64>();
        let deviation = (squares / (gaps.len() - 1) as f64).sqrt();
        // Durations are whole nanoseconds, towards zero.
        let seconds = |ns: f64| ns.floor() / SECOND as f64;
        (vec![window], vec![mean(&sizes), seconds(middle), seconds(deviation)])
    };
    windows.into_iter().map(row).collect()
}

fn shares_of_both(packets: &[Packet], keys: impl Fn(&Packet) -> Option<Vec<String>>) -> Own {
    let mut all: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    let mut parts: BTreeMap<Vec<String>, [f64; 2]> = BTreeMap::new();
    for p in packets {
        let window = p.window(10 * SECOND);
        let more = [1.0, p.len() as f64];
        let add = |to: &mut [f64; 2]| to.iter_mut().zip(more).for_each(|(to, n)| *to += n);
        add(all.entry(window.clone()).or_default());
        if let Some(keys) = keys(p) {
            add(parts.entry([vec![window], keys].concat()).or_default());
        }
    }
    let share = |keys: &Vec<String>, part: [f64; 2]| {
        part.into_iter().zip(all[&keys[0]]).map(|(part, all)| part / all).collect()
    };
    parts.iter().map(|(keys, &part)| (keys.clone(), share(keys, part))).collect()
}

/// The name of a packet's protocol, of those that are made here.
fn protocol(p: &Packet) -> String {
    let name = match p.proto {
        0 => "arp",
        1 => "icmp",
        6 => "tcp",
        17 => "udp",
        other => unreachable!("protocol {other}"),
    };
    name.to_owned()
}

pub(crate) fn protocol_shares(packets: &[Packet]) -> Own {
    shares_of_both(packets, |p| Some(vec![protocol(p)]))
}

pub(crate) fn service_shares(packets: &[Packet]) -> Own {
    let port = |p: &Packet| p.ports.map(|(s, d)| s.min(d));
    shares_of_both(packets, |p| Some(vec![protocol(p), port(p)?.to_string()]))
}

fn bytes_of_senders(packets: &[Packet]) -> Sums {
    sums(packets.iter().filter(is_ip), |p| {
        Some((vec![p.window(10 * SECOND), p.src.to_string()], p.len() as f64))
    })
}

pub(crate) fn heavy_hitters(packets: &[Packet]) -> Own {
    shares_of_windows(&bytes_of_senders(packets))
}

/// The smallest networks with a fifth of the bytes, each without those of heavy ones in it.
pub(crate) fn heavy_prefixes(packets: &[Packet]) -> Own {
    let mut own = Own::new();
    let windows: BTreeSet<_> = packets.iter().map(|p| p.window(10 * SECOND)).collect();
    for window in windows {
        let mut left: BTreeMap<Ipv4Addr, f64> = BTreeMap::new();
        for p in packets.iter().filter(is_ip).filter(|p| p.window(10 * SECOND) == window) {
            *left.entry(p.src).or_default() += p.len() as f64;
        }
        let total: f64 = left.values().sum();
        for bits in [32, 24, 16, 8] {
            let mut networks: BTreeMap<Ipv4Addr, f64> = BTreeMap::new();
            for (source, n) in std::mem::take(&mut left) {
                let network = Ipv4Addr::from(u32::from(source) & (u32::MAX << (32 - bits)));
                *networks.entry(network).or_default() += n;
            }
            for (network, n) in networks {
                if n >= 0.2 * total {
                    let keys = vec![window.clone(), network.to_string(), bits.to_string()];
                    own.push((keys, vec![n / total]));
                } else {
                    left.insert(network, n);
                }
            }
        }
    }
    own
}

/// Of all that changed from one window of ten seconds to the next, the part of each host.
pub(crate) fn heavy_changers(packets: &[Packet]) -> Own {
    let bytes = bytes_of_senders(packets);
    let windows: BTreeSet<&String> = bytes.keys().map(|keys| &keys[0]).collect();
    let mut before: BTreeMap<&String, f64> = BTreeMap::new();
    let mut changes = Sums::new();
    for (i, window) in windows.into_iter().enumerate() {
        let now: BTreeMap<&String, f64> = bytes
            .iter()
            .filter(|(keys, _)| keys[0] == *window)
            .map(|(keys, n)| (&keys[1], *n))
            .collect();
        let hosts: BTreeSet<&String> = before.keys().chain(now.keys()).copied().collect();
        for host in hosts {
            let now = now.get(host).copied().unwrap_or(0.0);
            let change = now - before.insert(host, now).unwrap_or(0.0);
            // The first may be a part of a window.
            if i > 1 {
                changes.insert(vec![window.clone(), host.clone()], change.abs());
            }
        }
    }
    shares_of_windows(&changes)
}

pub(crate) fn elephants(packets: &[Packet]) -> Own {
    let port = |port: Option<u16>| port.map_or_else(absent, |port| port.to_string());
    let flow = |p: &Packet| {
        let (sport, dport) = (port(p.ports.map(|p| p.0)), port(p.ports.map(|p| p.1)));
        vec![
            p.window(5 * SECOND),
            p.src.to_string(),
            sport,
            p.dst.to_string(),
            dport,
            p.proto.to_string(),
        ]
    };
    let bits = sums(packets.iter().filter(is_ip), |p| Some((flow(p), 8.0 * p.len() as f64)));
    bits.into_iter().map(|(keys, bits)| (keys, vec![bits / 5.0])).collect()
}

fn is_inside(host: Ipv4Addr) -> bool {
    host.octets()[0] == 10
}

/// Bytes that leave less bytes that come back, as a share of both, in an hour.
pub(crate) fn exfiltration(packets: &[Packet]) -> Own {
    let mut pairs: BTreeMap<Vec<String>, [f64; 2]> = BTreeMap::new();
    for p in packets.iter().filter(is_ip).filter(|p| is_inside(p.src) != is_inside(p.dst)) {
        let leaves = is_inside(p.src);
        let (host, peer) = if leaves { (p.src, p.dst) } else { (p.dst, p.src) };
        let keys = vec![p.window(3600 * SECOND), host.to_string(), peer.to_string()];
        pairs.entry(keys).or_default()[usize::from(!leaves)] += p.len() as f64;
    }
    let left = pairs.into_iter().filter(|(_, [out, _])| *out > 0.0);
    left.map(|(keys, [out, back])| (keys, vec![(out - back) / (out + back)])).collect()
}

/// Averages over five seconds of what each host gets in a second.
fn flood(packets: &[Packet], proto: u8) -> Own {
    let mut seconds: BTreeMap<i64, BTreeMap<Ipv4Addr, [f64; 2]>> = BTreeMap::new();
    for p in packets.iter().filter(|p| p.proto == proto) {
        let of = seconds.entry(p.at.div_euclid(SECOND)).or_default().entry(p.dst).or_default();
        *of = [of[0] + 1.0, of[1] + p.len() as f64];
    }
    let mut means: BTreeMap<Ipv4Addr, (i64, [f64; 2])> = BTreeMap::new();
    let mut own = Own::new();
    for (second, hosts) in seconds {
        for (host, [n, bytes]) in hosts {
            let (seen, before) = means.get(&host).copied().unwrap_or((second, [0.0; 2]));
            // A host that got nothing for half a minute starts again.
            let before = if second - seen < 30 { before } else { [0.0; 2] };
            let kept = (-0.2 * (second - seen) as f64).exp();
            let fresh = 1.0 - (-0.2f64).exp();
            let now = [before[0] * kept + n * fresh, before[1] * kept + bytes * 8.0 * fresh];
            means.insert(host, (second, now));
            let load = now[0].max(now[1]) / 1e-6;
            own.push((vec![time(second * SECOND), host.to_string()], vec![load, now[0], now[1]]));
        }
    }
    own
}

pub(crate) fn icmp_flood(packets: &[Packet]) -> Own {
    flood(packets, 1)
}

pub(crate) fn udp_flood(packets: &[Packet]) -> Own {
    flood(packets, 17)
}

/// How far each second of a host lies from its mean, in deviations, where it is unusual.
pub(crate) fn baseline(packets: &[Packet]) -> Own {
    let mut bytes: BTreeMap<Ipv4Addr, BTreeMap<i64, f64>> = BTreeMap::new();
    for p in packets.iter().filter(is_ip).filter(|p| is_inside(p.dst)) {
        let of = bytes.entry(p.dst).or_default();
        *of.entry(p.at.div_euclid(SECOND)).or_default() += p.len() as f64;
    }
    let end = bytes.values().filter_map(|of| of.keys().max()).max().copied().unwrap_or(0);
    let mut own = Own::new();
    for (host, of) in bytes {
        let first = *of.keys().min().expect("a packet");
        let (mut mean, mut var, mut known, mut odd) = (0.0f64, 0.0f64, 0, 0);
        for second in first..=end {
            let x = of.get(&second).copied().unwrap_or(0.0);
            let (expected, deviation) = (mean, var.sqrt().max(10.0));
            if known >= 3 && odd < 60 && (x - mean).abs() > 0.001 * deviation {
                odd += 1;
                let keys = vec![time(second * SECOND), host.to_string()];
                // Less than usual counts from the second in a row on.
                if x as i64 >= expected as i64 || odd > 1 {
                    own.push((keys, vec![(x - expected).abs() / deviation]));
                }
            } else if odd >= 60 || known == 0 {
                (mean, var, known, odd) = (x, 0.0, 1, 0);
            } else {
                let off = x - mean;
                (mean, var) = (mean + 0.1 * off, 0.9 * (var + 0.1 * off * off));
                (known, odd) = (known + 1, 0);
            }
        }
    }
    own
}

/// The fullest millisecond of those that follow one another, on a link of 1 Mbit/s.
pub(crate) fn microbursts(packets: &[Packet]) -> Own {
    let mut windows: BTreeMap<i64, f64> = BTreeMap::new();
    for p in packets {
        *windows.entry(p.at.div_euclid(MS)).or_default() += (p.len() + 24) as f64 * 8.0 / 1000.0;
    }
    let mut own: Vec<(i64, i64, f64)> = Vec::new();
    for (window, load) in windows {
        match own.last_mut() {
            Some((_, last, peak)) if window == *last + 1 => {
                (*last, *peak) = (window, peak.max(load))
            }
            _ => own.push((window, window, load)),
        }
    }
    own.into_iter().map(|(first, _, peak)| (vec![time(first * MS)], vec![peak])).collect()
}

/// Connections opened less those closed in two seconds, as a share of the usual number of the latter.
pub(crate) fn syn_fin(packets: &[Packet]) -> Own {
    let mut windows: BTreeMap<i64, [f64; 2]> = BTreeMap::new();
    for p in packets.iter().filter(|p| p.flags & (SYN | FIN | RST) != 0) {
        let of = windows.entry(p.at.div_euclid(2 * SECOND)).or_default();
        of[usize::from(p.flags & SYN == 0)] += 1.0;
    }
    let (mut own, mut usual, mut last) = (Own::new(), None, None);
    for (window, [opened, closed]) in windows {
        let passed: i64 = last.map_or(1, |last| window - last);
        let before = usual.unwrap_or(closed) * 0.9f64.powi(passed as i32 - 1);
        own.push((vec![time(window * 2 * SECOND)], vec![(opened - closed) / before.max(150.0)]));
        (usual, last) = (Some(before * 0.9 + 0.1 * closed), Some(window));
    }
    own
}

/// The smallest value that so large a part of all are not above.
fn quantile(values: &[i64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[((sorted.len() as f64 * part).ceil() as usize).max(1) - 1] as f64
}

/// How alike values are: by their quartiles, and by how far they usually lie from the middle one.
fn regular(values: &[i64], least: f64) -> f64 {
    let [low, middle, high] = [0.25, 0.5, 0.75].map(|part| quantile(values, part));
    let far: Vec<i64> = values.iter().map(|v| (v - middle as i64).abs()).collect();
    let flat = high - low < 10.0 || middle == low || middle == high;
    let skew = if flat { 0.0 } else { (low + high - 2.0 * middle) / (high - low) };
    let even = ((middle - quantile(&far, 0.5)) / middle).max(0.0);
    (1.0 - skew.abs() + if middle < 1.0 { least } else { even }) / 2.0
}

/// RITA's four scores and their mean, of connections in 24 s with bars of a second.
pub(crate) fn beacon(packets: &[Packet]) -> Own {
    let mut pairs: BTreeMap<(i64, Ipv4Addr, Ipv4Addr), Vec<(i64, i64)>> = BTreeMap::new();
    let mut open: BTreeMap<(Ipv4Addr, Ipv4Addr, (u16, u16)), i64> = BTreeMap::new();
    for p in packets.iter().filter(|p| p.ports.is_some_and(|ports| ports.1 == 8443)) {
        let key = (p.src, p.dst, p.ports.expect("ports"));
        if p.flags & SYN != 0 {
            open.insert(key, p.at);
        } else if let Some(opened) = open.remove(&key) {
            // The end of a connection is in the window in which it counts.
            let span = p.at.div_euclid(24 * SECOND);
            pairs.entry((span, p.src, p.dst)).or_default().push((opened, p.data));
        }
    }
    pairs
        .into_iter()
        .map(|((span, src, dst), calls)| {
            let keys = vec![time(span * 24 * SECOND), src.to_string(), dst.to_string()];
            (keys, scores(&calls))
        })
        .collect()
}

fn scores(calls: &[(i64, i64)]) -> Vec<f64> {
    let seconds: Vec<i64> = calls.iter().map(|(at, _)| at / SECOND).collect();
    let gaps: Vec<i64> = seconds.windows(2).map(|w| w[1] - w[0]).filter(|gap| *gap > 0).collect();
    let bytes: Vec<i64> = calls.iter().map(|(_, bytes)| *bytes).collect();
    let mut bars: BTreeMap<i64, f64> = BTreeMap::new();
    seconds.iter().for_each(|second| *bars.entry(*second).or_default() += 1.0);
    let mean = calls.len() as f64 / 24.0;
    let squares: f64 = bars.values().map(|n| n * n).sum();
    let flat = 1.0 - (squares / 24.0 - mean * mean).max(0.0).sqrt() / mean;
    let mut levels: BTreeMap<i64, usize> = BTreeMap::new();
    bars.values()
        .for_each(|n| *levels.entry((n.ln() / 1.05f64.ln()).floor() as i64).or_default() += 1);
    let mut common: Vec<usize> = levels.into_values().collect();
    common.sort_unstable_by(|a, b| b.cmp(a));
    let two = common.iter().take(2).sum::<usize>() as f64;
    let modes = if bars.len() < 11 { 0.0 } else { two / (bars.len() - 1) as f64 };
    let (mut run, mut longest, mut last) = (0, 0, -9);
    for &second in bars.keys() {
        run = if second == last + 1 { run + 1 } else { 1 };
        (longest, last) = (longest.max(run), second);
    }
    let first = calls.iter().map(|c| c.0).min().expect("a call");
    let covered = (calls.iter().map(|c| c.0).max().expect("a call") - first) as f64;
    let covered = (covered / (24 * SECOND) as f64).max(f64::from(longest.min(24)) / 12.0).min(1.0);
    let timing = regular(&gaps, 1.0);
    let size = regular(&bytes, 0.0);
    let level = flat.max(modes).clamp(0.0, 1.0);
    let duration = if bars.len() < 6 { 0.0 } else { covered };
    vec![(timing + size + level + duration) / 4.0, timing, size, level, duration]
}

/// RITA's score of times alone, of calls in 24 s.
pub(crate) fn beacon_hours(packets: &[Packet]) -> Own {
    let mut calls: BTreeMap<(Ipv4Addr, Ipv4Addr), Vec<i64>> = BTreeMap::new();
    for p in packets.iter().filter(|p| p.flags == SYN | ACK) {
        calls.entry((p.dst, p.src)).or_default().push(p.at / SECOND);
    }
    let score = |((client, server), seconds): ((Ipv4Addr, Ipv4Addr), Vec<i64>)| {
        let gaps: Vec<i64> = seconds.windows(2).map(|w| w[1] - w[0]).filter(|g| *g > 0).collect();
        let keys = vec![time(24 * SECOND), client.to_string(), server.to_string()];
        (keys, vec![regular(&gaps, 1.0)])
    };
    calls.into_iter().map(score).collect()
}
