use super::*;
use crate::limits::{LOOKBACK_ASKED_MAX, LOOKBACK_QUEUE_BYTES};
use crate::memory::MemorySource;
use std::path::Path;
use std::sync::Mutex;
use weir_base::full::WhenFull;
use weir_packet::craft::Frame;
use weir_packet::fields::{by_name, key_by_name};
use weir_packet::interface::CapturePoint;
use weir_packet::source::{Chunk, LinkType};

const S: i64 = 1_000_000_000;

/// Frames a tenth of a second apart, from three hosts in turn, each with its answer.
fn frames(n: i64) -> Vec<(i64, Vec<u8>)> {
    (0..n)
        .map(|i| {
            let host = [10, 0, 0, (i / 2 % 3) as u8];
            let (there, back) = ((host, [192, 0, 2, 1]), ([192, 0, 2, 1], host));
            let ((src, dst), ports) =
                if i % 2 == 0 { (there, (4000, 53)) } else { (back, (53, 4000)) };
            let frame = Frame::ethernet().ipv4(src, dst).udp(ports.0, ports.1);
            (i * S / 10, frame.payload(&[i as u8; 30]).bytes())
        })
        .collect()
}

fn source(frames: &[(i64, Vec<u8>)]) -> MemorySource {
    let frame = |(ts, frame): &(i64, Vec<u8>)| (*ts, frame.len() as u32, frame.clone());
    MemorySource::new(LinkType::ETHERNET, frames.iter().map(frame))
}

fn item(name: &str) -> FieldId {
    by_name(name).expect("a field")
}

fn conn() -> Vec<FieldId> {
    let key = key_by_name("conn").expect("a key");
    key.fields.to_vec()
}

/// Times and bytes of the frames in a file.
fn read(folder: &Path, name: &str) -> Vec<(i64, Vec<u8>)> {
    let name = folder.join(name);
    let mut source = crate::open(name.to_str().expect("UTF-8"), &crate::Options::default())
        .unwrap_or_else(|e| panic!("{e}"));
    let (mut batch, mut all) = (FrameBatch::new(), Vec::new());
    while source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}")) {
        all.extend((0..batch.len()).map(|i| (batch.ts()[i], batch.frame(i).to_vec())));
    }
    all
}

fn address(host: u8) -> u128 {
    0xffff_0a00_0000 | u128::from(host)
}

/// Keys to ask by: none, a field, two.
fn by(number: usize) -> Arc<[FieldId]> {
    [Vec::new(), vec![item("ip.src")], conn()][number].as_slice().into()
}

fn wanted(name: &str, (from, to): (i64, i64), key: usize, value: Vec<Option<u128>>) -> Wanted {
    Wanted { name: name.to_owned(), from, to, by: by(key), key: value }
}

/// Reads all of a source in small batches, and asks when so many frames were read.
fn run(
    frames: &[(i64, Vec<u8>)],
    options: LookbackOptions,
    asked: Vec<(usize, Wanted)>,
) -> LookbackCounts {
    let mut lookback = Lookback::new(source(frames), Some(options)).expect("a thread");
    let asking = lookback.asking().expect("frames are kept");
    let (mut batch, mut came, mut asked) = (FrameBatch::new(), 0, asked.into_iter().peekable());
    while lookback.fill(&mut batch).expect("frames") {
        came += batch.len();
        while let Some((_, wanted)) = asked.next_if(|(at, _)| *at <= came) {
            asking.ask(wanted);
        }
    }
    asked.for_each(|(_, wanted)| asking.ask(wanted));
    assert_eq!(lookback.account().received, frames.len() as u64);
    lookback.finish().expect("frames are kept")
}

fn options(folder: &Path, bytes: usize) -> LookbackOptions {
    LookbackOptions { folder: folder.to_owned(), ..LookbackOptions::new(bytes) }
}

/// The frames that a file is to hold: those of that time for which `keep` holds.
fn those(
    frames: &[(i64, Vec<u8>)],
    (from, to): (i64, i64),
    keep: impl Fn(i64) -> bool,
) -> Vec<(i64, Vec<u8>)> {
    let inside = |(ts, _): &&(i64, Vec<u8>)| (from..=to).contains(ts) && keep(*ts * 10 / S);
    frames.iter().filter(inside).cloned().collect()
}

#[test]
fn frames_before_and_after_go_into_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let frames = frames(2000);
    let time = (50 * S, 90 * S);
    let first = read_conn(&frames[2].1);
    let asked = vec![
        (700, wanted("all.pcapng", time, 0, vec![])),
        (700, wanted("host.pcapng", time, 1, vec![Some(address(1))])),
        (701, wanted("none.pcapng", time, 1, vec![None])),
        (800, wanted("conn.pcapng", time, 2, first)),
        // Both before all that there is and after it.
        (900, wanted("ever.pcapng", (i64::MIN, i64::MAX), 1, vec![Some(address(0))])),
        // When nothing more comes.
        (9000, wanted("late.pcapng", (190 * S, 300 * S), 0, vec![])),
    ];
    let counts = run(&frames, options(folder.path(), 1 << 20), asked);
    let host = |h: i64| move |i: i64| i % 2 == 0 && i / 2 % 3 == h;
    let (mut in_all, mut bytes) = (0, 0);
    for (name, expected) in [
        ("all.pcapng", those(&frames, time, |_| true)),
        ("host.pcapng", those(&frames, time, host(1))),
        ("none.pcapng", vec![]),
        ("conn.pcapng", those(&frames, time, |i| i / 2 % 3 == 1)),
        ("ever.pcapng", those(&frames, (0, i64::MAX), host(0))),
        ("late.pcapng", those(&frames, (190 * S, i64::MAX), |_| true)),
    ] {
        assert_eq!(read(folder.path(), name), expected, "{name}");
        in_all += expected.len() as u64;
        bytes += expected.iter().map(|(_, frame)| frame.len() as u64).sum::<u64>();
    }
    assert_eq!(
        counts,
        LookbackCounts { files: 6, frames: in_all, bytes, ..LookbackCounts::default() }
    );
}

/// The key of the connection of a frame.
fn read_conn(frame: &[u8]) -> Vec<Option<u128>> {
    let (mut batch, mut layers) = (FrameBatch::new(), Layers::new());
    let chunk: Chunk = Arc::new(frame.to_vec());
    batch.restart(&chunk, 0, LinkType::ETHERNET);
    batch.push(0, 0, 0, frame.len() as u32, frame.len() as u32);
    classify(&batch, &mut layers);
    let value = |id: FieldId| {
        let mut column = Column::new(id.info().ty.repr());
        read_field(id, &batch, &layers, Bits::first(1), &mut column);
        column.present.has(0).then(|| column.raw(0))
    };
    conn().into_iter().map(value).collect()
}

#[test]
fn what_is_kept_no_more_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let frames = frames(2000);
    // Room for 100 frames or so.
    let record = frames[0].1.len() + 24;
    let asked = vec![
        (1500, wanted("short.pcapng", (0, 160 * S), 0, vec![])),
        (1500, wanted("whole.pcapng", (149 * S, 160 * S), 0, vec![])),
    ];
    let counts = run(&frames, options(folder.path(), 1000 * record), asked);
    let short = read(folder.path(), "short.pcapng");
    assert!((1000..1200).contains(&short.len()), "{}", short.len());
    assert!(short.iter().eq(&frames[1601 - short.len()..1601]), "those that were left");
    assert_eq!(read(folder.path(), "whole.pcapng"), &frames[1490..1601]);
    assert_eq!((counts.files, counts.short), (2, 1));
}

#[test]
fn everything_has_its_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let frames = frames(600);
    let bytes = frames[0].1.len() as u64;
    let bounded = LookbackOptions {
        files_max: 2,
        file_bytes_max: 10 * bytes,
        ..options(folder.path(), 1 << 20)
    };
    let all = |name: &str| (300, wanted(name, (0, 59 * S), 0, vec![]));
    let asked = vec![all("a.pcapng"), all("a.pcapng"), all("b.pcapng"), all("c.pcapng")];
    let counts = run(&frames, bounded, asked);
    for name in ["a.pcapng", "b.pcapng"] {
        assert_eq!(read(folder.path(), name), &frames[..10], "{name}");
    }
    let want = LookbackCounts {
        files: 2,
        frames: 20,
        bytes: 20 * bytes,
        full: 2,
        left_out: 2 * (591 - 10),
        refused: 1,
        existed: 1,
        ..LookbackCounts::default()
    };
    assert_eq!(counts, want);

    // Too many at once, and names that are none.
    let many = |i| (300, wanted(&format!("{i}.pcapng"), (0, i64::MAX), 1, vec![Some(7)]));
    let mut asked: Vec<_> = (0..LOOKBACK_ASKED_MAX + 10).map(many).collect();
    asked[0].1.name = "../x.pcapng".to_owned();
    let counts = run(&frames, options(folder.path(), 1 << 20), asked);
    let open = LOOKBACK_OPEN_MAX as u64;
    assert_eq!((counts.files, counts.failed), (open, 1));
    assert_eq!(counts.refused, LOOKBACK_ASKED_MAX as u64 + 10 - open - 1);
    assert!(counts.error.is_some_and(|e| e.to_string().starts_with("../x.pcapng: ")));
}

/// Nothing has to be known of what will be asked for: frames that came before are found by any key,
/// and a key takes memory only while a file of it is open.
#[test]
fn keys_are_there_as_long_as_files_of_theirs_are_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let frames = frames(2000);
    let bounded = options(folder.path(), 1 << 20);
    let mut lookback = Lookback::new(source(&frames), Some(bounded)).expect("a thread");
    let asking = lookback.asking().expect("frames are kept");
    let (mut batch, mut came, mut most) = (FrameBatch::new(), 0, 0);
    let mut asked = vec![
        (1500, wanted("port.pcapng", (0, 160 * S), 0, vec![Some(53)])),
        (1000, wanted("b.pcapng", (90 * S, 110 * S), 1, vec![Some(address(2))])),
        (1000, wanted("a.pcapng", (90 * S, 130 * S), 1, vec![Some(address(1))])),
    ];
    asked[0].1.by = [item("dport")].as_slice().into();
    while lookback.fill(&mut batch).expect("frames") {
        came += batch.len();
        while let Some((_, wanted)) = asked.pop_if(|(at, _)| *at <= came) {
            asking.ask(wanted);
        }
        let watch = lookback.watch.as_ref().expect("kept");
        most = most.max(watch.keys.len());
        let files = (!watch.open.is_empty(), !watch.keys.is_empty());
        assert_eq!(files.0, files.1, "{came}");
    }
    assert_eq!((asked.len(), most), (0, 1));
    let counts = lookback.finish().expect("frames are kept");
    assert_eq!(counts.files, 3);
    let host = |h: i64| move |i: i64| i % 2 == 0 && i / 2 % 3 == h;
    assert_eq!(read(folder.path(), "a.pcapng"), those(&frames, (90 * S, 130 * S), host(1)));
    assert_eq!(read(folder.path(), "b.pcapng"), those(&frames, (90 * S, 110 * S), host(2)));
    let there = those(&frames, (0, 160 * S), |i| i % 2 == 0);
    assert_eq!(read(folder.path(), "port.pcapng"), there);
}

#[test]
fn a_folder_that_is_gone_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let gone = folder.path().join("gone");
    let asked = vec![(10, wanted("x.pcapng", (0, S), 0, vec![]))];
    let counts = run(&frames(100), options(&gone, 1 << 20), asked);
    assert_eq!((counts.files, counts.failed), (0, 1));
    assert!(counts.error.is_some_and(|e| e.to_string().starts_with("x.pcapng: ")));
}

#[test]
fn one_wild_time_ends_no_file() {
    let mut now = Now::default();
    let mut see = |ts: i64| {
        let (mut batch, chunk): (_, Chunk) = (FrameBatch::new(), Arc::new(vec![0; 60]));
        batch.restart(&chunk, 0, LinkType::ETHERNET);
        batch.push(ts, 0, 0, 60, 60);
        now.see(&batch);
        now.at
    };
    assert_eq!(see(S), Some(S));
    assert_eq!(see(1000 * S), Some(S));
    assert_eq!(see(2 * S), Some(2 * S));
    assert_eq!([1000 * S; 4].map(&mut see)[2..], [Some(2 * S), Some(1000 * S)]);
}

#[test]
fn without_options_nothing_is_kept() {
    let mut lookback = Lookback::new(source(&frames(10)), None).expect("no thread");
    let mut batch = FrameBatch::new();
    assert!(lookback.fill(&mut batch).expect("frames"));
    assert!(lookback.asking().is_none() && lookback.finish().is_none());
}

/// A disk that takes bytes of files only while it is told to; what was written, by file.
#[derive(Clone, Default)]
struct Disk(Arc<(Mutex<DiskState>, std::sync::Condvar)>);

#[derive(Default)]
struct DiskState {
    goes: bool,
    fails: bool,
    /// Calls that wait.
    asked: usize,
    files: HashMap<String, Vec<u8>>,
}

impl Disk {
    fn change(&self, change: impl FnOnce(&mut DiskState)) {
        change(&mut self.0.0.lock().expect("no test has failed"));
        self.0.1.notify_all();
    }

    /// Waits until it goes.
    fn take(&self, change: impl FnOnce(&mut DiskState)) -> io::Result<()> {
        let mut state = self.0.0.lock().expect("no test has failed");
        state.asked += 1;
        self.0.1.notify_all();
        let mut state = self.0.1.wait_while(state, |state| !state.goes).expect("nor later");
        if state.fails {
            return Err(io::Error::other("the disk is gone"));
        }
        change(&mut state);
        Ok(())
    }

    /// Waits until somebody wants something of it.
    fn is_asked(&self) {
        let state = self.0.0.lock().expect("no test has failed");
        drop(self.0.1.wait_while(state, |state| state.asked == 0).expect("nor later"));
    }

    fn make(&self) -> Make {
        let disk = self.clone();
        Box::new(move |name| {
            disk.take(|state| drop(state.files.insert(name.to_owned(), Vec::new())))?;
            Ok(Box::new(DiskFile(disk.clone(), name.to_owned())))
        })
    }

    fn lookback(
        &self,
        frames: &[(i64, Vec<u8>)],
        options: LookbackOptions,
    ) -> Lookback<MemorySource> {
        let watch = Watch::new(options, self.make()).expect("a thread");
        Lookback { source: source(frames), watch: Some(Box::new(watch)) }
    }

    /// Times and bytes of the frames of a file.
    fn read(&self, name: &str) -> Vec<(i64, Vec<u8>)> {
        let folder = tempfile::tempdir().expect("a folder");
        let bytes = self.0.0.lock().expect("no test has failed").files[name].clone();
        std::fs::write(folder.path().join(name), bytes).expect("writes");
        read(folder.path(), name)
    }
}

struct DiskFile(Disk, String);

impl io::Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let name = &self.1;
        self.0.take(|state| state.files.get_mut(name).expect("made").extend_from_slice(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Frames of 1 KB, enough for several batches.
fn long_frames() -> Vec<(i64, Vec<u8>)> {
    let long = |(ts, mut frame): (i64, Vec<u8>)| {
        frame.resize(1000, 7);
        (ts, frame)
    };
    frames(1000).into_iter().map(long).collect()
}

#[test]
fn a_disk_that_hangs_does_not_stall_reading() {
    let (disk, frames) = (Disk::default(), long_frames());
    let bounded = LookbackOptions {
        when_full: WhenFull::LeaveOut,
        queue_bytes_max: 256 << 10,
        ..options(Path::new("nowhere"), 1 << 20)
    };
    let mut lookback = disk.lookback(&frames, bounded);
    let (asking, tally) = (lookback.asking().expect("kept"), lookback.tally().expect("kept"));
    let ever = (i64::MIN, i64::MAX);
    asking.ask(wanted("a.pcapng", ever, 0, vec![]));
    let mut batch = FrameBatch::new();
    // All of it, though not one byte is written.
    while lookback.fill(&mut batch).expect("frames") {}
    assert_eq!(lookback.account().received, 1000);
    let so_far = tally.now();
    assert_eq!((so_far.files, so_far.frames), (0, 0));
    assert!((400..800).contains(&so_far.missed), "{so_far:?}");
    // A request now finds no room.
    asking.ask(wanted("b.pcapng", ever, 0, vec![]));
    assert!(!lookback.fill(&mut batch).expect("the end"));
    assert_eq!(tally.now(), LookbackCounts { refused: 1, ..so_far.clone() });
    // The queued frames are written in the end, whole.
    disk.change(|state| state.goes = true);
    let counts = lookback.finish().expect("kept");
    let there = disk.read("a.pcapng");
    assert_eq!(there, &frames[..there.len()]);
    let (frames, missed) = (there.len() as u64, so_far.missed);
    let want =
        LookbackCounts { files: 1, frames, bytes: frames * 1000, ..LookbackCounts::default() };
    assert_eq!(counts, LookbackCounts { missed, refused: 1, ..want });
    assert_eq!(frames + missed, 1000);
}

/// Frames go on being put into a file once there is room again.
#[test]
fn a_disk_that_goes_on_gets_what_comes_then() {
    let (disk, frames) = (Disk::default(), long_frames());
    let bounded = LookbackOptions {
        when_full: WhenFull::LeaveOut,
        // Of one batch, and not of two.
        queue_bytes_max: 400_000,
        ..options(Path::new("nowhere"), 1 << 20)
    };
    let mut lookback = disk.lookback(&frames, bounded);
    let tally = lookback.tally().expect("kept");
    let asking = lookback.asking().expect("kept");
    asking.ask(wanted("a.pcapng", (i64::MIN, i64::MAX), 0, vec![]));
    let mut batch = FrameBatch::new();
    while tally.now().missed == 0 {
        assert!(lookback.fill(&mut batch).expect("frames"), "it never came to it");
    }
    disk.change(|state| state.goes = true);
    lookback.watch.as_ref().expect("kept").writer.rest();
    let before = tally.now().missed;
    let mut left = 0;
    while lookback.fill(&mut batch).expect("frames") {
        left += batch.len() as u64;
        lookback.watch.as_ref().expect("kept").writer.rest();
    }
    let counts = lookback.finish().expect("kept");
    assert!(left > 100 && counts.missed == before, "{counts:?}, {left} left");
    let there = disk.read("a.pcapng");
    assert_eq!(there.len() as u64, 1000 - before);
    assert_eq!(there[there.len() - left as usize..], frames[1000 - left as usize..]);
}

/// Of a capture that is there already nothing is lost, however slow the disk and however small the
/// queue; the file is byte for byte what its format makes of its frames.
#[test]
fn reading_a_file_waits_for_the_disk() {
    let frames = long_frames();
    let mut expected = Vec::new();
    let mut format = crate::write::Format::of("a.pcapng");
    for (ts, bytes) in &frames {
        let sent = weir_packet::egress::Sent {
            outlet: 0,
            link: LinkType::ETHERNET,
            ts: *ts,
            len: bytes.len() as u32,
            start: 0,
            caplen: bytes.len() as u32,
            trimmed: false,
            capture_point: CapturePoint::UNKNOWN,
        };
        format.put(&mut expected, &sent, bytes, None).expect("one link type");
    }
    for queue_bytes_max in [1, 100_000, LOOKBACK_QUEUE_BYTES] {
        let disk = Disk::default();
        let slow = std::thread::spawn({
            let disk = disk.clone();
            move || {
                disk.is_asked();
                disk.change(|state| state.goes = true);
            }
        });
        let bounded = LookbackOptions { queue_bytes_max, ..options(Path::new("nowhere"), 1 << 20) };
        let mut lookback = disk.lookback(&frames, bounded);
        let asking = lookback.asking().expect("kept");
        asking.ask(wanted("a.pcapng", (i64::MIN, i64::MAX), 0, vec![]));
        let mut batch = FrameBatch::new();
        while lookback.fill(&mut batch).expect("frames") {}
        let counts = lookback.finish().expect("kept");
        slow.join().expect("goes");
        let want = LookbackCounts {
            files: 1,
            frames: 1000,
            bytes: 1_000_000,
            ..LookbackCounts::default()
        };
        assert_eq!(counts, want);
        assert!(disk.0.0.lock().expect("whole").files["a.pcapng"] == expected);
    }
}

#[test]
fn what_the_disk_refuses_is_told_with_the_name_of_the_file() {
    for when_full in [WhenFull::Wait, WhenFull::LeaveOut] {
        let (disk, frames) = (Disk::default(), long_frames());
        disk.change(|state| state.goes = true);
        let bounded = LookbackOptions { when_full, ..options(Path::new("nowhere"), 1 << 20) };
        let mut lookback = disk.lookback(&frames, bounded);
        let asking = lookback.asking().expect("kept");
        asking.ask(wanted("a.pcapng", (i64::MIN, i64::MAX), 0, vec![]));
        let mut batch = FrameBatch::new();
        while lookback.tally().expect("kept").now().frames == 0 {
            assert!(lookback.fill(&mut batch).expect("frames"), "nothing was written");
            lookback.watch.as_ref().expect("kept").writer.rest();
        }
        disk.change(|state| state.fails = true);
        while lookback.fill(&mut batch).expect("frames") {}
        let counts = lookback.finish().expect("kept");
        assert_eq!((counts.files, counts.failed, counts.missed), (1, 1, 0));
        let error = counts.error.map(|e| e.to_string());
        assert_eq!(error.as_deref(), Some("a.pcapng: the disk is gone"));
        assert_eq!(disk.read("a.pcapng").len() as u64, counts.frames);
        assert_eq!(counts.frames + counts.left_out, 1000);
    }
}

/// No run waits for ever for a wire's files.
#[test]
fn what_is_never_written_is_counted_in_the_end() {
    let (disk, frames) = (Disk::default(), long_frames());
    let live =
        LookbackOptions { when_full: WhenFull::LeaveOut, ..options(Path::new("nowhere"), 1 << 20) };
    let mut lookback = disk.lookback(&frames, live);
    lookback.watch.as_mut().expect("kept").writer.patience = std::time::Duration::from_millis(20);
    let asking = lookback.asking().expect("kept");
    asking.ask(wanted("a.pcapng", (i64::MIN, i64::MAX), 0, vec![]));
    let mut batch = FrameBatch::new();
    while lookback.fill(&mut batch).expect("frames") {}
    disk.is_asked();
    let counts = lookback.finish().expect("kept");
    let (name, waited) = ("a.pcapng".to_owned(), std::time::Duration::from_millis(20));
    let error = Some(LookbackError::Stalled { name, waited });
    assert_eq!(
        counts,
        LookbackCounts { missed: 1000, failed: 1, error, ..LookbackCounts::default() }
    );
    disk.change(|state| state.goes = true);
}
