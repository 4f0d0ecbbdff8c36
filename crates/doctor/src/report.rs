//! Findings as text for people.

use crate::check::{Check, Findings, Verdict};
use std::fmt::Write as _;

/// A line for each check, and below it what it means and the command that changes it.
pub fn text(all: &[Findings]) -> String {
    let mut out = String::new();
    let checks = || all.iter().flat_map(|findings| &findings.checks);
    let width = checks().map(|check| check.what.len()).max().unwrap_or(0);
    for Findings { place, checks } in all {
        let _ = writeln!(out, "{place}");
        for Check { what, verdict, found, means, command } in checks {
            let _ = writeln!(out, "  {:<7}  {what:<width$}  {found}", verdict.word());
            for line in [means, command].into_iter().filter(|line| !line.is_empty()) {
                let _ = writeln!(out, "{:indent$}{line}", "", indent = width + 15);
            }
        }
    }
    let count = |verdict| checks().filter(|check| check.verdict == verdict).count();
    let (problems, notes) = (count(Verdict::Problem), count(Verdict::Note));
    let plural = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let _ = writeln!(out, "{}, {}", plural(problems, "problem"), plural(notes, "note"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    #[test]
    fn a_command_is_below_its_check() {
        let checks = vec![
            Check::ok("kernel", "6.1"),
            Check::problem("capture", "no", "nothing is seen").changed_by("sudo setcap …"),
        ];
        let other = vec![Check::note("queues", "1 of 4", "one processor takes it all")];
        let findings = |place: &str, checks| Findings { place: place.to_owned(), checks };
        assert_snapshot!(text(&[findings("system", checks), findings("eth0", other)]), @r"
        system
          ok       kernel   6.1
          problem  capture  no
                              nothing is seen
                              sudo setcap …
        eth0
          note     queues   1 of 4
                              one processor takes it all
        1 problem, 1 note
        ");
    }
}
