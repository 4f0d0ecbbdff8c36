//! Statements over the captures of `fixtures/`.

use crate::{SqlError, SqlOptions, SqlSession};
use weir_base::address::AddressForm;
use weir_engine::rows::Collect;
use weir_plan::Value;

const WEB: &str = "../../fixtures/web.pcap";
const MIXED: &str = "../../fixtures/mixed.pcap";

fn session(addresses: AddressForm) -> SqlSession {
    let library = |name: &str| {
        let file = if name == "flows" { "flow_meter" } else { name };
        std::fs::read_to_string(format!("../../queries/{file}.weir")).ok()
    };
    let options = SqlOptions { addresses, workers: 2, library, ..SqlOptions::default() };
    SqlSession::new(options).expect("threads start")
}

fn rows_of(session: &SqlSession, text: &str) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut all = Vec::new();
    for statement in session.read(text)? {
        let mut rows = Collect::default();
        session.answer(statement, &mut rows)?;
        all.extend(rows.rows.into_iter().map(|(_, row)| row));
    }
    Ok(all)
}

/// The rows of statements as text, cells with a blank between them.
fn rows(text: &str) -> Vec<String> {
    let rows = rows_of(&session(AddressForm::Text), text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let line = |row: Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
    rows.into_iter().map(line).collect()
}

fn refused(text: &str) -> String {
    match rows_of(&session(AddressForm::Text), text) {
        Ok(rows) => panic!("{text}: {rows:?}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn a_capture_is_a_table_of_its_packets() {
    assert_eq!(rows(&format!("select count(*) from '{WEB}'")), ["143"]);
    let sums = "select tcp.dport, count(*), sum(len) from '{}' where tcp.syn and not tcp.ack
                group by tcp.dport order by 2 desc, 1";
    assert_eq!(rows(&sums.replace("{}", WEB)), ["80 7 518"]);
    // The names of columns in any case, with the table before them, and in quotes.
    let alias = format!("select max(dns.len) from '{WEB}' dns where dns.tcp.dport = 80");
    assert_eq!(rows(&alias).len(), 1);
    for column in ["ip.src", "IP.SRC", "t.ip.src", "\"ip.src\"", "t.\"ip.src\""] {
        let text = format!("select {column} from '{WEB}' t order by ts limit 1");
        assert_eq!(rows(&text), ["\"fe80::ff:fe00:2\""], "{column}");
    }
    let joined = format!(
        "with syns as (select ip.src, ip.dst, tcp.sport from '{WEB}' where tcp.flags = 2)
         select count(*) from syns join '{WEB}' answers
         on syns.ip.src = answers.ip.dst and syns.tcp.sport = answers.tcp.dport
         where answers.tcp.flags = 18"
    );
    assert_eq!(rows(&joined), ["7"]);
    assert_eq!(rows(&format!("select 1 where exists (select 1 from '{WEB}' where udp)")).len(), 0);
}

#[test]
fn what_a_statement_reads_is_decoded_and_no_more() {
    let plan = rows(&format!(
        "explain select ip.src from '{MIXED}' where udp and ip.ttl > 3 and ip.dst in
         ('198.51.100.2', '2001:db8:2::1') and in_net(ip.src, '192.0.2.0/24') and ts >=
         '2020-01-01' and (len < 100 or dns.qname is not null) and sport between 1 and 9 and
         not udp.checksum is null limit 5"
    ));
    let scan = plan.iter().find(|line| line.contains("Weir:")).expect("the leaf of the plan");
    for part in [
        "where udp and ",
        " and ip.ttl > 3 and ",
        " and ip.src in {192.0.2.0/24}",
        " and ts >= @2020-01-01T00:00:00Z and ",
        " and (len < 100 or exists(dns.qname)) and ",
        " and sport >= 1 and sport <= 9 and ",
        " and exists(udp.checksum)",
        "| project ip.src | limit 5 (",
    ] {
        assert!(scan.contains(part), "{part} is not in {scan}");
    }
    assert!(!plan.iter().any(|line| line.contains("FilterExec")), "{plan:?}");
    // A condition that the language has no words for is left to DataFusion.
    let plan = rows(&format!("explain select len from '{WEB}' where len % 7 = 3"));
    assert!(plan.iter().any(|line| line.contains("FilterExec")), "{plan:?}");
}

/// A small generator of numbers, by a multiplication (Steele and Vigna, 2021).
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        (self.0 >> 33) as usize % n
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// A condition over fields of which packets have some, with values that some have.
    fn condition(&mut self, depth: usize) -> String {
        let order = ["=", "<>", "<", "<=", ">", ">="];
        let numbers = [
            ("len", ["0", "60", "66", "1514", "-1", "9223372036854775807"]),
            ("tcp.dport", ["80", "443", "0", "65535", "22", "-9223372036854775808"]),
            ("dns.rcode", ["0", "3", "1", "2", "15", "16"]),
            ("ip.ttl", ["63", "64", "255", "0", "1", "128"]),
        ];
        let number = numbers[self.below(4)];
        let address = self.of(&["ip.src", "ip.dst", "dns.addr"]);
        let known = ["192.0.2.1", "198.51.100.2", "2001:db8:1::1", "0.0.0.0", "no address", "::"];
        let bools = ["tcp.syn", "tcp.ack", "udp", "dns.qr", "malformed", "conn.forward"];
        match self.below(if depth == 0 { 8 } else { 11 }) {
            0 => format!("{} {} {}", number.0, self.of(&order), self.of(&number.1)),
            // The constant first, a number as a text, and the same again the other way.
            1 => {
                let (op, value) = (self.of(&order), self.of(&number.1));
                let other = self.of(&["and", "or"]);
                format!("('{value}' {op} {0} {other} {0} = '{value}')", number.0)
            }
            2 if self.below(2) == 0 => {
                let value = self.of(&known);
                format!("('{value}' = {address} and not {address} <> '{value}')")
            }
            2 => format!("{} {} '{}'", address, self.of(&["=", "<>"]), self.of(&known)),
            3 => self.of(&bools).to_owned(),
            4 => format!("not {}", self.of(&bools)),
            5 => {
                let no = self.of(&["", "not "]);
                let field = self.of(&["tcp.dport", "dns.qname", "ip.src", "tcp.syn", "ts"]);
                format!("{field} is {no}null")
            }
            6 => {
                let no = self.of(&["", "not "]);
                let network = self.of(&["192.0.2.0/24", "198.51.100.2", "2001:db8::/32", "::/0"]);
                match self.below(3) {
                    0 => format!("in_net({address}, '{network}')"),
                    1 => format!("{address} {no}in ('{}', '{}')", self.of(&known), self.of(&known)),
                    _ => {
                        let (low, high) = (self.of(&number.1), self.of(&number.1));
                        format!("{} {no}between {low} and {high}", number.0)
                    }
                }
            }
            7 => {
                let names = ["'www.example.org'", "''", "'a\"b\\\n'", "'\u{fffd}'"];
                let (field, op) = (self.of(&["dns.qname", "http.host"]), self.of(&order));
                format!("{field} {op} {}", self.of(&names))
            }
            8 => format!("({} and {})", self.condition(depth - 1), self.condition(depth - 1)),
            9 => format!("({} or {})", self.condition(depth - 1), self.condition(depth - 1)),
            _ => format!("not ({})", self.condition(depth - 1)),
        }
    }
}

/// The same conditions in the decoder and by DataFusion, which gets those that ask `is true` of
/// what may be null.
#[test]
fn conditions_hold_for_the_same_packets_in_the_decoder_and_in_sql() {
    let mut draw = Draw(7);
    let (mut in_decoder, mut with_rows) = (0, 0);
    for addresses in [AddressForm::Text, AddressForm::Bytes] {
        let session = session(addresses);
        let count = |from: &str, condition: &str| {
            let text = format!("select number from '{from}' where {condition} order by 1");
            rows_of(&session, &text).unwrap_or_else(|e| panic!("{text}: {e}")).len()
        };
        for _ in 0..150 {
            let condition = draw.condition(2);
            if addresses == AddressForm::Bytes && condition.contains("'no address'") {
                continue;
            }
            let from = draw.of(&[MIXED, "../../fixtures/dns.pcap"]);
            let by_sql =
                format!("(case when ts is null then false else ({condition}) end) is true");
            let expected = count(from, &by_sql);
            assert_eq!(count(from, &condition), expected, "{from}: {condition}");
            let plan = format!("explain select number from '{from}' where {condition}");
            let plan = rows_of(&session, &plan).expect("it was answered");
            in_decoder += usize::from(plan.iter().any(|l| l[0].to_string().contains("| where")));
            with_rows += usize::from(expected > 0);
        }
    }
    assert!(in_decoder > 100 && with_rows > 80, "{in_decoder} {with_rows}");
}

#[test]
fn a_query_is_a_table() {
    let text = "select source, n from
                weir('packets | summarize n = count() by source = ip.src', '{}')
                where n > 10 order by n desc";
    assert_eq!(rows(&text.replace("{}", WEB)).len(), 2);
    // Of the library, with an output and a parameter; of several captures.
    let flows =
        format!("select count(*), sum(packets) from weir('flows.flows', '{WEB}', '{MIXED}')");
    assert_eq!(rows(&flows).len(), 1);
    let several = refused(&format!("select * from weir('flows', '{WEB}')"));
    assert!(several.contains("flows.flows, flows.totals"), "{several}");
    let text =
        "param least: int = 100\\npackets | summarize n = count() by ip.src | where n > least";
    let of = |least: &str| {
        format!("select count(*) from weir('{}', '{WEB}'{least})", text.replace("\\n", "\n"))
    };
    assert_eq!(rows(&of("")), ["0"]);
    assert_eq!(rows(&of(", 'least=10'")), ["2"]);
    // Columns of rows are resolved as those of packets are.
    let joined = format!(
        "select f.ip.src from weir('packets | summarize n = count() by ip.src', '{WEB}') f
         where f.ip.src = '192.0.2.1'"
    );
    assert_eq!(rows(&joined), ["\"192.0.2.1\""]);
}

#[test]
fn limits_end_runs_early_and_errors_are_told() {
    let session = session(AddressForm::Text);
    rows_of(&session, &format!("select count(*) from '{WEB}'")).unwrap();
    let ended = session.ended();
    assert_eq!(ended.iter().map(|run| run.ledger.received).collect::<Vec<_>>(), [143]);
    assert!(session.ended().is_empty());

    for (text, told) in [
        ("select 1 from 'no.pcap'", "no.pcap: No such file or directory"),
        ("select tcp.dpord from '{}'", "there is no column `tcp.dpord`; did you mean `tcp.dport`?"),
        ("select nothing_such from '{}'", "`describe 'x.pcap'` lists the columns"),
        ("select * from weir('packets | wher len', '{}')", "did you mean `where`?"),
        ("select * from weir('packets')", "reads no capture"),
        ("select * from weir(1)", "takes texts"),
        ("select nope", "there is no table"),
        ("select 1 from web.pcap", "there is no table `web.pcap`; a file is one, as in from '"),
        ("set datafusion.runtime.temp_directory = '/'", "changes no file and no setting"),
        ("create external table a stored as csv location 'x'", "a file is a table by its name"),
        ("select mac('02:00')", "mac: `02:00` is no link address"),
        ("select in_net(ip.src, '10.0.0.1/8') from '{}'", "other bits are zero"),
        ("select prefix(ip.src, 129) from '{}'", "from 0 to 128"),
        ("select ip('10.0.0.300')", "ip: `10.0.0.300` is no address"),
        ("select prefix(ip.src) from '{}'", "prefix takes an address, and bits"),
        ("copy (select 1) to '/tmp/never.csv'", "rows are written by -o"),
        ("selec 1", "Expected: an SQL statement"),
        ("select 1 from 'tests.rs'", "tests.rs: No such file"),
        ("select 1 from 'src/tests.rs'", "src/tests.rs"),
    ] {
        let text = text.replace("{}", WEB);
        let why = refused(&text);
        assert!(why.contains(told), "{text}: {why}");
    }
}

#[test]
fn functions_of_addresses() {
    for (text, value) in [
        ("in_net('10.1.2.3', '10.0.0.0/8')", "true"),
        ("in_net('10.1.2.3', '11.0.0.0/8', '10.1.2.3')", "true"),
        ("in_net('10.1.2.3', '::/0')", "false"),
        ("in_net('::ffff:10.1.2.3', '10.0.0.0/8')", "false"),
        ("in_net('::ffff:10.1.2.3', '::/0')", "true"),
        ("in_net('10.1.2.3', '0.0.0.0/0')", "true"),
        ("in_net(ip('10.1.2.3'), '10.0.0.0/8')", "true"),
        ("prefix('10.1.2.3', 24)", "\"10.1.2.0\""),
        ("prefix('10.1.2.3', 0)", "\"0.0.0.0\""),
        ("prefix('10.1.2.3', 32)", "\"10.1.2.3\""),
        ("prefix('10.1.2.3', 128)", "\"10.1.2.3\""),
        ("prefix('2001:db8::1', 24, 64)", "\"2001:db8::\""),
        ("prefix('2001:db8::1', 24, 128)", "\"2001:db8::1\""),
        ("prefix(ip('10.1.2.3'), 8)", "10.0.0.0"),
        ("mac('02:00:5E:10:00:01')", "02:00:5e:10:00:01"),
        ("ip_text(ip('10.1.2.3'))", "\"10.1.2.3\""),
        ("ip_text(ip('::ffff:10.1.2.3'))", "\"::ffff:10.1.2.3\""),
        ("ip_text(prefix(ip('10.1.2.3'), 8))", "\"10.0.0.0\""),
    ] {
        assert_eq!(rows(&format!("select {text}")), [value], "{text}");
    }
    let absent =
        rows("select in_net(a, '::/0'), prefix(a, 8), ip(a) from (values ('x'), (null)) t(a)");
    assert_eq!(absent, ["absent absent absent"; 2]);
}

#[test]
fn every_type_of_sql_is_a_cell() {
    let text =
        "select true, 1, 2::tinyint, 3::bigint unsigned, 1.5, 2.5::float, 'x', date '2024-05-01',
                timestamp '2024-05-01 12:00:00', interval '1 day', [1, 2], 1.25::decimal(5, 2),
                null, x'0a', {'a': 1}";
    let row = rows(text).remove(0);
    for cell in
        ["true 1 2 3 1.5 2.5 \"x\" \"2024-05-01\" 2024-05-01T12:00:00Z", "[1, 2]", "\"1.25\""]
    {
        assert!(row.contains(cell), "{cell}: {row}");
    }
    assert!(
        refused("select 18446744073709551615::bigint unsigned").contains("18446744073709551615")
    );
}

#[test]
fn views_and_files_of_others_are_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let hosts = folder.path().join("hosts.csv");
    std::fs::write(&hosts, "address,owner\n192.0.2.1,web\n198.51.100.2,server\n").expect("written");
    let text = format!(
        "create view talkers as select ip.src, count(*) as n from '{WEB}' group by ip.src;
         select owner, n from talkers join '{}' on ip.src = address order by owner",
        hosts.display()
    );
    assert_eq!(rows(&text).len(), 2);
}

/// Long lists of conditions are what block lists become; DataFusion decides where they are longer
/// than the language takes.
#[test]
fn conditions_of_any_length_are_answered() {
    let of = |n: usize, word: &str, term: &dyn Fn(usize) -> String| {
        let all: Vec<String> = (0..n).map(term).collect();
        rows(&format!("select count(*) from '{WEB}' where {}", all.join(word))).remove(0)
    };
    for n in [65, 600] {
        assert_eq!(of(n, " and ", &|i| format!("len <> -{}", i + 1)), "143", "{n}");
        let term = |i: usize| format!("(ip.src = '10.0.0.{}' and tcp.dport = {i})", i % 256);
        assert_eq!(of(n, " or ", &term), "0", "{n}");
    }
    let deep = (0..40).fold("len > 0".to_owned(), |inner, i| {
        format!("({inner} {} len > {i})", if i % 2 == 0 { "and" } else { "or" })
    });
    assert_eq!(rows(&format!("select count(*) from '{WEB}' where {deep}")), ["143"]);
    let sum = vec!["len"; 1000].join(" + ");
    assert_eq!(rows(&format!("select count({sum}) from '{WEB}'")), ["143"]);
}

#[test]
fn names_of_tables_and_of_columns_come_before_fields() {
    for (text, row) in [
        (
            "with tcp as (select sport, len from '{}' where tcp) select tcp.sport > 0 from tcp",
            "true",
        ),
        ("select tcp.sport from (values (7)) tcp(sport)", "7"),
        ("select ip.src from (select '1.2.3.4' as src) as ip", "\"1.2.3.4\""),
        ("with c as (select 7 as \"my.col\") select my.col from c", "7"),
        ("select t.a.B > 0 from weir('packets | project a.B = len', '{}') t", "true"),
        ("select a.tcp.dport = 80 from '{}' a where a.tcp.dport = 80", "true"),
    ] {
        let rows = rows(&format!("{} limit 1", text.replace("{}", WEB)));
        assert_eq!(rows, [row], "{text}");
    }
}

#[test]
fn addresses_of_bytes_are_addresses_everywhere() {
    let session = session(AddressForm::Bytes);
    for (text, row) in [
        ("select min(ip.src) from '{}' where ip.src = '192.0.2.1'", "192.0.2.1"),
        ("select prefix(ip.src, 24) from '{}' where '192.0.2.1' = ip.src", "192.0.2.0"),
        ("select count(*) from '{}' where ip.src is not distinct from '192.0.2.1'", "74"),
        ("select count(*) > 0 from '{}' where eth.src = '02:00:00:00:00:0b'", "true"),
        ("select count(*) > 0 from '{}' where eth.src in ('02:00:00:00:00:0B')", "true"),
    ] {
        let text = format!("{} limit 1", text.replace("{}", WEB));
        let rows = rows_of(&session, &text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(rows[0][0].to_string(), row, "{text}");
    }
}

#[test]
fn what_a_terminal_would_obey_is_escaped_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("evil.csv");
    std::fs::write(&file, "a\u{1b}[31m\nx\u{9b}2J\n").expect("written");
    let text = format!("select * from '{}'", file.display());
    for is_shown in [false, true] {
        let session = SqlSession::new(SqlOptions { is_shown, ..SqlOptions::default() });
        let session = session.expect("threads start");
        let mut rows = Collect::default();
        let statement = session.read(&text).expect("it is read").remove(0);
        session.answer(statement, &mut rows).expect("it is answered");
        let seen = format!("{}{}", rows.outputs[0].schema.columns[0].name, rows.rows[0].1[0]);
        assert_eq!(seen.contains('\u{1b}'), !is_shown, "{seen:?}");
    }
}

#[test]
fn a_statement_without_columns_has_no_rows() {
    let session = session(AddressForm::Text);
    let rows = rows_of(&session, &format!("select from '{WEB}'"));
    assert_eq!(rows.expect("it is answered").len(), 0);
}
