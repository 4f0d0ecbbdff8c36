//! Any bytes as messages.

use std::sync::OnceLock;
use weir_engine::exchange::{Message, Producer, ProducerId, Receiver, UnreadableMessage};
use weir_engine::functions::Functions;
use weir_engine::rows::{Collect, Sink};
use weir_engine::run::Options;
use weir_engine::table::HashKey;
use weir_model::Frames;
use weir_packet::fields::by_name;
use weir_plan::limits::{GROUPS_MAX, SESSIONS_MAX};
use weir_plan::physical::Physical;
use weir_plan::{
    Agg, AggFunc, Expr, ExprKind, Func, Input, Pipeline, Program, Schema, Session, Stage,
    Summarize, Type, Window,
};

/// Messages of one probe, and a plan that they are for.
struct Sample {
    plan: Physical,
    messages: Vec<Vec<u8>>,
}

/// Takes messages of a probe, one of which is changed: the first byte says which, the next two from
/// where on the other bytes replace its own. Panics where the receiver does, or where it does not
/// take the other messages.
pub(crate) fn fuzz_message(data: &[u8]) {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    let Some((&[which, low, high], over)) = data.split_first_chunk() else { return };
    let Sample { plan, messages } = SAMPLE.get_or_init(sample);
    let (functions, options) = (Functions::default(), options());
    let mut receiver = Receiver::new(plan, &functions, &options, &[7]).expect("it can be spread");
    let mut sink = Collect::default();
    sink.open(receiver.outputs()).expect("memory opens");
    let which = usize::from(which) % messages.len();
    for (n, message) in messages.iter().enumerate() {
        let mut message = message.clone();
        if n == which {
            let at = usize::from(u16::from_le_bytes([low, high])) % (message.len() + 1);
            let (own, more) = over.split_at(over.len().min(message.len() - at));
            message[at..at + own.len()].copy_from_slice(own);
            message.extend_from_slice(more);
            check_cuts(&message);
        }
        match receiver.take(&message, &mut sink) {
            Err(e) => assert!(n == which, "message {n}: {e}"),
            Ok(_) => _ = receiver.take(&message, &mut sink).expect("the same again"),
        }
    }
    receiver.finish(&mut sink);
}

/// No message begins another.
fn check_cuts(message: &[u8]) {
    if Message::read(message).is_ok() {
        let cut = Message::read(&message[..message.len() - 1]);
        assert!(matches!(cut, Err(UnreadableMessage::Cut(_) | UnreadableMessage::Rest(_))));
    }
}

fn options() -> Options {
    Options { hash_key: HashKey::new(7, 9), ..Options::default() }
}

/// Windows and sessions by keys of all kinds, with aggregates of all kinds.
fn sample() -> Sample {
    let plan = Physical::new(&program(), &[]);
    let (functions, options) = (Functions::default(), options());
    let id = ProducerId { probe: 7, epoch: 1 };
    let producer = Producer::new(&plan, &functions, &options, id).expect("it can be spread");
    let mut messages = Vec::new();
    let outcome = producer.run(&mut Frames::sample(), &mut |message| {
        messages.push(message.to_vec());
        Ok(())
    });
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    Sample { plan, messages }
}

fn program() -> Program {
    const S: i64 = 1_000_000_000;
    let field = |name: &str| Expr::field(by_name(name).expect("a field"));
    let text =
        |name: &str| Expr { ty: Type::Str, kind: ExprKind::Call(Func::ToStr, vec![field(name)]) };
    let agg = |func, arg: Option<Expr>, ty| {
        let name = format!("{func:?}");
        Agg { name, func, arg, cond: None, ty }
    };
    let aggs = vec![
        agg(AggFunc::Count, None, Type::Int),
        agg(AggFunc::Sum, Some(field("len")), Type::Int),
        agg(AggFunc::Avg, Some(field("len")), Type::Float),
        agg(AggFunc::Stddev, Some(field("len")), Type::Float),
        agg(AggFunc::Min, Some(text("ip.src")), Type::Str),
        agg(AggFunc::Max, Some(field("ip.dst")), Type::Ip),
        agg(AggFunc::First, Some(field("len")), Type::Int),
        agg(AggFunc::Last, Some(text("sport")), Type::Str),
        agg(AggFunc::Distinct, Some(field("ip.src")), Type::Int),
        agg(AggFunc::DistinctUpTo(2), Some(field("len")), Type::Int),
        agg(AggFunc::ApproxDistinct, Some(field("len")), Type::Int),
        agg(AggFunc::Quantile(500_000), Some(field("tcp.seq")), Type::Int),
        agg(AggFunc::Frequent(2), Some(text("ip.src")), Type::Str),
        agg(AggFunc::Completeness, None, Type::Float),
    ];
    let pipeline = |keys: &[(&str, Expr)], window, aggs: Vec<Agg>| {
        let keys = keys.iter().map(|(name, e)| ((*name).to_owned(), e.clone())).collect();
        let sessions = matches!(window, Window::Session(_));
        let stage = Stage::Summarize(Summarize {
            keys,
            aggs,
            window,
            lateness_ns: 0,
            fill: None,
            until: None,
            unless: None,
            zone: None,
            max_groups: if sessions { SESSIONS_MAX } else { GROUPS_MAX },
        });
        let (schema, input) = (stage.output(&Schema::default()), Input::Packets);
        Pipeline { name: None, input, stages: vec![stage], schema, printed: true }
    };
    let session = Session { gap_ns: S / 2, active_ns: None, rows: Some(4), linger_ns: None };
    let reason = agg(AggFunc::EndReason, None, Type::Int);
    let of_sessions = [vec![reason], aggs.clone()].concat();
    Program {
        source: weir_plan::SourceKind::Packets,
        pipelines: vec![
            pipeline(
                &[("src", field("ip.src")), ("port", field("sport")), ("text", text("dport"))],
                Window::Tumbling(S),
                aggs.clone(),
            ),
            pipeline(&[], Window::Sliding { over: 2 * S, every: S }, aggs),
            pipeline(&[("flow", field("ip.src"))], Window::Session(session), of_sessions),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_messages_as_they_are() {
        let Sample { messages, .. } = sample();
        assert!(messages.len() > 20, "{} messages", messages.len());
        for which in 0..messages.len() as u8 {
            fuzz_message(&[which, 0, 0]);
        }
    }

    #[test]
    fn each_byte_of_each_message_changed() {
        let Sample { messages, .. } = sample();
        for (which, message) in messages.iter().enumerate() {
            let step = (message.len() / 40).max(1);
            for at in (0..message.len()).step_by(step) {
                let [low, high] = (at as u16).to_le_bytes();
                fuzz_message(&[which as u8, low, high, message[at] ^ 0x80]);
                fuzz_message(&[which as u8, low, high, message[at] ^ 1]);
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_hold(
            which: u8, at: u16, over in proptest::collection::vec(
                prop_oneof![Just(0u8), Just(1), Just(254), Just(255), any::<u8>()], 0..20,
            ),
        ) {
            let [low, high] = at.to_le_bytes();
            fuzz_message(&[&[which, low, high][..], &over].concat());
        }
    }
}
