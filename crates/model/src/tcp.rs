//! `analyze tcp` of the naive model: a whole conversation in lists, and sequence numbers as plain
//! integers, one rule after the other.

use super::context::StageContext;
use super::row::{Mark, Row, set_cell};
use super::scan::Memory;
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::analyze::TCP_COLUMNS;
use weir_plan::{AnalyzeTcp, Value};

/// Both directions of a conversation; each key of [`Conversation::sides`] is a direction.
#[derive(Clone, Default)]
pub(super) struct Conversation {
    sides: BTreeMap<bool, Sender>,
    latest_syn: Option<i64>,
    initial_rtt: Option<i64>,
}

/// A summary of the segments that one end sent.
#[derive(Clone, Default)]
struct Sender {
    /// The first number, and whether it is of a SYN.
    start: Option<(i64, bool)>,
    /// The end of what was sent, and when it was sent.
    highest: Option<(i64, i64)>,
    /// The end of what was sent without a gap.
    unbroken: Option<i64>,
    /// Its latest segment.
    latest: Option<Seg>,
    latest_was: &'static str,
    repeats: i64,
    /// Shift count of its windows; -1: they are not scaled.
    shift: Option<i64>,
    doubtful: bool,
    /// Ends and times of segments that are timed.
    waiting: Vec<(i64, i64)>,
    /// The same of the SYN, whether others are timed or not.
    opening: Option<(i64, i64)>,
    stamps_seen: Option<i64>,
    stamp: Option<(i64, i64)>,
}

/// A segment.
#[derive(Clone, Debug)]
struct Seg {
    time: i64,
    seq: i64,
    ack: Option<i64>,
    window: i64,
    len: i64,
    syn: bool,
    fin: bool,
    rst: bool,
    wscale: Option<i64>,
    tsval: Option<i64>,
    tsecr: Option<i64>,
}

const NUMBERS: i64 = 1 << 32;

/// How far `a` is ahead of `b` on the circle of 2^32 numbers: from -2^31 to 2^31 - 1.
fn ahead(a: i64, b: i64) -> i64 {
    (a - b + NUMBERS / 2).rem_euclid(NUMBERS) - NUMBERS / 2
}

impl Seg {
    fn end(&self) -> i64 {
        (self.seq + self.len + i64::from(self.syn || self.fin)) % NUMBERS
    }

    fn plain(&self) -> bool {
        !self.syn && !self.fin && !self.rst
    }

    /// Whether it came within this time after another.
    fn soon(&self, since: i64, ns: i64) -> bool {
        let elapsed = i128::from(self.time) - i128::from(since);
        (0..i128::from(ns)).contains(&elapsed)
    }

    fn since(&self, then: i64) -> Option<i64> {
        let elapsed = i128::from(self.time) - i128::from(then);
        i64::try_from(elapsed).ok().filter(|&ns| ns >= 0)
    }
}

/// The findings: names of flags, and values by name.
#[derive(Default)]
struct FoundFlags {
    flags: BTreeSet<&'static str>,
    news: BTreeSet<&'static str>,
    values: BTreeMap<&'static str, Value>,
}

impl StageContext<'_> {
    /// Adds to the row what it is within its connection.
    pub(super) fn analyze_tcp(
        &mut self,
        a: &AnalyzeTcp,
        keys: &mut BTreeMap<Vec<Value>, Memory<Conversation>>,
        watermark: Mark,
        row: &mut Row,
    ) {
        let inputs: Vec<Value> = a.inputs.iter().map(|e| self.eval.eval(e, row, &[])).collect();
        let found = segment(&inputs, row.ts).map(|(forward, seg)| {
            self.turn += 1;
            let key: Vec<_> = a.keys.iter().map(|k| self.eval.eval(k, row, &[])).collect();
            let ts = seg.time;
            let now = Some(match watermark {
                Mark::At(watermark) => ts.max(watermark),
                Mark::End => ts,
            });
            let known = keys.get(&key).filter(|m| match (now, m.last) {
                (Some(now), Some(last)) => now.saturating_sub(last) < a.idle_ns,
                _ => true,
            });
            let (mut conversation, last) = match known {
                Some(memory) => (memory.states.clone(), memory.last.max(now)),
                None => (Conversation::default(), now),
            };
            if !keys.contains_key(&key) && keys.len() as u64 >= a.max_keys {
                self.give_up(keys, now, a.idle_ns);
            }
            let found = conversation.hear(forward, &seg);
            keys.insert(key, Memory { states: conversation, last, turn: self.turn });
            found
        });
        for ((_, position, ty), column) in a.columns.iter().zip(TCP_COLUMNS) {
            let value = match &found {
                None => Value::Absent,
                Some(found) if *ty == weir_plan::Type::Bool => Value::Bool(match column.name {
                    "flags" => !found.flags.is_empty(),
                    name => found.flags.contains(name) || found.news.contains(name),
                }),
                Some(found) => found.values.get(column.name).cloned().unwrap_or(Value::Absent),
            };
            set_cell(&mut row.cells, *position, value);
        }
    }
}

/// The segment that a row is, and its direction.
fn segment(inputs: &[Value], ts: Option<i64>) -> Option<(bool, Seg)> {
    let int = |i: usize| match inputs[i] {
        Value::Int(n) => Some(n),
        _ => None,
    };
    let Value::Bool(forward) = inputs[0] else { return None };
    let flags = int(3)?;
    let has = |bit: i64| flags & bit != 0;
    let seg = Seg {
        time: ts?,
        seq: int(1)?,
        ack: Some(int(2)?).filter(|_| has(16)),
        window: int(4)?,
        len: int(5)?,
        syn: has(2),
        fin: has(1),
        rst: has(4),
        wscale: int(6),
        tsval: int(7),
        tsecr: int(8),
    };
    Some((forward, seg))
}

impl Conversation {
    fn hear(&mut self, forward: bool, s: &Seg) -> FoundFlags {
        let mut found = FoundFlags::default();
        let start = self.sides.get(&forward).and_then(|side| side.start);
        if s.syn && s.ack.is_none() && start.is_some_and(|(start, _)| start != s.seq) {
            *self = Conversation::default();
            found.flags.insert("reused_ports");
        }
        let mut me = self.sides.remove(&forward).unwrap_or_default();
        let mut peer = self.sides.remove(&!forward).unwrap_or_default();
        if me.latest.is_none() {
            found.news.insert("new_direction");
        }
        if me.latest.is_none() && peer.latest.is_none() {
            found.news.insert("new_connection");
        }
        if s.syn && s.ack.is_some() && me.start.is_some_and(|(start, _)| start != s.seq) {
            me = Sender::default();
            found.flags.insert("reused_ports");
        }
        starts(&mut me, &mut peer, s);
        classify(&mut me, &mut peer, self.initial_rtt, s, &mut found);
        self.round_trips(&mut me, &mut peer, s, &mut found);
        remember(&mut me, &mut peer, s, &mut found);
        self.sides.insert(forward, me);
        self.sides.insert(!forward, peer);
        found
    }

    fn round_trips(&mut self, me: &mut Sender, peer: &mut Sender, s: &Seg, found: &mut FoundFlags) {
        let mut put = |name, ns: Option<i64>| {
            found.values.extend(ns.map(|ns| (name, Value::Duration(ns))));
        };
        if let Some(ack) = s.ack {
            let covered = peer.waiting.iter().take_while(|(end, _)| ahead(*end, ack) <= 0).count();
            // Of those that are covered, the last one counts only if it ends there.
            let last = peer.waiting.drain(..covered).next_back();
            let rtt = last.filter(|(end, _)| *end == ack).and_then(|(_, then)| s.since(then));
            put("ack_rtt", rtt);
            let opening = peer.opening.take_if(|(end, _)| ahead(*end, ack) <= 0);
            let rtt = opening.filter(|(end, _)| *end == ack).and_then(|(_, then)| s.since(then));
            let syn = peer.start.filter(|(_, syn)| *syn).map(|(start, _)| (start + 1) % NUMBERS);
            if syn == Some(ack) {
                if s.syn {
                    put("server_rtt", rtt);
                } else if me.start.is_some_and(|(_, syn)| syn) {
                    put("client_rtt", rtt);
                }
            }
        }
        if (s.len > 0 || s.syn || s.fin) && !found.flags.contains("zero_window_probe") {
            if me.highest.is_some_and(|(end, _)| ahead(end, s.seq) > 0) {
                let keep = me.waiting.iter().take_while(|(end, _)| ahead(*end, s.seq) <= 0).count();
                me.waiting.truncate(keep);
                me.opening.take_if(|(end, _)| ahead(*end, s.seq) > 0);
            } else {
                if me.waiting.len() < 8 {
                    me.waiting.push((s.end(), s.time));
                }
                if me.start.is_some_and(|(start, _)| (start + 1) % NUMBERS == s.end()) {
                    me.opening = Some((s.end(), s.time));
                }
            }
        }
        match (s.syn, s.ack) {
            (true, None) => self.latest_syn = Some(s.time),
            (false, Some(_)) if self.initial_rtt.is_none() => {
                self.initial_rtt = self.latest_syn.and_then(|then| s.since(then));
            }
            _ => {}
        }
        put("initial_rtt", self.initial_rtt);
        if let (Some(echo), Some(_), Some((stamp, then))) = (s.tsecr, s.ack, peer.stamp)
            && ahead(stamp, echo) <= 0
        {
            peer.stamp = None;
            put("tsval_rtt", s.since(then).filter(|_| echo == stamp));
        }
        let newer = |seen: Option<i64>, stamp: i64| seen.is_none_or(|seen| ahead(stamp, seen) > 0);
        if let Some(stamp) = s.tsval.filter(|_| s.len > 0 || s.syn)
            && newer(me.stamps_seen, stamp)
        {
            me.stamps_seen = Some(stamp);
            me.stamp = me.stamp.or(Some((stamp, s.time)));
        }
    }
}

fn starts(me: &mut Sender, peer: &mut Sender, s: &Seg) {
    let before = (s.seq - 1).rem_euclid(NUMBERS);
    match me.start {
        None => me.start = Some(if s.syn { (s.seq, true) } else { (before, false) }),
        Some((start, false)) if s.syn && start == s.seq => me.start = Some((start, true)),
        Some(_) => {}
    }
    if let Some(ack) = s.ack {
        peer.start = peer.start.or(Some(((ack - 1).rem_euclid(NUMBERS), false)));
        peer.doubtful = false;
    }
}

/// The rules in their order.
fn classify(me: &mut Sender, peer: &mut Sender, rtt: Option<i64>, s: &Seg, found: &mut FoundFlags) {
    let next = me.highest.map(|(end, _)| end);
    let peer_window = peer.latest.as_ref().map(|l| l.window);
    let acked = |side: &Sender| side.latest.as_ref().and_then(|l| l.ack);
    let probe = s.len == 1 && next == Some(s.seq) && peer_window == Some(0);
    if probe {
        found.flags.insert("zero_window_probe");
    } else {
        if s.window == 0 && s.plain() {
            found.flags.insert("zero_window");
        }
        if !s.rst && next.is_some_and(|next| ahead(s.seq, next) > 0) {
            found.flags.insert("lost_segment");
            me.doubtful = true;
        }
        if s.plain() && s.len < 2 && next == Some((s.seq + 1) % NUMBERS) {
            found.flags.insert("keep_alive");
        }
        let same = s.plain() && s.len == 0 && next == Some(s.seq);
        let same = same && s.ack.is_some() && s.ack == acked(me);
        let changed = me.latest.as_ref().map(|l| l.window) != Some(s.window);
        if s.plain() && s.len > 0 && full(peer) == Some((s.seq + s.len) % NUMBERS) {
            found.flags.insert("window_full");
        }
        match (same, changed, s.window, peer.latest_was) {
            (false, ..) | (true, true, 0, _) => {}
            (true, true, ..) => _ = found.flags.insert("window_update"),
            (true, false, 0, "probe") => _ = found.flags.insert("zero_window_probe_ack"),
            (true, false, 0, _) => {}
            (true, false, _, "keep alive") => _ = found.flags.insert("keep_alive_ack"),
            (true, false, ..) => {
                found.flags.insert("duplicate_ack");
                me.repeats = (me.repeats + 1).min(65_535);
                found.values.insert("duplicate_ack_num", Value::Int(me.repeats));
            }
        }
    }
    if s.ack != acked(me) {
        me.repeats = 0;
    }
    if let (Some(ack), Some(unbroken)) = (s.ack, peer.unbroken)
        && ahead(ack, unbroken) > 0
    {
        found.flags.insert("ack_lost_segment");
        let end = peer.highest.map_or(ack, |(end, _)| end);
        peer.unbroken = Some(if ahead(end, ack) > 0 { end } else { ack });
    }
    if (s.len > 0 || s.syn || s.fin) && !found.flags.contains("keep_alive") {
        found.flags.extend(sent_again(me, peer, rtt, s));
    }
}

/// The number up to which the peer takes data, if that is known.
fn full(peer: &Sender) -> Option<i64> {
    let latest = peer.latest.as_ref()?;
    let shift = peer.shift?;
    let window = if shift < 0 || latest.syn { latest.window } else { latest.window << shift };
    Some((latest.ack? + window) % NUMBERS)
}

fn sent_again(me: &Sender, peer: &Sender, rtt: Option<i64>, s: &Seg) -> Vec<&'static str> {
    let acked = peer.latest.as_ref().and_then(|l| l.ack);
    let data_end = (s.seq + s.len) % NUMBERS;
    // The circle has one distance that is neither ahead nor behind: it counts as behind.
    if s.len > 0 && acked.is_some_and(|acked| ahead(data_end, acked) <= 0) {
        return vec!["retransmission", "spurious_retransmission"];
    }
    let Some((next, then)) = me.highest else { return vec![] };
    if ahead(next, s.seq) <= 0 || (s.len > 1 && (s.seq + 1) % NUMBERS == next) {
        return vec![];
    }
    let asked = peer.repeats >= 2 && acked == Some(s.seq);
    let heard = peer.latest.as_ref().map_or(0, |l| l.time);
    let patience = rtt.filter(|&rtt| rtt != 0).unwrap_or(3_000_000);
    if asked && s.soon(heard, 20_000_000) {
        vec!["retransmission", "fast_retransmission"]
    } else if s.soon(then, patience) && s.end() != next {
        vec!["out_of_order"]
    } else {
        vec!["retransmission"]
    }
}

fn remember(me: &mut Sender, peer: &mut Sender, s: &Seg, found: &mut FoundFlags) {
    let probe = found.flags.contains("zero_window_probe");
    let moves = !probe && !s.rst;
    if moves && me.highest.is_none_or(|(end, _)| ahead(s.end(), end) > 0) {
        me.highest = Some((s.end(), s.time));
    }
    if moves && me.unbroken.is_none_or(|end| end == s.seq) {
        me.unbroken = me.highest.map(|(end, _)| end);
    }
    if s.syn {
        match s.wscale {
            None => (me.shift, peer.shift) = (Some(-1), Some(-1)),
            Some(_) if s.ack.is_some() && peer.shift == Some(-1) => me.shift = Some(-1),
            Some(bits) => me.shift = Some(bits.min(14)),
        }
    }
    me.latest_was = match () {
        () if found.flags.contains("keep_alive") => "keep alive",
        () if probe => "probe",
        () => "",
    };
    me.latest = Some(s.clone());
    let acked = peer.latest.as_ref().and_then(|l| l.ack);
    let from = acked.or(me.start.map(|(start, _)| (start + 1) % NUMBERS));
    if let (Some((end, _)), Some(from)) = (me.highest, from)
        && s.len > 0
        && !me.doubtful
        && ahead(end, from) > 0
    {
        let flying = ahead(end, from) - i64::from(s.syn || s.fin);
        found.values.insert("bytes_in_flight", Value::Int(flying));
    }
}
