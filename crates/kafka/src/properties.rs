//! The properties of a client, as a file of `name=value` lines has them: those of librdkafka.

use crate::limits::PROPERTIES_MAX;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Properties that the file may not set, since delivery in order and once depends on them.
const DECIDED: &[&str] = &[
    "acks",
    "allow.auto.create.topics",
    "auto.offset.reset",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.gapless.guarantee",
    "enable.idempotence",
    "enable.partition.eof",
    "max.in.flight",
    "max.in.flight.requests.per.connection",
    "message.timeout.ms",
    "partitioner",
    "request.required.acks",
    "transactional.id",
];

/// Properties that the file may not set, since they would load code or start a program.
const CODE: &[&str] = &[
    "plugin.library.paths",
    "sasl.kerberos.kinit.cmd",
    "ssl.engine.id",
    "ssl.engine.location",
    "ssl.providers",
];

/// Files that the client reads when it starts.
const FILES: &[&str] =
    &["ssl.ca.location", "ssl.certificate.location", "ssl.crl.location", "ssl.keystore.location"];

/// The file of the private key, which is read before permissions are given up, ...
const KEY_FILE: &str = "ssl.key.location";
/// ... and the property that takes its content.
const KEY: &str = "ssl.key.pem";

/// Properties, in the order in which they were given.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Properties(Vec<(String, String)>);

/// Names alone: values may be secrets.
impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Why a text holds no properties.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PropertyFault {
    /// The line, from 1; 0 for the whole text.
    pub line: usize,
    /// The fault there.
    pub why: String,
}

impl fmt::Display for PropertyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.why),
            line => write!(f, "line {line}: {}", self.why),
        }
    }
}

impl std::error::Error for PropertyFault {}

impl Properties {
    /// Reads lines of `name=value`. Empty lines, and those that begin with `#`, are left out.
    ///
    /// # Errors
    /// Names the line.
    pub fn parse(text: &str) -> Result<Properties, PropertyFault> {
        let fault = |line, why: String| Err(PropertyFault { line, why });
        if text.len() > PROPERTIES_MAX {
            return fault(0, format!("it has more than {} KiB", PROPERTIES_MAX >> 10));
        }
        let mut all: Vec<(String, String)> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            // Not the text itself: it may hold a secret.
            let Some((name, value)) = text.split_once('=') else {
                return fault(line, "expected NAME=VALUE".to_owned());
            };
            let (name, value) = (name.trim(), value.trim());
            if name.is_empty() || value.contains('\0') {
                return fault(line, "expected NAME=VALUE".to_owned());
            }
            if let Some(why) = refusal(name) {
                return fault(line, format!("{} {why}", name.escape_debug()));
            }
            if all.iter().any(|(other, _)| other == name) {
                return fault(line, format!("{} is set twice", name.escape_debug()));
            }
            all.push((name.to_owned(), value.to_owned()));
        }
        Ok(Properties(all))
    }

    /// The file of the private key, if one is named.
    pub fn key_file(&self) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == KEY_FILE).map(|(_, file)| file.as_str())
    }

    /// Puts the content of the file of the private key in place of its name.
    pub fn set_key(&mut self, pem: String) {
        self.0.retain(|(name, _)| name != KEY_FILE && name != KEY);
        self.0.push((KEY.to_owned(), pem));
    }

    /// Files and folders that the client reads.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(|(name, _)| FILES.contains(&name.as_str()));
        named.map(|(_, file)| file.as_str()).filter(|file| *file != "probe")
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Why a property can't be set, if it can't.
fn refusal(name: &str) -> Option<&'static str> {
    match name {
        "bootstrap.servers" | "metadata.broker.list" => {
            Some("is given by the address: kafka://HOST:PORT/TOPIC")
        }
        _ if DECIDED.contains(&name) => {
            Some("can't be set: that records come in order, and all of them, depends on it")
        }
        _ if CODE.contains(&name) => Some("can't be set: it would run other code"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let text = "# TLS\nsecurity.protocol = ssl\n\nssl.ca.location=/etc/ca.pem\r\n\
                    ssl.key.location=key.pem\nsasl.password=a=b #c\nssl.crl.location=probe";
        let mut all = Properties::parse(text).expect("properties");
        assert_eq!(all.key_file(), Some("key.pem"));
        all.set_key("PEM".to_owned());
        let found: Vec<_> = all.iter().collect();
        assert_eq!(found[0], ("security.protocol", "ssl"));
        assert_eq!(found[2], ("sasl.password", "a=b #c"));
        assert_eq!(found[4], ("ssl.key.pem", "PEM"));
        assert_eq!((all.key_file(), all.files().collect::<Vec<_>>()), (None, vec!["/etc/ca.pem"]));
        assert!(!format!("{all:?}").contains("a=b"), "secrets are not printed");
    }

    #[test]
    fn lines_at_fault_are_named() {
        for (text, line, why) in [
            ("a=1\nsecret", 2, "expected NAME=VALUE"),
            ("=1", 1, "expected NAME=VALUE"),
            ("a=\0", 1, "expected NAME=VALUE"),
            ("a=1\na=2", 2, "set twice"),
            ("acks=1", 1, "can't be set"),
            ("enable.idempotence=false", 1, "can't be set"),
            ("plugin.library.paths=x.so", 1, "other code"),
            ("bootstrap.servers=h:1", 1, "by the address"),
        ] {
            let fault = Properties::parse(text).expect_err(text);
            assert!(fault.line == line && fault.why.contains(why), "{text}: {fault}");
            assert!(!fault.why.contains("secret"), "{fault}");
        }
        let long = "#".repeat(PROPERTIES_MAX + 1);
        assert_eq!(Properties::parse(&long).expect_err("too long").line, 0);
    }
}
