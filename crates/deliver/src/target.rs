//! The receivers that alerts are delivered to.

use crate::alert::Alert;
use crate::signature::SigningKey;
use crate::template::RequestTemplate;
use crate::tls::Trust;
use serde::{Deserialize, Serialize};
use std::fmt;
use weir_base::alert::{AlertSeverity, AlertState};

/// A receiver, as a line of `--alert-to` names it.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Its name in messages: without what may be secret in its address.
    pub(crate) name: String,
    pub(crate) peer: Peer,
    /// The certificates that are believed; `None` for connections without TLS.
    pub(crate) trust: Option<Trust>,
    pub(crate) filter: AlertFilter,
    pub(crate) kind: Kind,
}

impl Target {
    /// Its name in messages: without what may be secret in its address.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A text that tells it from all other targets, in every run.
    pub(crate) fn identity(&self) -> String {
        match &self.kind {
            Kind::Webhook(form) => format!("{}{}", self.name, form.path.0),
            Kind::Mail(form) => format!("{} {}", self.name, form.to.join(",")),
            Kind::Alertmanager(form) => format!("{}{}", self.name, form.path),
            Kind::Syslog(_) => self.name.clone(),
        }
    }

    /// The port that it is connected to.
    pub fn port(&self) -> u16 {
        self.peer.port
    }

    /// Tells targets of one address apart by a number.
    pub fn number(all: &mut [Target]) {
        for i in 1..all.len() {
            let (before, at) = all.split_at_mut(i);
            let same =
                |other: &&Target| other.peer == at[0].peer && other.scheme() == at[0].scheme();
            match before.iter().filter(same).count() {
                0 => {}
                n => at[0].name = format!("{} ({})", at[0].name, n + 1),
            }
        }
    }

    fn scheme(&self) -> &str {
        self.name.split("://").next().unwrap_or_default()
    }
}

/// Which alerts a target gets.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AlertFilter {
    /// The least severity.
    pub(crate) least: AlertSeverity,
    /// Whether it gets the rows of alerts that go on.
    pub(crate) ongoing: bool,
    /// Whether it gets those of alerts that are open at the end of the input.
    pub(crate) open: bool,
}

impl AlertFilter {
    pub(crate) fn takes(self, alert: &Alert) -> bool {
        let takes_state = match alert.state {
            AlertState::Start | AlertState::End => true,
            AlertState::Ongoing => self.ongoing,
            AlertState::Open => self.open,
        };
        takes_state && alert.severity >= self.least
    }
}

/// A host by name or address, and its port.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// A password, a key or a token, which is never shown.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The kind of a receiver, and the form of its messages.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Syslog(SyslogForm),
    Webhook(WebhookForm),
    Mail(MailForm),
    Alertmanager(AlertmanagerForm),
}

/// Syslog messages.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SyslogForm {
    pub(crate) transport: Transport,
    /// 0 to 23.
    pub(crate) facility: u8,
}

/// How syslog messages travel.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transport {
    Datagrams,
    Stream,
}

/// Requests to a webhook.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct WebhookForm {
    /// The path and what follows it.
    pub(crate) path: Secret,
    pub(crate) body: BodyForm,
    /// Requests that are made instead, if the user has written some.
    pub(crate) requests: Option<RequestForms>,
    /// The keys that sign it, the newest first; empty where it is not signed.
    pub(crate) keys: Vec<SigningKey>,
    /// The token in the header `Authorization`, after `Bearer`.
    pub(crate) token: Option<Secret>,
}

/// Requests that the user has written, by the state of an alert.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct RequestForms {
    pub(crate) start: RequestTemplate,
    pub(crate) end: Option<RequestTemplate>,
}

/// The form of the body of a request.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyForm {
    /// The row as JSON.
    Json,
    Slack,
    Mattermost,
    Teams,
    Discord,
}

impl BodyForm {
    pub(crate) const ALL: [(&'static str, BodyForm); 5] = [
        ("json", BodyForm::Json),
        ("slack", BodyForm::Slack),
        ("mattermost", BodyForm::Mattermost),
        ("teams", BodyForm::Teams),
        ("discord", BodyForm::Discord),
    ];
}

/// Mails.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct MailForm {
    pub(crate) security: MailSecurity,
    pub(crate) login: Option<Login>,
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
}

/// A user of a mail server.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: Secret,
}

/// How a connection to a mail server is secured.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MailSecurity {
    /// TLS from the first byte.
    Tls,
    /// TLS once the server has agreed; a server that does not is refused.
    StartTls,
    /// None.
    Plain,
}

/// Requests to Alertmanager.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct AlertmanagerForm {
    /// Its path, `/` at the end.
    pub(crate) path: String,
    /// How often alerts that go on are repeated, in seconds.
    pub(crate) repeat_s: u64,
    /// The token in the header `Authorization`, after `Bearer`.
    pub(crate) token: Option<Secret>,
}
