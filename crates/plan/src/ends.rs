//! Ends: where packets go, and how they look there.

use crate::expr::Expr;
use crate::functions::Secret;
use weir_packet::egress::Outlet;
use weir_packet::rewrite::Addresses;
use weir_packet::walk::TunnelPorts;

/// Hands packets out. A row takes the first arm whose condition holds; rows of no arm go on. Each
/// act of the arm hands the frame of the row's packet out once, in the order of acts; what rows
/// hold stays as it was. Frames leave in the order that rows come, those of one packet in the order
/// of stages.
///
/// Only rows that are packets still come here.
#[derive(Clone, PartialEq, Debug)]
pub struct Ends {
    /// The arms; at most [`crate::limits::ARMS_MAX`].
    pub arms: Vec<Arm>,
}

/// The fate of some of the packets.
#[derive(Clone, PartialEq, Debug)]
pub struct Arm {
    /// Which; `None` for all that are left.
    pub when: Option<Expr>,
    /// Where their frames go.
    pub acts: Vec<Act>,
    /// Whether their rows go on to the next stage.
    pub next: bool,
}

/// A frame that goes somewhere.
#[derive(Clone, PartialEq, Debug)]
pub struct Act {
    /// The edits that are made to it before, in order.
    pub edits: Vec<Edit>,
    /// Where it goes.
    pub to: To,
}

/// An edit of a frame that goes out. It stays as it is where it came from, and so do its fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edit {
    /// Keeps so many bytes of it; its length on the wire stays.
    Trim(u32),
    /// Puts an 802.1Q tag with this VLAN id after the addresses, which makes it four bytes longer.
    /// A frame that is no Ethernet frame or cut within its addresses stays as it is, and is
    /// counted.
    Tag(u16),
    /// Gives addresses other names, wherever they stand in headers.
    Anonymize(Anonymize),
}

/// Which addresses of a frame get other names: those that `anonymize(a, key)` gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Anonymize {
    /// Which.
    pub addresses: Addresses,
    /// The key.
    pub key: Secret,
    /// Which ports mean tunnels besides their own: packets in them have addresses, too.
    pub ports: TunnelPorts,
}

/// Where a frame goes.
#[derive(Clone, PartialEq, Debug)]
pub enum To {
    /// Nowhere; it is counted.
    Drop,
    /// Through.
    Pass,
    /// To the output of this name.
    Forward(String),
    /// To each of these outputs.
    Broadcast(Vec<String>),
    /// To the one of these outputs that the key chooses, see [`rendezvous`]. Where all parts of the
    /// key are absent, to the first.
    Steer {
        /// The parts of the key.
        keys: Vec<Expr>,
        /// The outputs, at least one.
        outputs: Vec<String>,
    },
}

impl To {
    /// All outlets that it may choose, in order.
    pub fn outlets(&self) -> Vec<Outlet> {
        let named = |names: &[String]| names.iter().cloned().map(Outlet::Named).collect();
        match self {
            To::Drop => Vec::new(),
            To::Pass => vec![Outlet::Pass],
            To::Forward(name) => vec![Outlet::Named(name.clone())],
            To::Broadcast(names) | To::Steer { outputs: names, .. } => named(names),
        }
    }
}

impl Ends {
    /// All acts, arm by arm.
    pub fn acts(&self) -> impl Iterator<Item = &Act> {
        self.arms.iter().flat_map(|arm| &arm.acts)
    }

    /// Calls `f` on each condition and each part of a key.
    pub fn for_each_expr(&self, f: &mut dyn FnMut(&Expr)) {
        for arm in &self.arms {
            arm.when.iter().for_each(&mut *f);
            for act in &arm.acts {
                if let To::Steer { keys, .. } = &act.to {
                    keys.iter().for_each(&mut *f);
                }
            }
        }
    }

    /// Whether any row goes on.
    pub fn goes_on(&self) -> bool {
        self.arms.iter().any(|arm| arm.next) || self.arms.iter().all(|arm| arm.when.is_some())
    }

    /// The same choice of rows that go on, with nothing handed out.
    #[must_use]
    pub fn silent(&self) -> Ends {
        let silent = |arm: &Arm| Arm { acts: Vec::new(), ..arm.clone() };
        Ends { arms: self.arms.iter().map(silent).collect() }
    }
}

/// The hash of a key so far, with one more word of 64 bits: the generator SplitMix64, stepped from
/// the exclusive or of the two (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", 2014). The hash of no words is 0.
///
/// The words of a key are those of its parts, in order: an address is two, the high bits first,
/// anything else one; a text is the [`text_word`] of its bytes, a bool 0 or 1, an absent part 0.
#[inline(always)]
pub fn mix(hash: u64, word: u64) -> u64 {
    let z = (hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// FNV-1a of 64 bits: the word that stands for a text in a key, and for the name of an output.
pub fn text_word(text: &[u8]) -> u64 {
    weir_base::fnv::hash(text)
}

/// The output that a key goes to, of those with these [`text_word`]s: the one for which
/// [`mix`] of the key's hash and that word is largest, of equal ones the first (Thaler and
/// Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998). So where an output is
/// gone, only its own keys go elsewhere.
#[inline]
pub fn rendezvous(key: u64, outputs: &[u64]) -> usize {
    let (mut best, mut most) = (0, 0);
    for (i, &output) in outputs.iter().enumerate() {
        let score = mix(key, output);
        if i == 0 || score > most {
            (best, most) = (i, score);
        }
    }
    best
}

/// The output that a key goes to while some are away: the one that [`rendezvous`] would choose of
/// those that are `there`, the first of them where there is no key. None where all are away.
pub fn rendezvous_there(
    key: Option<u64>,
    outputs: &[u64],
    there: impl Fn(usize) -> bool,
) -> Option<usize> {
    let mut those = (0..outputs.len()).filter(|&i| there(i));
    let Some(key) = key else { return those.next() };
    // Of equal ones the last is taken, so they are looked at from the end.
    those.rev().max_by_key(|&i| mix(key, outputs[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_references() {
        // The first outputs of SplitMix64 from the seed 0, and FNV-1a of "" and "a".
        assert_eq!(mix(0, 0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(0, 0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(text_word(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(text_word(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn where_an_output_is_gone_only_its_keys_move() {
        let words: Vec<u64> =
            ["a.pcap", "b.pcap", "c.pcap", "d.pcap"].map(|n| text_word(n.as_bytes())).to_vec();
        let without: Vec<u64> = [words[0], words[1], words[3]].to_vec();
        let mut shares = [0; 4];
        for key in (0..40_000).map(|n| mix(0, n)) {
            let before = rendezvous(key, &words);
            shares[before] += 1;
            if before != 2 {
                assert_eq!(without[rendezvous(key, &without)], words[before]);
            }
        }
        assert!(shares.iter().all(|n| (9_500..10_500).contains(n)), "{shares:?}");
    }

    /// An output that is away is one that is not in the list.
    #[test]
    fn what_is_away_is_as_if_taken_out() {
        let words: Vec<u64> = (0..5).map(|n| mix(7, n)).collect();
        let keys = || (0..1000).map(|n| mix(0, n));
        for key in keys() {
            let all = rendezvous_there(Some(key), &words, |_| true);
            assert_eq!(all, Some(rendezvous(key, &words)));
        }
        for away in 0..5 {
            let left: Vec<u64> = (0..5).filter(|&i| i != away).map(|i| words[i]).collect();
            for key in keys() {
                let chosen = rendezvous_there(Some(key), &words, |i| i != away);
                assert_eq!(chosen.map(|i| words[i]), Some(left[rendezvous(key, &left)]));
            }
            let first = rendezvous_there(None, &words, |i| i != away);
            assert_eq!(first, Some(usize::from(away == 0)));
        }
        assert_eq!(rendezvous_there(Some(1), &words, |_| false), None);
        assert_eq!(rendezvous_there(None, &words, |_| false), None);
    }

    #[test]
    fn rows_of_no_arm_go_on() {
        let when = Some(Expr::constant(crate::value::Value::Bool(true)));
        let arm = |when, next| Arm { when, acts: vec![Act { edits: vec![], to: To::Drop }], next };
        assert!(Ends { arms: vec![arm(when.clone(), false)] }.goes_on());
        assert!(!Ends { arms: vec![arm(when.clone(), false), arm(None, false)] }.goes_on());
        let silent = Ends { arms: vec![arm(when, true), arm(None, false)] }.silent();
        assert!(silent.goes_on() && silent.acts().next().is_none());
    }
}
