//! Packets and rows of a run that go to Kafka.

use super::session::Run;
use crate::args::{Headers, RunOptions};
use crate::exit::usage;
use crate::kafka::{self, Carrier};
use crate::term::Term;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_capture::live::clock;
use weir_capture::outlets::Outlets;
use weir_capture::write::StoppableWriter;
use weir_kafka::address::KafkaTopic;
use weir_kafka::limits::PARTITIONS_MAX;
use weir_kafka::order::{CarrierOrder, PacketsOrder, SpillOrder, Task};
use weir_kafka::packets::SpreadKey;
use weir_partitions::outlets::PacketOutlets;
use weir_partitions::reported::SourceReport;
use weir_partitions::spread::{SpreadBy, Spreader};

/// Bytes that go to the process that carries packets at once.
const BUFFER_BYTES: usize = 1 << 20;

/// The processes that carry packets and rows of a run.
#[derive(Default)]
pub(super) struct Carriers {
    packets: Option<PacketCarrier>,
    rows: Option<Carrier>,
}

/// The process that carries packets.
struct PacketCarrier {
    carrier: Carrier,
    address: String,
    partitions: usize,
}

/// The topic that packets go to, if they do.
pub(super) fn packet_topic(options: &RunOptions) -> Option<&str> {
    options.write.to.as_deref().filter(|to| KafkaTopic::is_meant(to))
}

/// Refuses what can't be had with packets or rows in Kafka; `reads_topic`: packets come from there.
pub(super) fn check(options: &RunOptions, reads_topic: bool) -> anyhow::Result<()> {
    let rows = options.partitions.rows.as_ref();
    if packet_topic(options).is_some() || rows.is_some() {
        kafka::check()?;
    }
    if let Some(address) = packet_topic(options) {
        KafkaTopic::parse(address).map_err(|why| usage(format!("-w {address}: {why}")))?;
        if options.workers.get() > 1 {
            return Err(usage(format!(
                "-j {}: a run that spreads packets over partitions has one worker, which keeps \
                 them in order; run one for each interface, each with a topic of its own",
                options.workers
            )));
        }
        if options.write.rotation().is_some() {
            return Err(usage(format!("-w {address}: -C and -G are for files; leave them out")));
        }
        if options.takes_programs() {
            return Err(usage(format!(
                "-w {address}: with --control or --http packets would go where later programs \
                 say; leave these out"
            )));
        }
        if options.headers != Headers::Outer {
            return Err(usage(format!(
                "-w {address}: --headers can't be used, since packets are spread by their outer \
                 headers"
            )));
        }
    } else if options.partitions.spread_by.is_some() {
        return Err(usage("--spread-by is for packets that go to a topic (-w kafka://)"));
    }
    let is_for_kafka = reads_topic
        || packet_topic(options).is_some()
        || rows.is_some()
        || options.publish.publish.is_some()
        || options.partitions.run.is_some();
    let is_kept = packet_topic(options).is_some() || options.publish.publish.is_some();
    if options.publish.stream.kafka_spill.is_some() && !is_kept {
        return Err(usage("--kafka-spill is for -w kafka:// and --publish kafka://"));
    }
    if options.publish.kafka_config.is_some() && !is_for_kafka {
        return Err(usage("--kafka-config is for kafka:// (-i, -w, --rows or --publish)"));
    }
    Ok(())
}

/// An order to carry something, of a run with these options.
pub(crate) fn order(
    options: &RunOptions,
    topic: KafkaTopic,
    task: Task,
) -> anyhow::Result<CarrierOrder> {
    Ok(CarrierOrder {
        topic,
        properties: kafka::properties(options.publish.kafka_config.as_deref())?,
        user: options.confine.relinquish_privileges.clone(),
        sandbox: !options.confine.no_sandbox,
        detail: kafka::detail(options.quiet, options.verbose),
        task,
    })
}

/// The order for the process that carries packets.
fn packets_order(options: &RunOptions) -> PacketsOrder {
    let bytes_max = options.publish.stream.kafka_spill_max;
    let spill = options.publish.stream.kafka_spill.clone();
    PacketsOrder { spill: spill.map(|folder| SpillOrder { folder, bytes_max }) }
}

impl Carriers {
    /// Ends all of them, once what they have is delivered; the worst status.
    pub(super) fn finish(self, term: &Term) -> crate::exit::Status {
        let packets = self.packets.map(|packets| packets.carrier);
        let all = packets.into_iter().chain(self.rows);
        let statuses = all.map(|carrier| carrier.finish(term));
        statuses.max().unwrap_or(crate::exit::Status::Ok)
    }

    /// The pipe for rows, if they go to Kafka.
    pub(super) fn rows_pipe(&self) -> std::io::Result<Option<File>> {
        self.rows.as_ref().map(Carrier::pipe).transpose()
    }
}

impl Run<'_> {
    /// Starts what carries packets and rows, first of all: it must not see what the run opens.
    pub(super) fn carriers(&self) -> anyhow::Result<Carriers> {
        let mut carriers = Carriers::default();
        if let Some(address) = packet_topic(self.options) {
            let topic = KafkaTopic::parse(address).map_err(usage)?;
            let order = order(self.options, topic, Task::Packets(packets_order(self.options)))?;
            let (carrier, count) = kafka::started(&order, self.term)?;
            let partitions = usize::try_from(count).unwrap_or(0);
            if partitions > PARTITIONS_MAX {
                return Err(usage(format!(
                    "-w {address}: it has {count} partitions, and {PARTITIONS_MAX} are possible"
                )));
            }
            let address = address.to_owned();
            carriers.packets = Some(PacketCarrier { carrier, address, partitions });
        }
        if let Some(topic) = &self.options.partitions.rows {
            let order = order(self.options, topic.clone(), Task::Rows)?;
            carriers.rows = Some(kafka::started(&order, self.term)?.0);
        }
        Ok(carriers)
    }

    /// Where packets go: to outlets, and to what carries them.
    pub(super) fn packet_outlets(
        &self,
        outlets: Outlets,
        carriers: &Carriers,
        report: &SourceReport,
    ) -> anyhow::Result<PacketOutlets> {
        let Some(packets) = &carriers.packets else { return Ok(PacketOutlets::new(outlets, None)) };
        let stops = [Arc::<AtomicBool>::clone(&self.stop)];
        let pipe = StoppableWriter::new(packets.carrier.pipe()?, &stops);
        let by = SpreadBy {
            name: packets.address.clone(),
            key: self.options.partitions.spread_by.map_or(SpreadKey::Conn, SpreadKey::from),
            partitions: packets.partitions,
            epoch: clock::system().unsigned_abs(),
        };
        let to = Box::new(BufWriter::with_capacity(BUFFER_BYTES, pipe));
        Ok(PacketOutlets::new(outlets, Some(Spreader::new(by, &self.names, report, to))))
    }
}
