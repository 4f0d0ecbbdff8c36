//! The socket that a run listens on.

use super::message::{Reply, Request, read, write_line};
use super::{Deck, Desk};
use crate::serve::{Bounds, Service, serve};
use anyhow::Context as _;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

/// How long one who asks may take over it, and over accepting the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many may ask at a time.
const CLIENTS_MAX: usize = 64;

/// Bytes of all questions together. One may have files of 512 MiB (see [`super::message`]).
const QUESTIONS_MAX: u64 = 640 << 20;

/// A socket that is listened on as long as this is there.
#[derive(Debug)]
pub(crate) struct Server {
    path: PathBuf,
    listener: UnixListener,
    /// Which file it is: another run may have put its own in the place.
    file: (u64, u64),
}

impl Server {
    /// Begins to listen. The file may be used by its owner only; what a run that ended left there
    /// goes away.
    ///
    /// # Errors
    /// If another run listens there, or it can't be made.
    pub(crate) fn bind(path: &Path) -> anyhow::Result<Server> {
        let shown = path.display();
        match UnixStream::connect(path) {
            Ok(_) => anyhow::bail!("{shown}: another run listens there"),
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                let kind = fs::symlink_metadata(path).with_context(|| shown.to_string())?;
                anyhow::ensure!(kind.file_type().is_socket(), "{shown}: is there, and no socket");
                fs::remove_file(path).with_context(|| shown.to_string())?;
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e).with_context(|| shown.to_string()),
        }
        // In a folder that nobody else may enter, until the permissions are right.
        let mut folder = path.as_os_str().to_owned();
        folder.push(format!(".{}", std::process::id()));
        let folder = PathBuf::from(folder);
        let inside = folder.join("socket");
        let made = DirBuilder::new().mode(0o700).create(&folder).and_then(|()| {
            let listener = UnixListener::bind(&inside)?;
            fs::set_permissions(&inside, Permissions::from_mode(0o600))?;
            let meta = fs::metadata(&inside)?;
            fs::rename(&inside, path)?;
            Ok((listener, (meta.dev(), meta.ino())))
        });
        // Where it isn't empty the first error has left it, which is told.
        drop(fs::remove_file(&inside));
        drop(fs::remove_dir(&folder));
        let (listener, file) = made.with_context(|| format!("{shown}: can't listen there"))?;
        Ok(Server { path: path.to_owned(), listener, file })
    }

    /// Makes it that of another user, which the run is about to become.
    ///
    /// # Errors
    /// When that is not allowed.
    pub(crate) fn give_to(&self, (user, group): (u32, u32)) -> anyhow::Result<()> {
        std::os::unix::fs::chown(&self.path, Some(user), Some(group))
            .with_context(|| self.path.display().to_string())
    }

    /// Answers in threads of its own, many at a time.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(&self, deck: Deck) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        let answers = Answers { desk: deck.desk(), deck: Mutex::new(deck) };
        let bounds =
            Bounds { clients: CLIENTS_MAX, ask: PATIENCE, accept: PATIENCE, bytes: QUESTIONS_MAX };
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || serve(&listener, answers, bounds))?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mine = |meta: fs::Metadata| (meta.dev(), meta.ino()) == self.file;
        if fs::symlink_metadata(&self.path).is_ok_and(mine) {
            // A file that can't be removed is found to be nobody's by the next run.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// What is asked by the socket, answered.
struct Answers {
    /// What changes programs, one at a time, ...
    deck: Mutex<Deck>,
    /// ... and what can be told meanwhile.
    desk: Desk,
}

impl Answers {
    fn reply(&self, request: Request) -> Reply {
        match request {
            Request::List => self.desk.list(),
            Request::Stats => self.desk.stats(),
            change => match self.deck() {
                Some(mut deck) => deck.answer(change),
                None => Reply::refusal(
                    "busy: another change of the programs is being made; try again later",
                ),
            },
        }
    }

    /// The deck, unless another change takes long: one waits for the run, which may wait for its
    /// source or for whoever reads its rows.
    fn deck(&self) -> Option<MutexGuard<'_, Deck>> {
        const STEP: Duration = Duration::from_millis(10);
        for _ in 0..PATIENCE.as_millis() / STEP.as_millis() {
            match self.deck.try_lock() {
                Ok(deck) => return Some(deck),
                Err(TryLockError::Poisoned(deck)) => return Some(deck.into_inner()),
                Err(TryLockError::WouldBlock) => thread::park_timeout(STEP),
            }
        }
        None
    }
}

impl Service for Answers {
    type Question = Request;

    fn read(&self, from: &mut dyn BufRead) -> io::Result<Request> {
        read(from)
    }

    fn answer(&self, asked: io::Result<Request>, to: &mut dyn Write) -> io::Result<()> {
        let reply = match asked {
            Ok(request) => self.reply(request),
            Err(e) if e.kind() == io::ErrorKind::TimedOut => {
                Reply::refusal(format!("no question came within {} s", PATIENCE.as_secs()))
            }
            Err(e) => Reply::refusal(format!("no question: {e}")),
        };
        write_line(to, &reply)
    }

    fn refuse(&self, to: &mut dyn Write) -> io::Result<()> {
        let reason = format!("busy: {CLIENTS_MAX} others ask at the same time; try again");
        write_line(to, &Reply::refusal(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_owner_may_use_it_and_nothing_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("weir.sock");
        let server = Server::bind(&path).expect("listens");
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let e = Server::bind(&path).expect_err("it is taken").to_string();
        assert!(e.ends_with("another run listens there"), "{e}");
        drop(server);
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 0);
    }

    #[test]
    fn what_a_run_left_is_replaced_and_what_is_another_s_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("weir.sock");
        drop(UnixListener::bind(&path).expect("listens"));
        let first = Server::bind(&path).expect("takes its place");
        fs::remove_file(&path).expect("there");
        let second = Server::bind(&path).expect("listens");
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
        fs::write(&path, "a file").expect("writes");
        let e = format!("{:#}", Server::bind(&path).expect_err("refused"));
        assert!(path.is_file() && e.ends_with("is there, and no socket"), "{e}");
    }
}
