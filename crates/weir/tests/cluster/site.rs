//! A site with a wire to watch: a namespace, from which only the broker can be reached.

use crate::over_wires::Run;
use crate::wires::{Elsewhere, Sender, ip, veth};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_packet::craft::Frame;
use weir_plan::Value;

pub(crate) struct Site {
    pub(crate) number: u8,
    place: Elsewhere,
    wire: Arc<Sender>,
}

impl Site {
    /// One of this number, which reaches `host`.
    pub(crate) fn new(test: &str, number: u8, host: &'static str) -> Site {
        let place = Elsewhere::new(test);
        let (here, there) = (format!("up{number}"), format!("down{number}"));
        veth(&here, &there);
        ip(&format!("addr add 10.99.{number}.1/24 dev {here}"));
        place.give(&there);
        let wire = place.run(move || {
            ip(&format!("link set {there} up"));
            ip(&format!("addr add 10.99.{number}.2/24 dev {there}"));
            ip(&format!("route add {host}/32 via 10.99.{number}.1"));
            veth("wire0", "wire1");
            Sender::new("wire0")
        });
        Site { number, place, wire: Arc::new(wire) }
    }

    /// Starts a run over what its wire receives.
    pub(crate) fn start(&self, args: &[&str]) -> Run {
        let mut all = vec!["run".to_owned()];
        all.extend(args.iter().map(|arg| (*arg).to_owned()));
        all.extend(["-i", "wire1", "-Q", "in"].map(str::to_owned));
        self.place.run(move || {
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            Run::start(&all)
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "windows are those of the clock")]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970")
}

#[expect(clippy::disallowed_methods, reason = "windows of the clock are waited for")]
fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// Lets so many seconds of the clock begin.
pub(crate) fn pass_seconds(seconds: u64) {
    let next = Duration::from_secs(now().as_secs() + seconds);
    sleep(next.saturating_sub(now()));
}

/// Sends what is one of each attack only when both sites are seen together, in the first half of
/// a second: sockets need not take one time for one packet. Returns that second, as rows have it.
pub(crate) fn send(sites: &[Site], round: u8) -> String {
    pass_seconds(1);
    sleep(Duration::from_millis(200));
    let second = now().as_secs();
    for site in sites {
        frames(round, site.number).iter().for_each(|frame| site.wire.send(frame));
    }
    assert_eq!(now().as_secs(), second, "a few frames take no second");
    let stamp = Value::Time(Duration::from_secs(second).as_nanos() as i64).to_string();
    stamp.trim_end_matches('Z').to_owned()
}

/// Frames of a round at a site: a part of a flood of half-open handshakes, of a scan of many hosts,
/// and of what a heavy host sends, each of hosts that only this round has.
fn frames(round: u8, site: u8) -> Vec<Vec<u8>> {
    const SYN: u16 = 2;
    const SYN_ACK: u16 = 18;
    let (server, spreader, heavy) = ([192, 0, 2, round], [10, 0, 1, round], [10, 0, 2, round]);
    let mut all = Vec::new();
    for n in 0..25u8 {
        let client = [203, 0, 113, 100 * (site - 1) + n];
        let (from, to) =
            (Frame::ethernet().ipv4(client, server), Frame::ethernet().ipv4(server, client));
        all.push(from.tcp(1000 + u16::from(n), 80).flags(SYN).seq(7).bytes());
        all.push(to.tcp(80, 1000 + u16::from(n)).flags(SYN_ACK).seq(9).ackno(8).bytes());
        let target = [10, 1, site, n];
        all.push(Frame::ethernet().ipv4(spreader, target).tcp(2000, 445).flags(SYN).bytes());
        let bytes = Frame::ethernet().ipv4(heavy, [10, 0, 3, site]).udp(3000, 4000);
        all.push(bytes.payload(&[0; 1200]).bytes());
    }
    all
}
