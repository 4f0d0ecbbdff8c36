//! The counts of a run so far: printed on standard error every few seconds and at SIGUSR1, and sent
//! to clients of the control socket.

use crate::term::Term;
use crate::{delivery, ledger, records, wire};
use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;
use weir_capture::lookback::{LookbackCounts, Tally};
use weir_capture::records::RecordReport;
use weir_deliver::{Courier, DeliveryCounts};
use weir_engine::counters::Ledger;
use weir_engine::run::Inquiry;
use weir_kernel::KernelTables;
use weir_packet::source::Account;

/// The line above a ledger that is printed while the run goes on.
const SO_FAR: &str = "so far:";

/// The counts of a run so far.
#[derive(Clone)]
pub(crate) struct RunCounts {
    /// The ledger.
    pub(crate) ledger: Ledger,
    /// The account of each interface, by its name.
    pub(crate) interfaces: Vec<(String, Account)>,
}

/// Asks a run for its counts, as long as it lasts.
#[derive(Clone)]
pub(crate) struct Stats {
    inquiry: Arc<Inquiry>,
    asked: Arc<Asked>,
}

/// Where answers go.
#[derive(Default)]
struct Asked {
    /// Whether the answer is to be printed.
    print: AtomicBool,
    waiting: Mutex<Vec<Sender<RunCounts>>>,
    /// The counts of a run that has ended, while it is still asked.
    last: Mutex<Option<RunCounts>>,
    /// Counts the packets around rows, where some are kept.
    captures: OnceLock<Tally>,
    /// Delivers alerts, where there are receivers.
    courier: OnceLock<Courier>,
    /// Counts what exporters send, where flow records come.
    records: OnceLock<RecordReport>,
    /// The groups that programs in the kernel make, where there are some.
    kernel: OnceLock<Arc<KernelTables>>,
}

impl Asked {
    /// Whether the kernel hands all packets up, where it has a part of programs that may change.
    fn hands_up(&self) -> Option<bool> {
        self.kernel.get().and_then(|kernel| kernel.hands_up())
    }

    /// The ledger as text, with what is known of the kernel, and of interfaces or exporters.
    fn text(&self, ledger: &Ledger, interfaces: &[(String, Account)]) -> String {
        let mut text = source_text(ledger, interfaces, self.records.get());
        text += self.hands_up().map_or("", ledger::kernel_part);
        text
    }
}

/// The ledger as text, with what is known of interfaces or exporters.
fn source_text(
    ledger: &Ledger,
    interfaces: &[(String, Account)],
    records: Option<&RecordReport>,
) -> String {
    let mut text = match records {
        Some(_) => ledger::render_records(ledger),
        None => ledger::render(ledger),
    };
    text += &ledger::workers(ledger);
    text += &match records {
        Some(records) => records::render(&records.summary()),
        None => wire::render(interfaces, &wire::Notes::default()),
    };
    text
}

impl Stats {
    /// Prints the answers that signals ask for on the terminal.
    pub(crate) fn new(term: &Term) -> Stats {
        Stats::printing(Some(*term))
    }

    /// Prints nothing, since a screen has the terminal.
    pub(crate) fn silent() -> Stats {
        Stats::printing(None)
    }

    fn printing(term: Option<Term>) -> Stats {
        let asked = Arc::<Asked>::default();
        let theirs = Arc::clone(&asked);
        let inquiry = Inquiry::new(move |counts, interfaces| {
            let prints = theirs.print.swap(false, Ordering::Relaxed);
            if let Some(term) = term.filter(|_| prints) {
                term.say(SO_FAR);
                term.say_text(&theirs.text(counts, interfaces));
                if let Some(captures) = theirs.captures.get() {
                    term.say(ledger::captures(&captures.now()));
                }
                if let Some(courier) = theirs.courier.get() {
                    term.say_text(&delivery::render(&courier.counts()));
                }
            }
            let mut waiting = theirs.waiting.lock();
            for answer in waiting.drain(..) {
                let (ledger, interfaces) = (counts.clone(), interfaces.to_vec());
                // The receiver may have stopped waiting.
                drop(answer.send(RunCounts { ledger, interfaces }));
            }
        });
        Stats { inquiry: Arc::new(inquiry), asked }
    }

    /// From now on also reports the counts of packets kept around rows.
    pub(crate) fn report_captures(&self, captures: Tally) {
        self.asked.captures.get_or_init(|| captures);
    }

    /// The counts of packets around rows so far, if some are kept.
    pub(crate) fn captures(&self) -> Option<LookbackCounts> {
        self.asked.captures.get().map(Tally::now)
    }

    /// From now on reports what exporters send.
    pub(crate) fn report_records(&self, records: RecordReport) {
        self.asked.records.get_or_init(|| records);
    }

    /// From now on reports whether the kernel runs its part.
    pub(crate) fn report_kernel(&self, kernel: Arc<KernelTables>) {
        self.asked.kernel.get_or_init(|| kernel);
    }

    /// Whether the kernel hands all packets up, where it has a part of programs that may change.
    pub(crate) fn hands_up(&self) -> Option<bool> {
        self.asked.hands_up()
    }

    /// The ledger as text, with what is known of the kernel, and of interfaces or exporters.
    pub(crate) fn text(&self, counts: &RunCounts) -> String {
        self.asked.text(&counts.ledger, &counts.interfaces)
    }

    /// From now on also reports what becomes of alerts.
    pub(crate) fn report_deliveries(&self, courier: Courier) {
        self.asked.courier.get_or_init(|| courier);
    }

    /// The fate of alerts so far, if they are delivered.
    pub(crate) fn deliveries(&self) -> Option<DeliveryCounts> {
        self.asked.courier.get().map(Courier::counts)
    }

    /// The questions that the run answers.
    pub(crate) fn inquiry(&self) -> Arc<Inquiry> {
        Arc::clone(&self.inquiry)
    }

    /// Asks for the ledger to be printed.
    pub(crate) fn print(&self) {
        self.asked.print.store(true, Ordering::Relaxed);
        self.inquiry.ask();
    }

    /// From now on answers are these counts of a run that has ended, or again those of one that
    /// goes on.
    pub(crate) fn set_last(&self, counts: Option<RunCounts>) {
        let mut last = self.asked.last.lock();
        if let Some(counts) = &counts {
            let mut all = self.asked.waiting.lock();
            // The receivers may have stopped waiting.
            all.drain(..).for_each(|one| drop(one.send(counts.clone())));
        }
        *last = counts;
    }

    /// Asks; the answer comes by the channel.
    pub(crate) fn ask(&self) -> Receiver<RunCounts> {
        let (sender, answer) = mpsc::channel();
        let last = self.asked.last.lock();
        if let Some(counts) = &*last {
            // The receiver is here.
            drop(sender.send(counts.clone()));
            return answer;
        }
        self.asked.waiting.lock().push(sender);
        self.inquiry.ask();
        answer
    }

    /// Asks, and waits for the answer at most so long.
    pub(crate) fn wait(&self, patience: Duration) -> Option<RunCounts> {
        self.ask().recv_timeout(patience).ok()
    }

    /// Prints after each `period`, as long as the run lasts.
    pub(crate) fn print_every(&self, period: Duration) -> io::Result<()> {
        self.every("stats", period, Stats::print)
    }

    /// Asks for the counts after each `period`, so that the sink gets them, as long as the run
    /// lasts.
    pub(crate) fn look_every(&self, period: Duration) -> io::Result<()> {
        self.every("look", period, |stats| stats.inquiry.ask())
    }

    fn every(&self, name: &str, period: Duration, ask: fn(&Stats)) -> io::Result<()> {
        let (inquiry, asked) = (Arc::downgrade(&self.inquiry), Arc::clone(&self.asked));
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            loop {
                // No thread wakes it before its time.
                thread::park_timeout(period);
                let Some(inquiry) = inquiry.upgrade() else { return };
                ask(&Stats { inquiry, asked: Arc::clone(&asked) });
            }
        })?;
        Ok(())
    }
}
