//! Batches that are held: nothing stalls, nothing is overwritten, and all buffers come back.

#![cfg(feature = "link")]

use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_capture::live::Stamps;
use weir_dpdk::limits::COPIES_MIN;
use weir_dpdk::{DpdkOptions, open_dpdk};
use weir_packet::pcap::FileHeader;
use weir_packet::source::{FrameBatch, Gap, LinkType, Lost, Source};

/// One at a time: they share the memory that DPDK was started with.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

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

/// A run that ends a capture asks what was lost, and gets what is known then. Among the times of a
/// file nobody knows until when frames were lost.
#[test]
#[expect(clippy::disallowed_methods, reason = "counters are good for a millisecond")]
fn what_was_lost_last_is_told_at_once() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut file = header.to_bytes().to_vec();
    (0..300).for_each(|_| header.put_record(&mut file, 0, 60, &[2; 60]));
    // The last record breaks off, which the device tells by its counters alone.
    file.truncate(file.len() - 1);
    let path = folder.path().join("broken.pcap");
    std::fs::write(&path, file).expect("writes");
    let device = format!("net_pcap1,rx_pcap={}", path.to_str().expect("a plain path"));
    let stamps = Stamps::AdapterUnsynced;
    let options = DpdkOptions { memory: 4 << 20, stamps, ..DpdkOptions::default() };
    let mut source = open_dpdk(&[device], options).unwrap_or_else(|e| panic!("{e}")).source;
    let (mut batch, mut received, mut gap) = (FrameBatch::new(), 0, None);
    while received < 299 {
        assert!(source.fill(&mut batch).expect("it goes on"));
        received += batch.len();
        gap = gap.or(batch.gap());
    }
    assert_eq!(received, 299);
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert_eq!(source.account().lost, Lost { interface: 1, ..Lost::default() });
    assert_eq!(source.interfaces(), [("net_pcap1".to_owned(), source.account())]);
    for _ in 0..20 {
        assert!(source.fill(&mut batch).expect("it goes on"));
        gap = gap.or(batch.gap());
    }
    let Gap { frames, since, until } = gap.expect("it is told");
    assert!((frames, until) == (1, Gap::OPEN) && since <= 0, "{gap:?}");
}

/// Frames that take several buffers are copied, into no more memory than there may be.
#[test]
fn copies_that_are_held_have_a_bound() {
    const FRAMES: usize = 9000;
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut file = header.to_bytes().to_vec();
    let frame = |i: usize| [&[2; 12][..], &[0x88, 0xb5], &[i as u8; 8986]].concat();
    (0..FRAMES).for_each(|i| header.put_record(&mut file, 0, 9000, &frame(i)));
    let path = folder.path().join("long.pcap");
    std::fs::write(&path, file).expect("writes");
    let device = format!("net_pcap0,rx_pcap={}", path.to_str().expect("a plain path"));
    let options = DpdkOptions { memory: 4 << 20, ..DpdkOptions::default() };
    let opened = open_dpdk(&[device], options).unwrap_or_else(|e| panic!("{e}"));
    let (mut source, mut seen, mut rounds) = (opened.source, 0, 0);
    while seen < FRAMES {
        let held = hold(&mut *source);
        let bytes: Vec<Vec<u8>> = bytes(&held);
        assert!(bytes.iter().map(Vec::len).sum::<usize>() <= COPIES_MIN, "{} frames", bytes.len());
        assert!(!bytes.is_empty(), "what was let go is used again");
        for got in bytes {
            assert!(got == frame(seen), "frame {seen} is what it was");
            seen += 1;
        }
        rounds += 1;
    }
    assert!(rounds > 2, "{rounds} rounds");
    let account = source.account();
    assert_eq!((account.received, account.lost), (FRAMES as u64, Lost::default()));
}

#[test]
fn batches_may_be_held_for_as_long_as_anybody_likes() {
    let _alone = alone();
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
