//! Network namespaces for tests: what is sent there nobody else sees, and they go with the test,
//! however it ends.

use crate::common::skip;
use crate::over_wires::{signal, until, until_some};
use nix::sched::{CloneFlags, unshare};
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace: that of a thread, and of the processes it starts.
pub(crate) struct Space {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// The number of the thread, by which interfaces are moved here.
    pub(crate) task: String,
}

impl Space {
    /// A new one, or `None` after saying which test is skipped for want of it.
    pub(crate) fn new(test: &str) -> Option<Space> {
        let (jobs, todo) = channel::<Job>();
        let (ready_in, ready) = channel();
        let thread = std::thread::spawn(move || {
            let task = std::fs::read_link("/proc/thread-self").expect("the number of a thread");
            let task = task.file_name().expect("a name").to_string_lossy().into_owned();
            drop(ready_in.send(unshare(CloneFlags::CLONE_NEWNET).map(|()| task)));
            todo.into_iter().for_each(|job| job());
        });
        match ready.recv().expect("the thread answers") {
            Ok(task) => {
                let space = Space { jobs: Some(jobs), thread: Some(thread), task };
                // The kernel itself is to send nothing.
                for which in ["all", "default"] {
                    space.set(&format!("net/ipv6/conf/{which}/disable_ipv6"), "1");
                }
                space.ip("link set lo up");
                Some(space)
            }
            Err(e) => {
                skip(test, &format!("no network namespace can be made ({e}); run as root"));
                None
            }
        }
    }

    /// Does something in the namespace.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let job = Box::new(move || drop(done.send(job())));
        self.jobs.as_ref().expect("open").send(job).expect("the thread is there");
        result.recv().expect("the job does not panic")
    }

    /// Sets a value below /proc/sys, if there is such.
    pub(crate) fn set(&self, what: &str, value: &'static str) {
        let path = format!("/proc/sys/{what}");
        self.run(move || drop(std::fs::write(path, value)));
    }

    /// Runs `ip`; panics unless it succeeds.
    pub(crate) fn ip(&self, words: &str) {
        self.try_ip(words).unwrap_or_else(|e| panic!("ip {words}: {e}"));
    }

    /// Waits until an interface has learned that the other end is up: until then it drops what it
    /// is to send, without a word.
    pub(crate) fn wait_for_carrier(&self, name: &str) {
        let name = name.to_owned();
        until("there is a carrier", || {
            let name = name.clone();
            let output = self.run(|| Command::new("ip").args(["link", "show"]).arg(name).output());
            let shown = output.expect("ip, of iproute2").stdout;
            let shown = String::from_utf8_lossy(&shown);
            shown.contains("LOWER_UP") && !shown.contains("qdisc noop ")
        });
    }

    /// Runs `ip`; what it says if it fails.
    pub(crate) fn try_ip(&self, words: &str) -> Result<(), String> {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let output = self.run(move || Command::new("ip").args(&words).output());
        let output = output.expect("ip, of iproute2");
        let told = || String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(told()) }
    }

    /// Makes a pair of interfaces that takes frames of any length: what one sends the other gets.
    pub(crate) fn veth(&self, one: &str, other: &str) {
        self.ip(&format!("link add {one} mtu 65535 type veth peer name {other} mtu 65535"));
        self.ip(&format!("link set {one} up"));
        self.ip(&format!("link set {other} up"));
    }

    /// Starts a program in the namespace.
    pub(crate) fn start(&self, mut command: Command) -> Child {
        self.run(move || command.spawn()).unwrap_or_else(|e| panic!("it starts: {e}"))
    }

    /// Runs Weir in a folder; panics unless it succeeds. The result is its standard error.
    pub(crate) fn weir(&self, folder: &Path, args: &[&str]) -> String {
        let output = self.attempt(folder, args);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {errors}");
        errors
    }

    /// Runs Weir in a folder.
    pub(crate) fn attempt(&self, folder: &Path, args: &[&str]) -> Output {
        let mut command = weir(folder, args);
        command.stdin(Stdio::null());
        self.run(move || command.output()).expect("it runs")
    }

    /// Starts Weir in a folder, with a capture on standard input.
    pub(crate) fn stream(&self, folder: &Path, args: &[&str]) -> Stream {
        let mut command = weir(folder, &[args, &["-r", "-"]].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = Guard(self.start(command));
        let input = child.0.stdin.take().expect("a pipe");
        let errors = Lines::of(child.0.stderr.take().expect("a pipe"));
        Stream { child, input: Some(input), rows: None, errors }
    }

    /// Starts Weir in a folder, on interfaces.
    pub(crate) fn live(&self, folder: &Path, args: &[&str]) -> Stream {
        let mut command = weir(folder, args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Guard(self.start(command));
        let rows = Some(Lines::of(child.0.stdout.take().expect("a pipe")));
        let errors = Lines::of(child.0.stderr.take().expect("a pipe"));
        Stream { child, input: None, rows, errors }
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        drop(self.jobs.take());
        // A thread that panicked has said so.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Connects two namespaces; interfaces have IPv4 and IPv6 addresses, numbered .1 and .2.
pub(crate) fn connect((a, one): (&Space, &str), (b, other): (&Space, &str)) {
    for space in [a, b] {
        for which in ["all", "default"] {
            space.set(&format!("net/ipv6/conf/{which}/disable_ipv6"), "0");
            space.set(&format!("net/ipv6/conf/{which}/accept_dad"), "0");
        }
    }
    a.ip(&format!("link add {one} type veth peer name {other}"));
    a.ip(&format!("link set {other} netns {}", b.task));
    for (space, name, number) in [(a, one, 1), (b, other, 2)] {
        space.ip(&format!("address add 192.0.2.{number}/24 dev {name}"));
        space.ip(&format!("address add 2001:db8::{number}/64 dev {name} nodad"));
        space.ip(&format!("link set {name} up"));
    }
    a.wait_for_carrier(one);
    b.wait_for_carrier(other);
}

fn weir(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).current_dir(folder);
    command
}

/// A process that ends with the test.
pub(crate) struct Guard(pub(crate) Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The output of a process, line by line, as it comes.
pub(crate) struct Lines {
    said: std::sync::Arc<std::sync::Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Lines {
    fn of(pipe: impl std::io::Read + Send + 'static) -> Lines {
        let said = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
        let to = std::sync::Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                *to.lock().expect("no panic") += &format!("{line}\n");
            }
        });
        Lines { said, reader: Some(reader) }
    }

    fn text(&self) -> String {
        self.said.lock().expect("no panic").clone()
    }
}

/// Weir, reading a capture that is still being written, or capturing itself.
pub(crate) struct Stream {
    child: Guard,
    input: Option<ChildStdin>,
    rows: Option<Lines>,
    errors: Lines,
}

impl Stream {
    /// Writes more of the capture.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("not over");
        input.write_all(bytes).expect("it is read");
        input.flush().expect("it is read");
    }

    /// Waits until it has said something so often on standard error.
    pub(crate) fn wait_for_report(&self, what: &str, times: usize) {
        until(what, || self.errors.text().matches(what).count() >= times);
    }

    /// Whether it has said something on standard error so far.
    pub(crate) fn has_reported(&self, what: &str) -> bool {
        self.errors.text().contains(what)
    }

    /// Its standard output so far.
    pub(crate) fn said(&self) -> String {
        self.rows.as_ref().map(Lines::text).unwrap_or_default()
    }

    /// Interrupts it; what was said on standard error.
    pub(crate) fn interrupt(self) -> String {
        signal(self.child.0.id(), "-INT");
        self.end()
    }

    /// Kills it, as nothing can prevent.
    pub(crate) fn kill(mut self) {
        self.child.0.kill().expect("it is there");
        self.child.0.wait().expect("it ends");
    }

    /// Its standard output, once it has ended by itself.
    pub(crate) fn rows(mut self) -> String {
        let mut rows = self.rows.take().expect("a run on interfaces");
        rows.reader.take().expect("once").join().expect("no panic");
        self.end();
        rows.text()
    }

    /// Ends the capture; what was said on standard error.
    pub(crate) fn end(mut self) -> String {
        drop(self.input.take());
        let status = self.child.0.wait().expect("it ends");
        self.errors.reader.take().expect("once").join().expect("no panic");
        let errors = self.errors.text();
        assert!(status.success(), "{errors}");
        errors
    }
}

/// tcpdump, writing what an interface receives.
pub(crate) struct Tap {
    _child: Guard,
    _errors: Lines,
    file: PathBuf,
}

impl Tap {
    /// Starts it, and waits until it captures; `None` after saying that it is not installed.
    pub(crate) fn start(test: &str, space: &Space, interface: &str, folder: &Path) -> Option<Tap> {
        let file = folder.join(format!("{interface}.seen"));
        let mut command = Command::new("tcpdump");
        command.args(["-n", "-U", "-s", "0", "-B", "32768", "-Z", "root"]);
        command.args(["-Q", "in", "-i", interface, "-w"]).arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let Ok(child) = space.run(move || command.spawn()) else {
            skip(test, "tcpdump is not installed");
            return None;
        };
        let mut child = Guard(child);
        let errors = Lines::of(child.0.stderr.take().expect("a pipe"));
        until("tcpdump listens", || errors.text().contains("listening on"));
        Some(Tap { _child: child, _errors: errors, file })
    }

    /// Waits until so many frames have come; all that have.
    pub(crate) fn frames(&self, n: usize) -> Vec<Vec<u8>> {
        let mut last = 0;
        until_some(&format!("{} has {n} frames", self.file.display()), || {
            let mut bytes = Vec::new();
            std::fs::File::open(&self.file).ok()?.read_to_end(&mut bytes).ok()?;
            let frames = whole_frames(bytes);
            last = last.max(frames.len());
            (frames.len() >= n).then_some(frames)
        })
    }
}

/// The frames of a capture that may break off.
fn whole_frames(bytes: Vec<u8>) -> Vec<Vec<u8>> {
    use weir_packet::source::FrameBatch;
    let options = weir_capture::Options { any_link: true, ..Default::default() };
    let Ok(mut source) = weir_capture::open_bytes("seen", bytes, &options) else {
        return Vec::new();
    };
    let (mut batch, mut all) = (FrameBatch::new(), Vec::new());
    while source.fill(&mut batch).unwrap_or(false) {
        all.extend((0..batch.len()).map(|i| batch.frame(i).to_vec()));
    }
    all
}
