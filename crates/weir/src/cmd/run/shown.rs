//! Starts what shows the rows of a run to others: the HTTP interface, and the delivery of alerts.

use super::session::Run;
use crate::alert_board::AlertBoard;
use crate::delivery::{self, AlertTap};
use crate::exports::Exports;
use crate::metrics;
use crate::observe::Observer as _;
use crate::page;
use crate::shelf::Shelf;
use crate::stage_flow::StageMetrics;
use crate::stats::Stats;
use crate::tap::{AtEnd, Tallies, Tap};
use std::sync::Arc;
use weir_base::full::WhenFull;
use weir_capture::lookback::HeldFrames;
use weir_control::Answers;
use weir_deliver::Courier;
use weir_engine::rows::{Output, Sink};
use weir_http::{Api, AskShelf, HttpSocket, RowForm, RowLog};
use weir_search::{Earlier, ReadAgain, finder};
use weir_sink::RowOptions;

/// The parts of the API: the answers, packets that are kept, and captures beside the run.
type ForApi = (Option<Arc<Answers>>, Option<HeldFrames>, Option<Arc<Shelf>>);

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
        let when_full = if self.drops() { WhenFull::LeaveOut } else { WhenFull::Wait };
        Ok(AlertTap::new(courier.clone(), when_full).on_the_way(sink))
    }

    /// Answers clients over HTTP from now on, and says where. The result copies rows for them on
    /// their way to the sink.
    pub(super) fn serve_http(
        &self,
        http: HttpSocket,
        stats: &Stats,
        (answers, held, shelf): ForApi,
        (sink, options): (Box<dyn Sink>, RowOptions),
    ) -> anyhow::Result<Box<dyn Sink>> {
        let is_api = self.options.http.http.is_some();
        let page = is_api.then(page::page).flatten();
        let names = self.options.rows.names.into();
        let form = RowForm { options, names, alone: self.alone.clone() };
        let (tallies, rows) = (Tallies::default(), RowLog::new(form.clone(), page.is_some()));
        let address = http.address()?;
        let clients = (tallies.clone(), rows.clone());
        let log = rows.clone();
        let board = AlertBoard::default();
        let api = answers.filter(|_| is_api);
        let api = api.map(|answers| -> anyhow::Result<Api> {
            let earlier = self.earlier(held);
            let packets = earlier.map(|earlier| finder(earlier, Arc::clone(&answers)));
            let (phase, rules) = (self.phase.clone(), self.options.rules.rules()?);
            let lookups = page::lookups(phase, rules, (stats, &answers));
            if let Some(shelf) = &shelf {
                let (notes, term) = (self.notes.clone(), *self.term);
                let says = !self.options.quiet && !self.shows_screen;
                shelf.watch(move |how| {
                    notes.ended(how.to_owned());
                    if says {
                        term.say(how);
                    }
                })?;
            }
            let shelf = shelf.map(|shelf| Box::new(move |asked| shelf.answer(asked)) as AskShelf);
            let (board, running) = (board.clone(), Arc::clone(&answers));
            let alerts = Box::new(move |asked: &_| board.value(asked, &running.layout()));
            Ok(Api { answers, rows, lookups, alerts, packets, shelf })
        });
        let api = api.transpose()?;
        let has_page = page.is_some();
        let exports = Exports::default();
        let at_end = if self.serves.is_some() { AtEnd::Rest } else { AtEnd::Close };
        let observer = is_api.then(|| board.observer(form));
        let tap = Tap::new(sink, clients, &Output::of(&self.program), at_end);
        let stages = StageMetrics::new(self.is_alone.then(|| self.alone.clone()));
        let clients = (api, page);
        http.start(metrics::pages(stats, exports.clone(), (tallies, log), stages, clients))?;
        if !self.options.quiet {
            self.term.say(format_args!("metrics: http://{address}/metrics"));
            if is_api {
                self.term.say(format_args!("api: http://{address}/api/v1/openapi.json"));
            }
        }
        // A token of the run's own is told here only.
        let own = self.options.http.own_token.as_ref();
        if has_page && (!self.options.quiet || own.is_some()) {
            let token = own.map(|token| format!("#token={}", token.reveal()));
            self.term.say(format_args!("page: http://{address}/{}", token.unwrap_or_default()));
        }
        let shown = exports.watch(Box::new(tap));
        Ok(match observer {
            Some(observer) => observer.on_the_way(shown),
            None => shown,
        })
    }

    /// Where packets that have passed are found, if they are.
    fn earlier(&self, held: Option<HeldFrames>) -> Option<Earlier> {
        if let Some(held) = held {
            return Some(Earlier::Ring(held));
        }
        self.reads_again().then(|| self.in_captures())
    }

    /// The captures, to be read again.
    pub(super) fn in_captures(&self) -> Earlier {
        Earlier::Captures(ReadAgain {
            captures: self.options.read.clone(),
            options: self.capture_options(),
            count: self.options.count,
            headers: self.options.headers(),
            fragments: self.options.fragments,
        })
    }
}
