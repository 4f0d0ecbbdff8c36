//! Syslog messages (RFC 5424): as datagrams (RFC 5426), and over TCP or TLS with their length
//! before them (RFC 6587, RFC 5425).
//!
//! Nothing is answered: a datagram may be lost on its way, and a message over TCP that was sent
//! shortly before the receiver went away, too.

use crate::alert::Alert;
use crate::clean;
use crate::clock;
use crate::connection::{Connection, Route, addresses};
use crate::failure::Failure;
use crate::limits::{BATCH_MAX, DATAGRAM_MAX, RECORD_MAX};
use crate::receiver::{Batching, Receiver, Sender};
use crate::target::Peer;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_base::alert::AlertSeverity;

/// The name of the structured data. The number is the one that RFC 5612 reserves for documentation,
/// since there is none of our own.
const DATA_ID: &str = "weir@32473";

/// A message of at most `max` bytes.
fn message(alert: &Alert, facility: u8, sender: &Sender, max: usize) -> String {
    // RFC 5424, 6.2.1.
    let severity = match alert.severity {
        AlertSeverity::Critical => 2,
        AlertSeverity::High => 3,
        AlertSeverity::Medium => 4,
        AlertSeverity::Low => 5,
        AlertSeverity::Info => 6,
    };
    let mut out = format!(
        "<{}>1 {} {} weir {} {} [{DATA_ID}",
        u32::from(facility) * 8 + severity,
        timestamp(&alert.ts),
        clean::token(&sender.host, 255),
        sender.process,
        clean::token(&alert.rule, 32),
    );
    let data = [
        ("rule", alert.rule.as_str()),
        ("state", alert.state.name()),
        ("severity", alert.severity.name()),
        ("key", &alert.key),
        ("first", &alert.first),
        ("last", &alert.last),
        ("id", &alert.id),
    ];
    for (name, value) in data.into_iter().filter(|(_, value)| !value.is_empty()) {
        // A value that is cut keeps the whole message well below its bound.
        let _ = write!(out, " {name}=\"{}\"", escaped(&clean::line(value, 256)));
    }
    out += "] ";
    out += &clean::line(&alert.message, max.saturating_sub(out.len()));
    out
}

/// A value of structured data (RFC 5424, 6.3.3).
fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '"' | '\\' | ']') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A time with at most six decimals (RFC 5424, 6.2.3).
fn timestamp(time: &str) -> String {
    match time.split_once('.') {
        _ if time.is_empty() => "-".to_owned(),
        Some((seconds, decimals)) => {
            let decimals = decimals.trim_end_matches('Z');
            format!("{seconds}.{}Z", decimals.get(..6).unwrap_or(decimals))
        }
        None => time.to_owned(),
    }
}

/// Sends datagrams.
pub(crate) struct SyslogSocket {
    peer: Peer,
    facility: u8,
    sender: Sender,
    socket: Option<UdpSocket>,
}

impl SyslogSocket {
    pub(crate) fn new(peer: Peer, facility: u8, sender: Sender) -> SyslogSocket {
        SyslogSocket { peer, facility, sender, socket: None }
    }

    fn connect(&self) -> Result<UdpSocket, Failure> {
        let to = addresses(&self.peer)?[0];
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let connected = UdpSocket::bind(any).and_then(|socket| {
            socket.connect(to)?;
            socket.set_write_timeout(Some(Duration::from_secs(1)))?;
            Ok(socket)
        });
        connected.map_err(|e| Failure::away("connecting", &e))
    }
}

impl Receiver for SyslogSocket {
    fn send(&mut self, alerts: &[Arc<Alert>], _by: Instant) -> Result<(), Failure> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.connect()?,
        };
        for alert in alerts {
            let message = message(alert, self.facility, &self.sender, DATAGRAM_MAX);
            // An error may be of an earlier datagram that was refused; the next try asks for the
            // address again.
            socket.send(message.as_bytes()).map_err(|e| Failure::away("sending", &e))?;
        }
        self.socket = Some(socket);
        Ok(())
    }
}

/// Sends messages over a connection, which stays open.
pub(crate) struct SyslogConnection {
    route: Route,
    facility: u8,
    sender: Sender,
    connection: Option<Connection>,
}

impl SyslogConnection {
    pub(crate) fn new(route: Route, facility: u8, sender: Sender) -> SyslogConnection {
        SyslogConnection { route, facility, sender, connection: None }
    }
}

impl Receiver for SyslogConnection {
    fn batching(&self) -> Batching {
        Batching { alerts_max: BATCH_MAX, gather: Duration::ZERO, apart: Duration::ZERO }
    }

    fn send(&mut self, alerts: &[Arc<Alert>], by: Instant) -> Result<(), Failure> {
        let kept = self.connection.take().map(|mut kept| (kept.has_ended(), kept));
        let mut connection = match kept {
            Some((false, connection)) => connection,
            _ => Connection::open(&self.route, by)?,
        };
        connection.until(by.max(clock::now()));
        let mut bytes = Vec::new();
        for alert in alerts {
            let message = message(alert, self.facility, &self.sender, RECORD_MAX);
            let _ = write!(bytes, "{} {message}", message.len());
        }
        let sent = connection.write_all(&bytes).and_then(|()| connection.flush());
        sent.map_err(|e| Failure::away("sending", &e))?;
        self.connection = Some(connection);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::tests::alert;

    fn sender() -> Sender {
        Sender { host: "probe 1".to_owned(), process: 7 }
    }

    #[test]
    fn a_message_is_one_of_rfc_5424() {
        let alert = alert("start", "high", "716 SYNs");
        assert_eq!(
            message(&alert, 16, &sender(), 2048),
            "<131>1 2026-11-21T05:51:15.123456Z probe_1 weir 7 syn_flood [weir@32473 \
             rule=\"syn_flood\" state=\"start\" severity=\"high\" key=\"server=198.51.100.2 \
             name=\\\"a \\\\\\\" b\\\"\" first=\"2026-11-21T05:51:14Z\" \
             last=\"2026-11-21T05:51:15Z\" id=\"run-1\"] 716 SYNs"
        );
    }

    #[test]
    fn strangers_can_neither_end_a_message_nor_its_data() {
        let evil = "a\n<0>1 - - - - - - forged] \"\\";
        let mut alert = alert("end", "info", evil);
        alert.key = evil.replace('\n', "\u{fffd}");
        let text = message(&alert, 23, &sender(), 2048);
        assert!(!text.contains('\n') && text.contains("forged\\] \\\"\\\\\""), "{text}");
        for max in [200, 400, 700, 2048] {
            alert.message = "ä".repeat(3000);
            let text = message(&alert, 0, &sender(), max);
            assert!(text.len() <= max.max(600), "{} of {max}", text.len());
        }
    }

    #[test]
    fn times_have_six_decimals_at_most() {
        for (time, expected) in [
            ("", "-"),
            ("2026-11-21T05:51:15Z", "2026-11-21T05:51:15Z"),
            ("2026-11-21T05:51:15.5Z", "2026-11-21T05:51:15.5Z"),
            ("2026-11-21T05:51:15.123456789Z", "2026-11-21T05:51:15.123456Z"),
        ] {
            assert_eq!(timestamp(time), expected);
        }
    }
}
