//! Several captures read one after the other.

use weir_capture::{Options, Order, open_all};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::{FrameBatch, LinkType, Source};

/// A capture of `n` packets from second `at` on.
fn capture(link: LinkType, n: usize, at: i64) -> Vec<u8> {
    let header = FileHeader::new(link);
    let mut out = header.to_bytes().to_vec();
    for i in 0..n as i64 {
        let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).bytes();
        header.put_record(&mut out, (at + i) * 1_000_000_000, frame.len() as u32, &frame);
    }
    out
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).expect("writes");
        path.to_str().expect("a plain path").to_owned()
    }
}

fn folder() -> Folder {
    Folder(tempfile::tempdir().expect("a temporary folder"))
}

fn given() -> Options {
    Options { order: Order::Given, ..Options::default() }
}

/// Link type, number and second of each packet, and how it ended.
fn read(source: &mut dyn Source) -> (Vec<(u16, u64, i64)>, Option<String>) {
    let (mut packets, mut batch) = (Vec::new(), FrameBatch::new());
    let error = loop {
        match source.fill(&mut batch) {
            Ok(true) => {}
            Ok(false) => break None,
            Err(e) => break Some(e.to_string()),
        }
        for (&seq, &ts) in batch.seq().iter().zip(batch.ts()) {
            packets.push((batch.link.0, seq, ts / 1_000_000_000));
        }
    };
    assert!(batch.is_empty() && matches!(source.fill(&mut batch), Ok(false)), "the end is final");
    (packets, error)
}

#[test]
fn packets_are_numbered_through() {
    let folder = folder();
    let names = vec![
        folder.file("a", &capture(LinkType::ETHERNET, 300, 0)),
        folder.file("none", &capture(LinkType::ETHERNET, 0, 0)),
        folder.file("b", &capture(LinkType::LINUX_SLL, 5, 1000)),
        folder.file("c", &capture(LinkType::ETHERNET, 2, 500)),
    ];
    let bytes: u64 = names.iter().map(|n| std::fs::metadata(n).expect("there").len()).sum();
    let mut source = open_all(names, &given()).expect("opens");
    let (packets, error) = read(&mut *source);
    assert_eq!(error, None);
    assert_eq!(packets.len(), 307);
    assert!(packets.iter().enumerate().all(|(i, packet)| packet.1 == i as u64));
    assert_eq!(packets[300], (LinkType::LINUX_SLL.0, 300, 1000));
    assert_eq!(packets[305], (LinkType::ETHERNET.0, 305, 500));
    let account = source.account();
    assert_eq!((account.received, account.filtered, account.bytes_read), (307, 0, bytes));
}

#[test]
fn a_fault_ends_all_and_names_its_file() {
    let folder = folder();
    let whole = capture(LinkType::ETHERNET, 3, 0);
    let a = folder.file("a", &whole);
    let torn = folder.file("torn", &whole[..whole.len() - 1]);
    let check = |names: [&String; 3], n: usize, reason: &str| {
        let names = names.map(String::clone).to_vec();
        let mut source = open_all(names, &given()).expect("opens");
        let (packets, error) = read(&mut *source);
        assert_eq!((packets.len(), source.account().received), (n, n as u64));
        let error = error.expect("a fault");
        assert!(error.contains(reason), "{error}");
    };
    check([&a, &torn, &a], 5, "torn");
    check([&a, &folder.file("junk", b"no capture at all, this"), &a], 3, "junk");
    // One that is missing is told before anything is read.
    for n in 0..3 {
        let mut names = vec![a.clone(); 3];
        names[n] = "nowhere".to_owned();
        let error = open_all(names, &given()).err().expect("refused");
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
}
