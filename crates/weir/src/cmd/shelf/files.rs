//! The captures below a folder, and those that clients sent.

use super::refusal::Refusal;
use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// Bytes of a capture that is sent: as many as the body of a request has.
pub(super) const UPLOAD_MAX: u64 = 16 << 20;

/// Captures that were sent, at the same time.
pub(super) const UPLOADS_MAX: usize = 8;

/// Files that are listed, folders that are looked into, and how deep.
const LISTED_MAX: usize = 1000;
const FOLDERS_MAX: usize = 200;
const DEPTH_MAX: usize = 6;

/// Bytes of a name.
const NAME_MAX: usize = 1024;

/// The endings of the names of captures.
const ENDINGS: [&str; 9] = [
    ".pcap",
    ".pcapng",
    ".cap",
    ".pcap.gz",
    ".pcapng.gz",
    ".cap.gz",
    ".pcap.zst",
    ".pcapng.zst",
    ".cap.zst",
];

/// A folder below which captures may be read. No name leads out of it: neither by `..`, nor by a
/// symbolic link, nor by the links of `/proc`.
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// Opens it.
    ///
    /// # Errors
    /// If it is none, or may not be read.
    pub(super) fn open(path: &str) -> Result<Folder, String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, path, flags, Mode::empty());
        let folder = Folder(folder.map_err(|e| format!("{path}: {}", io::Error::from(e)))?);
        match folder.below(".", OFlags::DIRECTORY) {
            Ok(_) => Ok(folder),
            Err(Errno::NOSYS) => Err("this takes Linux 5.6 or later (openat2)".to_owned()),
            Err(e) => Err(format!("{path}: {}", io::Error::from(e))),
        }
    }

    fn below(&self, name: &str, more: OFlags) -> Result<OwnedFd, Errno> {
        let stays = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV;
        // A named pipe must not be waited for.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | more;
        openat2(&self.0, name, flags, Mode::empty(), stays)
    }

    /// A capture below it.
    ///
    /// # Errors
    /// If there is none of that name.
    pub(super) fn open_capture(&self, name: &str) -> Result<File, Refusal> {
        let none = || Refusal::missing(format!("{name}: there is no such capture"));
        // A capture that the list leaves out is not there; nor does a name go back by `..`.
        let is_hidden = name.split('/').any(|part| part.starts_with('.'));
        if name.len() > NAME_MAX || is_hidden || !is_capture(name) {
            return Err(none());
        }
        let file = self.below(name, OFlags::empty()).map_err(|_| none())?;
        let kind = fstat(&file).map(|stat| FileType::from_raw_mode(stat.st_mode));
        if kind != Ok(FileType::RegularFile) {
            return Err(none());
        }
        Ok(File::from(file))
    }

    /// The captures below it, by name, and whether there are more.
    pub(super) fn list(&self) -> (Vec<Value>, bool) {
        let (mut found, mut folders, mut more) = (Vec::new(), vec![(String::new(), 0)], false);
        let mut looked = 0;
        while let Some((folder, depth)) = folders.pop() {
            looked += 1;
            if looked > FOLDERS_MAX || depth > DEPTH_MAX || found.len() >= LISTED_MAX {
                more = true;
                continue;
            }
            self.look_into(&folder, depth, &mut found, &mut folders);
        }
        more |= found.len() > LISTED_MAX;
        found.sort();
        found.truncate(LISTED_MAX);
        let value = |(name, size): (String, u64)| {
            let capture = format!("file:{name}");
            json!({ "capture": capture, "title": name, "size": size })
        };
        (found.into_iter().map(value).collect(), more)
    }

    fn look_into(
        &self,
        folder: &str,
        depth: usize,
        found: &mut Vec<(String, u64)>,
        folders: &mut Vec<(String, usize)>,
    ) {
        let here = if folder.is_empty() { "." } else { folder };
        let Ok(opened) = self.below(here, OFlags::DIRECTORY) else { return };
        let mut buffer = vec![MaybeUninit::uninit(); 8192];
        let mut entries = RawDir::new(opened, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            // Names that are no text can't be asked for.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name.starts_with('.') || found.len() > LISTED_MAX || folders.len() > FOLDERS_MAX {
                continue;
            }
            let whole =
                if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            let Ok(opened) = self.below(&whole, OFlags::empty()) else { continue };
            let Ok(stat) = fstat(&opened) else { continue };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => folders.push((whole, depth + 1)),
                FileType::RegularFile if is_capture(name) => {
                    found.push((whole, stat.st_size as u64))
                }
                _ => {}
            }
        }
    }
}

/// Whether a name is that of a capture.
fn is_capture(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| lower.ends_with(ending))
}

/// Captures that clients sent.
#[derive(Default)]
pub(super) struct Uploads {
    uploads: Vec<Upload>,
    next: u64,
}

struct Upload {
    capture: String,
    title: String,
    size: u64,
    file: File,
}

impl Uploads {
    /// Keeps a capture; says what it is called from now on.
    ///
    /// # Errors
    /// If there is no room.
    pub(super) fn add(&mut self, title: &str, bytes: &[u8]) -> Result<String, Refusal> {
        if self.uploads.len() >= UPLOADS_MAX {
            return Err(Refusal::full(format!(
                "there are {UPLOADS_MAX} captures that were sent: remove one first"
            )));
        }
        let size = bytes.len() as u64;
        if size == 0 || size > UPLOAD_MAX {
            let most = UPLOAD_MAX >> 20;
            return Err(Refusal::wrong(format!("a capture has 1 byte to {most} MiB")));
        }
        let file = unnamed().and_then(|mut file| file.write_all(bytes).map(|()| file));
        let file = file.map_err(|e| Refusal::full(format!("it can't be kept: {e}")))?;
        self.next += 1;
        let capture = format!("upload:{}", self.next);
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let title: String = title.chars().map(plain).take(100).collect();
        let title = if title.is_empty() { "capture".to_owned() } else { title };
        self.uploads.push(Upload { capture: capture.clone(), title, size, file });
        Ok(capture)
    }

    /// Lets go of a capture.
    ///
    /// # Errors
    /// If there is none of that name.
    pub(super) fn remove(&mut self, capture: &str) -> Result<(), Refusal> {
        let at = self.uploads.iter().position(|upload| upload.capture == capture);
        let none = || Refusal::missing(format!("{capture}: no such capture was sent"));
        self.uploads.remove(at.ok_or_else(none)?);
        Ok(())
    }

    /// A capture, at its beginning.
    pub(super) fn open(&self, capture: &str) -> Result<File, Refusal> {
        let found = self.uploads.iter().find(|upload| upload.capture == capture);
        let none = || Refusal::missing(format!("{capture}: no such capture was sent"));
        let mut file = &found.ok_or_else(none)?.file;
        let again = file.rewind().and_then(|()| file.try_clone());
        again.map_err(|e| Refusal::wrong(format!("{capture}: {e}")))
    }

    pub(super) fn list(&self) -> Vec<Value> {
        let one = |upload: &Upload| {
            let Upload { capture, title, size, .. } = upload;
            json!({ "capture": capture, "title": title, "size": size })
        };
        self.uploads.iter().map(one).collect()
    }
}

/// A file without a name, in the folder for such files.
fn unnamed() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    Ok(File::from(openat(CWD, &folder, flags, Mode::RUSR | Mode::WUSR)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    fn folder() -> (tempfile::TempDir, Folder) {
        let all = tempfile::tempdir().expect("a folder");
        let at = |name: &str| all.path().join(name);
        fs::create_dir_all(at("in/deep")).expect("folders");
        fs::write(at("secret.pcap"), "secret").expect("writes");
        fs::write(at("in/a.pcap"), "a").expect("writes");
        fs::write(at("in/deep/b.pcapng.gz"), "bb").expect("writes");
        fs::write(at("in/notes.txt"), "no capture").expect("writes");
        fs::write(at("in/.hidden.pcap"), "hidden").expect("writes");
        fs::create_dir(at("in/folder.pcap")).expect("a folder");
        symlink("../secret.pcap", at("in/link.pcap")).expect("links");
        symlink("a.pcap", at("in/inner.pcap")).expect("links");
        symlink("..", at("in/up")).expect("links");
        let pipe = at("in/pipe.pcap");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
        let folder = Folder::open(at("in").to_str().expect("text")).expect("opens");
        (all, folder)
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let (all, folder) = folder();
        for (name, expected) in [("a.pcap", "a"), ("deep/b.pcapng.gz", "bb")] {
            let Ok(mut file) = folder.open_capture(name) else { panic!("{name}") };
            let mut text = String::new();
            file.read_to_string(&mut text).expect("reads");
            assert_eq!(text, expected);
        }
        let absolute = all.path().join("in/a.pcap").display().to_string();
        for name in [
            "../secret.pcap",
            "deep/../../secret.pcap",
            "deep/../a.pcap",
            "./a.pcap",
            ".hidden.pcap",
            "link.pcap",
            "inner.pcap",
            "up/secret.pcap",
            "up/in/a.pcap",
            "/proc/self/environ",
            "/proc/self/fd/0",
            &absolute,
            "folder.pcap",
            "pipe.pcap",
            "notes.txt",
            "none.pcap",
            "a.pcap/",
            "a.pcap\0.pcap",
            "",
            ".",
            "..",
            &format!("{}a.pcap", "./".repeat(2000)),
        ] {
            assert!(folder.open_capture(name).is_err(), "{name}");
        }
    }

    #[test]
    fn captures_are_listed_and_nothing_else() {
        let (_all, folder) = folder();
        let (found, more) = folder.list();
        let names: Vec<_> = found.iter().filter_map(|one| one["title"].as_str()).collect();
        assert_eq!((names, more), (vec!["a.pcap", "deep/b.pcapng.gz"], false));
        assert_eq!(
            (&found[1]["capture"], &found[1]["size"]),
            (&json!("file:deep/b.pcapng.gz"), &json!(2))
        );
        assert!(Folder::open("/no/such/folder").is_err());
        assert!(Folder::open("/etc/passwd").is_err());
    }

    #[test]
    fn captures_that_were_sent_are_few_and_go() {
        let mut held = Uploads::default();
        assert!(held.add("x", &[]).is_err());
        let first = held.add("../\u{1b}[31m evil.pcap", b"one").unwrap_or_default();
        assert_eq!(
            (first.as_str(), held.list()[0]["title"].as_str()),
            ("upload:1", Some("..___31m_evil.pcap"))
        );
        for _ in 0..2 {
            let mut text = String::new();
            let Ok(mut file) = held.open(&first) else { panic!("it is there") };
            file.read_to_string(&mut text).expect("reads");
            assert_eq!(text, "one");
        }
        assert!((1..UPLOADS_MAX).all(|_| held.add("x", b"x").is_ok()));
        assert!(held.add("x", b"x").is_err() && held.remove("upload:99").is_err());
        assert!(held.remove(&first).is_ok() && held.open(&first).is_err());
        assert_eq!(held.add("x", b"x").ok().as_deref(), Some("upload:9"));
    }
}
