//! Tells the binary which commit it is made of. Builds for work on it have none: each commit would
//! compile them anew.

use std::env;
use std::path::Path;
use std::process::Command;

#[expect(clippy::disallowed_methods, reason = "cargo says by variables what is built")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A build from an archive of the source is told it.
    println!("cargo::rerun-if-env-changed=WEIR_COMMIT");
    let log = Path::new("../../.git/logs/HEAD");
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release && log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }
    let commit = env::var("WEIR_COMMIT").ok().or_else(|| is_release.then(of_git).flatten());
    println!("cargo::rustc-env=WEIR_COMMIT={}", commit.unwrap_or_default());
}

/// The short name and the day of the commit, if this is a clone.
fn of_git() -> Option<String> {
    let show = ["show", "--no-patch", "--date=short", "--format=%h %cd", "--abbrev=12", "HEAD"];
    let output = Command::new("git").args(show).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
