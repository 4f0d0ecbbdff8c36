//! Folders that a run was given for new files: clients that name files there can't lead it
//! elsewhere, nor to a file that exists.

use super::error::WriteError;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// The flags that open a folder which need not be readable.
#[cfg(target_os = "linux")]
const HANDLE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const HANDLE: OFlags = OFlags::RDONLY;

/// A folder in which files are made that are new. It is held open: it stays the same folder
/// whatever becomes of its name.
#[derive(Debug)]
pub struct Folder {
    /// Its name, from the root of the file system on.
    named: PathBuf,
    /// The same without symbolic links.
    real: PathBuf,
    handle: OwnedFd,
}

impl Folder {
    /// Opens a folder that is there.
    ///
    /// # Errors
    /// Those of the system; [`WriteError::Root`] for the root of the file system.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let flags = HANDLE | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(CWD, path, flags, Mode::empty())?;
        let (stat, root) = (fstat(&handle)?, std::fs::metadata("/")?);
        if (stat.st_dev, stat.st_ino) == (root.dev(), root.ino()) {
            return Err(WriteError::Root.into());
        }
        Ok(Folder { named: std::path::absolute(path)?, real: path.canonicalize()?, handle })
    }

    /// Where it is, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.real
    }

    /// Makes a file in it.
    ///
    /// # Errors
    /// Those of the system, [`io::ErrorKind::AlreadyExists`] where something has that name, be it
    /// a symbolic link that leads nowhere; and if the name is not that of a file in this folder.
    pub fn create_new(&self, name: &OsStr) -> io::Result<File> {
        let mut parts = Path::new(name).components();
        let first = parts.next();
        if parts.next().is_some() || !matches!(first, Some(Component::Normal(part)) if part == name)
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o666);
        Ok(File::from(openat(&self.handle, name, new | OFlags::CLOEXEC, mode)?))
    }

    /// The name of a file in this folder, if the path is that of one. Paths are compared as they
    /// are written: no file is looked at.
    fn name_of<'a>(&self, path: &'a str) -> Option<&'a OsStr> {
        let name = Path::new(path).file_name().filter(|name| {
            // Else it ends in a slash, say.
            path.as_bytes().ends_with(name.as_encoded_bytes())
        })?;
        let parent = Path::new(path).parent().filter(|parent| *parent != Path::new(""));
        let parent = std::path::absolute(parent.unwrap_or(Path::new("."))).ok()?;
        (parent == self.named || parent == self.real).then_some(name)
    }
}

/// The folders in which outlets that come later make files.
#[derive(Default, Debug)]
pub(crate) struct NewFiles(pub(crate) Vec<Folder>);

impl NewFiles {
    /// Makes a file for an outlet. Gives where it is, and the file.
    ///
    /// # Errors
    /// Those of the system; [`WriteError::NotAllowed`], [`WriteError::Exists`].
    pub(super) fn create(&self, path: &str) -> io::Result<(PathBuf, File)> {
        let found = self.0.iter().find_map(|folder| Some((folder, folder.name_of(path)?)));
        let Some((folder, name)) = found else {
            let folders = self.0.iter().map(|folder| folder.real.clone()).collect();
            return Err(WriteError::NotAllowed { name: path.to_owned(), folders }.into());
        };
        let made = folder.create_new(name).map_err(|e| match e.raw_os_error() {
            Some(code) if code == Errno::EXIST.raw_os_error() => {
                WriteError::Exists { name: path.to_owned() }.into()
            }
            _ => WriteError::of(path)(e),
        })?;
        Ok((folder.real.join(name), made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_are_new_and_in_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        for name in ["given", "given/deep", "other"] {
            std::fs::create_dir(place(name)).expect("makes");
        }
        for (name, to) in [
            ("link", "given"),
            ("given/out", "../other"),
            ("given/dangling", "../other/x"),
            ("given/self", "self"),
        ] {
            symlink(to, place(name)).expect("links");
        }
        for name in ["given/old", "other/theirs"] {
            std::fs::write(place(name), "old").expect("writes");
        }
        std::fs::hard_link(place("other/theirs"), place("given/hard")).expect("links");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mkfifoat(CWD, place("given/pipe"), mode).expect("makes");
        let files = NewFiles(vec![Folder::open(&place("link")).expect("opens")]);
        let create = |name: &str| {
            let path = place(name).to_str().expect("plain").to_owned();
            let told = files.create(&path).map(|(path, _)| path.display().to_string());
            let told = told.unwrap_or_else(|e| e.to_string());
            told.replace(&format!("{}/", folder.path().display()), "")
        };
        assert_eq!(create("given/a"), "given/a");
        assert_eq!(create("link/b"), "given/b");
        assert_eq!(create("given//.//c"), "given/c");
        for name in ["old", "a", "hard", "pipe", "out", "dangling", "self", "deep"] {
            let told = create(&format!("given/{name}"));
            assert!(told.contains("exists already"), "{told}");
        }
        for name in [
            "x",
            "other/x",
            "given/deep/x",
            "given/out/x",
            "given/../x",
            "given/../given/x",
            "given/deep/../x",
            "given/",
            "given/x/",
            "given/x/.",
            "given/..",
            "given/.",
        ] {
            let told = create(name);
            let only = told.contains("make files only in ") && told.contains("given");
            assert!(only, "{name}: {told}");
        }
        let long = create(&format!("given/{}", "n".repeat(4096)));
        assert!(long.contains("name too long"), "{long}");
        // Another folder takes its name, and gets nothing.
        std::fs::rename(place("given"), place("moved")).expect("moves");
        symlink("other", place("given")).expect("links");
        assert_eq!(create("given/d"), "given/d");
        assert!(place("moved/d").exists() && !place("other/d").exists());
        assert_eq!(std::fs::read_dir(place("other")).expect("there").count(), 1);
        assert_eq!(std::fs::read_to_string(place("other/theirs")).expect("there"), "old");
    }

    #[test]
    fn nothing_is_made_where_no_folder_was_given() {
        let error = NewFiles::default().create("x.pcap").expect_err("refused").to_string();
        assert!(error.contains("start the run with --allow-write FOLDER"), "{error}");
    }

    #[test]
    fn the_root_is_no_such_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        symlink("/", folder.path().join("root")).expect("links");
        for path in [Path::new("/"), Path::new("/tmp/.."), &folder.path().join("root")] {
            let error = Folder::open(path).expect_err("refused").to_string();
            assert!(error.contains("whole file system"), "{error}");
        }
        assert!(Folder::open(&folder.path().join("none")).is_err());
    }
}
