//! Packages of Python that tests use, which pip fetches.

use crate::common::{root, skip};
use std::path::PathBuf;
use std::process::Command;

/// A folder that Python finds these packages in, each by its version, and what they need where
/// `with_needs`; `None` after saying that a test is skipped.
pub(crate) fn packages(test: &str, names: &[&str], with_needs: bool) -> Option<PathBuf> {
    let folder = root().join("target/python").join(names.join("-"));
    if folder.is_dir() {
        return Some(folder);
    }
    let all = folder.parent().expect("it has one");
    std::fs::create_dir_all(all).expect("a folder");
    let made = tempfile::tempdir_in(all).expect("a folder");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "-q", "--only-binary", ":all:"]);
    if !with_needs {
        pip.arg("--no-deps");
    }
    match pip.arg("--target").arg(made.path()).args(names).output() {
        Ok(output) if output.status.success() => {
            // Another test may have been faster.
            let _ = std::fs::rename(made.path(), &folder);
            Some(folder)
        }
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            skip(test, &format!("pip fetches no {}: {}", names.join(", "), why.trim()));
            None
        }
        Err(e) => {
            skip(test, &format!("python3 -m pip: {e} (apt-get install python3-pip)"));
            None
        }
    }
}
