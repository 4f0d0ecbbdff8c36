//! Clients connect by sockets of several families, which are alike.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// A socket that clients connect to.
pub trait Listener {
    /// The connection to a client.
    type Stream: Connection;

    /// Waits for the next client.
    ///
    /// # Errors
    /// If the system can't take it now.
    fn accept_next(&self) -> io::Result<Self::Stream>;
}

/// A connection to a client. Its methods are those of the standard library.
pub trait Connection: Send + Sync + Sized + 'static {
    /// Another handle of the same connection.
    ///
    /// # Errors
    /// If there are too many open files.
    fn again(&self) -> io::Result<Self>;

    /// Reads some bytes, for at most so long.
    ///
    /// # Errors
    /// If none come in time, or the client is gone.
    fn read_within(&self, buffer: &mut [u8], time: Duration) -> io::Result<usize>;

    /// Writes some bytes, for at most so long if there is a limit.
    ///
    /// # Errors
    /// If the client takes none in time, or is gone.
    fn write_within(&self, bytes: &[u8], time: Option<Duration>) -> io::Result<usize>;

    /// Writes what the client takes at once.
    ///
    /// # Errors
    /// If it takes nothing at once.
    fn write_at_once(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Ends one side of the connection, or both.
    ///
    /// # Errors
    /// If the client is gone.
    fn end(&self, how: Shutdown) -> io::Result<()>;
}

macro_rules! socket {
    ($listener:ty, $stream:ty) => {
        impl Listener for $listener {
            type Stream = $stream;

            fn accept_next(&self) -> io::Result<$stream> {
                self.accept().map(|(stream, _)| stream)
            }
        }

        impl Connection for $stream {
            fn again(&self) -> io::Result<Self> {
                self.try_clone()
            }

            fn read_within(&self, buffer: &mut [u8], time: Duration) -> io::Result<usize> {
                self.set_read_timeout(Some(time))?;
                (&mut &*self).read(buffer)
            }

            fn write_within(&self, bytes: &[u8], time: Option<Duration>) -> io::Result<usize> {
                self.set_write_timeout(time)?;
                (&mut &*self).write(bytes)
            }

            fn write_at_once(&self, bytes: &[u8]) -> io::Result<usize> {
                self.set_nonblocking(true)?;
                (&mut &*self).write(bytes)
            }

            fn end(&self, how: Shutdown) -> io::Result<()> {
                self.shutdown(how)
            }
        }
    };
}

socket!(UnixListener, UnixStream);
socket!(TcpListener, TcpStream);
