//! Ends in the model: the first arm that holds, its acts one by one, each frame a `Vec` of bytes.

use super::crypto_pan::PanKey;
use super::eval::Eval;
use super::row::{PacketValues, Row};
use crate::egress::Frame;
use std::rc::Rc;
use weir_packet::egress::Outlet;
use weir_packet::limits::CAPLEN_MAX;
use weir_packet::rewrite::Rewriter;
use weir_packet::source::LinkType;
use weir_plan::counters::{EndCounts, Traffic};
use weir_plan::ends::{Act, Edit, Ends, To, mix, text_word};
use weir_plan::{Expr, Type, Value};

/// The frames that were handed out, and how many.
pub(super) struct Outgoing {
    pub(super) frames: Vec<Frame>,
    pub(super) ends: EndCounts,
}

impl Outgoing {
    /// Hands a packet out; says whether its row goes on.
    pub(super) fn send(&mut self, ends: &Ends, eval: &mut Eval<'_>, row: &Row) -> bool {
        let holds = |arm: &&weir_plan::ends::Arm| {
            arm.when.as_ref().is_none_or(|when| eval.holds(when, row, &[]))
        };
        let Some(arm) = ends.arms.iter().find(holds) else { return true };
        for act in &arm.acts {
            self.act(act, eval, row);
        }
        arm.next
    }

    fn act(&mut self, act: &Act, eval: &mut Eval<'_>, row: &Row) {
        let packet = Rc::clone(row.packet.as_ref().expect("the row is a packet"));
        let outlets = match &act.to {
            To::Steer { keys, outputs } => {
                let part = |k: &Expr| (eval.eval(k, row, &[]), k.ty.clone());
                let key: Vec<(Value, Type)> = keys.iter().map(part).collect();
                vec![Outlet::Named(chosen(&key, outputs).clone())]
            }
            to => to.outlets(),
        };
        let (mut bytes, mut len, mut untagged) = (packet.bytes.clone(), packet.len, 0);
        for edit in &act.edits {
            match edit {
                Edit::Trim(n) => bytes.truncate(*n as usize),
                Edit::Tag(id) if packet.link == LinkType::ETHERNET && bytes.len() >= 12 => {
                    let [hi, lo] = id.to_be_bytes();
                    bytes.splice(12..12, [0x81, 0x00, hi, lo]);
                    len = len.saturating_add(4);
                }
                Edit::Tag(_) => untagged += 1,
                Edit::Anonymize(how) => {
                    let mut names = PanKey::new(how.key.0);
                    let which = how.addresses;
                    let mut rewriter = Rewriter::default();
                    rewriter.set_ports(&how.ports);
                    if !rewriter.rewrite(packet.link, &mut bytes, len, which, &mut names) {
                        self.ends.withheld += 1;
                        return;
                    }
                }
            }
        }
        self.ends.untagged += untagged;
        bytes.truncate(CAPLEN_MAX as usize);
        let traffic = Traffic { frames: 1, bytes: len.into() };
        if act.to == To::Drop {
            self.ends.dropped.merge(traffic);
        }
        for outlet in outlets {
            self.ends.add(&outlet, traffic);
            let PacketValues { link, ts, capture_point, .. } = *packet;
            self.frames.push(Frame { outlet, link, ts, len, capture_point, bytes: bytes.clone() });
        }
    }
}

/// The output that a key goes to: the one with the highest score, of equal ones the first; the
/// first of all where no part of the key is there.
fn chosen<'o>(key: &[(Value, Type)], outputs: &'o [String]) -> &'o String {
    if !key.iter().any(|(value, _)| value.exists()) {
        return &outputs[0];
    }
    let hash = key.iter().flat_map(words).fold(0, mix);
    let score = |name: &&String| mix(hash, text_word(name.as_bytes()));
    // Of equal ones the last is taken, so they are looked at from the end.
    outputs.iter().rev().max_by_key(score).expect("an output")
}

/// The words of a part of a key.
fn words((value, ty): &(Value, Type)) -> Vec<u64> {
    match value {
        Value::Absent if *ty == Type::Ip => vec![0, 0],
        Value::Absent => vec![0],
        Value::Bool(b) => vec![u64::from(*b)],
        Value::Int(n) | Value::Time(n) | Value::Duration(n) => vec![*n as u64],
        Value::Float(f) => vec![f.to_bits()],
        Value::Str(s) => vec![text_word(s.as_bytes())],
        Value::Bytes(b) => vec![text_word(b)],
        Value::Ip(a) => vec![(a >> 64) as u64, *a as u64],
        Value::Mac(m) => vec![*m],
        Value::Net(..) | Value::Tuple(_) => unreachable!("no part of a key is {value}"),
    }
}
