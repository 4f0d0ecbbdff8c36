//! All that a tier holds, as bytes.

use crate::fault::TierFault;
use crate::job::FlinkJob;
use crate::limits::STATE_BYTES_MAX;
use crate::probe::{ProbeRun, WaitingMessage};
use crate::tier::{Tier, TierCounts, TierTerms};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use weir_cluster::PacketRules;
use weir_cluster::limits::STREAM_MESSAGE_MAX;
use weir_engine::exchange::{ProducerId, Receiver};
use weir_engine::functions::Functions;
use weir_engine::run::Options;
use weir_kafka::record::UnfinishedMessage;

/// How a state begins: Weir's state of a tier, version 1. A head of JSON follows, after its length
/// as a u32, then the bytes of messages that the head names, and the state of the receiver.
const MAGIC: [u8; 4] = *b"WTS1";

#[derive(Serialize, Deserialize)]
struct SavedTier {
    /// Whether all is out: there is no state of a receiver then.
    is_finished: bool,
    counts: TierCounts,
    lateness_ns: i64,
    strangers: BTreeSet<String>,
    probes: BTreeMap<String, SavedProbe>,
}

#[derive(Serialize, Deserialize)]
struct SavedProbe {
    epoch: Option<u64>,
    heads: BTreeSet<u64>,
    is_refused: bool,
    rules: Option<PacketRules>,
    #[serde(default)]
    missing: u64,
    #[serde(default)]
    broken: u64,
    /// Of a message of which parts are missing: its epoch, the parts that have come, those there
    /// are, and the bytes of the former.
    unfinished: Option<(u64, u64, u64, usize)>,
    /// Of messages that wait, the epoch and how many bytes they have.
    waiting: Vec<(u64, usize)>,
}

impl Tier {
    /// All that it holds. Lines that it gave out are the caller's.
    ///
    /// # Errors
    /// Where there is more than a state can have.
    pub fn save(&mut self) -> Result<Vec<u8>, TierFault> {
        let probe = |(name, run): (&String, &ProbeRun)| {
            let saved = SavedProbe {
                epoch: run.epoch,
                heads: run.heads.clone(),
                is_refused: run.is_refused,
                rules: run.rules.clone(),
                missing: run.missing,
                broken: run.broken,
                unfinished: (run.assembler.unfinished())
                    .map(|m| (m.epoch, m.have, m.n, m.bytes.len())),
                waiting: run.waiting.iter().map(|m| (m.epoch, m.bytes.len())).collect(),
            };
            (name.clone(), saved)
        };
        let head = SavedTier {
            is_finished: self.receiver.is_none(),
            counts: self.counts,
            lateness_ns: self.lateness_ns,
            strangers: self.strangers.clone(),
            probes: self.probes.iter().map(probe).collect(),
        };
        let head = serde_json::to_vec(&head).map_err(TierFault::new)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend((head.len() as u32).to_le_bytes());
        bytes.extend(head);
        for run in self.probes.values() {
            let unfinished = run.assembler.unfinished().map(|message| &message.bytes);
            let waiting = run.waiting.iter().map(|message| &message.bytes);
            unfinished.into_iter().chain(waiting).for_each(|message| bytes.extend(message));
        }
        self.receiver.iter_mut().for_each(|receiver| bytes.extend(receiver.save()));
        match bytes.len() > STATE_BYTES_MAX {
            true => Err(TierFault::new(format!("the state has {} bytes", bytes.len()))),
            false => Ok(bytes),
        }
    }

    /// One that goes on from what another has [saved](Tier::save). Nothing waits for probes of then
    /// that are none of `terms`.
    ///
    /// # Errors
    /// As for [`Tier::open`], or where the bytes are no state of the job.
    pub fn restore(job: &str, terms: &TierTerms, state: &[u8]) -> Result<Tier, TierFault> {
        let damaged = || TierFault::new("the state of the job can't be read");
        let mut rest = state.strip_prefix(&MAGIC).ok_or_else(damaged)?;
        let mut take = |len: usize| {
            let (taken, after) = rest.split_at_checked(len)?;
            rest = after;
            Some(taken)
        };
        let len = take(4).and_then(|len| len.try_into().ok()).map(u32::from_le_bytes);
        let head = len.and_then(|len| take(len as usize)).ok_or_else(damaged)?;
        let head: SavedTier = serde_json::from_slice(head).map_err(TierFault::new)?;
        let mut runs = BTreeMap::new();
        for (name, saved) in head.probes {
            runs.insert(name.clone(), saved.run(&name, &mut take).ok_or_else(damaged)?);
        }
        let functions = Functions::default();
        let job = FlinkJob::from_json(job, &functions)?;
        let options = Options { lateness_ns: head.lateness_ns, ..Options::default() };
        let receiver = match head.is_finished {
            true => Receiver::new(&job.plan, &functions, &options, &[]).map_err(TierFault::new),
            false => Receiver::restore(&job.plan, &functions, &options, rest)
                .map_err(TierFault::not_restored),
        };
        let receiver = receiver?;
        let mut tier = Tier::of(receiver, job.times(), terms)?;
        let mut gone = Vec::new();
        for (name, run) in runs {
            match tier.probes.get_mut(&name) {
                Some(own) => *own = run,
                None => gone.push(run.id),
            }
        }
        tier.strangers = head.strangers;
        tier.counts = head.counts;
        tier.lateness_ns = head.lateness_ns;
        tier.expect();
        tier.gone = gone;
        if head.is_finished {
            tier.receiver = None;
        }
        Ok(tier)
    }
}

impl SavedProbe {
    fn run<'a>(
        self,
        name: &str,
        take: &mut impl FnMut(usize) -> Option<&'a [u8]>,
    ) -> Option<ProbeRun> {
        let mut run = ProbeRun::new(name);
        if let Some((epoch, have, n, len)) = self.unfinished {
            if have >= n || len > STREAM_MESSAGE_MAX {
                return None;
            }
            let bytes = take(len)?.to_vec();
            run.assembler.resume(UnfinishedMessage { epoch, have, n, bytes });
        }
        let mut message = |(epoch, len)| Some(WaitingMessage { epoch, bytes: take(len)?.to_vec() });
        run.waiting = self.waiting.into_iter().map(&mut message).collect::<Option<_>>()?;
        run.epoch = self.epoch;
        run.heads = self.heads;
        run.is_refused = self.is_refused;
        run.rules = self.rules;
        run.missing = self.missing;
        run.broken = self.broken;
        run.id = ProducerId::named(name, 0).probe;
        Some(run)
    }
}
