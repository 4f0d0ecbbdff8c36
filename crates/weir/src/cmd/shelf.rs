//! The process that keeps captures for a run: it opens those below a folder, holds those that
//! clients sent, and starts a run for each query over one of them. It looks at no packet.
//!
//! Captures that were sent are files without a name, which are gone with this process, however it
//! ends.

mod files;
mod query;
mod refusal;

use crate::exit::Status;
use crate::shelf::{read_message, write_message};
use files::{Folder, Uploads};
use refusal::Refusal;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::fs::File;
use std::io;
use std::sync::Arc;
use weir_sandbox::{become_user, keep_reading};

/// Answers questions until the run has gone.
pub(crate) fn run() -> anyhow::Result<Status> {
    // Signals that end the run reach this process, too; it ends when the run has ended.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::default())?;
    }
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let setup = read_message(&mut input).ok().flatten();
    let Some((setup, _)) = setup else {
        anyhow::bail!("`weir serve` starts this command; it is of no use by itself");
    };
    let mut keeper = match CaptureKeeper::new(&setup) {
        Ok(keeper) => keeper,
        Err(why) => {
            write_message(&mut output, &json!({ "error": why }), &[])?;
            return Ok(Status::Usage);
        }
    };
    write_message(&mut output, &json!({}), &[])?;
    while let Some((question, bytes)) = read_message(&mut input)? {
        let (head, rows) = match keeper.answer(&question, bytes) {
            Ok(answer) => answer,
            Err(refusal) => (refusal.value(), Vec::new()),
        };
        write_message(&mut output, &head, &rows)?;
    }
    Ok(Status::Ok)
}

/// Keeps captures.
struct CaptureKeeper {
    folder: Option<Folder>,
    held: Uploads,
    confines: bool,
}

impl CaptureKeeper {
    fn new(setup: &Value) -> Result<CaptureKeeper, String> {
        if let Some(user) = setup["user"].as_str() {
            become_user(user).map_err(|e| format!("-Z {user}: {e}"))?;
        }
        let confines = setup["confines"] != false;
        if confines {
            keep_reading().map_err(|e| e.to_string())?;
        }
        let folder = setup["folder"].as_str().map(Folder::open).transpose()?;
        Ok(CaptureKeeper { folder, held: Uploads::default(), confines })
    }

    fn answer(&mut self, question: &Value, bytes: Vec<u8>) -> Result<(Value, Vec<u8>), Refusal> {
        let text = |name: &str| question[name].as_str().unwrap_or_default();
        let plain = |head: Value| Ok((head, Vec::new()));
        match text("do") {
            "list" => plain(self.list()),
            "add" => {
                let capture = self.held.add(text("title"), &bytes)?;
                plain(json!({ "capture": capture }))
            }
            "remove" => {
                self.held.remove(text("capture"))?;
                plain(json!({}))
            }
            "query" => {
                let file = self.open(text("capture"))?;
                query::run(file, text("text"), &question["params"], self.confines)
            }
            _ => Err(Refusal::wrong("no such question")),
        }
    }

    fn list(&self) -> Value {
        let (files, more) = self.folder.as_ref().map(Folder::list).unwrap_or_default();
        json!({
            "folder": self.folder.is_some(),
            "files": files,
            "more": more,
            "uploads": self.held.list(),
            "upload_bytes_max": files::UPLOAD_MAX,
            "uploads_max": files::UPLOADS_MAX,
        })
    }

    /// A capture at its beginning.
    fn open(&self, capture: &str) -> Result<File, Refusal> {
        match capture.split_once(':') {
            Some(("upload", _)) => self.held.open(capture),
            Some(("file", name)) => match &self.folder {
                Some(folder) => folder.open_capture(name),
                None => Err(Refusal::missing("this run has no folder of captures (--captures)")),
            },
            _ => Err(Refusal::missing(format!("{capture}: neither file:NAME nor upload:NUMBER"))),
        }
    }
}
