//! The merge: the streams of all probes, and what is read of them.

use crate::framing::StreamItem;
use crate::head::{PacketRules, ProbeHead};
use crate::inbox::{Arrival, Inbox, now};
use crate::lanes::Lanes;
use crate::merging::Merging;
use crate::probes::{Begin, ForeignStream, MixedProbes, NamedHead, ProbeStream, check};
use crate::report::{MergeControl, MergeOutcome, StreamEnd, StreamReport};
use crate::skew::{ClockErrors, CloseReports};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use weir_engine::exchange::{ProducerId, Receiver};
use weir_engine::rows::Sink;

/// The streams of all probes, before they are read.
pub struct Merge {
    streams: Vec<ProbeStream>,
    headless: Vec<ForeignStream>,
    begin: Begin,
    /// The errors of the clocks of probes, where they have a bound.
    clocks: Option<ClockErrors>,
}

impl Merge {
    /// Takes the streams of all probes: the merge waits for these, and for no other. Several
    /// streams of one probe are its lives, or copies; they are read one after the other, by epoch.
    /// Further lives may come within a stream.
    ///
    /// # Errors
    /// Where they don't belong together.
    pub fn new(streams: Vec<ProbeStream>) -> Result<Merge, MixedProbes> {
        check(&streams)?;
        Ok(Merge { streams, headless: Vec::new(), begin: Begin::OfLife, clocks: None })
    }

    /// Goes on without streams that have no head: nobody knows what their probes saw, which lowers
    /// the completeness of all windows.
    #[must_use]
    pub fn without(self, headless: Vec<ForeignStream>) -> Merge {
        Merge { headless, ..self }
    }

    /// Says where the streams begin, if not with the first message of a life.
    #[must_use]
    pub fn begin(self, begin: Begin) -> Merge {
        Merge { begin, ..self }
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

    /// The versions of Weir besides this one that wrote streams, each with the names of these.
    pub fn other_versions(&self, own: &str) -> BTreeMap<&str, Vec<&str>> {
        let mut all = BTreeMap::<&str, Vec<&str>>::new();
        for ProbeStream { name, head, .. } in self.streams.iter().filter(|s| s.head.weir != own) {
            all.entry(&head.weir).or_default().push(name);
        }
        all
    }

    /// The streams of live probes whose clocks are not synchronised.
    pub fn unsynchronised(&self) -> Vec<&str> {
        let is_so =
            |s: &&ProbeStream| s.head.clock.is_some_and(|clock| clock.max_error().is_none());
        self.streams.iter().filter(is_so).map(|stream| &*stream.name).collect()
    }

    /// How many live probes there are.
    pub fn live(&self) -> usize {
        let live = self.streams.iter().filter(|stream| stream.head.clock.is_some());
        live.map(|stream| stream.head.id().probe).collect::<BTreeSet<_>>().len()
    }

    /// Refuses live probes whose clocks may differ by more than this, now and where another life of
    /// one begins.
    ///
    /// # Errors
    /// Names the first of them.
    pub fn with_max_skew(self, most: Duration) -> Result<Merge, MixedProbes> {
        let mut clocks = ClockErrors::new(most);
        let add = |stream: &ProbeStream| clocks.add(&stream.name, &stream.head);
        self.streams.iter().try_for_each(add).map_err(MixedProbes::Clocks)?;
        Ok(Merge { clocks: Some(clocks), ..self })
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
        let heads = self.streams.iter().map(|s| NamedHead::new(&s.name, &s.head));
        heads.into_iter().try_for_each(|head| head.runs(&expected))
    }

    /// Reads all streams to their end, or until it is stopped, and emits rows as windows close.
    /// Each stream is read by a thread, which is left to itself if its stream is not wanted any
    /// more: it ends with the next message.
    ///
    /// # Errors
    /// Where threads can't be started.
    pub fn run(
        self,
        mut receiver: Receiver,
        sink: &mut dyn Sink,
        control: &MergeControl<'_>,
    ) -> io::Result<MergeOutcome> {
        let count = self.streams.len();
        let inbox = Arc::new(Inbox::new(count));
        let lanes = Lanes::new(self.ids());
        let first = NamedHead::new(&self.streams[0].name, &self.streams[0].head);
        let report = |stream: &ProbeStream| StreamReport {
            name: stream.name.clone(),
            probe: stream.head.probe.clone(),
            messages: 0,
            repeated: 0,
            missing: 0,
            late: 0,
            lives: 1,
            broken: 0,
            end: StreamEnd::Unread,
        };
        let reports = self.streams.iter().map(report).collect();
        let named = |ProbeStream { head, .. }: &ProbeStream| (head.id().probe, head.probe.clone());
        let names = self.streams.iter().map(named).collect();
        let mut closes = CloseReports::default();
        let mut heads: Vec<&ProbeHead> = self.streams.iter().map(|stream| &stream.head).collect();
        // The earliest life of a probe is read first.
        heads.sort_by_key(|head| Reverse(head.epoch));
        for head in heads {
            closes.begin_life(head.id().probe, head.clock.is_some());
        }
        for stream in self.streams.iter().filter(|stream| stream.head.resumes) {
            receiver.set_resuming(stream.head.id().probe, true);
        }
        // If nothing comes of one but its head, nobody knows what it saw.
        lanes.read().for_each(|(probe, life)| receiver.begin_life(probe, life.epoch));
        for ProducerId { probe, epoch } in self.headless.iter().map(ForeignStream::id) {
            receiver.begin_life(probe, epoch);
            receiver.set_idle(probe, sink);
        }
        for (number, stream) in self.streams.into_iter().enumerate() {
            let inbox = Arc::clone(&inbox);
            let read = move || read_all(number, stream, &inbox);
            thread::Builder::new().name(format!("probe-{number}")).spawn(read)?;
        }
        let mut merging = Merging {
            receiver,
            inbox,
            lanes,
            reports,
            first,
            begin: self.begin,
            closes,
            clocks: self.clocks,
            names,
            late: BTreeSet::new(),
        };
        let was_stopped = merging.take_all(sink, control);
        (0..count).for_each(|stream| merging.inbox.end(stream));
        let outcome = merging.receiver.finish(sink);
        Ok(MergeOutcome {
            outcome,
            streams: merging.reports,
            headless: self.headless,
            was_stopped,
            late: merging.late.len(),
        })
    }
}

/// Hands over all messages of a stream.
fn read_all(number: usize, stream: ProbeStream, inbox: &Inbox) {
    let mut reader = stream.reader;
    loop {
        let mut message = Vec::new();
        let arrival = match reader.next(&mut message) {
            Ok(StreamItem::Message) => Arrival::Message(message, now()),
            Ok(StreamItem::Head(head)) => Arrival::Life(Box::new(head)),
            Ok(StreamItem::Pause) => Arrival::Pause,
            Ok(StreamItem::End) => Arrival::End(None),
            Err(fault) => Arrival::End(Some(fault)),
        };
        let is_end = matches!(arrival, Arrival::End(_));
        if !inbox.put(number, arrival) || is_end {
            return;
        }
    }
}
