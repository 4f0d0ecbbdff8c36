//! The socket that a run listens on.

use super::Deck;
use super::message::{Reply, read, write_line};
use anyhow::Context as _;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufReader, BufWriter, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long one who asks may take over it: others wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);

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

    /// Answers in a thread of its own, one question after the other.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(&self, mut deck: Deck) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        thread::Builder::new().name("control".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                match stream {
                    // Who asks and does not wait for the answer has it all the same.
                    Ok(stream) => drop(answer(&stream, &mut deck)),
                    // Too many open files, say: later there may be fewer.
                    Err(_) => thread::park_timeout(Duration::from_millis(100)),
                }
            }
        })?;
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

fn answer(stream: &UnixStream, deck: &mut Deck) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let reply = match read(&mut BufReader::new(Patient::new(stream))) {
        Ok(request) => deck.answer(request),
        Err(e) => Reply::refusal(format!("no question: {e}")),
    };
    write_line(&mut BufWriter::new(stream), &reply)
}

/// A stream that is read for so long altogether.
struct Patient<'a> {
    stream: &'a UnixStream,
    until: Instant,
}

#[expect(clippy::disallowed_methods, reason = "others wait for whoever asks")]
impl Patient<'_> {
    fn new(stream: &UnixStream) -> Patient<'_> {
        Patient { stream, until: Instant::now() + PATIENCE }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left();
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        (&mut &*self.stream).read(buffer)
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

    #[test]
    fn who_asks_a_letter_at_a_time_is_not_waited_for() {
        let (mut asks, answers) = UnixStream::pair().expect("a pair");
        let mut patient = Patient::new(&answers);
        patient.until -= PATIENCE - Duration::from_millis(50);
        io::Write::write_all(&mut asks, b" ").expect("there is room");
        let mut buffer = [0; 8];
        assert_eq!(patient.read(&mut buffer).expect("a letter"), 1);
        patient.read(&mut buffer).expect_err("nothing came in time");
        io::Write::write_all(&mut asks, b" ").expect("there is room");
        assert_eq!(
            patient.read(&mut buffer).expect_err("too late").kind(),
            io::ErrorKind::TimedOut
        );
    }
}
