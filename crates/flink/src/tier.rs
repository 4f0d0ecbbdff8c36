//! The merge of a job: records of a topic in, lines out.

use crate::fault::TierFault;
use crate::job::FlinkJob;
use crate::limits::{HEADS_MAX, STRANGERS_MAX, WAITING_BYTES, WAITING_EACH_BYTES};
use crate::lines::{Give, Lines, Outward, RowForm};
use crate::probe::{ProbeRun, WaitingMessage, options};
use crate::record::TopicRecord;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use weir_cluster::{ProbeHead, ProbeProgress, ProbeStanding};
use weir_engine::exchange::{Receipt, Receiver, UnreadableMessage};
use weir_engine::functions::Functions;
use weir_engine::limits::EXCHANGE_PROBES_MAX;
use weir_engine::run::Options;
use weir_kafka::record::{Content, RecordFault};
use weir_sink::TimeFormat;

/// The terms of a tier beside the plan.
#[derive(Clone, Debug)]
pub struct TierTerms {
    /// The names of all probes: windows wait for each of them.
    pub probes: Vec<String>,
    /// Whether the input ends, which closes all windows. Otherwise they close once all probes have
    /// ended.
    pub is_bounded: bool,
    /// How rows are written.
    pub rows: RowForm,
}

/// The fate of records and groups, since the job began.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TierCounts {
    /// Messages that came again.
    pub repeated: u64,
    /// Messages that did not come.
    pub missing: u64,
    /// Records that were refused or left out.
    pub refused: u64,
    /// Groups whose window was out.
    pub late: u64,
}

/// The merge of a plan over the records of probes, and all stages above it.
pub struct Tier {
    /// `None` once it has finished.
    pub(crate) receiver: Option<Receiver>,
    pub(crate) fingerprint: String,
    pub(crate) is_bounded: bool,
    pub(crate) probes: BTreeMap<String, ProbeRun>,
    pub(crate) strangers: BTreeSet<String>,
    pub(crate) lateness_ns: i64,
    pub(crate) counts: TierCounts,
    pub(crate) lines: Lines,
    /// Probes of the state that it went on from which the job has no more.
    pub(crate) gone: Vec<u128>,
}

impl Tier {
    /// One that begins.
    ///
    /// # Errors
    /// Where the job can't be read, or a probe has no name that it can have.
    pub fn open(job: &str, terms: &TierTerms) -> Result<Tier, TierFault> {
        let functions = Functions::default();
        let job = FlinkJob::from_json(job, &functions)?;
        let receiver = Receiver::new(&job.plan, &functions, &Options::default(), &[]);
        let mut tier = Tier::of(receiver.map_err(TierFault::new)?, job.times(), terms)?;
        tier.expect();
        Ok(tier)
    }

    pub(crate) fn of(
        receiver: Receiver,
        times: TimeFormat,
        terms: &TierTerms,
    ) -> Result<Tier, TierFault> {
        if terms.probes.is_empty() || terms.probes.len() > EXCHANGE_PROBES_MAX {
            let n = terms.probes.len();
            let why = format!("a job has 1 to {EXCHANGE_PROBES_MAX} probes, and {n} are given");
            return Err(TierFault::new(why));
        }
        if let Some(fault) = terms.probes.iter().find_map(|name| ProbeHead::name_fault(name)) {
            return Err(TierFault::new(fault));
        }
        let run = |name: &String| (name.clone(), ProbeRun::new(name));
        Ok(Tier {
            fingerprint: ProbeHead::fingerprint_text(receiver.fingerprint()),
            lines: Lines::new(receiver.outputs(), terms.rows, times).map_err(TierFault::new)?,
            receiver: Some(receiver),
            is_bounded: terms.is_bounded,
            probes: terms.probes.iter().map(run).collect(),
            strangers: BTreeSet::new(),
            lateness_ns: Options::default().lateness_ns,
            counts: TierCounts::default(),
            gone: Vec::new(),
        })
    }

    /// Waits for all of its probes.
    pub(crate) fn expect(&mut self) {
        let ids = self.probes.values().map(|run| run.id);
        self.receiver
            .iter_mut()
            .for_each(|receiver| ids.clone().for_each(|id| receiver.expect(id)));
    }

    /// Takes a record; lines go out by `give`.
    ///
    /// # Errors
    /// Where lines can't be handed over, or too much waits; the job can't go on then.
    pub fn take(&mut self, record: &[u8], give: Give<'_>) -> Result<TierCounts, TierFault> {
        let Some(record) = TopicRecord::read(record) else {
            return Err(TierFault::new("a record of the source breaks off"));
        };
        self.turn(&mut *give)?.record(&record);
        self.end_turn(give)
    }

    /// Puts out all that is left, once.
    ///
    /// # Errors
    /// As for [`Tier::take`].
    pub fn finish(&mut self, give: Give<'_>) -> Result<TierCounts, TierFault> {
        if self.receiver.is_none() {
            return Ok(self.counts);
        }
        self.turn(&mut *give)?.take_all_waiting();
        let mut out = Outward { lines: &mut self.lines, give };
        let outcome = self.receiver.take().map(|receiver| receiver.finish(&mut out));
        let error = outcome.and_then(|outcome| outcome.error);
        error.map_or(Ok(self.counts), |error| Err(TierFault::new(error)))
    }

    /// How far each probe is, by name: nothing once the merge has finished.
    pub fn progress(&self) -> Vec<ProbeProgress> {
        let Some(receiver) = &self.receiver else { return Vec::new() };
        let runs = || self.probes.values();
        let furthest = runs().map(|run| receiver.closed_by(run.id)).max();
        let waited = runs().filter(|run| receiver.waits_for(run.id));
        let least = waited.map(|run| receiver.closed_by(run.id)).min();
        let open: BTreeSet<u128> = receiver.open_probes().collect();
        let probe = |(name, run): (&String, &ProbeRun)| {
            let closed = receiver.closed_by(run.id);
            let shown = closed.saturating_sub(self.lateness_ns);
            ProbeProgress {
                probe: name.clone(),
                closed: (closed > i64::MIN).then_some(shown),
                delay: None,
                missing: run.missing,
                broken: run.broken,
                standing: match receiver.waits_for(run.id) {
                    true if Some(closed) == least && Some(closed) < furthest => {
                        ProbeStanding::Slowest
                    }
                    true => ProbeStanding::Ahead,
                    false if run.is_refused => ProbeStanding::Refused,
                    false if open.contains(&run.id) => ProbeStanding::Retired,
                    false => ProbeStanding::Ended,
                },
            }
        };
        self.probes.iter().map(probe).collect()
    }

    /// The same as lines: the name of a probe, a tab, and its progress as JSON.
    ///
    /// # Errors
    /// Where that can't be written.
    pub fn progress_lines(&self) -> Result<Vec<u8>, TierFault> {
        let mut lines = Vec::new();
        for probe in self.progress() {
            lines.extend(probe.probe.bytes());
            lines.push(b'\t');
            serde_json::to_writer(&mut lines, &probe).map_err(TierFault::new)?;
            lines.push(b'\n');
        }
        Ok(lines)
    }

    fn turn<'a, 'g>(&'a mut self, give: Give<'g>) -> Result<Turn<'a, 'g>, TierFault> {
        let finished = || TierFault::new("the merge has finished");
        let receiver = self.receiver.as_mut().ok_or_else(finished)?;
        let mut turn = Turn {
            receiver,
            fingerprint: &self.fingerprint,
            is_bounded: self.is_bounded,
            probes: &mut self.probes,
            strangers: &mut self.strangers,
            lateness_ns: &mut self.lateness_ns,
            counts: &mut self.counts,
            out: Outward { lines: &mut self.lines, give },
        };
        for probe in self.gone.drain(..) {
            turn.receiver.set_idle(probe, &mut turn.out);
        }
        Ok(turn)
    }

    fn end_turn(&mut self, give: Give<'_>) -> Result<TierCounts, TierFault> {
        self.lines.give(give).map_err(TierFault::new)?;
        let receiver = self.receiver.as_ref();
        if let Some(error) = receiver.and_then(|receiver| receiver.error()) {
            return Err(TierFault::new(error));
        }
        let each = |message: &WaitingMessage| message.bytes.len() + WAITING_EACH_BYTES;
        let ahead = self.probes.iter().filter(|(_, run)| !run.waiting.is_empty());
        let bytes: usize = ahead.clone().flat_map(|(_, run)| &run.waiting).map(each).sum();
        if bytes > WAITING_BYTES {
            let names: Vec<&str> = ahead.map(|(name, _)| &**name).collect();
            return Err(TierFault::new(format!(
                "the windows of {} wait for other probes, and there is no room for more: start \
                 these others, or retire them",
                names.join(", ")
            )));
        }
        Ok(self.counts)
    }
}

/// One call of a tier.
struct Turn<'a, 'g> {
    receiver: &'a mut Receiver,
    fingerprint: &'a str,
    is_bounded: bool,
    probes: &'a mut BTreeMap<String, ProbeRun>,
    strangers: &'a mut BTreeSet<String>,
    lateness_ns: &'a mut i64,
    counts: &'a mut TierCounts,
    out: Outward<'a, 'g>,
}

impl Turn<'_, '_> {
    fn record(&mut self, record: &TopicRecord<'_>) {
        let name = String::from_utf8_lossy(record.view.key).into_owned();
        let Some(run) = self.probes.get_mut(&name) else {
            let all: Vec<&str> = self.probes.keys().map(|name| &**name).collect();
            let all = all.join(", ");
            let why = format!("it is not among the probes of the job, which {all} are");
            return self.leave_out(&name, &why);
        };
        if record.retires {
            self.receiver.set_idle(run.id, &mut self.out);
            return self.settle();
        }
        match run.assembler.take(&record.view) {
            // Messages are numbered: those that never came whole are missing.
            Ok(Content::Part) | Err(RecordFault::Torn) => {}
            Ok(Content::Head(head)) => self.head(&name, &head),
            Ok(Content::Message { epoch, bytes }) => {
                self.message(&name, WaitingMessage { epoch, bytes });
            }
            Ok(Content::Cut(epoch)) if run.epoch == Some(epoch) => {
                self.receiver.set_idle(run.id, &mut self.out);
                self.settle();
            }
            Ok(Content::Cut(_)) => {}
            Err(fault @ (RecordFault::Foreign(_) | RecordFault::Epoch)) => {
                self.leave_out(&name, &format!("a record has nothing to do with Weir: {fault}"));
            }
            Err(fault) => self.refuse(&name, &fault.to_string()),
        }
    }

    fn head(&mut self, name: &str, head: &ProbeHead) {
        let Some(run) = self.probes.get_mut(name) else { return };
        let is_known = !run.heads.insert(head.epoch);
        if run.heads.len() > HEADS_MAX {
            run.heads.pop_first();
        }
        if run.epoch.is_some_and(|epoch| head.epoch < epoch) {
            if !is_known {
                self.tell("clock", name, &RecordFault::Earlier.to_string());
            }
            return;
        }
        let (id, is_refused) = (run.id, run.is_refused);
        if self.begins(name, head.epoch) {
            // If nothing else comes of it, nobody knows what it saw.
            self.receiver.begin_life(id, head.epoch);
        } else if is_refused {
            return;
        }
        self.receiver.set_resuming(id, head.resumes);
        if !is_known && head.clock.is_some_and(|clock| clock.max_error().is_none()) {
            let why = "its clock is not synchronised, as the kernel there says: its packets count \
                       in the windows of that clock";
            self.tell("clock", name, why);
        }
        if let Some(why) = self.why_not(name, head) {
            return self.refuse(name, &why);
        }
        *self.lateness_ns = head.rules.lateness_ns;
        self.receiver.set_lateness(head.rules.lateness_ns);
        if let Some(run) = self.probes.get_mut(name) {
            run.rules = Some(head.rules.clone());
        }
    }

    /// Another life of a probe begins, or is gone on with; whether it does.
    fn begins(&mut self, name: &str, epoch: u64) -> bool {
        let Some(run) = self.probes.get_mut(name) else { return false };
        let before = run.epoch;
        let begins = run.begin(epoch);
        if begins && before.is_some() && self.receiver.open_probes().any(|open| open == run.id) {
            run.broken = run.broken.saturating_add(1);
        }
        begins
    }

    /// Why a life does not go together with the job, if it does not.
    fn why_not(&self, name: &str, head: &ProbeHead) -> Option<String> {
        let (print, own) = (&head.fingerprint, self.fingerprint);
        if print != own {
            return Some(format!(
                "it runs another query: its fingerprint is {print}, that of the job {own}"
            ));
        }
        // A run that has ended, or was refused, counts with none that begins now.
        let counts = |(other, run): &(&String, &ProbeRun)| {
            *other != name && !run.is_refused && self.receiver.waits_for(run.id)
        };
        let mut others = self.probes.iter().filter(counts);
        others.find_map(|(other, run)| {
            let rules = run.rules.as_ref().filter(|rules| **rules != head.rules)?;
            let (found, expected) = (options(&head.rules), options(rules));
            Some(format!(
                "it reads packets in another way than probe {other}: {found}, not {expected}"
            ))
        })
    }

    fn message(&mut self, name: &str, message: WaitingMessage) {
        self.begins(name, message.epoch);
        let Some(run) = self.probes.get_mut(name) else { return };
        if run.is_refused && run.epoch == Some(message.epoch) {
            self.counts.refused += 1;
        } else if run.waiting.is_empty() {
            if let Some(message) = self.take_in(name, message) {
                self.wait(name, message);
            }
            self.settle();
        } else {
            run.waiting.push_back(message);
        }
    }

    fn wait(&mut self, name: &str, message: WaitingMessage) {
        if let Some(run) = self.probes.get_mut(name) {
            run.waiting.push_front(message);
        }
    }

    /// Takes a message in; gives it back where there is no room for it yet.
    fn take_in(&mut self, name: &str, message: WaitingMessage) -> Option<WaitingMessage> {
        let id = self.probes.get(name)?.id;
        match self.receiver.take(&message.bytes, &mut self.out) {
            Ok(Receipt::Taken) => {}
            Ok(Receipt::Seen) => self.counts.repeated += 1,
            Ok(Receipt::Late(groups)) => {
                self.counts.late = self.counts.late.saturating_add(groups);
                let closed_ns = self.receiver.closed_through();
                self.out.lines.event(&json!({
                    "event": "late", "probe": name, "groups": groups, "closed_ns": closed_ns,
                }));
            }
            Err(UnreadableMessage::Full(_)) => return Some(message),
            Err(why) => {
                self.refuse(name, &why.to_string());
                return None;
            }
        }
        // The records of a probe are in order: what is missing before one does not come after it.
        let missing = self.receiver.skip_missing(id, message.epoch, &mut self.out);
        if missing > 0 {
            self.counts.missing = self.counts.missing.saturating_add(missing);
            if let Some(run) = self.probes.get_mut(name) {
                run.missing = run.missing.saturating_add(missing);
            }
            let event = json!({ "event": "missing", "probe": name, "messages": missing });
            self.out.lines.event(&event);
        }
        None
    }

    /// Goes on where a probe that others wait for has sent something, or is waited for no more.
    fn settle(&mut self) {
        self.take_waiting();
        if !self.is_bounded {
            self.receiver.rest(&mut self.out);
        }
    }

    /// Takes in what there is room for now.
    fn take_waiting(&mut self) {
        loop {
            let closed = self.receiver.closed_through();
            let waiting =
                |(name, run): (&String, &ProbeRun)| (!run.waiting.is_empty()).then(|| name.clone());
            let names: Vec<String> = self.probes.iter().filter_map(waiting).collect();
            names.iter().for_each(|name| self.take_waiting_of(name));
            if names.is_empty() || self.receiver.closed_through() == closed {
                return;
            }
        }
    }

    fn take_waiting_of(&mut self, name: &str) {
        while let Some(run) = self.probes.get_mut(name)
            && let Some(message) = run.waiting.pop_front()
        {
            if run.is_refused && run.epoch == Some(message.epoch) {
                self.counts.refused += 1;
            } else if let Some(message) = self.take_in(name, message) {
                return self.wait(name, message);
            }
        }
    }

    /// Takes in all that waits, as the input has ended: nothing waits for other probes.
    fn take_all_waiting(&mut self) {
        while self.probes.values().any(|run| !run.waiting.is_empty()) {
            for run in self.probes.values().filter(|run| run.waiting.is_empty()) {
                self.receiver.set_idle(run.id, &mut self.out);
            }
            let before: usize = self.probes.values().map(|run| run.waiting.len()).sum();
            self.take_waiting();
            if before == self.probes.values().map(|run| run.waiting.len()).sum::<usize>() {
                return;
            }
        }
    }

    /// Takes nothing more of this life of a probe: nothing waits for it until its next one.
    fn refuse(&mut self, name: &str, why: &str) {
        self.counts.refused += 1;
        self.tell("refused", name, why);
        if let Some(run) = self.probes.get_mut(name) {
            run.is_refused = true;
            self.receiver.set_idle(run.id, &mut self.out);
        }
        self.settle();
    }

    /// Leaves a record out, and says so once for each name.
    fn leave_out(&mut self, name: &str, why: &str) {
        self.counts.refused += 1;
        if self.strangers.len() < STRANGERS_MAX && self.strangers.insert(name.to_owned()) {
            self.tell("refused", name, why);
        }
    }

    fn tell(&mut self, event: &str, probe: &str, why: &str) {
        self.out.lines.event(&json!({ "event": event, "probe": probe, "why": why }));
    }
}
