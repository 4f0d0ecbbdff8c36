//! Bounds of delivery: how much waits, how long, and how often it is tried.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Targets of a run.
pub const TARGETS_MAX: usize = 16;

/// Bytes of an alert, as JSON. One that is longer is not delivered, and counted.
pub const ALERT_BYTES_MAX: usize = 256 << 10;

/// Bytes of alerts that wait for the process that delivers them.
pub const PIPE_BYTES_MAX: usize = 4 << 20;

/// How long a run over files waits for room there.
pub const PIPE_PATIENCE: Duration = Duration::from_secs(5);

/// Alerts that wait for a target, and bytes of them. One more is not delivered, and counted.
pub const QUEUE_ALERTS_MAX: usize = 16_384;
/// Bytes of the alerts that wait for a target.
pub const QUEUE_BYTES_MAX: usize = 16 << 20;

/// Bytes on disk of the alerts that wait for a target.
pub const JOURNAL_BYTES_MAX: u64 = 64 << 20;

/// How long alerts that wait at the end of a run may still take to be delivered.
pub const DRAIN: Duration = Duration::from_secs(10);

/// How often the process looks at its end whether the run was killed meanwhile, where it keeps in
/// files what waits.
pub(crate) const ENDING_EVERY: Duration = Duration::from_millis(100);

/// How long the run waits for the last report after that.
pub const FAREWELL: Duration = Duration::from_secs(3);

/// How long a receiver may take: to be connected to, to accept a message and to answer.
pub(crate) const SEND_PATIENCE: Duration = Duration::from_secs(15);

/// How long an address of a receiver may take to answer, where it has several.
pub(crate) const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// How long saying that a connection ends may take.
pub(crate) const GOODBYE: Duration = Duration::from_millis(200);

/// The first pause before another try. It doubles each time, ...
pub(crate) const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// ... up to this.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The pause before another try while a run ends.
pub(crate) const PAUSE_ENDING: Duration = Duration::from_secs(1);

/// How often a message is sent that the receiver answers with an error that may pass.
pub(crate) const TRIES_MAX: u32 = 10;

/// How long an alert waits for a receiver that is away, ...
pub(crate) const AWAY_MAX: Duration = Duration::from_secs(3600);

/// ... and how long where it waits in a file, too (`--alert-spill`): longer than a weekend.
pub(crate) const AWAY_SPILL_MAX: Duration = Duration::from_secs(3 * 24 * 3600);

/// Columns of a row that tell why an alert came.
pub(crate) const EVIDENCE_MAX: usize = 8;

/// Bytes of an answer that are read.
pub(crate) const ANSWER_BYTES_MAX: usize = 16 << 10;

/// Headers of an answer.
pub(crate) const ANSWER_HEADERS_MAX: usize = 64;

/// The longest pause that a receiver can ask for.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(600);

/// Bytes of a text of packets in a message.
pub(crate) const TEXT_MAX: usize = 1024;

/// Bytes of a syslog message: as a datagram, and over TCP.
pub(crate) const DATAGRAM_MAX: usize = 2048;
/// Bytes of a syslog message over TCP.
pub(crate) const RECORD_MAX: usize = 8192;

/// Alerts of a mail, how long it waits for more of them, and the time between two mails.
pub(crate) const MAIL_ALERTS_MAX: usize = 100;
/// How long a mail waits for further alerts.
pub(crate) const MAIL_GATHER: Duration = Duration::from_secs(3);
/// The time between two mails.
pub(crate) const MAILS_APART: Duration = Duration::from_secs(60);

/// Alerts of a request to Alertmanager.
pub(crate) const BATCH_MAX: usize = 64;

/// Alerts that go on and are repeated for an Alertmanager. Further ones are not repeated.
pub(crate) const OPEN_MAX: usize = 4096;

/// Labels of an alert that come from its key.
pub(crate) const KEY_LABELS_MAX: usize = 16;

/// How often the delivering process reports, if something has changed.
pub(crate) const REPORT_EVERY: Duration = Duration::from_secs(1);

/// How often a target may be spoken of.
pub(crate) const SAY_EVERY: Duration = Duration::from_secs(10);

/// Bytes of a line of the setup: certificates and keys among them.
pub(crate) const SETUP_BYTES_MAX: u64 = 32 << 20;

/// Bytes of a file with a password, a key or a token.
pub(crate) const SECRET_BYTES_MAX: u64 = 4096;

/// Secrets that sign a webhook: one, and older ones while receivers change to it.
pub(crate) const SIGNING_KEYS_MAX: usize = 8;
/// Bytes of a key that is written as `whsec_` and base64 (Standard Webhooks 1.0).
pub(crate) const SIGNING_KEY_BYTES: RangeInclusive<usize> = 24..=64;
/// Bytes of a key that is written as a text, at least.
pub(crate) const SIGNING_TEXT_BYTES_MIN: usize = 16;

/// Bytes of a request that a user has written.
pub(crate) const REQUEST_BYTES_MAX: u64 = 64 << 10;

/// Bytes of a file of certificates.
pub(crate) const CERTIFICATES_MAX: u64 = 1 << 20;

/// Bytes of a file of targets.
pub(crate) const CONFIG_BYTES_MAX: u64 = 1 << 20;
