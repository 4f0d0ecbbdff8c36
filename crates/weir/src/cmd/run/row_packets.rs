//! The packets of a row of the screen, looked for beside the run that it shows.

use crate::packets::{Earlier, that_meet};
use serde_json::Value as Json;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread::{Builder, Scope};
use weir_http::NoPackets;
use weir_packet::time::parse_rfc3339;
use weir_top::{FoundPacket, FoundPackets};

/// What a search comes to.
type SearchResult = Result<FoundPackets, String>;

/// Looks for packets, one search at a time.
pub(super) struct RowPackets<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    earlier: Arc<Earlier>,
    search: Option<RowSearch>,
}

/// A search that goes on.
struct RowSearch {
    answer: Receiver<SearchResult>,
    stop: Arc<AtomicBool>,
}

impl Drop for RowSearch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl<'scope, 'env> RowPackets<'scope, 'env> {
    /// Looks there, by threads of `scope`.
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        earlier: Earlier,
    ) -> RowPackets<'scope, 'env> {
        RowPackets { scope, earlier: Arc::new(earlier), search: None }
    }

    /// Looks for the packets that meet a condition, and for those of an earlier one no more.
    pub(super) fn look_for(&mut self, condition: Option<&str>) {
        self.search = None;
        let Some(condition) = condition else { return };
        let stop = Arc::<AtomicBool>::default();
        let (send, answer) = mpsc::channel();
        let (condition, earlier) = (condition.to_owned(), Arc::clone(&self.earlier));
        let (flag, failed) = (Arc::clone(&stop), send.clone());
        let body = move || {
            // Nobody may wait for it any more.
            drop(send.send(search(&condition, &earlier, &flag)));
        };
        let started = Builder::new().name("packets".to_owned()).spawn_scoped(self.scope, body);
        if let Err(e) = started.map(drop as fn(_)) {
            drop(failed.send(Err(no_thread(&e))));
        }
        self.search = Some(RowSearch { answer, stop });
    }

    /// What the search has come to, once.
    pub(super) fn found(&mut self) -> Option<SearchResult> {
        let found = match self.search.as_ref()?.answer.try_recv() {
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err("the search failed".to_owned()),
            Ok(found) => found,
        };
        self.search = None;
        Some(found)
    }
}

fn no_thread(e: &io::Error) -> String {
    format!("the system gives no thread to look for packets: {e}")
}

fn search(condition: &str, earlier: &Earlier, stop: &Arc<AtomicBool>) -> SearchResult {
    match that_meet(condition, earlier, stop) {
        Ok(answer) => Ok(for_screen(&answer)),
        Err(NoPackets::Wrong(why, text)) => Err(format!("{why}: {text}")),
        Err(NoPackets::Unknown(why) | NoPackets::Impossible(why) | NoPackets::Busy(why)) => {
            Err(why)
        }
    }
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
    if let Some(error) = answer["error"].as_str() {
        notes.push(error.to_owned());
    }
    FoundPackets { packets, notes }
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
    // What a packet is not would fill the screen.
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
        }));
        assert_eq!(
            found.notes,
            [
                "there are more: these are the latest 1",
                "the search took too long, and was ended",
                "packets are kept since 2026-11-21T05:50:00Z; earlier ones are gone",
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
