//! Starts what shows the rows of a run to others: the HTTP interface, and the delivery of alerts.

use super::session::Run;
use crate::delivery::{self, AlertTap};
use crate::exports::Exports;
use crate::metrics;
use crate::stats::Stats;
use crate::tap::{Tallies, Tap};
use std::sync::Arc;
use weir_control::Answers;
use weir_deliver::{Courier, WhenFull};
use weir_engine::rows::Sink;
use weir_http::{Api, HttpSocket, RowFeed};
use weir_sink::RowOptions;

impl Run<'_> {
    /// Delivers alerts from now on, if there are receivers. The result hands them over on their way
    /// to the sink.
    pub(super) fn deliver(
        &self,
        courier: Option<&Courier>,
        stats: &Stats,
        sink: Box<dyn Sink>,
    ) -> anyhow::Result<Box<dyn Sink>> {
        let Some(courier) = courier else { return Ok(sink) };
        delivery::run(courier, self.term, self.options.quiet)?;
        stats.report_deliveries(courier.clone());
        let when_full = if self.drops() { WhenFull::Refuse } else { WhenFull::Wait };
        Ok(Box::new(AlertTap::new(sink, courier.clone(), when_full)))
    }

    /// Answers clients over HTTP from now on, and says where. The result copies rows for them on
    /// their way to the sink.
    pub(super) fn serve_http(
        &self,
        http: HttpSocket,
        stats: &Stats,
        answers: Option<Arc<Answers>>,
        (sink, options): (Box<dyn Sink>, RowOptions),
    ) -> anyhow::Result<Box<dyn Sink>> {
        let (tallies, rows) = (Tallies::default(), RowFeed::default());
        let address = http.address()?;
        let clients = (tallies.clone(), rows.clone());
        let is_api = self.options.http.http.is_some();
        let feed = rows.clone();
        let api = answers.filter(|_| is_api).map(|answers| Api { answers, rows });
        let exports = Exports::default();
        http.start(metrics::pages(stats, exports.clone(), (tallies, feed), api))?;
        if !self.options.quiet {
            self.term.say(format_args!("metrics: http://{address}/metrics"));
            if is_api {
                self.term.say(format_args!("api: http://{address}/api/v1/openapi.json"));
            }
        }
        let form = (options, self.options.rows.names.into());
        Ok(exports.watch(Box::new(Tap::new(sink, clients, self.alone.clone(), form))))
    }
}
