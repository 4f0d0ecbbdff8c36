//! The fate of interfaces while frames are captured from them.
//!
//! The kernel says of each change when it happens (rtnetlink(7)), and keeps what it said until that
//! is read: an interface that is down and up again between two looks is reported as down and up
//! again, whichever way its frames come and however many there are.

use super::clock::Stopwatch;
use super::event::{Event, LinkState, ReportEvent};
use super::options::ANY;
use crate::limits::{INDICES_MAX, INTERFACES_EVERY_MS};
use crate::xdp::link::{Interfaces, LinkChange, LinkChanges, LinkInfo};
use std::collections::BTreeMap;
use std::io;

/// Interfaces that are watched.
pub(crate) struct Watch {
    changes: LinkChanges,
    all: Interfaces,
    /// Whether those to come are, too.
    any: bool,
    known: WatchedLinks,
    looked: Option<Stopwatch>,
}

impl Watch {
    /// Watches interfaces of these names, [`ANY`] for all. Events from now on are kept until they
    /// are reported.
    pub(crate) fn new(names: &[String]) -> io::Result<Watch> {
        // In this order: what happens between is said twice, which does no harm.
        let (changes, all) = (LinkChanges::open()?, Interfaces::open()?);
        let any = names.iter().any(|name| name == ANY);
        let mut known = WatchedLinks::default();
        for interface in all.all()? {
            if any || names.contains(&interface.name) {
                known.begin(interface, any);
            }
        }
        Ok(Watch { changes, all, any, known, looked: None })
    }

    /// Reports what happened, unless that was done just now. Where the capture is over, interfaces
    /// are asked as well: the kernel may not have said yet what ended it.
    pub(crate) fn look_at_times(&mut self, over: bool, report: &ReportEvent) {
        let is_due = |looked: Stopwatch| looked.elapsed_ms() >= INTERFACES_EVERY_MS;
        if over || self.looked.is_none_or(is_due) {
            self.look(report);
            self.looked = Some(Stopwatch::start());
        }
        if over {
            self.compare(report);
        }
    }

    /// Reports what happened since the last time.
    fn look(&mut self, report: &ReportEvent) {
        let Watch { changes, any, known, .. } = self;
        known.unreported.drain(..).for_each(|event| report(&event));
        let complete = changes.read(|change| match change {
            LinkChange::Is(interface) => known.is(interface, *any, report),
            LinkChange::Gone(index) => known.goes(index, report),
        });
        if !complete {
            self.compare(report);
        }
    }

    /// Looks how interfaces are now: more has happened than the kernel kept for us.
    fn compare(&mut self, report: &ReportEvent) {
        let Ok(now) = self.all.all() else { return };
        let there = |index: &u32| now.iter().any(|interface| interface.index == *index);
        let gone: Vec<u32> =
            self.known.links.keys().copied().filter(|index| !there(index)).collect();
        gone.into_iter().for_each(|index| self.known.goes(index, report));
        now.into_iter().for_each(|interface| self.known.is(interface, self.any, report));
    }
}

/// Interfaces by the kernel's numbers, which names may change under.
#[derive(Default)]
struct WatchedLinks {
    links: BTreeMap<u32, Link>,
    /// The events that are to be reported first.
    unreported: Vec<Event>,
}

/// An interface as it was last said to be.
struct Link {
    name: String,
    state: LinkState,
    /// Whether it was reported that it is down: then that it is up again is reported, too.
    reported: bool,
}

impl WatchedLinks {
    /// Takes in an interface that is there from the beginning. Of all interfaces some are down as a
    /// rule; one that was asked for is not to be, which is reported first.
    fn begin(&mut self, interface: LinkInfo, any: bool) {
        let (state, reported) = match interface.up {
            true => (LinkState::Up, false),
            false => (LinkState::Down, !any),
        };
        if reported {
            self.unreported.push(Event::Down(interface.name.clone()));
        }
        self.links.insert(interface.index, Link { name: interface.name, state, reported });
    }

    /// Takes in how an interface is.
    fn is(&mut self, interface: LinkInfo, any: bool, report: &ReportEvent) {
        let Some(link) = self.links.get_mut(&interface.index) else {
            if any && self.links.len() < INDICES_MAX {
                self.begin(interface, any);
            }
            return;
        };
        link.name = interface.name;
        let state = if interface.up { LinkState::Up } else { LinkState::Down };
        if std::mem::replace(&mut link.state, state) == state {
            return;
        }
        let reports = state == LinkState::Down || link.reported;
        link.reported = state == LinkState::Down;
        if reports {
            report(&state.event(link.name.clone()));
        }
    }

    /// An interface was removed, or is another namespace's now.
    fn goes(&mut self, index: u32, report: &ReportEvent) {
        if let Some(link) = self.links.remove(&index) {
            report(&LinkState::Gone.event(link.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// The events reported of interface 7, which is captured by `name`, as it is said to be so.
    fn reports(any: bool, at_first: bool, then: &[Option<bool>]) -> Vec<String> {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&reported);
        let report: ReportEvent =
            Box::new(move |e| to.lock().expect("no panic").push(e.to_string()));
        let is = |up| LinkInfo { name: "eth0".to_owned(), index: 7, up, ..LinkInfo::default() };
        let mut known = WatchedLinks::default();
        known.begin(is(at_first), any);
        known.unreported.drain(..).for_each(|event| report(&event));
        for up in then {
            match up {
                Some(up) => known.is(is(*up), any, &report),
                None => known.goes(7, &report),
            }
        }
        let reported = reported.lock().expect("no panic");
        reported.iter().map(|text| text.split(';').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn each_change_is_reported_once() {
        let (up, down, gone) = (Some(true), Some(false), None);
        let [is_down, is_up, removed] = ["eth0 is down", "eth0 is up again", "eth0 was removed"];
        for any in [false, true] {
            assert!(reports(any, true, &[up, up]).is_empty());
            let flaps = [down, up, up, down, down, up, gone, gone];
            assert_eq!(reports(any, true, &flaps), [is_down, is_up, is_down, is_up, removed]);
        }
        assert_eq!(reports(false, false, &[up]), [is_down, is_up]);
        // This one was not asked for, and was never up.
        assert!(reports(true, false, &[down, up]).is_empty());
        assert_eq!(reports(true, false, &[up, down, up]), [is_down, is_up]);
    }
}
