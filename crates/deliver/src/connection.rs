//! Connections with a deadline: whatever a receiver does, it takes no longer than that.

use crate::clock;
use crate::failure::Failure;
use crate::limits::{CONNECT_PATIENCE, GOODBYE};
use crate::target::Peer;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a peer is reached.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) peer: Peer,
    /// How TLS is set up, where it is used.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// A connection over TCP, with or without TLS.
pub(crate) struct Connection(Stream);

enum Stream {
    Plain(Timed),
    Secured(Box<Secured>),
}

/// A connection by TLS, which says that it ends (RFC 5246, 7.2.1), so that nobody takes its end for
/// that of an attack.
struct Secured(StreamOwned<ClientConnection, Timed>);

impl Drop for Secured {
    fn drop(&mut self) {
        let StreamOwned { conn, sock } = &mut self.0;
        conn.send_close_notify();
        sock.by = clock::now() + GOODBYE;
        // It goes either way.
        drop(conn.write_tls(sock));
    }
}

/// The socket, whose reads and writes end at a time.
struct Timed {
    tcp: TcpStream,
    by: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Duration> {
        let left = self.by.saturating_duration_since(clock::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// A socket says `WouldBlock` where its time is over.
fn timed(e: io::Error) -> io::Error {
    if e.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { e }
}

impl Read for Timed {
    /// A read with a time-out ends early where the process was stopped and goes on (signal(7)): it
    /// is begun again for what is left of its time.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            self.tcp.set_read_timeout(Some(self.left()?))?;
            match self.tcp.read(bytes) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => return read.map_err(timed),
            }
        }
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tcp.set_write_timeout(Some(self.left()?))?;
        self.tcp.write(bytes).map_err(timed)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The addresses of a peer.
pub(crate) fn addresses(peer: &Peer) -> Result<Vec<SocketAddr>, Failure> {
    let found = (peer.host.as_str(), peer.port).to_socket_addrs();
    let found = found.map_err(|e| Failure::Away(format!("looking up {}: {e}", peer.host)))?;
    let found: Vec<SocketAddr> = found.collect();
    match found.is_empty() {
        true => Err(Failure::Away(format!("{} has no address", peer.host))),
        false => Ok(found),
    }
}

impl Connection {
    /// Connects, and secures the connection where the route says so.
    pub(crate) fn open(route: &Route, by: Instant) -> Result<Connection, Failure> {
        let mut failure = Failure::Away("no time is left".to_owned());
        for address in addresses(&route.peer)? {
            let left = by.saturating_duration_since(clock::now()).min(CONNECT_PATIENCE);
            if left.is_zero() {
                break;
            }
            match TcpStream::connect_timeout(&address, left) {
                Ok(tcp) => {
                    // Messages are short, and answers waited for.
                    drop(tcp.set_nodelay(true));
                    let plain = Connection(Stream::Plain(Timed { tcp, by }));
                    return match &route.tls {
                        Some(tls) => plain.secured(Arc::clone(tls), &route.peer.host),
                        None => Ok(plain),
                    };
                }
                Err(e) => failure = Failure::away("connecting", &e),
            }
        }
        Err(failure)
    }

    /// The same connection, by TLS from now on.
    pub(crate) fn secured(self, tls: Arc<ClientConfig>, host: &str) -> Result<Connection, Failure> {
        let Stream::Plain(mut timed) = self.0 else {
            return Err(Failure::Away("TLS inside of TLS".to_owned()));
        };
        let doing = "setting up TLS";
        let failed = |e: &dyn std::fmt::Display| Failure::Away(format!("{doing}: {e}"));
        let name = ServerName::try_from(host.to_owned()).map_err(|e| failed(&e))?;
        let mut client = ClientConnection::new(tls, name).map_err(|e| failed(&e))?;
        while client.is_handshaking() {
            client.complete_io(&mut timed).map_err(|e| Failure::away(doing, &e))?;
        }
        let secured = Secured(StreamOwned::new(client, timed));
        Ok(Connection(Stream::Secured(Box::new(secured))))
    }

    /// All reads and writes that follow have to be done by this time.
    pub(crate) fn until(&mut self, by: Instant) {
        self.socket().by = by;
    }

    fn socket(&mut self) -> &mut Timed {
        match &mut self.0 {
            Stream::Plain(timed) => timed,
            Stream::Secured(stream) => &mut stream.0.sock,
        }
    }

    /// Whether the peer has closed it. Bytes that the peer has sent are passed over.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.until(clock::now() + CONNECT_PATIENCE);
        if self.socket().tcp.set_nonblocking(true).is_err() {
            return true;
        }
        let mut ended = false;
        // A peer that says more than this without being asked is none to rely on.
        for turn in 0.. {
            match self.read(&mut [0; 1024]) {
                Ok(0) => ended = true,
                Ok(_) if turn < 16 => continue,
                Ok(_) => ended = true,
                Err(e) => ended = e.kind() != io::ErrorKind::TimedOut,
            }
            break;
        }
        ended || self.socket().tcp.set_nonblocking(false).is_err()
    }
}

impl Read for Connection {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Stream::Plain(timed) => timed.read(bytes),
            Stream::Secured(stream) => stream.0.read(bytes),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Stream::Plain(timed) => timed.write(bytes),
            Stream::Secured(stream) => stream.0.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Stream::Plain(timed) => timed.flush(),
            Stream::Secured(stream) => stream.0.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn connected() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let route = Route { peer: Peer { host: "127.0.0.1".to_owned(), port }, tls: None };
        let by = clock::now() + Duration::from_secs(5);
        let connection = Connection::open(&route, by).expect("connects");
        (connection, listener.accept().expect("accepts").0)
    }

    #[test]
    fn a_peer_that_never_reads_or_answers_takes_no_longer_than_allowed() {
        let (mut connection, _peer) = connected();
        connection.until(clock::now() + Duration::from_millis(50));
        let error = connection.read(&mut [0; 10]).expect_err("no answer");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        connection.until(clock::now() + Duration::from_millis(50));
        let error = connection.write_all(&vec![0; 64 << 20]).expect_err("no room");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    }

    #[test]
    fn a_connection_that_was_closed_is_known() {
        let (mut connection, mut peer) = connected();
        assert!(!connection.has_ended());
        peer.write_all(b"hello").expect("writes");
        assert!(!connection.has_ended());
        drop(peer);
        // The end may take a moment to arrive.
        while !connection.has_ended() {
            std::thread::yield_now();
        }
    }
}
