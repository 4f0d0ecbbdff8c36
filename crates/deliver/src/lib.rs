//! Alerts delivered to other programs: syslog, webhooks and chats, mail, Alertmanager.
//!
//! The process that reads packets is confined and can't connect to anything. So a process of its
//! own delivers alerts: it is started before that, and the run hands it rows as lines of JSON by a
//! pipe ([`Courier`]). It keeps a bounded queue for each [`Target`], delivers, tries again where a
//! receiver is away, and reports by another pipe ([`serve()`]). The run never waits for it for
//! long: what finds no room is counted as undelivered.
//!
//! | file | what it has |
//! |---|---|
//! | `line.rs`, `target.rs` | what `--alert-to` names |
//! | `courier.rs`, `counts.rs` | the side of the run |
//! | `serve.rs`, `queue.rs`, `worker.rs` | the other process: a queue and a thread for each target |
//! | `syslog.rs`, `webhook.rs`, `chat.rs`, `mail.rs`, `alertmanager.rs` | what is sent, by target |
//! | `signature.rs` | how webhooks are signed |
//! | `connection.rs`, `tls.rs`, `http.rs`, `smtp.rs` | how it is sent, each with a deadline |
//! | `journal.rs` | alerts that wait, in files that outlast the process |
//! | `clean.rs` | the one place where texts of packets are made harmless |

#![forbid(unsafe_code)]

mod alert;
mod alertmanager;
mod chat;
mod choose;
mod clean;
mod clock;
mod connection;
mod counts;
mod courier;
mod failure;
mod http;
mod journal;
pub mod limits;
mod line;
mod mail;
mod message;
mod queue;
mod receiver;
mod serve;
mod signature;
mod smtp;
mod syslog;
mod target;
mod template;
mod tls;
mod webhook;
mod worker;

pub use counts::{DeliveryCounts, TargetCounts};
pub use courier::{Courier, CourierError};
pub use line::LineError;
pub use message::{Setup, read_setup, refuse};
pub use serve::{GiveUp, serve};
pub use target::Target;
pub use tls::Trust;
