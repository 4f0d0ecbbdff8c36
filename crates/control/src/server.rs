//! The socket that a run listens on.

use crate::limits::{CLIENT_PATIENCE, CLIENT_RATE, CLIENTS_MAX, REQUESTS_MAX};
use crate::message::{Reply, Request, read, write_line};
use crate::overview::{Overview, ShownProgram};
use crate::registry::Registry;
use crate::serve::{Bounds, Service, Taker, serve};
use crate::suppressions::Suppressions;
use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

/// Why a run can't listen on a socket.
#[derive(Debug)]
#[non_exhaustive]
pub enum SocketError {
    /// Another run listens there.
    Taken(PathBuf),
    /// The file exists, and is no socket.
    NoSocket(PathBuf),
    /// The socket could not be made.
    Listen(PathBuf, io::Error),
    /// The system refused something else.
    Io(PathBuf, io::Error),
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocketError::Taken(path) => write!(f, "{}: another run listens there", path.display()),
            SocketError::NoSocket(path) => {
                write!(f, "{}: the file exists and is not a socket", path.display())
            }
            SocketError::Listen(path, e) => {
                write!(f, "{}: can't listen there: {e}", path.display())
            }
            SocketError::Io(path, e) => write!(f, "{}: {e}", path.display()),
        }
    }
}

impl std::error::Error for SocketError {}

/// A socket on which a run listens until this is dropped.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    listener: UnixListener,
    /// Device and inode of the file: another run may have put its own in the place.
    file: (u64, u64),
}

impl Server {
    /// Begins to listen. Only the file's owner may use it. A socket that an earlier run left there
    /// is removed.
    ///
    /// # Errors
    /// If another run listens there, or the socket can't be made.
    pub fn bind(path: &Path) -> Result<Server, SocketError> {
        let failed = |e| SocketError::Io(path.to_owned(), e);
        match UnixStream::connect(path) {
            Ok(_) => return Err(SocketError::Taken(path.to_owned())),
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                if !fs::symlink_metadata(path).map_err(failed)?.file_type().is_socket() {
                    return Err(SocketError::NoSocket(path.to_owned()));
                }
                fs::remove_file(path).map_err(failed)?;
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(e)),
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
        // It is not empty only after an error, which is reported.
        drop(fs::remove_file(&inside));
        drop(fs::remove_dir(&folder));
        let (listener, file) = made.map_err(|e| SocketError::Listen(path.to_owned(), e))?;
        Ok(Server { path: path.to_owned(), listener, file })
    }

    /// Gives the socket to another user and group, which the run is about to become.
    ///
    /// # Errors
    /// If that is not allowed.
    pub fn give_to(&self, user: u32, group: u32) -> Result<(), SocketError> {
        std::os::unix::fs::chown(&self.path, Some(user), Some(group))
            .map_err(|e| SocketError::Io(self.path.clone(), e))
    }

    /// Answers clients in threads of its own, many at a time.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(&self, answers: Arc<Answers>) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        let bounds = Bounds {
            clients: CLIENTS_MAX,
            ask: CLIENT_PATIENCE,
            accept: CLIENT_PATIENCE,
            bytes_per_second: CLIENT_RATE,
            bytes: REQUESTS_MAX,
        };
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || serve(&listener, SocketService(answers), bounds))?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mine = |meta: fs::Metadata| (meta.dev(), meta.ino()) == self.file;
        if fs::symlink_metadata(&self.path).is_ok_and(mine) {
            // Where the file can't be removed, the next run finds that nobody listens there.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Answers the requests of clients, of whatever socket.
pub struct Answers {
    /// Changes programs, one change at a time.
    registry: Mutex<Registry>,
    /// Answers the other requests meanwhile.
    overview: Overview,
    /// Says which alerts are not reported.
    suppressions: Suppressions,
}

impl Answers {
    /// Answers about the programs of a registry, and changes them.
    pub fn new(registry: Registry) -> Answers {
        Answers {
            overview: registry.overview(),
            suppressions: registry.suppressions(),
            registry: Mutex::new(registry),
        }
    }

    /// A program that runs, by its name.
    pub fn program(&self, name: &str) -> Option<ShownProgram> {
        self.overview.program(name)
    }

    /// The programs that run, in the order of their pipelines, and how many pipelines each has.
    pub fn layout(&self) -> Vec<(String, usize)> {
        self.overview.layout()
    }

    /// Does what a client asks. Several threads may ask at a time.
    pub fn reply(&self, request: Request) -> Reply {
        match request {
            Request::List => self.overview.list(),
            Request::Stats => self.overview.stats(),
            // These wait for no change of programs, and change nothing that one does.
            Request::Suppressions
            | Request::Suppress { .. }
            | Request::Unsuppress { .. }
            | Request::ReloadSuppressions { .. } => self.suppressions.answer(request),
            change => match self.registry() {
                Some(mut registry) => registry.answer(change),
                None => Reply::refusal(
                    "busy: another change of the programs is being made; try again later",
                ),
            },
        }
    }

    /// The registry, unless another change takes long: a change waits for the run, which may wait
    /// for its source or for the reader of its rows.
    fn registry(&self) -> Option<MutexGuard<'_, Registry>> {
        self.registry.try_lock_for(CLIENT_PATIENCE)
    }
}

/// Answers the clients of the control socket.
struct SocketService(Arc<Answers>);

impl Service for SocketService {
    type Question = Request;

    fn read(&self, from: &mut dyn BufRead) -> io::Result<Request> {
        read(from)
    }

    fn answer(&self, asked: io::Result<Request>, mut to: &mut dyn Taker) -> io::Result<()> {
        let reply = match asked {
            Ok(request) => self.0.reply(request),
            Err(e) if e.kind() == io::ErrorKind::TimedOut => {
                let seconds = CLIENT_PATIENCE.as_secs();
                Reply::refusal(format!(
                    "no whole question came within {seconds} s, or it came too slowly"
                ))
            }
            Err(e) => Reply::refusal(format!("no question: {e}")),
        };
        write_line(&mut to, &reply)
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
        let e = Server::bind(&path).expect_err("refused").to_string();
        assert!(path.is_file() && e.ends_with("exists and is not a socket"), "{e}");
    }
}
