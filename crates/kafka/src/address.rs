//! Where records are: `kafka://HOST:PORT[,HOST:PORT]/TOPIC`.

use crate::limits::BROKERS_MAX;
use serde::{Deserialize, Serialize};
use std::fmt;

const SCHEME: &str = "kafka://";

/// The port of brokers if none is given.
const PORT: u16 = 9092;

/// A topic, and brokers that know of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KafkaTopic {
    /// Some of the brokers, each as `HOST:PORT`: the client learns of the others.
    pub brokers: Vec<String>,
    /// The topic.
    pub topic: String,
}

impl KafkaTopic {
    /// Whether a text is meant as a topic rather than as a file.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Reads `kafka://HOST:PORT[,HOST:PORT]/TOPIC`. The port is 9092 if there is none.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn parse(text: &str) -> Result<KafkaTopic, String> {
        const FORM: &str = "expected kafka://HOST:PORT/TOPIC, or several HOST:PORT with commas";
        let rest = text.strip_prefix(SCHEME).ok_or(FORM)?;
        let (brokers, topic) = rest.split_once('/').ok_or(FORM)?;
        let brokers: Vec<String> = brokers.split(',').map(broker).collect::<Result<_, _>>()?;
        if brokers.len() > BROKERS_MAX {
            return Err(format!("at most {BROKERS_MAX} brokers can be named"));
        }
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        match topic {
            "" => Err(FORM.to_owned()),
            "." | ".." => Err(format!("`{topic}` can't name a topic")),
            _ if topic.len() > 249 || !topic.bytes().all(allowed) => Err(format!(
                "a topic has at most 249 letters, digits, `.`, `_` and `-`, not `{}`",
                topic.escape_debug()
            )),
            _ => Ok(KafkaTopic { brokers, topic: topic.to_owned() }),
        }
    }
}

fn broker(text: &str) -> Result<String, String> {
    if text.contains('@') {
        return Err("names and passwords belong into the file of --kafka-config".to_owned());
    }
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (format!("[{host}]"), None),
        Some((host, rest)) => (format!("[{host}]"), Some(rest.strip_prefix(':').unwrap_or(""))),
        None => match text.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (text.to_owned(), None),
        },
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".-_:[]%".contains(&b);
    if host.is_empty() || host == "[]" || host.len() > 255 || !host.bytes().all(plain) {
        return Err(format!("`{}` names no broker: expected HOST:PORT", text.escape_debug()));
    }
    match port.map_or(Some(PORT), |port| port.parse().ok().filter(|port| *port > 0)) {
        Some(port) => Ok(format!("{host}:{port}")),
        None => Err(format!("`{}` names no broker: its port is no number", text.escape_debug())),
    }
}

impl fmt::Display for KafkaTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.brokers.join(","), self.topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, read) in [
            ("kafka://h:1/t", "kafka://h:1/t"),
            ("kafka://h/t", "kafka://h:9092/t"),
            (
                "kafka://a:1,b,[::1]:65535,[fe80::1]/x.y_z-1",
                "kafka://a:1,b:9092,[::1]:65535,[fe80::1]:9092/x.y_z-1",
            ),
        ] {
            assert_eq!(KafkaTopic::parse(text).expect(text).to_string(), read);
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for (text, why) in [
            ("kafka://", "expected kafka://"),
            ("kafka://h:1", "expected kafka://"),
            ("kafka://h:1/", "expected kafka://"),
            ("kafka:///t", "names no broker"),
            ("kafka://h:1,/t", "names no broker"),
            ("kafka://h:/t", "its port is no number"),
            ("kafka://h:0/t", "its port is no number"),
            ("kafka://h:65536/t", "its port is no number"),
            ("kafka://[::1]x/t", "its port is no number"),
            ("kafka://u:p@h:1/t", "--kafka-config"),
            ("kafka://h:1/a/b", "a topic has at most"),
            ("kafka://h:1/..", "can't name a topic"),
            ("kafka://h:1/\u{1b}", "a topic has at most"),
            ("file://h:1/t", "expected kafka://"),
        ] {
            let fault = KafkaTopic::parse(text).expect_err(text);
            assert!(fault.contains(why), "{text}: {fault}");
        }
        let many = format!("kafka://{}/t", vec!["h"; BROKERS_MAX + 1].join(","));
        assert!(KafkaTopic::parse(&many).expect_err("too many").contains("at most 64"));
    }
}
