//! One datagram while it is read: what it goes into.

use crate::bytes::Bytes;
use crate::counts::{Counts, Exporter, Fault};
use crate::element::Filling;
use crate::export::Export;
use crate::held::WaitingSets;
use crate::limits::{SENDER_TEMPLATES_MAX, SESSION_TEMPLATES_MAX, TEMPLATES_MAX, TIMEOUT_NS};
use crate::senders::Usage;
use crate::sequence::{Numbered, Step};
use crate::session::{Session, SessionKey};
use crate::template::{Form, Template, TemplateField, Told, template};
use crate::totals::{COUNTERS, RunningFlow, Totals};
use weir_base::address::number;
use weir_packet::record::{FlowRecord, Slot};

/// Everything that the sets of a datagram change.
pub(crate) struct Reading<'a> {
    pub(crate) key: SessionKey,
    pub(crate) export: Export,
    pub(crate) session: &'a mut Session,
    pub(crate) counts: &'a mut Counts,
    pub(crate) exporter: &'a mut Exporter,
    pub(crate) held: &'a mut WaitingSets,
    pub(crate) totals: &'a mut Totals,
    /// How many sessions and templates the sender of the datagram has.
    pub(crate) usage: &'a mut Usage,
    /// Templates of all exporters.
    pub(crate) templates: &'a mut usize,
    pub(crate) put: &'a mut dyn FnMut(&FlowRecord, i64),
}

/// How many data records a set has, if that is known.
pub(crate) type Units = Option<u32>;

impl Reading<'_> {
    pub(crate) fn fault(&mut self, fault: Fault) {
        self.counts.fault(fault);
    }

    /// Reads a set of templates. The templates before a fault stay good.
    pub(crate) fn template_set(&mut self, form: Form, of_options: bool, set: &[u8]) {
        let mut set = Bytes(set);
        while let Some(told) = template(&mut set, form, of_options, self.export.received) {
            match told {
                Ok(Told::Template(number, template)) => self.add_template(number, template),
                Ok(Told::Withdrawn(number)) => self.withdraw(number, of_options),
                Err(fault) => {
                    self.fault(fault);
                    // One without bytes ends where it says; the end of others is not known.
                    if fault == Fault::TemplateFields {
                        return;
                    }
                }
            }
        }
    }

    fn add_template(&mut self, number: u16, template: Template) {
        let mine = &self.session.templates;
        let is_full = *self.templates >= TEMPLATES_MAX
            || self.usage.templates >= SENDER_TEMPLATES_MAX
            || mine.len() >= SESSION_TEMPLATES_MAX;
        if is_full && !mine.contains_key(&number) {
            self.counts.templates_refused += 1;
            return;
        }
        let before = self.session.templates.insert(number, template);
        *self.templates += usize::from(before.is_none());
        self.usage.templates += usize::from(before.is_none());
        let is_new = before.is_none_or(|old| !old.is_same(&self.session.templates[&number]));
        if is_new {
            for waiting in self.held.take(&self.key, number) {
                let now = std::mem::replace(&mut self.export, waiting.export);
                self.data_set(number, &waiting.bytes);
                self.export = now;
            }
        }
    }

    /// RFC 7011, section 8.1: the number of a template set stands for all templates of its kind.
    fn withdraw(&mut self, number: u16, of_options: bool) {
        let before = self.session.templates.len();
        if number < crate::template::DATA_MIN {
            self.session.templates.retain(|_, t| t.scopes.is_some() != of_options);
        } else {
            self.session.templates.remove(&number);
        }
        self.count_out(before - self.session.templates.len());
    }

    /// Counts templates that are gone.
    fn count_out(&mut self, templates: usize) {
        *self.templates -= templates;
        self.usage.templates -= templates;
    }

    /// Reads a set of data; returns how many records it has, if that is known.
    pub(crate) fn data_set(&mut self, number: u16, set: &[u8]) -> Units {
        let now = self.export.received;
        let is_over = |t: &Template| now.saturating_sub(t.seen) > TIMEOUT_NS;
        let found = self.session.templates.remove(&number);
        if found.as_ref().is_some_and(is_over) {
            self.count_out(1);
        }
        let Some(template) = found.filter(|template| !is_over(template)) else {
            // Some exporters fill datagrams by sets without a byte.
            if !set.is_empty() {
                self.counts.untemplated += self.held.add(self.key, number, self.export, set);
            }
            return None;
        };
        let units = self.records_of(&template, set);
        self.session.templates.insert(number, template);
        Some(units)
    }

    /// Reads a data set; returns how many records it has.
    fn records_of(&mut self, template: &Template, set: &[u8]) -> u32 {
        let (mut set, mut units) = (Bytes(set), 0);
        loop {
            let (mut filling, export) = (Filling::new(), self.export);
            let value = |_: usize, field: &TemplateField, bytes: &[u8]| {
                filling.value(field.enterprise, field.element, bytes, &export);
            };
            match template.record(&mut set, value) {
                Ok(true) => units += 1,
                Ok(false) => return units,
                Err(fault) => {
                    self.fault(fault);
                    return units;
                }
            }
            match template.scopes {
                None => self.flow(filling),
                Some(_) => self.options(&filling),
            }
        }
    }

    /// A record of a flow.
    fn flow(&mut self, filling: Filling) {
        let (sampler, export) = (filling.sampler, self.export);
        let (running, name) = (filling.running, filling.name);
        let (mut record, ts) = filling.finish(&export, self.session.started);
        // Counters that say what came since the record before come first.
        let missing = |i: usize| running[i].filter(|_| record.get(COUNTERS[i]).is_none());
        let running = std::array::from_fn(missing);
        if running.iter().any(Option::is_some) {
            let is_last = matches!(record.get(Slot::EndReason), Some(1 | 3..=5));
            let flow = RunningFlow::new(self.key, name, &record);
            let came = self.totals.difference(flow, running, is_last, export.received);
            for (slot, came) in COUNTERS.into_iter().zip(came) {
                if let Some(came) = came {
                    record.set(slot, came);
                }
            }
        }
        if record.get(Slot::Sampling).is_none()
            && let Some(rate) = self.session.rate(sampler)
        {
            record.set(Slot::Sampling, rate);
        }
        self.record(record, ts);
    }

    /// A record of options, which may say how packets are sampled (RFC 3954, section 6.1; RFC
    /// 5476), and when the exporter started.
    fn options(&mut self, filling: &Filling) {
        self.counts.options += 1;
        if let Some(rate) = filling.rate() {
            self.session.set_sampler(filling.sampler, rate);
        }
        self.session.started = filling.started.or(self.session.started);
    }

    /// Hands out a record.
    pub(crate) fn record(&mut self, mut record: FlowRecord, ts: i64) {
        record.set_address(Slot::Exporter, number(self.key.address.to_canonical()));
        record.set(Slot::Domain, self.key.domain.into());
        record.set(Slot::Protocol, self.key.protocol as u64);
        record.set(Slot::Received, self.export.received as u64);
        self.counts.records += 1;
        self.exporter.records += 1;
        (self.put)(&record, ts);
    }

    /// Takes the sequence number of the datagram.
    pub(crate) fn number(&mut self, n: Numbered) {
        match self.session.sequence.step(n) {
            Step::Next => {}
            Step::Gap(lost) => self.exporter.lost += u64::from(lost),
            Step::Late(found) => {
                self.exporter.lost = self.exporter.lost.saturating_sub(found.into());
            }
            Step::Restart => self.exporter.restarts += 1,
        }
    }
}
