//! Packet functions: where programs send frames, against where the engine hands them out.

use super::choices::Choices;
use super::common::{self, Leaves, acting_kernel, crafted, fixtures, plan_of, sent};
use super::random::condition;
use proptest::test_runner::{Config, TestRunner};
use weir_offload::OutletPlace::{Host, Interface};
use weir_offload::limits::SETS_MAX;
use weir_offload::{
    FrameCount, Hook, KernelOutlet, KernelProgram, OffloadOptions, OutletPlace, TO_HOST, compile,
    redirect_to,
};
use weir_packet::craft::Frame;
use weir_packet::egress::Outlet;
use weir_packet::source::LinkType;
use weir_packet::{icmp, ipv4, tcp, udp};

/// The outlets of the functions below; packets that pass are only counted.
pub(super) fn outlets() -> Vec<KernelOutlet> {
    let named = |name: &str, place| KernelOutlet { outlet: Outlet::Named(name.to_owned()), place };
    let file = OutletPlace::UserSpace("files are written in user space".to_owned());
    vec![
        named("eth1", OutletPlace::Interface),
        KernelOutlet { outlet: Outlet::Pass, place: OutletPlace::Nowhere },
        named("eth2", OutletPlace::Interface),
        named("eth3", OutletPlace::Interface),
        named("out.pcap", file),
        named("host:", OutletPlace::Host),
        named("eth0", OutletPlace::CameBy),
    ]
}

/// The return value of a program for a frame that goes to the outlets of these numbers.
fn way(program: &KernelProgram, outlets: &[KernelOutlet], mut to: Vec<usize>) -> i32 {
    to.sort_unstable();
    match to[..] {
        [] => 0,
        [n] if outlets[n].place == Host => TO_HOST,
        [n] => redirect_to(n),
        _ => {
            let actions = program.actions.as_ref().expect("it hands packets out");
            let set = actions.sets.iter().position(|set| *set == to).expect("a set of outlets");
            redirect_to(outlets.len() + set)
        }
    }
}

/// How many frames the kernel finished, and how many went up.
#[derive(Default, Debug)]
struct Finished {
    dropped: u64,
    sent: u64,
    filtered: u64,
    up: u64,
    /// Of those that were sent.
    tagged: u64,
    shortened: u64,
}

/// Compares where a program sends frames with where the engine does.
fn check(text: &str, frames: &[Vec<u8>], finished: &mut Finished) {
    let outlets = outlets();
    let kernel = acting_kernel(text, &outlets).unwrap_or_else(|e| panic!("{text}: {e}"));
    (0..outlets.len()).for_each(|n| kernel.set_longest(n, u64::MAX));
    // The model does not say which frames it dropped, but where it sent others.
    let gone = Outlet::Named("gone".to_owned());
    let want = sent(&text.replace("drop", "forward \"gone\""), frames);
    let mut deeds = vec![(0, 0); outlets.len() + 1];
    for (frame, want) in frames.iter().zip(want) {
        let Some((count, run)) = kernel.run(frame) else { continue };
        let shown = || format!("{text}: {frame:02x?}, to {want:?}\n{}", kernel.program.code);
        let returned = run.returned.cast_signed();
        assert!(count == FrameCount::Acted || run.data == *frame, "{}", shown());
        match count {
            FrameCount::Filtered => {
                assert!(want.is_empty() && returned == 0, "filtered: {}", shown());
                finished.filtered += 1;
            }
            FrameCount::Acted => {
                let (mut sends, mut leaves) = (Vec::new(), frame);
                for Leaves { outlet: to, len, bytes } in &want {
                    let n = outlets.iter().position(|known| known.outlet == *to);
                    let deed = &mut deeds[n.map_or(0, |n| n + 1)];
                    *deed = (deed.0 + 1, deed.1 + u64::from(*len));
                    assert!(*to == gone || n.is_some());
                    let kernel_sends = |n: &usize| matches!(outlets[*n].place, Interface | Host);
                    if let Some(n) = n.filter(kernel_sends) {
                        sends.push(n);
                        leaves = bytes;
                    }
                }
                assert!(run.data == *leaves, "{:02x?}: {}", run.data, shown());
                finished.tagged += u64::from(leaves.get(12..16) != frame.get(12..16));
                finished.shortened += u64::from(leaves.len() < frame.len());
                let way = way(&kernel.program, &outlets, sends);
                assert!(!want.is_empty() && returned == way, "returned {returned}: {}", shown());
                *(if way == 0 { &mut finished.dropped } else { &mut finished.sent }) += 1;
            }
            FrameCount::Wanted | FrameCount::Unclear | FrameCount::Full => {
                assert!(returned > 0, "{}", shown());
                finished.up += 1;
            }
            FrameCount::Counted => panic!("counted: {}", shown()),
        }
    }
    assert_eq!(kernel.deeds(), deeds, "{text}");
}

/// Functions, and whether the kernel decides all that they do with packets that it can read.
const FUNCTIONS: [(&str, bool); 38] = [
    ("packets | drop", true),
    ("packets | trim 64 | drop", true),
    ("packets | where tcp or arp | trim 74 | forward \"eth1\"", true),
    (
        "packets | branch when udp -> trim 70 | tag 9 | forward \"eth1\" \
         when ip -> tag 9 | trim 82 | broadcast to (\"eth1\", \"eth2\") \
         else -> trim 40 | steer by len to (\"eth1\", \"eth3\", \"eth0\")",
        true,
    ),
    (
        "packets | branch when len > 80 -> trim 76 | mirror \"eth1\" | pass \
         else -> trim 54 | trim 60 | pass",
        true,
    ),
    ("packets | tag 1 | forward \"eth1\"", true),
    ("packets | where ip | tag 4094 | broadcast to (\"eth1\", \"eth0\", \"eth2\")", true),
    ("packets | tag 7 | steer by conn to (\"eth1\", \"eth2\", \"eth0\")", true),
    (
        "packets | branch when tcp -> mirror \"eth3\" | tag 9 | pass \
         when arp -> tag 5 | pass else -> tag 9 | forward \"eth2\"",
        false,
    ),
    (
        "packets | branch when tcp -> tag 100 | forward \"eth1\" else -> forward \"eth2\"
      packets | where ip | tag 100 | forward \"eth3\"
      packets | where arp | drop",
        false,
    ),
    ("packets | where tcp | pass", true),
    ("packets | where udp and dport == 53 | forward \"eth1\"", true),
    (
        "packets | branch when tcp.dport == 443 -> pass when tcp.ack -> pass when arp -> pass \
      else -> drop",
        true,
    ),
    (
        "packets | branch when tcp -> forward \"eth1\" when udp -> forward \"eth2\" \
      when arp -> drop",
        false,
    ),
    ("packets | branch when ip.src in {10.0.0.0/8, 192.0.2.0/24} -> next else -> drop", false),
    ("packets | steer by conn to (\"eth1\", \"eth2\", \"eth3\")", true),
    ("packets | steer by hosts to (\"eth3\", \"eth1\")", true),
    ("packets | where ip | steer by ip.src, sport, tcp.syn to (\"eth1\", \"eth2\")", true),
    (
        "packets | extend net = prefix(ip.src, 24) \
         | branch when exists(net) -> steer by net, eth.src to (\"eth1\", \"eth2\", \"eth3\") \
         else -> drop",
        true,
    ),
    ("packets | broadcast to (\"eth2\")", true),
    ("packets | branch when arp or tcp.dport == 22 -> forward \"host:\" else -> drop", true),
    ("packets | steer by conn to (\"eth1\", \"host:\")", true),
    (
        "packets | branch when dns -> broadcast to (\"eth1\", \"eth2\") else -> steer by hosts to \
      (\"eth1\", \"eth2\")",
        false,
    ),
    ("packets | branch when len > 100 -> forward \"out.pcap\" else -> drop", false),
    (
        "packets | branch when tcp.syn -> mirror \"eth2\" | pass \
         when tcp -> mirror \"eth1\" | pass \
      else -> drop",
        true,
    ),
    ("packets | broadcast to (\"eth1\", \"eth2\", \"eth3\")", true),
    ("packets | where ip | broadcast to (\"eth0\", \"eth2\", \"eth1\")", true),
    ("packets | forward \"eth0\"", true),
    ("packets | mirror \"eth1\" | where tcp | mirror \"eth2\" | forward \"eth3\"", true),
    ("packets | mirror \"eth3\" | steer by conn to (\"eth1\", \"eth2\", \"eth0\")", true),
    (
        "packets | branch when tcp -> mirror \"eth2\" | next when arp -> drop | next \
         | branch when len > 100 -> forward \"eth1\" else -> drop",
        true,
    ),
    ("packets | mirror \"eth2\" | summarize n = count() by ip.proto", true),
    (
        "packets | where tcp or arp | mirror \"eth1\" | pass
      packets | where udp or tcp.syn | forward \"eth2\"
      packets | where tcp.ack | forward \"eth3\"
      packets | where len > 80 | drop
      packets | where len > 90 | drop",
        true,
    ),
    (
        "packets | branch when tcp -> mirror \"eth1\" | forward \"host:\" \
      else -> forward \"host:\"",
        false,
    ),
    ("packets | branch when tcp -> mirror \"eth1\" | forward \"eth1\" else -> drop", false),
    (
        "packets | mirror \"eth1\" | branch when arp -> forward \"eth1\" else -> forward \"eth2\"",
        false,
    ),
    (
        "packets | where tcp | drop
      packets | where udp or tcp.syn | forward \"eth1\"
      packets | where arp | pass",
        true,
    ),
    (
        "packets | where tcp or arp | pass
      packets | where udp or tcp.syn | forward \"eth1\"",
        false,
    ),
];

#[test]
fn functions_send_frames_where_the_engine_does() {
    if !common::may("functions_send_frames_where_the_engine_does") {
        return;
    }
    let frames: Vec<Vec<u8>> = crafted().into_iter().step_by(3).chain(fixtures()).collect();
    for (text, decides) in FUNCTIONS {
        let mut finished = Finished::default();
        check(text, &frames, &mut finished);
        let kernel = acting_kernel(text, &outlets()).unwrap_or_else(|e| panic!("{text}: {e}"));
        let prefixes = &kernel.program.prefixes;
        let all = prefixes.iter().all(|prefix| prefix.acts && prefix.stopped_by.is_none());
        assert_eq!(all || prefixes.len() > 1, decides || prefixes.len() > 1, "{text}");
        eprintln!("{finished:?}: {text}");
        assert!(finished.dropped + finished.sent > 100, "{finished:?}: {text}");
        assert!(!decides || finished.up * 3 < frames.len() as u64, "{finished:?}: {text}");
    }
}

/// Conditions of arms at random.
#[test]
fn random_functions_send_frames_where_the_engine_does() {
    if !common::may("random_functions_send_frames_where_the_engine_does") {
        return;
    }
    let config = Config { failure_persistence: None, ..Config::with_cases(100) };
    let frames: Vec<Vec<u8>> =
        crafted().into_iter().step_by(11).chain(fixtures().into_iter().step_by(3)).collect();
    let finished = std::cell::RefCell::new(Finished::default());
    let tape = proptest::collection::vec(proptest::num::u16::ANY, 60);
    let result = TestRunner::new(config).run(&tape, |tape| {
        let mut c = Choices::new(tape);
        let mut arms = String::new();
        const ENDS: [&str; 19] = [
            "pass",
            "drop",
            "forward \"eth1\"",
            "forward \"out.pcap\"",
            "steer by hosts to (\"eth1\", \"eth2\")",
            "steer by conn, len to (\"eth3\", \"eth2\", \"eth1\")",
            "next",
            "broadcast to (\"eth1\", \"eth2\")",
            "broadcast to (\"eth3\", \"eth0\", \"eth2\")",
            "mirror \"eth2\" | pass",
            "mirror \"eth1\" | mirror \"eth3\" | next",
            "mirror \"eth1\" | steer by len to (\"eth1\", \"eth2\", \"eth0\")",
            "drop | next",
            "tag 77 | forward \"eth1\"",
            "mirror \"eth3\" | tag 5 | steer by len to (\"eth1\", \"eth2\", \"eth0\")",
            "tag 77 | broadcast to (\"eth3\", \"eth2\")",
            "trim 62 | forward \"eth2\"",
            "tag 77 | trim 67 | steer by len to (\"eth3\", \"eth2\")",
            "mirror \"eth0\" | trim 62 | mirror \"eth1\" | trim 40 | pass",
        ];
        const MIRRORS: [&str; 6] = [
            "",
            "",
            "| mirror \"eth3\"",
            "| mirror \"host:\"",
            "| branch when ip -> tag 77 | mirror \"eth1\" | next",
            "| branch when not tcp -> trim 62 | mirror \"eth1\" | next",
        ];
        for _ in 0..1 + c.below(3) {
            arms += &format!("when {} -> {} ", condition(&mut c, 2), c.pick(&ENDS));
        }
        let (first, rest) = (c.pick(&MIRRORS), c.pick(&ENDS));
        // Stages may follow where rows go on.
        let goes_on = arms.contains("next") || rest.contains("next");
        let last = c.pick(&["", "| where tcp | pass", "| drop"]);
        let last = if goes_on { last } else { "" };
        let text = format!("packets {first} | branch {arms} else -> {rest} {last}");
        let runs = common::try_plan(&text).map(|_| acting_kernel(&text, &outlets()));
        if let Some(Ok(_)) = runs {
            check(&text, &frames, &mut finished.borrow_mut());
        }
        Ok(())
    });
    if let Err(e) = result {
        panic!("{e}");
    }
    let finished = finished.into_inner();
    eprintln!("{finished:?}");
    assert!(finished.dropped > 500 && finished.sent > 500, "{finished:?}");
    assert!(finished.tagged > 100 && finished.shortened > 100, "{finished:?}");
}

/// An outlet takes frames up to the length that the process says, and none while it is away.
#[test]
fn what_an_interface_does_not_take_goes_up() {
    if !common::may("what_an_interface_does_not_take_goes_up") {
        return;
    }
    for text in [
        "packets | forward \"eth2\"",
        "packets | steer by len to (\"eth2\")",
        "packets | broadcast to (\"eth2\")",
    ] {
        let kernel = acting_kernel(text, &outlets()).unwrap_or_else(|e| panic!("{text}: {e}"));
        let decide = |len: usize| kernel.decide(&vec![0x88; len]).expect("it runs").0;
        assert_eq!(decide(60), FrameCount::Wanted, "it is away at first");
        for longest in [14, 60, 1514, 1518] {
            kernel.set_longest(2, longest as u64);
            assert_eq!(decide(longest), FrameCount::Acted, "{longest}");
            assert_eq!(decide(longest + 1), FrameCount::Wanted, "{longest}");
        }
        let bytes = 14 + 60 + 1514 + 1518;
        assert_eq!(kernel.deeds()[3], (4, bytes));
        // A VLAN tag goes besides: a frame without one may not be as long as one with it.
        for kind in [[0x81, 0x00], [0x88, 0xa8]] {
            let tagged = |len: usize| {
                let mut frame = vec![0x88; len];
                frame[12..14].copy_from_slice(&kind);
                kernel.decide(&frame).expect("it runs").0
            };
            kernel.set_longest(2, 1514);
            assert_eq!(decide(1515), FrameCount::Wanted);
            assert_eq!([1514, 1518].map(tagged), [FrameCount::Acted; 2], "{kind:?}");
            assert_eq!(tagged(1519), FrameCount::Wanted, "{kind:?}");
        }
    }
    // Dropped frames, and frames that are only counted, have no such bound.
    for text in ["packets | pass", "packets | drop"] {
        let kernel = acting_kernel(text, &outlets()).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(kernel.decide(&[0x88; 3000]), Some((FrameCount::Acted, 0)), "{text}");
    }
}

/// A program of one interface knows by which its packets come.
#[test]
fn the_interface_decides_before_the_run() {
    if !common::may("the_interface_decides_before_the_run") {
        return;
    }
    let text = "packets | branch when interface == \"eth9\" and tcp -> drop \
                when \"eth8\" != interface -> forward \"eth1\" else -> pass";
    let frame = weir_packet::craft::Frame::ethernet().ipv4([1; 4], [2; 4]).tcp(1, 2).bytes();
    for (interface, expected) in [("eth9", 0), ("eth7", redirect_to(0)), ("eth8", 0)] {
        let kernel = common::kernel_at(text, &outlets(), interface);
        let kernel = kernel.unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(kernel.program.prefixes[0].stopped_by, None);
        kernel.set_longest(0, u64::MAX);
        let decided = kernel.decide(&frame);
        assert_eq!(decided, Some((FrameCount::Acted, expected.cast_unsigned())), "{interface}");
        let dropped = u64::from(interface == "eth9");
        assert_eq!(kernel.deeds()[0].0, dropped, "{interface}");
    }
}

/// A tag goes besides what an outlet says, and another one counts.
#[test]
fn a_tagged_frame_that_an_interface_does_not_take_goes_up_untagged() {
    let test = "a_tagged_frame_that_an_interface_does_not_take_goes_up_untagged";
    if !common::may(test) {
        return;
    }
    let text = "packets | tag 7 | forward \"eth2\"";
    let kernel = acting_kernel(text, &outlets()).unwrap_or_else(|e| panic!("{text}: {e}"));
    kernel.set_longest(2, 1514);
    let run = |frame: &[u8]| kernel.run(frame).expect("it runs");
    for kind in [0x88_u8, 0x81] {
        let frame = |len: usize| {
            let mut frame = vec![0x88; len];
            (frame[12], frame[13]) = (kind, if kind == 0x81 { 0 } else { 0x88 });
            frame
        };
        let (count, all) = run(&frame(1514));
        assert_eq!((count, all.data.len()), (FrameCount::Acted, 1518), "{kind}");
        assert_eq!(all.data[12..16], [0x81, 0, 0, 7], "{kind}");
        let (count, up) = run(&frame(1515));
        assert!(count == FrameCount::Wanted && up.data == frame(1515), "{kind}");
    }
    assert_eq!(kernel.deeds()[3], (2, 2 * 1518));
    // Two outlets that get a frame with and without a tag: workers make the second one.
    let text = "packets | mirror \"eth1\" | tag 7 | forward \"eth2\"";
    let kernel = acting_kernel(text, &outlets()).unwrap_or_else(|e| panic!("{text}: {e}"));
    [0, 2].iter().for_each(|n| kernel.set_longest(*n, 1514));
    assert_eq!(kernel.decide(&[0x88; 60]).expect("it runs").0, FrameCount::Wanted);
    // Workers have the frames of groups that find no room as they came.
    let text = "packets | where tcp | tag 7 | forward \"eth2\"
                packets | summarize n = count() by ip.src";
    let kernel = acting_kernel(text, &outlets());
    let why = match kernel {
        Ok(kernel) => kernel.program.prefixes[0].stopped_by.clone().unwrap_or_default(),
        Err(why) => why.to_string(),
    };
    assert!(why.contains("edits no packets where it counts some"), "{why}");
}

/// Frames of all kinds and lengths, with payload of many sums.
fn long_frames() -> Vec<Vec<u8>> {
    let (a, b) = ([192, 0, 2, 1], [198, 51, 100, 2]);
    let (a6, b6) = ([0x2001, 0xdb8, 1, 0, 0, 0, 0, 1], [0x2001, 0xdb8, 2, 0, 0, 0, 0, 2]);
    let mut frames = Vec::new();
    let mut seed = 1_u64;
    let mut noise = |n: usize| -> Vec<u8> {
        let next = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        };
        (0..n).map(next).collect()
    };
    for len in (0..70).chain([97, 98, 99, 100, 333, 1000, 1446, 1460, 2000]) {
        for payload in [noise(len), vec![0; len], vec![0xff; len]] {
            for tags in 0..3 {
                let eth = || (0..tags).fold(Frame::ethernet(), |frame, id| frame.vlan(id));
                let sctp = eth().ipv4(a, b).put(ipv4::PROTOCOL, &[132]);
                let later = eth().ipv6(a6, b6).extension(44, &[0, 9, 0, 0, 0, 9]);
                let all = [
                    eth().ipv4(a, b).tcp(40_000, 80),
                    eth().ipv4(a, b).udp(53, 53),
                    eth().ipv4(a, b).udp(53, 53).put(udp::CHECKSUM, &[0, 0]),
                    eth().ipv4(a, b).icmp(8, 0),
                    eth().ipv4(a, b).icmp(0, 0),
                    eth().ipv4(a, b).icmp6(128, 0).put(icmp::CHECKSUM, &[1, 2]),
                    eth().ipv6(a6, b6).tcp(40_000, 80).options(&[1; 12]),
                    eth().ipv6(a6, b6).udp(53, 53).put(udp::CHECKSUM, &[0, 0]),
                    eth().ipv6(a6, b6).icmp6(128, 0),
                    eth().ipv6(a6, b6).icmp(8, 0),
                    eth().ipv4(a, b).options(&[1; 8]).tcp(1, 2),
                    eth().ipv4(a, b).fragment(0, true).udp(1, 2),
                    eth().ipv4(a, b).fragment(8, false),
                    eth().ipv4(a, b).put(ipv4::CHECKSUM, &[1, 2]).udp(1, 2),
                    later,
                    sctp,
                    eth().header(0x88cc, &[9; 46]),
                ];
                frames.extend(all.map(|frame| frame.payload(&payload).bytes()));
            }
            let padded = Frame::ethernet().ipv4(a, b).udp(53, 53).bytes();
            frames.push([padded, payload].concat());
        }
    }
    frames
}

/// Shortened frames are those that the process would send, byte by byte.
#[test]
fn shortened_frames_are_whole() {
    if !common::may("shortened_frames_are_whole") {
        return;
    }
    let frames = long_frames();
    let mut finished = Finished::default();
    for most in [34, 54, 60, 61, 62, 63, 64, 81, 82, 83, 96, 128, 1000, 1513, 2044, 2048] {
        for edits in ["trim N", "tag 4094 | trim N", "trim N | tag 1"] {
            let edits = edits.replace('N', &most.to_string());
            if edits == "trim 2048 | tag 1" {
                continue;
            }
            check(&format!("packets | {edits} | forward \"eth1\""), &frames, &mut finished);
        }
        let both = format!(
            "packets | branch when len > 100 -> trim {most} | forward \"eth1\" \
             when tcp -> tag 5 | trim 64 | forward \"eth1\" else -> trim 96 | forward \"eth2\""
        );
        check(&both, &frames, &mut finished);
    }
    eprintln!("{finished:?}");
    assert!(finished.shortened > 60_000 && finished.tagged > 60_000, "{finished:?}");
    assert!(finished.up * 2 < finished.sent, "{finished:?}");
}

/// Where the sum over what is kept is all ones, the checksum is zero, which UDP sends as all ones.
#[test]
fn checksums_of_zero_are_those_of_the_process() {
    if !common::may("checksums_of_zero_are_those_of_the_process") {
        return;
    }
    const MOST: usize = 96;
    let (a, b) = ([192, 0, 2, 1], [198, 51, 100, 2]);
    let (a6, b6) = ([0x2001, 0xdb8, 1, 0, 0, 0, 0, 1], [0x2001, 0xdb8, 2, 0, 0, 0, 0, 2]);
    let eth = Frame::ethernet;
    let kinds = [
        (eth().ipv4(a, b).udp(53, 53), 34 + udp::CHECKSUM, 0xffff),
        (eth().ipv6(a6, b6).udp(53, 53), 54 + udp::CHECKSUM, 0xffff),
        (eth().ipv4(a, b).tcp(80, 80), 34 + tcp::CHECKSUM, 0),
        (eth().ipv6(a6, b6).tcp(80, 80), 54 + tcp::CHECKSUM, 0),
        (eth().ipv4(a, b).icmp(8, 0), 34 + icmp::CHECKSUM, 0),
        (eth().ipv6(a6, b6).icmp6(128, 0), 54 + icmp::CHECKSUM, 0),
    ];
    let frames = kinds.map(|(frame, at, expected)| {
        let frame = frame.payload(&[0; 200]).bytes();
        let checksum_of = |frame: &[u8]| {
            let mut cut = frame[..MOST].to_vec();
            weir_packet::shorten::make_whole(LinkType::ETHERNET, &mut cut);
            u16::from_be_bytes([cut[at], cut[at + 1]])
        };
        let missing = checksum_of(&frame);
        let frame = [&frame[..MOST - 2], &missing.to_be_bytes(), &frame[MOST..]].concat();
        assert_eq!(checksum_of(&frame), expected);
        frame
    });
    let mut finished = Finished::default();
    check(&format!("packets | trim {MOST} | forward \"eth1\""), &frames, &mut finished);
    assert_eq!(finished.shortened, frames.len() as u64, "{finished:?}");
}

/// The longest programs that shorten packets are within what the verifier follows.
#[test]
fn programs_that_shorten_are_verified_at_their_limits() {
    if !common::may("programs_that_shorten_are_verified_at_their_limits") {
        return;
    }
    let outlets: Vec<KernelOutlet> = (0..OUTLETS)
        .map(|n| KernelOutlet { outlet: Outlet::Named(format!("eth{n}")), place: Interface })
        .collect();
    let arm = |n: u32| {
        let edits = ["trim 2048", "trim 2047", "trim 2041 | tag 7", "tag 9 | trim 2046"];
        format!("when len & 63 == {n} -> {} | forward \"eth{n}\" ", edits[n as usize % 4])
    };
    let arms: String = (0..OUTLETS).map(arm).collect();
    let text = format!("packets | branch {arms} else -> drop");
    let kernel = acting_kernel(&text, &outlets).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(kernel.program.prefixes[0].stopped_by, None);
    match kernel.loaded.verified() {
        Ok(n) => {
            eprintln!("the verifier followed {n} instructions");
            assert!(n < VERIFIED_MAX, "the verifier followed {n} instructions");
        }
        Err(why) => eprintln!("the kernel does not say how many instructions: {why}"),
    }
    (0..OUTLETS as usize).for_each(|n| kernel.set_longest(n, 1 << 20));
    let frame = Frame::ethernet().ipv4([1; 4], [2; 4]).udp(1, 2).payload(&[5; 3000]).bytes();
    for len in 2100..2164 {
        let (ip, udp) = ((len - 14) as u16, (len - 34) as u16);
        let mut frame = frame[..len].to_vec();
        frame[16..18].copy_from_slice(&ip.to_be_bytes());
        frame[38..40].copy_from_slice(&udp.to_be_bytes());
        let (count, run) = kernel.run(&frame).expect("it runs");
        let (n, most) = (len & 63, [2048, 2047, 2045, 2046][len % 4]);
        if n < OUTLETS as usize {
            assert_eq!((count, run.data.len()), (FrameCount::Acted, most), "{len}");
            assert_eq!(run.returned.cast_signed(), redirect_to(n), "{len}");
        }
    }
}

/// Outlets of a program at its limits, and how many instructions the verifier follows at most: the
/// kernel's bound is a million.
const OUTLETS: u32 = 60;
const VERIFIED_MAX: u32 = 250_000;

/// The length that an interface takes is that of the frame as it leaves.
#[test]
fn a_long_frame_that_is_shortened_fits_an_interface() {
    if !common::may("a_long_frame_that_is_shortened_fits_an_interface") {
        return;
    }
    let frame = |len: usize| vec![0x88; len];
    for (edits, leaves) in [("trim 100", 100), ("tag 7 | trim 100", 100), ("trim 96 | tag 7", 100)]
    {
        let text = format!("packets | {edits} | forward \"eth2\"");
        let kernel = acting_kernel(&text, &outlets()).unwrap_or_else(|e| panic!("{text}: {e}"));
        let run = |len: usize| kernel.run(&frame(len)).expect("it runs");
        let tag = if edits.contains("tag") { 4 } else { 0 };
        kernel.set_longest(2, leaves - tag);
        let (count, run_of) = run(1514);
        assert_eq!((count, run_of.data.len() as u64), (FrameCount::Acted, leaves), "{edits}");
        kernel.set_longest(2, leaves - tag - 1);
        for len in [100, 1514] {
            let (count, up) = run(len);
            assert!(count == FrameCount::Wanted && up.data == frame(len), "{edits}, {len}");
        }
        assert_eq!(run(leaves as usize - tag as usize - 1).0, FrameCount::Acted, "{edits}");
    }
}

/// Where one of several outputs does not take a frame, it goes up, and no output has it yet.
#[test]
fn a_copy_that_one_interface_does_not_take_goes_up() {
    if !common::may("a_copy_that_one_interface_does_not_take_goes_up") {
        return;
    }
    for text in [
        "packets | broadcast to (\"eth1\", \"eth2\", \"eth3\", \"eth0\")",
        "packets | mirror \"eth2\" | mirror \"eth0\" | broadcast to (\"eth1\", \"eth3\")",
        "packets | mirror \"eth2\" | pass
         packets | mirror \"eth1\" | drop
         packets | steer by len to (\"eth3\")",
    ] {
        let kernel = acting_kernel(text, &outlets()).unwrap_or_else(|e| panic!("{text}: {e}"));
        let all = [0, 2, 3];
        let longest = [1514, 100, 60];
        for away in all {
            all.iter().for_each(|n| kernel.set_longest(*n, if *n == away { 0 } else { 1514 }));
            let decided = kernel.decide(&[0x88; 60]).expect("it runs").0;
            assert_eq!(decided, FrameCount::Wanted, "{text}, {away}");
        }
        all.iter().zip(longest).for_each(|(n, longest)| kernel.set_longest(*n, longest));
        let decide = |len: usize| kernel.decide(&vec![0x88; len]).expect("it runs");
        assert_eq!(decide(61).0, FrameCount::Wanted, "{text}");
        let way = way(&kernel.program, &outlets(), all.to_vec());
        assert_eq!(decide(60), (FrameCount::Acted, way.cast_unsigned()), "{text}");
        let deeds = kernel.deeds();
        assert!(all.iter().all(|n| deeds[n + 1] == (1, 60)), "{text}: {deeds:?}");
    }
}

/// Before Linux 5.13 the kernel copies nothing, and there is room for so many sets of outputs.
#[test]
fn copies_that_the_kernel_cannot_make_are_made_by_workers() {
    if !common::may("copies_that_the_kernel_cannot_make_are_made_by_workers") {
        return;
    }
    let outlets = outlets();
    let all = OffloadOptions { outlets: Ok(&outlets), ..OffloadOptions::new(Hook::Xdp, 2) };
    let old = OffloadOptions { copies: false, ..all };
    let text = "packets | branch when tcp -> broadcast to (\"eth1\", \"eth2\") else -> drop";
    let program = compile(&plan_of(text), &old).expect("it drops some");
    let why = program.prefixes[0].stopped_by.clone().unwrap_or_default();
    assert!(why.contains("before Linux 5.13"), "{why}");
    assert_eq!(program.actions.map(|actions| actions.sets), Some(Vec::new()));
    // Any of seven outputs may get a frame, with any others: that is 120 sets.
    let named = |n| Outlet::Named(format!("eth{n}"));
    let outlets: Vec<KernelOutlet> =
        (0..7).map(|n| KernelOutlet { outlet: named(n), place: Interface }).collect();
    let send = |n| format!("packets | where len & {} != 0 | forward \"eth{n}\"\n", 1 << n);
    let text: String = (0..7).map(send).collect();
    let kernel = acting_kernel(&text, &outlets).unwrap_or_else(|e| panic!("{text}: {e}"));
    let sets = &kernel.program.actions.as_ref().expect("it hands packets out").sets;
    assert_eq!(sets.len(), SETS_MAX);
    let why = kernel.program.prefixes[0].stopped_by.clone().unwrap_or_default();
    assert!(why.contains("more sets of outputs"), "{why}");
    (0..7).for_each(|n| kernel.set_longest(n, 1514));
    let (mut acted, mut up) = (0, 0);
    for len in 128..256_usize {
        let to: Vec<usize> = (0..7).filter(|bit| len >> bit & 1 != 0).collect();
        let (count, returned) = kernel.decide(&vec![0x88; len]).expect("it runs");
        if to.len() < 2 || sets.contains(&to) {
            let expected = if to.is_empty() { FrameCount::Filtered } else { FrameCount::Acted };
            let way = way(&kernel.program, &outlets, to);
            assert_eq!((count, returned.cast_signed()), (expected, way), "{len}");
            acted += 1;
        } else {
            assert_eq!(count, FrameCount::Wanted, "{len}");
            up += 1;
        }
    }
    assert_eq!((acted, up), (8 + SETS_MAX, 120 - SETS_MAX));
}

#[test]
fn what_is_not_handed_out_says_why() {
    let outlets = outlets();
    let why = |text: &str, hook| {
        let options = OffloadOptions { outlets: Ok(&outlets), ..OffloadOptions::new(hook, 2) };
        match compile(&plan_of(text), &options) {
            Ok(program) => program.prefixes[0].stopped_by.clone().unwrap_or_default(),
            Err(why) => why.to_string(),
        }
    };
    for (text, expected) in [
        ("packets | where tcp | forward \"out.pcap\"", "files are written in user space"),
        ("packets | where tcp | forward \"eth9\"", "does not know where \"eth9\" is"),
        ("packets | where tcp | trim 33 | forward \"eth1\"", "shorten packets to 33 bytes"),
        ("packets | tag 7 | trim 2049 | forward \"eth1\"", "shorten packets to 2049 bytes"),
        ("packets | trim 2045 | tag 7 | forward \"eth1\"", "shorten packets to 2049 bytes"),
        (
            "packets | trim 4294967295 | tag 7 | forward \"eth1\"",
            "shorten packets to 4294967295 bytes",
        ),
        ("packets | trim 60 | forward \"host:\"", "gives the host packets as they came"),
        (
            "packets | mirror \"eth1\" | trim 60 | forward \"eth2\"",
            "the same packet to all outputs",
        ),
        (
            "packets | where tcp | trim 64 | forward \"eth1\"
             packets | where udp | branch when udp.dport == 1 -> trim 65 | forward \"eth1\"
             when udp.dport == 2 -> trim 66 | forward \"eth1\"
             when udp.dport == 3 -> trim 67 | tag 1 | forward \"eth1\"
             else -> trim 68 | forward \"eth2\"",
            "shortens packets to 4 lengths",
        ),
        ("packets | where tcp | tag 7 | tag 8 | pass", "puts one tag on a packet"),
        ("packets | where tcp | tag 7 | drop", "no tag on what it drops"),
        (
            "packets | anonymize ip.src with \"000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f\" | drop",
            "the kernel does not run `anonymize`",
        ),
        (
            "packets | anonymize ip.src with \"000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f\" | branch when tcp -> drop else -> pass",
            "the kernel does not run `anonymize`",
        ),
        ("packets | where tcp | mirror \"eth1\" | tag 7 | forward \"eth2\"", "the same packet"),
        (
            "packets | branch when tcp -> mirror \"eth1\" | tag 7 | pass else -> pass",
            "the same packet",
        ),
        ("packets | where tcp | tag 7 | forward \"host:\"", "gives the host packets as they came"),
        ("packets | where tcp | mirror \"eth1\" | project len", "later stages need the rows"),
        ("packets | where tcp | mirror \"eth1\" | forward \"eth1\"", "to an output once"),
        (
            "packets | branch when tcp -> mirror \"eth1\" | forward \"host:\" else -> drop",
            "either to the host or to interfaces",
        ),
        (
            "packets | branch when tcp -> drop | next else -> pass | project len",
            "later stages need",
        ),
        ("packets | branch when dns -> drop else -> pass", "the kernel level does not read `dns`"),
        ("packets | where tcp | steer by dns.qname to (\"eth1\", \"eth2\")", "is not at a fixed"),
    ] {
        let why = why(text, Hook::Xdp);
        assert!(why.contains(expected), "{text}: {why}");
    }
    let elsewhere = why("packets | where tcp | drop", Hook::Tcx);
    assert!(elsewhere.contains("only in XDP are packets taken off the wire"), "{elsewhere}");
}
