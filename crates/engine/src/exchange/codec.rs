//! The counts of a ledger by name: those of the worker level, which are sent.

use super::message::UnreadableMessage;
use crate::checkpoint::COUNT_MAX;
use crate::counters::Ledger;
use std::sync::LazyLock;
use weir_packet::unread::{UnreadProtocol, UnreadReason};
use weir_packet::walk::Reason;

/// Calls `f` with the name of each count that is sent, and the count.
fn each(ledger: &mut Ledger, mut f: impl FnMut(&'static str, &mut u64)) {
    f("received", &mut ledger.received);
    f("filtered", &mut ledger.filtered);
    f("kernel.filtered", &mut ledger.kernel.filtered);
    f("kernel.counted", &mut ledger.kernel.counted);
    f("kernel.wanted", &mut ledger.kernel.wanted);
    f("kernel.unclear", &mut ledger.kernel.unclear);
    f("kernel.full", &mut ledger.kernel.full);
    f("lost.interface", &mut ledger.lost.interface);
    f("lost.kernel", &mut ledger.lost.kernel);
    f("lost.ring", &mut ledger.lost.ring);
    f("processed", &mut ledger.processed);
    f("abandoned", &mut ledger.abandoned);
    f("cut", &mut ledger.cut);
    f("late", &mut ledger.late);
    f("lagging", &mut ledger.lagging);
    f("disordered", &mut ledger.disordered);
    f("wild", &mut ledger.wild);
    f("untimed", &mut ledger.untimed);
    f("overlong", &mut ledger.overlong);
    f("evicted", &mut ledger.evicted);
    f("undefined", &mut ledger.undefined);
    f("copies", &mut ledger.copies);
    f("unfinished", &mut ledger.unfinished);
    for ((protocol, reason), name) in unread_cells().zip(&*UNREAD_NAMES) {
        f(name, ledger.unread.of_mut(protocol, reason));
    }
    for reason in Reason::ALL {
        f(reason.name(), &mut ledger.malformed[reason as usize]);
    }
}

fn unread_cells() -> impl Iterator<Item = (UnreadProtocol, UnreadReason)> {
    let reasons = |protocol| UnreadReason::ALL.map(|reason| (protocol, reason));
    UnreadProtocol::ALL.into_iter().flat_map(reasons)
}

/// The names of the unread counts, by protocol and reason: `unread.dns.further in the packet`.
static UNREAD_NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let name = |(protocol, reason): (UnreadProtocol, UnreadReason)| {
        format!("unread.{}.{}", protocol.name(), reason.name())
    };
    unread_cells().map(name).collect()
});

/// The counts since `before`, without those that did not change.
pub(super) fn since(before: &Ledger, now: &Ledger) -> Vec<(&'static str, u64)> {
    let (mut old, mut counts) = (Vec::new(), Vec::new());
    each(&mut before.clone(), |_, n| old.push(*n));
    let mut old = old.into_iter();
    each(&mut now.clone(), |name, n| {
        let more = n.saturating_sub(old.next().unwrap_or(0));
        if more > 0 {
            counts.push((name, more));
        }
    });
    counts
}

/// Whether there is a count of this name.
pub(super) fn is_known(name: &str) -> bool {
    let mut found = false;
    each(&mut Ledger::default(), |known, _| found |= known == name);
    found
}

/// The largest count of a message. Packets that came since the one before are all accounted for in
/// it, so that the counts of all messages add up, whichever of them came.
///
/// # Errors
/// Where they can't be those of a producer.
pub(super) fn check(counts: &[(&str, u64)]) -> Result<u64, UnreadableMessage> {
    if let Some((name, _)) = counts.iter().find(|(name, _)| !is_known(name)) {
        return Err(UnreadableMessage::Count((*name).to_owned()));
    }
    let (mut own, mut most) = (Ledger::default(), 0);
    add(counts, &mut own);
    each(&mut own, |_, n| most = most.max(*n));
    if most >= COUNT_MAX {
        return Err(UnreadableMessage::Wrong("a count", most));
    }
    if !own.adds_up() {
        return Err(UnreadableMessage::Counts);
    }
    Ok(most)
}

/// Adds counts.
pub(super) fn add(counts: &[(&str, u64)], ledger: &mut Ledger) {
    each(ledger, |name, sum| {
        for (_, n) in counts.iter().filter(|(count, _)| *count == name) {
            *sum = sum.saturating_add(*n);
        }
    });
}
