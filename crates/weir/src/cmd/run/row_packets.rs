//! The packets of a row of the screen, looked for beside the run that it shows, and written into
//! files.

use serde_json::Value as Json;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread::{Builder, Scope};
use weir_http::NoPackets;
use weir_packet::time::{parse_rfc3339, rfc3339};
use weir_search::{Earlier, FoundFile, Sought, file_of, list_of};
use weir_top::{FoundPacket, FoundPackets};

/// Files of packets whose first has the same second.
const FILES_MAX: u32 = 1000;

/// The remedy where no folder was named.
const NO_FOLDER: &str = "start `weir top` with --capture-dir FOLDER, in which it may then write";

/// Looks for packets, one search at a time, and saves them, one file at a time.
pub(super) struct RowPackets<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    earlier: Arc<Earlier>,
    /// Where files may be written.
    folder: Option<PathBuf>,
    search: Option<RowSearch<FoundPackets>>,
    save: Option<RowSearch<String>>,
}

/// A search that goes on, and what it comes to.
struct RowSearch<T> {
    answer: Receiver<Result<T, String>>,
    stop: Arc<AtomicBool>,
}

impl<T> Drop for RowSearch<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl<T: Send> RowSearch<T> {
    /// Runs in a thread of `scope`, and is told by the flag that nobody waits any more.
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        body: impl FnOnce(&Arc<AtomicBool>) -> Result<T, String> + Send + 'scope,
    ) -> RowSearch<T>
    where
        T: 'scope,
    {
        let stop = Arc::<AtomicBool>::default();
        let (send, answer) = mpsc::channel();
        let (flag, failed) = (Arc::clone(&stop), send.clone());
        let body = move || {
            // No thread may wait for it any more.
            drop(send.send(body(&flag)));
        };
        let started = Builder::new().name("packets".to_owned()).spawn_scoped(scope, body);
        if let Err(e) = started.map(drop as fn(_)) {
            drop(failed.send(Err(no_thread(&e))));
        }
        RowSearch { answer, stop }
    }
}

/// The result of a search, once.
fn answered<T>(search: &mut Option<RowSearch<T>>) -> Option<Result<T, String>> {
    let found = match search.as_ref()?.answer.try_recv() {
        Err(TryRecvError::Empty) => return None,
        Err(TryRecvError::Disconnected) => Err("the search failed".to_owned()),
        Ok(found) => found,
    };
    *search = None;
    Some(found)
}

impl<'scope, 'env> RowPackets<'scope, 'env> {
    /// Looks there, by threads of `scope`, and writes files into a folder, if one is named.
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        earlier: Earlier,
        folder: Option<PathBuf>,
    ) -> RowPackets<'scope, 'env> {
        RowPackets { scope, earlier: Arc::new(earlier), folder, search: None, save: None }
    }

    /// Looks for packets, and for those of an earlier search no more.
    pub(super) fn look_for(&mut self, sought: Option<Result<Sought, NoPackets>>) {
        self.search = None;
        let Some(sought) = sought else { return };
        let earlier = Arc::clone(&self.earlier);
        let body = move |stop: &Arc<AtomicBool>| search(sought, &earlier, stop).map_err(told);
        self.search = Some(RowSearch::start(self.scope, body));
    }

    /// The result of the search, once.
    pub(super) fn found(&mut self) -> Option<Result<FoundPackets, String>> {
        answered(&mut self.search)
    }

    /// Writes packets into a file, unless that is being done already.
    pub(super) fn save(&mut self, sought: Result<Sought, NoPackets>) {
        if self.save.is_some() {
            return;
        }
        let earlier = Arc::clone(&self.earlier);
        let folder = self.folder.clone();
        let body = move |stop: &Arc<AtomicBool>| match folder {
            Some(folder) => save(&sought.map_err(told)?, &earlier, &folder, stop),
            None => Err(NO_FOLDER.to_owned()),
        };
        self.save = Some(RowSearch::start(self.scope, body));
    }

    /// The fate of the file, once.
    pub(super) fn saved(&mut self) -> Option<Result<String, String>> {
        answered(&mut self.save)
    }

    /// Ends what goes on.
    pub(super) fn end(&mut self) {
        (self.search, self.save) = (None, None);
    }
}

fn no_thread(e: &io::Error) -> String {
    format!("the system gives no thread to look for packets: {e}")
}

/// Writes packets into a new file, and says how many and what is missing.
fn save(
    sought: &Sought,
    earlier: &Earlier,
    folder: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<String, String> {
    let FoundFile { bytes, packets, first, notes } =
        file_of(sought, earlier, stop).map_err(told)?;
    let Some(first) = first else { return Err("there are no such packets any more".to_owned()) };
    let (path, mut file) =
        new_file(folder, first).map_err(|e| format!("{}: {e}", folder.display()))?;
    let written = file.write_all(&bytes).and_then(|()| file.sync_all());
    written.map_err(|e| format!("{}: {e}", path.display()))?;
    let lacks = match notes.is_empty() {
        true => String::new(),
        false => format!(" ({})", notes.join("; ")),
    };
    Ok(format!("{packets} packets are in {}{lacks}", path.display()))
}

/// A new file that is called by the time of its first packet, to the second.
fn new_file(folder: &Path, first: i64) -> io::Result<(PathBuf, File)> {
    let time = rfc3339(first).replace(':', "-");
    let time = time.get(..19).unwrap_or(&time);
    for n in 1..=FILES_MAX {
        let again = if n > 1 { format!("-{n}") } else { String::new() };
        let path = folder.join(format!("packets-{time}{again}.pcapng"));
        match File::create_new(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (path, file)),
        }
    }
    Err(io::Error::other(format!("there are {FILES_MAX} files of this second already")))
}

fn told(why: NoPackets) -> String {
    match why {
        NoPackets::Wrong(why, text) => format!("{why}: {text}"),
        NoPackets::Unknown(why) | NoPackets::Impossible(why) | NoPackets::Busy(why) => why,
    }
}

fn search(
    sought: Result<Sought, NoPackets>,
    earlier: &Earlier,
    stop: &Arc<AtomicBool>,
) -> Result<FoundPackets, NoPackets> {
    list_of(&sought?, earlier, stop).map(|answer| for_screen(&answer))
}

/// An answer of the API, as the screen shows it.
fn for_screen(answer: &Json) -> FoundPackets {
    let packets = answer["packets"].as_array().map(Vec::as_slice).unwrap_or_default();
    let packets: Vec<FoundPacket> = packets.iter().map(packet).collect();
    let of_ring = answer["source"] == "ring";
    let (n, mut notes) = (packets.len(), Vec::new());
    if answer["more"] == true {
        let which = if of_ring { "latest" } else { "first" };
        notes.push(format!("there are more: these are the {which} {n}"));
    }
    if answer["cut_short"] == true {
        notes.push("the search took too long, and was ended".to_owned());
    }
    if answer["gone"] == true {
        let kept = answer["kept_from"].as_str();
        notes.push(match kept {
            Some(from) => format!("packets are kept since {from}; earlier ones are gone"),
            None => "packets that came before are gone".to_owned(),
        });
    }
    let texts = |name: &str| -> Vec<&str> {
        answer[name].as_array().into_iter().flatten().filter_map(Json::as_str).collect()
    };
    let passed_over = texts("passed_over");
    if !passed_over.is_empty() {
        let stages = passed_over.join(", ");
        notes.push(format!("others may be among them: {stages} can't be followed back"));
    }
    if let Some(error) = answer["error"].as_str() {
        notes.push(error.to_owned());
    }
    let condition = Some(texts("query").join(" | ")).filter(|text| !text.is_empty());
    FoundPackets { packets, notes, condition }
}

fn packet(answer: &Json) -> FoundPacket {
    let text = |value: &Json| match value {
        Json::String(text) => text.clone(),
        value => value.to_string(),
    };
    let time = answer["time"].as_str().and_then(parse_rfc3339).unwrap_or_default();
    let length = answer["length"].as_u64().unwrap_or_default();
    let mut fields = Vec::new();
    for name in ["interface", "direction"] {
        if let Some(value) = answer[name].as_str() {
            fields.push((name.to_owned(), value.to_owned()));
        }
    }
    // Fields that only say what a packet is not would fill the screen.
    let of_frame = answer["fields"].as_object().into_iter().flatten();
    let of_frame = of_frame.filter(|(_, value)| **value != Json::Bool(false));
    fields.extend(of_frame.map(|(name, value)| (name.clone(), text(value))));
    FoundPacket { time, length, fields }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_is_told_in_sentences() {
        let packet = json!({
            "time": "2026-11-21T05:50:53.227Z",
            "length": 60,
            "interface": "eth0",
            "fields": { "ip.src": "192.0.2.1", "tcp.syn": true, "arp": false, "sport": 7 },
        });
        let found = for_screen(&json!({
            "packets": [packet], "more": true, "source": "ring", "gone": true,
            "kept_from": "2026-11-21T05:50:00Z", "cut_short": true, "error": "broken",
            "passed_over": ["limit", "top"], "query": ["where tcp", "where dport == 7"],
        }));
        assert_eq!(found.condition.as_deref(), Some("where tcp | where dport == 7"));
        assert_eq!(
            found.notes,
            [
                "there are more: these are the latest 1",
                "the search took too long, and was ended",
                "packets are kept since 2026-11-21T05:50:00Z; earlier ones are gone",
                "others may be among them: limit, top can't be followed back",
                "broken",
            ]
        );
        let fields =
            [("interface", "eth0"), ("ip.src", "192.0.2.1"), ("sport", "7"), ("tcp.syn", "true")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!((found.packets[0].length, &found.packets[0].fields[..]), (60, &fields[..]));
        assert!(found.packets[0].time > 1_700_000_000_000_000_000);
        let none = for_screen(&json!({ "packets": [], "source": "captures" }));
        assert_eq!(none, FoundPackets::default());
    }
}
