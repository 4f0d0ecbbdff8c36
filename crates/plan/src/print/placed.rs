//! Where a program runs, as text: how packets are spread over workers, and why.

use super::{line, list, title};
use crate::cluster::Cluster;
use crate::keys::describe;
use crate::place::Placement;
use crate::stage::Program;

/// How packets are spread over this many workers: in one way, or by clusters of pipelines.
pub(super) fn spreading(program: &Program, placement: &Placement, workers: usize) -> String {
    let mut out = String::new();
    let used = placement.workers(workers);
    let reason = match &placement.clusters[..] {
        [one] => one.reason.clone(),
        all => format!(
            "no one key fits all pipelines, so {} clusters of them get all packets, each spread in \
             its own way",
            all.len()
        ),
    };
    line(&mut out, 0, &format!("workers: {used}; {reason}"));
    let key = match placement.common_key.is_empty() {
        true => "none".to_owned(),
        false => describe(&placement.common_key),
    };
    line(&mut out, 0, &format!("largest common key: {key}"));
    if let all @ [_, _, ..] = &placement.clusters[..] {
        for (c, cluster) in all.iter().enumerate() {
            line(&mut out, 0, &format!("cluster {}: {}", c + 1, members(program, cluster)));
        }
    }
    out
}

/// `pipelines 1 (flows), 3; packets are spread by …`.
fn members(program: &Program, cluster: &Cluster) -> String {
    let plural = if cluster.pipelines.len() == 1 { "" } else { "s" };
    let titles = list(&cluster.pipelines, |&p| title(program, p));
    format!("pipeline{plural} {titles}; {}", cluster.reason)
}

/// Where the stages of pipeline `p` run, of which there are so many.
pub(super) fn runs(placement: &Placement, p: usize, stages: usize) -> String {
    let placed = &placement.pipelines[p];
    let place = match placed.sharded {
        0 => "after the workers".to_owned(),
        n if n >= stages => "on the workers".to_owned(),
        1 => "the first stage on the workers".to_owned(),
        n => format!("the first {n} stages on the workers"),
    };
    let cluster = placement.clusters.iter().position(|c| c.pipelines.contains(&p));
    let cluster = match cluster.filter(|_| placement.clusters.len() > 1) {
        Some(c) => format!(", in cluster {}", c + 1),
        None => String::new(),
    };
    format!("runs: {place}{cluster}; {}", placed.reason)
}
