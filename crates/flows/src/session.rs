//! The state that is kept of an exporter.

use crate::limits::{SAMPLERS_MAX, TIMEOUT_NS};
use crate::sequence::Sequence;
use crate::template::Template;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use weir_packet::record::Protocol;

/// The exporter whose templates and numbers these are: a transport session and an observation
/// domain in it (RFC 7011, section 8). The address that datagrams come from stands first: sessions
/// of a host follow each other in maps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct SessionKey {
    /// Where datagrams come from: the address, ...
    pub(crate) sender: IpAddr,
    /// ... and the port.
    pub(crate) port: u16,
    pub(crate) protocol: Protocol,
    /// The exporter: the sender, or the agent that a datagram of sFlow names.
    pub(crate) address: IpAddr,
    pub(crate) domain: u32,
}

impl SessionKey {
    /// The least that a session of this host can have.
    pub(crate) fn first_of(sender: IpAddr) -> SessionKey {
        let (protocol, address) = (Protocol::ALL[0], IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        SessionKey { sender, port: 0, protocol, address, domain: 0 }
    }
}

/// The state of one.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) templates: BTreeMap<u16, Template>,
    pub(crate) sequence: Sequence,
    /// One of how many packets is looked at, by the number of the sampler; without one by all.
    samplers: BTreeMap<Option<u64>, u64>,
    /// When the exporter started, if its options said so: nanoseconds since 1970.
    pub(crate) started: Option<i64>,
    /// When it sent something last: nanoseconds since 1970.
    pub(crate) seen: i64,
    /// Where its counts are.
    pub(crate) counts: usize,
}

impl Session {
    pub(crate) fn new(seen: i64, counts: usize) -> Session {
        Session {
            templates: BTreeMap::new(),
            sequence: Sequence::default(),
            samplers: BTreeMap::new(),
            started: None,
            seen,
            counts,
        }
    }

    /// Whether it was silent for so long that it counts as gone.
    pub(crate) fn is_over(&self, now: i64) -> bool {
        now.saturating_sub(self.seen) > TIMEOUT_NS
    }

    /// Notes how a sampler works.
    pub(crate) fn set_sampler(&mut self, sampler: Option<u64>, rate: u64) {
        if self.samplers.len() < SAMPLERS_MAX || self.samplers.contains_key(&sampler) {
            self.samplers.insert(sampler, rate);
        }
    }

    /// One of how many packets a sampler looks at.
    pub(crate) fn rate(&self, sampler: Option<u64>) -> Option<u64> {
        let of = |sampler| self.samplers.get(&sampler).copied();
        of(sampler).or_else(|| of(None))
    }
}
