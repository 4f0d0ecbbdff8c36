//! Records on their way to brokers: to the client while it has room, else to disk, in order.

use crate::client::{Watch, check, config, in_words, partitions, plain};
use crate::limits::{DRAIN, WAITING_KIB, WAITING_RECORDS};
use crate::order::CarrierOrder;
use crate::spill::{Kept, OutRecord, Spill};
use crate::{KafkaFault, Say};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::ToBytes;
use rdkafka::producer::{BaseRecord, Producer as _, ThreadedProducer};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long is waited at a time for room among the records that wait.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long is waited at a time, at the end, for all that waits.
const STEP: Duration = Duration::from_secs(1);

/// How a person hears of what happens, and what becomes of records while no broker answers.
#[derive(Clone, Copy)]
pub(crate) struct Telling<'a> {
    pub(crate) say: &'a Say,
    pub(crate) meanwhile: &'static str,
}

/// A client that sends records in order, and each one once.
pub(crate) struct Outbound<'a> {
    client: ThreadedProducer<Watch>,
    has_gone: &'a (dyn Fn() -> bool + Sync),
    /// The records on disk, if any may wait there. Who holds it may hand records to the client, so
    /// that they stay in order.
    route: Mutex<Option<Spill>>,
    /// Whether the records on disk can't be sent any more.
    disk_failed: AtomicBool,
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
        let (route, disk_failed) = (Mutex::new(None), AtomicBool::new(false));
        Ok((Outbound { client, has_gone, route, disk_failed, say }, count))
    }

    /// The same, where records may wait on disk; what an earlier run has left there goes first.
    pub(crate) fn over(self, spill: Option<Spill>) -> Outbound<'a> {
        if let Some(waiting) = spill.as_ref().map(Spill::bytes).filter(|bytes| *bytes > 0) {
            (self.say)(&format!("{waiting} bytes wait on disk that an earlier run has left"));
        }
        Outbound { route: Mutex::new(spill), ..self }
    }

    /// Sends the records on disk by `offer`, and meanwhile all that `read` sends; how many were
    /// delivered, once all are.
    ///
    /// # Errors
    /// Where a broker refuses a record, or records are left when nothing was delivered for
    /// [`DRAIN`] after the other end of the pipe has gone.
    pub(crate) fn carry(
        &self,
        offer: &(dyn Fn(&OutRecord) -> Result<bool, KafkaFault> + Sync),
        read: impl FnOnce() -> Result<(), KafkaFault>,
    ) -> Result<u64, KafkaFault> {
        let is_over = AtomicBool::new(false);
        let read = thread::scope(|scope| {
            let from_disk = scope.spawn(|| {
                let sent = self.send_from_disk(&is_over, offer);
                self.disk_failed.store(sent.is_err(), Ordering::Relaxed);
                sent
            });
            let read = read();
            if !matches!(read, Err(KafkaFault::Undelivered { .. })) {
                self.drain();
            }
            is_over.store(true, Ordering::Relaxed);
            let sent = from_disk.join().unwrap_or_else(|_| Err(KafkaFault::panicked()));
            sent.and(read)
        });
        self.end(read)
    }

    /// Hands a record to the client; gives it back where that has no room.
    ///
    /// # Errors
    /// Where it can't be sent at all.
    pub(crate) fn offer<'r, K: ToBytes + ?Sized, V: ToBytes + ?Sized>(
        &self,
        record: BaseRecord<'r, K, V>,
    ) -> Result<Option<BaseRecord<'r, K, V>>, KafkaFault> {
        match self.client.send(record) {
            Ok(()) => Ok(None),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                Ok(Some(back))
            }
            Err((error, _)) => Err(KafkaFault::Refused { undelivered: 1, why: in_words(&error) }),
        }
    }

    /// Hands a record to the client, as soon as there is room. Once the other end of the pipe has
    /// gone, it is given up when nothing was delivered for [`DRAIN`].
    ///
    /// # Errors
    /// As [`Outbound::carry`].
    pub(crate) fn send<K: ToBytes + ?Sized, V: ToBytes + ?Sized>(
        &self,
        mut record: BaseRecord<'_, K, V>,
    ) -> Result<(), KafkaFault> {
        let (mut idle, mut before) = (Duration::ZERO, None);
        loop {
            check(&self.client)?;
            record = match self.offer(record)? {
                None => return Ok(()),
                Some(back) => back,
            };
            self.wait(&mut idle, &mut before)?;
        }
    }

    /// The same of a record that may wait on disk: `offer` hands it to the client, and says whether
    /// that had room, and `keep` puts it after those on disk.
    ///
    /// # Errors
    /// As [`Outbound::carry`], and where the disk fails.
    pub(crate) fn send_or_keep(
        &self,
        offer: impl Fn() -> Result<bool, KafkaFault>,
        keep: impl Fn(&mut Spill) -> io::Result<Kept>,
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
            if route.as_ref().is_none_or(Spill::is_empty) && offer()? {
                watch.has_room();
                return Ok(());
            }
            if let Some(spill) = route.as_mut() {
                match keep(spill).map_err(KafkaFault::Spill)? {
                    Kept::Kept => return Ok(()),
                    Kept::Full(why) => watch.is_full(why.map(|e| e.to_string())),
                }
            }
            drop(route);
            self.wait(&mut idle, &mut before)?;
        }
    }

    fn route(&self) -> MutexGuard<'_, Option<Spill>> {
        self.route.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits a while for room; how long none came, and how much was delivered then.
    fn wait(&self, idle: &mut Duration, before: &mut Option<u64>) -> Result<(), KafkaFault> {
        let watch = self.client.client().context();
        watch.wait_for_delivery(PATIENCE);
        let now = watch.delivered.load(Ordering::Relaxed);
        let moves = before.replace(now) != Some(now);
        *idle = if moves || !(self.has_gone)() { Duration::ZERO } else { *idle + PATIENCE };
        match *idle >= DRAIN {
            true => Err(self.undelivered()),
            false => Ok(()),
        }
    }

    /// Hands over the records on disk, whenever the client has room.
    fn send_from_disk(
        &self,
        is_over: &AtomicBool,
        offer: &(dyn Fn(&OutRecord) -> Result<bool, KafkaFault> + Sync),
    ) -> Result<(), KafkaFault> {
        while !is_over.load(Ordering::Relaxed) {
            check(&self.client)?;
            let mut route = self.route();
            let Some(spill) = route.as_mut() else { return Ok(()) };
            let is_sent = match spill.front().map_err(KafkaFault::Spill)? {
                Some(record) => offer(record)?,
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

    fn undelivered(&self) -> KafkaFault {
        let records = u64::try_from(self.client.in_flight_count()).unwrap_or(0);
        let why = self.client.client().context().last_reason();
        let on_disk = self.route().as_ref().map_or(0, Spill::bytes);
        KafkaFault::Undelivered { records, on_disk, why }
    }

    /// Waits until all is delivered, as long as something is from time to time.
    fn drain(&self) {
        let watch = self.client.client().context();
        let (mut idle, mut before) = (Duration::ZERO, None);
        while idle < DRAIN
            && check(&self.client).is_ok()
            && !self.disk_failed.load(Ordering::Relaxed)
        {
            let done = self.client.flush(STEP).is_ok();
            if done && self.route().as_ref().is_none_or(Spill::is_empty) {
                return;
            }
            let now = watch.delivered.load(Ordering::Relaxed);
            if before.replace(now) != Some(now) {
                idle = Duration::ZERO;
                continue;
            }
            if idle.is_zero() {
                (self.say)(&format!(
                    "{} records wait; they are given up {} s after the last delivery",
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

    /// How many records were delivered, if all were.
    fn end(&self, read: Result<(), KafkaFault>) -> Result<u64, KafkaFault> {
        let watch = self.client.client().context();
        let waiting = u64::try_from(self.client.in_flight_count()).unwrap_or(0);
        if let Some(why) = watch.refusal() {
            let undelivered = waiting.saturating_add(watch.failed.load(Ordering::Relaxed));
            return Err(KafkaFault::Refused { undelivered, why });
        }
        read?;
        let (is_empty, torn) =
            self.route().as_ref().map_or((true, 0), |spill| (spill.is_empty(), spill.torn()));
        match (waiting, is_empty, torn) {
            (0, true, 0) => Ok(watch.delivered.load(Ordering::Relaxed)),
            (0, true, torn) => Err(KafkaFault::Torn(torn)),
            _ => Err(self.undelivered()),
        }
    }
}
