//! DNS: questions that are repeated, that stay without an answer, whose answers come twice, and
//! whose number is used again.

use crate::{MS, Own, Packet, SECOND};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use weir_packet::craft::Frame;
use weir_packet::craft::messages::{dns_query, dns_response};

const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 54);

/// A message: when, client, its port and number, server, name, and the code of an answer.
type Message = (i64, u8, u16, u16, Ipv4Addr, &'static str, Option<u8>);

#[rustfmt::skip]
const MESSAGES: &[Message] = &[
    (0, 1, 5000, 1, SERVER, "a.example.com", None),
    (20, 1, 5000, 1, SERVER, "a.example.com", Some(0)),
    // The answer comes twice.
    (100, 1, 5000, 2, SERVER, "b.example.com", None),
    (150, 1, 5000, 2, SERVER, "b.example.com", Some(3)),
    (151, 1, 5000, 2, SERVER, "b.example.com", Some(3)),
    // The number is used again, with an answer each time.
    (200, 1, 5000, 1, SERVER, "c.example.com", None),
    (230, 1, 5000, 1, SERVER, "c.example.com", Some(0)),
    // Asked twice, answered once; never answered; answered late.
    (300, 2, 6000, 7, SERVER, "a.example.com", None),
    (1300, 2, 6000, 7, SERVER, "a.example.com", None),
    (1340, 2, 6000, 7, SERVER, "a.example.com", Some(0)),
    (2000, 2, 6000, 8, SERVER, "lost.example.org", None),
    (3000, 2, 6000, 9, SERVER, "late.example.org", None),
    (7000, 2, 6000, 9, SERVER, "late.example.org", Some(3)),
    (3100, 2, 6001, 9, OTHER, "nothing.example.org", None),
    (3200, 2, 6001, 10, OTHER, "some.example.org", None),
    (3260, 2, 6001, 10, OTHER, "some.example.org", Some(3)),
    // An answer that nobody asked for.
    (4000, 3, 7000, 1, OTHER, "longer-names-than-others.example.org", Some(0)),
    // In the next windows: a name in mixed case counts once.
    (61_000, 1, 5000, 3, SERVER, "d.example.com", None),
    (61_010, 1, 5000, 3, SERVER, "d.example.com", Some(0)),
    (61_100, 1, 5000, 4, SERVER, "D.example.com", None),
    (61_111, 1, 5000, 4, SERVER, "D.example.com", Some(0)),
    (61_200, 1, 5000, 5, SERVER, "quite-a-long-name-0123456789.example.com", None),
    (61_233, 1, 5000, 5, SERVER, "quite-a-long-name-0123456789.example.com", Some(3)),
];

fn client(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

fn payload(&(_, _, _, id, _, name, code): &Message) -> Vec<u8> {
    match code {
        None => dns_query(id, name, 1),
        Some(3) => dns_response(id, name, 1, 3, &[]),
        Some(code) => dns_response(id, name, 1, code, &[&[198, 51, 100, 9], &[198, 51, 100, 8]]),
    }
}

pub(crate) fn packets() -> Vec<Packet> {
    let mut all: Vec<_> = MESSAGES
        .iter()
        .map(|message| {
            let &(ms, n, port, _, server, _, code) = message;
            let (asks, answers) = ((client(n), port), (server, 53));
            let (from, to) = if code.is_none() { (asks, answers) } else { (answers, asks) };
            let frame = Frame::ethernet().ipv4(from.0, to.0).udp(from.1, to.1);
            Packet::new(ms * MS, (from.0, to.0), 17, &frame.payload(&payload(message)))
        })
        .collect();
    all.sort_by_key(|packet| packet.at);
    all
}

fn window(ms: i64, width: i64) -> String {
    crate::time((ms * MS).div_euclid(width) * width)
}

/// Bytes of answers for each byte of questions, of each server and host in ten seconds.
pub(crate) fn amplification(_: &[Packet]) -> Own {
    let mut pairs: BTreeMap<Vec<String>, [usize; 2]> = BTreeMap::new();
    for message in MESSAGES {
        let &(ms, n, _, _, server, _, code) = message;
        let keys = vec![window(ms, 10 * SECOND), client(n).to_string(), server.to_string()];
        pairs.entry(keys).or_default()[usize::from(code.is_some())] += payload(message).len();
    }
    let row = |(keys, [asked, answered]): (_, [usize; 2])| {
        let share = if asked > 0 { answered as f64 / asked as f64 } else { f64::NAN };
        (keys, vec![share])
    };
    pairs.into_iter().filter(|(_, bytes)| bytes[1] > 0).map(row).collect()
}

/// Of the names that a client got answers to, those that do not exist; in ten minutes.
pub(crate) fn nxdomain(_: &[Packet]) -> Own {
    let mut clients: BTreeMap<Vec<String>, [BTreeSet<String>; 2]> = BTreeMap::new();
    for &(ms, n, _, _, _, name, code) in MESSAGES {
        let Some(code) = code else { continue };
        let of = clients.entry(vec![window(ms, 600 * SECOND), client(n).to_string()]).or_default();
        of[0].insert(name.to_lowercase());
        if code == 3 {
            of[1].insert(name.to_lowercase());
        }
    }
    let share = |[all, missing]: [BTreeSet<String>; 2]| missing.len() as f64 / all.len() as f64;
    // A count of none is absent where no answer said so.
    let rows = clients.into_iter().map(|(keys, names)| (keys, vec![share(names)]));
    rows.collect()
}

/// Of each question its window, its server, and how many milliseconds later the first answer came, if
/// one did in so many seconds.
fn questions(seconds: i64) -> impl Iterator<Item = (i64, Ipv4Addr, Option<i64>)> {
    let questions = MESSAGES.iter().filter(|message| message.6.is_none());
    questions.map(move |&(ms, n, port, id, server, ..)| {
        let answers = MESSAGES.iter().filter(|m| {
            let same = (m.1, m.2, m.3, m.4) == (n, port, id, server);
            m.6.is_some() && same && (ms..=ms + 1000 * seconds).contains(&m.0)
        });
        (ms, server, answers.map(|m| m.0 - ms).min())
    })
}

/// Questions without an answer in so many seconds, and all.
pub(crate) fn unanswered(seconds: i64) -> (usize, usize) {
    let lost = questions(seconds).filter(|(.., took)| took.is_none()).count();
    (lost, questions(seconds).count())
}

/// The share of the questions of a minute that no answer followed within five seconds, and the load:
/// the larger of this and nine tenths of the times that answers took, each against what is usual.
pub(crate) fn slow(_: &[Packet]) -> Own {
    let mut servers: BTreeMap<Vec<String>, (f64, Vec<f64>)> = BTreeMap::new();
    for (ms, server, took) in questions(5) {
        let of = servers.entry(vec![window(ms, 60 * SECOND), server.to_string()]).or_default();
        match took {
            Some(took) => of.1.push(took as f64),
            None => of.0 += 1.0,
        }
    }
    let row = |(keys, (unanswered, mut took)): (_, (f64, Vec<f64>))| {
        let share = unanswered / (unanswered + took.len() as f64);
        took.sort_by(f64::total_cmp);
        let nine_tenths = took.get((took.len() as f64 * 0.9).ceil() as usize - 1);
        (keys, vec![share, nine_tenths.copied().unwrap_or(0.0).max(share / 0.001)])
    };
    servers.into_iter().map(row).collect()
}

/// Bytes of information in different names below a domain: five classes by bits, in each the mean of
/// all questions times the number of different names.
pub(crate) fn information(_: &[Packet]) -> Own {
    // Of a class the different names, and the bits of each question.
    type OfClass = (BTreeSet<String>, Vec<f64>);
    let mut domains: BTreeMap<Vec<String>, [OfClass; 5]> = BTreeMap::new();
    for &(ms, n, _, _, _, name, code) in MESSAGES {
        if code.is_some() {
            continue;
        }
        let name = name.to_lowercase();
        let domain = name.split_once('.').expect("a domain").1.to_owned();
        let sub = name.trim_end_matches(&domain).trim_end_matches('.').to_owned();
        let counts = sub.bytes().fold(BTreeMap::new(), |mut counts, byte| {
            *counts.entry(byte).or_insert(0.0) += 1.0;
            counts
        });
        let share = |n: &f64| n / sub.len() as f64;
        let bits = -counts.values().map(|n| share(n) * share(n).log2()).sum::<f64>();
        let bits = bits * sub.len() as f64;
        let class = [64.0, 128.0, 256.0, 512.0].iter().filter(|&&bound| bits >= bound).count();
        let keys = vec![window(ms, 3600 * SECOND), client(n).to_string(), domain];
        let of = &mut domains.entry(keys).or_default()[class];
        of.0.insert(sub);
        of.1.push(bits);
    }
    let row = |(keys, classes): (_, [(BTreeSet<String>, Vec<f64>); 5])| {
        let class = |(names, bits): &(BTreeSet<String>, Vec<f64>)| {
            names.len() as f64 * bits.iter().sum::<f64>() / bits.len().max(1) as f64
        };
        (keys, vec![(classes.iter().map(class).sum::<f64>() / 8.0).floor()])
    };
    domains.into_iter().map(row).collect()
}
