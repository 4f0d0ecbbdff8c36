//! A process that talks to Kafka for another one, which has started it and gives its orders by a
//! pipe. It sees no packets, and gives up what it does not need before it opens a connection.

use crate::exit::Status;
use crate::signals;
use crate::term::Term;
use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_kafka::order::{
    CarrierAnswer, CarrierOrder, Detail, LogOrder, ProduceOrder, Roster, Task, read_framed,
    write_framed,
};
use weir_kafka::{KafkaFault, PipeOfProbe, Say};
use weir_sandbox::{Needs, become_user, confine};

/// Bytes of a stream that are handed on at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Takes the order, and does what it says.
pub(crate) fn run(term: &Term) -> anyhow::Result<Status> {
    signals::outlast()?;
    let order: CarrierOrder = read_framed(&mut io::stdin().lock())
        .context("this command is started by weir run and weir merge; its orders")?;
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if let Err(why) = give_up(&order, term) {
        if matches!(order.task, Task::Consume(_)) {
            return Err(why);
        }
        let why = format!("{why:#}");
        write_framed(&CarrierAnswer::Refused { why, is_usage: false }, &mut stdout)?;
        return Ok(Status::Failed);
    }
    match &order.task {
        Task::Produce(task) => produce(&order, task, stdout, term),
        Task::Look(roster) => look(&order, roster, stdout, term),
        Task::Consume(log) => consume(&order, log, stdout, term),
    }
}

/// Gives up what is not needed to reach brokers.
fn give_up(order: &CarrierOrder, term: &Term) -> anyhow::Result<()> {
    if let Some(user) = &order.user {
        become_user(user).with_context(|| format!("-Z {user}"))?;
    }
    let mut needs = Needs::default();
    needs.servers(order.properties.files());
    if let Task::Produce(ProduceOrder { spill: Some(spill), .. }) = &order.task {
        needs.folders(vec![spill.folder.clone()]);
        // What an earlier run has left is looked for.
        needs.read.push(spill.folder.clone());
    }
    let confined = match order.sandbox {
        true => confine(&needs, None).to_string(),
        false => "sandbox: none (--no-sandbox)".to_owned(),
    };
    if order.detail == Detail::Verbose && !matches!(order.task, Task::Look(_)) {
        term.say(format_args!("kafka: {confined}"));
    }
    Ok(())
}

/// What goes on is said with these words before it.
fn say(before: String, term: &Term) -> Say {
    let term = *term;
    Arc::new(move |text: &str| term.say(format_args!("{before}: {text}")))
}

/// An error with the address.
fn named(order: &CarrierOrder, fault: &KafkaFault) -> String {
    format!("{}: {fault}", order.topic)
}

fn refused(order: &CarrierOrder, fault: &KafkaFault) -> CarrierAnswer {
    let is_usage = matches!(fault, KafkaFault::Properties(_) | KafkaFault::Partition { .. });
    CarrierAnswer::Refused { why: named(order, fault), is_usage }
}

fn produce(
    order: &CarrierOrder,
    task: &ProduceOrder,
    mut stdout: File,
    term: &Term,
) -> anyhow::Result<Status> {
    let say = say("kafka".to_owned(), term);
    let is_ready = Cell::new(false);
    let mut ready = || {
        is_ready.set(true);
        write_framed(&CarrierAnswer::Ready(Vec::new()), &mut stdout)
    };
    let mut stream = io::stdin().lock();
    let from = PipeOfProbe { stream: &mut stream, has_gone: &probe_has_gone };
    let produced = weir_kafka::produce(order, task, from, &mut ready, &say);
    match produced {
        Ok(produced) => {
            if order.detail == Detail::Verbose {
                let (n, partition) = (produced.delivered, produced.partition);
                say(&format!("{n} records delivered to partition {partition}"));
            }
            Ok(Status::Ok)
        }
        Err(fault) if is_ready.get() => {
            term.error(format_args!("{}", named(order, &fault)));
            Ok(Status::Failed)
        }
        Err(fault) => {
            write_framed(&refused(order, &fault), &mut stdout)?;
            Ok(Status::Failed)
        }
    }
}

/// Whether the pipe by which the stream comes has no writer any more, even if something in it is
/// unread.
fn probe_has_gone() -> bool {
    let stdin = io::stdin();
    let mut pipe = [PollFd::new(&stdin, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut pipe, Some(&now)).is_ok() && pipe[0].revents().contains(PollFlags::HUP)
}

fn look(
    order: &CarrierOrder,
    roster: &Roster,
    mut stdout: File,
    term: &Term,
) -> anyhow::Result<Status> {
    let stop = stop_with_parent()?;
    let answer = match weir_kafka::look(order, roster, &stop, &say("kafka".to_owned(), term)) {
        Ok(found) => CarrierAnswer::Ready(found),
        Err(fault) => refused(order, &fault),
    };
    write_framed(&answer, &mut stdout)?;
    Ok(Status::Ok)
}

fn consume(
    order: &CarrierOrder,
    log: &LogOrder,
    stdout: File,
    term: &Term,
) -> anyhow::Result<Status> {
    let stop = stop_with_parent()?;
    let say = say(format!("kafka, probe {}", log.log.probe), term);
    let mut to = BufWriter::with_capacity(BUFFER_BYTES, stdout);
    let read = weir_kafka::consume(order, log, &mut to, &stop, &say);
    match read.and_then(|counts| Ok(to.flush().map(|()| counts)?)) {
        Ok(_) => Ok(Status::Ok),
        // The merge wants no more of this log, and says why.
        Err(KafkaFault::Io(e)) if e.kind() == io::ErrorKind::BrokenPipe => Ok(Status::Ok),
        Err(fault) => {
            let probe = &log.log.probe;
            term.error(format_args!("{}, probe {probe}: {fault}", order.topic));
            Ok(Status::Failed)
        }
    }
}

/// A flag that is set when the process that gave the order has gone: until then it keeps the pipe.
fn stop_with_parent() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::<AtomicBool>::default();
    let flag = Arc::clone(&stop);
    let wait = move || {
        let mut rest = [0; 64];
        while io::stdin().lock().read(&mut rest).is_ok_and(|n| n > 0) {}
        flag.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new().name("parent".to_owned()).spawn(wait)?;
    Ok(stop)
}
