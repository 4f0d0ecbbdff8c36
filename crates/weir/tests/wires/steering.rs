//! Steering while an output is away: only its own keys go elsewhere, and they come back.

use crate::common::workplace;
use crate::over_wires::until;
use crate::space::{Space, Tap};
use crate::{has_line, header, records};
use std::collections::{BTreeMap, BTreeSet};
use weir_packet::craft::Frame;
use weir_packet::source::LinkType;

/// A frame of a pair of hosts, in round `n`.
fn frame(pair: u8, n: u8) -> Vec<u8> {
    Frame::ethernet().ipv4([192, 0, 2, pair], [198, 51, 100, 1]).udp(1, 2).payload(&[n]).bytes()
}

/// Which pairs are in frames of a round.
fn pairs(frames: &[Vec<u8>], n: u8) -> BTreeSet<u8> {
    frames.iter().filter(|f| f[42] == n).map(|f| f[29]).collect()
}

#[test]
fn only_flows_of_an_output_that_is_away_move() {
    let test = "wires::steering::only_flows_of_an_output_that_is_away_move";
    const PAIRS: std::ops::Range<u8> = 0..200;
    for workers in ["1", "2"] {
        let Some(space) = Space::new(test) else { return };
        let folder = workplace();
        let mut taps = BTreeMap::new();
        for n in ["w0", "w1", "w2"] {
            space.veth(n, &format!("{n}x"));
            let Some(tap) = Tap::start(test, &space, &format!("{n}x"), folder.path()) else {
                return;
            };
            taps.insert(n, tap);
        }
        let query = "packets | steer by hosts to (\"w0\", \"w1\", \"w2\")";
        let mut run = space.stream(folder.path(), &["run", "-e", query, "-j", workers]);
        run.write(&header(LinkType::ETHERNET).to_bytes());
        let mut round = |n: u8, before: &str, told: &str| {
            if !before.is_empty() {
                space.ip(before);
                // Frames of each, by which the change is noticed.
                let some = records(&PAIRS.map(|pair| frame(pair, n + 100)).collect::<Vec<_>>());
                run.write(&some);
                run.wait_for_report(told, 1);
            }
            run.write(&records(&PAIRS.map(|pair| frame(pair, n)).collect::<Vec<_>>()));
            let mut by = BTreeMap::new();
            until("all frames of a round", || {
                by = taps.iter().map(|(&o, tap)| (o, pairs(&tap.frames(0), n))).collect();
                let all: usize = by.values().map(BTreeSet::len).sum();
                all == PAIRS.len()
            });
            by
        };
        let first = round(1, "", "");
        assert!(first.values().all(|pairs| pairs.len() > 30), "{first:?}");
        let without = round(2, "link set w1 down", "w1: is down or gone");
        assert!(without["w1"].is_empty());
        for other in ["w0", "w2"] {
            assert!(without[other].is_superset(&first[other]), "those of {other} stay");
        }
        let back = round(3, "link set w1 up", "w1: is back");
        assert_eq!(back, first, "those of w1 are there again");
        let ledger = run.end();
        let moved = ledger.lines().find(|line| line.starts_with("moved")).expect("some moved");
        let moved: usize = moved.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("n");
        assert!(moved >= first["w1"].len(), "{ledger}");
        let refused = ledger.lines().find(|line| line.starts_with("refused")).expect("some were");
        let refused: usize =
            refused.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("n");
        assert!(refused <= first["w1"].len(), "{ledger}");
        has_line(&ledger, "received 1000 packets");
    }
}
