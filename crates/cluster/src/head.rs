//! The head of a probe stream: who wrote it, and how packets were read.

use crate::limits::PROBE_NAME_MAX;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_base::harmless::is_harmless;
use weir_engine::exchange::ProducerId;

/// The head of a probe stream.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProbeHead {
    /// The name of the probe, which no other probe has.
    pub probe: String,
    /// Which life of the probe: larger than all before, such as the time at which it started, in
    /// nanoseconds since 1970.
    pub epoch: u64,
    /// The version of Weir.
    pub weir: String,
    /// The fingerprint of the computation, 32 hexadecimal digits.
    pub fingerprint: String,
    /// How packets are read.
    pub rules: PacketRules,
    /// Whether this life does again what the one before it left undone, as a host does that takes
    /// packets out of a log: then nothing is unseen between them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumes: bool,
    /// The clock that stamps packets; `None` where they come from a file or another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ProbeClock>,
}

/// The clock of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProbeClock {
    /// By how many microseconds it was off at most when the probe began, as its kernel knows from
    /// what keeps it in step (NTP, PTP); `None` where it is not synchronised.
    pub max_error_us: Option<u64>,
}

impl ProbeClock {
    /// By how much it was off at most; `None` where it is not synchronised.
    pub fn max_error(self) -> Option<Duration> {
        self.max_error_us.map(Duration::from_micros)
    }
}

/// Options of a run that change what a packet or a window is: they have to be those of all probes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PacketRules {
    /// Which headers fields are read from, if there is a tunnel: the value of `--headers`.
    pub headers: String,
    /// Whether later fragments of a datagram get the ports of the first one.
    pub fragments: bool,
    /// How long windows wait for packets that come out of order, in nanoseconds.
    pub lateness_ns: i64,
}

impl ProbeHead {
    /// The numbers by which messages name this probe and its life.
    pub fn id(&self) -> ProducerId {
        ProducerId::named(&self.probe, self.epoch)
    }

    /// A fingerprint as a head has it.
    pub fn fingerprint_text(print: u128) -> String {
        format!("{print:032x}")
    }

    /// Says why a text can't name a probe, if it can't: names are printed.
    pub fn name_fault(name: &str) -> Option<String> {
        if name.is_empty() || name.len() > PROBE_NAME_MAX {
            return Some(format!("the name of a probe has 1 to {PROBE_NAME_MAX} bytes"));
        }
        let is_shown = name.chars().all(is_harmless);
        (!is_shown).then(|| {
            "the name of a probe has no control characters, and none that are not seen".to_owned()
        })
    }

    /// Reads a head of JSON.
    ///
    /// # Errors
    /// If it is none; says why.
    pub fn read(json: &[u8]) -> Result<ProbeHead, String> {
        let head: ProbeHead = serde_json::from_slice(json).map_err(|e| e.to_string())?;
        if let Some(fault) = ProbeHead::name_fault(&head.probe) {
            return Err(fault);
        }
        let all = [&head.weir, &head.fingerprint, &head.rules.headers];
        if all.iter().any(|text| text.len() > 64 || !text.chars().all(is_harmless)) {
            return Err("a text in it is too long, or has characters that are not shown".to_owned());
        }
        match head.rules.lateness_ns < 0 {
            true => Err(format!("its lateness can't be {} ns", head.rules.lateness_ns)),
            false => Ok(head),
        }
    }
}
