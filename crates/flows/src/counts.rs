//! The counts of a collector.

use std::fmt;
use std::net::IpAddr;
use weir_packet::record::Protocol;

/// Why a part of a datagram could not be read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(usize)]
pub enum Fault {
    /// No version that is known here.
    Version,
    /// It ends before what its header announces.
    Short,
    /// A set with a length below 4, or beyond the datagram.
    SetLength,
    /// A template that ends within its fields, or has more than the limit.
    TemplateFields,
    /// A template whose records would have no byte, or no field.
    TemplateEmpty,
    /// A template number below 256.
    TemplateNumber,
    /// A record of variable length that reaches beyond its set.
    RecordLength,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 7] = [
        Fault::Version,
        Fault::Short,
        Fault::SetLength,
        Fault::TemplateFields,
        Fault::TemplateEmpty,
        Fault::TemplateNumber,
        Fault::RecordLength,
    ];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Version => "unknown version",
            Fault::Short => "shorter than announced",
            Fault::SetLength => "set length",
            Fault::TemplateFields => "template fields",
            Fault::TemplateEmpty => "empty template",
            Fault::TemplateNumber => "template number",
            Fault::RecordLength => "record length",
        })
    }
}

/// Counts over all exporters.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Datagrams that were taken.
    pub datagrams: u64,
    /// Records that were handed out.
    pub records: u64,
    /// Records of options (sampling rates, names of interfaces), which are no flows.
    pub options: u64,
    /// Samples of counters (sFlow), which are no flows.
    pub counters: u64,
    /// Parts of datagrams that could not be read, by [`Fault`].
    pub faults: [u64; Fault::ALL.len()],
    /// Data sets that were given up since no template came for them in time.
    pub untemplated: u64,
    /// Templates that were refused since there were too many.
    pub templates_refused: u64,
    /// Datagrams that were refused since there were too many exporters.
    pub exporters_refused: u64,
    /// Sessions that were forgotten for others, since their host had too many.
    pub sessions_forgotten: u64,
    /// Flows with running totals that were forgotten since there were too many.
    pub totals_forgotten: u64,
}

impl Counts {
    pub(crate) fn fault(&mut self, fault: Fault) {
        self.faults[fault as usize] += 1;
    }
}

/// Counts of one exporter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exporter {
    /// Its address; `None` for all those that came after the limit.
    pub address: Option<IpAddr>,
    /// Its observation domain, source ID, engine or sub-agent.
    pub domain: u32,
    /// By what it exports.
    pub protocol: Protocol,
    /// Datagrams of it.
    pub datagrams: u64,
    /// Records of it.
    pub records: u64,
    /// Units that are missing by its sequence numbers: flows of NetFlow 5, datagrams of NetFlow 9
    /// and sFlow, data records of IPFIX.
    pub lost: u64,
    /// How often it started again, or its sequence numbers did.
    pub restarts: u64,
}

impl Exporter {
    /// How many records are missing, about: where its sequence numbers count datagrams, these
    /// brought as many records as its others.
    pub fn lost_records(&self) -> u64 {
        match self.protocol {
            Protocol::Netflow5 | Protocol::Ipfix => self.lost,
            Protocol::Netflow9 | Protocol::Sflow => {
                records_of(self.lost, self.records, self.datagrams)
            }
        }
    }

    /// The unit that its sequence numbers count.
    pub fn unit(&self) -> &'static str {
        match self.protocol {
            Protocol::Netflow5 => "flows",
            Protocol::Ipfix => "data records",
            Protocol::Netflow9 | Protocol::Sflow => "datagrams",
        }
    }
}

/// How many records so many datagrams brought, if they were as those that brought `records`.
pub(crate) fn records_of(datagrams: u64, records: u64, of_datagrams: u64) -> u64 {
    let all = u128::from(datagrams) * u128::from(records);
    match all.checked_div(of_datagrams.into()) {
        Some(all) => u64::try_from(all).unwrap_or(u64::MAX),
        None => datagrams,
    }
}

/// Its address, and the domain unless that is 0.
impl fmt::Display for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(address) = self.address else { return f.write_str("others") };
        write!(f, "{address}")?;
        if self.domain != 0 {
            write!(f, "/{}", self.domain)?;
        }
        write!(f, " {}", self.protocol.name())
    }
}
