//! How far the run is, and what became of packets.

use weir_engine::counters::Ledger;
use weir_packet::source::Account;

/// How far a run is.
#[derive(Clone, PartialEq, Debug)]
pub enum Phase {
    /// It goes on; of files, the share that was read.
    Running {
        /// From 0 to 1.
        read: Option<f64>,
    },
    /// There are no more packets; why it ended early, if it did.
    Ended {
        /// A sentence.
        error: Option<String>,
    },
}

/// The fate of packets so far.
#[derive(Clone, PartialEq, Debug)]
pub struct RunState {
    /// How far the run is.
    pub phase: Phase,
    /// The ledger.
    pub ledger: Ledger,
    /// The traffic received from each interface, by its name.
    pub interfaces: Vec<(String, Account)>,
}

impl Default for RunState {
    fn default() -> RunState {
        let (ledger, interfaces) = (Ledger::default(), Vec::new());
        RunState { phase: Phase::Running { read: None }, ledger, interfaces }
    }
}
