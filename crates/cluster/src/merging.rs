//! A merge that goes on: messages of the slowest probes are taken first, so that what is held back
//! is little.

use crate::framing::StreamFault;
use crate::head::ProbeHead;
use crate::inbox::{Arrival, Inbox};
use crate::lanes::{Lanes, LifeState};
use crate::probes::{Begin, MixedProbes, NamedHead, PATIENCE};
use crate::report::{
    MergeControl, ProbeDelay, ProbeProgress, ProbeStanding, SkewWatch, StreamEnd, StreamReport,
};
use crate::skew::{ClockErrors, CloseReports, WindowDelay};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use weir_engine::exchange::{Body, EndOf, Message, ProducerId, Receipt, Receiver};
use weir_engine::rows::Sink;

pub(crate) struct Merging {
    pub(crate) receiver: Receiver,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) lanes: Lanes,
    /// One for each stream.
    pub(crate) reports: Vec<StreamReport>,
    /// The head of the first stream, which all others go together with.
    pub(crate) first: NamedHead,
    pub(crate) begin: Begin,
    pub(crate) closes: CloseReports,
    /// The errors of the clocks of probes, where they have a bound.
    pub(crate) clocks: Option<ClockErrors>,
    /// Of all probes.
    pub(crate) names: BTreeMap<u128, String>,
    /// Probes whose windows came later than they may.
    pub(crate) late: BTreeSet<u128>,
}

impl Merging {
    /// Takes everything that comes; `true` if it was stopped before the end.
    pub(crate) fn take_all(&mut self, sink: &mut dyn Sink, control: &MergeControl<'_>) -> bool {
        while !self.lanes.is_empty() && !self.receiver.is_done() {
            if control.stop.load(Ordering::Relaxed) {
                return true;
            }
            if control.asked.load(Ordering::Relaxed) && control.asked.swap(false, Ordering::Relaxed)
            {
                (control.tell)(&self.progress());
            }
            let wanted = self.lanes.wanted(|probe| self.receiver.closed_by(probe));
            let streams: Vec<usize> = wanted.iter().map(|(stream, _)| *stream).collect();
            let Some((stream, arrival)) = self.inbox.take(&streams, PATIENCE) else { continue };
            let Some((_, probe)) = wanted.into_iter().find(|(s, _)| *s == stream) else { continue };
            let before = self.lost_in(stream);
            match arrival {
                Arrival::Message(message, came) => {
                    self.message(probe, message, sink);
                    self.watch_skew(probe, came, control.skew);
                }
                Arrival::Life(head) => self.next_head(probe, &head, sink),
                Arrival::Pause => self.pause(probe, sink),
                Arrival::End(fault) => self.end(probe, fault, sink),
            }
            if self.lost_in(stream) != before {
                (control.lost)(&self.reports[stream]);
            }
        }
        false
    }

    /// Whether messages are missing in a stream, and how many lives broke off in it.
    fn lost_in(&self, stream: usize) -> (bool, u64) {
        (self.reports[stream].missing > 0, self.reports[stream].broken)
    }

    /// Reports a probe whose windows come too late, once.
    fn watch_skew(&mut self, probe: u128, came: Instant, watch: SkewWatch<'_>) {
        let is_news = self.closes.note(probe, self.receiver.closed_by(probe), came);
        if !is_news || self.late.contains(&probe) {
            return;
        }
        // A busy probe closes a window by a packet that is as much later, a quiet one by its clock.
        let lateness = Duration::from_nanos(self.first.lateness_ns().unsigned_abs());
        let most = watch.most.saturating_add(lateness);
        let Some(delay) = self.delay(probe).filter(|delay| delay.delay > most) else { return };
        if let Some(name) = self.names.get(&probe) {
            (watch.tell)(name, &delay);
        }
        self.late.insert(probe);
    }

    /// By how much the windows of a live probe come later than those of another.
    fn delay(&self, probe: u128) -> Option<ProbeDelay> {
        let WindowDelay { delay, first } = self.closes.delay(probe)?;
        Some(ProbeDelay { delay, first: self.names.get(&first)?.clone() })
    }

    /// How far the probes are whose streams have not ended.
    fn progress(&self) -> Vec<ProbeProgress> {
        let closed = |probe| self.receiver.closed_by(probe);
        let most = self.lanes.read().map(|(probe, _)| closed(probe)).max();
        let slowest = self.lanes.slowest(closed);
        let lateness_ns = self.first.lateness_ns();
        let lanes = self.lanes.read().map(|(probe, life)| ProbeProgress {
            probe: self.reports[life.stream].probe.clone(),
            closed: Some(closed(probe))
                .filter(|closed| *closed > i64::MIN)
                .map(|closed| closed.saturating_sub(lateness_ns)),
            delay: self.delay(probe),
            missing: self.reports[life.stream].missing,
            broken: self.reports[life.stream].broken,
            standing: match &life.state {
                LifeState::Over => ProbeStanding::Ended,
                LifeState::Retired => ProbeStanding::Retired,
                _ if slowest.contains(&probe) && Some(closed(probe)) < most => {
                    ProbeStanding::Slowest
                }
                _ => ProbeStanding::Ahead,
            },
        });
        lanes.collect()
    }

    fn message(&mut self, probe: u128, message: Vec<u8>, sink: &mut dyn Sink) {
        let life = self.lanes.life(probe);
        let mut epoch = life.epoch;
        match Message::read(&message) {
            // A message that comes again may be of an earlier life.
            Ok(read) if read.probe != probe || read.epoch > epoch => {
                return self.give_up(probe, StreamEnd::OtherProbe, sink);
            }
            Ok(Message { epoch: of, body: Body::End(why), .. }) if of == epoch => {
                let report = &mut self.reports[life.stream];
                match life.state {
                    LifeState::Running => {
                        report.end = StreamEnd::of(why);
                        life.state = LifeState::Ended(message);
                        return;
                    }
                    LifeState::Ended(_) => {
                        report.repeated += 1;
                        return;
                    }
                    LifeState::Retired => report.end = StreamEnd::of(why),
                    LifeState::Over => {}
                }
                life.state = LifeState::Over;
            }
            Ok(read) => epoch = read.epoch,
            // The receiver says what is wrong.
            Err(_) => {}
        }
        self.take_in(probe, epoch, &message, sink);
    }

    /// Takes in a message of a life; `false` if its stream was given up.
    fn take_in(&mut self, probe: u128, epoch: u64, message: &[u8], sink: &mut dyn Sink) -> bool {
        let life = self.lanes.life(probe);
        let report = &mut self.reports[life.stream];
        let is_first = report.messages == 0 && report.repeated == 0;
        match self.receiver.take(message, sink) {
            Ok(Receipt::Seen) => report.repeated += 1,
            Ok(receipt) => {
                report.messages += 1;
                if let Receipt::Late(groups) = receipt {
                    report.late = report.late.saturating_add(groups);
                }
                if matches!(life.state, LifeState::Retired) && epoch == life.epoch {
                    life.state = LifeState::Running;
                }
            }
            Err(why) => {
                self.give_up(probe, StreamEnd::Unreadable(why), sink);
                return false;
            }
        }
        // A stream is in order: what is missing before a message does not come after it.
        let missing = self.receiver.skip_missing(probe, epoch, sink);
        if !(is_first && self.begin == Begin::Anywhere) {
            report.missing = report.missing.saturating_add(missing);
        }
        true
    }

    /// Takes in the end of a life, if it has come. Where another life is known to follow, that one
    /// begins before, since windows wait for it, too. `false` if the stream was given up.
    fn take_end_in(&mut self, probe: u128, sink: &mut dyn Sink) -> bool {
        let next = self.lanes.next_epoch(probe);
        let life = self.lanes.life(probe);
        let epoch = life.epoch;
        let Some(message) = life.take_end() else { return true };
        if let Some(next) = next {
            self.receiver.begin_life(probe, next);
        }
        self.take_in(probe, epoch, &message, sink)
    }

    /// A head has come within a stream.
    fn next_head(&mut self, probe: u128, head: &ProbeHead, sink: &mut dyn Sink) {
        let life = self.lanes.life(probe);
        let report = &mut self.reports[life.stream];
        let named = NamedHead::new(&report.name, head);
        let ProducerId { probe: of, epoch } = head.id();
        if of != probe {
            return self.give_up(probe, StreamEnd::OtherProbe, sink);
        }
        if let Err(why) = self.first.reads_as(&named).and_then(|()| self.first.runs_as(&named)) {
            return self.give_up(probe, StreamEnd::Mixed(why), sink);
        }
        if epoch <= life.epoch {
            return;
        }
        let fits = self.clocks.as_mut().map_or(Ok(()), |clocks| clocks.add(&report.name, head));
        if let Err(why) = fits {
            return self.give_up(probe, StreamEnd::Mixed(MixedProbes::Clocks(why)), sink);
        }
        let (before, ended) = (life.epoch, life.take_end());
        if !matches!(report.end, StreamEnd::Ended) {
            report.broken += 1;
        }
        report.lives += 1;
        report.end = StreamEnd::Unread;
        let next = self.lanes.next_epoch(probe).map_or(epoch, |known| known.min(epoch));
        self.receiver.begin_life(probe, next);
        self.receiver.set_resuming(probe, head.resumes);
        self.closes.begin_life(probe, head.clock.is_some());
        if let Some(message) = ended
            && !self.take_in(probe, before, &message, sink)
        {
            return;
        }
        self.lanes.begin(probe, epoch);
    }

    /// There is nothing further in a stream for now.
    fn pause(&mut self, probe: u128, sink: &mut dyn Sink) {
        if !self.take_end_in(probe, sink) {
            return;
        }
        let goes_on = self.lanes.goes_on(probe);
        let life = self.lanes.life(probe);
        if matches!(life.state, LifeState::Running) {
            self.reports[life.stream].end = StreamEnd::Gone(None);
            life.state = LifeState::Retired;
            if !goes_on {
                self.receiver.set_idle(probe, sink);
            }
        }
        self.lanes.take_turns(probe);
    }

    /// A stream has ended by itself.
    fn end(&mut self, probe: u128, fault: Option<StreamFault>, sink: &mut dyn Sink) {
        if !self.take_end_in(probe, sink) {
            return;
        }
        let report = &mut self.reports[self.lanes.life(probe).stream];
        match (&report.end, fault) {
            (StreamEnd::Ended | StreamEnd::SourceFailed, None) => {}
            (_, fault) => report.end = StreamEnd::Gone(fault),
        }
        self.next_stream(probe, sink);
    }

    /// Reads a stream no further: it is closed, so that its probe learns of it.
    fn give_up(&mut self, probe: u128, end: StreamEnd, sink: &mut dyn Sink) {
        let stream = self.lanes.life(probe).stream;
        self.inbox.end(stream);
        self.reports[stream].end = end;
        self.next_stream(probe, sink);
    }

    /// Goes on with the next stream of a probe; after the last one, nothing waits for it.
    fn next_stream(&mut self, probe: u128, sink: &mut dyn Sink) {
        if self.lanes.end(probe) || !self.lanes.life(probe).is_waited_for() {
            self.receiver.set_idle(probe, sink);
        }
    }
}

impl StreamEnd {
    fn of(end: EndOf) -> StreamEnd {
        match end {
            EndOf::Input => StreamEnd::Ended,
            EndOf::Source => StreamEnd::SourceFailed,
        }
    }
}
