//! Fingerprints: what a message is for.

use super::message::MessageTarget;
use super::refused::{Crossing, Refused};
use weir_plan::Signatures;
use weir_plan::physical::fingerprint::{OFFSET, hash};
use weir_plan::physical::{Half, NodeId, Physical};

/// The targets of the messages of a plan.
#[derive(Clone)]
pub(super) struct Targets {
    /// Of each partial aggregation.
    pub(super) nodes: Vec<MessageTarget>,
    /// Of messages that are for all of them.
    pub(super) all: MessageTarget,
}

impl Targets {
    pub(super) fn of(
        plan: &Physical,
        crossings: &[Crossing],
        signatures: &Signatures,
    ) -> Result<Targets, Refused> {
        let mut nodes = Vec::new();
        for crossing in crossings {
            let print = plan.fingerprint(crossing.node, signatures).map_err(Refused::Unwritable)?;
            let print = print.ok_or(Refused::OtherCut)?;
            nodes.push(MessageTarget {
                print,
                node: number(crossing.node).ok_or(Refused::OtherCut)?,
            });
        }
        let print =
            nodes.iter().fold(OFFSET, |so_far, target| hash(so_far, &target.print.to_le_bytes()));
        Ok(Targets { nodes, all: MessageTarget { print, node: MessageTarget::ALL } })
    }
}

/// A node in five bytes: pipeline and stage, little-endian, then 1, for the partial half. `None`
/// where the numbers are too large, which no query makes them.
fn number(id: NodeId) -> Option<[u8; 5]> {
    let pipeline = u16::try_from(id.pipeline.0).ok()?.to_le_bytes();
    let stage = u16::try_from(id.stage).ok()?.to_le_bytes();
    let half = match id.half {
        Half::Whole => 0,
        Half::Partial => 1,
        Half::Final => 2,
    };
    Some([pipeline[0], pipeline[1], stage[0], stage[1], half])
}
