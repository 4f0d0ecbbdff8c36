//! The HTTP interface of a run, and the checks that clients pass.
//!
//! An [`HttpSocket`] is bound before a run gives up its permissions, and answers clients
//! afterwards within the bounds of [`weir_control::serve()`]. Each connection carries one request.
//! A request is refused before its body is read unless its [`Guard`] lets it pass: its `Host` must
//! be an address, `localhost` or a name that was allowed, and its token must be that of the run, if
//! there is one. [`Exposition`] writes metrics as OpenMetrics or as Prometheus reads them. The
//! [`Api`] does what the control socket does, by the same code, and shows the rows of a
//! [`RowLog`], which may keep the latest of them. A [`Page`] is files for browsers.
//!
//! This crate knows neither packets nor queries: the run says what its [`Pages`] show.

#![forbid(unsafe_code)]

mod alerts;
mod answer;
mod api;
mod block;
mod exposition;
mod follow;
mod form;
mod guard;
mod history;
#[cfg(test)]
#[path = "tests/hostile.rs"]
mod hostile;
mod limits;
mod log;
mod packets;
mod page;
mod pages;
mod request;
mod response;
mod shelf;
mod socket;
mod stream;
#[cfg(test)]
mod testing;

pub use alerts::{AlertPhase, AlertsQuestion, ListAlerts};
pub use api::{Api, CheckQuery, Lookups};
pub use exposition::{Exposition, FamilyKind, Measured, MetricsFormat, Sample};
pub use form::{RowForm, ShownOutput};
pub use guard::{Guard, GuardError, Token};
pub use log::RowLog;
pub use packets::{
    FindPackets, NoPackets, PacketsAnswer, PacketsForm, PacketsQuestion, WhichPackets,
};
pub use page::{Page, PageFile};
pub use pages::Pages;
#[cfg(any(test, fuzzing))]
pub use request::fuzz_http;
pub use shelf::{AskShelf, ShelfAnswer, ShelfQuestion, ShelfRefusal};
pub use socket::{Address, HttpSocket};
