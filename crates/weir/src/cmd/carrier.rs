//! A process that talks to Kafka for another one, which has started it and gives its orders by a
//! pipe. It sees no packets, and gives up what it does not need before it opens a connection.

use crate::exit::Status;
use crate::signals;
use crate::term::Term;
use anyhow::Context as _;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use weir_kafka::order::{
    CarrierAnswer, CarrierOrder, Detail, GroupOrder, LogName, LogOrder, PacketsOrder,
    PartitionEvent, PartitionOrder, ProduceOrder, Roster, Task, read_framed, write_framed,
};
use weir_kafka::{KafkaFault, ParentOfGroup, PipeOfProbe, Say};
use weir_sandbox::{Needs, become_user, confine};

/// Bytes of a stream that are handed on at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Takes the order, and does what it says.
pub(crate) fn run(term: &Term) -> anyhow::Result<Status> {
    let told = signals::outlast()?;
    // Not by way of a buffer: the run of a partition may have said something already.
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let order: CarrierOrder = read_framed(&mut stdin)
        .context("this command is started by weir run and weir merge; its orders")?;
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if let Err(why) = give_up(&order, &told, term) {
        if matches!(order.task, Task::Consume(_) | Task::Process(_)) {
            return Err(why);
        }
        let why = format!("{why:#}");
        write_framed(&CarrierAnswer::Refused { why, is_usage: false }, &mut stdout)?;
        return Ok(Status::Failed);
    }
    match &order.task {
        Task::Produce(task) => produce(&order, task, stdout, term),
        Task::Look(roster) => look(&order, roster, stdout, term),
        Task::Retire(log) => retire(&order, log, stdout, term),
        Task::Consume(log) => consume(&order, log, stdout, term),
        Task::Packets(task) => send_packets(&order, task, stdout, term),
        Task::Rows => send(&order, weir_kafka::send_rows, stdout, term),
        Task::Join(task) => join(&order, task, stdout, term),
        Task::Process(task) => process(&order, task, stdout, &told, term),
    }
}

/// Gives up what is not needed to reach brokers.
fn give_up(order: &CarrierOrder, told: &AtomicBool, term: &Term) -> anyhow::Result<()> {
    if let Some(user) = &order.user {
        become_user(user).with_context(|| format!("-Z {user}"))?;
    }
    if let Task::Process(task) = &order.task {
        // A change of the user would have undone it.
        if !signals::end_with_parent(task.parent)? {
            told.store(true, Ordering::Relaxed);
        }
    }
    let mut needs = Needs::default();
    needs.servers(order.properties.files());
    if let Task::Produce(ProduceOrder { spill: Some(spill), .. })
    | Task::Packets(PacketsOrder { spill: Some(spill) }) = &order.task
    {
        needs.folders(vec![spill.folder.clone()]);
        // Files that an earlier run has left are looked for.
        needs.read.push(spill.folder.clone());
    }
    let confined = match order.sandbox {
        true => confine(&needs, None).to_string(),
        false => "sandbox: none (--no-sandbox)".to_owned(),
    };
    // Of many processes that do the same, one says so.
    let says = !matches!(order.task, Task::Look(_) | Task::Process(_));
    if order.detail == Detail::Verbose && says {
        term.say(format_args!("kafka: {confined}"));
    }
    Ok(())
}

/// Messages are printed with these words before them.
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
        Err(fault) => failed(order, &fault, is_ready.get(), (&mut stdout, term)),
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

fn retire(
    order: &CarrierOrder,
    log: &LogName,
    mut stdout: File,
    term: &Term,
) -> anyhow::Result<Status> {
    let answer = match weir_kafka::retire(order, log, &say("kafka".to_owned(), term)) {
        Ok(log) => CarrierAnswer::Ready(vec![log]),
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

/// Sends packets or rows.
fn send(
    order: &CarrierOrder,
    by: impl FnOnce(
        &CarrierOrder,
        PipeOfProbe<'_>,
        &mut dyn FnMut(i32) -> io::Result<()>,
        &Say,
    ) -> Result<u64, KafkaFault>,
    mut stdout: File,
    term: &Term,
) -> anyhow::Result<Status> {
    let say = say("kafka".to_owned(), term);
    let is_ready = Cell::new(false);
    let mut ready = |partitions: i32| {
        is_ready.set(true);
        write_framed(&CarrierAnswer::Partitions(partitions), &mut stdout)
    };
    let mut stream = io::stdin().lock();
    let from = PipeOfProbe { stream: &mut stream, has_gone: &probe_has_gone };
    match by(order, from, &mut ready, &say) {
        Ok(delivered) => {
            if order.detail == Detail::Verbose {
                say(&format!("{delivered} records delivered to {}", order.topic));
            }
            Ok(Status::Ok)
        }
        Err(fault) => failed(order, &fault, is_ready.get(), (&mut stdout, term)),
    }
}

/// Sends packets, with what waits on disk.
fn send_packets(
    order: &CarrierOrder,
    task: &PacketsOrder,
    stdout: File,
    term: &Term,
) -> anyhow::Result<Status> {
    let by = |order: &CarrierOrder,
              from: PipeOfProbe<'_>,
              ready: &mut dyn FnMut(i32) -> io::Result<()>,
              say: &Say| weir_kafka::send_packets(order, task, from, ready, say);
    send(order, by, stdout, term)
}

/// Tells of a fault: the person, or the process that gave the order if that still waits for a word.
fn failed(
    order: &CarrierOrder,
    fault: &KafkaFault,
    was_ready: bool,
    (stdout, term): (&mut File, &Term),
) -> anyhow::Result<Status> {
    match was_ready {
        true => term.error(format_args!("{}", named(order, fault))),
        false => write_framed(&refused(order, fault), stdout)?,
    }
    Ok(Status::Failed)
}

/// Is a member of a group, as long as the process that gave the order is there. Each byte from that
/// one says that partitions which were revoked are given up.
fn join(
    order: &CarrierOrder,
    task: &GroupOrder,
    stdout: File,
    term: &Term,
) -> anyhow::Result<Status> {
    let stop = Arc::<AtomicBool>::default();
    let (ack, acks) = mpsc::channel();
    let flag = Arc::clone(&stop);
    let listen = move || {
        let mut byte = [0];
        while io::stdin().lock().read_exact(&mut byte).is_ok() && ack.send(()).is_ok() {}
        flag.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new().name("parent".to_owned()).spawn(listen)?;
    let is_ready = Cell::new(false);
    let (mut answers, mut events) = (stdout.try_clone()?, stdout.try_clone()?);
    let mut ready = |partitions: i32| {
        is_ready.set(true);
        write_framed(&CarrierAnswer::Partitions(partitions), &mut answers)
    };
    let parent = ParentOfGroup { ready: &mut ready, events: &mut events, acks };
    let joined = weir_kafka::join(order, task, parent, &stop, &say("kafka".to_owned(), term));
    match joined {
        Ok(()) => Ok(Status::Ok),
        Err(fault) if is_ready.get() => {
            term.error(format_args!("{}", named(order, &fault)));
            Ok(Status::Failed)
        }
        Err(fault) => {
            write_framed(&refused(order, &fault), &mut stdout.try_clone()?)?;
            Ok(Status::Failed)
        }
    }
}

/// Carries the packets of a partition to a run, and its rows from there. The run is at the other
/// end of standard input, which is a socket; SIGTERM, whenever it came, ends it once what is ready
/// is committed.
fn process(
    order: &CarrierOrder,
    task: &PartitionOrder,
    stdout: File,
    stop: &AtomicBool,
    term: &Term,
) -> anyhow::Result<Status> {
    let worker = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let events = Mutex::new(stdout);
    let report = |event: &PartitionEvent| {
        let mut events = events.lock();
        write_framed(event, &mut *events)
    };
    let say = say("kafka".to_owned(), term);
    match weir_kafka::process(order, task, worker, &report, stop, &say) {
        Ok(()) => {}
        Err(KafkaFault::Io(e)) if e.kind() == io::ErrorKind::BrokenPipe => {}
        Err(fault @ KafkaFault::Broker(_)) => {
            report(&PartitionEvent::Again(named(order, &fault)))?;
        }
        Err(fault) => report(&PartitionEvent::Failed(named(order, &fault)))?,
    }
    Ok(Status::Ok)
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
