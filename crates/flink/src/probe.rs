//! The state of one probe.

use std::collections::{BTreeSet, VecDeque};
use weir_cluster::PacketRules;
use weir_engine::exchange::ProducerId;
use weir_kafka::record::Assembler;

/// A probe of a job.
pub(crate) struct ProbeRun {
    /// Its number in messages.
    pub(crate) id: u128,
    pub(crate) assembler: Assembler,
    /// The latest life that a head or a message named.
    pub(crate) epoch: Option<u64>,
    /// The lives whose heads came: they may come again.
    pub(crate) heads: BTreeSet<u64>,
    /// Whether nothing more is taken of the latest life.
    pub(crate) is_refused: bool,
    /// How its latest life that was not refused reads packets.
    pub(crate) rules: Option<PacketRules>,
    /// Messages that did not come.
    pub(crate) missing: u64,
    /// Lives that broke off before the latest one.
    pub(crate) broken: u64,
    /// Messages that there was no room for, in their order.
    pub(crate) waiting: VecDeque<WaitingMessage>,
}

/// A message that there was no room for.
pub(crate) struct WaitingMessage {
    /// The life of its probe.
    pub(crate) epoch: u64,
    pub(crate) bytes: Vec<u8>,
}

impl ProbeRun {
    pub(crate) fn new(name: &str) -> ProbeRun {
        ProbeRun {
            id: ProducerId::named(name, 0).probe,
            assembler: Assembler::new(name),
            epoch: None,
            heads: BTreeSet::new(),
            is_refused: false,
            rules: None,
            missing: 0,
            broken: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Another life begins, or is gone on with; whether it does.
    pub(crate) fn begin(&mut self, epoch: u64) -> bool {
        let begins = self.epoch.is_none_or(|known| epoch > known);
        if begins {
            self.epoch = Some(epoch);
            self.is_refused = false;
        }
        begins
    }
}

/// How packets are read, as options of `weir run` say it.
pub(crate) fn options(rules: &PacketRules) -> String {
    let PacketRules { headers, fragments, lateness_ns } = rules;
    format!("--headers {headers}, --fragments {fragments}, --lateness {lateness_ns}ns")
}
