//! Information elements (IANA's registry "ipfix"; those below 128 are also the fields of NetFlow 9)
//! as values of a record.

use crate::bytes::unsigned;
use crate::export::Export;
use crate::totals::{BYTES, COUNTERS, FlowName, PACKETS, REVERSE_BYTES, REVERSE_PACKETS, Running};
use weir_base::address::number_of_v6;
use weir_packet::record::{FlowRecord, Slot};

/// The enterprise whose elements are IANA's, of the other direction (RFC 5103, section 6.1).
const REVERSE: u32 = 29305;

/// Seconds between 1900, from which times of NTP count, and 1970.
const NTP_TO_UNIX: i64 = 2_208_988_800;

const SECOND: i64 = 1_000_000_000;

/// A record that is being filled, and what is known of it besides its slots.
#[derive(Clone, Debug)]
pub(crate) struct Filling {
    pub(crate) record: FlowRecord,
    /// Milliseconds of the exporter's uptime, or since its start.
    first_uptime: Option<u32>,
    last_uptime: Option<u32>,
    /// When the exporter started: nanoseconds since 1970.
    pub(crate) started: Option<i64>,
    duration: Option<i64>,
    /// When something was observed that is no flow of some length.
    observed: Option<i64>,
    source_port: Option<u64>,
    destination_port: Option<u64>,
    /// Counters since the flow began, by [`COUNTERS`].
    pub(crate) running: Running,
    pub(crate) name: FlowName,
    /// The number of the sampler that the packets came from.
    pub(crate) sampler: Option<u64>,
    /// Packets that are taken one after the other, and then left out.
    interval: Option<u64>,
    space: Option<u64>,
    /// So many out of so many.
    size: Option<u64>,
    population: Option<u64>,
}

impl Filling {
    pub(crate) fn new() -> Filling {
        Filling {
            record: FlowRecord::EMPTY,
            first_uptime: None,
            last_uptime: None,
            started: None,
            duration: None,
            observed: None,
            source_port: None,
            destination_port: None,
            running: [None; COUNTERS.len()],
            name: FlowName::default(),
            sampler: None,
            interval: None,
            space: None,
            size: None,
            population: None,
        }
    }

    /// Takes the value of an element. A value of no known form or element is left out.
    pub(crate) fn value(&mut self, enterprise: u32, element: u16, bytes: &[u8], export: &Export) {
        match enterprise {
            0 => self.of_iana(element, bytes, export),
            REVERSE => self.of_reverse(element, bytes),
            _ => {}
        }
    }

    fn of_reverse(&mut self, element: u16, bytes: &[u8]) {
        match element {
            1 => self.number(Slot::ReverseBytes, bytes),
            2 => self.number(Slot::ReversePackets, bytes),
            85 => self.running[REVERSE_BYTES] = count(bytes),
            86 => self.running[REVERSE_PACKETS] = count(bytes),
            _ => {}
        }
    }

    fn of_iana(&mut self, element: u16, bytes: &[u8], export: &Export) {
        match element {
            1 | 231 => self.number(Slot::Bytes, bytes),
            2 | 298 => self.number(Slot::Packets, bytes),
            // Of exporters that say nothing of the packets as they came, those as they left.
            23 => self.number_unless_there(Slot::Bytes, bytes),
            24 => self.number_unless_there(Slot::Packets, bytes),
            85 => self.running[BYTES] = count(bytes),
            86 => self.running[PACKETS] = count(bytes),
            148 => self.name.id = unsigned(bytes),
            232 => self.number(Slot::ReverseBytes, bytes),
            299 => self.number(Slot::ReversePackets, bytes),
            4 => self.small(Slot::IpProtocol, bytes, 8),
            5 => self.small(Slot::TrafficClass, bytes, 8),
            6 => self.tcp_flags(bytes),
            7 => self.source_port = unsigned(bytes),
            11 => self.destination_port = unsigned(bytes),
            180 | 182 => self.source_port = self.source_port.or(unsigned(bytes)),
            181 | 183 => self.destination_port = self.destination_port.or(unsigned(bytes)),
            8 => self.v4(Slot::Source, bytes),
            12 => self.v4(Slot::Destination, bytes),
            15 => self.v4(Slot::NextHop, bytes),
            27 => self.v6(Slot::Source, bytes),
            28 => self.v6(Slot::Destination, bytes),
            62 => self.v6(Slot::NextHop, bytes),
            9 | 29 => self.mask(Slot::SourceMask, bytes),
            13 | 30 => self.mask(Slot::DestinationMask, bytes),
            10 => self.small(Slot::InInterface, bytes, 32),
            14 => self.small(Slot::OutInterface, bytes, 32),
            16 => self.small(Slot::SourceAs, bytes, 32),
            17 => self.small(Slot::DestinationAs, bytes, 32),
            32 | 139 => self.small(Slot::Icmp, bytes, 16),
            176 | 178 => self.icmp(8, bytes),
            177 | 179 => self.icmp(0, bytes),
            56 => self.small(Slot::SourceMac, bytes, 48),
            80 => self.small(Slot::DestinationMac, bytes, 48),
            58 | 243 => self.vlan(bytes),
            61 => self.small(Slot::Direction, bytes, 8),
            136 => self.small(Slot::EndReason, bytes, 8),
            34 | 50 => self.sampling(bytes),
            48 | 302 => self.sampler = unsigned(bytes),
            305 => self.interval = unsigned(bytes),
            306 => self.space = unsigned(bytes),
            309 => self.size = unsigned(bytes),
            310 => self.population = unsigned(bytes),
            195 => self.dscp(bytes),
            _ => self.time(element, bytes, export),
        }
    }

    fn time(&mut self, element: u16, bytes: &[u8], export: &Export) {
        let milliseconds = |n: u64| i64::try_from(n).ok()?.checked_mul(1_000_000);
        let before = |us: u64| export.sent.checked_sub(i64::try_from(us).ok()?.checked_mul(1000)?);
        let number = unsigned(bytes);
        if matches!(element, 22 | 150 | 152 | 154 | 156) {
            self.name.began = number;
        }
        let seconds = number.and_then(|n| i64::try_from(n).ok()?.checked_mul(SECOND));
        let (start, end) = match element {
            21 => return self.last_uptime = number.and_then(|n| n.try_into().ok()),
            22 => return self.first_uptime = number.and_then(|n| n.try_into().ok()),
            150 => (seconds, None),
            151 => (None, seconds),
            152 => (number.and_then(milliseconds), None),
            153 => (None, number.and_then(milliseconds)),
            154 | 156 => (ntp(bytes), None),
            155 | 157 => (None, ntp(bytes)),
            158 => (number.and_then(before), None),
            159 => (None, number.and_then(before)),
            160 => return self.started = number.and_then(milliseconds),
            161 => return self.duration = number.and_then(milliseconds),
            162 => {
                return self.duration =
                    number.and_then(|n| i64::try_from(n).ok()?.checked_mul(1000));
            }
            322 => return self.observed = seconds,
            323 => return self.observed = number.and_then(milliseconds),
            324 | 325 => return self.observed = ntp(bytes),
            _ => return,
        };
        for (slot, time) in [(Slot::Start, start), (Slot::End, end)] {
            if let Some(time) = time {
                self.record.set(slot, time as u64);
            }
        }
    }

    fn number(&mut self, slot: Slot, bytes: &[u8]) {
        if let Some(n) = count(bytes) {
            self.record.set(slot, n);
        }
    }

    fn number_unless_there(&mut self, slot: Slot, bytes: &[u8]) {
        if self.record.get(slot).is_none() {
            self.number(slot, bytes);
        }
    }

    /// A number of so many bits, which exporters may write in more or fewer.
    fn small(&mut self, slot: Slot, bytes: &[u8], bits: u32) {
        if let Some(n) = unsigned(bytes).filter(|n| n >> bits == 0) {
            self.record.set(slot, n);
        }
    }

    /// The length of a prefix; a zero may be that of the other version of IP, as with addresses.
    fn mask(&mut self, slot: Slot, bytes: &[u8]) {
        if unsigned(bytes) != Some(0) || self.record.get(slot).is_none() {
            self.small(slot, bytes, 8);
        }
    }

    /// Eight flags, or with reserved bits and the data offset in front of them (RFC 7125).
    fn tcp_flags(&mut self, bytes: &[u8]) {
        if let Some(flags) = unsigned(bytes) {
            self.record.set(Slot::TcpFlags, flags & 0x1ff);
        }
    }

    fn v4(&mut self, slot: Slot, bytes: &[u8]) {
        // Exporters that have one template for both write zeros where a record is of IPv6.
        if let Ok(address) = bytes.try_into().map(u32::from_be_bytes)
            && (address != 0 || self.record.address(slot).is_none())
        {
            self.record.set_v4(slot, address);
        }
    }

    fn v6(&mut self, slot: Slot, bytes: &[u8]) {
        // Exporters that have one template for both write zeros where a record is of IPv4.
        if let Ok(bytes) = <[u8; 16]>::try_from(bytes) {
            let address = number_of_v6(u128::from_be_bytes(bytes));
            if address != 0 || self.record.address(slot).is_none() {
                self.record.set_address(slot, address);
            }
        }
    }

    /// A type or a code of ICMP, which share a slot.
    fn icmp(&mut self, shift: u32, bytes: &[u8]) {
        if let Some(n) = unsigned(bytes).filter(|n| n >> 8 == 0) {
            let other = self.record.get(Slot::Icmp).unwrap_or(0) & !(0xff << shift);
            self.record.set(Slot::Icmp, other | n << shift);
        }
    }

    /// A VLAN; 0 is that of frames without a tag.
    fn vlan(&mut self, bytes: &[u8]) {
        if let Some(n) = unsigned(bytes).map(|n| n & 0xfff).filter(|n| *n > 0) {
            self.record.set(Slot::Vlan, n);
        }
    }

    fn dscp(&mut self, bytes: &[u8]) {
        if let Some(n) = unsigned(bytes).filter(|n| n >> 6 == 0) {
            let ecn = self.record.get(Slot::TrafficClass).unwrap_or(0) & 3;
            self.record.set(Slot::TrafficClass, n << 2 | ecn);
        }
    }

    fn sampling(&mut self, bytes: &[u8]) {
        if let Some(n) = unsigned(bytes).filter(|n| (1..1 << 32).contains(n)) {
            self.record.set(Slot::Sampling, n);
        }
    }

    /// One of how many packets was looked at, as the record itself says.
    pub(crate) fn rate(&self) -> Option<u64> {
        let of = |size: u64, population: u64| {
            let rate = population.checked_div(size)?;
            (1..1 << 32).contains(&rate).then_some(rate)
        };
        let by_count = || of(self.interval?, self.interval?.checked_add(self.space?)?);
        let by_size = || of(self.size?, self.population?);
        self.record.get(Slot::Sampling).or_else(by_count).or_else(by_size)
    }

    /// The whole record but for running totals, and its time. The exporter started then, if its
    /// options said so and this record does not.
    pub(crate) fn finish(mut self, export: &Export, started: Option<i64>) -> (FlowRecord, i64) {
        self.ports();
        if let Some(rate) = self.rate() {
            self.record.set(Slot::Sampling, rate);
        }
        let uptimes = [self.first_uptime, self.last_uptime];
        // The header of NetFlow 9 says with each datagram how long the exporter has been up.
        let started = self.started.or(started.filter(|_| export.uptime.is_none()));
        let times = export.start_and_end(uptimes, started);
        for (slot, time) in [Slot::Start, Slot::End].into_iter().zip(times) {
            if let Some(time) = time.filter(|_| self.record.get(slot).is_none()) {
                self.record.set(slot, time as u64);
            }
        }
        let time = |slot| self.record.get(slot).map(|time| time as i64);
        let (start, end) = (time(Slot::Start), time(Slot::End));
        let after = || start?.checked_add(self.duration?);
        let before = || end?.checked_sub(self.duration?);
        let (start, end) = (start.or_else(before), end.or_else(after).or(self.observed));
        if let Some(start) = start {
            self.record.set(Slot::Start, start as u64);
        }
        if let Some(end) = end {
            self.record.set(Slot::End, end as u64);
        }
        (self.record, end.unwrap_or(export.sent))
    }

    /// Ports, where the protocol has any; ICMP has a type and a code in place of the destination's.
    fn ports(&mut self) {
        let protocol = self.record.get(Slot::IpProtocol);
        if matches!(protocol, Some(1 | 58))
            && self.record.get(Slot::Icmp).is_none()
            && let Some(both) = self.destination_port.filter(|n| n >> 16 == 0)
        {
            self.record.set(Slot::Icmp, both);
        }
        // Without a protocol nothing says that these are no ports.
        if !protocol.is_none_or(has_ports) {
            return;
        }
        let ports =
            [(Slot::SourcePort, self.source_port), (Slot::DestinationPort, self.destination_port)];
        for (slot, port) in ports {
            if let Some(port) = port.filter(|port| port >> 16 == 0) {
                self.record.set(slot, port);
            }
        }
    }
}

/// Whether this protocol of IP has ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
pub(crate) fn has_ports(protocol: u64) -> bool {
    matches!(protocol, 6 | 17 | 33 | 132 | 136)
}

/// A count, which is absent beyond the numbers of queries.
fn count(bytes: &[u8]) -> Option<u64> {
    unsigned(bytes).filter(|n| i64::try_from(*n).is_ok())
}

/// A time of NTP (RFC 7011, section 6.1.9) as nanoseconds since 1970; before 1970 in era 0 it is of
/// the next era, which begins in 2036.
fn ntp(bytes: &[u8]) -> Option<i64> {
    let both = u64::from_be_bytes(bytes.try_into().ok()?);
    let (seconds, fraction) = ((both >> 32) as i64, both & 0xffff_ffff);
    let era = if seconds < NTP_TO_UNIX { 1 << 32 } else { 0 };
    // The nearest nanosecond, since exporters round fractions up or down.
    let nanoseconds = (fraction * SECOND as u64 + (1 << 31)) >> 32;
    Some((seconds + era - NTP_TO_UNIX) * SECOND + nanoseconds as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPORT: Export = Export { received: 9 * SECOND, sent: 8 * SECOND, uptime: Some(3000) };

    fn filled(values: &[(u32, u16, &[u8])]) -> (FlowRecord, i64) {
        let mut filling = Filling::new();
        values.iter().for_each(|(enterprise, element, bytes)| {
            filling.value(*enterprise, *element, bytes, &EXPORT);
        });
        filling.finish(&EXPORT, None)
    }

    fn one(element: u16, bytes: &[u8], slot: Slot) -> Option<u64> {
        filled(&[(0, element, bytes)]).0.get(slot)
    }

    #[test]
    fn numbers_of_any_width() {
        assert_eq!(one(1, &[5], Slot::Bytes), Some(5));
        assert_eq!(
            one(1, &[0x7f, 255, 255, 255, 255, 255, 255, 255], Slot::Bytes),
            Some(i64::MAX as u64)
        );
        for bytes in [&[][..], &[0; 9], &[0x80, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(one(1, bytes, Slot::Bytes), None, "{bytes:?}");
        }
        assert_eq!(
            one(10, &[0, 0, 0, 0, 255, 255, 255, 255], Slot::InInterface),
            Some(u32::MAX.into())
        );
        assert_eq!(one(10, &[1, 0, 0, 0, 0], Slot::InInterface), None);
        assert_eq!(one(6, &[0x50, 0x12], Slot::TcpFlags), Some(0x12));
        assert_eq!(one(8, &[10, 0, 0], Slot::Source), None);
    }

    #[test]
    fn times_of_all_forms() {
        let ts = |element, bytes: &[u8]| filled(&[(0, element, bytes)]).1;
        assert_eq!(ts(151, &5u32.to_be_bytes()), 5 * SECOND);
        assert_eq!(ts(153, &5001u64.to_be_bytes()), 5001 * 1_000_000);
        let ntp = (NTP_TO_UNIX as u64 + 7) << 32 | 1 << 31;
        assert_eq!(ts(157, &ntp.to_be_bytes()), 7 * SECOND + SECOND / 2);
        assert_eq!(ts(157, &[0; 8]), ((1i64 << 32) - NTP_TO_UNIX) * SECOND);
        assert_eq!(ts(157, &[255; 4]), 8 * SECOND, "no time of this length");
        assert_eq!(ts(159, &1500u32.to_be_bytes()), 8 * SECOND - 1_500_000);
        // Uptimes: the datagram was sent at one of 3000 ms; a higher one is of before a wrap.
        assert_eq!(ts(21, &2500u32.to_be_bytes()), 7 * SECOND + SECOND / 2);
        assert_eq!(ts(21, &3500u32.to_be_bytes()), 8 * SECOND + SECOND / 2);
        assert_eq!(ts(153, &[255; 8]), 8 * SECOND, "beyond the times that there are");
        let [start, milliseconds] = [(0, 152, &1000u64.to_be_bytes()[..]), (0, 161, &[1, 0][..])];
        assert_eq!(filled(&[start, milliseconds]).1, SECOND + 256_000_000);
    }

    #[test]
    fn ports_are_of_protocols_that_have_them() {
        let of = |protocol: u8| filled(&[(0, 4, &[protocol]), (0, 7, &[0, 9]), (0, 11, &[8, 0])]).0;
        let seen = |r: &FlowRecord| {
            [Slot::SourcePort, Slot::DestinationPort, Slot::Icmp].map(|s| r.get(s))
        };
        assert_eq!(seen(&of(6)), [Some(9), Some(2048), None]);
        assert_eq!(seen(&of(1)), [None, None, Some(2048)]);
        assert_eq!(seen(&of(47)), [None, None, None]);
        let r = filled(&[(0, 4, &[1]), (0, 177, &[3]), (0, 176, &[11])]).0;
        assert_eq!(r.get(Slot::Icmp), Some(11 << 8 | 3));
    }

    #[test]
    fn sampling_of_all_forms() {
        let rate = |values: &[(u32, u16, &[u8])]| filled(values).0.get(Slot::Sampling);
        assert_eq!(rate(&[(0, 34, &[0, 100])]), Some(100));
        assert_eq!(rate(&[(0, 34, &[0])]), None);
        assert_eq!(rate(&[(0, 305, &[1]), (0, 306, &[99])]), Some(100));
        assert_eq!(rate(&[(0, 309, &[2]), (0, 310, &[64])]), Some(32));
        assert_eq!(rate(&[(0, 309, &[0]), (0, 310, &[64])]), None);
        assert_eq!(rate(&[(0, 305, &[255; 8]), (0, 306, &[255; 8])]), None);
    }

    #[test]
    fn the_other_direction_is_apart() {
        let r = filled(&[(0, 1, &[5]), (REVERSE, 1, &[7]), (REVERSE, 2, &[2]), (9, 1, &[99])]).0;
        assert_eq!(r.get(Slot::Bytes), Some(5));
        assert_eq!(r.get(Slot::ReverseBytes), Some(7));
        assert_eq!(r.get(Slot::ReversePackets), Some(2));
    }
}
