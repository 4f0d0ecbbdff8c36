//! The merge: messages of the slowest probes are taken first, so that what is held back is little.

use crate::framing::StreamFault;
use crate::head::{PacketRules, ProbeHead};
use crate::inbox::{Arrival, Inbox};
use crate::probes::{MixedProbes, PATIENCE, ProbeStream, check};
use crate::report::{MergeControl, MergeOutcome, ProbeProgress, StreamEnd, StreamReport};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use weir_engine::exchange::{Body, EndOf, Message, ProducerId, Receipt, Receiver};
use weir_engine::rows::Sink;

/// The streams of all probes, before they are read.
pub struct Merge {
    streams: Vec<ProbeStream>,
}

impl Merge {
    /// Takes the streams of all probes: the merge waits for these, and for no other. Several
    /// streams of one probe are its lives, or copies; they are read one after the other, by epoch.
    ///
    /// # Errors
    /// Where they don't belong together.
    pub fn new(streams: Vec<ProbeStream>) -> Result<Merge, MixedProbes> {
        check(&streams)?;
        Ok(Merge { streams })
    }

    /// How the probes read packets.
    pub fn rules(&self) -> &PacketRules {
        &self.streams[0].head.rules
    }

    /// The numbers of the probes: a receiver has to wait for them.
    pub fn probes(&self) -> Vec<u128> {
        let mut all: Vec<u128> = self.ids().map(|id| id.probe).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The probes of which there are several streams, each with the names of these.
    pub fn shared_names(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut all = BTreeMap::<&str, Vec<&str>>::new();
        for ProbeStream { name, head, .. } in &self.streams {
            all.entry(&head.probe).or_default().push(name);
        }
        all.retain(|_, streams| streams.len() > 1);
        all
    }

    fn ids(&self) -> impl Iterator<Item = ProducerId> {
        self.streams.iter().map(|stream| stream.head.id())
    }

    /// Refuses probes that run another query.
    ///
    /// # Errors
    /// Names the first of them.
    pub fn check_query(&self, fingerprint: u128) -> Result<(), MixedProbes> {
        let expected = ProbeHead::fingerprint_text(fingerprint);
        match self.streams.iter().find(|stream| stream.head.fingerprint != expected) {
            None => Ok(()),
            Some(ProbeStream { name, head, .. }) => Err(MixedProbes::Query {
                stream: name.clone(),
                weir: head.weir.clone(),
                found: head.fingerprint.clone(),
                expected,
            }),
        }
    }

    /// Reads all streams to their end, or until it is stopped, and emits rows as windows close.
    /// Each stream is read by a thread, which is left to itself if its stream is not wanted any
    /// more: it ends with the next message.
    ///
    /// # Errors
    /// Where threads can't be started.
    pub fn run(
        self,
        receiver: Receiver,
        sink: &mut dyn Sink,
        control: &MergeControl<'_>,
    ) -> io::Result<MergeOutcome> {
        let (count, mut lanes) = (self.streams.len(), BTreeMap::new());
        let inbox = Arc::new(Inbox::new(count));
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|stream| self.streams[*stream].head.epoch);
        for stream in order {
            let ProducerId { probe, epoch } = self.streams[stream].head.id();
            let lane: &mut VecDeque<Life> = lanes.entry(probe).or_default();
            lane.push_back(Life { stream, epoch });
        }
        let report = |stream: &ProbeStream| StreamReport {
            name: stream.name.clone(),
            probe: stream.head.probe.clone(),
            messages: 0,
            repeated: 0,
            missing: 0,
            late: 0,
            end: StreamEnd::Unread,
        };
        let reports = self.streams.iter().map(report).collect();
        let lateness_ns = self.rules().lateness_ns;
        for (number, stream) in self.streams.into_iter().enumerate() {
            let inbox = Arc::clone(&inbox);
            let read = move || read_all(number, stream, &inbox);
            thread::Builder::new().name(format!("probe-{number}")).spawn(read)?;
        }
        let mut merging = Merging { receiver, inbox, lanes, reports, lateness_ns };
        let was_stopped = merging.take_all(sink, control);
        (0..count).for_each(|stream| merging.inbox.end(stream));
        let outcome = merging.receiver.finish(sink);
        Ok(MergeOutcome { outcome, streams: merging.reports, was_stopped })
    }
}

/// Hands over all messages of a stream.
fn read_all(number: usize, stream: ProbeStream, inbox: &Inbox) {
    let mut reader = stream.reader;
    loop {
        let mut message = Vec::new();
        let arrival = match reader.next(&mut message) {
            Ok(true) => Arrival::Message(message),
            Ok(false) => Arrival::End(None),
            Err(fault) => Arrival::End(Some(fault)),
        };
        let is_end = matches!(arrival, Arrival::End(_));
        if !inbox.put(number, arrival) || is_end {
            return;
        }
    }
}

/// One life of a probe.
struct Life {
    /// The number of its stream.
    stream: usize,
    epoch: u64,
}

/// A merge that goes on.
struct Merging {
    receiver: Receiver,
    inbox: Arc<Inbox>,
    /// Of each probe the lives that are not over, the earliest first.
    lanes: BTreeMap<u128, VecDeque<Life>>,
    reports: Vec<StreamReport>,
    lateness_ns: i64,
}

impl Merging {
    /// Takes everything that comes; `true` if it was stopped before the end.
    fn take_all(&mut self, sink: &mut dyn Sink, control: &MergeControl<'_>) -> bool {
        while !self.lanes.is_empty() && !self.receiver.is_done() {
            if control.stop.load(Ordering::Relaxed) {
                return true;
            }
            if control.asked.load(Ordering::Relaxed) && control.asked.swap(false, Ordering::Relaxed)
            {
                (control.tell)(&self.progress());
            }
            let wanted = self.slowest();
            let streams: Vec<usize> = wanted.iter().map(|(_, stream)| *stream).collect();
            let Some((stream, arrival)) = self.inbox.take(&streams, PATIENCE) else { continue };
            let Some((probe, _)) = wanted.into_iter().find(|(_, s)| *s == stream) else { continue };
            match arrival {
                Arrival::Message(message) => self.message(probe, &message, sink),
                Arrival::End(fault) => self.end(probe, fault, sink),
            }
        }
        false
    }

    /// How far the probes are whose streams have not ended.
    fn progress(&self) -> Vec<ProbeProgress> {
        let closed = |probe: &u128| self.receiver.closed_by(*probe);
        let most = self.lanes.keys().map(closed).max();
        let slowest = self.slowest();
        let lanes = self.lanes.iter().filter_map(|(probe, lives)| {
            let is_slowest = slowest.iter().any(|(slow, _)| slow == probe);
            Some(ProbeProgress {
                probe: self.reports[lives.front()?.stream].probe.clone(),
                closed: Some(closed(probe))
                    .filter(|closed| *closed > i64::MIN)
                    .map(|closed| closed.saturating_sub(self.lateness_ns)),
                is_slowest: is_slowest && Some(closed(probe)) < most,
            })
        });
        lanes.collect()
    }

    /// The probes that all others wait for, each with the stream that it writes.
    fn slowest(&self) -> Vec<(u128, usize)> {
        let closed = |probe: &u128| self.receiver.closed_by(*probe);
        let least = self.lanes.keys().map(closed).min();
        let slowest = self.lanes.iter().filter(|(probe, _)| Some(closed(probe)) == least);
        slowest.filter_map(|(probe, lives)| Some((*probe, lives.front()?.stream))).collect()
    }

    fn message(&mut self, probe: u128, message: &[u8], sink: &mut dyn Sink) {
        let lives = &self.lanes[&probe];
        let Life { stream, epoch } = lives[0];
        let report = &mut self.reports[stream];
        match Message::read(message) {
            Ok(read) if (read.probe, read.epoch) != (probe, epoch) => {
                return self.give_up(probe, StreamEnd::OtherProbe, sink);
            }
            Ok(Message { body: Body::End(why), .. }) => {
                report.end = match why {
                    EndOf::Input => StreamEnd::Ended,
                    EndOf::Source => StreamEnd::SourceFailed,
                };
                // The probe goes on in its next life: windows wait for that, too.
                if lives.get(1).is_some_and(|next| next.epoch > epoch) {
                    report.messages += 1;
                    return;
                }
            }
            // The receiver says what is wrong.
            Ok(_) | Err(_) => {}
        }
        match self.receiver.take(message, sink) {
            Ok(Receipt::Taken) => report.messages += 1,
            Ok(Receipt::Seen) => report.repeated += 1,
            Ok(Receipt::Late(groups)) => {
                report.messages += 1;
                report.late = report.late.saturating_add(groups);
            }
            Err(why) => return self.give_up(probe, StreamEnd::Unreadable(why), sink),
        }
        // A stream is in order: what is missing before a message does not come after it.
        let missing = self.receiver.skip_missing(probe, epoch, sink);
        report.missing = report.missing.saturating_add(missing);
    }

    /// A stream has ended by itself.
    fn end(&mut self, probe: u128, fault: Option<StreamFault>, sink: &mut dyn Sink) {
        let report = &mut self.reports[self.lanes[&probe][0].stream];
        match (&report.end, fault) {
            (StreamEnd::Ended | StreamEnd::SourceFailed, None) => {}
            (_, fault) => report.end = StreamEnd::Gone(fault),
        }
        self.next_life(probe, sink);
    }

    /// Reads a stream no further: it is closed, so that its probe learns of it.
    fn give_up(&mut self, probe: u128, end: StreamEnd, sink: &mut dyn Sink) {
        let stream = self.lanes[&probe][0].stream;
        self.inbox.end(stream);
        self.reports[stream].end = end;
        self.next_life(probe, sink);
    }

    /// Goes on with the next life of a probe; after the last one, nothing waits for it.
    fn next_life(&mut self, probe: u128, sink: &mut dyn Sink) {
        let Some(lives) = self.lanes.get_mut(&probe) else { return };
        lives.pop_front();
        if lives.is_empty() {
            self.lanes.remove(&probe);
            self.receiver.set_idle(probe, sink);
        }
    }
}
