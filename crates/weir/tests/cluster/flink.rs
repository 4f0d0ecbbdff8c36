//! Flink on loopback, by `cluster/flink.sh`, with a job of Weir.

use crate::broker::rows;
use crate::common::{native, root, skip};
use crate::over_wires::text;
use std::process::{Command, Output};

pub(crate) struct Flink {
    home: tempfile::TempDir,
    jar: String,
}

/// Where its REST interface is: nobody else is in the namespace.
const PLACE: &str = "127.0.0.1:18081";

impl Flink {
    /// Builds the jar of the job, or says by name why the test is skipped.
    pub(crate) fn new(test: &str) -> Option<Flink> {
        let home = tempfile::tempdir().expect("a folder");
        let mut flink = Flink { home, jar: String::new() };
        let built = flink.script(&["jar"]);
        if built.status.code() == Some(3) {
            skip(test, text(&built.stderr).trim());
            return None;
        }
        assert!(built.status.success(), "{}", text(&built.stderr));
        flink.jar = text(&built.stdout).trim().to_owned();
        Some(flink)
    }

    fn script(&self, args: &[&str]) -> Output {
        let mut command = Command::new(root().join("cluster/flink.sh"));
        command.env("WEIR_NATIVE", native());
        command.args(args).env("FLINK_HOME", self.home.path()).output().expect("bash runs")
    }

    /// Starts what does not run; whether that can be done here.
    pub(crate) fn up(&self, test: &str) -> bool {
        let up = self.script(&["up"]);
        if up.status.code() == Some(3) {
            skip(test, text(&up.stderr).trim());
            return false;
        }
        assert!(up.status.success(), "{}", text(&up.stderr));
        true
    }

    /// Kills its task manager.
    pub(crate) fn kill(&self) {
        let killed = self.script(&["kill", "1"]);
        assert!(killed.status.success(), "{}", text(&killed.stderr));
    }

    /// Starts a job over these queries, from the topic `partials` into the topic `rows`.
    pub(crate) fn submit(&self, queries: &[String], kafka: &str, probes: &str) -> String {
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        let servers = ["--kafka", kafka, "--flink", PLACE, "--jar", &self.jar];
        let job = ["--topic", "partials", "--probes", probes, "--to", "rows"];
        let settings = ["--create-topics", "--checkpoint-ms", "500", "--parallelism", "2"];
        let args = [&["cluster", "submit"], &queries[..], &servers, &job, &settings].concat();
        rows(&args).trim().to_owned()
    }

    pub(crate) fn cancel(&self, job: &str) {
        rows(&["cluster", "cancel", job, "--flink", PLACE]);
    }
}

impl Drop for Flink {
    fn drop(&mut self) {
        self.script(&["down"]);
    }
}
