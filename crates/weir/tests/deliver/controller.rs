//! A rule of a controller for as long as an alert lasts, by the requests that docs/alerts.md shows.

use crate::common::text;
use crate::common::workplace;
use crate::over_wires::until;
use crate::receivers::{Streamed, read};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A controller with the two requests of Ryu that the page names. A rule is its priority and its
/// match. It is busy when it is first asked.
struct Controller {
    address: String,
    rules: Arc<Mutex<BTreeSet<String>>>,
}

impl Controller {
    fn start() -> Controller {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let rules = Arc::<Mutex<BTreeSet<String>>>::default();
        let theirs = Arc::clone(&rules);
        std::thread::spawn(move || {
            let mut is_busy = true;
            for mut stream in listener.incoming().map_while(Result::ok) {
                let Some(request) = read(&mut stream) else { continue };
                let status = match std::mem::take(&mut is_busy) {
                    true => 503,
                    false => change(
                        &mut theirs.lock().expect("no panic"),
                        &request.head,
                        &request.json(),
                    ),
                };
                let _ = write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n");
            }
        });
        Controller { address, rules }
    }

    fn rules(&self) -> Vec<String> {
        self.rules.lock().expect("no panic").iter().cloned().collect()
    }
}

/// Does what a request says; the status of the answer.
fn change(rules: &mut BTreeSet<String>, head: &str, body: &Value) -> u16 {
    if body["dpid"] != 1 {
        return 404;
    }
    let rule = format!("{} {}", body["priority"], body["match"]);
    match head.split(' ').nth(1) {
        Some("/stats/flowentry/add") if body["actions"] == serde_json::json!([]) => {
            rules.insert(rule);
        }
        Some("/stats/flowentry/delete_strict") => {
            rules.remove(&rule);
        }
        _ => return 404,
    }
    200
}

#[test]
fn a_rule_lasts_as_long_as_its_alert() {
    let page = text("docs/alerts.md");
    let mut blocks = page.split("```http\n").skip(1).map(|rest| rest.split("```").next());
    let folder = workplace();
    for name in ["block.http", "unblock.http"] {
        let block = blocks.next().flatten().expect("a request");
        fs::write(folder.path().join(name), block).expect("writes");
    }
    let controller = Controller::start();
    let to = format!("http://{} start=block.http end=unblock.http", controller.address);
    let mut run = Streamed::in_folder(folder, &["--alert-to", &to, "--fail-on-loss"]);
    let rule = |n: u8| format!("40000 {{\"eth_type\":2048,\"ipv4_src\":\"10.0.0.{n}\"}}");
    run.send(0, 1..3);
    run.send(3, 3..4);
    until("two rules", || controller.rules() == [rule(1), rule(2)]);
    run.send(4, 2..3);
    run.send(8, 4..5);
    until("one is removed", || !controller.rules().contains(&rule(1)));
    let (text, status) = run.end();
    assert_eq!(status, Some(0), "{text}");
    assert!(controller.rules().contains(&rule(4)), "its alert was still open: {text}");
}
