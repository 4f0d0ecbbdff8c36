//! A client of Flink's REST interface, by HTTP or HTTPS. Answers and waits have bounds; nothing is
//! asked of another place that an answer names.

use crate::args::FlinkArgs;
use crate::exit::usage;
use anyhow::{Context as _, bail};
use serde_json::Value as Json;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::http::{Request, Response};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// The most bytes of an answer.
const ANSWER_MAX: u64 = 16 << 20;

/// The most bytes of a token, and of the certificates of a file.
const TOKEN_MAX: u64 = 64 << 10;
const CERTIFICATES_MAX: u64 = 16 << 20;

/// How long each part of an exchange may take: Flink compiles a job before it answers.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long an address may take to answer at all.
const CONNECT: Duration = Duration::from_secs(5);

/// The separator of a body in parts: no jar has it, being compressed.
const BOUNDARY: &str = "weir-5b1d2c7e9f3a4860";

/// The REST interface of a job manager.
pub(super) struct Rest {
    agent: Agent,
    /// With its scheme, without a slash at its end.
    place: String,
    /// The header `Authorization`, if one is sent.
    authorization: Option<String>,
}

/// A body that is sent.
enum Payload<'a> {
    None,
    Json(&'a Json),
    /// A file of this name.
    File(&'a str, &'a [u8]),
}

impl Rest {
    /// That which arguments name.
    pub(super) fn new(args: &FlinkArgs) -> anyhow::Result<Rest> {
        let place = place(&args.flink).map_err(|why| usage(format!("--flink {why}")))?;
        let authorization = args.flink_token.as_deref().map(authorization).transpose()?;
        let is_tls = place.starts_with("https://");
        if authorization.is_some() && !is_tls && !is_loopback(&place) {
            return Err(usage(format!(
                "--flink-token: everybody on the way to {place} could read it; name an address of \
                 https://"
            )));
        }
        if args.flink_ca.is_some() && !is_tls {
            return Err(usage("--flink-ca is for an address of https:// (--flink)"));
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("weir/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT))
            .timeout_send_body(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_recv_body(Some(PATIENCE));
        if is_tls {
            config = config.tls_config(tls(args.flink_ca.as_deref())?);
        }
        Ok(Rest { agent: config.build().new_agent(), place, authorization })
    }

    pub(super) fn get(&self, path: &str) -> anyhow::Result<Json> {
        self.ask("GET", path, &Payload::None)
    }

    pub(super) fn patch(&self, path: &str) -> anyhow::Result<Json> {
        self.ask("PATCH", path, &Payload::None)
    }

    pub(super) fn post(&self, path: &str, body: &Json) -> anyhow::Result<Json> {
        self.ask("POST", path, &Payload::Json(body))
    }

    /// Uploads a jar; returns the name that Flink knows it by.
    pub(super) fn upload(&self, name: &str, jar: &[u8]) -> anyhow::Result<String> {
        let answer = self.ask("POST", "/jars/upload", &Payload::File(name, jar))?;
        let path = answer["filename"].as_str().context("Flink does not say where the jar is")?;
        Ok(path.rsplit('/').next().unwrap_or(path).to_owned())
    }

    fn ask(&self, method: &str, path: &str, payload: &Payload<'_>) -> anyhow::Result<Json> {
        let place = &self.place;
        let mut request = Request::builder().method(method).uri(format!("{place}/v1{path}"));
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let answer = match payload.parts() {
            None => self.agent.run(request.body(())?),
            Some((kind, body)) => self.agent.run(request.header("Content-Type", kind).body(body)?),
        };
        let mut answer = answer.with_context(|| format!("Flink at {place} (--flink)"))?;
        let json = json(&mut answer)
            .with_context(|| format!("{place} does not answer as Flink does (--flink)"))?;
        let status = answer.status().as_u16();
        match status {
            200..300 => Ok(json),
            401 | 403 => {
                bail!("Flink at {place} says {status}: it asks for a token (--flink-token)")
            }
            _ => bail!("Flink at {place} says {status}: {}", reason(&json)),
        }
    }
}

impl Payload<'_> {
    /// The type and the bytes of the body.
    fn parts(&self) -> Option<(String, Vec<u8>)> {
        match self {
            Payload::None => None,
            Payload::Json(json) => {
                Some(("application/json".to_owned(), json.to_string().into_bytes()))
            }
            Payload::File(name, bytes) => {
                let head = format!(
                    "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"jarfile\"; \
                     filename=\"{name}\"\r\nContent-Type: application/x-java-archive\r\n\r\n"
                );
                let end = format!("\r\n--{BOUNDARY}--\r\n");
                let body = [head.as_bytes(), bytes, end.as_bytes()].concat();
                Some((format!("multipart/form-data; boundary={BOUNDARY}"), body))
            }
        }
    }
}

/// The body of an answer; null where it is no JSON.
fn json(answer: &mut Response<ureq::Body>) -> anyhow::Result<Json> {
    let body = answer.body_mut().with_config().limit(ANSWER_MAX).read_to_vec()?;
    Ok(serde_json::from_slice(&body).unwrap_or(Json::Null))
}

/// An address with its scheme, which is HTTP where none is named.
fn place(text: &str) -> Result<String, String> {
    let text = text.trim_end_matches('/');
    let place = match text.split_once("://") {
        None => format!("http://{text}"),
        Some(("http" | "https", _)) => text.to_owned(),
        Some(_) => return Err(format!("{text}: expected HOST:PORT or https://HOST:PORT")),
    };
    // Not the text itself: it may hold a secret.
    if place.contains('@') {
        return Err(
            "names a user: a name and a password belong into the file of --flink-token, as \
                    `Basic ` and their base64"
                .to_owned(),
        );
    }
    Ok(place)
}

fn is_loopback(place: &str) -> bool {
    let rest = place.split_once("://").map_or(place, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    ["localhost", "127.0.0.1", "[::1]"].contains(&host)
}

/// The header that a file has: a token, or a scheme and what belongs to it.
fn authorization(path: &Path) -> anyhow::Result<String> {
    let name = || format!("--flink-token {}", path.display());
    let text = read(path, TOKEN_MAX).with_context(name)?;
    let text = text.trim();
    if text.is_empty() || text.contains(|c: char| c.is_control() || !c.is_ascii()) {
        return Err(usage(format!("{}: expected one line, of a token", name())));
    }
    Ok(if text.contains(' ') { text.to_owned() } else { format!("Bearer {text}") })
}

/// TLS that believes the certificates of a file, or those of the system.
fn tls(ca: Option<&Path>) -> anyhow::Result<TlsConfig> {
    let certificates = match ca {
        Some(path) => {
            let name = || format!("--flink-ca {}", path.display());
            let text = read(path, CERTIFICATES_MAX).with_context(name)?;
            let items: Result<Vec<PemItem<'static>>, _> = parse_pem(text.as_bytes()).collect();
            let all: Vec<Certificate<'static>> = (items.with_context(name)?.into_iter())
                .filter_map(|item| match item {
                    PemItem::Certificate(certificate) => Some(certificate),
                    _ => None,
                })
                .collect();
            if all.is_empty() {
                return Err(usage(format!("{}: it has no certificate (PEM)", name())));
            }
            all
        }
        None => {
            let found = rustls_native_certs::load_native_certs().certs;
            if found.is_empty() {
                bail!(
                    "the system has no certificates to check Flink by: install the package \
                     ca-certificates, or name a file of them (--flink-ca)"
                );
            }
            found.iter().map(|one| Certificate::from_der(one).to_owned()).collect()
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(certificates)))
        .unversioned_rustls_crypto_provider(provider)
        .build())
}

fn read(path: &Path, most: u64) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(most).read_to_string(&mut text)?;
    Ok(text)
}

/// The reason that Flink gives for a failure: the line that names it, among all those of a stack.
fn reason(answer: &Json) -> String {
    let errors = answer["errors"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let text: Vec<&str> = errors.flat_map(str::lines).collect();
    let cause = text.iter().rfind(|line| line.starts_with("Caused by:"));
    let line = cause.or_else(|| text.iter().find(|line| !line.trim().is_empty()));
    line.map_or_else(|| "nothing more".to_owned(), |line| line.trim().to_owned())
}

/// A text as a part of a query: all but letters and digits of ASCII, `-`, `.` and `_` is escaped
/// (RFC 3986).
pub(super) fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_scheme() {
        for (text, expected) in [
            ("h:1", "http://h:1"),
            ("http://h:1/", "http://h:1"),
            ("https://h/flink/", "https://h/flink"),
        ] {
            assert_eq!(place(text).as_deref(), Ok(expected));
        }
        assert!(place("ftp://h").is_err());
        let fault = place("https://user:secret@h").expect_err("it has a password");
        assert!(!fault.contains("secret"), "{fault}");
        let loopback = |text: &str| is_loopback(&place(text).expect("an address"));
        assert!(["localhost:1", "127.0.0.1:8081", "http://[::1]:1/x"].into_iter().all(loopback));
        assert!(!["127.0.0.1.example:1", "h:1", "localhost.example"].into_iter().any(loopback));
    }

    #[test]
    fn the_cause_of_a_failure_is_told() {
        let stack = "org.apache.X\n\tat a\nCaused by: java.lang.Y: --to is missing\n\tat b\n";
        let answer = serde_json::json!({ "errors": ["Internal error.", stack] });
        assert_eq!(reason(&answer), "Caused by: java.lang.Y: --to is missing");
        assert_eq!(reason(&serde_json::json!({ "errors": ["no such job"] })), "no such job");
        assert_eq!(reason(&Json::Null), "nothing more");
    }
}
