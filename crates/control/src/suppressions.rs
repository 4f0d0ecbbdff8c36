//! The alerts that a run does not report: lists from files, and what clients add to them.

use crate::message::{Attached, Reply, Request, SuppressionState};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use weir_engine::suppress::SuppressionList;
use weir_lang::limits::SUPPRESSIONS_MAX;
use weir_plan::Suppression;

/// The list of a run, as clients change it. Clones are of the same list.
#[derive(Clone)]
pub struct Suppressions {
    list: SuppressionList,
    entries: Arc<Mutex<Entries>>,
}

/// Where entries come from.
#[derive(Default)]
struct Entries {
    files: Vec<Suppression>,
    clients: Vec<Suppression>,
}

impl Suppressions {
    /// The entries of files that a run begins with; its `list` follows what clients change.
    pub fn new(list: SuppressionList, files: Vec<Suppression>) -> Suppressions {
        let entries = Entries { files, clients: Vec::new() };
        Suppressions { list, entries: Arc::new(Mutex::new(entries)) }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock()
    }

    /// Does what a client asks of the list.
    pub(crate) fn answer(&self, request: Request) -> Reply {
        match request {
            Request::Suppress { line } => self.add(&line),
            Request::Unsuppress { line } => self.remove(&line),
            Request::ReloadSuppressions { files } => self.reload(&files),
            _ => self.show(),
        }
    }

    /// Adds a line, or puts it in place of the one that a client gave for the same alerts.
    fn add(&self, line: &str) -> Reply {
        let new = match one(line) {
            Ok(new) => new,
            Err(reply) => return *reply,
        };
        let mut entries = self.entries();
        entries.clients.retain(|old| !is_same(old, &new));
        if entries.files.len() + entries.clients.len() >= SUPPRESSIONS_MAX {
            return Reply::refusal(format!(
                "the list has {SUPPRESSIONS_MAX} lines, as many as may be"
            ));
        }
        let text = format!("suppressed {new}\n");
        entries.clients.push(new);
        self.apply(&entries);
        Reply { text, ..Reply::default() }
    }

    /// Removes what is said of the same alerts, whatever `until` says.
    fn remove(&self, line: &str) -> Reply {
        let gone = match one(line) {
            Ok(gone) => gone,
            Err(reply) => return *reply,
        };
        let mut entries = self.entries();
        let before = entries.files.len() + entries.clients.len();
        entries.files.retain(|old| !is_same(old, &gone));
        entries.clients.retain(|old| !is_same(old, &gone));
        match before - entries.files.len() - entries.clients.len() {
            0 => Reply::refusal(format!(
                "no line of the list says `{gone}`; `weir ctl suppressions` shows them"
            )),
            n => {
                self.apply(&entries);
                let plural = if n == 1 { "" } else { "s" };
                Reply { text: format!("removed {n} line{plural}\n"), ..Reply::default() }
            }
        }
    }

    /// Puts the lines of files in place of those that came from files before.
    fn reload(&self, files: &[Attached]) -> Reply {
        let mut all = Vec::new();
        for file in files {
            let Ok(text) = std::str::from_utf8(&file.bytes) else {
                return Reply::refusal(format!("{}: it is not a text", file.path));
            };
            match weir_lang::suppressions(text) {
                Ok(lines) => all.extend(lines),
                Err(bad) => return Reply::refusal(format!("{}: {bad}", file.path)),
            }
        }
        let mut entries = self.entries();
        if all.len() + entries.clients.len() > SUPPRESSIONS_MAX {
            return Reply::refusal(format!("a list has at most {SUPPRESSIONS_MAX} lines"));
        }
        let plural = if all.len() == 1 { "" } else { "s" };
        let text = format!("{} line{plural} instead of {}\n", all.len(), entries.files.len());
        entries.files = all;
        self.apply(&entries);
        Reply { text, ..Reply::default() }
    }

    /// Lists all lines.
    fn show(&self) -> Reply {
        let entries = self.entries();
        let state = |from: &'static str| {
            move |entry: &Suppression| SuppressionState {
                line: entry.to_string(),
                from: from.to_owned(),
            }
        };
        let files = entries.files.iter().map(state("file"));
        let suppressions = files.chain(entries.clients.iter().map(state("ctl"))).collect();
        Reply { suppressions, ..Reply::default() }
    }

    fn apply(&self, entries: &Entries) {
        self.list.set([&entries.files[..], &entries.clients[..]].concat());
    }
}

/// Whether two lines are about the same alerts.
fn is_same(a: &Suppression, b: &Suppression) -> bool {
    (&a.rule, &a.conditions) == (&b.rule, &b.conditions)
}

/// The one line that a client sends.
fn one(line: &str) -> Result<Suppression, Box<Reply>> {
    let refused = |cause: String| Box::new(Reply::refusal(cause));
    if line.contains('\n') {
        return Err(refused("one line at a time".to_owned()));
    }
    let read = weir_lang::suppression(line).map_err(refused)?;
    read.ok_or_else(|| refused("say which alerts: `RULE COLUMN=VALUE`".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(list: &Suppressions) -> Vec<String> {
        let all = list.show().suppressions;
        all.into_iter().map(|state| format!("{}: {}", state.from, state.line)).collect()
    }

    #[test]
    fn clients_add_and_remove_lines() {
        let file = weir_lang::suppressions("flood server=10.0.0.1\n* port=1").expect("a list");
        let list = Suppressions::new(SuppressionList::default(), file);
        assert_eq!(list.add("scan ip.src=10.0.0.0/8").error, None);
        let until = "scan ip.src=10.0.0.0/8 until 2026-11-21T05:51:15Z";
        assert_eq!(list.add(until).error, None);
        let expected = ["file: flood server=10.0.0.1", "file: * port=1", &format!("ctl: {until}")];
        assert_eq!(lines(&list), expected);
        assert_eq!(list.remove("scan ip.src=10.0.0.0/8").text, "removed 1 line\n");
        assert_eq!(list.remove("* port=1").text, "removed 1 line\n");
        let told = list.remove("* port=1").error.expect("refused");
        assert!(told.starts_with("no line of the list says `* port=1`"), "{told}");
        for bad in ["", "# x", "flood server", "a\nb", "flood a=\"x"] {
            assert!(list.add(bad).error.is_some(), "{bad:?}");
        }
        assert_eq!(lines(&list), ["file: flood server=10.0.0.1"]);
    }

    #[test]
    fn files_are_read_again_as_a_whole() {
        let list = Suppressions::new(SuppressionList::default(), Vec::new());
        list.add("x");
        let file = |text: &str| Attached {
            path: "list".to_owned(),
            len: text.len() as u64,
            bytes: text.as_bytes().to_vec(),
        };
        assert_eq!(list.reload(&[file("a\nb")]).text, "2 lines instead of 0\n");
        let told = list.reload(&[file("c\n"), file("d\ne f")]).error.expect("refused");
        assert!(told.starts_with("list: line 2: `f` is neither"), "{told}");
        assert_eq!(lines(&list), ["file: a", "file: b", "ctl: x"]);
    }
}
