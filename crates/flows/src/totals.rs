//! Counters that run on: `octetTotalCount` and `packetTotalCount` count since the flow began, so
//! that a record says again what those before it said. The traffic since the record before is the
//! difference.

use crate::limits::{SENDER_TOTALS_MAX, TIMEOUT_NS, TOTALS_MAX};
use crate::session::SessionKey;
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_packet::record::{FlowRecord, Slot};

/// The slots of counters: what a record may have as running totals.
pub(crate) const COUNTERS: [Slot; 4] =
    [Slot::Bytes, Slot::Packets, Slot::ReverseBytes, Slot::ReversePackets];

/// Where each is among them.
pub(crate) const BYTES: usize = 0;
pub(crate) const PACKETS: usize = 1;
pub(crate) const REVERSE_BYTES: usize = 2;
pub(crate) const REVERSE_PACKETS: usize = 3;

/// Running totals, by the counters; absent where the record has none.
pub(crate) type Running = [Option<u64>; COUNTERS.len()];

/// Fields that tell a flow from others of its session, beside when it began.
const KEY: [Slot; 12] = [
    Slot::Source,
    Slot::Destination,
    Slot::SourcePort,
    Slot::DestinationPort,
    Slot::IpProtocol,
    Slot::TrafficClass,
    Slot::Icmp,
    Slot::Vlan,
    Slot::SourceMac,
    Slot::DestinationMac,
    Slot::InInterface,
    Slot::Direction,
];

/// Fields that tell a flow without addresses from others: routes, which may change while one with
/// addresses goes on.
const ROUTES: [Slot; 6] = [
    Slot::NextHop,
    Slot::OutInterface,
    Slot::SourceAs,
    Slot::DestinationAs,
    Slot::SourceMask,
    Slot::DestinationMask,
];

/// The number and start of a flow, as the exporter gives them beside its fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct FlowName {
    /// The number that the exporter gave it (flowId).
    pub(crate) id: Option<u64>,
    /// When it began, as the record has it: a time that is reckoned from that of the datagram
    /// differs from record to record.
    pub(crate) began: Option<u64>,
}

/// A flow of a session.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RunningFlow {
    session: SessionKey,
    name: FlowName,
    /// Which slots have a value, a bit each.
    present: u32,
    values: Box<[u64]>,
}

impl RunningFlow {
    pub(crate) fn new(session: SessionKey, name: FlowName, record: &FlowRecord) -> RunningFlow {
        let has_addresses =
            [Slot::Source, Slot::Destination].iter().all(|&slot| record.get(slot).is_some());
        let routes = if has_addresses { &[][..] } else { &ROUTES };
        let (mut present, mut values) = (0, Vec::with_capacity(KEY.len()));
        for (bit, &slot) in KEY.iter().chain(routes).enumerate() {
            let Some(value) = record.get(slot) else { continue };
            present |= 1 << bit;
            match slot {
                Slot::Source | Slot::Destination | Slot::NextHop => {
                    let address = record.address(slot).unwrap_or(0);
                    values.extend([(address >> 64) as u64, address as u64]);
                }
                _ => values.push(value),
            }
        }
        RunningFlow { session, name, present, values: values.into() }
    }
}

/// The flows of a host: those that came lately, and those that came before. Once the former are
/// half of what there is room for, the latter are forgotten.
#[derive(Default, Debug)]
struct Generations {
    recent: BTreeMap<RunningFlow, Running>,
    before: BTreeMap<RunningFlow, Running>,
    /// When the recent ones began.
    since: i64,
}

impl Generations {
    fn len(&self) -> usize {
        self.recent.len() + self.before.len()
    }

    /// Forgets those that came before; how many.
    fn turn(&mut self, now: i64) -> usize {
        self.since = now;
        std::mem::replace(&mut self.before, std::mem::take(&mut self.recent)).len()
    }
}

/// The latest running totals of flows.
#[derive(Default, Debug)]
pub(crate) struct Totals {
    senders: BTreeMap<IpAddr, Generations>,
    len: usize,
    /// When it was looked for what has expired.
    looked: i64,
    /// Flows that were forgotten though they had not expired.
    pub(crate) forgotten: u64,
}

impl Totals {
    /// The traffic since the record before; all of it where there was none, or the counter began
    /// again. The flow is forgotten if this record is its last.
    pub(crate) fn difference(
        &mut self,
        flow: RunningFlow,
        running: Running,
        is_last: bool,
        now: i64,
    ) -> Running {
        let sender = flow.session.sender;
        let known = self
            .senders
            .get_mut(&sender)
            .and_then(|all| all.recent.remove(&flow).or_else(|| all.before.remove(&flow)));
        self.len -= usize::from(known.is_some());
        let known = known.unwrap_or_default();
        let since = |i: usize| {
            let (now, before) = (running[i]?, known[i].unwrap_or(0));
            Some(now.checked_sub(before).unwrap_or(now))
        };
        let came = std::array::from_fn(since);
        if !is_last {
            // A record may lack a counter that others of its flow have.
            let latest = std::array::from_fn(|i| running[i].or(known[i]));
            self.add(sender, flow, latest, now);
        }
        came
    }

    fn add(&mut self, sender: IpAddr, flow: RunningFlow, latest: Running, now: i64) {
        if self.len >= TOTALS_MAX {
            self.relieve(now);
        }
        let all = self.senders.entry(sender).or_default();
        if all.recent.len() >= SENDER_TOTALS_MAX / 2 {
            let gone = all.turn(now);
            self.len -= gone;
            self.forgotten += gone as u64;
        }
        if all.recent.is_empty() && all.before.is_empty() {
            all.since = now;
        }
        all.recent.insert(flow, latest);
        self.len += 1;
    }

    /// Forgets older flows of the host that has most.
    fn relieve(&mut self, now: i64) {
        let Some(all) = self.senders.values_mut().max_by_key(|all| all.len()) else { return };
        let mut gone = all.turn(now);
        if gone == 0 {
            gone = all.turn(now);
        }
        self.len -= gone;
        self.forgotten += gone as u64;
    }

    /// Forgets flows that were silent for long.
    pub(crate) fn expire(&mut self, now: i64) {
        if now.saturating_sub(self.looked) < LOOK_NS {
            return;
        }
        self.looked = now;
        let mut gone = 0;
        self.senders.retain(|_, all| {
            if now.saturating_sub(all.since) > TIMEOUT_NS {
                gone += all.turn(now);
            }
            all.len() > 0
        });
        self.len -= gone;
    }

    /// How many flows are remembered.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn len(&self) -> usize {
        let len = self.senders.values().map(Generations::len).sum();
        assert_eq!(self.len, len, "flows are counted as they come and go");
        len
    }
}

/// How often it is looked for what has expired, at most: it costs as much as there are hosts.
const LOOK_NS: i64 = 60 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;
    use weir_packet::record::Protocol;

    fn flow(host: u32, number: u64) -> RunningFlow {
        let sender = Ipv4Addr::from_bits(host).into();
        let protocol = Protocol::Ipfix;
        let session = SessionKey { sender, port: 1, protocol, address: sender, domain: 0 };
        let name = FlowName { id: Some(number), began: None };
        RunningFlow::new(session, name, &FlowRecord::EMPTY)
    }

    fn bytes(totals: &mut Totals, flow: RunningFlow, total: u64, now: i64) -> u64 {
        totals.difference(flow, [Some(total), None, None, None], false, now)[0].expect("bytes")
    }

    proptest! {
        /// As the most obvious way has it, while nothing has to be forgotten.
        #[test]
        fn differences_are_those_of_a_plain_map(
            all in proptest::collection::vec(
                (
                    0u32..3,
                    0u64..3,
                    prop_oneof![Just(None), (0u64..5).prop_map(Some), Just(Some(u64::MAX))],
                    0u8..5,
                ),
                0..60,
            ),
        ) {
            let (mut totals, mut model) = (Totals::default(), BTreeMap::new());
            for (host, number, total, ends) in all {
                let running = [total, None, total.map(|total| total / 2), None];
                let is_last = ends == 0;
                let came = totals.difference(flow(host, number), running, is_last, 0);
                let known: Running = model.remove(&(host, number)).unwrap_or_default();
                for i in 0..COUNTERS.len() {
                    let expected = running[i].map(|n| match known[i] {
                        Some(before) if before <= n => n - before,
                        _ => n,
                    });
                    prop_assert_eq!(came[i], expected);
                }
                if !is_last {
                    model.insert((host, number), std::array::from_fn(|i| running[i].or(known[i])));
                }
                prop_assert_eq!(totals.len(), model.len());
            }
        }
    }

    #[test]
    fn a_host_with_many_flows_forgets_its_own() {
        let mut totals = Totals::default();
        assert_eq!(bytes(&mut totals, flow(1, 0), 100, 0), 100);
        for n in 0..10 * TOTALS_MAX as u64 {
            bytes(&mut totals, flow(2, n), 5, 0);
        }
        assert_eq!(bytes(&mut totals, flow(1, 0), 130, 0), 30);
        assert!(totals.len() <= SENDER_TOTALS_MAX + 1);
        assert!(totals.forgotten > 0);
        let last = 10 * TOTALS_MAX as u64 - 1;
        assert_eq!(bytes(&mut totals, flow(2, last), 7, 0), 2);
    }

    #[test]
    fn all_hosts_together_are_bounded() {
        let mut totals = Totals::default();
        for host in 0..100 {
            for n in 0..SENDER_TOTALS_MAX as u64 / 4 {
                bytes(&mut totals, flow(host, n), 5, 0);
            }
        }
        assert!(totals.len() <= TOTALS_MAX);
        assert_eq!(bytes(&mut totals, flow(99, 0), 6, 0), 1, "the latest is remembered");
    }

    #[test]
    fn silent_flows_are_forgotten_and_their_memory_is_free() {
        let mut totals = Totals::default();
        bytes(&mut totals, flow(1, 0), 5, 0);
        totals.expire(TIMEOUT_NS);
        assert_eq!((totals.len(), bytes(&mut totals, flow(1, 0), 6, TIMEOUT_NS)), (1, 1));
        totals.expire(2 * TIMEOUT_NS);
        totals.expire(4 * TIMEOUT_NS);
        totals.expire(6 * TIMEOUT_NS);
        assert_eq!((totals.len(), totals.senders.len(), totals.forgotten), (0, 0, 0));
    }
}
