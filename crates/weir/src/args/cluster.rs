//! The command line of `weir cluster`.

use super::partitions::topic;
use super::values::param;
use super::{RulesArgs, SiteArgs};
use clap::{Args, Subcommand};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use weir_kafka::address::KafkaTopic;
use weir_kafka::order::LogName;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir cluster submit flows.weir --kafka localhost:9092 --topic partials --to flows \\
      --probes north,south --jar weir-flink.jar
  weir cluster submit flows.weir --kafka localhost:9092 --topic partials --to flows \\
      --probes north,south --database jdbc:postgresql://localhost/weir?user=weir
  weir cluster explain flows.weir
  weir cluster list
  weir cluster retire north --topic kafka://localhost:9092/partials
  weir cluster savepoint --cancel 5c3ff3a6c1e5dd5a2dd5ac9d5a4d5cb1";

/// Where Flink answers by default.
const FLINK: &str = "localhost:8081";

#[derive(Args, Debug)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    pub(crate) command: ClusterCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ClusterCommand {
    /// Start a job on Flink that merges the partial results of a topic, and print its number
    Submit(Box<SubmitArgs>),
    /// Show which parts of queries run at the probes, and which in a job, and why
    Explain(Box<ClusterQueryArgs>),
    /// List the jobs on Flink
    List(FlinkArgs),
    /// Show the state of a job, what went through its stages, and how far its probes are
    Status(JobArgs),
    /// End a job; what it has not committed is lost
    Cancel(JobArgs),
    /// Say that a probe is gone without a word: nothing waits for it until it sends again
    Retire(RetireArgs),
    /// Write a savepoint of a job, which `submit --from-savepoint` goes on from; print its place
    Savepoint(SavepointArgs),
}

#[derive(Args, Debug)]
pub(crate) struct FlinkArgs {
    /// The REST interface of Flink, as HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "PLACE", default_value = FLINK)]
    pub(crate) flink: String,

    /// Certificates that Flink's is checked by, as PEM; without it, those of the system
    #[arg(long, value_name = "FILE")]
    pub(crate) flink_ca: Option<PathBuf>,

    /// A file with a token for Flink, or with all that the header `Authorization` has
    #[arg(long, value_name = "FILE")]
    pub(crate) flink_token: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct JobArgs {
    /// The number of the job, from `weir cluster list`
    #[arg(value_name = "JOB", value_parser = job_number)]
    pub(crate) job: String,

    #[command(flatten)]
    pub(crate) flink: FlinkArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RetireArgs {
    /// The name of the probe; NAME@N where it writes to partition N of the topic
    #[arg(value_name = "PROBE", value_parser = LogName::parse)]
    pub(crate) probe: LogName,

    /// The topic that the probes publish to
    #[arg(long, value_name = "kafka://HOST:PORT/TOPIC", value_parser = topic)]
    pub(crate) topic: KafkaTopic,

    /// Properties of Kafka's client for TLS and SASL, as lines of NAME=VALUE
    #[arg(long, value_name = "FILE")]
    pub(crate) kafka_config: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct SavepointArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,

    /// The folder that it is written into, as Flink names it; without it, that of Flink's settings
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<String>,

    /// End the job once it is written
    #[arg(long)]
    pub(crate) cancel: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    pub(crate) query: ClusterQueryArgs,

    /// A broker of Kafka, as the task managers of Flink reach it
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) kafka: String,

    /// Properties of Kafka's client for TLS and SASL, as lines of NAME=VALUE
    #[arg(long, value_name = "FILE")]
    pub(crate) kafka_config: Option<PathBuf>,

    /// The topic that the probes publish to
    #[arg(long, value_name = "TOPIC")]
    pub(crate) topic: String,

    /// The names of all probes: windows wait for each of them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', required = true)]
    pub(crate) probes: Vec<String>,

    /// The topic that rows go to, as JSON; what was late or refused goes to TOPIC-events
    #[arg(long, value_name = "TOPIC")]
    pub(crate) to: String,

    /// Put rows into the table of this name in a database instead, as
    /// jdbc:postgresql://HOST/NAME?user=USER; it is made unless it is there
    #[arg(long, value_name = "URL", value_parser = database)]
    pub(crate) database: Option<String>,

    #[command(flatten)]
    pub(crate) flink: FlinkArgs,

    /// The job's jar: `cluster/flink.sh jar` builds it
    #[arg(long, value_name = "FILE", default_value = "weir-flink.jar")]
    pub(crate) jar: PathBuf,

    /// A name for the job; without it, that of the topic of its rows
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// How often results are committed and the state is saved, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    #[arg(value_parser = clap::value_parser!(u32).range(10..))]
    pub(crate) checkpoint_ms: u32,

    /// Tasks that share the work; without it, as many as Flink's settings say
    #[arg(long, value_name = "N")]
    pub(crate) parallelism: Option<NonZeroUsize>,

    /// Go on from a savepoint
    #[arg(long, value_name = "PLACE")]
    pub(crate) from_savepoint: Option<String>,

    /// Read the topic up to its present end, close all windows, and end
    #[arg(long)]
    pub(crate) bounded: bool,

    /// Let rows go to a topic or a table that has rows already, or that another job writes
    #[arg(long)]
    pub(crate) append: bool,

    /// Make the topics of rows and events where they are absent, with the settings of the broker
    #[arg(long)]
    pub(crate) create_topics: bool,
}

/// The URL of a database. The job shows it to whoever may see the job.
fn database(text: &str) -> Result<String, String> {
    let Some((_, place)) = text.split_once("jdbc:postgresql:").filter(|(no, _)| no.is_empty())
    else {
        return Err("a database is jdbc:postgresql://HOST/NAME".to_owned());
    };
    let settings = place.split_once('?').map_or("", |(_, settings)| settings);
    let names = settings.split('&').filter_map(|one| one.split_once('='));
    if names.map(|(name, _)| name.to_lowercase()).any(|name| name.ends_with("password")) {
        return Err("everybody who sees the job sees this; a password belongs into ~/.pgpass of \
                    the user that Flink runs as"
            .to_owned());
    }
    Ok(text.to_owned())
}

/// The number of a job: 32 hexadecimal digits.
fn job_number(text: &str) -> Result<String, String> {
    let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| text.to_owned()).ok_or_else(|| "a job has 32 hexadecimal digits".to_owned())
}

#[derive(Args, Debug)]
pub(crate) struct ClusterQueryArgs {
    /// The queries that the probes run: files, or names or groups from `weir list`
    #[arg(value_name = "QUERY", required_unless_present = "expressions")]
    pub(crate) queries: Vec<String>,

    /// The text of a query, instead of a file; may be given several times
    #[arg(short, long = "expression", value_name = "TEXT")]
    pub(crate) expressions: Vec<String>,

    /// Set a parameter in all queries that have it; QUERY.NAME=VALUE sets it in one query
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = param)]
    pub(crate) params: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) site: SiteArgs,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}
