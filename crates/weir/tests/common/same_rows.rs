//! Rows that are to be the same, in whatever order.

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Fails where they differ, and shows the rows that are not in both.
pub(crate) fn are_the_same(found: &str, expected: &str) {
    let (found, expected) = (sorted(found), sorted(expected));
    let only = |these: &[&str], those: &[&str]| -> Vec<String> {
        these.iter().filter(|row| !those.contains(row)).map(|row| (*row).to_owned()).collect()
    };
    let (more, fewer) = (only(&found, &expected), only(&expected, &found));
    assert!(found == expected, "too many: {more:#?}\nmissing: {fewer:#?}");
}
