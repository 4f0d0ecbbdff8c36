//! A server of Prometheus that reads the metrics of a run, for tests.

#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::common::root;
use crate::over_http::get;
use crate::wires;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server of Prometheus over a folder of its own.
pub(crate) struct Prometheus {
    child: Child,
    address: String,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Its program, where there is one: in the path, or where `check.sh` puts it.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let own = root().join("target/unpacked/usr/bin");
    let all = std::env::split_paths(&folders).chain([own]).map(|folder| folder.join(name));
    all.into_iter().find(|path| path.is_file())
}

impl Prometheus {
    /// Scrapes a run, which wants a token.
    pub(crate) fn start(program: &Path, folder: &Path, target: &str) -> Prometheus {
        let config = format!(
            "global:\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\nscrape_configs:\n\
             - job_name: weir\n  authorization:\n    credentials_file: token\n  static_configs:\n  \
             - targets: [\"{target}\"]\n"
        );
        fs::write(folder.join("prometheus.yml"), config).expect("writes");
        // In a network namespace of the test, every port is free.
        let address = "127.0.0.1:9090".to_owned();
        let child = Command::new(program)
            .current_dir(folder)
            .arg(format!("--web.listen-address={address}"))
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("log")).expect("makes"))
            .spawn()
            .expect("it runs");
        Prometheus { child, address }
    }

    /// The first value that a query gives, if there is one.
    pub(crate) fn value(&self, query: &str) -> Option<f64> {
        let encoded: String = query.bytes().map(|b| format!("%{b:02X}")).collect();
        TcpStream::connect(&self.address).ok()?;
        let (status, body) = get(&self.address, &format!("/api/v1/query?query={encoded}"), "");
        if status != 200 {
            return None;
        }
        let body = &body[body.find('{')?..=body.rfind('}')?];
        let answer: serde_json::Value = serde_json::from_str(body).ok()?;
        answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }

    /// Waits until a query gives an answer; `false` if it gives none for long.
    pub(crate) fn answers(&self, query: &str) -> bool {
        for _ in 0..400 {
            if self.value(query).is_some() {
                return true;
            }
            wires::pause();
        }
        false
    }

    /// Waits until a query gives this value.
    pub(crate) fn becomes(&self, query: &str, expected: f64) {
        for _ in 0..400 {
            if self.value(query) == Some(expected) {
                return;
            }
            wires::pause();
        }
        panic!("{query}: {:?}, not {expected}", self.value(query));
    }
}
