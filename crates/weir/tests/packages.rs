//! Packages that `packaging/make` makes of this binary: files are where Debian has them, and run.

mod common;
#[path = "common/python.rs"]
mod python;

use common::{root, skip};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output
}

/// Whether a program is there.
fn is_there(program: &str) -> bool {
    let output = Command::new(program).arg("--version").output();
    let found = output.is_ok_and(|output| output.status.success());
    if !found {
        skip("packages_hold_what_is_used", &format!("there is no {program}"));
    }
    found
}

/// Checks the files below a root, and that they are of this binary.
fn check(root: &Path, capture: &Path) {
    for file in [
        "etc/weir/site.conf",
        "usr/share/man/man1/weir.1.gz",
        "usr/share/man/man1/weir-run.1.gz",
        "usr/share/zsh/vendor-completions/_weir",
        "usr/share/fish/vendor_completions.d/weir.fish",
        "usr/share/weir/queries/daily/conns.weir",
        "usr/share/doc/weir/copyright",
    ] {
        assert!(fs::metadata(root.join(file)).is_ok_and(|meta| meta.len() > 0), "{file}");
    }
    let unit = fs::read_to_string(root.join("usr/lib/systemd/system/weir@.service")).expect("text");
    assert!(unit.contains("ExecStart=/usr/bin/weir "), "{unit}");
    let words = fs::read_to_string(root.join("usr/share/bash-completion/completions/weir"));
    assert!(words.expect("text").contains("retransmissions"));
    let mut weir = Command::new(root.join("usr/bin/weir"));
    let output = run(weir.env_clear().arg(capture));
    assert!(String::from_utf8_lossy(&output.stdout).contains("detectors found nothing"));
}

#[test]
fn packages_hold_what_is_used() {
    if !is_there("dpkg-deb") || !is_there("strip") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let binary = env!("CARGO_BIN_EXE_weir");
    run(Command::new("strip").args(["-o"]).arg(at("weir")).arg(binary));
    run(Command::new(root().join("packaging/make")).arg("-b").arg(at("weir")).arg(at("out")));
    let made = fs::read_dir(at("out")).expect("a folder").map(|entry| entry.expect("one").path());
    let made: Vec<_> = made.collect();
    let ending = |ending: &str| {
        let found = made.iter().find(|path| path.to_string_lossy().ends_with(ending));
        found.unwrap_or_else(|| panic!("no {ending}: {made:?}"))
    };
    let capture = root().join("fixtures/web.pcap");
    run(Command::new("dpkg-deb").arg("-x").arg(ending(".deb")).arg(at("deb")));
    check(&at("deb"), &capture);
    fs::create_dir(at("tar")).expect("makes");
    let mut tar = Command::new("tar");
    let strip = "--strip-components=1";
    run(tar.arg("-xzf").arg(ending(".tar.gz")).arg(strip).arg("-C").arg(at("tar")));
    check(&at("tar"), &capture);
    let control = run(Command::new("dpkg-deb").arg("-f").arg(ending(".deb")));
    let control = String::from_utf8_lossy(&control.stdout).into_owned();
    let version = concat!("Version: ", env!("CARGO_PKG_VERSION"), "\n");
    assert!(control.contains(version) && control.contains("Depends: libc6 (>= 2."), "{control}");
}

/// The definition of FlinkDeployment, in the jar of the operator's interface; `None` after saying
/// that a test is skipped.
fn flink_definition(test: &str, folder: &Path) -> Option<PathBuf> {
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "dependency:copy"]);
    maven.arg("-Dartifact=org.apache.flink:flink-kubernetes-operator-api:1.10.0");
    maven.arg(format!("-DoutputDirectory={}", folder.display()));
    match maven.output() {
        Ok(output) if output.status.success() => {}
        Ok(_) => {
            skip(test, "Maven fetches no interface of the Flink operator");
            return None;
        }
        Err(e) => {
            skip(test, &format!("mvn: {e} (apt-get install maven)"));
            return None;
        }
    }
    let jar = folder.join("flink-kubernetes-operator-api-1.10.0.jar");
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(jar).arg(folder));
    Some(folder.join("META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml"))
}

#[test]
fn manifests_fit_their_schemas() {
    const TEST: &str = "manifests_fit_their_schemas";
    let Some(schemas) = python::packages(TEST, &["kubernetes-validate==1.37.0"], true) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(definition) = flink_definition(TEST, folder.path()) else { return };
    let manifests = root().join("packaging/kubernetes");
    let check = |manifest: &Path| {
        let mut check = Command::new("python3");
        check.env("PYTHONPATH", &schemas).arg(manifests.join("check.py")).arg(&definition);
        check.arg(manifest).output().expect("python runs")
    };
    for (name, kinds, member) in
        [("probes.yaml", 2, "readOnlyRootFilesystem:"), ("flink.yaml", 2, "  taskManager:")]
    {
        let output = check(&manifests.join(name));
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && out.lines().count() == kinds, "{name}: {out}{errors}");
        // A member that nobody knows is a fault.
        let manifest = fs::read_to_string(manifests.join(name)).expect("text");
        let wrong = folder.path().join(name);
        let changed = manifest.replace(member, &member.replace(':', "s:"));
        fs::write(&wrong, changed).expect("a file");
        let output = check(&wrong);
        let errors = text(&output.stderr);
        assert!(!output.status.success() && errors.contains("Additional properties"), "{errors}");
    }
    // The query in the manifest is one that several probes can run.
    let manifest = fs::read_to_string(manifests.join("probes.yaml")).expect("text");
    let query = manifest.lines().find(|line| line.trim().starts_with("packets |"));
    let mut explain = Command::new(env!("CARGO_BIN_EXE_weir"));
    explain.args(["cluster", "explain", "-e", query.expect("a query").trim()]);
    let explained = run(&mut explain);
    assert!(text(&explained.stdout).contains("on Flink: the machine level as a job"));
}
