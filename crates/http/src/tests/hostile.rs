//! Requests that no client should send, to every path: each is refused with a reason, and none does
//! anything or brings the run down.

use crate::alerts::ListAlerts;
use crate::api::{Api, Lookups, ROUTES};
use crate::guard::{Guard, Token};
use crate::log::RowLog;
use crate::packets::{FindPackets, NoPackets};
use crate::pages::{LargeAnswers, Pages};
use crate::request::{HttpRequest, read_request};
use crate::shelf::{AskShelf, ShelfRefusal};
use crate::testing;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use weir_control::{Answers, ChangeBy, Registry, Rules, SiteParams, Suppressions, Taker};

/// A client that takes everything, and leaves when nothing comes.
#[derive(Default)]
struct Leaving(Vec<u8>);

impl Write for Leaving {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Taker for Leaving {
    fn part(&mut self, _: Duration) -> io::Result<()> {
        Ok(())
    }

    fn has_left(&self) -> bool {
        true
    }

    fn makes_room(&mut self) {}
}

/// The pages of a run that refuses all programs, and whose rows are over.
fn pages() -> Pages {
    let rules = Rules {
        allows: Box::new(|_, _| Err("no program may run here".to_owned())),
        make_sink: Box::new(|_| Ok(None)),
        suppressions: Suppressions::new(Default::default(), Vec::new()),
        site: SiteParams::default(),
    };
    let changes = ChangeBy::Continuing(Arc::default());
    let registry = Registry::new(Vec::new(), rules, Arc::default(), changes, Arc::new(|_| None));
    let (registry, _cleanup) = registry.unwrap_or_else(|reason| panic!("{reason}"));
    let rows = RowLog::new(testing::form(), true);
    rows.open(&[testing::output("a"), testing::output("b")]);
    rows.add(0, &testing::rows(0..8, 0));
    rows.close();
    let lookups = Lookups {
        check: Box::new(|text, _| json!({ "diagnostics": [], "len": text.len() })),
        fields: json!({ "words": [] }),
        library: json!({ "queries": [] }),
        run: Box::new(|| json!({})),
        stages: Box::new(|| None),
    };
    let packets: FindPackets = Box::new(|asked| match asked.limit {
        Some(0) => Err(NoPackets::Wrong("a limit is at least 1".to_owned(), String::new())),
        _ => Err(NoPackets::Unknown("no such program".to_owned())),
    });
    let shelf: AskShelf = Box::new(|_| Err(ShelfRefusal::Missing("no such capture".to_owned())));
    let alerts: ListAlerts = Box::new(|asked| match &asked.program {
        Some(_) => None,
        None => Some(json!({ "alerts": [] })),
    });
    let (answers, packets, shelf) = (Arc::new(Answers::new(registry)), Some(packets), Some(shelf));
    Pages {
        metrics: Box::new(|_| Some(String::new())),
        is_healthy: Box::new(|| true),
        api: Some(Api { answers, rows, lookups, alerts, packets, shelf }),
        page: None,
    }
}

/// Asks, by the same steps as over a connection; gives the status and the body.
fn ask(guard: &Guard, pages: &Pages, head: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
    let bytes = [head.as_bytes(), body].concat();
    let mut to = Leaving::default();
    let read = read_request(&mut &*bytes, |head| guard.check(head)).expect("it comes whole");
    match read {
        Ok(request) => answer(pages, &request, &mut to),
        Err(refusal) => refusal.write(&mut to).expect("in memory"),
    }
    let text = String::from_utf8_lossy(&to.0);
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    let end = to.0.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
    (status.expect("a status"), to.0[end..].to_vec())
}

fn answer(pages: &Pages, request: &HttpRequest, to: &mut Leaving) {
    pages.answer(request, &LargeAnswers::default(), to).expect("in memory");
}

/// Every path of the API with every method that it has.
fn requests() -> impl Iterator<Item = (&'static str, String)> {
    let methods = |(path, methods): &(&str, &'static str)| {
        let path = path.replace("{name}", "none");
        methods.split(", ").map(move |method| (method, path.clone())).collect::<Vec<_>>()
    };
    ROUTES.iter().flat_map(methods)
}

#[test]
fn every_path_checks_who_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("token");
    std::fs::write(&path, "0123456789abcdef").expect("writes");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, mode).expect("is ours");
    let token = Token::read(&path).expect("a token");
    let (guard, pages) = (Guard { token: Some(token), hosts: Vec::new() }, pages());
    const TOKEN: &str = "Authorization: Bearer 0123456789abcdef\r\n";
    let mut asked = 0;
    let more = [("GET", "/metrics".to_owned())];
    for (method, path) in requests().chain(more) {
        let with = |headers: &str| {
            let head = format!("{method} {path} HTTP/1.1\r\n{headers}");
            ask(&guard, &pages, &head, b"").0
        };
        for (headers, expected) in [
            ("Host: evil.example\r\n", 421),
            ("Host: localhost.evil.example:80\r\n", 421),
            ("", 400),
            ("Host: localhost\r\nOrigin: http://evil.example\r\n", 403),
            ("Host: localhost\r\nOrigin: null\r\n", 403),
            ("Host: localhost:80\r\nOrigin: http://localhost:81\r\n", 403),
            ("Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403),
            ("Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", 403),
        ] {
            let found = with(&format!("{headers}{TOKEN}"));
            assert_eq!(found, expected, "{method} {path}: {headers}");
        }
        assert_eq!(with("Host: localhost\r\n"), 401, "{method} {path}");
        let allowed = with(&format!("Host: localhost\r\nOrigin: http://localhost\r\n{TOKEN}"));
        assert!(![401, 403, 421].contains(&allowed), "{method} {path}: {allowed}");
        asked += 1;
    }
    assert!(asked > 20, "{asked}");
}

/// Texts at the edges.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("\0\r\n\u{202e}\"\\".to_owned()),
        Just("packets | limit 1".to_owned()),
        Just("x".repeat(70_000)),
        "[a-z|.:/ ]{0,12}",
        any::<String>(),
    ]
}

/// Numbers at the edges, and what is near a number.
fn numbers() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(0)),
        Just(json!(1)),
        Just(json!(-1)),
        Just(json!(u64::MAX - 1)),
        Just(json!(u64::MAX)),
        Just(json!(i64::MIN)),
        Just(json!(0.5)),
        Just(json!(1e300)),
        Just(json!("1")),
    ]
}

/// Bodies that are nearly right: objects of the names that bodies have, with values of any kind.
fn objects() -> impl Strategy<Value = Value> {
    let leaf = || {
        prop_oneof![
            texts().prop_map(Value::from),
            numbers(),
            Just(Value::Null),
            Just(json!({})),
            Just(json!([])),
        ]
    };
    let file = (texts(), texts()).prop_map(|(path, text)| json!({ "path": path, "text": text }));
    let value = prop_oneof![
        4 => leaf(),
        1 => vec(file, 0..3).prop_map(Value::from),
        1 => vec((texts(), leaf()), 0..3).prop_map(|all| Value::Object(Map::from_iter(all))),
    ];
    const NAMES: [&str; 16] = [
        "name", "text", "params", "files", "line", "program", "output", "row", "where", "from",
        "until", "limit", "format", "capture", "path", "more",
    ];
    let member = (prop::sample::select(&NAMES[..]).prop_map(str::to_owned), value);
    vec(member, 0..6).prop_map(|all| Value::Object(Map::from_iter(all)))
}

/// Bodies of bytes.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let cut = (objects(), any::<prop::sample::Index>()).prop_map(|(object, at)| {
        let bytes = object.to_string().into_bytes();
        bytes[..at.index(bytes.len())].to_vec()
    });
    prop_oneof![
        4 => objects().prop_map(|object| object.to_string().into_bytes()),
        1 => cut,
        1 => vec(any::<u8>(), 0..40),
        1 => Just(b"{\"text\": \"\xff\xfe\"}".to_vec()),
        1 => Just("[".repeat(100_000).into_bytes()),
        1 => Just(b"{\"name\": 1e999999}".to_vec()),
    ]
}

proptest! {
    /// Whatever a body is, the answer is one of those that the description has, and a refusal says
    /// why.
    #[test]
    fn any_body_is_answered(body in bodies(), at in any::<prop::sample::Index>()) {
        let all: Vec<_> = requests().filter(|(method, _)| *method != "GET").collect();
        let (method, path) = at.get(&all);
        let guard = Guard { token: None, hosts: Vec::new() };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
        let (status, told) = ask(&guard, &pages(), &head, &body);
        if status != 200 {
            prop_assert!((400..500).contains(&status), "{method} {path}: {status}");
            let told: Value = serde_json::from_slice(&told).expect("JSON");
            let reason = told["error"].as_str().expect("a reason");
            prop_assert!(!reason.is_empty());
        }
    }

    /// A cursor is a number that a client may make up.
    #[test]
    fn any_cursor_is_answered(
        program in prop_oneof![Just("a"), Just("b"), Just("none"), Just("")],
        number in prop_oneof![
            Just(String::new()),
            prop::sample::select(vec![0, 1, 7, 8, 9, u64::MAX - 1, u64::MAX])
                .prop_map(|n| format!(":{n}")),
            Just(":18446744073709551616".to_owned()),
            Just(":-1".to_owned()),
            Just(format!(":{}", "9".repeat(5_000))),
            ":[ -~]{0,5}".prop_map(|text| text.replace([' ', '#'], "_")),
        ],
    ) {
        let guard = Guard { token: None, hosts: Vec::new() };
        let head = format!(
            "GET /api/v1/recent?programs={program}{number} HTTP/1.1\r\nHost: localhost\r\n"
        );
        let (status, told) = ask(&guard, &pages(), &head, b"");
        let told = String::from_utf8(told).expect("text");
        match status {
            200 => {
                // All eight rows, or those from a number on.
                let rows = told.matches("{}").count() - usize::from(told.contains("event: end"));
                prop_assert!(rows <= 8 && told.ends_with("event: end\ndata: {}\n\n"), "{told}");
            }
            400 => prop_assert!(told.contains("error")),
            other => prop_assert!(false, "{other}: {told}"),
        }
    }

    /// Values in the query of a path, which are bytes of a client, too.
    #[test]
    fn any_query_is_answered(query in "[!-~]{0,40}", at in any::<prop::sample::Index>()) {
        let all: Vec<_> = requests().filter(|(method, _)| *method == "GET").collect();
        let (_, path) = at.get(&all);
        let query = query.replace('#', "_");
        let guard = Guard { token: None, hosts: Vec::new() };
        for query in [query.clone(), format!("program={query}"), format!("state={query}")] {
            let head = format!("GET {path}?{query} HTTP/1.1\r\nHost: localhost\r\n");
            let (status, told) = ask(&guard, &pages(), &head, b"");
            let is_known = status == 200 || status == 503 || (400..500).contains(&status);
            prop_assert!(is_known && !told.is_empty(), "{path}?{query}: {status}");
        }
    }
}
