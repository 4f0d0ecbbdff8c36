//! The collector: which exporter a datagram is of, and what becomes of it.

use crate::bytes::Bytes;
use crate::counts::{Counts, Exporter, Fault, records_of};
use crate::export::Export;
use crate::held::WaitingSets;
use crate::limits::{
    EXPORTERS_NAMED_MAX, SENDER_NAMED_MAX, SENDER_SESSIONS_MAX, SESSIONS_MAX, TEMPLATES_MAX,
    TIMEOUT_NS,
};
use crate::reading::Reading;
use crate::senders::Senders;
use crate::session::{Session, SessionKey};
use crate::sflow::Sampled;
use crate::totals::Totals;
use crate::{ipfix, netflow5, netflow9, sflow};
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_packet::record::{FlowRecord, Protocol};

/// A datagram of an exporter.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Where it came from: the address, ...
    pub address: IpAddr,
    /// ... and the port.
    pub port: u16,
    /// When it came: nanoseconds since 1970.
    pub received: i64,
    /// The bytes that UDP carried.
    pub payload: &'a [u8],
}

/// Reads the datagrams of any number of exporters.
#[derive(Debug)]
pub struct Collector {
    sessions: BTreeMap<SessionKey, Session>,
    exporters: Vec<Exporter>,
    senders: Senders,
    /// Templates of all sessions.
    templates: usize,
    /// When what has expired was looked for last.
    looked: i64,
    held: WaitingSets,
    totals: Totals,
    sampled: Sampled,
    counts: Counts,
}

/// How often it is looked for what has expired, at most.
const LOOK_NS: i64 = 10 * 1_000_000_000;

/// The header of a datagram.
enum DatagramHeader {
    Netflow5(netflow5::Netflow5Header),
    Netflow9(netflow9::Netflow9Header),
    Ipfix(ipfix::IpfixHeader),
    Sflow(sflow::SflowHeader),
}

impl DatagramHeader {
    /// Reads the version, and the header that it has.
    fn read(bytes: &mut Bytes<'_>, received: i64) -> Result<DatagramHeader, Fault> {
        let version = bytes.u16().ok_or(Fault::Short)?;
        let header = match version {
            5 => netflow5::header(bytes, received).map(DatagramHeader::Netflow5),
            9 => netflow9::header(bytes, received).map(DatagramHeader::Netflow9),
            10 => ipfix::header(bytes, received).map(DatagramHeader::Ipfix),
            // The version of sFlow takes four bytes.
            0 => match bytes.u16().ok_or(Fault::Short)? {
                5 => sflow::header(bytes, received).map(DatagramHeader::Sflow),
                _ => return Err(Fault::Version),
            },
            _ => return Err(Fault::Version),
        };
        header.ok_or(Fault::Short)
    }

    fn key(&self, datagram: &Datagram<'_>) -> SessionKey {
        let Datagram { address: sender, port, .. } = *datagram;
        let (protocol, domain, address) = match self {
            DatagramHeader::Netflow5(h) => (Protocol::Netflow5, h.engine.into(), sender),
            DatagramHeader::Netflow9(h) => (Protocol::Netflow9, h.source, sender),
            DatagramHeader::Ipfix(h) => (Protocol::Ipfix, h.domain, sender),
            DatagramHeader::Sflow(h) => (Protocol::Sflow, h.sub_agent, h.agent),
        };
        SessionKey { sender, port, protocol, address, domain }
    }

    fn export(&self) -> Export {
        match self {
            DatagramHeader::Netflow5(h) => h.export,
            DatagramHeader::Netflow9(h) => h.export,
            DatagramHeader::Ipfix(h) => h.export,
            DatagramHeader::Sflow(h) => h.export,
        }
    }
}

impl Collector {
    /// A collector that knows of no exporter.
    pub fn new() -> Collector {
        Collector {
            sessions: BTreeMap::new(),
            exporters: Vec::new(),
            senders: Senders::default(),
            templates: 0,
            looked: i64::MIN,
            held: WaitingSets::default(),
            totals: Totals::default(),
            sampled: Sampled::new(),
            counts: Counts::default(),
        }
    }

    /// Reads a datagram; `put` gets each record and its time, in nanoseconds since 1970.
    pub fn read(&mut self, datagram: &Datagram<'_>, put: &mut dyn FnMut(&FlowRecord, i64)) {
        self.counts.datagrams += 1;
        let mut bytes = Bytes(datagram.payload);
        let header = match DatagramHeader::read(&mut bytes, datagram.received) {
            Ok(header) => header,
            Err(fault) => return self.counts.fault(fault),
        };
        let key = header.key(datagram);
        if !self.open(key, datagram.received) {
            self.counts.exporters_refused += 1;
            return;
        }
        if self.templates >= TEMPLATES_MAX {
            self.relieve_templates(key.sender, datagram.received);
        }
        self.totals.expire(datagram.received);
        let session = self.sessions.get_mut(&key).expect("it was just opened");
        session.seen = session.seen.max(datagram.received);
        self.exporters[session.counts].datagrams += 1;
        let mut reading = Reading {
            key,
            export: header.export(),
            exporter: &mut self.exporters[session.counts],
            session,
            counts: &mut self.counts,
            held: &mut self.held,
            totals: &mut self.totals,
            usage: self.senders.usage_mut(key.sender).expect("it has a session"),
            templates: &mut self.templates,
            put,
        };
        match &header {
            DatagramHeader::Netflow5(h) => netflow5::records(&mut reading, h, bytes),
            DatagramHeader::Netflow9(h) => netflow9::sets(&mut reading, h, bytes),
            DatagramHeader::Ipfix(h) => ipfix::sets(&mut reading, h, bytes),
            DatagramHeader::Sflow(h) => sflow::samples(&mut reading, h, bytes, &mut self.sampled),
        }
    }

    /// Whether the state of an exporter is there, or could be made.
    fn open(&mut self, key: SessionKey, now: i64) -> bool {
        if let Some(session) = self.sessions.get(&key) {
            if !session.is_over(now) {
                return true;
            }
            // The state from before is forgotten: templates have expired, and so have numbers.
            self.close(&key);
        }
        if !self.make_room(key.sender, now) {
            return false;
        }
        let counts = self.counts_of(key);
        self.sessions.insert(key, Session::new(now, counts));
        self.senders.add_session(key.sender);
        true
    }

    /// Whether there is room for one more session of a host, for which another may be forgotten.
    fn make_room(&mut self, sender: IpAddr, now: i64) -> bool {
        if self.sessions.len() >= SESSIONS_MAX {
            self.forget(now);
        }
        let mine = self.senders.usage(sender).sessions;
        let is_full = self.sessions.len() >= SESSIONS_MAX;
        if !is_full && mine < SENDER_SESSIONS_MAX {
            return true;
        }
        // A host with less than its share takes of the one with most, which has more than that.
        let is_owed = is_full && mine < self.senders.share(SESSIONS_MAX, sender);
        let giver = match is_owed {
            true => self.senders.heaviest(|usage| usage.sessions),
            false => Some(sender),
        };
        giver.is_some_and(|giver| self.forget_session_of(giver))
    }

    /// Makes room for templates of a host that has less than its share.
    fn relieve_templates(&mut self, sender: IpAddr, now: i64) {
        self.forget(now);
        let mine = self.senders.usage(sender).templates;
        if self.templates < TEMPLATES_MAX || mine >= self.senders.share(TEMPLATES_MAX, sender) {
            return;
        }
        if let Some(giver) = self.senders.heaviest(|usage| usage.templates) {
            self.forget_session_of(giver);
        }
    }

    /// Forgets the session of a host that was silent longest; whether it has one.
    fn forget_session_of(&mut self, sender: IpAddr) -> bool {
        let mine = self.sessions.range(SessionKey::first_of(sender)..);
        let mine = mine.take_while(|(key, _)| key.sender == sender);
        let silent = mine.min_by_key(|(_, session)| session.seen).map(|(key, _)| *key);
        if let Some(key) = silent {
            self.close(&key);
            self.counts.sessions_forgotten += 1;
        }
        silent.is_some()
    }

    /// Forgets a session.
    fn close(&mut self, key: &SessionKey) {
        if let Some(session) = self.sessions.remove(key) {
            self.templates -= session.templates.len();
            self.senders.remove_session(key.sender, session.templates.len());
        }
    }

    /// Where the counts of an exporter are; its port does not matter.
    fn counts_of(&mut self, key: SessionKey) -> usize {
        let SessionKey { address, protocol, domain, .. } = key;
        let known = self.exporters.iter().position(|e| {
            e.address == Some(address) && e.protocol == protocol && e.domain == domain
        });
        if let Some(known) = known {
            return known;
        }
        let is_full = self.exporters.len() >= EXPORTERS_NAMED_MAX
            || !self.senders.add_name(key.sender, SENDER_NAMED_MAX);
        let others = |e: &Exporter| e.address.is_none() && e.protocol == protocol;
        if let Some(others) = self.exporters.iter().position(others).filter(|_| is_full) {
            return others;
        }
        let (address, domain) = if is_full { (None, 0) } else { (Some(address), domain) };
        self.exporters.push(Exporter {
            address,
            domain,
            protocol,
            datagrams: 0,
            records: 0,
            lost: 0,
            restarts: 0,
        });
        self.exporters.len() - 1
    }

    /// Forgets templates that were not sent again, and exporters that are silent.
    fn forget(&mut self, now: i64) {
        // To look costs as much as there is; a flood of templates or exporters does not make it
        // look each time.
        if now.saturating_sub(self.looked) < LOOK_NS {
            return;
        }
        self.looked = now;
        let over = self.sessions.iter().filter(|(_, session)| session.is_over(now));
        let over: Vec<SessionKey> = over.map(|(key, _)| *key).collect();
        over.iter().for_each(|key| self.close(key));
        for (key, session) in &mut self.sessions {
            let before = session.templates.len();
            session.templates.retain(|_, t| now.saturating_sub(t.seen) <= TIMEOUT_NS);
            let expired = before - session.templates.len();
            self.templates -= expired;
            if let Some(usage) = self.senders.usage_mut(key.sender) {
                usage.templates -= expired;
            }
        }
    }

    /// The counts so far. Data sets that still wait for their templates are among those that were
    /// given up: none of their records came out.
    pub fn counts(&self) -> Counts {
        let untemplated = self.counts.untemplated + self.held.len();
        let totals_forgotten = self.totals.forgotten;
        Counts { untemplated, totals_forgotten, ..self.counts.clone() }
    }

    /// The exporters, in the order in which they came.
    pub fn exporters(&self) -> &[Exporter] {
        &self.exporters
    }

    /// How many sessions and templates are remembered.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let templates = self.sessions.values().map(|session| session.templates.len()).sum();
        assert_eq!(templates, self.templates, "templates are counted as they come and go");
        let usage = crate::senders::Usage { sessions: self.sessions.len(), templates };
        assert_eq!(self.senders.total(), usage, "hosts have what there is");
        assert!(self.totals.len() <= crate::limits::TOTALS_MAX);
        (self.sessions.len(), templates)
    }

    /// How many records of all exporters are missing by their numbers, about.
    pub fn lost_records(&self) -> u64 {
        self.exporters.iter().fold(0, |sum, exporter| sum.saturating_add(exporter.lost_records()))
    }

    /// How many records so many datagrams brought, if they were as those that came.
    pub fn records_of(&self, datagrams: u64) -> u64 {
        records_of(datagrams, self.counts.records, self.counts.datagrams)
    }
}

impl Default for Collector {
    fn default() -> Collector {
        Collector::new()
    }
}

#[cfg(test)]
mod tests;
