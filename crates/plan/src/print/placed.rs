//! How packets are spread over workers, as text.

use super::line;
use crate::keys::describe;
use crate::place::Placement;

/// How packets are spread over this many workers: in one way, or by clusters of pipelines.
pub(super) fn spreading(placement: &Placement, workers: usize) -> String {
    let mut out = String::new();
    let used = placement.workers(workers);
    let reason = match &placement.clusters[..] {
        _ if placement.ends_early => {
            "a `limit` may end the run early, and no other worker is to have read on by then".into()
        }
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
    out
}
