//! Files that a query names: sets with one member a line, tables in CSV, and databases of networks.
//!
//! This crate opens no file: it asks the [`Files`] that it is given for their bytes.

mod fault;
mod maxmind;

use crate::lex;
use crate::limits::{CELL_MAX, ENTRIES_MAX};
use crate::lower;
use crate::suggest;
pub(crate) use fault::Fault;
use fault::shown;
use std::collections::BTreeMap;
use std::fmt;
use weir_plan::table::Table;
use weir_plan::{Member, Type, Value};

/// Where the files that a query names are found.
pub trait Files: fmt::Debug {
    /// The bytes of the file that a query calls `path`.
    ///
    /// # Errors
    /// Why it cannot be read, in a few words.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
}

/// The members of a set of values of the type: one a line. Blank lines do not count, nor what
/// stands after `#` or `;`; of strings, only whole lines that start with `#`.
pub(crate) fn set(bytes: &[u8], ty: &Type) -> Result<Vec<Member>, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|e| not_text(bytes, e.valid_up_to()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut out = Vec::new();
    for (n, line) in (1..).zip(text.lines()) {
        let entry = match ty {
            Type::Str if line.starts_with('#') => "",
            Type::Str => line.trim(),
            _ => line.split(['#', ';']).next().unwrap_or("").trim(),
        };
        if !entry.is_empty() {
            too_many(out.len(), n)?;
            out.push(match value(entry, ty, n)? {
                net @ Value::Net(..) => Member::Net(net),
                value => Member::Value(value),
            });
        }
    }
    if out.is_empty() {
        return Err(Fault::whole("nothing is in it"));
    }
    Ok(out)
}

/// One column of a CSV file with a header; the first column holds keys of the type. Or what a
/// MaxMind database has at a path.
pub(crate) fn table(
    (file, bytes): (&str, &[u8]),
    column: &str,
    key: &Type,
) -> Result<Table, Fault> {
    if maxmind::is_database(bytes) {
        return maxmind::table((file, bytes), column, key);
    }
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    closed_quotes(bytes)?;
    let mut reader =
        csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(bytes);
    let header = reader.headers().map_err(|e| csv_fault(&e, bytes))?.clone();
    let Some(at) = header.iter().position(|name| name == column) else {
        let help = match suggest::did_you_mean(column, header.iter()) {
            Some(help) => help,
            None => format!("its columns: {}", columns(&header)),
        };
        let cause = format!("it has no column `{column}`");
        return Err(Fault { line: Some(line_of_record(bytes, 0)), cause, help: Some(help) });
    };
    if header.iter().filter(|name| *name == column).count() > 1 {
        let cause = format!("several of its columns are called `{}`", shown(column));
        let help = Some("give each column a name of its own".to_owned());
        return Err(Fault { line: Some(line_of_record(bytes, 0)), cause, help });
    }
    let (mut entries, mut texts) = (Vec::new(), Vec::new());
    let (mut starts, mut numbers) = (BTreeMap::new(), BTreeMap::new());
    for record in reader.records() {
        let record = record.map_err(|e| csv_fault(&e, bytes))?;
        let start = record.position().map_or(0, csv::Position::byte);
        let line = || line_of_record(bytes, start);
        let cell = |i: usize| record.get(i).unwrap_or("");
        too_many(entries.len(), 0).map_err(|f| f.in_line(line()))?;
        let found = value(cell(0), key, 0).map_err(|f| f.in_line(line()))?;
        if let Some(earlier) = starts.insert(found.clone(), start) {
            let earlier = line_of_record(bytes, earlier);
            let cause = format!("`{}` is in line {earlier} already", shown(cell(0)));
            return Err(Fault::at(line(), cause));
        }
        if cell(at).len() > CELL_MAX {
            let cause = format!("a cell has at most {CELL_MAX} bytes");
            return Err(Fault::at(line(), cause));
        }
        let number = *numbers.entry(cell(at).to_owned()).or_insert_with(|| {
            texts.push(cell(at).into());
            texts.len() as u32 - 1
        });
        entries.push((found, number));
    }
    Ok(Table { file: file.to_owned(), column: column.to_owned(), entries, texts })
}

/// Checks that each quote which opens a cell closes it in the same line. The reader of CSV would
/// take all lines up to the next quote, or to the end of the file, for one cell.
fn closed_quotes(bytes: &[u8]) -> Result<(), Fault> {
    let (mut at, mut record, mut cell) = (0, true, true);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\r' | b'\n' => (record, cell) = (true, true),
            b'#' if record => {
                at += bytes[at..].iter().take_while(|b| **b != b'\n').count();
                continue;
            }
            b',' => (record, cell) = (false, true),
            b'"' if cell => {
                at = closing_quote(bytes, at)?;
                (record, cell) = (false, false);
            }
            _ => (record, cell) = (false, false),
        }
        at += 1;
    }
    Ok(())
}

/// Where the quote stands that closes the cell which one at `open` opens.
fn closing_quote(bytes: &[u8], open: usize) -> Result<usize, Fault> {
    let mut at = open + 1;
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'"'), Some(b'"')) => at += 2,
            (Some(b'"'), _) => return Ok(at),
            (Some(b'\r' | b'\n') | None, _) => break,
            _ => at += 1,
        }
    }
    let line = bytes[..open].iter().filter(|b| **b == b'\n').count() as u64 + 1;
    let cause = match bytes[at..].trim_ascii().is_empty() {
        true => "a quote opens a cell and does not close it",
        false => "a cell goes on in the next line",
    };
    let help = Some("a quote that opens a cell closes it, too".to_owned());
    Err(Fault { help, ..Fault::at(line, cause) })
}

/// The value of an entry, of the type wanted; of addresses, it may be a network.
fn value(entry: &str, ty: &Type, line: u64) -> Result<Value, Fault> {
    if *ty == Type::Str {
        return Ok(Value::Str(entry.into()));
    }
    let fits = |v: &Value| match (v, ty) {
        (Value::Net(..), Type::Ip) => true,
        (v, ty) => v.ty().is_some_and(|found| lower::fits(&found, ty)),
    };
    if let Some(value) = lex::literal(entry).filter(fits) {
        return Ok(match value {
            // The network of one address is that address.
            Value::Net(a, 128) => Value::Ip(a),
            value => lower::cast_value(value, ty),
        });
    }
    // A long entry is no literal with a slip in it, and is not repeated.
    let short = shown(entry) == entry;
    let about = lex::fault(entry).filter(|_| short).map(|d| (d.message, d.help));
    let (cause, help) = about.unwrap_or_else(|| {
        let wanted = if *ty == Type::Ip { "address or network".into() } else { ty.to_string() };
        (format!("`{}` is no {wanted}", shown(entry)), None)
    });
    Err(Fault { line: Some(line), cause, help })
}

fn too_many(so_far: usize, line: u64) -> Result<(), Fault> {
    match so_far < ENTRIES_MAX {
        true => Ok(()),
        false => Err(Fault::at(line, format!("a file has at most {ENTRIES_MAX} entries"))),
    }
}

fn not_text(bytes: &[u8], at: usize) -> Fault {
    let line = bytes[..at].iter().filter(|b| **b == b'\n').count() as u64 + 1;
    Fault::at(line, "it is not UTF-8 text")
}

/// The names of columns, as many as fit a message.
fn columns(header: &csv::StringRecord) -> String {
    const MOST: usize = 20;
    let more = if header.len() > MOST { ", …" } else { "" };
    format!("{}{more}", header.iter().take(MOST).map(shown).collect::<Vec<_>>().join(", "))
}

/// The line of a record, from 1. The reader says where it began to look for the record: at the end
/// of the line before, or before blank lines and remarks.
fn line_of_record(bytes: &[u8], start: u64) -> u64 {
    let mut at = (start as usize).min(bytes.len());
    loop {
        match bytes.get(at) {
            Some(b'\r' | b'\n') => at += 1,
            Some(b'#') => at += bytes[at..].iter().take_while(|b| **b != b'\n').count(),
            _ => break,
        }
    }
    bytes[..at].iter().filter(|b| **b == b'\n').count() as u64 + 1
}

fn csv_fault(e: &csv::Error, bytes: &[u8]) -> Fault {
    let line = e.position().map(|p| line_of_record(bytes, p.byte()));
    let cause = match e.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("the header has {expected_len} columns, and this line {len}")
        }
        csv::ErrorKind::Utf8 { .. } => "it is not UTF-8 text".to_owned(),
        _ => "it cannot be read as CSV".to_owned(),
    };
    Fault { line, cause, help: None }
}

/// Reads any bytes as a set and as a table of each type of key: nothing may panic, and what was
/// read keeps within its limits.
#[cfg(any(test, fuzzing))]
pub fn fuzz_file(bytes: &[u8]) {
    for ty in [Type::Ip, Type::Int, Type::Str, Type::Mac] {
        if let Ok(members) = set(bytes, &ty) {
            assert!(!members.is_empty() && members.len() <= ENTRIES_MAX);
        }
        for column in ["name", "ip", "", "country.iso_code", "names.0"] {
            if let Ok(table) = table(("f.csv", bytes), column, &ty) {
                assert!(table.entries.iter().all(|(_, n)| (*n as usize) < table.texts.len()));
                let found = |k: &Value| matches!(k, Value::Net(..)) || table.find(k).is_some();
                assert!(table.entries.iter().all(|(k, _)| found(k)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text_of(members: Result<Vec<Member>, Fault>) -> String {
        match members {
            Ok(all) => {
                let one = |m: &Member| match m {
                    Member::Value(v) | Member::Net(v) => v.to_string(),
                    Member::Range(a, b) => format!("{a}..{b}"),
                };
                all.iter().map(one).collect::<Vec<_>>().join(" ")
            }
            Err(fault) => format!("{}: {}", fault.line.unwrap_or(0), fault.cause),
        }
    }

    #[test]
    fn sets_have_one_member_a_line() {
        let text = b"# ours\n10.0.0.0/8 ; SBL1\n\n192.0.2.1\r\n2001:db8::/32 # v6\n";
        assert_eq!(text_of(set(text, &Type::Ip)), "10.0.0.0/8 192.0.2.1 2001:db8::/32");
        assert_eq!(text_of(set(b"22\n0x50\n-1", &Type::Int)), "22 80 -1");
        assert_eq!(text_of(set(b"#c\n a b \n", &Type::Str)), "\"a b\"");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let ip = |text: &[u8]| text_of(set(text, &Type::Ip));
        assert_eq!(ip(b"10.0.0.1\nexample.org"), "2: `example.org` is no address or network");
        assert!(ip(b"10.0.0.300").starts_with("1: "), "{}", ip(b"10.0.0.300"));
        assert!(ip(b"10.1.2.3/8").contains("bits set"), "{}", ip(b"10.1.2.3/8"));
        assert_eq!(ip(b"10.0.0.1\n\n\xff"), "3: it is not UTF-8 text");
        assert_eq!(ip(b"# nothing\n"), "0: nothing is in it");
        assert_eq!(text_of(set(b"80\n10s", &Type::Int)), "2: `10s` is no int");
        let long = text_of(set("1".repeat(1 << 20).as_bytes(), &Type::Int));
        assert_eq!(long, format!("1: `{}…` is no int", "1".repeat(40)));
        assert_eq!(ip(b"\x1b[31mred"), "1: `\\u{1b}[31mred` is no address or network");
    }

    fn read(text: &str, column: &str, ty: &Type) -> Result<Table, String> {
        table(("f.csv", text.as_bytes()), column, ty)
            .map_err(|f| format!("{}: {} {:?}", f.line.unwrap_or(0), f.cause, f.help))
    }

    #[test]
    fn tables_have_a_header_and_keys_in_the_first_column() {
        let text = "host,owner,site\n10.0.0.0/8,ops,a\n10.1.0.0/16,\"web, mail\",b\n";
        let table = read(text, "owner", &Type::Ip).expect("a table");
        let ip = |s: &str| Value::ip(s.parse().expect("an address"));
        assert_eq!(table.find(&ip("10.2.0.1")), Some("ops"));
        assert_eq!(table.find(&ip("10.1.0.1")), Some("web, mail"));
        let wrong = read(text, "ownr", &Type::Ip).expect_err("no such column");
        assert_eq!(wrong, "1: it has no column `ownr` Some(\"did you mean `owner`?\")");
        let twice = read("port,name\n80,a\n443,b\n80,c", "name", &Type::Int);
        assert_eq!(twice, Err("4: `80` is in line 2 already None".into()));
        let twice = read("port,name\r\n80,a\r\n\r\n# c\r\n80,c\r\n", "name", &Type::Int);
        assert_eq!(twice, Err("5: `80` is in line 2 already None".into()));
        let open = read("port,name\n80,\"web\n443,tls\n", "name", &Type::Int);
        assert_eq!(
            open.expect_err("it swallows a line"),
            "2: a cell goes on in the next line \
             Some(\"a quote that opens a cell closes it, too\")"
        );
        let short = read("port,name\n80", "name", &Type::Int).expect_err("a column too few");
        assert_eq!(short, "2: the header has 2 columns, and this line 1 None");
    }

    #[test]
    fn a_quote_that_is_not_closed_takes_no_lines_silently() {
        let check = |text: &str, wanted: &str| {
            let fault = read(text, "name", &Type::Int).expect_err(text);
            assert!(fault.starts_with(wanted), "{text}: {fault}");
            assert!(fault.contains("a quote that opens a cell closes it, too"), "{fault}");
        };
        // A column that is not looked up swallows lines as well.
        check("port,name,site\n80,web,\"a\n443,tls,b\"\n", "2: a cell goes on in the next line");
        check("port,name\n22,ssh\n80,\"web\n", "3: a quote opens a cell and does not close it");
        check("port,name\n22,ssh\n80,\"web", "3: a quote opens a cell and does not close it");
        check("port,name\n22,ssh\n80,\"", "3: a quote opens a cell and does not close it");
        check("# a \"\nport,\"name\n80,web\n", "2: a cell goes on in the next line");
        let fine = "port,name\r\n# \"\r\n80,\"a \"\"b\"\" c\"\n443,\"tls\"\n22,s\"h\n7,\"\"";
        let table = read(fine, "name", &Type::Int).expect("all quotes are closed");
        assert_eq!(table.find(&Value::Int(80)), Some("a \"b\" c"));
        assert_eq!(table.find(&Value::Int(443)), Some("tls"));
        assert_eq!(table.find(&Value::Int(22)), Some("s\"h"));
        assert_eq!(table.find(&Value::Int(7)), Some(""));
    }

    #[test]
    fn a_name_that_two_columns_have_is_refused_where_it_is_looked_up() {
        let text = "# ours\nport,name,name,site\n80,web,www,a\n";
        let twice = read(text, "name", &Type::Int).expect_err("which of the two?");
        assert!(twice.starts_with("2: several of its columns are called `name`"), "{twice}");
        assert!(read(text, "site", &Type::Int).is_ok());
    }

    proptest! {
        #[test]
        fn any_file_is_read_or_refused(
            text in "(ip,name\n)?((10\\.0\\.[0-9]{1,2}\\.0/24|[a-z0-9.:\"]{0,9}),?[a-z,\"#]{0,5}\n){0,9}",
            at in 0usize..40, byte: u8,
        ) {
            fuzz_file(text.as_bytes());
            let bytes = mutated(&text, at, byte);
            fuzz_file(&bytes);
        }
    }

    /// The text with one byte replaced by any other.
    fn mutated(text: &str, at: usize, byte: u8) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        if let Some(b) = bytes.get_mut(at) {
            *b = byte;
        }
        bytes
    }
}
