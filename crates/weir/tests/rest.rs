//! `weir cluster` asks Flink by HTTP and by TLS, with a token, of a server that the test is.

#![cfg(target_os = "linux")]

mod common;

use common::skip;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use assert_cmd::cargo::CommandCargoExt as _;

/// An answer of Flink's with one job.
const JOBS: &str = r#"{"jobs":[{"jid":"5c3f","state":"RUNNING","name":"flows"}]}"#;

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// A server that gives the same answer to each request; its address, and the heads that it read.
fn serve(tls: Option<Arc<ServerConfig>>, answer: String) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("an address").to_string();
    let (heads, read) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            let head = match &tls {
                None => exchange(stream, &answer),
                Some(tls) => {
                    let server = ServerConnection::new(Arc::clone(tls)).expect("a connection");
                    exchange(StreamOwned::new(server, stream), &answer)
                }
            };
            if head.is_some_and(|head| heads.send(head).is_err()) {
                return;
            }
        }
    });
    (place, read)
}

/// Reads a head, and answers; `None` where the client went before.
fn exchange<S: Read + Write>(mut stream: S, answer: &str) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    stream.write_all(answer.as_bytes()).ok()?;
    stream.flush().ok()?;
    String::from_utf8(head).ok()
}

/// A certificate for 127.0.0.1 and its key as files; whether there is a program that makes them.
fn certificate(folder: &Path, name: &str) -> bool {
    let [key, cert] = ["key", "cert"].map(|what| format!("{name}-{what}.pem"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]);
    openssl.args(["-subj", "/CN=weir", "-addext", "subjectAltName=IP:127.0.0.1"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    openssl.args(["-keyout", &key, "-out", &cert]).current_dir(folder);
    openssl.output().is_ok_and(|made| made.status.success())
}

fn server_config(folder: &Path, name: &str) -> Arc<ServerConfig> {
    let cert = folder.join(format!("{name}-cert.pem"));
    let key = folder.join(format!("{name}-key.pem"));
    let chain = CertificateDer::pem_file_iter(cert).expect("a file").collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_file(key).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain.expect("certificates"), key);
    Arc::new(config.expect("they belong together"))
}

fn list(folder: &Path, args: &[&str]) -> Output {
    let mut weir = Command::cargo_bin("weir").expect("the binary");
    // A proxy of the environment is not asked.
    weir.env("https_proxy", "http://127.0.0.1:1").env("http_proxy", "http://127.0.0.1:1");
    weir.args(["cluster", "list"]).args(args).current_dir(folder).output().expect("it runs")
}

fn lists(output: &Output) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "5c3f  RUNNING   flows\n");
}

fn fails(output: &Output, status: i32, why: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{errors}");
    assert!(errors.contains(why), "{errors}");
    assert!(!errors.contains("s3cret"), "{errors}");
}

#[test]
fn flink_is_asked_by_tls_with_a_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !["flink", "other"].into_iter().all(|name| certificate(folder, name)) {
        return skip("flink_is_asked_by_tls_with_a_token", "there is no openssl");
    }
    let (place, heads) = serve(Some(server_config(folder, "flink")), answer("200 OK", JOBS));
    let https = format!("https://{place}");
    fs::write(folder.join("token"), "s3cret\n").expect("a file");
    fs::write(folder.join("basic"), "Basic czNjcmV0\n").expect("a file");
    let ca = ["--flink", &https, "--flink-ca", "flink-cert.pem"];
    lists(&list(folder, &ca));
    let head = heads.recv().expect("a request");
    assert!(head.starts_with("GET /v1/jobs/overview HTTP/1.1\r\n"), "{head}");
    assert!(!head.to_lowercase().contains("authorization"), "{head}");
    for (file, header) in [("token", "Bearer s3cret"), ("basic", "Basic czNjcmV0")] {
        lists(&list(folder, &[&ca[..], &["--flink-token", file]].concat()));
        let head = heads.recv().expect("a request").to_lowercase();
        assert!(head.contains(&format!("authorization: {}\r\n", header.to_lowercase())), "{head}");
    }
    // One that is not who it should be gets no request.
    for ca in [&[][..], &["--flink-ca", "other-cert.pem"]] {
        let args = [&["--flink", &https, "--flink-token", "token"], ca].concat();
        fails(&list(folder, &args), 1, &https);
    }
    assert!(heads.try_recv().is_err());
    let port = place.rsplit_once(':').expect("a port").1;
    let named = format!("https://localhost:{port}");
    let args = ["--flink", &named, "--flink-ca", "flink-cert.pem"];
    fails(&list(folder, &args), 1, "certificate");
}

#[test]
fn arguments_for_flink_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("token"), "s3cret").expect("a file");
    fs::write(folder.join("lines"), "s3cret\nX-Other: 1").expect("a file");
    fs::write(folder.join("empty"), "\n").expect("a file");
    let https = ["--flink", "https://127.0.0.1:1"];
    let with = |more: &[&'static str]| list(folder, &[&https[..], more].concat());
    let far = ["--flink", "flink.example:8081", "--flink-token", "token"];
    fails(&list(folder, &far), 2, "could read it");
    fails(&with(&["--flink-token", "lines"]), 2, "expected one line");
    fails(&with(&["--flink-token", "empty"]), 2, "expected one line");
    fails(&with(&["--flink-token", "none"]), 1, "--flink-token none");
    fails(&with(&["--flink-ca", "token"]), 2, "no certificate");
    fails(&with(&["--flink-ca", "none"]), 1, "--flink-ca none");
    fails(&list(folder, &["--flink-ca", "token"]), 2, "https://");
    fails(&list(folder, &["--flink", "ftp://h"]), 2, "expected HOST:PORT");
    fails(&list(folder, &["--flink", "https://u:s3cret@h"]), 2, "--flink-token");
}

/// Answers that are none, or of another status.
#[test]
fn answers_of_flink_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("token"), "s3cret").expect("a file");
    let ask = |answer: String| {
        let (place, _heads) = serve(None, answer);
        list(folder, &["--flink", &place, "--flink-token", "token"])
    };
    lists(&ask(answer("200 OK", JOBS)));
    let chunks = JOBS.split_at(10);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n{:x};x\r\n{}\r\n0\r\n\r\n",
        chunks.0.len(),
        chunks.0,
        chunks.1.len(),
        chunks.1
    );
    lists(&ask(chunked));
    fails(&ask(answer("401 Unauthorized", "")), 1, "401: it asks for a token");
    fails(&ask(answer("404 Not Found", r#"{"errors":["no such job"]}"#)), 1, "404: no such job");
    // Nothing is sent to a place that an answer names.
    let moved = "HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    fails(&ask(moved.to_owned()), 1, "says 307");
    fails(&ask("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}".to_owned()), 1, "--flink");
    fails(&ask("SSH-2.0-OpenSSH\r\n\r\n".to_owned()), 1, "--flink");
    fails(&ask(String::new()), 1, "--flink");
    fails(&list(folder, &["--flink", "127.0.0.1:1"]), 1, "Flink at http://127.0.0.1:1 (--flink)");
}
