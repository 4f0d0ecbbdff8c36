//! Which pipelines share one spreading of packets over workers: clusters.
//!
//! Each pipeline over packets needs its packets spread in a way of its own: by a key that its
//! order-dependent stages determine, on one worker, or anyhow. Pipelines whose keys have a part in
//! common share one spreading, by that part; where they have none, each of them gets the same
//! packets spread in its own way (shallow copies: the frames stay where they are).
//!
//! The rule is greedy: of all pairs of clusters, the two whose keys have the largest part in
//! common, counted in fields, become one that is spread by that part; of equally large ones the
//! first, in program order; again and again, until no two have a part in common. A part of fields
//! that take few values each, such as a protocol number, does not count: spread by it, nearly all
//! packets would go to one worker. Where the state of a pipeline merges, it needs no key and joins
//! the cluster with the most fields. A pipeline that needs one worker is a cluster by itself. Where
//! programs come and go, the key by which the packets of a pipeline are spread stays what it is:
//! its state is where that says.

use crate::keys::{FieldSet, KeyField, describe, largest_common};
use crate::limits::NARROW_BITS;
use weir_packet::fields::{FieldId, FieldType};

/// How packets are spread over workers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Partition {
    /// By batches: all that workers hold merges.
    Batches,
    /// By the hash of these fields.
    Key(FieldSet),
    /// Not at all: one worker.
    None,
}

/// Pipelines whose packets are spread in one way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// How they are spread.
    pub partition: Partition,
    /// Why: one sentence.
    pub reason: String,
    /// The pipelines over packets, by number, rising.
    pub pipelines: Vec<usize>,
}

/// How a pipeline needs its packets spread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// Anyhow: all that workers hold merges.
    Any,
    /// By this key or a part of it; it is not empty.
    Key(FieldSet),
    /// Not at all, for this reason.
    One(&'static str),
}

/// Pipelines that are spread by one key.
struct Keyed {
    key: FieldSet,
    pipelines: Vec<usize>,
    /// Whether the key stays what it is.
    fixed: bool,
}

/// The clusters of pipelines with these numbers, rising, and needs: by their first pipelines.
/// Pipelines in `fixed` are spread by a key already, and go on being spread by it.
pub(crate) fn clusters(needs: &[(usize, Need)], fixed: &[(usize, FieldSet)]) -> Vec<Cluster> {
    let mut keyed: Vec<Keyed> = Vec::new();
    let (mut single, mut any) = (Vec::new(), Vec::new());
    for (p, need) in needs {
        match need {
            Need::Any => any.push(*p),
            Need::Key(key) => {
                // It may need more than it did.
                let still = |as_before: &FieldSet| {
                    largest_common(&[as_before.clone(), key.clone()]) == *as_before
                };
                let before = fixed.iter().find(|(q, as_before)| q == p && still(as_before));
                let (key, fixed) = before.map_or((key, false), |(_, key)| (key, true));
                keyed.push(Keyed { key: key.clone(), pipelines: vec![*p], fixed });
            }
            Need::One(reason) => single.push(Cluster {
                partition: Partition::None,
                reason: format!("{reason}, so one worker takes all packets"),
                pipelines: vec![*p],
            }),
        }
    }
    while let Some((a, b, key)) = closest(&keyed) {
        let mut more = keyed.remove(b);
        let into = &mut keyed[a];
        into.key = key;
        into.fixed |= more.fixed;
        into.pipelines.append(&mut more.pipelines);
    }
    // Of equally long keys the first.
    let longest = keyed.iter_mut().rev().max_by_key(|cluster| cluster.key.len());
    let mut all = single;
    match longest {
        Some(cluster) => cluster.pipelines.append(&mut any),
        None if any.is_empty() && !all.is_empty() => {}
        None => all.push(Cluster {
            partition: Partition::Batches,
            reason: "every state merges, so whole batches go to any worker".to_owned(),
            pipelines: any,
        }),
    }
    all.extend(keyed.into_iter().map(|Keyed { key, mut pipelines, .. }| {
        pipelines.sort_unstable();
        let reason = format!(
            "stages that need their rows in order have {} in common, so packets are spread by it",
            describe(&key)
        );
        Cluster { partition: Partition::Key(key), reason, pipelines }
    }));
    all.sort_by_key(|cluster| cluster.pipelines.first().copied());
    all
}

/// The two clusters that have most in common, and what that is.
fn closest(keyed: &[Keyed]) -> Option<(usize, usize, FieldSet)> {
    let mut best: Option<(usize, usize, FieldSet)> = None;
    for (b, Keyed { key, fixed, .. }) in keyed.iter().enumerate() {
        for (a, Keyed { key: other, fixed: other_fixed, .. }) in keyed[..b].iter().enumerate() {
            let common = largest_common(&[other.clone(), key.clone()]);
            if *fixed && common != *key || *other_fixed && common != *other {
                continue;
            }
            let most = best.as_ref().map_or(0, |(.., best)| best.len());
            let earlier = best.as_ref().is_some_and(|(c, d, _)| (a, b) < (*c, *d));
            let larger = common.len() > most || common.len() == most && earlier;
            if larger && (common.iter().any(is_wide) || other == key) {
                best = Some((a, b, common));
            }
        }
    }
    best
}

const INTERFACE: FieldId = FieldId::named("interface");
const DIRECTION: FieldId = FieldId::named("direction");

/// Whether a part takes so many values that packets spread by it go to all workers.
fn is_wide(part: &KeyField) -> bool {
    let KeyField { field, network } = part;
    if let Some(network) = network {
        return network.v4.max(network.v6) > NARROW_BITS;
    }
    match field.info().ty {
        FieldType::Bool => false,
        FieldType::Int => field.info().bits > NARROW_BITS,
        FieldType::Time | FieldType::Ip | FieldType::Mac => true,
        FieldType::Str | FieldType::Bytes => ![INTERFACE, DIRECTION].contains(field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::fields::{by_name, key_by_name};

    fn key(names: &str) -> Need {
        let fields = |name: &str| match key_by_name(name) {
            Some(key) => key.fields.to_vec(),
            None => vec![by_name(name).expect("a field")],
        };
        Need::Key(names.split(' ').flat_map(fields).map(KeyField::from).collect())
    }

    /// Each cluster as its key and its pipelines.
    fn check(needs: &[Need], expected: &[(&str, &[usize])]) {
        let numbered: Vec<_> = needs.iter().cloned().enumerate().collect();
        let found: Vec<_> = clusters(&numbered, &[])
            .into_iter()
            .map(|cluster| {
                let key = match cluster.partition {
                    Partition::Batches => "batches".to_owned(),
                    Partition::Key(key) => describe(&key),
                    Partition::None => "one".to_owned(),
                };
                (key, cluster.pipelines)
            })
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(key, pipelines)| ((*key).to_owned(), pipelines.to_vec()))
            .collect();
        assert_eq!(found, expected, "{needs:?}");
    }

    const ONE: Need = Need::One("it is alone");

    #[test]
    fn one_key_for_all_where_there_is_one() {
        check(&[], &[("batches", &[])]);
        check(&[Need::Any, Need::Any], &[("batches", &[0, 1])]);
        check(&[key("flow"), key("hosts"), key("conn")], &[("hosts", &[0, 1, 2])]);
        check(&[Need::Any, key("ip.src"), Need::Any], &[("ip.src", &[0, 1, 2])]);
    }

    #[test]
    fn the_three_applications_of_the_network_function_paper() {
        let (three, ports) = (key("ip.src ip.dst ip.proto"), key("sport dport"));
        check(
            &[key("flow"), three.clone(), ports.clone()],
            &[("ip.src, ip.dst, ip.proto", &[0, 1]), ("sport, dport", &[2])],
        );
        // In any order: the largest common part comes first.
        check(
            &[ports, key("flow"), three],
            &[("sport, dport", &[0]), ("ip.src, ip.dst, ip.proto", &[1, 2])],
        );
    }

    #[test]
    fn clusters_become_fewer_as_long_as_they_have_something_in_common() {
        let keys = ["ip.src ip.dst", "ip.dst dport", "dport sport"].map(key);
        check(&keys, &[("ip.dst", &[0, 1]), ("sport, dport", &[2])]);
        let keys = ["ip.src", "ip.dst", "ip.src dport", "flow"].map(key);
        check(&keys, &[("ip.src", &[0, 2, 3]), ("ip.dst", &[1])]);
    }

    #[test]
    fn few_values_are_nothing_in_common() {
        let keys = ["ip.src ip.proto", "ip.dst ip.proto"].map(key);
        check(&keys, &[("ip.src, ip.proto", &[0]), ("ip.dst, ip.proto", &[1])]);
        check(&[key("ip.proto"), key("flow")], &[("ip.proto", &[0]), ("flow", &[1])]);
        check(&[key("ip.proto"), key("ip.proto")], &[("ip.proto", &[0, 1])]);
    }

    #[test]
    fn a_key_that_is_fixed_stays() {
        let Need::Key(flow) = key("flow") else { unreachable!("a key") };
        let check = |needs: &[Need], expected: &[(&str, &[usize])]| {
            let numbered: Vec<_> = needs.iter().cloned().enumerate().collect();
            let found = clusters(&numbered, &[(0, flow.clone())]).into_iter().map(|cluster| {
                let Partition::Key(key) = cluster.partition else { unreachable!("keys only") };
                (describe(&key), cluster.pipelines)
            });
            let expected = expected.iter().map(|(key, all)| ((*key).to_owned(), all.to_vec()));
            assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{needs:?}");
        };
        check(&[key("flow"), key("flow")], &[("flow", &[0, 1])]);
        // Together they would be spread by the source.
        check(&[key("flow"), key("ip.src")], &[("flow", &[0]), ("ip.src", &[1])]);
        check(
            &[key("flow"), key("ip.src"), key("ip.src dport"), Need::Any],
            &[("flow", &[0, 3]), ("ip.src", &[1, 2])],
        );
        // It needs another key than before.
        check(&[key("ip.src"), key("ip.src")], &[("ip.src", &[0, 1])]);
    }

    #[test]
    fn one_worker_is_a_cluster_by_itself() {
        check(&[ONE], &[("one", &[0])]);
        check(&[ONE, ONE], &[("one", &[0]), ("one", &[1])]);
        check(&[Need::Any, ONE, Need::Any], &[("batches", &[0, 2]), ("one", &[1])]);
        check(&[ONE, key("flow"), Need::Any], &[("one", &[0]), ("flow", &[1, 2])]);
    }

    #[test]
    fn what_merges_goes_where_most_fields_spread_it() {
        check(
            &[key("ip.src"), Need::Any, key("sport dport")],
            &[("ip.src", &[0]), ("sport, dport", &[1, 2])],
        );
        check(&[key("ip.src"), key("ip.dst"), Need::Any], &[("ip.src", &[0, 2]), ("ip.dst", &[1])]);
    }
}
