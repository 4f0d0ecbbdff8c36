//! How far a job is: its probes, what it left out, and what it has not read yet, by its metrics.

use super::super::merge::line;
use super::rest::{Rest, escaped};
use serde_json::Value as Json;
use weir_cluster::ProbeProgress;

/// How many metrics are asked for at once: their names stand in a request.
const ASKED: usize = 20;

/// The progress of a job, by its metrics.
#[derive(Default)]
pub(super) struct JobProgress {
    /// By name.
    probes: Vec<ProbeProgress>,
    late: u64,
    refused: u64,
    repeated: u64,
    state_bytes: u64,
    /// Records of the topic that were not read yet, where the source knows them.
    unread: Option<u64>,
}

impl JobProgress {
    /// Asks for the metrics of a job with these stages. One that does not run has none.
    pub(super) fn ask(rest: &Rest, job: &str, stages: &[Json]) -> anyhow::Result<JobProgress> {
        let mut progress = JobProgress::default();
        for stage in stages.iter().filter_map(|stage| stage["id"].as_str()) {
            let place = format!("/jobs/{job}/vertices/{stage}/metrics");
            let all = rest.get(&place)?;
            let ids = all.as_array().into_iter().flatten().filter_map(|one| one["id"].as_str());
            let wanted: Vec<String> = ids.filter(|id| is_wanted(kind(id))).map(escaped).collect();
            for some in wanted.chunks(ASKED) {
                let values = rest.get(&format!("{place}?get={}", some.join(",")))?;
                values.as_array().into_iter().flatten().for_each(|one| progress.take(one));
            }
        }
        progress.probes.sort_by(|a, b| a.probe.cmp(&b.probe));
        Ok(progress)
    }

    fn take(&mut self, metric: &Json) {
        let (Some(id), Some(value)) = (metric["id"].as_str(), metric["value"].as_str()) else {
            return;
        };
        let add = |sum: &mut u64| *sum = sum.saturating_add(value.parse().unwrap_or(0));
        match kind(id) {
            // Empty where nothing was asked yet.
            "weir_probe" => self.probes.extend(serde_json::from_str::<ProbeProgress>(value)),
            "weir_late" => add(&mut self.late),
            "weir_refused" => add(&mut self.refused),
            "weir_repeated" => add(&mut self.repeated),
            "weir_state_bytes" => add(&mut self.state_bytes),
            "pendingRecords" => add(self.unread.get_or_insert(0)),
            _ => {}
        }
    }

    /// A line for each probe, and one for each count that is not 0.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut say = |line: &str| text = format!("{text}{line}\n");
        self.probes.iter().for_each(|probe| say(&line(probe)));
        if let Some(unread) = self.unread {
            say(&format!("records of the topic not read yet: {unread}"));
        }
        let counts = [
            (self.late, "groups left out, whose windows were out (late)"),
            (self.refused, "records refused or left out"),
            (self.repeated, "messages that came again"),
            (self.state_bytes, "bytes of state in the latest checkpoint"),
        ];
        for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
            say(&format!("{what}: {count}"));
        }
        text
    }
}

/// The last part of the name of a metric.
fn kind(id: &str) -> &str {
    id.rsplit('.').next().unwrap_or(id)
}

fn is_wanted(kind: &str) -> bool {
    kind.starts_with("weir_") || kind == "pendingRecords"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_cluster::ProbeStanding;

    #[test]
    fn metrics_are_lines() {
        let probe = |probe: &str, closed, standing| ProbeProgress {
            probe: probe.to_owned(),
            closed,
            delay: None,
            missing: 3,
            broken: 0,
            standing,
        };
        let of = |probe: &ProbeProgress| serde_json::to_string(probe).expect("JSON");
        let mut progress = JobProgress::default();
        for (id, value) in [
            ("0.merge.probe.a.weir_probe", of(&probe("a", Some(0), ProbeStanding::Slowest))),
            ("0.merge.probe.b.weir_probe", String::new()),
            ("0.merge.weir_late", "2".to_owned()),
            ("0.Source__partial_results.pendingRecords", "4".to_owned()),
            ("1.Source__partial_results.pendingRecords", "5".to_owned()),
            ("1.Source__partial_results.pendingRecords", "-1".to_owned()),
            ("1.other", "7".to_owned()),
        ] {
            progress.take(&json!({ "id": id, "value": value }));
        }
        assert_eq!(
            progress.text(),
            "probe a: windows that end until 1970-01-01T00:00:00Z have come; 3 messages are \
             missing; the other probes wait for it\n\
             records of the topic not read yet: 9\n\
             groups left out, whose windows were out (late): 2\n"
        );
        assert_eq!(JobProgress::default().text(), "");
    }
}
