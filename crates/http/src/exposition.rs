//! Metrics as text: OpenMetrics 1.0, or the format of Prometheus from before it.
//!
//! <https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md>,
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

use std::fmt::Write as _;
use weir_base::harmless::is_harmless;

/// A form of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricsFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
}

impl MetricsFormat {
    /// The form that a client prefers by its header `Accept`: OpenMetrics only where it is named.
    pub(crate) fn accepted(accept: &str) -> MetricsFormat {
        let (mut open, mut text) = (0, 0);
        for part in accept.split(',') {
            let mut words = part.split(';').map(str::trim);
            let media = words.next().unwrap_or_default().to_ascii_lowercase();
            let (mut quality, mut known) = (1000, true);
            for word in words {
                let Some((name, value)) = word.split_once('=') else { continue };
                match name.trim().to_ascii_lowercase().as_str() {
                    "q" => quality = thousandths(value.trim()),
                    "version" => known = matches!(value.trim().trim_matches('"'), "1.0.0"),
                    _ => {}
                }
            }
            match media.as_str() {
                "application/openmetrics-text" if known => open = quality.max(open),
                "text/plain" | "text/*" | "*/*" => text = quality.max(text),
                _ => {}
            }
        }
        match open > 0 && open >= text {
            true => MetricsFormat::OpenMetrics,
            false => MetricsFormat::Prometheus,
        }
    }

    /// The type of the text, for the header `Content-Type`.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::OpenMetrics => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            MetricsFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// A quality of RFC 9110, section 12.4.2, in thousandths; 0 where it is none.
fn thousandths(text: &str) -> u32 {
    match text.parse::<f64>() {
        Ok(quality) if (0.0..=1.0).contains(&quality) => (quality * 1000.0) as u32,
        _ => 0,
    }
}

/// A number, and the labels that say what it is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample<'a> {
    /// Names and values.
    pub labels: Vec<(&'a str, String)>,
    /// The number.
    pub value: u64,
}

impl<'a> Sample<'a> {
    /// A number without labels.
    pub fn plain(value: u64) -> Sample<'a> {
        Sample { labels: Vec::new(), value }
    }

    /// A number with one label.
    pub fn of(label: &'a str, name: impl Into<String>, value: u64) -> Sample<'a> {
        Sample { labels: vec![(label, name.into())], value }
    }
}

/// The kind of metrics whose names come from elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FamilyKind {
    /// Numbers that only grow.
    Counter,
    /// Numbers that grow and fall.
    Gauge,
    /// How many values are up to each bound.
    Histogram,
}

/// A number of such a metric.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// How its name ends: `_total`, `_bucket` and so on.
    pub ending: &'static str,
    /// Names and values.
    pub labels: Vec<(String, String)>,
    /// The number.
    pub value: f64,
}

/// Metrics on their way to being text.
#[derive(Debug)]
pub struct Exposition {
    format: MetricsFormat,
    out: String,
}

impl Exposition {
    /// No metric yet.
    pub fn new(format: MetricsFormat) -> Exposition {
        Exposition { format, out: String::new() }
    }

    /// A number that only grows. Its `name` does not end with `_total`, which is added.
    pub fn counter<'a>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample<'a>>,
    ) {
        self.family(name, ("counter", "counter", "_total"), help, samples);
    }

    /// A number that grows and falls.
    pub fn gauge<'a>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample<'a>>,
    ) {
        self.family(name, ("gauge", "gauge", ""), help, samples);
    }

    /// Texts about the run. Their `name` does not end with `_info`, which is added.
    pub fn info(&mut self, name: &str, help: &str, labels: Vec<(&str, String)>) {
        self.family(name, ("info", "gauge", "_info"), help, [Sample { labels, value: 1 }]);
    }

    /// Samples of a name that comes from elsewhere, and holds nothing but letters, digits and `_`.
    pub fn measured(
        &mut self,
        name: &str,
        kind: FamilyKind,
        help: &str,
        samples: impl IntoIterator<Item = Measured>,
    ) {
        let (kind, ending) = match kind {
            FamilyKind::Counter => ("counter", "_total"),
            FamilyKind::Gauge => ("gauge", ""),
            FamilyKind::Histogram => ("histogram", ""),
        };
        self.head(name, (kind, kind, ending), &escaped(help));
        for Measured { ending, labels, value } in samples {
            let _ = write!(self.out, "{name}{ending}");
            labels_of(&mut self.out, labels.iter().map(|(label, text)| (label.as_str(), text)));
            let _ = writeln!(self.out, " {value}");
        }
    }

    /// The text.
    pub fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.out += "# EOF\n";
        }
        self.out
    }

    /// Samples of one name. `kinds`: what OpenMetrics and Prometheus call their type, and how the
    /// names of samples end.
    fn family<'a>(
        &mut self,
        name: &str,
        kinds: (&str, &str, &str),
        help: &str,
        samples: impl IntoIterator<Item = Sample<'a>>,
    ) {
        self.head(name, kinds, help);
        let ending = kinds.2;
        for Sample { labels, value } in samples {
            let _ = write!(self.out, "{name}{ending}");
            labels_of(&mut self.out, labels.iter().map(|(label, text)| (*label, text)));
            let _ = writeln!(self.out, " {value}");
        }
    }

    /// The lines above the samples of a name.
    fn head(&mut self, name: &str, (kind, older, ending): (&str, &str, &str), help: &str) {
        // Only in OpenMetrics, a family is called differently from its samples.
        let (family, kind) = match self.format {
            MetricsFormat::OpenMetrics => (name.to_owned(), kind),
            MetricsFormat::Prometheus => (format!("{name}{ending}"), older),
        };
        let out = &mut self.out;
        let _ = writeln!(out, "# TYPE {family} {kind}");
        let unit =
            ["bytes", "seconds"].into_iter().find(|unit| name.ends_with(&format!("_{unit}")));
        if let Some(unit) = unit.filter(|_| self.format == MetricsFormat::OpenMetrics) {
            let _ = writeln!(out, "# UNIT {family} {unit}");
        }
        let _ = writeln!(out, "# HELP {family} {help}");
    }
}

/// Appends labels in braces; nothing where there are none.
fn labels_of<'a>(out: &mut String, labels: impl Iterator<Item = (&'a str, &'a String)>) {
    let mut end = "";
    for (i, (label, text)) in labels.enumerate() {
        let before = if i == 0 { '{' } else { ',' };
        let _ = write!(out, "{before}{label}=\"{}\"", escaped(text));
        end = "}";
    }
    out.push_str(end);
}

/// The value of a label. Names of interfaces come from captures, and may hold anything.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out += "\\\\",
            '"' => out += "\\\"",
            '\n' => out += "\\n",
            c if is_harmless(c) => out.push(c),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_accept_says_the_form() {
        let check = |accept: &str, expected| {
            assert_eq!(MetricsFormat::accepted(accept), expected, "{accept}");
        };
        use MetricsFormat::{OpenMetrics, Prometheus};
        check("", Prometheus);
        check("*/*", Prometheus);
        check("text/html", Prometheus);
        check("application/openmetrics-text", OpenMetrics);
        check("application/openmetrics-text;q=0", Prometheus);
        check("application/openmetrics-text; q=x", Prometheus);
        check("application/openmetrics-text;version=2.0.0", Prometheus);
        check("text/plain, application/openmetrics-text;q=0.5", Prometheus);
        // Prometheus 2.42.
        let prometheus = "application/openmetrics-text;version=1.0.0,\
                          application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        check(prometheus, OpenMetrics);
    }

    fn text(format: MetricsFormat) -> String {
        let mut out = Exposition::new(format);
        let labels = vec![("version", "1 \"a\\b\"\n\u{1b}[31m".to_owned())];
        out.info("x_build", "What runs.", labels);
        let pair = Sample { labels: vec![("a", "1".into()), ("b", "2".into())], value: u64::MAX };
        out.counter("x_sent_bytes", "Bytes.", [Sample::of("way", "out", 0), pair]);
        out.gauge("x_start_time_seconds", "Start.", [Sample::plain(7)]);
        out.counter("x_none", "Of nothing.", []);
        out.finish()
    }

    #[test]
    fn openmetrics_is_as_its_specification_says() {
        let expected = "\
# TYPE x_build info
# HELP x_build What runs.
x_build_info{version=\"1 \\\"a\\\\b\\\"\\n\u{fffd}[31m\"} 1
# TYPE x_sent_bytes counter
# UNIT x_sent_bytes bytes
# HELP x_sent_bytes Bytes.
x_sent_bytes_total{way=\"out\"} 0
x_sent_bytes_total{a=\"1\",b=\"2\"} 18446744073709551615
# TYPE x_start_time_seconds gauge
# UNIT x_start_time_seconds seconds
# HELP x_start_time_seconds Start.
x_start_time_seconds 7
# TYPE x_none counter
# HELP x_none Of nothing.
# EOF
";
        assert_eq!(text(MetricsFormat::OpenMetrics), expected);
    }

    #[test]
    fn the_older_format_names_families_as_their_samples() {
        let text = text(MetricsFormat::Prometheus);
        assert!(text.contains("# TYPE x_build_info gauge\n"), "{text}");
        assert!(text.contains("# TYPE x_sent_bytes_total counter\n"), "{text}");
        assert!(!text.contains("UNIT") && !text.contains("EOF"), "{text}");
    }
}
