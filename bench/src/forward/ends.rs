//! The ends of the network: a client and its servers, each a process in a namespace of its own
//! that does what lines on its standard input say, and answers each by a line.

use super::function::KNOCK;
use super::role::{CLIENT, Role, SERVER, WIRE};
use crate::measure::number;
use crate::sys::host;
use crate::timing::{Alarm, Stopwatch, pause_ms, pause_until};
use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Ports of a server: bytes to be received, datagrams to be received, and such to be sent back.
const BYTES: u16 = 22;
const DISCARD: u16 = 9;
const ECHO: u16 = 7;

/// TCP connections of a transfer, and sockets that datagrams leave by: flows that may be spread.
const CONNECTIONS: u16 = 4;
const SOCKETS: u16 = 16;

/// Bytes handed over by a call.
const PIECE: usize = 64 << 10;

/// How long is waited for a connection that a wall may not let through, for the way to open, and
/// for the answer to a datagram.
const CONNECT_MS: u64 = 50;
const OPEN_MS: u64 = 10_000;
const ANSWER_MS: u64 = 300;

/// Milliseconds between two datagrams that are to be answered.
const ECHO_EVERY_MS: u64 = 1;

/// An end, as a process.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct End {
    /// Its role.
    #[arg(value_enum)]
    role: Role,
}

impl End {
    /// Does what standard input says until it ends.
    pub(crate) fn run(self) -> Result<()> {
        host::leave_the_network()?;
        say(std::process::id())?;
        let received = Arc::new(AtomicU64::new(0));
        let mut line = String::new();
        while io::stdin().read_line(&mut line).context("standard input")? > 0 {
            let answer = match line.split_whitespace().next().unwrap_or_default() {
                "up" => {
                    self.role.up()?;
                    if self.role == Role::Server {
                        serve(&received)?;
                    }
                    "up".to_owned()
                }
                "count" => format!("bytes={} {}", received.load(Relaxed), counts()?),
                "open" => open(number(&line, "knock")? > 0)?,
                "echo" => echo(&line)?,
                "datagrams" => datagrams(&line)?,
                "transfer" => transfer()?,
                other => bail!("{other} is nothing that an end does"),
            };
            say(answer)?;
            line.clear();
        }
        Ok(())
    }
}

/// Answers.
fn say(line: impl std::fmt::Display) -> Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("standard output")
}

/// Counters of this end's kernel: frames that came by its wire, and TCP segments sent again.
fn counts() -> Result<String> {
    let path = format!("/sys/class/net/{WIRE}/statistics/rx_packets");
    let frames = fs::read_to_string(&path).with_context(|| path.clone())?;
    let snmp = fs::read_to_string("/proc/net/snmp").context("/proc/net/snmp")?;
    let mut tcp = snmp.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, values) = (tcp.next().unwrap_or_default(), tcp.next().unwrap_or_default());
    let at = names.split_whitespace().position(|name| name == "RetransSegs");
    let again = at.and_then(|at| values.split_whitespace().nth(at));
    let again = again.context("no RetransSegs in /proc/net/snmp")?;
    Ok(format!("frames={} again={again}", frames.trim()))
}

/// Receives and answers in the background, as long as the process lives.
fn serve(received: &Arc<AtomicU64>) -> Result<()> {
    let listener = TcpListener::bind((SERVER, BYTES)).context("listening")?;
    let received = Arc::clone(received);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let received = Arc::clone(&received);
            thread::spawn(move || swallow(stream, &received));
        }
    });
    let discard = UdpSocket::bind((SERVER, DISCARD)).context("a socket for datagrams")?;
    let echo = UdpSocket::bind((SERVER, ECHO)).context("a socket for datagrams")?;
    thread::spawn(move || send_back(&echo, &discard));
    Ok(())
}

/// Sends datagrams back for good. Datagrams to the other socket are counted when they come by the
/// wire: nobody need read them, but the socket must be there.
fn send_back(echo: &UdpSocket, _discard: &UdpSocket) {
    let mut bytes = [0; 2048];
    loop {
        // One that went astray is one that its sender does not see again.
        if let Ok((n, from)) = echo.recv_from(&mut bytes) {
            let _ = echo.send_to(&bytes[..n], from);
        }
    }
}

/// Counts what comes by a connection until it ends.
fn swallow(mut stream: TcpStream, received: &AtomicU64) {
    let mut bytes = vec![0; PIECE];
    while let Ok(n @ 1..) = stream.read(&mut bytes) {
        received.fetch_add(n as u64, Relaxed);
    }
}

/// Tries until the way to a server is open, after the knock where there is a wall.
fn open(knock: bool) -> Result<String> {
    let alarm = Alarm::after(Duration::from_millis(OPEN_MS));
    let wait = Duration::from_millis(CONNECT_MS);
    while !alarm.is_over() {
        if knock {
            for port in KNOCK {
                // The firewall does not answer a knock.
                let _ = TcpStream::connect_timeout(&to(port), wait);
            }
        }
        if let Ok(stream) = TcpStream::connect_timeout(&to(BYTES), 4 * wait) {
            forget_when_closed(&stream)?;
            return Ok("open".to_owned());
        }
    }
    Ok("closed".to_owned())
}

/// Has nothing of a connection be sent once it is closed: it would be counted with what comes next.
fn forget_when_closed(stream: &TcpStream) -> Result<()> {
    let at_once = Some(Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(stream, at_once).context("setting SO_LINGER")
}

fn to(port: u16) -> SocketAddr {
    (SERVER, port).into()
}

/// A socket for datagrams to this port of a server.
fn datagram_socket(port: u16) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((CLIENT, 0)).context("a socket for datagrams")?;
    socket.connect(to(port)).context("a socket for datagrams")?;
    Ok(socket)
}

/// Round trips, one after the other: their number, how many had no answer, and all their
/// nanoseconds, sorted.
fn echo(line: &str) -> Result<String> {
    let (most, ms) = (number(line, "most")?, number(line, "ms")?);
    let alarm = Alarm::after(Duration::from_millis(ms));
    let socket = datagram_socket(ECHO)?;
    let wait = Some(Duration::from_millis(ANSWER_MS));
    socket.set_read_timeout(wait).context("a socket for datagrams")?;
    let (mut times, mut lost) = (Vec::new(), 0_u64);
    for n in 0..most {
        if alarm.is_over() {
            break;
        }
        let watch = Stopwatch::start();
        socket.send(&n.to_be_bytes()).context("sending a datagram")?;
        match answer(&socket, n) {
            true => times.push(watch.read().wall.as_nanos() as u64),
            false => lost += 1,
        }
        pause_ms(ECHO_EVERY_MS);
    }
    times.sort_unstable();
    let all: Vec<String> = times.iter().map(u64::to_string).collect();
    Ok(format!("lost={lost} times={}", all.join(",")))
}

/// Whether the answer to datagram `n` comes in time; those to earlier ones may come before it.
fn answer(socket: &UdpSocket, n: u64) -> bool {
    let mut bytes = [0; 64];
    loop {
        match socket.recv(&mut bytes) {
            Ok(8) if bytes[..8] == n.to_be_bytes() => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// Sends datagrams for some milliseconds, a number of them in each, or as fast as the socket takes
/// them. Returns how many were sent.
fn datagrams(line: &str) -> Result<String> {
    let (bytes, ms) = (number(line, "bytes")? as usize, number(line, "ms")?);
    let each_ms = number(line, "each_ms")?;
    let sockets: Vec<UdpSocket> =
        (0..SOCKETS).map(|_| datagram_socket(DISCARD)).collect::<Result<_>>()?;
    let payload = vec![0; bytes];
    // Without a rate, the clock is looked at now and then.
    let burst = if each_ms == 0 { 64 } else { each_ms };
    let (watch, mut sent) = (Stopwatch::start(), 0_u64);
    let alarm = Alarm::after(Duration::from_millis(ms));
    for turn in 1.. {
        if alarm.is_over() {
            break;
        }
        for _ in 0..burst {
            let socket = &sockets[sent as usize % sockets.len()];
            // A datagram that the kernel has no room for counts as lost on the way.
            let _ = socket.send(&payload);
            sent += 1;
        }
        if each_ms > 0 {
            pause_until(&watch, Duration::from_millis(turn));
        }
    }
    let ns = watch.read().wall.as_nanos();
    Ok(format!("sent={sent} ns={ns}"))
}

/// Sends by several connections at once until the next line comes; says first that it does.
fn transfer() -> Result<String> {
    let stop = Arc::new(AtomicBool::new(false));
    let streams: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| -> Result<TcpStream> {
            let wait = Duration::from_millis(OPEN_MS);
            let stream = TcpStream::connect_timeout(&to(BYTES), wait).context("connecting")?;
            forget_when_closed(&stream)?;
            stream.set_write_timeout(Some(Duration::from_millis(ANSWER_MS)))?;
            Ok(stream)
        })
        .collect::<Result<_>>()?;
    let threads: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                let bytes = vec![0; PIECE];
                while !stop.load(Relaxed) {
                    // A way that is stuck shows in what the servers count.
                    let _ = stream.write_all(&bytes);
                }
            })
        })
        .collect();
    say("running")?;
    io::stdin().read_line(&mut String::new()).context("standard input")?;
    stop.store(true, Relaxed);
    for thread in threads {
        thread.join().map_err(|_| anyhow!("a connection's thread panicked"))?;
    }
    Ok("done".to_owned())
}
