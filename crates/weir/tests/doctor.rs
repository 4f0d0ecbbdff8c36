//! `weir doctor` on real interfaces: what it says changes with them, and the commands that it
//! prints mend what it complains of.

#![cfg(target_os = "linux")]

mod common;
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

use common::skip;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use wires::{ip, namespace, pause};

/// The findings about an interface: what, verdict, and the command.
struct Findings {
    rows: Vec<serde_json::Value>,
    status: Option<i32>,
}

impl Findings {
    fn of(command: &mut Command) -> Findings {
        let output = command.output().expect("the binary runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let rows = text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
        Findings { rows, status: output.status.code() }
    }

    /// The verdict and the command of something.
    #[track_caller]
    fn get(&self, place: &str, what: &str) -> (&str, &str) {
        let row = self.rows.iter().find(|row| row["where"] == place && row["what"] == what);
        let row = row.unwrap_or_else(|| panic!("no {what} of {place} in {:?}", self.rows));
        (row["verdict"].as_str().expect("a word"), row["command"].as_str().unwrap_or_default())
    }
}

fn doctor(interface: &str) -> Findings {
    let binary = env!("CARGO_BIN_EXE_weir");
    Findings::of(Command::new(binary).args(["doctor", "-o", "json", "-i", interface]))
}

/// Runs a command as it is printed.
#[track_caller]
fn run(command: &str) {
    let words: Vec<&str> = command.trim_start_matches("sudo ").split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output().expect("it is there");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Something is brought about; the doctor complains, and its command mends it.
#[track_caller]
fn mends(cause: &str, what: &str, verdict: &str, wanted: &str) {
    run(cause);
    let before = doctor("v0");
    assert_eq!(before.get("v0", what), (verdict, wanted));
    assert_eq!(before.status, Some(i32::from(verdict == "problem")), "{:?}", before.rows);
    run(wanted);
    // A link takes a moment to come up.
    for _ in 0..600 {
        if doctor("v0").get("v0", what) == ("ok", "") {
            return;
        }
        pause();
    }
    panic!("{wanted} does not mend {what}: {:?}", doctor("v0").rows);
}

fn pair() {
    let queues = "numrxqueues 2 numtxqueues 2";
    ip(&format!("link add v0 {queues} type veth peer name v1 {queues}"));
    ip("link set v0 up");
    ip("link set v1 up");
}

#[test]
fn what_is_wrong_with_an_interface_is_mended_by_the_command() {
    let test = "doctor::what_is_wrong_with_an_interface_is_mended_by_the_command";
    if !namespace(test) {
        return;
    }
    pair();
    mends("ip link set v0 down", "link", "problem", "sudo ip link set v0 up");
    mends("ip link set v0 mtu 9000", "MTU", "note", "sudo ip link set v0 mtu 3818");
    if Command::new("ethtool").arg("--version").output().is_err() {
        skip(test, "offloads and queues: ethtool is not there");
        return;
    }
    mends("ethtool -K v0 gro on", "GRO", "note", "sudo ethtool -K v0 gro off");
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if processors < 2 {
        skip(test, "queues: one processor needs no more than one");
        return;
    }
    mends("ethtool -L v0 rx 1", "queues", "note", "sudo ethtool -L v0 rx 2");
}

#[test]
fn a_link_without_its_other_end_and_a_foreign_program_are_told() {
    let test = "doctor::a_link_without_its_other_end_and_a_foreign_program_are_told";
    if !namespace(test) {
        return;
    }
    pair();
    ip("link set v1 down");
    let findings = doctor("v0");
    assert_eq!((findings.get("v0", "link"), findings.status), (("problem", ""), Some(1)));
    // Without a name all that are up are looked at, but for the loopback interface.
    let binary = env!("CARGO_BIN_EXE_weir");
    let all = Findings::of(Command::new(binary).args(["doctor", "-o", "json"]));
    assert!(all.rows.iter().all(|row| row["where"] != "v1" && row["where"] != "lo"));
    assert_eq!(all.get("v0", "link"), ("problem", ""));

    let mut none = Command::new(binary);
    let output = none.args(["doctor", "-i", "nosuch0"]).output().expect("the binary runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(told.contains("nosuch0: there is no such interface; there are lo, "), "{told}");
}

/// A user who may not capture is told how he may.
#[test]
fn a_user_without_permissions_is_told_which() {
    let test = "doctor::a_user_without_permissions_is_told_which";
    if !namespace(test) {
        return;
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        skip(test, "setpriv, of util-linux, is not there");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), everybody).expect("ours");
    let binary = folder.path().join("weir");
    std::fs::copy(env!("CARGO_BIN_EXE_weir"), &binary).expect("copies");
    let nobody = |more: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).args(more);
        command.arg("--").arg(&binary).args(["doctor", "-i", "lo", "-o", "json"]);
        Findings::of(&mut command)
    };
    let findings = nobody(&[]);
    let mend = "sudo setcap cap_net_raw+ep \"$(command -v weir)\"";
    assert_eq!(findings.get("system", "capture"), ("problem", mend));
    assert_eq!(findings.status, Some(1));
    let raw = ["--inh-caps", "+net_raw", "--ambient-caps", "+net_raw"];
    let findings = nobody(&raw);
    assert_eq!(findings.get("system", "capture"), ("ok", ""));
    let (verdict, mend) = findings.get("system", "capture by AF_XDP");
    assert!(verdict == "note" && mend.contains("cap_bpf+ep"), "{mend}");
    assert_eq!(findings.status, Some(0));
}
