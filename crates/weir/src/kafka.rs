//! The processes that talk to Kafka, as a run or a merge starts them: before it opens anything and
//! gives up its permissions. They are this program again ([`crate::cmd::carrier`]), so that they
//! share neither memory nor open files with who reads packets.

use crate::args::{MergeArgs, RetireArgs, UntilWhen};
use crate::exit::{Status, usage};
use crate::term::Term;
use anyhow::Context as _;
use rustix::pipe::fcntl_setpipe_size;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use weir_cluster::ProbeInput;
use weir_kafka::KafkaFault;
use weir_kafka::address::KafkaTopic;
use weir_kafka::limits::{PROBES_MAX, PROPERTIES_MAX};
use weir_kafka::order::{
    CarrierAnswer, CarrierOrder, Detail, LogEnd, LogName, LogOrder, Roster, Task, read_framed,
    write_framed,
};
use weir_kafka::properties::Properties;

/// The hidden command that such a process runs.
pub(crate) const COMMAND: &str = "kafka-carrier";

/// Bytes that wait in a pipe: of fewer, the two processes would wait for each other several times
/// for each record of packets.
const PIPE_BYTES: usize = 1 << 20;

/// Lets more wait in a pipe. Where the system allows no more, the pipe stays as it is.
fn widen(pipe: impl AsFd) {
    let _ = fcntl_setpipe_size(pipe, PIPE_BYTES);
}

/// Refuses Kafka where it was not built in.
pub(crate) fn check() -> anyhow::Result<()> {
    match weir_kafka::is_linked() {
        true => Ok(()),
        false => Err(usage(format!("kafka://: {}", KafkaFault::NotLinked))),
    }
}

/// The properties of a file, with the content of the private key that it names.
pub(crate) fn properties(file: Option<&Path>) -> anyhow::Result<Properties> {
    let Some(path) = file else { return Ok(Properties::default()) };
    let name = || format!("--kafka-config {}", path.display());
    let text = read_short(path).with_context(name)?;
    let mut properties =
        Properties::parse(&text).map_err(|fault| usage(format!("{}: {fault}", name())))?;
    if let Some(key) = properties.key_file() {
        let pem = read_short(Path::new(key));
        let pem = pem.with_context(|| format!("{}: ssl.key.location {key}", name()))?;
        properties.set_key(pem);
    }
    Ok(properties)
}

fn read_short(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(PROPERTIES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// How much the process says.
pub(crate) fn detail(quiet: bool, verbose: bool) -> Detail {
    match (quiet, verbose) {
        (true, _) => Detail::Quiet,
        (false, true) => Detail::Verbose,
        (false, false) => Detail::Usual,
    }
}

/// A process that talks to Kafka.
pub(crate) struct Carrier(Child);

impl Carrier {
    fn start(order: &CarrierOrder, term: &Term) -> anyhow::Result<Carrier> {
        let mut command = again(COMMAND, term);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().context("starting the process that talks to Kafka")?;
        let mut carrier = Carrier(child);
        let stdin = carrier.0.stdin.as_mut().expect("it is a pipe");
        widen(&*stdin);
        write_framed(order, stdin).context("the process that talks to Kafka")?;
        Ok(carrier)
    }

    /// Waits until it is ready, or says why it will not be.
    fn answer(&mut self) -> anyhow::Result<Vec<LogName>> {
        let stdout = self.0.stdout.as_mut().expect("it is a pipe");
        match read_framed(stdout).context("the process that talks to Kafka has failed")? {
            CarrierAnswer::Ready(found) => Ok(found),
            CarrierAnswer::Partitions(_) => Ok(Vec::new()),
            CarrierAnswer::Refused { why, is_usage: true } => Err(usage(why)),
            CarrierAnswer::Refused { why, is_usage: false } => Err(anyhow::anyhow!(why)),
        }
    }

    /// Waits until it is ready, and says how many partitions its topic has.
    fn partitions(&mut self) -> anyhow::Result<i32> {
        let stdout = self.0.stdout.as_mut().expect("it is a pipe");
        match read_framed(stdout).context("the process that talks to Kafka has failed")? {
            CarrierAnswer::Partitions(count) => Ok(count),
            CarrierAnswer::Ready(_) => anyhow::bail!("the process that talks to Kafka is another"),
            CarrierAnswer::Refused { why, is_usage: true } => Err(usage(why)),
            CarrierAnswer::Refused { why, is_usage: false } => Err(anyhow::anyhow!(why)),
        }
    }

    /// Its output from now on.
    pub(crate) fn take_output(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    /// The pipe that it reads.
    pub(crate) fn pipe(&self) -> io::Result<File> {
        let stdin = self.0.stdin.as_ref().expect("it is a pipe");
        Ok(File::from(stdin.as_fd().try_clone_to_owned()?))
    }

    /// Closes its pipe, and waits until it has ended.
    pub(crate) fn finish(mut self, term: &Term) -> Status {
        drop(self.0.stdin.take());
        match self.0.wait() {
            Ok(status) if status.success() => Status::Ok,
            Ok(status) => {
                if let Some(signal) = status.signal() {
                    term.error(format_args!(
                        "the process that talks to Kafka was killed by signal {signal}"
                    ));
                }
                Status::Failed
            }
            Err(e) => {
                term.error(format_args!("the process that talks to Kafka: {e}"));
                Status::Failed
            }
        }
    }
}

/// Starts a producer of the stream of a probe, and waits until it has found its topic.
pub(crate) fn producer(order: &CarrierOrder, term: &Term) -> anyhow::Result<Carrier> {
    let mut carrier = Carrier::start(order, term)?;
    carrier.answer()?;
    Ok(carrier)
}

/// Writes into the log of a probe that it is gone; says which log that is.
pub(crate) fn retire(args: &RetireArgs, term: &Term) -> anyhow::Result<LogName> {
    check()?;
    let order = CarrierOrder {
        topic: args.topic.clone(),
        properties: properties(args.kafka_config.as_deref())?,
        user: None,
        sandbox: true,
        detail: Detail::Usual,
        task: Task::Retire(args.probe.clone()),
    };
    let mut carrier = Carrier::start(&order, term)?;
    let written = carrier.answer()?;
    carrier.finish(term);
    written.into_iter().next().context("the process that talks to Kafka is another")
}

/// Starts a process that sends packets or rows, or one that is a member of a group, and waits until
/// it has found its topic; how many partitions that has.
pub(crate) fn started(order: &CarrierOrder, term: &Term) -> anyhow::Result<(Carrier, i32)> {
    let mut carrier = Carrier::start(order, term)?;
    let count = carrier.partitions()?;
    Ok((carrier, count))
}

/// This program again, as the process of a hidden command.
pub(crate) fn again(command: &str, term: &Term) -> Command {
    let color = if term.color_err { "always" } else { "never" };
    // Whatever has become of the file that this program was started from.
    let mut again = Command::new("/proc/self/exe");
    again.arg0("weir").args(["--color", color, command]);
    again
}

/// The topic that a merge reads, if it reads one.
pub(crate) fn topic_of(args: &MergeArgs) -> anyhow::Result<Option<KafkaTopic>> {
    let mut topics = args.from.iter().filter(|from| KafkaTopic::is_meant(from));
    let kafka = &args.kafka;
    let Some(topic) = topics.next() else {
        let set = !kafka.probes.is_empty()
            || !kafka.retire.is_empty()
            || kafka.kafka_config.is_some() && !args.publishes_to_kafka()
            || kafka.until != UntilWhen::Never
            || kafka.kafka_from != weir_kafka::order::LogStart::Earliest;
        return match set {
            true => Err(usage(
                "--probes, --retire, --until, --kafka-from and --kafka-config are for a topic \
                 (--from kafka://HOST:PORT/TOPIC)",
            )),
            false => Ok(None),
        };
    };
    check()?;
    if topics.next().is_some() {
        return Err(usage("--from: one topic is possible, with any number of probes"));
    }
    if kafka.probes.len() > PROBES_MAX {
        return Err(usage(format!("--probes: at most {PROBES_MAX} are possible")));
    }
    let names = || kafka.probes.iter().map(|log| &log.probe);
    if let Some(twice) = names().find(|name| names().filter(|other| other == name).count() > 1) {
        return Err(usage(format!("--probes: {twice} is there twice")));
    }
    KafkaTopic::parse(topic).map(Some).map_err(usage)
}

/// The processes that read the logs of probes.
#[derive(Default)]
pub(crate) struct Logs(Vec<Carrier>);

impl Logs {
    /// Looks at the topic, and starts a process for each of its probes.
    pub(crate) fn open(
        topic: &KafkaTopic,
        args: &MergeArgs,
        term: &Term,
    ) -> anyhow::Result<(Logs, Vec<ProbeInput>)> {
        let kafka = &args.kafka;
        let mut order = CarrierOrder {
            topic: topic.clone(),
            properties: properties(kafka.kafka_config.as_deref())?,
            user: args.confine.relinquish_privileges.clone(),
            sandbox: !args.confine.no_sandbox,
            detail: detail(args.quiet, args.verbose),
            task: Task::Look(match kafka.probes.is_empty() {
                true => Roster::Found,
                false => Roster::Named(kafka.probes.clone()),
            }),
        };
        let mut looks = Carrier::start(&order, term)?;
        let roster = looks.answer()?;
        looks.finish(term);
        let is_there = |name: &String| roster.iter().any(|log| log.probe == *name);
        if let Some(name) = kafka.retire.iter().find(|name| !is_there(name)) {
            return Err(usage(format!("--retire {name}: it is not among the probes of the merge")));
        }
        if kafka.probes.is_empty() && !args.quiet {
            let names: Vec<_> = roster.iter().map(ToString::to_string).collect();
            term.say(format_args!("{topic}: --probes {}", names.join(",")));
        }
        let (mut logs, mut inputs) = (Logs::default(), Vec::new());
        for log in roster {
            let (name, probe) = (format!("{topic}, probe {}", log.probe), log.probe.clone());
            order.task = Task::Consume(LogOrder {
                log,
                from: kafka.kafka_from,
                until: match kafka.until {
                    UntilWhen::End => LogEnd::OfRun,
                    UntilWhen::Never => LogEnd::Never,
                },
                is_retired: kafka.retire.contains(&probe),
            });
            let mut carrier = Carrier::start(&order, term)?;
            let stream: ChildStdout = carrier.0.stdout.take().expect("it is a pipe");
            widen(&stream);
            inputs.push((name, Box::new(BufReader::new(stream)) as Box<_>));
            logs.0.push(carrier);
        }
        Ok((logs, inputs))
    }

    /// Ends all of them; the worst status.
    pub(crate) fn finish(mut self, term: &Term) -> Status {
        // All at once, so that none is waited for by itself.
        self.0.iter_mut().for_each(|carrier| drop(carrier.0.stdin.take()));
        let statuses = self.0.into_iter().map(|carrier| carrier.finish(term));
        statuses.max().unwrap_or(Status::Ok)
    }
}
