//! Kafka and Flink for the time of the measurements, by the scripts of `cluster/`.

use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the scripts are.
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cluster");

/// The exit status of a script that lacks something to be installed.
const STATUS_MISSING: i32 = 3;

/// How the errors begin that say what is not installed.
pub(super) const MISSING: &str = "Not measured";

/// Servers that were started here. They end, and what they stored goes, with this.
pub(super) struct Servers {
    home: PathBuf,
    kafka_port: u16,
    flink_port: u16,
    taskmanagers: usize,
}

impl Servers {
    /// A broker, in a folder of its own below `out`.
    ///
    /// # Errors
    /// Where it can't be started. If something is not installed, the error begins with
    /// [`MISSING`], and names it.
    pub(super) fn start(out: &Path) -> Result<Servers> {
        let home = out.join("cluster");
        fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
        let home = home.canonicalize().with_context(|| home.display().to_string())?;
        let (kafka_port, flink_port) = (free_ports(20_092)?, free_ports(19_081)?);
        let servers = Servers { home, kafka_port, flink_port, taskmanagers: 1 };
        // An earlier run that was killed may have left servers and data.
        servers.end();
        servers.script("kafka.sh", &["up"])?;
        Ok(servers)
    }

    /// Flink as well, with so many task managers of two slots each.
    ///
    /// # Errors
    /// As [`Servers::start`].
    pub(super) fn start_flink(&mut self, taskmanagers: usize) -> Result<()> {
        self.script("flink.sh", &["down"])?;
        self.taskmanagers = taskmanagers;
        self.script("flink.sh", &["up"]).map(drop)
    }

    pub(super) fn brokers(&self) -> String {
        format!("127.0.0.1:{}", self.kafka_port)
    }

    /// The REST interface of Flink.
    pub(super) fn flink(&self) -> String {
        format!("127.0.0.1:{}", self.flink_port)
    }

    /// The address of a topic, as Weir takes it.
    pub(super) fn url(&self, topic: &str) -> String {
        format!("kafka://{}/{topic}", self.brokers())
    }

    pub(super) fn make_topic(&self, name: &str, partitions: usize) -> Result<()> {
        self.script("kafka.sh", &["topic", name, &partitions.to_string()]).map(drop)
    }

    /// Where Flink keeps its settings and what it stores.
    pub(super) fn flink_home(&self) -> PathBuf {
        self.home.join("flink")
    }

    /// The processes of the task managers that run.
    pub(super) fn task_managers(&self) -> Result<Vec<u32>> {
        let read = |number: usize| -> Result<u32> {
            let path = self.flink_home().join(format!("taskmanager{number}.pid"));
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            text.trim().parse().with_context(|| path.display().to_string())
        };
        (1..=self.taskmanagers).map(read).collect()
    }

    /// Runs a script; what it prints.
    pub(super) fn script(&self, name: &str, args: &[&str]) -> Result<String> {
        let mut command = Command::new(Path::new(SCRIPTS).join(name));
        command.args(args).envs(self.settings());
        let output = command.output().with_context(|| format!("running cluster/{name}"))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(STATUS_MISSING) {
            bail!("{MISSING}: {}", errors.trim());
        }
        ensure!(output.status.success(), "cluster/{name} {args:?}: {}", errors.trim());
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn settings(&self) -> [(&'static str, String); 5] {
        let home = |name: &str| self.home.join(name).display().to_string();
        [
            ("KAFKA_PORT", self.kafka_port.to_string()),
            ("KAFKA_HOME", home("kafka")),
            ("FLINK_PORT", self.flink_port.to_string()),
            ("FLINK_HOME", home("flink")),
            ("FLINK_TASKMANAGERS", self.taskmanagers.to_string()),
        ]
    }

    fn end(&self) {
        for name in ["flink.sh", "kafka.sh"] {
            // Where it can't be ended, the next run says so.
            let _ = self.script(name, &["down"]);
        }
        let _ = fs::remove_dir_all(&self.home);
        let _ = fs::create_dir_all(&self.home);
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.end();
    }
}

/// The first of three ports in a row that nobody has, from `first` on.
fn free_ports(first: u16) -> Result<u16> {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut all = (first..first + 900).step_by(3);
    all.find(|&port| (0..3).all(|n| is_free(port + n))).context("no three ports in a row are free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_are_taken_are_passed_over() {
        let first = free_ports(21_000).expect("some are free");
        let _taken = TcpListener::bind(("127.0.0.1", first + 1)).expect("it is free");
        assert!(free_ports(first).expect("others are free") > first + 1);
    }
}
