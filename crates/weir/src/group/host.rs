//! A host, from its start to its end.

use super::check::keys_that_fit;
use super::pair::Pair;
use super::probe::probe_of;
use crate::args::{RunOptions, UntilWhen};
use crate::cmd::run::order;
use crate::exit::{Status, usage};
use crate::kafka::{self, Carrier};
use crate::signals;
use crate::term::Term;
use anyhow::Context as _;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use weir_kafka::address::KafkaTopic;
use weir_kafka::limits::HANDOVER;
use weir_kafka::order::{
    CarrierOrder, GroupEvent, GroupOrder, LogEnd, PartitionCounts, PartitionEvent, PartitionOrder,
    RowsTo, Task, WorkerOrder, read_framed,
};
use weir_kafka::packets::SpreadKey;
use weir_plan::Program;

/// How often is looked for what has to be done again, or is overdue.
const TICK: Duration = Duration::from_millis(500);

#[expect(clippy::disallowed_methods, reason = "rows do not depend on when partitions begin")]
fn now() -> Instant {
    Instant::now()
}

/// An event that a host hears.
enum HostEvent {
    /// Of the group; `None` if the member has gone.
    Group(Option<GroupEvent>),
    /// Of the partition with this number, by the process with that one; `None` if it has gone.
    Partition(i32, u64, Option<PartitionEvent>),
    /// A signal that ends it.
    Signal,
}

/// Shares the partitions of a topic with the other hosts of a group, until it is told to end, or
/// with `--until end` until all captures have ended.
pub(crate) fn host(
    topic: &KafkaTopic,
    program: &Program,
    options: &RunOptions,
    term: &Term,
) -> anyhow::Result<Status> {
    let stop = Arc::<AtomicBool>::default();
    let signals = signals::hear(&stop)?;
    let group = options.partitions.group.clone().unwrap_or_default();
    let until = match options.partitions.until {
        UntilWhen::End => LogEnd::OfRun,
        UntilWhen::Never => LogEnd::Never,
    };
    let task = Task::Join(GroupOrder { group: group.clone(), until });
    let order = order(options, topic.clone(), task)?;
    let (mut member, count) = kafka::started(&order, term)?;
    let events = member.take_output().context("the process that talks to Kafka")?;
    let (to, heard) = mpsc::channel();
    let wake = to.clone();
    signals.handle(|| (), move || drop(wake.send(HostEvent::Signal)))?;
    listen_to_group(events, to.clone())?;
    if !options.quiet {
        term.say(format_args!("{topic}: {count} partitions, group {group}"));
    }
    let arguments: Option<Vec<String>> =
        std::env::args_os().map(|word| word.into_string().ok()).collect();
    let arguments = arguments
        .ok_or_else(|| usage("-i kafka://: the arguments of its runs have to be UTF-8"))?;
    let host = Host {
        options,
        term,
        order,
        group,
        keys: keys_that_fit(program, options.publish.publish.is_some()),
        arguments,
        share: u64::try_from(count).unwrap_or(1),
        member: Some(member),
        to,
        pairs: BTreeMap::new(),
        number: 0,
        assigned: BTreeSet::new(),
        revoked: BTreeSet::new(),
        again: BTreeSet::new(),
        counts: PartitionCounts::default(),
        status: Status::Ok,
        is_ending: false,
    };
    host.run(&heard, &stop)
}

fn listen_to_group(events: std::process::ChildStdout, to: Sender<HostEvent>) -> io::Result<()> {
    let listen = move || {
        let mut events = BufReader::new(events);
        while let Ok(event) = read_framed(&mut events) {
            if to.send(HostEvent::Group(Some(event))).is_err() {
                return;
            }
        }
        drop(to.send(HostEvent::Group(None)));
    };
    std::thread::Builder::new().name("group".to_owned()).spawn(listen)?;
    Ok(())
}

/// A host at work.
struct Host<'a> {
    options: &'a RunOptions,
    term: &'a Term,
    /// An order of which only the task changes.
    order: CarrierOrder,
    group: String,
    /// The keys that packets may be spread by.
    keys: Vec<SpreadKey>,
    /// With which this program was started.
    arguments: Vec<String>,
    /// Runs that share the memory.
    share: u64,
    member: Option<Carrier>,
    to: Sender<HostEvent>,
    /// The processes of partitions, by partition, each with its number.
    pairs: BTreeMap<i32, (u64, Pair)>,
    number: u64,
    assigned: BTreeSet<i32>,
    /// Partitions whose processes have to end before the group hears that they are given up.
    revoked: BTreeSet<i32>,
    /// Partitions that are to be begun again.
    again: BTreeSet<i32>,
    counts: PartitionCounts,
    status: Status,
    is_ending: bool,
}

impl Host<'_> {
    fn run(mut self, heard: &Receiver<HostEvent>, stop: &AtomicBool) -> anyhow::Result<Status> {
        let mut ticked = now();
        while !(self.is_ending && self.pairs.is_empty()) {
            // Events that come all the time must not keep it from looking after partitions.
            if ticked.elapsed() >= TICK {
                ticked = now();
                self.tick()?;
            }
            match heard.recv_timeout(TICK) {
                Ok(HostEvent::Group(event)) => self.of_group(event)?,
                Ok(HostEvent::Partition(partition, number, event)) => {
                    self.of_partition(partition, number, event)?;
                }
                Ok(HostEvent::Signal) => self.end(),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if stop.load(Ordering::Relaxed) {
                self.end();
            }
        }
        let member = self.member.take().map(|member| member.finish(self.term));
        self.tell(stop.load(Ordering::Relaxed));
        Ok(self.status.max(member.unwrap_or(Status::Failed)))
    }

    /// Ends all partitions, and then this host.
    fn end(&mut self) {
        self.is_ending = true;
        self.again.clear();
        let staying = self.pairs.values_mut().map(|(_, pair)| pair).filter(|p| !p.is_leaving);
        staying.for_each(Pair::leave);
    }

    fn fail(&mut self, why: impl std::fmt::Display) {
        self.term.error(format_args!("{why}"));
        self.status = self.status.max(Status::Failed);
        self.end();
    }

    fn of_group(&mut self, event: Option<GroupEvent>) -> anyhow::Result<()> {
        match event {
            Some(GroupEvent::Assigned(partitions)) => {
                for partition in partitions {
                    self.assigned.insert(partition);
                    self.begin(partition)?;
                }
                Ok(())
            }
            Some(GroupEvent::Revoked(partitions)) => {
                for partition in partitions {
                    self.assigned.remove(&partition);
                    self.again.remove(&partition);
                    if let Some((_, pair)) = self.pairs.get_mut(&partition) {
                        pair.leave();
                        self.revoked.insert(partition);
                    }
                }
                self.give_up_revoked()
            }
            Some(GroupEvent::Over) => {
                self.end();
                Ok(())
            }
            None if self.is_ending => Ok(()),
            None => {
                self.fail("the process that is a member of the group has gone");
                Ok(())
            }
        }
    }

    /// Tells the group that partitions are given up, once they are.
    fn give_up_revoked(&mut self) -> anyhow::Result<()> {
        if self.revoked.is_empty()
            && let Some(member) = &self.member
        {
            // A member that has gone gives up all.
            let _ = member.pipe()?.write_all(&[0]);
        }
        Ok(())
    }

    /// Starts the processes of a partition.
    fn begin(&mut self, partition: i32) -> anyhow::Result<()> {
        if self.is_ending || self.pairs.contains_key(&partition) {
            return Ok(());
        }
        let options = self.options;
        let partials = options.publish.publish.as_deref().map(KafkaTopic::parse);
        let rows = match (partials.transpose().map_err(usage)?, &options.partitions.rows) {
            (Some(topic), _) => RowsTo::Partials(topic.topic),
            (None, Some(topic)) => RowsTo::Topic(topic.topic.clone()),
            (None, None) => RowsTo::Parent,
        };
        let probe = probe_of(options, partition);
        let task = PartitionOrder {
            group: self.group.clone(),
            partition,
            parent: std::process::id(),
            keys: self.keys.clone(),
            probe,
            rows,
        };
        self.order.task = Task::Process(task);
        let (arguments, share) = (self.arguments.clone(), self.share);
        let worker = WorkerOrder { arguments, partition, share };
        let (pair, events) = Pair::start(&self.order, &worker, self.term)?;
        self.number += 1;
        let (number, to) = (self.number, self.to.clone());
        let listen = move || {
            let mut events = BufReader::new(events);
            while let Ok(event) = read_framed(&mut events) {
                if to.send(HostEvent::Partition(partition, number, Some(event))).is_err() {
                    return;
                }
            }
            drop(to.send(HostEvent::Partition(partition, number, None)));
        };
        std::thread::Builder::new().name(format!("partition {partition}")).spawn(listen)?;
        self.pairs.insert(partition, (number, pair));
        Ok(())
    }

    fn of_partition(
        &mut self,
        partition: i32,
        number: u64,
        event: Option<PartitionEvent>,
    ) -> anyhow::Result<()> {
        if self.pairs.get(&partition).is_none_or(|(current, _)| *current != number) {
            return Ok(());
        }
        match event {
            Some(PartitionEvent::Begun { offset, from }) if self.options.verbose => {
                self.term.say(format_args!(
                    "partition {partition}: from offset {offset}, with state from {from}"
                ));
            }
            Some(PartitionEvent::Begun { .. } | PartitionEvent::Ended) => {}
            Some(PartitionEvent::Rows(rows)) => self.print(&rows)?,
            Some(PartitionEvent::Counts(counts)) => self.counts.merge(counts),
            Some(PartitionEvent::Again(why)) => {
                let leaves = self.pairs.get(&partition).is_some_and(|(_, pair)| pair.is_leaving);
                if !self.options.quiet && !leaves {
                    self.term.say(format_args!(
                        "partition {partition}: {why}; it goes on from what was committed"
                    ));
                }
            }
            Some(PartitionEvent::Failed(why)) => {
                self.fail(format_args!("partition {partition}: {why}"));
            }
            None => self.has_gone(partition)?,
        }
        Ok(())
    }

    /// The processes of a partition have ended.
    fn has_gone(&mut self, partition: i32) -> anyhow::Result<()> {
        let Some((_, pair)) = self.pairs.remove(&partition) else { return Ok(()) };
        let (status, has_ended) = pair.wait();
        if status != Status::Ok && !self.is_ending && has_ended {
            self.status = self.status.max(status);
            self.end();
        }
        if self.assigned.contains(&partition) && !self.is_ending {
            self.again.insert(partition);
        }
        if self.revoked.remove(&partition) {
            self.give_up_revoked()?;
        }
        Ok(())
    }

    fn print(&mut self, rows: &str) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(rows.as_bytes()).and_then(|()| stdout.flush()) {
            // A reader that has had enough ends the host.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.end();
                Ok(())
            }
            printed => Ok(printed?),
        }
    }

    /// Begins again what has to be, and ends what takes too long to end.
    fn tick(&mut self) -> anyhow::Result<()> {
        for partition in std::mem::take(&mut self.again) {
            self.begin(partition)?;
        }
        for (_, pair) in self.pairs.values_mut() {
            pair.tick(TICK, HANDOVER);
        }
        Ok(())
    }

    /// Says what was processed, and what was left out of it.
    fn tell(&mut self, interrupted: bool) {
        let PartitionCounts { records, packets, rows, unusable, repeated, missing } = self.counts;
        if !self.options.quiet {
            self.term.say(format_args!(
                "committed  {packets} packets of {records} records, {rows} rows"
            ));
        }
        let losses = [
            (missing, "packets of records that are missing"),
            (unusable, "records that could not be used"),
            (repeated, "records that came twice"),
        ];
        for (n, what) in losses.into_iter().filter(|(n, _)| *n > 0) {
            self.term.say(format_args!("left out  {n} {what}"));
        }
        if missing + unusable > 0 {
            self.status = self.status.max(Status::Failed);
        }
        if interrupted && !self.options.quiet {
            self.term.say("interrupted");
        }
    }
}
