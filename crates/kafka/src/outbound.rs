//! Records on their way to brokers: to the client while it has room, else to disk, in order.

use crate::client::{Watch, check, config, in_words, partitions, plain, record_bytes};
use crate::limits::{DRAIN, DRAIN_CUT, WAITING_KIB, WAITING_RECORDS};
use crate::order::CarrierOrder;
use crate::spill::OutRecord;
use crate::{KafkaFault, Say};
use parking_lot::{Mutex, MutexGuard};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{OwnedMessage, ToBytes};
use rdkafka::producer::{BaseRecord, Producer as _, PurgeConfig, ThreadedProducer};
use std::io;
use std::os::unix::process::parent_id;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use weir_base::spool::{Spool, Spooled};

/// How long is waited at a time for room among the records that wait.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long is waited at a time, at the end, for all that waits.
const STEP: Duration = DRAIN_CUT;

/// How a person hears of what happens, and what becomes of records while no broker answers.
#[derive(Clone, Copy)]
pub(crate) struct Telling<'a> {
    pub(crate) say: &'a Say,
    pub(crate) meanwhile: &'static str,
}

/// A record on its way, with its number.
pub(crate) type Numbered<'r, K, V> = BaseRecord<'r, K, V, usize>;

/// How records go to disk and back.
pub(crate) struct OnDisk<'a> {
    /// Hands one to the client; whether that had room.
    pub(crate) offer: &'a (dyn Fn(&OutRecord) -> Result<bool, KafkaFault> + Sync),
    /// One that the client has given back, as it waits on disk.
    pub(crate) restore: fn(&OwnedMessage) -> Option<OutRecord>,
}

/// A client that sends records in order, and each one once.
pub(crate) struct Outbound<'a> {
    client: ThreadedProducer<Watch>,
    has_gone: &'a (dyn Fn() -> bool + Sync),
    /// The process that has started this one.
    parent: u32,
    /// The records on disk, if any may wait there. The thread that holds it may hand records to the
    /// client, so that they stay in order.
    route: Mutex<Option<Spool>>,
    /// Whether the records on disk can't be sent any more.
    disk_failed: AtomicBool,
    /// Whether nothing more is sent, since nothing was delivered for [`DRAIN`].
    is_given_up: AtomicBool,
    /// Whether the run was killed.
    is_cut: AtomicBool,
    /// Records that found no room anywhere after that.
    left_out: AtomicU64,
    /// How many records were offered to the client.
    offered: AtomicUsize,
    say: &'a Say,
}

impl<'a> Outbound<'a> {
    /// A client with properties of its own, and the number of partitions of its topic. `has_gone`:
    /// whether the other end of the pipe has gone.
    ///
    /// # Errors
    /// Where the client can't be made, no broker answers, or the topic can't be used.
    pub(crate) fn start(
        order: &CarrierOrder,
        own: &[(&str, &str)],
        has_gone: &'a (dyn Fn() -> bool + Sync),
        Telling { say, meanwhile }: Telling<'a>,
    ) -> Result<(Outbound<'a>, i32), KafkaFault> {
        let defaults = [
            ("queue.buffering.max.kbytes", WAITING_KIB.to_string()),
            ("queue.buffering.max.messages", WAITING_RECORDS.to_string()),
            ("compression.type", "lz4".to_owned()),
        ];
        let watch = Watch::new(say, meanwhile);
        let client = config(order, &defaults, own).create_with_context(watch);
        let client: ThreadedProducer<Watch> =
            client.map_err(|e| KafkaFault::Properties(plain(&e.to_string())))?;
        let count = partitions(client.client(), order, &|| client.poll(Duration::ZERO))?;
        let out = Outbound {
            client,
            has_gone,
            parent: parent_id(),
            route: Mutex::new(None),
            disk_failed: AtomicBool::new(false),
            is_given_up: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            left_out: AtomicU64::new(0),
            offered: AtomicUsize::new(0),
            say,
        };
        Ok((out, count))
    }

    /// The same, where records may wait on disk; what an earlier run has left there goes first.
    pub(crate) fn over(self, spill: Option<Spool>) -> Outbound<'a> {
        if let Some(waiting) = spill.as_ref().map(Spool::bytes).filter(|bytes| *bytes > 0) {
            (self.say)(&format!("{waiting} bytes wait on disk that an earlier run has left"));
        }
        Outbound { route: Mutex::new(spill), ..self }
    }

    /// Sends the records on disk, and meanwhile all that `read` sends; how many were delivered,
    /// once all are.
    ///
    /// # Errors
    /// Where a broker refuses a record, or records are left when nothing was delivered for
    /// [`DRAIN`] after the other end of the pipe has gone. They are on disk then, where they may
    /// wait there and find room.
    pub(crate) fn carry(
        &self,
        disk: &OnDisk<'_>,
        read: impl FnOnce() -> Result<(), KafkaFault>,
    ) -> Result<u64, KafkaFault> {
        let is_over = AtomicBool::new(false);
        let read = thread::scope(|scope| {
            let from_disk = scope.spawn(|| {
                let sent = self.send_from_disk(&is_over, disk.offer);
                self.disk_failed.store(sent.is_err(), Ordering::Relaxed);
                sent
            });
            let read = read();
            self.drain();
            is_over.store(true, Ordering::Relaxed);
            let sent = from_disk.join().unwrap_or_else(|_| Err(KafkaFault::panicked()));
            sent.and(read)
        });
        let lost = self.keep_what_waits(disk.restore);
        self.end(lost, read)
    }

    /// The run did not say that it ended: it was killed.
    pub(crate) fn is_cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// A record for a topic.
    pub(crate) fn record<'r, K: ToBytes + ?Sized, V: ToBytes + ?Sized>(
        &self,
        topic: &'r str,
    ) -> Numbered<'r, K, V> {
        BaseRecord::with_opaque_to(topic, self.offered.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Hands a record to the client; gives it back where that has no room.
    ///
    /// # Errors
    /// Where it can't be sent at all.
    pub(crate) fn offer<'r, K: ToBytes + ?Sized, V: ToBytes + ?Sized>(
        &self,
        record: Numbered<'r, K, V>,
    ) -> Result<Option<Numbered<'r, K, V>>, KafkaFault> {
        let waiting = &self.client.client().context().waiting_bytes;
        let bytes = record_bytes(record.payload.map_or(0, |value| value.to_bytes().len()));
        // It may be delivered before this goes on.
        waiting.fetch_add(bytes, Ordering::Relaxed);
        let (error, back) = match self.client.send(record) {
            Ok(()) => return Ok(None),
            Err(refused) => refused,
        };
        waiting.fetch_sub(bytes, Ordering::Relaxed);
        match error {
            KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) => Ok(Some(back)),
            error => {
                let why = in_words(&error);
                Err(KafkaFault::Refused { undelivered: 1, on_disk: 0, why })
            }
        }
    }

    /// Hands a record to the client, as soon as there is room. Once the other end of the pipe has
    /// gone, and nothing was delivered for [`DRAIN`], it is left out and counted.
    ///
    /// # Errors
    /// Where a broker refuses a record.
    pub(crate) fn send<K: ToBytes + ?Sized, V: ToBytes + ?Sized>(
        &self,
        mut record: Numbered<'_, K, V>,
    ) -> Result<(), KafkaFault> {
        let (mut idle, mut before) = (Duration::ZERO, None);
        loop {
            check(&self.client)?;
            if self.is_given_up() {
                self.left_out.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            record = match self.offer(record)? {
                None => return Ok(()),
                Some(back) => back,
            };
            self.wait(&mut idle, &mut before);
        }
    }

    /// The same of a record that may wait on disk: `offer` hands it to the client, and says whether
    /// that had room, and `keep` puts it after those on disk.
    ///
    /// # Errors
    /// Where a broker refuses a record, or the disk fails.
    pub(crate) fn send_or_keep(
        &self,
        offer: impl Fn() -> Result<bool, KafkaFault>,
        keep: impl Fn(&mut Spool) -> io::Result<Spooled>,
    ) -> Result<(), KafkaFault> {
        let watch = self.client.client().context();
        let (mut idle, mut before) = (Duration::ZERO, None);
        loop {
            check(&self.client)?;
            if self.disk_failed.load(Ordering::Relaxed) {
                let why = io::Error::other("what waits there can't be read");
                return Err(KafkaFault::Spill(why));
            }
            let mut route = self.route();
            let is_given_up = self.is_given_up();
            if !is_given_up && route.as_ref().is_none_or(Spool::is_empty) && offer()? {
                watch.has_room();
                return Ok(());
            }
            if let Some(spill) = route.as_mut() {
                spill.leave_room(watch.waiting_bytes.load(Ordering::Relaxed));
                match keep(spill).map_err(KafkaFault::Spill)? {
                    Spooled::Kept => return Ok(()),
                    Spooled::Full(why) => watch.is_full(why.map(|e| e.to_string())),
                }
            }
            drop(route);
            if is_given_up {
                self.left_out.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            self.wait(&mut idle, &mut before);
        }
    }

    fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// Whether the next run may wait for the records on disk: the run was killed, in its midst or
    /// while it waited for this process.
    fn is_waited_for(&self) -> bool {
        let was_killed = self.is_cut.load(Ordering::Relaxed) || parent_id() != self.parent;
        was_killed && self.route().is_some()
    }

    fn route(&self) -> MutexGuard<'_, Option<Spool>> {
        self.route.lock()
    }

    /// Waits a while for room; how long none came, and how much was delivered then.
    fn wait(&self, idle: &mut Duration, before: &mut Option<u64>) {
        let watch = self.client.client().context();
        watch.wait_for_delivery(PATIENCE);
        let now = watch.delivered.load(Ordering::Relaxed);
        let moves = before.replace(now) != Some(now);
        *idle = if moves || !(self.has_gone)() { Duration::ZERO } else { *idle + PATIENCE };
        let patience = if self.is_waited_for() { DRAIN_CUT } else { DRAIN };
        if *idle >= patience {
            self.is_given_up.store(true, Ordering::Relaxed);
        }
    }

    /// Hands over the records on disk, whenever the client has room.
    fn send_from_disk(
        &self,
        is_over: &AtomicBool,
        offer: &(dyn Fn(&OutRecord) -> Result<bool, KafkaFault> + Sync),
    ) -> Result<(), KafkaFault> {
        while !is_over.load(Ordering::Relaxed) && !self.is_given_up() {
            check(&self.client)?;
            let mut route = self.route();
            let Some(spill) = route.as_mut() else { return Ok(()) };
            let is_sent = match spill.front().map_err(KafkaFault::Spill)? {
                // One that can't be read is none of ours.
                Some(bytes) => OutRecord::read(bytes).map_or(Ok(true), |record| offer(&record))?,
                None => false,
            };
            if is_sent {
                spill.pop();
            }
            drop(route);
            if !is_sent {
                self.client.client().context().wait_for_delivery(PATIENCE);
            }
        }
        Ok(())
    }

    /// Waits until all is delivered, as long as something is from time to time. Where the run was
    /// killed, and what waits can be put on disk, the next run may wait for that.
    fn drain(&self) {
        let watch = self.client.client().context();
        let (mut idle, mut before) = (Duration::ZERO, None);
        while idle < DRAIN
            && !self.is_given_up()
            && check(&self.client).is_ok()
            && !self.disk_failed.load(Ordering::Relaxed)
        {
            let done = self.client.flush(STEP).is_ok();
            if self.is_waited_for() {
                return;
            }
            if done && self.route().as_ref().is_none_or(Spool::is_empty) {
                return;
            }
            let now = watch.delivered.load(Ordering::Relaxed);
            if before.replace(now) != Some(now) {
                idle = Duration::ZERO;
                continue;
            }
            if idle.is_zero() {
                let on_disk = match *self.route() {
                    Some(_) => "are put on disk",
                    None => "are given up",
                };
                (self.say)(&format!(
                    "{} records wait; they {on_disk} {} s after the last delivery",
                    self.client.in_flight_count(),
                    DRAIN.as_secs()
                ));
            }
            idle += STEP;
            if done {
                watch.wait_for_delivery(STEP);
            }
        }
    }

    /// Takes what waits from the client, and puts it on disk where it may wait there; how many
    /// records are lost.
    fn keep_what_waits(&self, restore: fn(&OwnedMessage) -> Option<OutRecord>) -> u64 {
        let waiting = u64::try_from(self.client.in_flight_count()).unwrap_or(0);
        let left_out = self.left_out.load(Ordering::Relaxed);
        let mut route = self.route();
        let Some(spill) = route.as_mut().filter(|_| waiting > 0) else {
            return left_out + waiting;
        };
        self.client.purge(PurgeConfig::default().queue().inflight());
        // Each comes back, unless it was delivered or refused just now.
        let _ = self.client.flush(STEP);
        let still = u64::try_from(self.client.in_flight_count()).unwrap_or(0);
        let returned = self.client.client().context().take_returned();
        let records = returned.iter().filter_map(restore).map(|record| record.to_bytes());
        let records: Vec<Vec<u8>> = records.collect();
        let kept = spill.put_before(&records).unwrap_or_else(|e| {
            (self.say)(&format!("records in memory can't wait on disk: {e}"));
            0
        });
        if kept > 0 {
            (self.say)(&format!(
                "{kept} records that waited in memory wait on disk for the next run"
            ));
        }
        left_out + still + returned.len().saturating_sub(kept) as u64
    }

    /// How many records were delivered, if all were, and so many are lost.
    fn end(&self, lost: u64, read: Result<(), KafkaFault>) -> Result<u64, KafkaFault> {
        let watch = self.client.client().context();
        let on_disk = |spill: &Spool| if spill.is_empty() { 0 } else { spill.bytes() };
        let (on_disk, torn) =
            self.route().as_ref().map_or((0, 0), |spill| (on_disk(spill), spill.torn()));
        if let Some(why) = watch.refusal() {
            let undelivered = lost.saturating_add(watch.failed.load(Ordering::Relaxed));
            return Err(KafkaFault::Refused { undelivered, on_disk, why });
        }
        read?;
        match (lost, on_disk, torn) {
            (0, 0, 0) => Ok(watch.delivered.load(Ordering::Relaxed)),
            (0, 0, torn) => Err(KafkaFault::Torn(torn)),
            _ => {
                let why = watch.last_reason();
                Err(KafkaFault::Undelivered { records: lost, on_disk, why })
            }
        }
    }
}
