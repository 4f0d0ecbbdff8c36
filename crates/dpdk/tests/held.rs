//! Batches that are held: nothing stalls, nothing is overwritten, and all buffers come back.

#![cfg(feature = "link")]

use weir_dpdk::{DpdkOptions, open_dpdk};
use weir_packet::source::{FrameBatch, Lost, Source};

/// Fills batches until no more frames can be lent, and some times more; those that have frames.
fn hold(source: &mut dyn Source) -> Vec<FrameBatch> {
    let (mut held, mut dry) = (Vec::new(), 0);
    while dry < 3 {
        let mut batch = FrameBatch::new();
        assert!(source.fill(&mut batch).expect("it goes on"));
        assert!(batch.reached().is_some(), "time goes on");
        if batch.is_empty() {
            dry += 1;
        } else {
            held.push(batch);
        }
        assert!(held.len() < 10_000, "there is a bound");
    }
    held
}

fn frames(batches: &[FrameBatch]) -> u64 {
    batches.iter().map(|batch| batch.len() as u64).sum()
}

/// The first bytes of frames, which tell whether they were written to.
fn bytes(batches: &[FrameBatch]) -> Vec<Vec<u8>> {
    let all = batches.iter().flat_map(|batch| (0..batch.len()).map(move |i| batch.frame(i)));
    all.map(<[u8]>::to_vec).collect()
}

#[test]
fn batches_may_be_held_for_as_long_as_anybody_likes() {
    let devices = ["net_null0,size=90", "net_null1,size=60"].map(str::to_owned);
    let options = DpdkOptions { memory: 4 << 20, queues: Some(2), ..DpdkOptions::default() };
    let opened = open_dpdk(&devices, options).unwrap_or_else(|e| panic!("{e}"));
    let mut source = opened.source;
    let buffers: u64 = opened.modes.iter().map(|mode| u64::from(mode.buffers)).sum();
    assert_eq!(opened.modes.len(), 2);
    let (mut received, mut first) = (0, None);
    for round in 0..12 {
        let held = hold(&mut *source);
        let n = frames(&held);
        // Two devices that never fall quiet: all that may be held is, each time anew.
        assert!(n < buffers, "{n} of {buffers} buffers, round {round}");
        assert_eq!(*first.get_or_insert(n), n, "as many as the first time, round {round}");
        received += n;
        let account = source.account();
        assert_eq!((account.received, account.lost), (received, Lost::default()));
        if round == 0 {
            let before = bytes(&held);
            assert!(hold(&mut *source).is_empty());
            assert!(before == bytes(&held), "what is held is not written to");
        }
        // Some go in another order, and some by another thread.
        let (mut some, rest): (Vec<_>, Vec<_>) =
            held.into_iter().enumerate().partition(|(i, _)| i % 3 == 0);
        some.reverse();
        let other = std::thread::spawn(move || drop(rest));
        drop(some);
        other.join().expect("ends");
    }
    let counts = source.interfaces();
    assert_eq!(
        counts.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["net_null0", "net_null1"]
    );
    assert_eq!(counts.iter().map(|(_, account)| account.received).sum::<u64>(), received);

    // A batch outlives its device.
    let last = hold(&mut *source);
    let before = bytes(&last);
    drop(source);
    assert!(before == bytes(&last), "memory stays");
    let closed = open_dpdk(&devices, DpdkOptions::default()).err().expect("it is gone").to_string();
    assert!(closed.starts_with("net_null0: "), "{closed}");
}
