//! Captures of virtual wires, in network namespaces of their own.

use super::link::Interfaces;
use super::*;
use crate::sys::testbed::{Sender, in_namespace, ip, may, on_cpu, set_queues, veth};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use weir_packet::interface::Direction;
use weir_packet::source::{Account, FrameBatch, Lost, Source, SourceError};

/// Frames that are on their way at once: less than a virtual wire holds.
const BURST: usize = 64;

/// Times that a source is asked in vain before a test gives up; each takes a tenth of a second.
const PATIENCE: usize = 300;

/// Frame `i` of a test: of an EtherType for experiments, from an address of its own.
fn frame(i: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xff; 6];
    bytes.extend([2, 0]);
    bytes.extend(i.to_be_bytes());
    bytes.extend([0x88, 0xb5]);
    bytes.extend((0..len.saturating_sub(14)).map(|at| (at as u32).wrapping_mul(i + 1) as u8));
    bytes
}

fn open(interfaces: &[&str], options: &XdpOptions) -> XdpSource {
    open_xdp(interfaces, options).unwrap_or_else(|e| panic!("{e}"))
}

fn refusal(interfaces: &[&str], options: &XdpOptions) -> String {
    match open_xdp(interfaces, options) {
        Ok(source) => panic!("opened: {:?}", source.modes()),
        Err(error) => error.to_string(),
    }
}

/// The next `n` frames, and the batches they are in.
fn receive(source: &mut XdpSource, n: usize) -> Vec<FrameBatch> {
    let (mut batches, mut got, mut idle) = (Vec::new(), 0, 0);
    while got < n {
        let mut batch = FrameBatch::new();
        assert!(source.fill(&mut batch).expect("the wire is there"));
        assert!(batch.reached().is_some_and(|t| batch.ts().iter().all(|&ts| ts <= t)));
        got += batch.len();
        if batch.is_empty() {
            idle += 1;
            assert!(idle < PATIENCE, "{got} of {n}: {:?}", source.queues());
        } else {
            batches.push(batch);
        }
    }
    assert_eq!(got, n, "{:?}", source.queues());
    batches
}

/// The frames of batches, as they are now.
fn bytes(batches: &[FrameBatch]) -> Vec<Vec<u8>> {
    batches.iter().flat_map(|b| (0..b.len()).map(|i| b.frame(i).to_vec())).collect()
}

/// Whether all that the program saw is accounted for.
fn adds_up(source: &XdpSource) {
    for q in source.queues().expect("counters") {
        assert_eq!(q.redirected, q.delivered + q.ring_full + q.dropped, "{q:?}");
    }
    let interfaces = source.interfaces();
    assert_eq!(Account::of_all(interfaces.clone()), source.account(), "{interfaces:?}");
}

/// A source that has been idle: its counters are those of the moment.
fn settle(source: &mut XdpSource) {
    let mut batch = FrameBatch::new();
    assert!(source.fill(&mut batch).expect("the wire is there"));
    assert!(batch.is_empty());
}

/// Every frame sent comes, once, in order within its queue, unchanged.
fn all_come(options: &XdpOptions, attach: Attach) {
    veth("rx0", "tx0", 2);
    let mut source = open(&["rx0"], options);
    assert_eq!(source.modes()[0].attach, attach, "{}", source.modes()[0]);
    let cpus = std::thread::available_parallelism().expect("CPUs").get();
    let sender = Sender::new("tx0");
    let (mut sent, mut seen) = (0, Vec::new());
    for round in 0..20 {
        // The queue follows the sender's CPU, or the addresses of the frame.
        on_cpu(round % cpus);
        let burst: Vec<_> = (0..BURST).map(|i| frame(sent + i as u32, 60 + i * 22)).collect();
        burst.iter().for_each(|frame| sender.send(frame));
        let batches = receive(&mut source, BURST);
        let got = bytes(&batches);
        assert_eq!(
            got.iter().collect::<BTreeSet<_>>(),
            burst.iter().collect::<BTreeSet<_>>(),
            "the frames of round {round}"
        );
        sent += BURST as u32;
        for batch in &batches {
            assert!(batch.lens() == batch.caplens() && batch.link.0 == 1);
            seen.extend(batch.seq().iter().zip(batch.ts()).map(|(&seq, &ts)| (ts, seq)));
        }
    }
    assert!(seen.is_sorted(), "time and number rise");
    assert_eq!(seen.last().map(|&(_, seq)| seq), Some(u64::from(sent) - 1));
    settle(&mut source);
    assert_eq!(source.account().lost, Lost::default());
    assert_eq!(source.account().received, u64::from(sent));
    let queues = source.queues().expect("counters");
    assert_eq!(queues.len(), 2);
    // Of the stack, a virtual wire says of no frame by which queue it came.
    let spread = cpus > 1 && attach == Attach::Native;
    assert_eq!(queues.iter().all(|q| q.delivered > 0), spread, "{queues:?}");
    adds_up(&source);
}

#[test]
fn all_frames_come_natively() {
    if may("all_frames_come_natively") {
        in_namespace(|| all_come(&XdpOptions::default(), Attach::Native));
    }
}

#[test]
fn all_frames_come_by_the_stack() {
    if may("all_frames_come_by_the_stack") {
        let options = XdpOptions { attach: Some(Attach::Generic), ..XdpOptions::default() };
        in_namespace(|| all_come(&options, Attach::Generic));
    }
}

#[test]
fn all_frames_come_by_busy_polling() {
    if may("all_frames_come_by_busy_polling") {
        let options = XdpOptions { busy_poll: Some(BusyPoll::default()), ..XdpOptions::default() };
        in_namespace(|| all_come(&options, Attach::Native));
    }
}

/// Memory for 64 frames of one queue.
fn small() -> XdpOptions {
    XdpOptions { memory: 64 * 2048, ..XdpOptions::default() }
}

#[test]
fn a_reader_that_stalls_loses_frames_and_counts_them() {
    if !may("a_reader_that_stalls_loses_frames_and_counts_them") {
        return;
    }
    in_namespace(|| {
        veth("rx0", "tx0", 1);
        let mut source = open(&["rx0"], &small());
        assert_eq!(source.modes()[0].frames, 64);
        let sender = Sender::new("tx0");
        let frames: Vec<_> = (0..200).map(|i| frame(i, 100 + i as usize)).collect();
        frames[..64].iter().for_each(|frame| sender.send(frame));
        let held = receive(&mut source, 64);
        assert_eq!(bytes(&held), frames[..64]);
        // One batch had all of the memory, and what came while it was worked on was lost.
        assert!(held.iter().all(|batch| batch.len() <= 16), "a batch leaves some for the kernel");

        // All memory is in the batches: what comes is lost, and what they hold stays.
        frames[64..100].iter().for_each(|frame| sender.send(frame));
        settle(&mut source);
        let lost = Lost { ring: 36, ..Lost::default() };
        assert_eq!((source.account().received, source.account().lost), (64, lost));
        let counts = source.queues().expect("counters").remove(0);
        assert_eq!((counts.redirected, counts.dropped, counts.out_of_memory), (100, 36, 36));
        assert_eq!(bytes(&held), frames[..64]);

        // Let go, the memory is used again.
        drop(held);
        settle(&mut source);
        frames[100..150].iter().for_each(|frame| sender.send(frame));
        assert_eq!(bytes(&receive(&mut source, 50)), frames[100..150]);

        // No one reads: the oldest stay.
        settle(&mut source);
        frames.iter().for_each(|frame| sender.send(frame));
        assert_eq!(bytes(&receive(&mut source, 64)), frames[..64]);
        settle(&mut source);
        assert_eq!(source.account().lost.total(), 36 + 136);
        assert_eq!(source.account().received, 64 + 50 + 64);
        adds_up(&source);
    });
}

#[test]
fn frames_wait_when_too_many_batches_are_held() {
    if !may("frames_wait_when_too_many_batches_are_held") {
        return;
    }
    in_namespace(|| {
        veth("rx0", "tx0", 1);
        let mut source = open(&["rx0"], &XdpOptions { memory: 8 << 20, ..XdpOptions::default() });
        let sender = Sender::new("tx0");
        let mut held = Vec::new();
        for i in 0..crate::limits::LOANS_MAX as u32 {
            sender.send(&frame(i, 60));
            held.extend(receive(&mut source, 1));
        }
        sender.send(&frame(9999, 60));
        settle(&mut source);
        held.swap_remove(500);
        assert_eq!(bytes(&receive(&mut source, 1)), [frame(9999, 60)]);
        assert_eq!(source.account().lost, Lost::default());
        adds_up(&source);
    });
}

#[test]
fn batches_outlive_the_source() {
    if !may("batches_outlive_the_source") {
        return;
    }
    in_namespace(|| {
        veth("rx0", "tx0", 1);
        let mut source = open(&["rx0"], &small());
        let sender = Sender::new("tx0");
        (0..10).for_each(|i| sender.send(&frame(i, 200)));
        let held = receive(&mut source, 10);
        drop(source);
        assert!(program("rx0").is_none());
        (10..80).for_each(|i| sender.send(&frame(i, 200)));
        assert_eq!(bytes(&held), (0..10).map(|i| frame(i, 200)).collect::<Vec<_>>());
        // And the queue is free for the next.
        let mut again = open(&["rx0"], &small());
        sender.send(&frame(1, 60));
        receive(&mut again, 1);
    });
}

#[test]
fn several_interfaces_are_one_source() {
    if !may("several_interfaces_are_one_source") {
        return;
    }
    in_namespace(|| {
        veth("rx0", "tx0", 1);
        veth("rx1", "tx1", 2);
        let mut source = open(&["rx0", "rx1"], &XdpOptions::default());
        let senders = [Sender::new("tx0"), Sender::new("tx1")];
        for i in 0..30 {
            senders[usize::from(i % 3 == 0)].send(&frame(i, 80));
        }
        let batches = receive(&mut source, 30);
        assert_eq!(bytes(&batches).len(), 30);
        for batch in &batches {
            let point = batch.capture_point_of_all().expect("of one queue");
            let name = batch.interface_names().and_then(|names| names.name(point.interface()?));
            let on = batch.frame(0)[11] % 3 == 0;
            assert_eq!(
                (name.expect("known").text.as_bytes()[2] == b'1', point.direction()),
                (on, Some(Direction::In))
            );
        }
        let received: Vec<_> =
            source.interfaces().into_iter().map(|(name, a)| (name, a.received)).collect();
        assert_eq!(received, [("rx0".to_owned(), 20), ("rx1".to_owned(), 10)]);
        adds_up(&source);
        let twice = refusal(&["tx0", "tx0"], &XdpOptions::default());
        assert_eq!(twice, "tx0: it is named twice");
        assert!(program("tx0").is_none(), "nothing is left behind");
    });
}

#[test]
fn the_mode_says_what_was_refused() {
    if !may("the_mode_says_what_was_refused") {
        return;
    }
    in_namespace(|| {
        veth("rx0", "tx0", 2);
        let text = |options: &XdpOptions| open(&["rx0"], options).modes()[0].to_string();
        let usual = text(&XdpOptions::default());
        let refused = "rx0: AF_XDP on 2 queues, native, \
                       copy (no zero-copy: Operation not supported (os error 95)), ";
        assert!(usual.starts_with(refused), "{usual}");
        assert!(usual.ends_with("16384 frames of 2048 bytes a queue"), "{usual}");
        let unwanted = XdpOptions { zero_copy: Some(false), ..XdpOptions::default() };
        let unwanted = text(&unwanted);
        assert!(unwanted.contains("native, copy (no zero-copy: not asked for)"), "{unwanted}");
        let generic = XdpOptions { attach: Some(Attach::Generic), ..XdpOptions::default() };
        let generic_text = text(&generic);
        let expected = "generic (no native: not asked for), copy (no zero-copy: needs native XDP)";
        assert!(generic_text.contains(expected), "{generic_text}");
        let busy = XdpOptions { busy_poll: Some(BusyPoll::default()), ..XdpOptions::default() };
        assert!(text(&busy).contains(", busy-poll"));

        let only = XdpOptions { zero_copy: Some(true), ..XdpOptions::default() };
        let error = refusal(&["rx0"], &only);
        let expected = "rx0, queue 0: binding a socket to the queue: Operation not supported";
        assert!(error.starts_with(expected), "{error}");
        let error = refusal(&["rx0"], &XdpOptions { zero_copy: Some(true), ..generic });
        assert!(error.contains("zero-copy needs the program in the driver"), "{error}");
        assert!(program("rx0").is_none(), "nothing is left behind");

        // The loopback's driver knows no XDP.
        ip("link set dev lo mtu 1500 up");
        let lo = open(&["lo"], &XdpOptions::default()).modes()[0].to_string();
        assert!(lo.starts_with("lo: AF_XDP on 1 queue, generic (no native: "), "{lo}");
        let native = XdpOptions { attach: Some(Attach::Native), ..XdpOptions::default() };
        let error = refusal(&["lo"], &native);
        assert!(error.starts_with("lo: putting the XDP program into the driver: "), "{error}");

        // No virtual interface has a card.
        let card = XdpOptions { attach: Some(Attach::Card), ..XdpOptions::default() };
        for name in ["rx0", "lo"] {
            let error = refusal(&[name], &card);
            let start = format!("{name}: loading the XDP program onto the card: ");
            assert!(error.starts_with(&start), "{error}");
            assert!(error.contains("runs no programs on the card"), "{error}");
            assert!(program(name).is_none(), "nothing is left behind");
        }
    });
}

#[test]
fn interfaces_that_cannot_be_captured_are_refused_with_a_reason() {
    if !may("interfaces_that_cannot_be_captured_are_refused_with_a_reason") {
        return;
    }
    in_namespace(|| {
        veth("rx0", "tx0", 1);
        let options = XdpOptions::default();
        let error = refusal(&["eth7"], &options);
        let start = "eth7: no such interface; there are lo, ";
        assert!(error.starts_with(start) && error.contains("rx0"), "{error}");
        ip("link set dev rx0 mtu 9000");
        let error = refusal(&["rx0"], &options);
        assert!(error.contains("its MTU of 9000 needs frames in several pieces"), "{error}");
        assert!(error.contains("ip link set dev rx0 mtu 3818"), "{error}");
        ip("link set dev rx0 mtu 3000");
        assert_eq!(open(&["rx0"], &options).modes()[0].frame_bytes, 4096);
        // A driver that does not say how many of its queues are in use: the others can't be bound.
        ip("tuntap add dev tap0 mode tap multi_queue");
        assert_eq!(open(&["tap0"], &options).modes()[0].queues, 1);
        ip("tuntap add dev tun0 mode tun");
        let error = refusal(&["tun0"], &options);
        assert!(error.contains("takes Ethernet only"), "{error}");
        assert!(refusal(&[], &options).contains("0 interfaces to capture"));
    });
}

#[test]
fn another_program_is_named() {
    if !may("another_program_is_named") {
        return;
    }
    in_namespace(|| {
        veth("rx0", "tx0", 1);
        let first = open(&["rx0"], &XdpOptions::default());
        let error = refusal(&["rx0"], &XdpOptions::default());
        let (_, id) = program("rx0").expect("a program");
        let expected =
            format!("rx0: another XDP program `weir_redirect` (number {id}, native) is on it");
        assert!(error.starts_with(&expected), "{error}");
        drop(first);
        open(&["rx0"], &XdpOptions::default());
    });
}

#[test]
fn frames_of_queues_added_later_are_counted_as_lost() {
    if !may("frames_of_queues_added_later_are_counted_as_lost") {
        return;
    }
    in_namespace(|| {
        veth("rx0", "tx0", 2);
        set_queues("rx0", 1, 2);
        let mut source = open(&["rx0"], &XdpOptions::default());
        assert_eq!(source.modes()[0].queues, 1);
        let sender = Sender::new("tx0");
        (0..10).for_each(|i| sender.send(&frame(i, 60)));
        receive(&mut source, 10);
        set_queues("rx0", 2, 2);
        let mut received = 10;
        for (i, cpu) in [0, 1].into_iter().cycle().take(12).enumerate() {
            if cpu < std::thread::available_parallelism().expect("CPUs").get() {
                on_cpu(cpu);
            }
            sender.send(&frame(i as u32, 60));
            // It came by the queue that has a socket, or it is lost by the kernel.
            let known = |s: &XdpSource| s.account().received + s.account().lost.kernel;
            let wanted = 11 + i as u64;
            let mut batch = FrameBatch::new();
            for _ in 0..PATIENCE {
                if known(&source) == wanted {
                    break;
                }
                assert!(source.fill(&mut batch).expect("the wire is there"));
                received += batch.len() as u64;
            }
            assert_eq!(known(&source), wanted);
        }
        assert_eq!(source.account().received, received);
        let lost = source.account().lost;
        let cpus = std::thread::available_parallelism().expect("CPUs").get();
        assert_eq!(lost.total(), if cpus > 1 { 6 } else { 0 }, "{lost:?}");
        assert_eq!(lost.kernel, lost.total());
        adds_up(&source);
    });
}

#[test]
fn long_frames_are_kept_whole_or_shown_in_part() {
    if !may("long_frames_are_kept_whole_or_shown_in_part") {
        return;
    }
    in_namespace(|| {
        veth("rx0", "tx0", 1);
        for end in ["rx0", "tx0"] {
            ip(&format!("link set dev {end} mtu 3000"));
        }
        let options = XdpOptions { snap: 96, ..XdpOptions::default() };
        let mut source = open(&["rx0"], &options);
        let sender = Sender::new("tx0");
        let long = frame(7, 3014);
        sender.send(&long);
        sender.send(&frame(8, 60));
        let batches = receive(&mut source, 2);
        let all: Vec<_> = batches.iter().flat_map(|b| b.lens().iter().zip(b.caplens())).collect();
        assert_eq!(all, [(&3014, &96), (&60, &60)]);
        assert_eq!(bytes(&batches)[0], long[..96]);
    });
}

#[test]
fn an_interface_may_go_down_and_up_but_not_away() {
    if !may("an_interface_may_go_down_and_up_but_not_away") {
        return;
    }
    in_namespace(|| {
        veth("rx0", "tx0", 1);
        let mut source = open(&["rx0"], &XdpOptions::default());
        let sender = Sender::new("tx0");
        sender.send(&frame(1, 60));
        receive(&mut source, 1);
        ip("link set dev rx0 down");
        settle(&mut source);
        ip("link set dev rx0 up");
        sender.send(&frame(2, 60));
        assert_eq!(bytes(&receive(&mut source, 1)), [frame(2, 60)]);
        ip("link del rx0");
        let mut batch = FrameBatch::new();
        let error = (0..PATIENCE).find_map(|_| source.fill(&mut batch).err());
        match error.expect("an interface that is gone is told") {
            SourceError::Io { name, source } => {
                assert_eq!(name, "rx0, queue 0");
                assert!(source.to_string().contains("is the interface gone?"), "{source}");
            }
            error => panic!("{error}"),
        }
        assert!(!source.fill(&mut batch).expect("the end") && batch.is_empty());
        assert_eq!(source.account().received, 2);
    });
}

/// The XDP program on an interface, and where it is.
fn program(interface: &str) -> Option<(&'static str, u32)> {
    let interfaces = Interfaces::open().expect("a netlink socket");
    let interface = interfaces.by_name(interface).expect("an answer");
    interface.expect("an interface").program
}

/// The interface that the child of the test below captures.
const HELD: &str = "weir-held0";

#[test]
#[ignore = "what a_killed_capture_leaves_nothing_behind starts and kills"]
#[expect(clippy::print_stdout, reason = "speaks to its parent")]
fn a_child_that_captures() {
    let interfaces = Interfaces::open().expect("a netlink socket");
    if interfaces.by_name(HELD).expect("an answer").is_none() {
        return;
    }
    let mut source = open(&[HELD], &XdpOptions::default());
    println!("captures");
    // Longer than the test waits, not for ever.
    let mut batch = FrameBatch::new();
    (0..10 * PATIENCE).for_each(|_| drop(source.fill(&mut batch)));
}

#[test]
fn a_killed_capture_leaves_nothing_behind() {
    if !may("a_killed_capture_leaves_nothing_behind") {
        return;
    }
    in_namespace(|| {
        veth(HELD, "tx0", 2);
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "xdp::tests::a_child_that_captures", "--ignored", "--nocapture"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test again");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let said: Vec<_> = lines
            .map_while(Result::ok)
            .take_while(|line| !line.contains("captures"))
            .take(20)
            .collect();
        let held = program(HELD);
        // SIGKILL: it can't clean up after itself.
        child.kill().expect("a child");
        child.wait().expect("a child");
        assert!(held.is_some_and(|(place, _)| place == "native"), "{held:?}; it said {said:?}");
        let gone = (0..PATIENCE).any(|_| {
            let gone = program(HELD).is_none();
            if !gone {
                crate::live::clock::pause_ms(100);
            }
            gone
        });
        assert!(gone, "{:?} is still on {HELD}", program(HELD));
        // The queues are free too, and frames come.
        let mut source = open(&[HELD], &XdpOptions::default());
        Sender::new("tx0").send(&frame(1, 60));
        receive(&mut source, 1);
    });
}

/// A query finishes frames, and cuts others: the length on the wire stays known.
#[test]
fn a_query_runs_before_the_redirection() {
    if !may("a_query_runs_before_the_redirection") {
        return;
    }
    for attach in [Attach::Native, Attach::Generic] {
        in_namespace(|| query_before_redirection(attach));
    }
}

fn query_before_redirection(attach: Attach) {
    veth("rx0", "tx0", 1);
    let options = XdpOptions { attach: Some(attach), ..XdpOptions::default() };
    let offloaded = vec![crate::tcx::tests::offloaded(0, 4)];
    let mut source =
        open_xdp_offloaded(&["rx0"], &options, offloaded).unwrap_or_else(|e| panic!("{e}"));
    let sender = Sender::new("tx0");
    let frame = |i: u32| {
        let mut frame = frame(i, 100 + i as usize);
        frame[15] = i as u8;
        frame
    };
    let mut seen = Vec::new();
    // Frames take the memory of others before them, again and again.
    for round in 0..4 {
        (0..BURST as u32).for_each(|i| sender.send(&frame(i)));
        for batch in receive(&mut source, BURST / 2) {
            let length = |i: usize| (batch.lens()[i], batch.caplens()[i]);
            seen.extend((0..batch.len()).map(|i| (round, batch.frame(i).to_vec(), length(i))));
        }
    }
    let sent = (0..4).flat_map(|round| (0..BURST as u32).map(move |i| (round, i)));
    let up = sent.filter(|(_, i)| i % 2 == 0);
    let want: Vec<_> = up
        .map(|(round, i)| {
            let whole = frame(i);
            let cut = if i % 4 == 0 { 20 } else { whole.len() };
            (round, whole[..cut].to_vec(), (whole.len() as u32, cut as u32))
        })
        .collect();
    assert!(seen == want, "{attach:?}: {:?}", seen.iter().map(|s| s.2).collect::<Vec<_>>());
    settle(&mut source);
    adds_up(&source);
    let (account, sent) = (source.account(), 4 * BURST as u64);
    assert_eq!((account.received, account.kernel.filtered), (sent, sent / 2));
    assert_eq!(account.lost, Lost::default());
}
