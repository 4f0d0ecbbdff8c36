//! The computation of a node, as a number: nodes with equal ones compute the same, on whatever
//! machine.

use super::json::written;
use super::{NodeId, Physical, PipelineId, Unwritable};
use crate::functions::Signatures;
use crate::program::{Input, Pipeline, SourceKind};

impl Physical {
    /// A number of 128 bits that says what a node computes: the node itself with all stages before
    /// it, those of the pipelines that it takes rows of too. It depends neither on the numbers and
    /// names of pipelines nor on other pipelines nor on how packets are spread. `signatures` names
    /// registered functions. `None` if there is no such node.
    ///
    /// It is FNV-1a of the JSON of the stages, which has no defence against somebody who looks for
    /// two plans with one number.
    ///
    /// # Errors
    /// As of [`Physical::to_json`].
    pub fn fingerprint(
        &self,
        id: NodeId,
        signatures: &Signatures,
    ) -> Result<Option<u128>, Unwritable> {
        if !self.nodes(id.pipeline).any(|node| node.id == id) {
            return Ok(None);
        }
        let (pipelines, source) = (self.program().pipelines, self.source);
        // Of each pipeline up to the one asked for what its rows are.
        let mut prints: Vec<u128> = Vec::new();
        for (p, pipeline) in pipelines[..=id.pipeline.0].iter().enumerate() {
            let stages = if PipelineId(p) == id.pipeline { id.stage + 1 } else { usize::MAX };
            prints.push(of_pipeline((source, pipeline), stages, &prints, signatures)?);
        }
        Ok(prints.last().map(|print| hash(*print, &[id.half as u8])))
    }
}

/// The fingerprint of the rows of a pipeline after so many stages; `prints` are those of the ones
/// before.
fn of_pipeline(
    (source, pipeline): (SourceKind, &Pipeline),
    stages: usize,
    prints: &[u128],
    signatures: &Signatures,
) -> Result<u128, Unwritable> {
    let mut print = hash(OFFSET, &STAGES_VERSION.to_le_bytes());
    if pipeline.input == Input::Packets {
        print = hash(print, source.name().as_bytes());
    }
    for source in pipeline.sources() {
        print = hash(print, &prints[source].to_le_bytes());
    }
    let mut pipeline = pipeline.clone();
    // Which pipelines those are, by number, has been said.
    pipeline.renumber(|_| 0);
    for stage in pipeline.stages.iter().take(stages) {
        print = hash(print, written(stage, signatures)?.as_bytes());
    }
    Ok(print)
}

/// The version of the form of stages, which changes when that form does: other parts of a plan's
/// JSON may change, and machines with an older Weir still agree on what a node computes.
const STAGES_VERSION: u64 = 1;

/// FNV-1a of 128 bits, which goes on from `hash`; it begins with [`OFFSET`]. Fingerprints and the
/// numbers of probes are such hashes (docs/partials.md).
pub fn hash(hash: u128, bytes: &[u8]) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

/// Where FNV-1a of 128 bits begins.
pub const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
