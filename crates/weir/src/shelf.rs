//! Captures that clients may ask queries of beside the run: those below a folder of `--captures`,
//! and those that clients sent.
//!
//! A process of its own keeps them, which the run starts before it gives anything up
//! (`cmd/shelf.rs`): a run can open no file and start no process later. It sees no packet either:
//! for each query it starts a `weir run`, which confines itself as every run does, and gets the
//! open file as its standard input. Questions and answers are a line of JSON each, and bytes.

use crate::args::ConfineArgs;
use anyhow::Context as _;
use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use weir_http::{ShelfAnswer, ShelfQuestion, ShelfRefusal};

/// The command that starts the process.
const COMMAND: &str = "keep-captures";

/// Bytes of a line: a list of the longest names, and the text of the longest request, with each
/// character escaped, take half of them.
const LINE_MAX: u64 = 32 << 20;

/// Bytes that follow a line.
pub(crate) const BYTES_MAX: u64 = 32 << 20;

/// How long a client waits for another one's question.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the process, one question at a time.
pub(crate) struct Shelf(Mutex<ShelfProcess>);

struct ShelfProcess {
    child: Child,
    /// Whether a question or an answer broke off: what comes next would be of another question.
    is_broken: bool,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// This program, by its name, which `ps` shows; where the file was replaced, it has none any more.
pub(crate) fn own_command() -> Command {
    let own = std::env::current_exe().ok().filter(|path| path.exists());
    let mut command = Command::new(own.unwrap_or_else(|| PathBuf::from("/proc/self/exe")));
    command.arg0("weir");
    command
}

/// Writes a line, and the bytes that go with it.
pub(crate) fn write_message(to: &mut dyn Write, head: &Value, bytes: &[u8]) -> io::Result<()> {
    let mut head = head.clone();
    head["bytes"] = bytes.len().into();
    let line = format!("{head}\n");
    // A line that is cut would shift all answers after it.
    if line.len() as u64 > LINE_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a message is too long"));
    }
    to.write_all(line.as_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

/// Reads a line, and the bytes that go with it; `None` at the end.
pub(crate) fn read_message(from: &mut dyn BufRead) -> io::Result<Option<(Value, Vec<u8>)>> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut line = Vec::new();
    if from.take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let head: Value = serde_json::from_slice(&line)?;
    let len = head["bytes"].as_u64().filter(|len| *len <= BYTES_MAX);
    let len = len.ok_or_else(|| wrong("a message without its length"))?;
    let mut bytes = Vec::new();
    if from.take(len).read_to_end(&mut bytes)? as u64 != len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((head, bytes)))
}

impl Shelf {
    /// Starts the process, before there are threads.
    ///
    /// # Errors
    /// If it can't be started, or the folder can't be read.
    pub(crate) fn start(
        folder: Option<&Path>,
        confine: &ConfineArgs,
    ) -> anyhow::Result<Arc<Shelf>> {
        let mut command = own_command();
        command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("the process that keeps captures")?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.context("the process that keeps captures has no pipes")?;
        let output = BufReader::new(output);
        let mut process = ShelfProcess { child, is_broken: false, input, output };
        let setup = json!({
            "folder": folder,
            "user": confine.relinquish_privileges,
            "confines": !confine.no_sandbox,
        });
        let (answer, _) = process.ask(&setup, &[]).context("the process that keeps captures")?;
        match answer["error"].as_str() {
            Some(why) => Err(crate::exit::usage(format!("--captures: {why}"))),
            None => Ok(Arc::new(Shelf(Mutex::new(process)))),
        }
    }

    /// From now on calls `tell` if the process dies, and says how.
    pub(crate) fn watch(&self, tell: impl FnOnce(&str) + Send + 'static) -> io::Result<()> {
        let process = self.lock().map(|process| Pid::from_child(&process.child));
        let Some(id) = process else { return Ok(()) };
        thread::Builder::new().name("captures".to_owned()).spawn(move || {
            // The one that asks it waits for it, too.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let status = loop {
                match waitid(WaitId::Pid(id), options) {
                    Err(Errno::INTR) => {}
                    status => break status.ok().flatten(),
                }
            };
            let how = status.map(|status| (status.exit_status(), status.terminating_signal()));
            let how = match how {
                // It ends so where the run does.
                Some((Some(0), _)) => return,
                Some((_, Some(signal))) => format!("by signal {signal}"),
                Some((Some(status), _)) => format!("with status {status}"),
                _ => "too early".to_owned(),
            };
            tell(&format!(
                "the process that keeps captures has ended {how}, and its uploads with it"
            ));
        })?;
        Ok(())
    }

    /// Answers clients.
    pub(crate) fn answer(&self, question: ShelfQuestion) -> Result<ShelfAnswer, ShelfRefusal> {
        let (head, bytes) = match question {
            ShelfQuestion::List => (json!({ "do": "list" }), Vec::new()),
            ShelfQuestion::Add { title, bytes } => (json!({ "do": "add", "title": title }), bytes),
            ShelfQuestion::Remove { capture } => {
                (json!({ "do": "remove", "capture": capture }), Vec::new())
            }
            ShelfQuestion::Query { capture, text, params } => (
                json!({ "do": "query", "capture": capture, "text": text, "params": params }),
                Vec::new(),
            ),
        };
        let Some(mut process) = self.lock() else {
            let reason = "another client asks a query of a capture; try again".to_owned();
            return Err(ShelfRefusal::Busy(reason));
        };
        let (mut head, rows) = process.ask(&head, &bytes).map_err(|e| match e.kind() {
            io::ErrorKind::InvalidInput => ShelfRefusal::Wrong(e.to_string(), String::new()),
            _ => ShelfRefusal::Ended(format!(
                "the process that keeps captures has ended, and its uploads with it; start the run \
                 again ({e})"
            )),
        })?;
        drop(process);
        if let Some(reason) = head["error"].as_str() {
            let (reason, text) = (reason.to_owned(), head["text"].as_str().unwrap_or_default());
            return Err(match head["kind"].as_str() {
                Some("missing") => ShelfRefusal::Missing(reason),
                Some("full") => ShelfRefusal::Full(reason),
                _ => ShelfRefusal::Wrong(reason, text.to_owned()),
            });
        }
        if let Some(all) = head.as_object_mut() {
            all.remove("bytes");
        }
        Ok(ShelfAnswer { head, rows })
    }

    /// The process, unless others ask for long.
    fn lock(&self) -> Option<MutexGuard<'_, ShelfProcess>> {
        self.0.try_lock_for(PATIENCE)
    }
}

impl ShelfProcess {
    fn ask(&mut self, head: &Value, bytes: &[u8]) -> io::Result<(Value, Vec<u8>)> {
        if self.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let asked = write_message(&mut self.input, head, bytes);
        let answer = asked.and_then(|()| read_message(&mut self.output));
        let answer = answer.and_then(|answer| answer.ok_or(io::ErrorKind::UnexpectedEof.into()));
        // A message that was too long was not begun.
        if answer.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::InvalidInput) {
            self.is_broken = true;
            // It may have ended by itself.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_after_an_answer_that_broke_off() {
        let mut command = Command::new("sh");
        command.args(["-c", r#"read a; echo x; read b; echo '{"bytes":0}'"#]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh runs");
        let (input, output) = (child.stdin.take().expect("one"), child.stdout.take().expect("one"));
        let output = BufReader::new(output);
        let mut process = ShelfProcess { child, is_broken: false, input, output };
        assert!(process.ask(&json!({}), &[]).is_err());
        // Its second answer would be one to the first question.
        assert!(process.ask(&json!({}), &[]).is_err());
        let _ = process.child.wait();
    }

    /// It died unseen, unless a client asked.
    #[test]
    fn the_death_of_the_process_is_told() {
        let told_of = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().expect("sh runs");
            let (input, output) =
                (child.stdin.take().expect("one"), child.stdout.take().expect("one"));
            let output = BufReader::new(output);
            let process = ShelfProcess { child, is_broken: false, input, output };
            let shelf = Shelf(Mutex::new(process));
            let (tell, told) = std::sync::mpsc::channel();
            shelf.watch(move |how| tell.send(how.to_owned()).expect("it waits")).expect("a thread");
            told.recv().ok()
        };
        assert!(told_of("kill -9 $$").expect("told").contains("has ended by signal 9"));
        assert!(told_of("exit 3").expect("told").contains("has ended with status 3"));
        assert_eq!(told_of("exit 0"), None, "so it ends with the run");
    }

    #[test]
    fn a_process_that_has_ended_is_not_taken_for_a_busy_one() {
        let mut command = Command::new("true");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("true runs");
        let (input, output) = (child.stdin.take().expect("one"), child.stdout.take().expect("one"));
        let process =
            ShelfProcess { child, is_broken: false, input, output: BufReader::new(output) };
        let shelf = Shelf(Mutex::new(process));
        // A question that can't be asked changes nothing.
        let title = "x".repeat(LINE_MAX as usize);
        let long = shelf.answer(ShelfQuestion::Add { title, bytes: Vec::new() });
        assert!(matches!(long, Err(ShelfRefusal::Wrong(..))), "{long:?}");
        for _ in 0..2 {
            let refused = shelf.answer(ShelfQuestion::List);
            assert!(
                matches!(&refused, Err(ShelfRefusal::Ended(why)) if why.contains("start the run")),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn lines_that_nobody_would_read_whole_are_not_written() {
        let mut bytes = Vec::new();
        let long = "x".repeat(LINE_MAX as usize);
        assert!(write_message(&mut bytes, &json!({ "text": long }), &[]).is_err());
        assert!(bytes.is_empty());
        write_message(&mut bytes, &json!({ "text": "\u{1}".repeat(5 << 20) }), &[])
            .expect("writes");
        assert!(read_message(&mut &bytes[..]).expect("reads").is_some());
    }

    #[test]
    fn messages_come_whole_or_not_at_all() {
        let mut bytes = Vec::new();
        write_message(&mut bytes, &json!({ "do": "add" }), b"a\nb").expect("in memory");
        write_message(&mut bytes, &json!({ "do": "list" }), b"").expect("in memory");
        let mut from = &bytes[..];
        let (head, rest) = read_message(&mut from).expect("reads").expect("one");
        assert_eq!((head["do"].as_str(), rest), (Some("add"), b"a\nb".to_vec()));
        assert_eq!(read_message(&mut from).expect("reads").expect("two").0["do"], "list");
        assert!(read_message(&mut from).expect("reads").is_none());
        for cut in 1..bytes.len() {
            let mut from = &bytes[..cut];
            while let Ok(Some((head, _))) = read_message(&mut from) {
                assert!(head["do"].is_string());
            }
        }
        for wrong in ["{}\n", "[]\n", "{\"bytes\":-1}\n", "{\"bytes\":99999999999}\n", "x\n", "\n"]
        {
            assert!(read_message(&mut wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
