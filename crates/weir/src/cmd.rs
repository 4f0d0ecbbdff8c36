//! One module per command. Each returns how the process ends.

pub(crate) mod archive;
pub(crate) mod carrier;
pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod ctl;
pub(crate) mod deliver;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod fields;
pub(crate) mod fmt;
pub(crate) mod generate;
pub(crate) mod help;
pub(crate) mod interfaces;
pub(crate) mod library;
pub(crate) mod list;
pub(crate) mod merge;
pub(crate) mod open;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod shelf;
pub(crate) mod sql;
pub(crate) mod watch;
pub(crate) mod worker;
