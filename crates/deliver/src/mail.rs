//! Alerts by mail: those of a few seconds in one.

use crate::alert::Alert;
use crate::clean;
use crate::clock;
use crate::connection::Route;
use crate::failure::Failure;
use crate::limits::{MAIL_ALERTS_MAX, MAIL_GATHER, MAILS_APART};
use crate::receiver::{Batching, Receiver, Sender};
use crate::smtp::{self, Mail};
use crate::target::MailForm;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;
use weir_base::alert::{AlertSeverity, AlertState};

/// Sends mails.
pub(crate) struct Mailbox {
    route: Route,
    form: MailForm,
    sender: Sender,
}

impl Mailbox {
    pub(crate) fn new(route: Route, form: MailForm, sender: Sender) -> Mailbox {
        Mailbox { route, form, sender }
    }
}

impl Receiver for Mailbox {
    fn batching(&self) -> Batching {
        Batching { alerts_max: MAIL_ALERTS_MAX, gather: MAIL_GATHER, apart: MAILS_APART }
    }

    fn send(&mut self, alerts: &[Arc<Alert>], by: Instant) -> Result<(), Failure> {
        let host = host_name(&self.sender.host);
        let text = mail(alerts, &self.form, &host, &clock::mail_date(clock::since_1970()));
        smtp::send(&self.route, &Mail { form: &self.form, host: &host, text: &text }, by)
    }
}

/// The name of this host as mail servers take it.
fn host_name(host: &str) -> String {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let name: String = host.chars().filter(|c| is_fine(*c)).take(200).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// A whole mail. No text of packets stands in it outside of base64.
fn mail(alerts: &[Arc<Alert>], form: &MailForm, host: &str, date: &str) -> String {
    let mut out = String::new();
    let id = alerts.first().map(|alert| alert.id.as_str()).unwrap_or_default();
    let headers = [
        ("From", form.from.clone()),
        ("To", form.to.join(", ")),
        ("Subject", encoded_words(&subject(alerts))),
        ("Date", date.to_owned()),
        ("Message-ID", format!("<{}@{host}>", clean::token(id, 100))),
        ("Auto-Submitted", "auto-generated".to_owned()),
        ("MIME-Version", "1.0".to_owned()),
        ("Content-Type", "text/plain; charset=utf-8".to_owned()),
        ("Content-Transfer-Encoding", "base64".to_owned()),
    ];
    for (name, value) in headers {
        let _ = write!(out, "{name}: {value}\r\n");
    }
    out += "\r\n";
    let encoded = BASE64.encode(body(alerts));
    for line in encoded.as_bytes().chunks(76) {
        out += &String::from_utf8_lossy(line);
        out += "\r\n";
    }
    out
}

/// The subject of a mail, as one short line.
fn subject(alerts: &[Arc<Alert>]) -> String {
    let text = match alerts {
        [alert] => alert.headline(),
        many => {
            let most = many.iter().map(|a| a.severity).max().unwrap_or(AlertSeverity::Info);
            let begun = many.iter().filter(|a| a.state == AlertState::Start).count();
            format!("{} alerts, {begun} new, at most {}", many.len(), most.name())
        }
    };
    format!("[weir] {}", clean::line(&text, 150))
}

/// A text for a header: as it is, or as encoded words (RFC 2047) of at most 75 characters.
fn encoded_words(text: &str) -> String {
    if text.bytes().all(|b| b.is_ascii_graphic() || b == b' ') && !text.contains("=?") {
        return text.to_owned();
    }
    let mut words = vec![String::new()];
    for c in text.chars() {
        // 36 bytes are 48 digits of base64; the name of a header stands before the first word.
        if words.last().map_or(0, String::len) + c.len_utf8() > 36 {
            words.push(String::new());
        }
        words.last_mut().expect("there is one").push(c);
    }
    let encoded = words.iter().map(|word| format!("=?utf-8?B?{}?=", BASE64.encode(word)));
    encoded.collect::<Vec<_>>().join("\r\n ")
}

fn body(alerts: &[Arc<Alert>]) -> String {
    let mut out = String::new();
    for alert in alerts {
        let _ = write!(out, "{}\r\n", alert.headline());
        let facts = [("key", &alert.key), ("first", &alert.first), ("last", &alert.last)];
        let facts = facts.map(|(name, value)| (name.to_owned(), value.clone()));
        for (name, value) in facts.into_iter().chain(alert.evidence()) {
            if !value.is_empty() {
                let _ = write!(out, "  {name:<8} {value}\r\n");
            }
        }
        out += "\r\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::tests::alert;
    use crate::target::MailSecurity;

    fn form() -> MailForm {
        MailForm {
            security: MailSecurity::Plain,
            login: None,
            from: "weir@example.org".to_owned(),
            to: vec!["a@example.org".to_owned(), "b@example.org".to_owned()],
        }
    }

    #[test]
    fn a_mail_has_its_headers_and_text() {
        let alerts = [Arc::new(alert("start", "high", "716 SYNs"))];
        let text = mail(&alerts, &form(), "probe", "Wed, 25 Nov 2026 22:55:21 +0000");
        let (head, encoded) = text.split_once("\r\n\r\n").expect("an empty line");
        assert!(head.contains("To: a@example.org, b@example.org\r\n"));
        assert!(head.contains("Subject: [weir] HIGH syn_flood started: 716 SYNs\r\n"));
        assert!(head.contains("Message-ID: <run-1@probe>\r\n"));
        let body = BASE64.decode(encoded.replace("\r\n", "")).expect("base64");
        let body = String::from_utf8(body).expect("text");
        assert!(
            body.contains("HIGH syn_flood started: 716 SYNs\r\n  key      server=198.51.100.2")
        );
        assert!(body.contains("\r\n  syns     716\r\n"), "{body}");
    }

    #[test]
    fn strangers_add_no_header() {
        let evil = "a\r\nBcc: everyone@example.org\r\n\r\n.\r\nQUIT ä";
        let alerts = [Arc::new(alert("start", "high", evil))];
        let text = mail(&alerts, &form(), &host_name("a\r\nb"), "Wed");
        let head = text.split("\r\n\r\n").next().expect("a head");
        assert!(!head.contains("Bcc") && head.contains("Subject: =?utf-8?B?"), "{head}");
        assert!(text.lines().all(|line| line.len() <= 76 && line != "."), "{text}");
        assert!(head.contains("@ab>"));
    }

    #[test]
    fn a_mail_of_many_says_how_many() {
        let alerts: Vec<_> = ["info", "critical", "low"]
            .into_iter()
            .map(|severity| Arc::new(alert("start", severity, "x")))
            .collect();
        assert_eq!(subject(&alerts), "[weir] 3 alerts, 3 new, at most critical");
    }
}
