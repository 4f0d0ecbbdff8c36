//! Alerts for Prometheus Alertmanager, by its API of version 2. It takes an alert that is not
//! repeated for as over, so those that go on are repeated.

use crate::alert::Alert;
use crate::clean;
use crate::clock;
use crate::connection::Route;
use crate::failure::Failure;
use crate::http::{self, HttpRequest};
use crate::limits::{BATCH_MAX, KEY_LABELS_MAX, OPEN_MAX, SEND_PATIENCE};
use crate::receiver::{Batching, Receiver};
use crate::target::AlertmanagerForm;
use crate::webhook::bearer;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_base::alert::AlertState;

/// Posts alerts.
pub(crate) struct Alertmanager {
    route: Route,
    form: AlertmanagerForm,
    /// The alerts that go on, by rule and key.
    open: BTreeMap<(String, String), Arc<Alert>>,
    repeat_at: Instant,
}

impl Alertmanager {
    pub(crate) fn new(route: Route, form: AlertmanagerForm) -> Alertmanager {
        Alertmanager { route, form, open: BTreeMap::new(), repeat_at: clock::now() }
    }

    fn post(&self, alerts: &[Arc<Alert>], by: Instant) -> Result<(), Failure> {
        let all: Vec<Value> = alerts.iter().map(|alert| posted(alert)).collect();
        let body = Value::from(all).to_string();
        let path = format!("{}api/v2/alerts", self.form.path);
        let headers: Vec<_> = bearer(self.form.token.as_ref()).into_iter().collect();
        let body = body.as_bytes();
        let request = HttpRequest { method: "POST", path: &path, headers: &headers, body };
        http::send(&self.route, &request, by)
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(self.form.repeat_s)
    }

    /// Sends all alerts that go on.
    fn repeat_all(&self) -> Result<(), Failure> {
        let open: Vec<Arc<Alert>> = self.open.values().cloned().collect();
        let mut all = Ok(());
        for some in open.chunks(BATCH_MAX) {
            match self.post(some, clock::now() + SEND_PATIENCE) {
                // Nor would it take the others.
                Err(failure @ (Failure::Away(_) | Failure::Gone(_))) => return Err(failure),
                Err(failure) => all = Err(failure),
                Ok(()) => {}
            }
        }
        all
    }

    /// Notes which alerts go on.
    fn note(&mut self, alert: &Arc<Alert>) {
        let key = (alert.rule.clone(), alert.key.clone());
        if alert.state == AlertState::End {
            self.open.remove(&key);
        } else if self.open.contains_key(&key) || self.open.len() < OPEN_MAX {
            if self.open.is_empty() {
                self.repeat_at = clock::now() + self.pause();
            }
            self.open.insert(key, Arc::clone(alert));
        }
    }
}

impl Receiver for Alertmanager {
    fn batching(&self) -> Batching {
        Batching { alerts_max: BATCH_MAX, gather: Duration::ZERO, apart: Duration::ZERO }
    }

    fn send(&mut self, alerts: &[Arc<Alert>], by: Instant) -> Result<(), Failure> {
        // Of the rows of one alert in a request only the last would count.
        let mut latest: BTreeMap<(&str, &str), &Arc<Alert>> = BTreeMap::new();
        for alert in alerts {
            latest.insert((&alert.rule, &alert.key), alert);
        }
        let latest: Vec<Arc<Alert>> = latest.into_values().cloned().collect();
        self.post(&latest, by)?;
        alerts.iter().for_each(|alert| self.note(alert));
        Ok(())
    }

    fn repeat_at(&self) -> Option<Instant> {
        (!self.open.is_empty()).then_some(self.repeat_at)
    }

    fn repeat(&mut self, _by: Instant) -> Result<(), Failure> {
        let result = self.repeat_all();
        // After them: the next round must leave time for new alerts, however long this one took.
        self.repeat_at = clock::now() + self.pause();
        result
    }
}

/// An alert as Alertmanager takes it. Labels say which it is; annotations say more of it.
fn posted(alert: &Alert) -> Value {
    let mut labels = Map::new();
    for (name, value) in alert.key_columns().into_iter().take(KEY_LABELS_MAX) {
        labels.insert(clean::label(&name), value.into());
    }
    // These stand, whatever a key is called.
    labels.insert("alertname".to_owned(), alert.rule.clone().into());
    labels.insert("severity".to_owned(), alert.severity.name().into());
    let mut annotations = Map::new();
    for (name, value) in alert.evidence() {
        annotations.insert(clean::label(&name), value.into());
    }
    // These stand, whatever a column is called.
    annotations.insert("summary".to_owned(), alert.message.clone().into());
    annotations.insert("state".to_owned(), alert.state.words().into());
    annotations.insert("last".to_owned(), alert.last.clone().into());
    if !alert.key.is_empty() {
        annotations.insert("key".to_owned(), alert.key.clone().into());
    }
    let mut out = json!({
        "labels": labels,
        "annotations": annotations,
        "startsAt": alert.first,
    });
    if alert.state == AlertState::End {
        out["endsAt"] = alert.last.clone().into();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::tests::alert;
    use crate::target::Peer;

    #[test]
    fn labels_are_the_rule_the_severity_and_the_key() {
        let start = posted(&alert("start", "high", "716 SYNs"));
        let labels = json!({
            "alertname": "syn_flood", "severity": "high", "server": "198.51.100.2",
            "name": "a \" b",
        });
        assert_eq!(start["labels"], labels);
        assert_eq!(start["startsAt"], "2026-11-21T05:51:14Z");
        assert_eq!(start["endsAt"], Value::Null);
        let end = posted(&alert("end", "high", "812 SYNs"));
        assert_eq!((&end["labels"], &end["startsAt"]), (&start["labels"], &start["startsAt"]));
        assert_eq!(end["endsAt"], "2026-11-21T05:51:15Z");
    }

    #[test]
    fn alerts_that_go_on_are_repeated_within_a_bound() {
        let peer = Peer { host: "127.0.0.1".to_owned(), port: 1 };
        let form = AlertmanagerForm { path: "/".to_owned(), repeat_s: 60, token: None };
        let mut am = Alertmanager::new(Route { peer, tls: None }, form);
        assert_eq!(am.repeat_at(), None);
        let before = clock::now();
        am.note(&Arc::new(alert("start", "high", "x")));
        am.note(&Arc::new(alert("ongoing", "high", "y")));
        assert!(am.open.len() == 1 && am.repeat_at() >= Some(before + Duration::from_secs(60)));
        am.note(&Arc::new(alert("end", "high", "z")));
        assert_eq!(am.repeat_at(), None);
        for n in 0..OPEN_MAX + 10 {
            am.note(&Arc::new(Alert { key: n.to_string(), ..alert("start", "low", "") }));
        }
        assert_eq!(am.open.len(), OPEN_MAX);
    }
}
