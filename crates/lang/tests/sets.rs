//! Params that are sets: what they mean on the right of `in`, and what is wrong with others.

use weir_lang::{Files, Options, Query, compile, format, render};
use weir_plan::{Expr, ExprKind, Member, Stage};

/// The files that the tests name.
#[derive(Debug)]
struct Given;

impl Files for Given {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match path {
            "x.txt" => Ok(b"192.0.2.0/24\n198.51.100.7 # one\n".to_vec()),
            _ => Err(format!("there is no {path}")),
        }
    }
}

fn compiled(text: &str, given: &[(&str, &str)]) -> Result<(Expr, usize), String> {
    let params: Vec<_> = given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let options = Options { params: &params, files: Some(&Given), ..Options::default() };
    let q = Query { name: "query.weir", text };
    match compile(&q, &options) {
        Ok(c) => match &c.program.pipelines[0].stages[0] {
            Stage::Where(e) => Ok((e.clone(), c.warnings.len())),
            other => panic!("{other:?}"),
        },
        Err(all) => Err(render(&all, &q, false)),
    }
}

/// The sets in the condition of a query, one after the other.
fn sets(text: &str, given: &[(&str, &str)]) -> String {
    let (e, warnings) = compiled(text, given).unwrap_or_else(|told| panic!("{told}"));
    assert_eq!(warnings, 0, "{text}");
    let mut out = Vec::new();
    e.visit(&mut |e| match &e.kind {
        ExprKind::In(_, members) => {
            let member = |m: &Member| match m {
                Member::Value(v) | Member::Net(v) => v.to_string(),
                Member::Range(a, b) => format!("{a}..{b}"),
            };
            out.push(members.iter().map(member).collect::<Vec<_>>().join(" "));
        }
        ExprKind::Const(v) => out.push(v.to_string()),
        _ => {}
    });
    out.join("; ")
}

fn told(text: &str, given: &[(&str, &str)]) -> String {
    compiled(text, given).expect_err("it is wrong")
}

#[test]
fn they_stand_in_for_their_members() {
    let local = "param local: nets = {10.0.0.0/8, fc00::/7, 192.0.2.1, 192.0.2.8..192.0.2.9}\n";
    let members = "10.0.0.0/8 fc00::/7 192.0.2.1 192.0.2.8..192.0.2.9";
    let check = |condition: &str, expected: &str| {
        assert_eq!(sets(&format!("{local}packets | where {condition}"), &[]), expected);
    };
    check("ip.src in local", members);
    check("ip.src not in (local)", members);
    check("ip.src in {local, 198.51.100.0/24}", &format!("{members} 198.51.100.0/24"));
    check("ip.src in local or ip.dst in local", &format!("{members}; {members}"));
    check("match ip.src { local => true, _ => false }", &format!("{members}; true; false"));
    let text = "param web: ints = {80, 443, 8000..8099}\npackets | where tcp.dport in web";
    assert_eq!(sets(text, &[]), "80 443 8000..8099");
    // One value or range alone is a set, too, and one param may be made of another.
    let text = "param ours: nets = 10.0.0.0/8\nparam all: nets = {ours, ::1}\n\
                packets | where ip.src in all and ip.dst in ours";
    assert_eq!(sets(text, &[]), "10.0.0.0/8 ::1; 10.0.0.0/8");
    let text = "param names: strings = {\"a\", \"b\"}\nparam cards: macs = {02:00:00:00:00:01}\n\
                packets | where dns.qname in names or eth.src in cards";
    assert_eq!(sets(text, &[]), "\"a\" \"b\"; 02:00:00:00:00:01");
    let text = "param web: ints = {80}\npackets | where float(tcp.dport) in web";
    assert_eq!(sets(text, &[]), "80.0");
}

#[test]
fn nothing_is_in_an_empty_set() {
    let check = |condition: &str, expected: &str| {
        let text = format!("param none: nets = {{}}\npackets | where {condition}");
        assert_eq!(sets(&text, &[]), expected, "{condition}");
    };
    check("ip.src in none", "false");
    check("ip.src not in none", "");
    check("ip.src in {none, 10.0.0.1}", "10.0.0.1");
    check("match ip.src { none => 1, _ => 2 } == 2", "false; 1; 2; 2");
    check(
        "match (ip.src, ip.dst) { (none, 10.0.0.1) => 1, _ => 2 } == 2",
        "false; 10.0.0.1; 1; 2; 2",
    );
}

#[test]
fn files_and_given_values_fill_them() {
    let text = "param bad: nets = {file(\"x.txt\"), 10.0.0.1}\npackets | where ip.src in bad";
    assert_eq!(sets(text, &[]), "192.0.2.0/24 198.51.100.7 10.0.0.1");
    let check = |value: &str, expected: &str| assert_eq!(sets(text, &[("bad", value)]), expected);
    check("{10.0.0.0/8, 192.0.2.0/24}", "10.0.0.0/8 192.0.2.0/24");
    check(" 10.0.0.0/8 ", "10.0.0.0/8");
    check("{}", "false");
    check("{\n  ::1, # one\n  10.0.0.1..10.0.0.9,\n}", "::1 10.0.0.1..10.0.0.9");
    check("file(\"x.txt\")", "192.0.2.0/24 198.51.100.7");
    check("192.0.2.1/32", "192.0.2.1");
}

#[test]
fn mistakes_are_told_where_they_are() {
    let mut out = String::new();
    for text in [
        "param local: nets = {10.0.0.0/8, 80}\npackets | where ip.src in local",
        "param n: int = {1, 2}\npackets | limit n",
        "param home: net = {10.0.0.0/8}\npackets | where ip.src in home",
        "param web: ints = {80, 443..1}\npackets | where len == web",
        "param web: ints = {80}\npackets | where ip.src in web",
        "param web: port = 80\npackets | where tcp.dport in web",
        "param bad: nets = file(\"y.txt\")\npackets | where ip.src in bad",
        "param web: ints = {80}\nparam all: nets = {web}\npackets | where ip.src in all",
        "param web: ints = {len}\npackets | where ip.src in web",
        "param web: ints = {80\npackets | where ip.src in web",
    ] {
        out += &told(text, &[]);
    }
    let text = "param web: ints = {80}\npackets | where len in web";
    for value in
        ["80, 443", "{80", "{::1}", "{x}", "", "{80} {81}", "{file(\"y.txt\")}", "{80-90}", "80-90"]
    {
        out += &told(text, &[("web", value)]);
    }
    insta::assert_snapshot!(out);
}

#[test]
fn they_are_formatted_like_other_sets() {
    let check = |text: &str, expected: &str| {
        assert_eq!(format(text).expect("it can be read"), expected);
    };
    check(
        "param a : ints={80,443 , 1 .. 9}\nparam b:nets={}\npackets|where len in a",
        "param a: ints = {80, 443, 1..9}\nparam b: nets = {}\n\npackets\n| where len in a\n",
    );
    let long = (0..12).map(|n| format!("192.0.2.{n}/32")).collect::<Vec<_>>();
    let text = format!("param a: nets = {{{}}}\n\npackets\n", long.join(", "));
    let once = format(&text).expect("it can be read");
    assert!(once.lines().all(|line| line.len() <= 100), "{once}");
    assert_eq!(format(&once).expect("so can that"), once);
}
