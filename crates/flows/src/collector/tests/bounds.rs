//! One host may send anything, and others keep their sessions, templates and ledger lines.

use super::*;
use crate::limits::{SENDER_NAMED_MAX, SENDER_SESSIONS_MAX, SENDER_TEMPLATES_MAX};

const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

/// Reads a datagram of a host; how many records came out.
fn read_of(c: &mut Collector, address: IpAddr, received: i64, payload: &[u8]) -> usize {
    let mut n = 0;
    let datagram = Datagram { address, port: 4739, received, payload };
    c.read(&datagram, &mut |_, _| n += 1);
    n
}

/// A message of an observation domain.
fn of_domain(domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let mut payload = ipfix(0, sets);
    payload[12..16].copy_from_slice(&domain.to_be_bytes());
    payload
}

fn host(i: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + i))
}

#[test]
fn a_host_that_makes_up_domains_takes_no_templates_of_others() {
    let mut c = Collector::new();
    let data = || of_domain(7, &[set(256, &record(1, 1, 900))]);
    assert_eq!(read_of(&mut c, OTHER, 0, &of_domain(7, &[plain(256)])), 0);
    for domain in 0..2 * SESSIONS_MAX as u32 {
        read_of(&mut c, EXPORTER, SECOND, &of_domain(domain, &[plain(256)]));
    }
    assert_eq!(read_of(&mut c, OTHER, 2 * SECOND, &data()), 1, "its template is there");
    assert_eq!(read_of(&mut c, host(1), 2 * SECOND, &of_domain(7, &[plain(256)])), 0);
    assert_eq!(read_of(&mut c, host(1), 2 * SECOND, &data()), 1, "there is room for a new one");
    assert_eq!(c.sizes().0, SENDER_SESSIONS_MAX + 2);
    let forgotten = (2 * SESSIONS_MAX - SENDER_SESSIONS_MAX) as u64;
    assert_eq!((c.counts().sessions_forgotten, c.counts().exporters_refused), (forgotten, 0));
    // The one that was silent longest makes room: the last ones are there.
    let last = 2 * SESSIONS_MAX as u32 - 1;
    let data = of_domain(last, &[set(256, &record(1, 1, 900))]);
    assert_eq!(read_of(&mut c, EXPORTER, 2 * SECOND, &data), 1);
}

/// An agent of sFlow says itself what its address is.
#[test]
fn a_host_that_makes_up_agents_takes_no_room_of_others() {
    let mut c = Collector::new();
    for agent in 0..2 * SESSIONS_MAX as u32 {
        let mut payload = sflow(1, &[]);
        payload[8..12].copy_from_slice(&agent.to_be_bytes());
        read_of(&mut c, EXPORTER, 0, &payload);
    }
    assert_eq!(read_of(&mut c, OTHER, 0, &of_domain(7, &[plain(256)])), 0);
    assert_eq!((c.sizes().0, c.counts().exporters_refused), (SENDER_SESSIONS_MAX + 1, 0));
    // Nor does it take the lines of the ledger.
    assert_eq!(c.exporters().len(), SENDER_NAMED_MAX + 2);
    assert_eq!(c.exporters()[SENDER_NAMED_MAX + 1].address, Some(OTHER));
}

#[test]
fn many_hosts_share_what_there_is() {
    let mut c = Collector::new();
    let hosts = 2 * (SESSIONS_MAX / SENDER_SESSIONS_MAX) as u32;
    for domain in 0..SENDER_SESSIONS_MAX as u32 {
        for i in 0..hosts {
            read_of(&mut c, host(i), i64::from(domain), &of_domain(domain, &[]));
        }
    }
    assert_eq!(c.sizes().0, SESSIONS_MAX);
    assert_eq!(c.counts().exporters_refused, 0);
    let new = SESSIONS_MAX as u32;
    for i in hosts..new {
        read_of(&mut c, host(i), SECOND, &of_domain(0, &[]));
    }
    assert_eq!((c.sizes().0, c.counts().exporters_refused), (SESSIONS_MAX, 0));
    // Each host has one now, and no host more than that.
    read_of(&mut c, OTHER, SECOND, &of_domain(0, &[]));
    assert_eq!((c.sizes().0, c.counts().exporters_refused), (SESSIONS_MAX, 1));
    read_of(&mut c, host(5), SECOND, &of_domain(9, &[]));
    assert_eq!((c.sizes().0, c.counts().exporters_refused), (SESSIONS_MAX, 1));
}

#[test]
fn templates_of_a_host_are_bounded() {
    let mut c = Collector::new();
    let some = |from: u16| -> Vec<u8> {
        let all = from..from + SESSION_TEMPLATES_MAX as u16;
        set(2, &all.flat_map(|n| template(n, &[1, 4])).collect::<Vec<u8>>())
    };
    for domain in 0..20 {
        read_of(&mut c, EXPORTER, 0, &of_domain(domain, &[some(256)]));
    }
    let refused = 20 * SESSION_TEMPLATES_MAX - SENDER_TEMPLATES_MAX;
    assert_eq!(c.sizes().1, SENDER_TEMPLATES_MAX);
    assert_eq!(c.counts().templates_refused, refused as u64);
    // More hosts than there is room for: each still has some.
    let hosts = (2 * TEMPLATES_MAX / SENDER_TEMPLATES_MAX) as u32;
    for i in 0..hosts {
        for domain in 0..(SENDER_TEMPLATES_MAX / SESSION_TEMPLATES_MAX) as u32 {
            read_of(&mut c, host(i), 1, &of_domain(domain, &[some(256)]));
        }
    }
    assert!(c.sizes().1 <= TEMPLATES_MAX);
    assert_eq!(read_of(&mut c, OTHER, 2, &of_domain(7, &[plain(256)])), 0);
    let data = of_domain(7, &[set(256, &record(1, 1, 900))]);
    assert_eq!(read_of(&mut c, OTHER, 2, &data), 1, "a new host finds room");
}

#[test]
fn data_without_a_template_takes_no_memory_of_others() {
    let mut c = Collector::new();
    let data = of_domain(7, &[set(256, &record(1, 1, 900))]);
    read_of(&mut c, OTHER, 0, &data);
    let large = of_domain(7, &[set(300, &[0; 60_000])]);
    for _ in 0..40 {
        read_of(&mut c, EXPORTER, 1, &large);
    }
    assert_eq!(read_of(&mut c, OTHER, 2, &of_domain(7, &[plain(256)])), 1);
    assert_eq!(c.counts().untemplated, 40);
}
