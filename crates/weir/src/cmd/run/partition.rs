//! The run of one partition of a topic: packets come from the process that talks to Kafka, and rows
//! go there.

use super::session::Run;
use crate::args::PartitionRun;
use crate::exit::Status;
use crate::stats::Stats;
use crate::user::become_user;
use crate::{group, ledger};
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use weir_capture::bpf::Filtered;
use weir_cluster::ProbeHead;
use weir_engine::exchange::{Producer, ProducerId};
use weir_engine::reading::Reading;
use weir_engine::room::MemoryRoom;
use weir_engine::run::{Options, Outcome, RunError, run};
use weir_kafka::worker::FromWorker;
use weir_packet::source::Source;
use weir_partitions::source::PartitionSource;
use weir_partitions::up::{RowsUp, Up};
use weir_plan::physical::Physical;
use weir_sandbox::{Needs, confine};
use weir_sink::Named;

impl Run<'_> {
    /// Runs over a partition, until the run that captured it has ended, or whoever carries its
    /// packets has gone.
    pub(super) fn process_partition(&self, of: PartitionRun) -> anyhow::Result<Status> {
        let socket = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let up = Up::new(socket.try_clone()?);
        if let Some(user) = &self.options.confine.relinquish_privileges {
            become_user(user)?;
        }
        let mut needs = Needs::default();
        if self.filter.is_some() {
            needs.filter();
        }
        if !self.options.confine.no_sandbox {
            let confined = confine(&needs, None);
            if self.options.verbose {
                self.term.say(format_args!("partition {}: {confined}", of.partition));
            }
        }
        let options = self.engine_options(&Stats::silent(), None);
        let memory = self.memory.map(|bytes| MemoryRoom::new(bytes / of.share.max(1)));
        let options = Options { memory, stop: None, ..options };
        let publishes = self.options.publish.publish.is_some();
        let source = PartitionSource::new(
            socket,
            up.clone(),
            (&self.program, publishes),
            &self.names,
            &options,
        );
        let source: Box<dyn Source> = match self.filter.clone() {
            Some(filter) => Box::new(Filtered::new(source, "the partition", filter)),
            None => Box::new(source),
        };
        let mut source = Reading::new(source).headers(self.options.headers());
        let outcome = match publishes {
            true => self.publish_partition(of, &up, &mut source, &options)?,
            false => {
                let rows = RowsUp::new(
                    up.clone(),
                    self.options.rows.time_format(self.options.rules.time_zone),
                );
                let mut sink = Named::new(self.options.rows.names.into(), Box::new(rows));
                let (program, functions) = (&self.program, &self.functions);
                run(program, functions, &mut source, &mut sink, &options, &mut |_| ())
            }
        };
        let losses = ledger::losses(&outcome.ledger, None);
        if !losses.is_empty() {
            self.term.say(format_args!("partition {}:", of.partition));
            self.term.say_text(&losses);
        }
        match outcome.error {
            None => up.finish().map(|()| Status::Ok).or_else(|e| match e.kind() {
                io::ErrorKind::BrokenPipe => Ok(Status::Ok),
                _ => Err(e.into()),
            }),
            // The process that carries rows has gone: what is not committed is for the next run.
            Some(RunError::Sink(e) | RunError::Egress(e))
                if matches!(
                    e.kind(),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                ) =>
            {
                Ok(Status::Ok)
            }
            Some(e) => Err(e.into()),
        }
    }

    /// Runs the worker level over a partition, and hands its messages on.
    fn publish_partition(
        &self,
        of: PartitionRun,
        up: &Up,
        source: &mut dyn Source,
        options: &Options,
    ) -> anyhow::Result<Outcome> {
        let probe = group::probe_of(self.options, of.partition);
        // The process that carries messages knows which life it is, and how many of them are out.
        let id = ProducerId::named(&probe, 0);
        let plan = Physical::new(&self.program, &[]);
        let producer = Producer::new(&plan, &self.functions, options, id)?;
        // Packets whose results are not in the log yet are analysed again.
        let head = ProbeHead { resumes: true, ..self.head(id, probe, &producer, options) };
        let head = serde_json::to_vec(&head)?;
        up.say(&FromWorker::Head(head))?;
        Ok(producer.run(source, &mut |message| up.message(message)))
    }
}
