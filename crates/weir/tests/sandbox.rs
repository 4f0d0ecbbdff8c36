//! The permissions that a run gives up before it looks at packets: every thread of it, by all ways
//! that packets come; and that it still does what it did before, as root, as another user, and as
//! one who was given no more than he needs.

#![cfg(target_os = "linux")]

mod common;
#[path = "common/signal.rs"]
mod signal;
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

use common::{root, skip, workplace};
use signal::signal;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;
use wires::{Sender, namespace, pause, veth};

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);
const NOBODY: u32 = 65534;

/// A run, which ends with the test.
struct Run {
    child: Child,
    input: Option<ChildStdin>,
    errors: Receiver<String>,
    said: Vec<String>,
}

impl Run {
    fn start(mut command: Command) -> Run {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("the binary runs");
        let (to, errors) = mpsc::channel();
        let from = child.stderr.take().expect("piped");
        std::thread::spawn(move || {
            BufReader::new(from).lines().map_while(Result::ok).try_for_each(|line| to.send(line))
        });
        let input = child.stdin.take();
        Run { child, input, errors, said: Vec::new() }
    }

    /// Waits until a line begins so, and gives it.
    fn until(&mut self, start: &str) -> String {
        loop {
            let line = self.errors.recv_timeout(LONG);
            let line = line.unwrap_or_else(|_| panic!("no `{start}` after {:?}", self.said));
            self.said.push(line.clone());
            if line.starts_with(start) {
                return line;
            }
        }
    }

    /// Waits until it has a thread of each of these names, and gives what the kernel says of all.
    fn threads(&self, names: &[&str]) -> Vec<Thread> {
        let folder = format!("/proc/{}/task", self.child.id());
        for _ in 0..1200 {
            let tasks = std::fs::read_dir(&folder).expect("it runs").flatten();
            let all: Vec<Thread> = tasks.filter_map(|task| Thread::of(&task.path())).collect();
            if names.iter().all(|name| all.iter().any(|thread| thread.is("Name", name))) {
                return all;
            }
            pause();
        }
        panic!("no threads {names:?}; said {:?}", self.said);
    }

    /// Writes more captured frames, and says whether it said this line meanwhile.
    fn goes_on(&mut self, frames: &[u8], line: &str) -> bool {
        let input = self.input.as_mut().expect("piped");
        input.write_all(frames).and_then(|()| input.flush()).expect("it is read");
        pause();
        self.said.extend(self.errors.try_iter());
        self.said.iter().any(|said| said == line)
    }

    /// Its rows, and what it said with single blanks, once it has ended with this status.
    fn end(mut self, status: i32) -> (String, String) {
        drop(self.input.take());
        let mut rows = String::new();
        self.child.stdout.take().expect("piped").read_to_string(&mut rows).expect("text");
        let ended = self.child.wait().expect("ends");
        self.said.extend(self.errors.iter());
        let said = self.said.join("\n");
        assert_eq!(ended.code(), Some(status), "{said}");
        let squeezed = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
        (rows, self.said.iter().map(squeezed).collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Of a failed test; else it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The status of a thread in the kernel: /proc/PID/task/TID/status.
struct Thread(String);

impl Thread {
    /// `None` where it has ended.
    fn of(task: &Path) -> Option<Thread> {
        std::fs::read_to_string(task.join("status")).ok().map(Thread)
    }

    fn value(&self, key: &str) -> &str {
        let line = self.0.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {key} in {}", self.0)).trim()
    }

    fn is(&self, key: &str, value: &str) -> bool {
        self.value(key) == value
    }

    /// Its capabilities, of any set.
    fn capabilities(&self) -> u64 {
        let sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"].map(|set| self.set(set));
        sets.iter().fold(0, |all, set| all | set)
    }

    fn set(&self, name: &str) -> u64 {
        u64::from_str_radix(self.value(name), 16).expect("a number")
    }
}

/// Nothing, a moment later.
fn pause_for_more() -> Option<Vec<Thread>> {
    pause();
    None
}

/// All that a run began with is given up, but these capabilities; the bounding set is empty where
/// the run could empty it, as root can.
#[track_caller]
fn confined(threads: &[Thread], capabilities: u64) {
    let own = Thread::of(Path::new("/proc/self")).expect("procfs");
    let bounds = own.set("CapEff") >> SETPCAP & 1 == 1;
    confined_as(threads, capabilities, bounds);
}

#[track_caller]
fn confined_as(threads: &[Thread], capabilities: u64, bounds: bool) {
    for thread in threads {
        let status = &thread.0;
        assert!(thread.is("NoNewPrivs", "1"), "{status}");
        assert!(thread.is("Seccomp", "2"), "{status}");
        assert_eq!(thread.capabilities(), capabilities, "{status}");
        assert_eq!((thread.set("CapInh"), thread.set("CapAmb")), (0, 0), "{status}");
        assert!(!bounds || thread.set("CapBnd") == 0, "{status}");
    }
}

/// The number of CAP_SETPCAP, which takes to empty the bounding set.
const SETPCAP: u32 = 8;

fn weir(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).current_dir(root());
    command
}

/// Whether the test runs as root, or says by name that it is skipped.
fn is_root(test: &str) -> bool {
    let status = Thread(std::fs::read_to_string("/proc/self/status").expect("procfs"));
    let root = status.value("Uid").starts_with("0\t0");
    if !root {
        skip(test, "it takes root");
    }
    root
}

/// A folder that everybody may write in, with the binary in it.
fn everybodys() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let everybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), everybody).expect("ours");
    let binary = folder.path().join("weir");
    std::fs::copy(env!("CARGO_BIN_EXE_weir"), &binary).expect("copies");
    (folder, binary)
}

fn capture(frames: usize) -> Vec<u8> {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    for i in 0..frames {
        let frame = udp(i);
        header.put_record(&mut bytes, i as i64, frame.len() as u32, &frame);
    }
    bytes
}

fn udp(i: usize) -> Vec<u8> {
    let frame = Frame::ethernet().ipv4([10, 0, 0, i as u8], [192, 0, 2, 1]);
    frame.udp(9, 1000 + i as u16).payload(&[i as u8; 40]).bytes()
}

#[test]
fn every_thread_of_a_stream_gives_up_everything() {
    let args = ["top", "-r", "-", "-j", "4", "--stats", "3600", "-v", "--slow-sink", "drop"];
    let mut run = Run::start(weir(&args));
    let told = run.until("sandbox: ");
    let kernel = std::fs::read_to_string("/proc/self/status").expect("procfs");
    if !kernel.contains("Seccomp:") || told.contains("this kernel has no") {
        skip("sandbox::every_thread_of_a_stream_gives_up_everything", &told);
        return;
    }
    assert!(told.starts_with("sandbox: no capabilities; no further files (Landlock"), "{told}");
    assert!(told.ends_with("; no programs, no sockets (seccomp)"), "{told}");
    let input = run.input.as_mut().expect("piped");
    input.write_all(&capture(3)).and_then(|()| input.flush()).expect("it is read");
    let names = ["weir", "signals", "stats", "sink", "stream"];
    // With three more workers.
    let all = || Some(run.threads(&names)).filter(|all| all.len() >= names.len() + 3);
    let threads = (0..1200).find_map(|_| all().or_else(pause_for_more));
    confined(&threads.expect("all of them begin"), 0);
    // Signals are heard all the same; they are answered with the next packets.
    signal(run.child.id(), "-USR1");
    let more = &capture(1)[24..];
    let sent = (1..1200).find(|_| run.goes_on(more, "so far:")).expect("it answers");
    let (rows, said) = run.end(0);
    assert!(said.contains(&format!("received {} packets", 3 + sent)), "{said}");
    assert!(rows.contains("192.0.2.1"), "{rows}");
}

/// The thread that writes the packets around rows begins after everything was given up, and makes
/// its files all the same.
#[test]
fn the_thread_that_writes_captures_gives_up_everything() {
    let folder = workplace();
    let out = folder.path().join("out");
    let query = "packets | where number == 1 | project ts, ip.src | capture 1h by ip.src";
    let to = out.to_str().expect("plain");
    let mut run = Run::start(weir(&["run", "-e", query, "-r", "-", "-v", "--capture-dir", to]));
    let told = run.until("sandbox: ");
    if told.contains("this kernel has no") {
        skip("sandbox::the_thread_that_writes_captures_gives_up_everything", &told);
        return;
    }
    let input = run.input.as_mut().expect("piped");
    input.write_all(&capture(3)).and_then(|()| input.flush()).expect("it is read");
    let threads = run.threads(&["weir", "signals", "stream", "captures"]);
    let capabilities = threads[0].capabilities();
    // CAP_DAC_OVERRIDE at most.
    assert_eq!(capabilities & !(1 << 1), 0, "{}", threads[0].0);
    confined(&threads, capabilities);
    let (_, said) = run.end(0);
    assert!(said.contains("captured 1 packet in 1 file"), "{said}");
    assert_eq!(std::fs::read_dir(&out).expect("there").count(), 1, "{said}");
}

/// The thread that decompresses begins after everything was given up, too.
#[test]
fn every_thread_of_a_compressed_capture_gives_up_everything() {
    let folder = workplace();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|s| s.success()), "mkfifo, of coreutils");
    let pipe = pipe.to_str().expect("plain");
    let run = Run::start(weir(&["top", "-r", pipe, "-v"]));
    let writing = pipe.to_owned();
    let mut writer = std::thread::spawn(move || {
        std::fs::OpenOptions::new().write(true).open(writing).expect("it is read")
    })
    .join()
    .expect("it opens");
    let mut gzip = Command::new("gzip")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip is there");
    gzip.stdin.take().expect("piped").write_all(&capture(2000)).expect("it is read");
    let mut bytes = Vec::new();
    gzip.stdout.take().expect("piped").read_to_end(&mut bytes).expect("it is written");
    gzip.wait().expect("it ends");
    let half = bytes.len() / 2;
    writer.write_all(&bytes[..half]).expect("it is read");
    let threads = run.threads(&["stream", "decompress", "signals"]);
    let reads = 1 << 2; // CAP_DAC_READ_SEARCH: root opens pipes of others.
    let root = !threads[0].value("Uid").starts_with("0\t0");
    confined(&threads, if root { 0 } else { reads });
    writer.write_all(&bytes[half..]).expect("it is read");
    drop(writer);
    let (_, said) = run.end(0);
    assert!(said.contains("received 2000 packets"), "{said}");
    assert!(said.contains(&format!("; reads {pipe} (Landlock")), "{said}");
}

#[test]
fn what_nobody_asked_for_is_not_given_up() {
    let mut run = Run::start(weir(&["top", "-r", "-", "-v", "--no-sandbox"]));
    assert_eq!(run.until("sandbox: "), "sandbox: none (--no-sandbox)");
    let threads = run.threads(&["signals", "stream"]);
    let own = Thread::of(Path::new("/proc/self")).expect("procfs");
    for thread in &threads {
        assert_eq!(thread.value("NoNewPrivs"), own.value("NoNewPrivs"));
        assert_eq!(thread.value("Seccomp"), own.value("Seccomp"));
        assert_eq!(thread.value("CapEff"), own.value("CapEff"));
    }
    let (_, said) = run.end(1);
    assert!(said.contains("-: "), "an empty input is no capture: {said}");
}

/// Captures packets that arrive, as whoever the command is; says what each thread is while it does.
/// `bounds`: whether it may empty the bounding set.
fn captures(command: Command, bounds: bool) {
    let mut run = Run::start(command);
    run.until("listening on v1");
    let told = run.until("sandbox: ");
    assert!(told.contains("no programs, no sockets"), "{told}");
    confined_as(&run.threads(&["signals", "sink"]), 0, bounds);
    let sender = Sender::new("v0");
    (0..20).for_each(|i| sender.send(&udp(i)));
    let (rows, said) = run.end(0);
    assert_eq!(rows.lines().count(), 21, "{rows}\n{said}");
    assert!(said.contains("received 20 packets"), "{said}\n{told}");
}

const LIVE: [&str; 10] =
    ["run", "-e", "packets | project number, ip.src", "-i", "v1", "-c", "20", "-o", "csv", "-l"];

#[test]
fn captures_give_up_everything_once_they_are_open() {
    if !namespace("sandbox::captures_give_up_everything_once_they_are_open") {
        return;
    }
    veth("v0", "v1");
    for more in [&[][..], &["-j", "2"], &["--capture", "xdp"], &["--capture", "xdp", "udp"]] {
        captures(weir(&[&LIVE[..], more].concat()), true);
    }
}

/// As a user who was given nothing but what a capture takes, by ambient capabilities (as of a
/// systemd unit) or by those of the file.
#[test]
fn captures_need_no_root() {
    let test = "sandbox::captures_need_no_root";
    if !namespace(test) {
        return;
    }
    let works = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !works("setpriv") {
        skip(test, "setpriv, of util-linux, is not there");
        return;
    }
    veth("v0", "v1");
    let (folder, binary) = everybodys();
    let nobody = |more: &str| {
        let mut command = Command::new("setpriv");
        let id = NOBODY.to_string();
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).args(more.split(' '));
        command.arg("--").arg(&binary).args(LIVE).current_dir(folder.path());
        command
    };
    captures(nobody("--inh-caps +net_raw --ambient-caps +net_raw"), false);
    let mut xdp = nobody(
        "--inh-caps +net_raw,+net_admin,+bpf,+ipc_lock --ambient-caps \
         +net_raw,+net_admin,+bpf,+ipc_lock",
    );
    xdp.args(["--capture", "xdp"]);
    captures(xdp, false);
    let set = Command::new("setcap").arg("cap_net_raw+ep").arg(&binary).output();
    match set {
        Ok(output) if output.status.success() => captures(nobody("--inh-caps -all"), false),
        Ok(output) => skip(test, &String::from_utf8_lossy(&output.stderr)),
        Err(_) => skip(test, "file capabilities: setcap, of libcap2-bin, is not there"),
    }
}

/// Root becomes somebody else once captures are open, and before files are written.
#[test]
fn root_is_given_up_for_a_user() {
    if !is_root("sandbox::root_is_given_up_for_a_user") {
        return;
    }
    let (folder, binary) = everybodys();
    for (name, bytes) in [("a.pcap", capture(3)), ("b.pcap", capture(4))] {
        std::fs::write(folder.path().join(name), bytes).expect("writes");
        let roots = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(folder.path().join(name), roots).expect("ours");
    }
    let run = |args: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(args).current_dir(folder.path());
        Run::start(command)
    };
    let written = |name: &str| {
        let meta = std::fs::metadata(folder.path().join(name)).expect("it was written");
        (meta.uid(), meta.gid(), meta.len() > 0)
    };
    let query = "packets | pass\npackets | project number";
    let both = ["run", "-e", query, "-r", "a.pcap", "-r", "b.pcap", "-Z", "nobody", "-v"];
    let to = ["-w", "out.pcap", "-C", "1k", "--out-dir", "rows"];
    let (_, said) = run(&[&both[..], &to].concat()).end(0);
    assert!(said.contains("running as nobody (uid 65534, gid 65534)"), "{said}");
    assert!(said.contains("passed 7 packets"), "{said}");
    let rows = std::fs::read_dir(folder.path().join("rows")).expect("made").count();
    assert_eq!((rows, written("out.pcap")), (1, (NOBODY, NOBODY, true)));

    let mut stream = run(&["top", "-r", "-", "-Z", "65534", "-v"]);
    stream.until("sandbox: ");
    let threads = stream.threads(&["signals", "stream"]);
    confined(&threads, 0);
    for thread in &threads {
        let [user, group] = ["Uid", "Gid"].map(|key| thread.value(key).to_owned());
        assert_eq!([user, group], ["65534\t65534\t65534\t65534"; 2]);
        assert!(thread.value("Groups").split(' ').all(|group| group != "0"), "{}", thread.0);
    }
    drop(stream);

    // He may write no more than he may.
    let denied = ["run", "-e", "packets | pass", "-r", "a.pcap", "-Z", "nobody"];
    let (_, said) = run(&[&denied[..], &["-w", "/root-only.pcap"]].concat()).end(1);
    assert!(said.contains("/root-only.pcap: Permission denied"), "{said}");
    assert!(!Path::new("/root-only.pcap").exists());
    let (_, said) = run(&[&denied[..5], &["-Z", "no-such-user", "-w", "x.pcap"]].concat()).end(2);
    assert!(said.contains("-Z no-such-user: there is no such user"), "{said}");
}

#[test]
fn only_root_becomes_another() {
    let test = "sandbox::only_root_becomes_another";
    if !is_root(test) {
        return;
    }
    let (folder, binary) = everybodys();
    let path = folder.path().join("a.pcap");
    std::fs::write(&path, capture(1)).expect("writes");
    let check = |user: &str, status: i32, part: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        command.arg(&binary).args(["top", "-v", "-Z", user, "-r"]).arg(&path);
        let (_, said) = Run::start(command).end(status);
        assert!(said.contains(part), "{said}");
    };
    if Command::new("setpriv").arg("--version").output().is_err() {
        skip(test, "setpriv, of util-linux, is not there");
        return;
    }
    check("root", 2, "-Z root: only root can become another user");
    check("nobody", 0, "running as nobody");
}

/// Files are cut, pipes and lists of captures opened, names in filters looked up, whatever else is
/// out of reach by then.
#[test]
fn what_a_run_needs_later_stays_in_reach() {
    let folder = workplace();
    let run = |args: &[&str]| {
        let mut command = weir(args);
        command.current_dir(folder.path());
        Run::start(command)
    };
    std::fs::create_dir(folder.path().join("out")).expect("makes");
    std::fs::write(folder.path().join("a.pcap"), capture(100)).expect("writes");
    let passed = |files: usize, args: &[&str]| {
        let (_, said) = run(&[&["run", "-e", "packets | pass", "-v"], args].concat()).end(0);
        let written = std::fs::read_dir(folder.path().join("out")).expect("there").count();
        assert_eq!(written, files, "{said}");
        said
    };
    let said = passed(10, &["-r", "a.pcap", "-w", "out/x.pcap", "-C", "1k"]);
    let out = std::fs::canonicalize(folder.path().join("out")).expect("there");
    assert!(said.contains(&format!("; writes in {} (Landlock", out.display())), "{said}");
    // A filter meets a second link type after everything was given up.
    let both = ["-r", "a.pcap", "-r", "fixtures/raw.pcap", "-w", "out/both.pcapng"];
    let filter = ["host", "192.0.2.1", "or", "tcp", "port", "domain"];
    let said = passed(11, &[&both[..], &filter].concat());
    assert!(said.contains("looks up names"), "{said}");
}

/// The unit for systemd is one, and gives the service little: below 2.5 of 10 by systemd's own
/// measure.
#[test]
fn the_service_is_well_formed_and_confined() {
    let test = "sandbox::the_service_is_well_formed_and_confined";
    let unit = common::text("packaging/weir@.service");
    let folder = tempfile::tempdir().expect("a folder");
    let installed = "/usr/local/bin/weir";
    assert!(unit.contains(&format!("ExecStart={installed} run ")));
    let unit = unit.replace(installed, env!("CARGO_BIN_EXE_weir"));
    std::fs::write(folder.path().join("weir@.service"), unit).expect("writes");
    let instance = folder.path().join("weir@eth0.service");
    std::os::unix::fs::symlink("weir@.service", &instance).expect("links");
    let analyze = |args: &[&str]| {
        let output = Command::new("systemd-analyze").args(args).arg(&instance).output();
        output.map(|o| (o.status.success(), [o.stdout, o.stderr].concat()))
    };
    let Ok((verified, said)) = analyze(&["--man=no", "verify"]) else {
        skip(test, "systemd-analyze, of systemd, is not there");
        return;
    };
    let said = String::from_utf8_lossy(&said);
    // Of other units it may find what it likes.
    let faults: Vec<&str> = said.lines().filter(|line| line.contains("weir@")).collect();
    assert!(verified && faults.is_empty(), "{said}");
    let offline = ["--offline=true", "--threshold=25", "--no-pager", "security"];
    let (confined, said) = analyze(&offline).expect("it was there");
    let said = String::from_utf8_lossy(&said);
    if said.contains("unrecognized option") {
        skip(test, "this systemd-analyze rates running services only");
        return;
    }
    assert!(confined, "{said}");
}

/// Programs that come to a run may make files in the folders that it was given for them, which a
/// line names as they really are, and no more; its socket goes away with it.
#[test]
fn programs_that_come_have_what_they_were_given() {
    let folder = workplace();
    let inside = |name: &str| folder.path().join(name).to_str().expect("plain").to_owned();
    let real = |name: &str| std::fs::canonicalize(inside(name)).expect("there");
    for name in ["given", "elsewhere"] {
        std::fs::create_dir(inside(name)).expect("makes");
    }
    std::os::unix::fs::symlink("given", inside("link")).expect("links");
    let control = format!("--control={}", inside("socket"));
    let start = |more: &[&str]| {
        let args = ["run", "-e", "packets | limit 1", "-r", "-", "-v", &control];
        let mut command = weir(&[&args[..], more].concat());
        command.current_dir(folder.path());
        Run::start(command)
    };
    let mut run = start(&[]);
    let told = run.until("sandbox: ");
    if told.contains("any files") {
        skip("sandbox::programs_that_come_have_what_they_were_given", &told);
        return;
    }
    let socket = format!("; removes its socket from {} (Landlock", real(".").display());
    assert!(
        told.starts_with("sandbox: no capabilities; removes") && told.contains(&socket),
        "{told}"
    );
    run.end(1);

    let mut run = start(&["--allow-write", "link", "--out-dir", "out"]);
    let told = run.until("sandbox: ");
    let (given, out) = (real("given"), real("out"));
    for folder in [given, out] {
        assert!(told.contains(&format!("writes in {},", folder.display())), "{told}");
    }
    assert!(told.contains("no programs, no sockets (seccomp)"), "{told}");
    run.goes_on(&capture(1), "");
    let threads = run.threads(&["weir", "signals", "stream", "control"]);
    let capabilities = threads[0].capabilities();
    // CAP_DAC_OVERRIDE at most.
    assert_eq!(capabilities & !(1 << 1), 0, "{}", threads[0].0);
    confined(&threads, capabilities);
    // Changes are made between batches.
    let mut asked = |query: &str, name: &str| {
        let socket = inside("socket");
        let mut ctl = weir(&["ctl", "-S", &socket, "add", "-e", query, "--name", name]);
        let mut ctl = ctl.stderr(Stdio::piped()).spawn().expect("the binary runs");
        let ended = (0..1200).find_map(|_| {
            run.goes_on(&capture(1)[24..], "");
            ctl.try_wait().expect("it runs")
        });
        let mut said = String::new();
        ctl.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        (ended.expect("it ends").success(), said)
    };
    let (done, said) = asked("packets | mirror \"link/here.pcap\" | project number", "a");
    assert!(done, "{said}");
    let (done, said) = asked("packets | forward \"elsewhere/x.pcap\"", "b");
    assert!(!done && said.contains("make files only in"), "{said}");
    let (_, said) = run.end(0);
    assert!(folder.path().join("given/here.pcap").is_file(), "{said}");
    assert!(!folder.path().join("socket").exists(), "{said}");
    assert_eq!(std::fs::read_dir(inside("elsewhere")).expect("there").count(), 0);
}

/// The process that `weir serve` starts to keep captures sees no packet, and the runs that it starts
/// have no capability.
#[test]
fn the_process_that_keeps_captures_keeps_reading_only() {
    let test = "sandbox::the_process_that_keeps_captures_keeps_reading_only";
    if !is_root(test) {
        return;
    }
    let mut keeper = weir(&["keep-captures"]);
    let mut keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut input = keeper.stdin.take().expect("piped");
    input.write_all(b"{\"confines\":true,\"bytes\":0}\n").expect("it reads");
    let mut answer = String::new();
    BufReader::new(keeper.stdout.take().expect("piped")).read_line(&mut answer).expect("text");
    assert!(!answer.contains("error"), "{answer}");
    let thread = Thread::of(&PathBuf::from(format!("/proc/{}", keeper.id()))).expect("procfs");
    assert_eq!(thread.capabilities(), 1 << 2, "CAP_DAC_READ_SEARCH: {}", thread.0);
    assert_eq!(["CapInh", "CapAmb", "CapBnd"].map(|set| thread.set(set)), [0; 3], "{}", thread.0);
    assert!(thread.is("NoNewPrivs", "1"), "{}", thread.0);
    drop(input);
    assert!(keeper.wait().expect("it ends").success());
}
