//! Probes with sources and clocks of their own, probes that are slow, and messages for others.

use super::{
    Body, Message, NotRestored, Producer, ProducerId, Receipt, Receiver, UnreadableMessage,
    UnreadableState,
};
use crate::functions::Functions;
use crate::ops::testing::{agg, field, summarize};
use crate::rows::{Collect, Sink};
use crate::run::{Options, run};
use crate::tests::{Frames, program};
use std::net::Ipv4Addr;
use weir_packet::craft::Frame;
use weir_packet::source::LinkType;
use weir_plan::physical::Physical;
use weir_plan::{
    AggFunc, Expr, ExprKind, Fill, Func, Program, Session, Stage, Type, Value, Window,
};

const S: i64 = 1_000_000_000;

/// Windows of two seconds, of some aggregates by source.
fn windows() -> Program {
    let of = |func, name| agg(func, Some(field(name)));
    let aggs = vec![
        agg(AggFunc::Count, None),
        of(AggFunc::First, "sport"),
        of(AggFunc::Last, "sport"),
        of(AggFunc::Distinct, "sport"),
        of(AggFunc::Quantile(500_000), "len"),
    ];
    program(vec![summarize(&["ip.src"], aggs, Window::Tumbling(2 * S))])
}

/// Packets of some hosts in a minute, one each 10 ms: those of which the number is one of `of` in
/// so many.
fn frames(of: u16, all: u16) -> Frames {
    let mine = (0..6000u16).filter(|i| i % all == of).map(|i| {
        let ip = Ipv4Addr::new(10, 0, 0, (i % 7) as u8);
        let frame = Frame::ethernet().ipv4(ip, Ipv4Addr::LOCALHOST).udp(i, 53);
        (i64::from(i) * S / 100, frame.payload(&vec![0; usize::from(i % 50)]).bytes())
    });
    Frames::new(LinkType::ETHERNET, &mine.collect::<Vec<_>>())
}

fn messages(program: &Program, probe: u128, frames: Frames) -> Vec<Vec<u8>> {
    messages_of(program, ProducerId { probe, epoch: 0 }, frames)
}

fn messages_of(program: &Program, id: ProducerId, mut frames: Frames) -> Vec<Vec<u8>> {
    let plan = Physical::new(program, &[]);
    let (functions, options) = (Functions::default(), Options::default());
    let producer = Producer::new(&plan, &functions, &options, id).expect("it can be spread");
    let mut messages = Vec::new();
    let outcome = producer.run(&mut frames, &mut |message| {
        messages.push(message.to_vec());
        Ok(())
    });
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    messages
}

fn receiver(program: &Program, probes: &[u128]) -> (Receiver, Collect) {
    let plan = Physical::new(program, &[]);
    let (functions, options) = (Functions::default(), Options::default());
    let receiver = Receiver::new(&plan, &functions, &options, probes).expect("it can be spread");
    let mut sink = Collect::default();
    sink.open(receiver.outputs()).expect("memory opens");
    (receiver, sink)
}

/// The rows of one run over all packets.
fn rows_of_one(program: &Program) -> Vec<(usize, Vec<Value>)> {
    let (mut sink, functions) = (Collect::default(), Functions::default());
    let (mut all, options) = (frames(0, 1), Options::default());
    run(program, &functions, &mut all, &mut sink, &options, &mut |_| {});
    sink.rows
}

#[test]
fn probes_with_clocks_of_their_own_give_the_rows_of_one_run() {
    let program = windows();
    let want = rows_of_one(&program);
    assert!(want.len() > 100, "{} rows", want.len());
    let probes = [10, 11, 12];
    let (mut receiver, mut sink) = receiver(&program, &probes);
    for (of, probe) in probes.into_iter().enumerate() {
        for message in messages(&program, probe, frames(of as u16, 3)) {
            assert_eq!(receiver.take(&message, &mut sink), Ok(Receipt::Taken));
        }
        assert_eq!(sink.rows.is_empty(), of < 2, "rows come with the last probe");
    }
    let outcome = receiver.finish(&mut sink);
    assert!(outcome.error.is_none() && outcome.ledger.adds_up(), "{outcome:?}");
    assert_eq!((sink.rows, outcome.ledger.processed), (want, 6000));
}

#[test]
fn nobody_waits_for_an_idle_probe_and_what_it_sends_then_is_late() {
    let program = windows();
    let (mut receiver, mut sink) = receiver(&program, &[1, 2]);
    for message in messages(&program, 1, frames(0, 2)) {
        receiver.take(&message, &mut sink).expect("it is one");
    }
    assert!(sink.rows.is_empty(), "the other may have rows of the first window");
    receiver.set_idle(2, &mut sink);
    let rows = sink.rows.len();
    assert!(rows > 100, "{rows} rows");
    let mut late = 0;
    for message in messages(&program, 2, frames(1, 2)) {
        if let Receipt::Late(groups) = receiver.take(&message, &mut sink).expect("it is one") {
            late += groups;
        }
    }
    assert!(late > 100 && receiver.late_groups() == late, "{late} groups");
    receiver.finish(&mut sink);
    let alone = &sink.rows[..rows];
    assert!(alone.iter().all(|(_, row)| row[2] <= Value::Int(15)), "half of the packets");
}

#[test]
fn messages_of_other_plans_and_versions_are_refused() {
    let other = program(vec![summarize(&["ip.dst"], Vec::new(), Window::Tumbling(2 * S))]);
    let (mut receiver, mut sink) = receiver(&windows(), &[]);
    for message in messages(&other, 1, frames(0, 1)) {
        let e = receiver.take(&message, &mut sink).expect_err("another plan");
        assert!(matches!(e, UnreadableMessage::Target(_)), "{e}");
    }
    let mut take = |message: &[u8]| receiver.take(message, &mut sink).expect_err("no message");
    assert!(take(b"WPR3").to_string().contains("version `WPR3`"));
    assert!(take(b"{}  ").to_string().contains("begins with `{}  `"));
    assert_eq!(take(b"WPR2"), UnreadableMessage::Cut("its head"));
    assert_eq!(receiver.finish(&mut sink).ledger.processed, 0, "nothing was taken");
}

/// Damaged counts made a ledger that did not add up.
#[test]
fn counts_that_do_not_add_up_are_refused() {
    let program = windows();
    let (mut receiver, mut sink) = receiver(&program, &[1]);
    // The first count is that of received packets.
    let at = 57 + 1 + 2 + 1 + "received".len();
    let with = |message: &[u8], n: u64| {
        let mut message = message.to_vec();
        message[at..at + 8].copy_from_slice(&n.to_le_bytes());
        message
    };
    let mut damaged = 0;
    for message in messages(&program, 1, frames(0, 1)) {
        if message[57] == 3 {
            let n = u64::from_le_bytes(message[at..at + 8].try_into().expect("eight bytes"));
            let more = receiver.take(&with(&message, n + 1), &mut sink);
            assert_eq!(more, Err(UnreadableMessage::Counts));
            let most = receiver.take(&with(&message, u64::MAX), &mut sink);
            assert_eq!(most, Err(UnreadableMessage::Wrong("a count", u64::MAX)));
            damaged += 1;
        }
        assert_eq!(receiver.take(&message, &mut sink), Ok(Receipt::Taken));
    }
    let ledger = receiver.finish(&mut sink).ledger;
    assert!(damaged > 20 && ledger.adds_up() && ledger.received == 6000, "{ledger:?}");
}

/// The bound was one of all probes together: the next honest one was refused, by its name.
#[test]
fn counts_that_one_probe_forges_refuse_no_other() {
    let program = windows();
    let (mut receiver, mut sink) = receiver(&program, &[1, 2]);
    let forged = |message: &[u8]| {
        let mut message = message.to_vec();
        for name in [&b"received"[..], b"processed"] {
            let at = message.windows(name.len()).position(|bytes| bytes == name).expect("a count");
            let n = at + name.len();
            message[n..n + 8].copy_from_slice(&((1u64 << 54) - 1).to_le_bytes());
        }
        message
    };
    let mut refused = 0;
    for message in messages(&program, 1, frames(0, 1)) {
        let message = if message[57] == 3 { forged(&message) } else { message };
        match receiver.take(&message, &mut sink) {
            Ok(receipt) => assert_eq!(receipt, Receipt::Taken),
            Err(why) => {
                refused += u32::from(why == UnreadableMessage::Wrong("a count", (1 << 54) - 1))
            }
        }
    }
    assert!(refused > 0, "the sum of its own has a bound");
    for message in messages(&program, 2, frames(1, 2)) {
        assert_eq!(receiver.take(&message, &mut sink), Ok(Receipt::Taken));
    }
}

/// Sessions of three rows each: when their last row came, they are closed. The merge held them for
/// their gap unless the query asked why they had ended.
#[test]
fn closed_sessions_come_out_when_they_have_lingered() {
    let session = Session { gap_ns: 60 * S, active_ns: None, rows: Some(3), linger_ns: None };
    let udp = |host: u8, ms: i64| {
        let frame = Frame::ethernet().ipv4(Ipv4Addr::new(10, 0, 0, host), Ipv4Addr::LOCALHOST);
        (ms * S / 1000, frame.udp(1, 53).bytes())
    };
    // One probe is done soon, or sees nothing for long; the other goes on for 20 s.
    let ends: Vec<_> = [2100, 2200, 2300].map(|ms| udp(1, ms)).into();
    let waits = [ends.clone(), [18_000, 18_100].map(|ms| udp(2, ms)).into()].concat();
    let other: Vec<_> = (0..200).map(|i| udp(9 + i as u8, i * 100)).collect();
    let of = |frames: &[_]| Frames::new(LinkType::ETHERNET, frames);
    for aggs in [
        vec![agg(AggFunc::Count, None)],
        vec![agg(AggFunc::Count, None), agg(AggFunc::EndReason, None)],
    ] {
        let program = program(vec![summarize(&["ip.src"], aggs, Window::Session(session))]);
        for own in [&ends, &waits] {
            let (mut receiver, mut sink) = receiver(&program, &[1, 2]);
            let mut dues = Vec::new();
            for message in messages(&program, 1, of(own)) {
                if let Ok(Body::Window { start, .. }) = Message::read(&message).map(|m| m.body) {
                    dues.push(start);
                }
                receiver.take(&message, &mut sink).expect("it is one");
            }
            assert_eq!(dues[0], 3 * S, "the first tick at which it has lingered: {dues:?}");
            for message in messages(&program, 2, of(&other)) {
                assert_eq!(receiver.take(&message, &mut sink), Ok(Receipt::Taken));
            }
            assert_eq!(sink.rows.len(), 1, "{:?}", sink.rows);
            assert_eq!(receiver.late_groups(), 0);
        }
    }
}

/// The clock of a life has not started at its first packets, when the other probes, and the life
/// before, are far.
#[test]
fn sessions_that_end_at_the_first_packets_of_a_life_are_on_time() {
    let udp = |host: u8, ms: i64| {
        let frame = Frame::ethernet().ipv4(Ipv4Addr::new(10, 0, 0, host), Ipv4Addr::LOCALHOST);
        (ms * S / 1000, frame.udp(1, 53).bytes())
    };
    let of = |frames: &[_]| Frames::new(LinkType::ETHERNET, frames);
    let session = Session { gap_ns: 60 * S, active_ns: Some(S), rows: None, linger_ns: None };
    let aggs = vec![agg(AggFunc::Count, None)];
    let program = program(vec![summarize(&["ip.src"], aggs, Window::Session(session))]);
    let (mut receiver, mut sink) = receiver(&program, &[1, 2]);
    let before: Vec<_> = [1000, 2000].map(|ms| udp(1, ms)).into();
    let other: Vec<_> = (0..200).map(|i| udp(9, i * 100)).collect();
    let again: Vec<_> = [30_000, 31_500, 33_000].map(|ms| udp(1, ms)).into();
    let first = messages(&program, 1, of(&before)).into_iter();
    let next = messages_of(&program, ProducerId { probe: 1, epoch: 1 }, of(&again));
    for message in first.chain(messages(&program, 2, of(&other))).chain(next) {
        assert_eq!(receiver.take(&message, &mut sink), Ok(Receipt::Taken));
    }
    assert_eq!(receiver.late_groups(), 0);
    receiver.finish(&mut sink);
    let of_host = sink.rows.iter().filter(|(_, row)| row.contains(&Value::Int(1)));
    assert!(of_host.count() >= 3, "{:?}", sink.rows);
}

/// A window of more bytes than a message should have comes in several.
#[test]
fn large_windows_come_in_several_messages() {
    let program = program(vec![summarize(
        &["sport", "len"],
        vec![agg(AggFunc::Distinct, Some(field("ip.src")))],
        Window::All,
    )]);
    let many: Vec<_> = (0..40_000u32)
        .map(|i| {
            let frame = Frame::ethernet().ipv4(Ipv4Addr::from(i), Ipv4Addr::LOCALHOST);
            (i64::from(i), frame.udp(i as u16, 53).bytes())
        })
        .collect();
    let frames = Frames::new(LinkType::ETHERNET, &many);
    let messages = messages(&program, 1, frames);
    assert!(messages.len() > 4, "{} messages", messages.len());
    assert!(messages.iter().all(|m| m.len() < crate::limits::MESSAGE_BYTES + 1000));
    let (mut receiver, mut sink) = receiver(&program, &[1]);
    for message in messages.iter().rev() {
        assert_eq!(receiver.take(message, &mut sink), Ok(Receipt::Taken));
        assert_eq!(receiver.take(message, &mut sink), Ok(Receipt::Seen));
    }
    receiver.finish(&mut sink);
    assert_eq!(sink.rows.len(), 40_000);
}

/// Asks a registered function which packets to count; it refuses to go on at packet 3000.
#[test]
fn a_panic_in_a_stage_is_reported_and_what_was_sent_stays() {
    let mut functions = Functions::default();
    functions.scalar("fails", &[Type::Int], Type::Bool, |args| match args {
        [Value::Int(3_000)] => panic!("no more of this"),
        _ => Value::Bool(true),
    });
    let mut program = windows();
    let call = ExprKind::Call(Func::User(0), vec![field("number")]);
    program.pipelines[0].stages.insert(0, Stage::Where(Expr { kind: call, ty: Type::Bool }));
    program.pipelines[0].name = Some("bad".to_owned());
    let plan = Physical::new(&program, &[]);
    let options = Options::default();
    let id = ProducerId { probe: 1, epoch: 0 };
    let producer = Producer::new(&plan, &functions, &options, id).expect("it can be spread");
    let mut messages = Vec::new();
    let outcome = producer.run(&mut frames(0, 1), &mut |message| {
        messages.push(message.to_vec());
        Ok(())
    });
    let error = outcome.error.expect("a stage panics").to_string();
    assert!(error.starts_with("a stage of `bad` failed: no more of this; "), "{error}");
    let ledger = outcome.ledger;
    assert!(ledger.adds_up() && ledger.received >= 3_000, "{ledger:?}");
    let mut receiver = Receiver::new(&plan, &functions, &options, &[1]).expect("as above");
    let mut sink = Collect::default();
    sink.open(receiver.outputs()).expect("memory opens");
    for message in &messages {
        assert_eq!(receiver.take(message, &mut sink), Ok(Receipt::Taken));
    }
    assert_eq!(receiver.open_probes().collect::<Vec<_>>(), [1], "it has not ended");
    // Packets come every 10 ms: windows up to 28 s have closed, with seven sources each.
    assert_eq!(sink.rows.len(), 14 * 7);
    assert_eq!(sink.rows[..], rows_of_one(&windows())[..14 * 7]);
}

/// Takes messages of a probe, each with a receiver that goes on from what the one before saved; the
/// rows, and what was saved last.
fn saved_and_restored(program: &Program, frames: Frames) -> (Vec<(usize, Vec<Value>)>, Vec<u8>) {
    let (mut receiver, mut sink) = receiver(program, &[10]);
    let plan = Physical::new(program, &[]);
    let (functions, options) = (Functions::default(), Options::default());
    let mut saved = Vec::new();
    for message in messages(program, 10, frames) {
        saved = receiver.save();
        let restored = Receiver::restore(&plan, &functions, &options, &saved);
        receiver = restored.expect("what it saved");
        receiver.take(&message, &mut sink).expect("a message");
    }
    receiver.finish(&mut sink);
    (sink.rows, saved)
}

#[test]
fn a_receiver_goes_on_from_what_it_saved_and_from_nothing_else() {
    let windows = windows();
    let (rows, saved) = saved_and_restored(&windows, frames(0, 1));
    assert_eq!(rows, rows_of_one(&windows));
    let plan = Physical::new(&windows, &[]);
    let (functions, options) = (Functions::default(), Options::default());
    let restore = |plan, bytes: &[u8]| Receiver::restore(plan, &functions, &options, bytes);
    let fault = |plan, bytes: &[u8]| match restore(plan, bytes) {
        Err(NotRestored::State(fault)) => fault,
        Err(NotRestored::Plan(why)) => panic!("{why}"),
        Ok(_) => panic!("{} bytes are a state", bytes.len()),
    };
    assert_eq!(fault(&plan, b"WRS0"), UnreadableState::Version);
    assert_eq!(fault(&plan, &[&saved[..], &[0]].concat()), UnreadableState::Rest(1));
    let count = vec![agg(AggFunc::Count, None)];
    let other = program(vec![summarize(&["ip.src"], count, Window::Tumbling(2 * S))]);
    let other = Physical::new(&other, &[]);
    assert_eq!(fault(&other, &saved), UnreadableState::Plan);
    for cut in 0..saved.len() {
        let fault = fault(&plan, &saved[..cut]);
        assert!(!matches!(fault, UnreadableState::Rest(_)), "cut at {cut}: {fault}");
    }
}

/// In each window there is another host, and room for two more that are filled in: keys that are
/// idle are forgotten as the next comes.
#[test]
fn keys_that_were_forgotten_are_not_saved() {
    let hosts = (0..20u8).map(|i| {
        let ip = Ipv4Addr::new(10, 0, 0, i);
        let frame = Frame::ethernet().ipv4(ip, Ipv4Addr::LOCALHOST).udp(1, 53);
        (i64::from(i) * 2 * S, frame.bytes())
    });
    let mut frames = Frames::new(LinkType::ETHERNET, &hosts.collect::<Vec<_>>());
    let windows = || summarize(&[], vec![agg(AggFunc::Count, None)], Window::Tumbling(2 * S));
    let (mut below, mut above) = (windows(), windows());
    if let (Stage::Summarize(below), Stage::Summarize(above)) = (&mut below, &mut above) {
        below.keys = vec![("host".to_owned(), field("ip.src"))];
        above.keys = vec![("host".to_owned(), Expr::column(1, Type::Ip))];
        (above.fill, above.max_groups) = (Some(Fill::idle(Some(S))), 3);
    }
    let program = program(vec![below, above]);
    let (rows, _) = saved_and_restored(&program, frames.clone());
    let (mut sink, functions) = (Collect::default(), Functions::default());
    let outcome =
        run(&program, &functions, &mut frames, &mut sink, &Options::default(), &mut |_| {});
    assert_eq!((rows, outcome.ledger.evicted), (sink.rows, 0));
}
