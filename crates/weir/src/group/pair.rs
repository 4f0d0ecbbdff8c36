//! The two processes of a partition: a run, and what carries its packets and rows. They talk by a
//! socket, and end with each other.

use crate::exit::Status;
use crate::kafka::{COMMAND, again};
use crate::term::Term;
use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;
use weir_kafka::order::{CarrierOrder, WorkerOrder, write_framed_at_once};

/// The hidden command of the run of a partition.
const RUN: &str = "kafka-worker";

/// Bytes that wait in the socket, so that one process prepares a record while the other works on
/// the one before. The system gives as much of it as it allows everybody (`net.core.wmem_max`),
/// twice.
const SOCKET_BYTES: usize = 1 << 20;

/// The two processes of a partition.
pub(super) struct Pair {
    carrier: Child,
    run: Child,
    /// Whether they were told to end, ...
    pub(super) is_leaving: bool,
    /// ... and how long ago.
    leaving_for: Duration,
}

impl Pair {
    /// Starts both; what the carrying one says comes by the pipe.
    pub(super) fn start(
        order: &CarrierOrder,
        worker: &WorkerOrder,
        term: &Term,
    ) -> anyhow::Result<(Pair, ChildStdout)> {
        let (mut ours, mut theirs) = UnixStream::pair().context("a socket for a partition")?;
        for end in [&ours, &theirs] {
            set_socket_send_buffer_size(end, SOCKET_BYTES).context("a socket for a partition")?;
        }
        // No process reads yet: more than the socket holds would wait for ever.
        write_framed_at_once(worker, &mut ours).context("the run of a partition")?;
        write_framed_at_once(order, &mut theirs).context("the process that talks to Kafka")?;
        let mut carrier = again(COMMAND, term)
            .stdin(Stdio::from(OwnedFd::from(ours)))
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the process that talks to Kafka")?;
        let run = again(RUN, term)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn();
        let run = match run {
            Ok(run) => run,
            Err(e) => {
                drop(carrier.kill());
                drop(carrier.wait());
                return Err(e).context("starting the run of a partition");
            }
        };
        let events = carrier.stdout.take().context("the process that talks to Kafka")?;
        Ok((Pair { carrier, run, is_leaving: false, leaving_for: Duration::ZERO }, events))
    }

    /// Tells both to end, once what is ready is committed.
    pub(super) fn leave(&mut self) {
        self.is_leaving = true;
        // It has not been waited for, so its number is its own.
        let id = i32::try_from(self.carrier.id()).unwrap_or(0);
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    }

    /// So much time has passed: ends both at once if they take longer to end than they may.
    pub(super) fn tick(&mut self, passed: Duration, most: Duration) {
        if self.is_leaving {
            self.leaving_for += passed;
        }
        if self.leaving_for >= most {
            self.kill();
        }
    }

    /// Ends both at once. Uncommitted packets are for the next process of the partition.
    pub(super) fn kill(&mut self) {
        drop(self.carrier.kill());
        drop(self.run.kill());
    }

    /// Waits until both have ended; how the run did, and whether the carrying process ended by
    /// itself.
    pub(super) fn wait(mut self) -> (Status, bool) {
        let carried = self.carrier.wait().is_ok_and(|status| status.success());
        let status = match self.run.wait().ok().and_then(|status| status.code()) {
            Some(0) => Status::Ok,
            Some(2) => Status::Usage,
            _ => Status::Failed,
        };
        (status, carried)
    }
}
