//! Metrics.

use super::text::list;
use crate::metric::Metric;
use crate::stage::Schema;

/// As a query writes it.
pub(super) fn metric(m: &Metric, input: &Schema) -> String {
    let column = |at: usize| input.columns.get(at).map_or("", |column| column.name.as_str());
    let mut out = format!("metric {} {:?}", m.kind.word(), m.name);
    if let Some(at) = m.value {
        out += &format!(" of {}", column(at));
    }
    if !m.labels.is_empty() {
        out += &format!(" by {}", list(&m.labels, |(_, at)| column(*at).to_owned()));
    }
    out += &format!(" max {}", m.max_series);
    if !m.help.is_empty() {
        out += &format!(" help {:?}", m.help);
    }
    out
}
