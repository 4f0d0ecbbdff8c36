//! The properties of `--kafka-config` as the client of Kafka in Java has them: TLS and SASL. Files
//! are read here, so that the machines of Flink need none.

use crate::exit::usage;
use crate::kafka;
use anyhow::Context as _;
use serde_json::{Map, Value as Json};
use std::fs;
use std::path::Path;
use weir_kafka::properties::Properties;

/// The properties of a file as one JSON object; `None` without a file.
pub(super) fn in_java(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let Some(path) = file else { return Ok(None) };
    let name = || format!("--kafka-config {}", path.display());
    let translated = translate(&kafka::properties(file)?).with_context(name)?;
    Ok(Some(Json::Object(translated).to_string()))
}

fn translate(properties: &Properties) -> anyhow::Result<Map<String, Json>> {
    let mut all = Map::new();
    let mut set = |name: &str, value: &str| drop(all.insert(name.to_owned(), value.into()));
    let read = |file: &str| fs::read_to_string(file).with_context(|| file.to_owned());
    let (mut mechanism, mut user, mut password) = (None, None, None);
    for (name, value) in properties.iter() {
        match name {
            "security.protocol" => set(name, &value.to_uppercase()),
            "ssl.ca.location" if value == "probe" => {}
            "ssl.ca.location" | "ssl.ca.pem" => {
                let pem = if name.ends_with("pem") { value.to_owned() } else { read(value)? };
                set("ssl.truststore.type", "PEM");
                set("ssl.truststore.certificates", &pem);
            }
            "ssl.certificate.location" | "ssl.certificate.pem" => {
                let pem = if name.ends_with("pem") { value.to_owned() } else { read(value)? };
                set("ssl.keystore.type", "PEM");
                set("ssl.keystore.certificate.chain", &pem);
            }
            "ssl.key.pem" => set("ssl.keystore.key", value),
            "ssl.key.password" => set(name, value),
            "ssl.endpoint.identification.algorithm" => {
                set(name, if value == "none" { "" } else { value });
            }
            "sasl.mechanism" | "sasl.mechanisms" => mechanism = Some(value.to_uppercase()),
            "sasl.username" => user = Some(value),
            "sasl.password" => password = Some(value),
            _ if is_of_security(name) => {
                return Err(usage(format!("{name}: a job on Flink can't be told this")));
            }
            // How the client of a probe sends is nothing to a job.
            _ => {}
        }
    }
    let Some(mechanism) = mechanism else { return Ok(all) };
    let module = match mechanism.as_str() {
        "PLAIN" => "plain.PlainLoginModule",
        "SCRAM-SHA-256" | "SCRAM-SHA-512" => "scram.ScramLoginModule",
        _ => {
            return Err(usage("sasl.mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 is possible"));
        }
    };
    let [user, password] = [user, password].map(|text| quoted(text.unwrap_or_default()));
    let login = format!(
        "org.apache.flink.kafka.shaded.org.apache.kafka.common.security.{module} required \
         username={user} password={password};"
    );
    all.insert("sasl.mechanism".to_owned(), mechanism.into());
    all.insert("sasl.jaas.config".to_owned(), login.into());
    Ok(all)
}

/// Whether leaving a property out would change whom the client trusts, or who it is.
fn is_of_security(name: &str) -> bool {
    ["ssl.", "sasl.", "security.", "https.", "enable.ssl.", "enable.sasl."]
        .iter()
        .any(|start| name.starts_with(start))
}

/// A text as the configuration of a login has it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[(&str, &str)], &str>) {
        let found = translate(&Properties::parse(text).expect("properties"));
        match (found, expected) {
            (Ok(found), Ok(expected)) => {
                let found: Vec<_> =
                    found.iter().map(|(k, v)| (k.as_str(), v.as_str().expect("text"))).collect();
                assert_eq!(found, expected, "{text}");
            }
            (Err(fault), Err(why)) => assert!(format!("{fault:#}").contains(why), "{fault:#}"),
            (found, expected) => panic!("{text}: {found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn properties_are_those_of_java() {
        const LOGIN: &str = "org.apache.flink.kafka.shaded.org.apache.kafka.common.security.\
            scram.ScramLoginModule required username=\"a\\\"b\" password=\"c\\\\d\";";
        let sasl = "security.protocol=sasl_ssl\nsasl.mechanisms=scram-sha-512\n\
            sasl.username=a\"b\nsasl.password=c\\d\nqueue.buffering.max.kbytes=64";
        let expected = [
            ("sasl.jaas.config", LOGIN),
            ("sasl.mechanism", "SCRAM-SHA-512"),
            ("security.protocol", "SASL_SSL"),
        ];
        check(sasl, Ok(&expected));
        check("ssl.endpoint.identification.algorithm=none\nssl.ca.location=probe", {
            Ok(&[("ssl.endpoint.identification.algorithm", "")])
        });
        let tls = [
            ("ssl.keystore.certificate.chain", "C"),
            ("ssl.keystore.key", "K"),
            ("ssl.keystore.type", "PEM"),
            ("ssl.truststore.certificates", "A"),
            ("ssl.truststore.type", "PEM"),
        ];
        check("ssl.ca.pem=A\nssl.certificate.pem=C\nssl.key.pem=K", Ok(&tls));
        check("", Ok(&[]));
    }

    #[test]
    fn nothing_of_security_is_left_out_silently() {
        for name in ["ssl.crl.location", "ssl.keystore.location", "sasl.oauthbearer.config"] {
            check(&format!("{name}=x"), Err(name));
        }
        check("enable.ssl.certificate.verification=false", Err("can't be told this"));
        check("sasl.mechanism=GSSAPI", Err("PLAIN, SCRAM"));
        check("ssl.ca.location=/nowhere/ca.pem", Err("/nowhere/ca.pem"));
    }
}
