//! The findings of the detectors.

use super::whole::Whole;
use crate::findings::{Finding, Measured, Rule};
use crate::markup::Markup;
use crate::number::{grouped, moment, short};
use crate::rows::shown;
use weir_plan::{TimeZone, Value};

pub(super) fn section(whole: &Whole<'_>) -> Markup {
    let mut m = Markup::default();
    let (all, detectors) = (&whole.rows.findings, whole.about.rules.len());
    let rules = all.rules();
    m.raw("<p>").text(&detectors.to_string()).raw(" detectors ran. ");
    if rules.is_empty() {
        m.raw("They found nothing.</p>\n");
        return m;
    }
    m.raw("A finding is a reason to look, not a verdict. Each names its rule; the line below its ");
    m.raw("evidence, in a file for <code>--suppress</code>, leaves it out.</p>\n");
    for (name, rule) in rules {
        one_rule(&mut m, whole, name, rule);
    }
    if all.further > 0 {
        m.raw("<p class=\"note\">And ").text(&all.further.to_string());
        m.raw(" alerts of further rules.</p>\n");
    }
    m
}

fn one_rule(m: &mut Markup, whole: &Whole<'_>, name: &str, rule: &Rule) {
    let begun: u64 = rule.findings().map(|finding| finding.begun).sum::<u64>() + rule.further;
    m.raw("<h3><span class=\"severity ").raw(rule.severity.name()).raw("\">");
    m.raw(rule.severity.name()).raw("</span> ").text(name).raw(" <span class=\"note\">");
    let program = name.split('.').next().unwrap_or(name);
    let title = whole.about.rules.iter().find(|rule| rule.name == program);
    m.text(title.map_or("", |rule| &rule.title)).raw("; ").text(&begun.to_string());
    m.raw(if begun == 1 { " alert</span></h3>\n" } else { " alerts</span></h3>\n" });
    for finding in rule.findings() {
        one_finding(m, finding, whole.about.zone);
    }
    if rule.further > 0 {
        m.raw("<p class=\"note\">And ").text(&rule.further.to_string());
        m.raw(" alerts more.</p>\n");
    }
}

fn one_finding(m: &mut Markup, finding: &Finding, zone: Option<TimeZone>) {
    m.raw("<details class=\"finding\"><summary>").text(&finding.message);
    m.raw(" <span class=\"note\">").text(&when(finding, zone)).raw("</span></summary>\n<dl>");
    let mut fact = |name: &str, value: &str| {
        m.element("dt", name).element("dd", value).raw("\n");
    };
    if let Some(Measured { field, peak, threshold }) = &finding.measured {
        fact(&format!("peak of {field}"), &short(*peak));
        fact("threshold", &short(*threshold));
    }
    for (name, value) in finding.evidence.iter().filter(|(_, value)| *value != Value::Absent) {
        fact(name, &shown(value, zone));
    }
    fact("severity", finding.severity.name());
    if finding.begun > 1 {
        fact("begun", &format!("{} times", grouped(finding.begun as i64)));
    }
    fact("suppress by", &finding.suppress);
    m.raw("</dl></details>\n");
}

/// When it was.
fn when(finding: &Finding, zone: Option<TimeZone>) -> String {
    match (finding.first, finding.last) {
        (Some(first), Some(last)) if first != last => {
            let (first, last) = (moment(first, zone), moment(last, zone));
            // The day is said once, where it is one.
            match (first.split_once(' '), last.split_once(' ')) {
                (Some((day, _)), Some((other, clock))) if day == other => {
                    format!("{first} – {clock}")
                }
                _ => format!("{first} – {last}"),
            }
        }
        (Some(first), _) => moment(first, zone),
        (None, _) => String::new(),
    }
}
