//! Tables as GitHub and most other Markdown has them (GFM, section 4.10), for reports and issues.
//!
//! Values are as in a [table](crate::table). Text from packets stays text: what Markdown or HTML
//! would take for a mark is escaped by a backslash, pipes above all. The columns are aligned for
//! those who read the source; rows that need more room make longer lines from there on, within the
//! same table.

use crate::format::{Format, Holds};
use crate::grid::{Layout, Style, Tables, harmless, names};

/// GitHub's tables.
pub static FORMAT: Format = Format {
    name: "markdown",
    title: "Markdown",
    about: "A table of GitHub's Markdown, aligned",
    ending: "md",
    holds: Holds::Outputs,
    is_text: true,
    check: |_| Ok(()),
    make: |out, options| Box::new(Markdown::new(out, options)),
};

/// Writes rows as tables of Markdown.
pub type Markdown<W> = Tables<W, Pipes>;

/// Columns with pipes between them.
#[derive(Debug)]
pub struct Pipes;

impl Style for Pipes {
    /// Of the line below the names: a colon and two hyphens.
    const COLUMN_WIDTH_MIN: usize = 3;
    const BEGINS_ANEW: bool = false;

    fn text(out: &mut Vec<u8>, text: &str) {
        let mut plain = Vec::with_capacity(text.len());
        harmless(&mut plain, text);
        for (i, &b) in plain.iter().enumerate() {
            if is_mark(&plain, i) {
                out.push(b'\\');
            }
            out.push(b);
        }
    }

    fn heading(out: &mut Vec<u8>, title: Option<&str>, columns: &[Layout], _color: bool) {
        if let Some(title) = title {
            out.extend_from_slice(format!("### {title}\n\n").as_bytes());
        }
        Pipes::row(out, columns, names(columns));
        for column in columns {
            let (dashes, end) = if column.is_right() { (1, "-:") } else { (0, "-") };
            out.extend_from_slice(b"| ");
            out.resize(out.len() + column.width - 1 - dashes, b'-');
            out.extend_from_slice(end.as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(b"|\n");
    }

    fn row<'a>(
        out: &mut Vec<u8>,
        columns: &[Layout],
        cells: impl Iterator<Item = (&'a [u8], usize)>,
    ) {
        for (layout, cell) in columns.iter().zip(cells) {
            out.extend_from_slice(b"| ");
            layout.cell(out, cell, true);
            out.push(b' ');
        }
        out.extend_from_slice(b"|\n");
    }
}

/// Whether the byte there could be taken for more than itself. An underscore within a word is none,
/// so that names of columns stay readable.
fn is_mark(text: &[u8], at: usize) -> bool {
    let is_word =
        |i: Option<usize>| i.and_then(|i| text.get(i)).is_some_and(|b| b.is_ascii_alphanumeric());
    match text[at] {
        b'_' => !is_word(at.checked_sub(1)) || !is_word(Some(at + 1)),
        b => b"\\|`*[]<>&~$#".contains(&b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::TABLE_ROWS_MAX;
    use crate::options::RowOptions;
    use crate::testing::{every_type, output, rows};
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use weir_engine::rows::{Output, Rows, Sink as _};
    use weir_plan::{Type, Value};

    fn written(outputs: &[Output], batches: &[(usize, Rows)]) -> String {
        let mut sink = Markdown::new(Vec::new(), RowOptions::default());
        sink.open(outputs).expect("opens");
        for (n, batch) in batches {
            sink.rows(*n, batch).expect("writes");
        }
        sink.finish().expect("finishes");
        String::from_utf8(sink.into_inner()).expect("UTF-8")
    }

    #[test]
    fn every_type_and_absent() {
        let (output, batch) = every_type();
        assert_snapshot!(written(&[output], &[(0, batch)]), @r#"
        | bool  |                  int |      float | string           | bytes | ip.src      | mac               | ts                             | took |
        | ----- | -------------------: | ---------: | ---------------- | ----- | ----------- | ----------------- | ------------------------------ | ---: |
        | true  |                   42 |    533.333 | text             | 0aff  | 10.0.0.1    | 02:00:5e:10:00:01 | 2024-05-01T12:00:00.250Z       | 1.5s |
        | false | -9223372036854775808 | -1.000e300 | \\u{1b}\[31mé\\n | ""    | 2001:db8::1 | 00:00:00:00:00:00 | 2024-05-01T12:00:00.123456789Z | -1ns |
        | -     |                    - |          - | -                | -     | -           | -                 | -                              |    - |
        "#);
    }

    #[test]
    fn no_rows_still_name_the_columns() {
        let output = output(None, &[("ip.src", Type::Ip), ("n", Type::Int)]);
        assert_eq!(written(&[output], &[]), "| ip.src |   n |\n| ------ | --: |\n");
    }

    #[test]
    fn outputs_have_headings_and_tables_of_their_own() {
        let one = output(Some("a|b\n# c"), &[("tcp_flags", Type::Int)]);
        let two = output(None, &[("s", Type::Str)]);
        let row = |output: &Output, value| rows(output, &[vec![value]]);
        let batches = [(0, row(&one, Value::Int(7))), (1, row(&two, Value::Absent))];
        assert_snapshot!(written(&[one, two], &batches), @r"
        ### a\|b\\n\# c

        | tcp_flags |
        | --------: |
        |         7 |

        ### output 2

        | s   |
        | --- |
        | -   |
        ");
    }

    #[test]
    fn longer_rows_stay_in_their_table() {
        let output = output(None, &[("n", Type::Int)]);
        let row = |n| vec![Value::Int(n)];
        let many = |n, times| rows(&output, &vec![row(n); times]);
        let mut batches = vec![(0, many(1, 200)); TABLE_ROWS_MAX / 200];
        batches.push((0, many(123_456, 1)));
        let text = written(std::slice::from_ref(&output), &batches);
        assert_eq!(text.lines().count(), 2 + TABLE_ROWS_MAX + 1);
        assert!(text.ends_with("|   1 |\n| 123456 |\n"), "{text}");
    }

    fn shown(text: &str) -> String {
        let mut out = Vec::new();
        Pipes::text(&mut out, text);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn text_of_packets_is_text() {
        let check = |text: &str, expected: &str| assert_eq!(shown(text), expected);
        check("a|b", r"a\|b");
        check(r"a\|b", r"a\\\|b");
        check("<img src=x>", r"\<img src=x\>");
        check("![x](http://192.0.2.1/)", r"!\[x\](http://192.0.2.1/)");
        check("**`a`** ~b~ &lt; #1 $x$", r"\*\*\`a\`\*\* \~b\~ \&lt; \#1 \$x\$");
        check("_ldap._tcp end_reason_", r"\_ldap.\_tcp end_reason\_");
        check("a\tb\r\nc\x1b[0m\u{202e}é", r"a\\tb\\r\\nc\\u{1b}\[0m\\u{202e}é");
    }

    proptest! {
        /// As GFM reads it: a row is split at pipes that no backslash stands before, and what a
        /// backslash stands before is itself.
        #[test]
        fn cells_are_found_again(cells in proptest::collection::vec("[a|\\\\`*_<é]{1,6}", 1..5)) {
            let output = output(None, &[("s", Type::Str), ("n", Type::Int)]);
            let row = |s: &String| vec![Value::Str(s.as_str().into()), Value::Int(-1)];
            let batch = rows(&output, &cells.iter().map(row).collect::<Vec<_>>());
            let text = written(&[output], &[(0, batch)]);
            let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
            prop_assert!(widths.iter().all(|width| *width == widths[0]), "{}", text);
            for (line, cell) in text.lines().skip(2).zip(&cells) {
                let (mut found, mut chars) = (vec![String::new()], line.chars());
                while let Some(c) = chars.next() {
                    match c {
                        '|' => found.push(String::new()),
                        '\\' => found.last_mut().expect("one").extend(chars.next()),
                        c => found.last_mut().expect("one").push(c),
                    }
                }
                let found: Vec<&str> = found.iter().map(|cell| cell.trim()).collect();
                prop_assert_eq!(found, vec!["", cell.as_str(), "-1", ""]);
            }
        }
    }
}
