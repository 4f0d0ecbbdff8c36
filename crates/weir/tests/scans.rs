//! The detectors of scans and floods against oracles of their own: what no small capture can show.

mod common;

use common::text;
use std::net::Ipv4Addr;
use weir_capture::memory::MemorySource;
use weir_engine::functions::Functions;
use weir_engine::reading::Reading;
use weir_engine::rows::Collect;
use weir_engine::run::{Options, run};
use weir_lang::{Query, compile, render};
use weir_packet::craft::Frame;
use weir_packet::source::LinkType;
use weir_packet::tcp::{ACK, RST, SYN};
use weir_plan::Value;

/// The start of a window of any width up to ten minutes.
const START: i64 = 1_795_240_200_000_000_000;
const SECOND: i64 = 1_000_000_000;
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

type Packet = (i64, u32, Vec<u8>);

fn packet(at: i64, frame: &Frame) -> Packet {
    let bytes = frame.bytes();
    (START + at, bytes.len() as u32, bytes)
}

/// The rows that a detector gives before it makes alerts of them, under values for its params. Any
/// number of workers must give the same.
fn rows(detector: &str, params: &[(&str, String)], packets: &[Packet]) -> Vec<Vec<Value>> {
    let text = text(format!("queries/detectors/{detector}.weir"));
    let text = text.split("\n| alert").next().expect("a text");
    let query = Query { name: detector, text };
    let params: Vec<_> = params.iter().map(|(n, v)| (String::from(*n), v.clone())).collect();
    let options = weir_lang::Options { params: &params, ..weir_lang::Options::default() };
    let program = match compile(&query, &options) {
        Ok(compiled) => compiled.program,
        Err(diagnostics) => panic!("{}", render(&diagnostics, &query, false)),
    };
    let of = |workers| {
        let memory = MemorySource::new(LinkType::ETHERNET, packets.iter().cloned());
        let (mut source, mut sink) = (Reading::new(memory), Collect::default());
        let options = Options { workers, ..Options::default() };
        let functions = Functions::default();
        let outcome = run(&program, &functions, &mut source, &mut sink, &options, &mut |_| {});
        assert!(outcome.error.is_none(), "{detector}");
        sink.rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>()
    };
    let one = of(1);
    assert_eq!(of(2), one, "{detector}: two workers");
    one
}

/// Contacts of a host outside, a second apart: accepted, or refused, or without an answer.
fn contacts(accepted: &[bool]) -> Vec<Packet> {
    let source = Ipv4Addr::new(203, 0, 113, 9);
    let mut packets = Vec::new();
    for (i, &accepted) in accepted.iter().enumerate() {
        let target = Ipv4Addr::new(10, 0, 0, i as u8);
        let (at, there) = (i as i64 * SECOND, Frame::ethernet().ipv4(source, target));
        let back = Frame::ethernet().ipv4(target, source).tcp(80, 40_000).seq(9).ackno(8);
        packets.push(packet(at, &there.tcp(40_000, 80).flags(SYN).seq(7)));
        if accepted {
            packets.push(packet(at + 1000, &back.flags(SYN | ACK)));
        } else if i % 2 == 0 {
            packets.push(packet(at + 1000, &back.flags(RST | ACK)));
        }
    }
    packets
}

/// Shares and error rates in hundredths.
#[derive(Clone, Copy, Debug)]
struct Test {
    theta_0: u128,
    theta_1: u128,
    alpha: u128,
    beta: u128,
}

impl Test {
    /// After which of the contacts the host is known as a scanner: with whole numbers, so that
    /// nothing is rounded.
    fn scanner(&self, accepted: &[bool]) -> Vec<bool> {
        // The likelihood ratio is `above / below`.
        let (mut above, mut below, mut verdict) = (1u128, 1u128, None);
        let mut known = Vec::new();
        for &accepted in accepted {
            let share = |s: u128| if accepted { s } else { 100 - s };
            if verdict.is_none() {
                (above, below) = (above * share(self.theta_1), below * share(self.theta_0));
                let (a, b) = (self.alpha, self.beta);
                if above * a >= below * b {
                    verdict = Some(true);
                } else if above * (100 - a) <= below * (100 - b) {
                    verdict = Some(false);
                }
            }
            known.push(verdict == Some(true));
        }
        known
    }

    fn params(&self) -> Vec<(&'static str, String)> {
        let share = |n: u128| format!("{}.{:02}", n / 100, n % 100);
        let (t0, t1) = (share(self.theta_0), share(self.theta_1));
        let (a, b) = (share(self.alpha), share(self.beta));
        vec![("theta_0", t0), ("theta_1", t1), ("alpha", a), ("beta", b)]
    }
}

#[test]
fn trw_decides_as_the_likelihood_ratio_in_whole_numbers_does() {
    let usual = Test { theta_0: 80, theta_1: 20, alpha: 1, beta: 99 };
    // The bounds are 9 and 1/9, and each contact is worth a factor of 3: they are met exactly.
    let met = Test { theta_0: 75, theta_1: 25, alpha: 10, beta: 90 };
    let uneven = Test { theta_0: 70, theta_1: 10, alpha: 5, beta: 95 };
    let careful = Test { theta_0: 90, theta_1: 30, alpha: 1, beta: 99 };
    // A failure is worth 3/2, and two of them meet the bound of 9/4.
    let slow = Test { theta_0: 60, theta_1: 40, alpha: 28, beta: 63 };
    let mut state = 8u64;
    let mut found = 0;
    for test in [usual, met, uneven, careful, slow] {
        for run in 0..24 {
            let accepted: Vec<bool> = (0..14)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 33) % 8 < run % 8
                })
                .collect();
            let known = test.scanner(&accepted).into_iter().filter(|k| *k).count();
            let got = rows("trw", &test.params(), &contacts(&accepted));
            assert_eq!(got.len(), known, "{test:?}: {accepted:?}");
            found += usize::from(known > 0);
        }
    }
    assert!((20..100).contains(&found), "some are scanners, and some are not: {found}");
}

#[test]
fn four_more_failures_than_successes_make_a_scanner_and_three_do_not() {
    for (accepted, expected) in [
        (vec![false; 3], 0),
        (vec![false; 4], 1),
        (vec![false; 5], 2),
        (vec![true; 14], 0),
        (vec![false, true, false, false, false], 0),
        (vec![false, true, false, false, false, false], 1),
        ([vec![true; 4], vec![false; 10]].concat(), 0),
        ([vec![true; 3], vec![false; 7]].concat(), 1),
    ] {
        assert_eq!(rows("trw", &[], &contacts(&accepted)).len(), expected, "{accepted:?}");
    }
}

/// A client's handshakes with the server, of which all but the last ACK is there.
fn half_open(count: usize) -> impl Iterator<Item = Packet> {
    (0..count).flat_map(|i| {
        let (client, port) = (Ipv4Addr::from(0xcb00_0000 + i as u32), 1024 + (i % 60_000) as u16);
        let at = i as i64 * 5 * SECOND / 1000;
        let syn = Frame::ethernet().ipv4(client, SERVER).tcp(port, 80).flags(SYN).seq(u32::MAX);
        let answer = Frame::ethernet().ipv4(SERVER, client).tcp(80, port).flags(SYN | ACK).seq(5);
        [packet(at, &syn), packet(at + 1000, &answer.ackno(0))]
    })
}

/// SYNs in 0.7 s to random ports of the server that it does not answer.
fn many_ports(count: u32, ports: u32, source: impl Fn(u32) -> (Ipv4Addr, u16)) -> Vec<Packet> {
    let mut state = 9u32;
    (0..count)
        .map(|i| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (client, port) = source(i);
            let to = 1 + ((state >> 8) % ports) as u16;
            let syn = Frame::ethernet().ipv4(client, SERVER).tcp(port, to).flags(SYN).seq(i);
            packet(i64::from(i) * 700_000_000 / i64::from(count), &syn)
        })
        .collect()
}

#[test]
fn a_flood_over_many_ports_is_one_of_the_server_and_a_scan_is_none() {
    let forged = |i: u32| (Ipv4Addr::from(0xcb00_0000 + i * 7), 1024 + (i % 50_000) as u16);
    let one = |i: u32| (Ipv4Addr::new(203, 0, 113, 9), 1024 + (i % 50_000) as u16);
    let same_port = |_| (Ipv4Addr::new(203, 0, 113, 9), 40_000);
    let flood = |packets: &[Packet]| {
        let rows = rows("syn_flood", &[], packets);
        rows.first().map(|row| (rows.len(), row[3].clone(), row[7].clone()))
    };
    let all = |n| Value::Int(n);
    let ports = 8450;
    for source in [forged as fn(u32) -> _, one] {
        let (rows, incomplete, seen) = flood(&many_ports(18_778, ports, source)).expect("a flood");
        let Value::Int(seen) = seen else { panic!("{seen}") };
        assert_eq!((rows, incomplete), (1, all(18_778)));
        assert!((7000..=8450).contains(&seen), "{seen} ports");
    }
    // A port of a port is one connection, however many SYNs there are.
    assert!(flood(&many_ports(18_778, ports, same_port)).is_some());
    assert_eq!(flood(&many_ports(1500, 1000, same_port)), None);
    // The one port among many that is flooded: this client is no scanner.
    let mut packets = many_ports(300, 100, one);
    packets.extend(many_ports(130, 1, |i| (Ipv4Addr::new(203, 0, 113, 9), 60_000 + i as u16)));
    packets.sort_by_key(|p| p.0);
    assert_eq!(flood(&packets).map(|row| row.1), Some(all(430)));
    // Forged sources beside a scanner: he does not count, and hides none of them.
    let mut packets = many_ports(1000, 900, same_port);
    packets.extend(many_ports(200, 200, forged));
    packets.sort_by_key(|p| p.0);
    assert_eq!(flood(&packets).map(|row| row.1), Some(all(200)));
}

#[test]
fn a_million_acks_of_a_busy_server_hide_no_flood_of_a_thousand() {
    let client = Ipv4Addr::new(192, 0, 2, 1);
    let ack = |port| {
        let there = Frame::ethernet().ipv4(client, SERVER).tcp(port, 80);
        there.flags(ACK).seq(1).ackno(1).bytes()
    };
    let acks: Vec<_> = (0..100).map(|i| ack(2000 + i)).collect();
    let busy = (0..1_000_000usize).map(|i| {
        let bytes = acks[i % acks.len()].clone();
        (START + i as i64 * 9 * SECOND / 1_000_000, bytes.len() as u32, bytes)
    });
    let mut packets: Vec<_> = busy.chain(half_open(1000)).collect();
    packets.sort_by_key(|p| p.0);
    let got = rows("syn_flood", &[], &packets);
    assert_eq!(got.len(), 1);
    assert_eq!(got[0][3..6], [Value::Int(1000), Value::Int(1000), Value::Int(0)], "{:?}", got[0]);
}

#[test]
fn the_udp_flood_of_twice_the_threshold_is_told_in_the_fourth_second() {
    for (seconds, expected) in [(3, 0), (4, 1)] {
        let frame = Frame::ethernet().ipv4([192, 0, 2, 1], SERVER).udp(1, 2).payload(b"x");
        let packets: Vec<_> =
            (0..seconds * 400).map(|i| packet(i * SECOND / 400, &frame)).collect();
        let params = [("threshold", String::from("200.0"))];
        assert_eq!(rows("udp_flood", &params, &packets).len(), expected, "{seconds} seconds");
    }
}

#[test]
fn the_sum_of_syns_less_fins_alarms_in_the_period_that_arithmetic_says() {
    // With X constant, the sum passes 1.05 after so many periods; 0.7 meets it exactly in the third.
    for (tenths, period) in [(5, 8), (7, 4), (10, 2), (20, 1)] {
        let client = [192, 0, 2, 1];
        let mut packets = Vec::new();
        for n in 0..3 + period {
            let opened = if n < 3 { 10 } else { 10 + tenths };
            for i in 0..opened {
                let at = n * 20 * SECOND + i * SECOND / 2;
                let there = Frame::ethernet().ipv4(client, SERVER).tcp(1024 + i as u16, 80);
                packets.push(packet(at, &there.clone().flags(SYN)));
                if i < 10 {
                    packets.push(packet(at + 1, &there.flags(ACK | 1)));
                }
            }
        }
        let params = [("least", String::from("1.0"))];
        assert_eq!(rows("syn_fin_cusum", &params, &packets).len(), 1, "X = {tenths} tenths");
        let fewer: Vec<_> =
            packets.into_iter().filter(|p| p.0 < START + (2 + period) * 20 * SECOND).collect();
        assert_eq!(rows("syn_fin_cusum", &params, &fewer), Vec::<Vec<Value>>::new());
    }
}

#[test]
fn a_clock_that_steps_back_changes_nothing_for_a_flood() {
    let mut packets: Vec<_> = half_open(400).collect();
    for pair in packets.chunks_mut(6) {
        pair.reverse();
    }
    let got = rows("syn_flood", &[], &packets);
    assert_eq!(got.len(), 1);
    assert_eq!(got[0][3], Value::Int(400));
}
