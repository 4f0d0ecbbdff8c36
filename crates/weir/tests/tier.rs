//! The merge of a job on Flink, without Java: every query of the library that several probes can
//! run gives the lines of `Receiver`, also where it is saved and made anew; probes that do not
//! belong together are told of; and hostile bytes do no harm.

mod common;

use common::{ReadingOptions, open, program, queries, root, text};
use proptest::prelude::*;
use weir_cluster::{PacketRules, ProbeHead, ProbeStanding};
use weir_engine::exchange::{Producer, ProducerId, Receiver, needs};
use weir_engine::functions::Functions;
use weir_engine::rows::Sink as _;
use weir_engine::run::Options;
use weir_flink::{EVENTS, FlinkJob, RowForm, Tier, TierTerms, TopicRecord};
use weir_kafka::record::RecordView;
use weir_plan::physical::Physical;
use weir_sink::{JsonLines, TimeFormat};

const QUERY: &str = "packets | summarize n = count(), d = distinct(ip.dst, 3) by ip.src every 1s \
    | scan all = 0 by ip.src => all + n | where n > 1";

fn plan(text: &str) -> Physical {
    Physical::new(&program(text, &Functions::default()), &[])
}

fn job(plan: &Physical) -> String {
    let job = FlinkJob::new(plan, None).expect("it can be spread");
    job.to_json(&Functions::default()).expect("it can be written")
}

fn terms(probes: &[&str], is_bounded: bool) -> TierTerms {
    let probes = probes.iter().map(|name| (*name).to_owned()).collect();
    TierTerms { probes, is_bounded, rows: RowForm::Json }
}

/// The stream that a probe sends of a capture: a head, and messages.
struct Sent {
    head: ProbeHead,
    messages: Vec<Vec<u8>>,
}

impl Sent {
    fn new(plan: &Physical, name: &str, epoch: u64, capture: &str) -> Sent {
        let (functions, options) = (Functions::default(), Options::default());
        let id = ProducerId::named(name, epoch);
        let producer = Producer::new(plan, &functions, &options, id).expect("it can be spread");
        let capture = root().join("fixtures").join(capture);
        let mut source = open(&capture, ReadingOptions::default()).expect("it opens");
        let mut messages = Vec::new();
        let outcome = producer.run(&mut source, &mut |message| {
            messages.push(message.to_vec());
            Ok(())
        });
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        let receiver = Receiver::new(plan, &functions, &options, &[]).expect("as before");
        let head = ProbeHead {
            probe: name.to_owned(),
            epoch,
            weir: "0".to_owned(),
            fingerprint: ProbeHead::fingerprint_text(receiver.fingerprint()),
            rules: PacketRules {
                headers: "outer".to_owned(),
                fragments: true,
                lateness_ns: options.lateness_ns,
            },
            resumes: false,
            clock: None,
        };
        Sent { head, messages }
    }

    fn record(&self, value: &[u8]) -> Vec<u8> {
        let epoch = self.head.epoch.to_string();
        let (key, epoch) = (self.head.probe.as_bytes(), Some(epoch.as_bytes()));
        let view = RecordView { key, value, epoch, ..RecordView::default() };
        TopicRecord { view, retires: false }.bytes()
    }

    fn records(&self) -> Vec<Vec<u8>> {
        let head = self.head.bytes().expect("a head");
        let all = [&head].into_iter().chain(&self.messages);
        all.map(|value| self.record(value)).collect()
    }

    fn retires(name: &str) -> Vec<u8> {
        let view = RecordView { key: name.as_bytes(), ..RecordView::default() };
        TopicRecord { view, retires: true }.bytes()
    }
}

/// Rows and events of a tier.
#[derive(Default)]
struct Given {
    rows: Vec<String>,
    /// Of each row; empty where it has none.
    keys: Vec<String>,
    events: Vec<String>,
}

impl Given {
    fn add(&mut self, mut lines: &[u8]) {
        let text = |lines: &mut &[u8]| {
            let (len, rest) = lines.split_first_chunk().expect("a length");
            let (text, rest) = rest.split_at(u32::from_be_bytes(*len) as usize);
            *lines = rest;
            String::from_utf8(text.to_vec()).expect("JSON is UTF-8")
        };
        while let Some((output, rest)) = lines.split_first_chunk() {
            lines = rest;
            let (key, line) = (text(&mut lines), text(&mut lines));
            if u16::from_be_bytes(*output) == EVENTS {
                self.events.push(line);
            } else {
                self.keys.push(key);
                self.rows.push(line);
            }
        }
    }

    fn take(&mut self, tier: &mut Tier, record: &[u8]) {
        tier.take(record, &mut |lines| {
            self.add(lines);
            Ok(())
        })
        .expect("it goes on");
    }

    fn finish(&mut self, tier: &mut Tier) {
        tier.finish(&mut |lines| {
            self.add(lines);
            Ok(())
        })
        .expect("it finishes");
    }

    fn has(&self, words: &[&str]) -> bool {
        self.events.iter().any(|event| words.iter().all(|word| event.contains(word)))
    }
}

/// The rows of a receiver that takes the same messages.
fn merged(plan: &Physical, all: &[Sent]) -> Vec<String> {
    let (functions, options) = (Functions::default(), Options::default());
    let probes: Vec<u128> = all.iter().map(|sent| sent.head.id().probe).collect();
    let mut receiver = Receiver::new(plan, &functions, &options, &probes).expect("as before");
    let mut sink = JsonLines::new(Vec::new(), TimeFormat::default());
    sink.open(receiver.outputs()).expect("memory");
    for message in all.iter().flat_map(|sent| &sent.messages) {
        receiver.take(message, &mut sink).expect("it is one");
    }
    assert!(receiver.finish(&mut sink).error.is_none());
    let text = String::from_utf8(sink.into_inner()).expect("JSON is UTF-8");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_library_gives_the_rows_of_a_receiver_also_from_its_state() {
    let (mut checked, mut rows) = (0, 0);
    for path in queries().into_iter().chain(common::detectors()) {
        let plan = plan(&text(&path));
        if needs(&plan).is_err() {
            continue;
        }
        let all =
            [Sent::new(&plan, "a", 1, "mixed.pcap"), Sent::new(&plan, "b", 1, "syn_flood.pcap")];
        let want = merged(&plan, &all);
        let (job, terms) = (job(&plan), terms(&["a", "b"], true));
        let mut tier = Tier::open(&job, &terms).expect("it opens");
        let mut given = Given::default();
        for (n, record) in all.iter().flat_map(Sent::records).enumerate() {
            given.take(&mut tier, &record);
            if n % 3 == 0 {
                let state = tier.save().expect("it goes on");
                tier = Tier::restore(&job, &terms, &state).expect("it is its own");
            }
        }
        given.finish(&mut tier);
        // Flink saves once more then, and may end the input again.
        let state = tier.save().expect("it can be saved");
        tier = Tier::restore(&job, &terms, &state).expect("it is its own");
        given.finish(&mut tier);
        assert!(tier.take(&Sent::retires("a"), &mut |_| Ok(())).is_err());
        assert_eq!(given.rows, want, "{}", path.display());
        assert!(given.events.is_empty(), "{:?}", given.events);
        checked += 1;
        rows += want.len();
    }
    assert!(checked >= 40 && rows > 1000, "{checked} queries, {rows} rows");
}

/// A job without an end gives all rows once its probes have ended, those of further windows too,
/// and goes on with what they send later.
#[test]
fn all_windows_close_once_all_probes_have_ended() {
    for query in [
        QUERY,
        "packets | summarize n = count() by ip.src over 3s every 1s lateness 1s \
         | summarize n = sum(n), most = max(n) every 5s",
        "let a = packets | summarize n = count() by ip.src every 1s\n\
         let b = packets | summarize m = count() by ip.src every 2s\n\
         let c = b | project at = ts, ip.src, m\n\
         a | join left c by ip.src within -3s..3s default m = 0 | summarize n = sum(m) every 2s\n\
         a | union b",
        "packets | summarize n = count() by ip.src, ip.dst session 1s",
    ] {
        let plan = plan(query);
        let (job, terms) = (job(&plan), terms(&["a", "b"], false));
        let mut tier = Tier::open(&job, &terms).expect("it opens");
        let mut given = Given::default();
        let (first, second) = ("dns.pcap", "syn_flood.pcap");
        let mut want = Vec::new();
        for (epoch, capture) in [(1, first), (2, second)] {
            let all = ["a", "b"].map(|name| Sent::new(&plan, name, epoch, capture));
            want.extend(merged(&plan, &all));
            all.iter().for_each(|sent| given.take(&mut tier, &sent.records()[0]));
            for record in all.iter().flat_map(|sent| sent.records().split_off(1)) {
                given.take(&mut tier, &record);
                let state = tier.save().expect("it goes on");
                tier = Tier::restore(&job, &terms, &state).expect("it is its own");
            }
            let sorted = |mut rows: Vec<String>| {
                rows.sort();
                rows
            };
            // The state of a session or a scan from the first input is there in the second.
            if epoch == 1 || !query.contains("scan") {
                assert_eq!(sorted(given.rows.clone()), sorted(want.clone()), "{query}");
            }
        }
        assert!(given.events.is_empty(), "{:?}", given.events);
    }
}

#[test]
fn who_does_not_belong_to_a_job_is_told_of() {
    let plan = plan(QUERY);
    let (job, terms) = (job(&plan), terms(&["a", "b"], false));
    let mut given = Given::default();
    let mut tier = Tier::open(&job, &terms).expect("it opens");
    let a = Sent::new(&plan, "a", 5, "syn_flood.pcap");
    let (head, rest) = (a.records()[0].clone(), a.records().split_off(1));
    given.take(&mut tier, &head);
    given.take(&mut tier, &rest[0]);
    // Another way to read packets, another query, a stranger, an earlier run, garbage.
    let mut b = Sent::new(&plan, "b", 5, "mixed.pcap");
    b.head.rules.lateness_ns += 1;
    given.take(&mut tier, &b.records()[0]);
    assert!(given.has(&["\"refused\"", "\"b\"", "in another way than probe a", "--lateness"]));
    given.take(&mut tier, &b.records()[1]);
    b.head.epoch = 6;
    b.head.fingerprint = "0".repeat(32);
    given.take(&mut tier, &b.records()[0]);
    assert!(given.has(&["\"b\"", "it runs another query"]));
    b.head.epoch = 4;
    given.take(&mut tier, &b.records()[0]);
    assert!(given.has(&["\"clock\"", "\"b\"", "set that clock"]));
    let c = Sent::new(&plan, "c", 1, "mixed.pcap");
    c.records().iter().for_each(|record| given.take(&mut tier, record));
    assert!(given.has(&["\"c\"", "it is not among the probes of the job, which a, b are"]));
    assert_eq!(given.events.iter().filter(|event| event.contains("\"c\"")).count(), 1);
    // Messages that are missing, and the rest of a: nothing waits for b.
    rest[2..].iter().for_each(|record| given.take(&mut tier, record));
    assert!(given.has(&["\"missing\"", "\"a\"", "\"messages\":1"]));
    assert!(!given.rows.is_empty());
    given.take(&mut tier, &a.record(b"WPR2 and no more"));
    assert!(given.has(&["\"a\"", "the message breaks off"]));
    // Records of windows that are out are late.
    let again = Sent::new(&plan, "a", 6, "syn_flood.pcap");
    let rows = given.rows.len();
    again.records().iter().for_each(|record| given.take(&mut tier, record));
    assert!(given.has(&["\"late\"", "\"a\""]) && given.rows.len() == rows);
    let counts = tier.take(&Sent::retires("a"), &mut |_| Ok(())).expect("it goes on");
    assert!(counts.missing == 1 && counts.refused >= 6 && counts.late > 0, "{counts:?}");
}

/// The key of a row has the columns that it is grouped by.
#[test]
fn rows_of_a_group_have_its_key() {
    let query = "packets | summarize n = count() by ip.src, ip.proto every 1s";
    for (query, keys) in [
        (query.to_owned(), Some("\"ip.src\":")),
        (format!("{query} | summarize n = sum(n) every 10s"), None),
    ] {
        let plan = plan(&query);
        let mut tier = Tier::open(&job(&plan), &terms(&["a"], true)).expect("it opens");
        let mut given = Given::default();
        let sent = Sent::new(&plan, "a", 1, "syn_flood.pcap");
        sent.records().iter().for_each(|record| given.take(&mut tier, record));
        given.finish(&mut tier);
        assert!(!given.rows.is_empty() && given.rows.len() == given.keys.len());
        for (key, row) in given.keys.iter().zip(&given.rows) {
            let Some(begins) = keys else {
                assert_eq!(key, "");
                continue;
            };
            let inner = key.strip_prefix('{').and_then(|key| key.strip_suffix('}'));
            let inner = inner.unwrap_or_else(|| panic!("{key}"));
            assert!(inner.starts_with(begins) && inner.contains("\"ip.proto\":"), "{key}");
            assert!(row.contains(inner) && !inner.contains("\"n\""), "{key}: {row}");
        }
    }
}

#[test]
fn probes_say_how_far_they_are() {
    let plan = plan(QUERY);
    let (job, terms) = (job(&plan), terms(&["a", "b"], false));
    let mut given = Given::default();
    let mut tier = Tier::open(&job, &terms).expect("it opens");
    let standings = |tier: &Tier| {
        let all = tier.progress();
        let names: Vec<&str> = all.iter().map(|probe| &*probe.probe).collect();
        assert_eq!(names, ["a", "b"]);
        [all[0].standing, all[1].standing]
    };
    // Nothing has come of any: none of them holds up another.
    assert_eq!(standings(&tier), [ProbeStanding::Ahead; 2]);
    let [a, b] = ["a", "b"].map(|name| Sent::new(&plan, name, 5, "syn_flood.pcap").records());
    a[..a.len() - 1].iter().for_each(|record| given.take(&mut tier, record));
    assert_eq!(standings(&tier), [ProbeStanding::Ahead, ProbeStanding::Slowest]);
    let state = tier.save().expect("it goes on");
    let mut tier = Tier::restore(&job, &terms, &state).expect("it is its own");
    let [a_far, b_far] = &tier.progress()[..] else { panic!("two probes") };
    assert!(a_far.closed.is_some() && b_far.closed.is_none() && a_far.missing == 0);
    // The second message of b never comes, and its run breaks off.
    b.iter().enumerate().filter(|(n, _)| *n != 2 && n + 1 < b.len()).for_each(|(_, record)| {
        given.take(&mut tier, record);
    });
    let next = Sent::new(&plan, "b", 6, "syn_flood.pcap").records();
    given.take(&mut tier, &next[0]);
    let far = &tier.progress()[1];
    assert_eq!((far.missing, far.broken, far.standing), (1, 1, ProbeStanding::Slowest));
    given.take(&mut tier, &a[a.len() - 1]);
    given.take(&mut tier, &Sent::retires("b"));
    assert_eq!(standings(&tier), [ProbeStanding::Ended, ProbeStanding::Retired]);
    let mut other = Sent::new(&plan, "b", 7, "mixed.pcap");
    other.head.fingerprint = "0".repeat(32);
    given.take(&mut tier, &other.records()[0]);
    assert_eq!(standings(&tier)[1], ProbeStanding::Refused);
    let lines = String::from_utf8(tier.progress_lines().expect("JSON")).expect("UTF-8");
    assert!(lines.starts_with("a\t{") && lines.contains("\nb\t{"), "{lines}");
    given.finish(&mut tier);
    assert!(tier.progress().is_empty());
}

/// Nothing waits for a probe that is retired, or that the job goes on without.
#[test]
fn a_probe_that_is_gone_is_retired() {
    let plan = plan(QUERY);
    let job = job(&plan);
    let a = Sent::new(&plan, "a", 1, "syn_flood.pcap");
    let want = merged(&plan, std::slice::from_ref(&a));
    let both = terms(&["a", "b"], false);
    let start = || {
        let mut tier = Tier::open(&job, &both).expect("it opens");
        let mut given = Given::default();
        a.records().iter().for_each(|record| given.take(&mut tier, record));
        assert!(given.rows.is_empty(), "b is waited for");
        (tier, given)
    };
    let (mut tier, mut given) = start();
    given.take(&mut tier, &Sent::retires("b"));
    assert_eq!(given.rows, want);
    let (mut tier, mut given) = start();
    let state = tier.save().expect("it goes on");
    let mut tier = Tier::restore(&job, &terms(&["a"], false), &state).expect("it is its own");
    given.take(&mut tier, &Sent::retires("a"));
    assert_eq!(given.rows, want);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Records of anybody, between those of a probe, and states that were changed.
    #[test]
    fn hostile_bytes_do_no_harm(
        noise in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..8),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let plan = plan(QUERY);
        let (job, terms) = (job(&plan), terms(&["a"], false));
        let sent = Sent::new(&plan, "a", 1, "knock.pcap");
        let mut tier = Tier::open(&job, &terms).expect("it opens");
        let mut given = Given::default();
        for (n, record) in sent.records().into_iter().enumerate() {
            let noise = &noise[n % noise.len()];
            let _ = tier.take(noise, &mut |_| Ok(()));
            given.take(&mut tier, &sent.record(noise));
            let mut damaged = record.clone();
            for (at, bit) in &flips {
                damaged[at.index(record.len())] ^= 1 << bit;
            }
            let _ = tier.take(&damaged, &mut |_| Ok(()));
            given.take(&mut tier, &record);
        }
        let mut state = tier.save().expect("it goes on");
        let cut = cut.index(state.len());
        prop_assert!(Tier::restore(&job, &terms, &state[..cut]).is_err());
        for (at, bit) in &flips {
            let len = state.len();
            state[at.index(len)] ^= 1 << bit;
        }
        if let Ok(mut tier) = Tier::restore(&job, &terms, &state) {
            for record in sent.records() {
                let _ = tier.take(&record, &mut |_| Ok(()));
            }
            let _ = tier.finish(&mut |_| Ok(()));
        }
    }
}
