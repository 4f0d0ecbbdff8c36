//! Delivers the alerts of a queue to a target, one message after the other, and tries again where
//! that may help.

use crate::clock;
use crate::counts::TargetCounts;
use crate::failure::Failure;
use crate::limits::{
    AWAY_MAX, AWAY_SPILL_MAX, BATCH_MAX, PAUSE_ENDING, PAUSE_FIRST, PAUSE_MAX, SAY_EVERY,
    SEND_PATIENCE, TRIES_MAX,
};
use crate::queue::{Next, Queue};
use crate::receiver::{Batching, Receiver};
use parking_lot::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How a target is tried again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) first: Duration,
    pub(crate) most: Duration,
    pub(crate) tries: u32,
    pub(crate) away: Duration,
}

impl Pace {
    /// That of alerts which wait in memory, or in a file, too.
    pub(crate) fn of(spills: bool) -> Pace {
        let away = if spills { AWAY_SPILL_MAX } else { AWAY_MAX };
        Pace { first: PAUSE_FIRST, most: PAUSE_MAX, tries: TRIES_MAX, away }
    }
}

/// A target, as its thread and the others see it.
pub(crate) struct TargetState {
    pub(crate) queue: Queue,
    told: Mutex<Told>,
}

/// The counts and messages that a target has to tell.
#[derive(Default)]
struct Told {
    counts: TargetCounts,
    say: Vec<String>,
    /// When it was last spoken of, and whether it was said to fail.
    at: Option<Instant>,
    fails: bool,
    /// Whether it was said that alerts are not kept.
    keeps_no_more: bool,
}

impl TargetState {
    pub(crate) fn new(name: &str) -> TargetState {
        let counts = TargetCounts { name: name.to_owned(), ..TargetCounts::default() };
        let told = Told { counts, ..Told::default() };
        TargetState { queue: Queue::default(), told: Mutex::new(told) }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock()
    }

    /// An alert found no room.
    pub(crate) fn count_full(&self) {
        self.told().counts.full += 1;
    }

    /// The fate of its alerts so far, and what to say of it.
    pub(crate) fn counts(&self) -> (TargetCounts, Vec<String>) {
        let waiting = self.queue.len() as u64;
        let unkept = self.queue.keeps_no_more();
        let mut told = self.told();
        if let Some(why) = unkept.filter(|_| !told.keeps_no_more) {
            let text = format!("alerts to {} are not kept any more: {why}", told.counts.name);
            told.say.push(text);
            told.keeps_no_more = true;
        }
        let counts = TargetCounts { waiting, ..told.counts.clone() };
        (counts, std::mem::take(&mut told.say))
    }

    /// The same at the end, when what still waits does so in vain.
    pub(crate) fn last_counts(&self) -> (TargetCounts, Vec<String>) {
        let (mut counts, say) = self.counts();
        let left = std::mem::take(&mut counts.waiting);
        match self.queue.keeps() {
            true => counts.kept += left,
            false => counts.away += left,
        }
        (counts, say)
    }

    fn succeeded(&self, n: usize) {
        let mut told = self.told();
        told.counts.delivered += n as u64;
        if std::mem::take(&mut told.fails) {
            let text = format!("alerts to {}: delivered again", told.counts.name);
            told.say.push(text);
        }
    }

    fn failed(&self, failure: &Failure, then: &str) {
        let mut told = self.told();
        told.counts.error = Some(failure.to_string());
        let now = clock::now();
        let was_said = told.at.is_some_and(|at| now.saturating_duration_since(at) < SAY_EVERY);
        // A target is gone once.
        let is_gone = matches!(failure, Failure::Gone(_));
        if is_gone || (!told.fails && !was_said) {
            let text = format!("alerts to {}: {failure}; {then}", told.counts.name);
            told.say.push(text);
            told.at = Some(now);
            told.fails = true;
        }
    }
}

/// The failures since the last message that was taken.
#[derive(Default)]
struct Trouble {
    tries: u32,
    pauses: u32,
    /// So many alerts go one by one, since one of them was refused.
    single: usize,
}

/// Delivers until nothing more comes and nothing waits.
pub(crate) fn deliver(line: &TargetState, receiver: &mut dyn Receiver, pace: Pace) {
    let queue = &line.queue;
    let batching = receiver.batching();
    let (mut trouble, mut not_before) = (Trouble::default(), clock::now());
    loop {
        let alerts_max = if trouble.single > 0 { 1 } else { batching.alerts_max };
        let how = Batching { alerts_max, ..batching };
        let alerts = match queue.next(how, not_before, receiver.repeat_at()) {
            Next::Deliver(alerts) => alerts,
            Next::Repeat => {
                match receiver.repeat(clock::now() + SEND_PATIENCE) {
                    Ok(()) => {}
                    Err(failure @ Failure::Gone(_)) => after(failure, 0, line, pace, &mut trouble),
                    Err(failure) => line.failed(&failure, "it is told again of alerts that go on"),
                }
                continue;
            }
            Next::End => return,
        };
        let n = alerts.len();
        match receiver.send(&alerts, clock::now() + SEND_PATIENCE) {
            Ok(()) => {
                queue.remove(n);
                line.succeeded(n);
                let single = trouble.single.saturating_sub(1);
                trouble = Trouble { single, ..Trouble::default() };
                not_before =
                    clock::now() + if single > 0 { Duration::ZERO } else { batching.apart };
            }
            Err(failure) => after(failure, n, line, pace, &mut trouble),
        }
    }
}

/// Counts, and waits, as a failure demands.
fn after(failure: Failure, n: usize, line: &TargetState, pace: Pace, trouble: &mut Trouble) {
    let queue = &line.queue;
    let pause = match &failure {
        Failure::Refused(_) if n > 1 => {
            trouble.single = n;
            return;
        }
        Failure::Refused(_) => {
            line.failed(&failure, "these alerts are not delivered");
            give_up(line, n, trouble);
            return;
        }
        Failure::Gone(_) => {
            line.failed(&failure, "no more alerts are sent to it");
            leave_out(line);
            return;
        }
        Failure::Busy(_, asked) => {
            trouble.tries += 1;
            if trouble.tries >= pace.tries {
                line.failed(&failure, "these alerts are not delivered");
                give_up(line, n, trouble);
                return;
            }
            line.failed(&failure, "trying again");
            *asked
        }
        Failure::Away(_) => {
            line.failed(&failure, "trying again");
            let old = queue.remove_older(pace.away);
            line.told().counts.away += old as u64;
            None
        }
    };
    let own = pace.first.saturating_mul(1 << trouble.pauses.min(16)).min(pace.most);
    trouble.pauses += 1;
    let pause = clock::jittered(own).max(pause.unwrap_or_default());
    queue.pause(pause, PAUSE_ENDING);
}

/// Leaves out all that waits and comes for a target that wants no more, until nothing more comes.
fn leave_out(line: &TargetState) {
    let how = Batching { alerts_max: BATCH_MAX, gather: Duration::ZERO, apart: Duration::ZERO };
    while let Next::Deliver(alerts) = line.queue.next(how, clock::now(), None) {
        line.queue.remove(alerts.len());
        line.told().counts.refused += alerts.len() as u64;
    }
}

fn give_up(line: &TargetState, n: usize, trouble: &mut Trouble) {
    line.queue.remove(n);
    line.told().counts.refused += n as u64;
    *trouble = Trouble { single: trouble.single.saturating_sub(n), ..Trouble::default() };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::Alert;
    use crate::alert::tests::alert;
    use std::sync::Arc;

    const FAST: Pace = Pace {
        first: Duration::from_micros(10),
        most: Duration::from_micros(100),
        tries: 3,
        away: Duration::from_secs(3600),
    };

    /// Answers as it was told, then takes everything. Alerts called `bad` are refused.
    struct Scripted {
        answers: Vec<Failure>,
        batch: usize,
        got: Vec<String>,
        sends: usize,
    }

    impl Receiver for Scripted {
        fn batching(&self) -> Batching {
            Batching { alerts_max: self.batch, gather: Duration::ZERO, apart: Duration::ZERO }
        }

        fn send(&mut self, alerts: &[Arc<Alert>], _by: Instant) -> Result<(), Failure> {
            self.sends += 1;
            if let Some(failure) = self.answers.pop() {
                return Err(failure);
            }
            if alerts.iter().any(|a| a.message == "bad") {
                return Err(Failure::Refused("bad".to_owned()));
            }
            self.got.extend(alerts.iter().map(|a| a.message.clone()));
            Ok(())
        }
    }

    fn run(messages: &[&str], answers: Vec<Failure>, batch: usize) -> (Scripted, TargetCounts) {
        let line = TargetState::new("x");
        for message in messages {
            assert!(line.queue.push(Arc::new(alert("start", "high", message))));
        }
        line.queue.end();
        let mut receiver = Scripted { answers, batch, got: Vec::new(), sends: 0 };
        deliver(&line, &mut receiver, FAST);
        let counts = line.last_counts().0;
        assert_eq!(counts.delivered + counts.undelivered(), messages.len() as u64);
        (receiver, counts)
    }

    fn away() -> Failure {
        Failure::Away("gone".to_owned())
    }

    fn busy() -> Failure {
        Failure::Busy("500".to_owned(), None)
    }

    fn gone() -> Failure {
        Failure::Gone("410".to_owned())
    }

    #[test]
    fn alerts_wait_for_a_receiver_that_is_away_and_keep_their_order() {
        let (receiver, counts) = run(&["a", "b", "c"], vec![away(); 20], 1);
        assert_eq!((receiver.got, receiver.sends), (vec!["a".into(), "b".into(), "c".into()], 23));
        assert_eq!((counts.delivered, counts.error.as_deref()), (3, Some("gone")));
    }

    #[test]
    fn errors_are_tried_some_times() {
        let (_, counts) = run(&["a", "b"], vec![busy(); 2], 1);
        assert_eq!((counts.delivered, counts.refused), (2, 0));
        let (receiver, counts) = run(&["a", "b"], vec![busy(); 3], 1);
        assert_eq!((counts.delivered, counts.refused), (1, 1));
        assert_eq!(receiver.got, ["b"]);
    }

    #[test]
    fn one_that_is_refused_takes_no_others_along() {
        for batch in [1, 2, 3, 64] {
            let (receiver, counts) = run(&["a", "bad", "b", "c", "bad", "d"], Vec::new(), batch);
            assert_eq!((counts.delivered, counts.refused), (4, 2), "{batch} at a time");
            assert_eq!(receiver.got, ["a", "b", "c", "d"]);
        }
    }

    #[test]
    fn a_receiver_that_is_gone_is_sent_nothing_more() {
        for batch in [1, 2] {
            let (receiver, counts) = run(&["a", "b", "c"], vec![gone(), busy()], batch);
            assert_eq!((receiver.got.len(), receiver.sends), (0, 2));
            assert_eq!((counts.refused, counts.error.as_deref()), (3, Some("410")));
        }
    }

    /// A receiver that wants no more (410) when it is told again of alerts that go on, at which the
    /// run ends.
    struct GoneMeanwhile(Arc<TargetState>);

    impl Receiver for GoneMeanwhile {
        fn send(&mut self, _alerts: &[Arc<Alert>], _by: Instant) -> Result<(), Failure> {
            panic!("it wants no more");
        }

        fn repeat_at(&self) -> Option<Instant> {
            Some(clock::now())
        }

        fn repeat(&mut self, _by: Instant) -> Result<(), Failure> {
            self.0.queue.end();
            Err(gone())
        }
    }

    #[test]
    fn a_receiver_that_is_gone_is_not_told_again() {
        let line = Arc::new(TargetState::new("x"));
        assert!(line.queue.push(Arc::new(alert("start", "high", "a"))));
        deliver(&line, &mut GoneMeanwhile(Arc::clone(&line)), FAST);
        let (counts, say) = line.last_counts();
        assert_eq!((counts.refused, say.len()), (1, 1), "{say:?}");
    }

    #[test]
    fn a_receiver_is_spoken_of_when_it_fails_and_when_it_is_back() {
        let line = TargetState::new("x");
        line.failed(&away(), "trying again");
        line.failed(&away(), "trying again");
        line.succeeded(1);
        line.failed(&away(), "trying again");
        let say = line.counts().1;
        assert_eq!(say, ["alerts to x: gone; trying again", "alerts to x: delivered again"]);
        assert!(line.counts().1.is_empty());
        line.failed(&gone(), "no more");
        assert_eq!(line.counts().1, ["alerts to x: 410; no more"]);
    }
}
