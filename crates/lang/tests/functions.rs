//! The language and the check of plans agree about functions: both read one table.

use weir_lang::{Options, Query, compile};
use weir_plan::functions::{BUILTINS, Role, Signatures};
use weir_plan::physical::{Physical, Unwritable};

/// A value of each type, none of them constant.
const VALUES: [&str; 9] = [
    "tcp",
    "len",
    "float(len)",
    "string(len)",
    "bytes(string(len))",
    "ip.src",
    "eth.src",
    "time_ns(len)",
    "duration_ns(len)",
];

/// Constants that some parameter takes.
const CONSTANTS: [&str; 4] = ["7", "\"a.b\"", "b\"ab\"", "\"0123456789abcdef0123456789abcdef\""];

/// All calls with so many arguments, each of which may be anything of its parameter's kind.
fn calls(values: &[&[&str]]) -> Vec<String> {
    let mut calls = vec![String::new()];
    for (i, values) in values.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        let mut longer = Vec::new();
        for call in &calls {
            longer.extend(values.iter().map(|value| format!("{call}{comma}{value}")));
        }
        calls = longer;
    }
    calls
}

#[test]
fn a_call_that_is_accepted_is_sound_in_the_plan() {
    let signatures = Signatures::default();
    for row in BUILTINS {
        let values: Vec<&[&str]> = row
            .takes
            .iter()
            .map(|parameter| match parameter.role {
                Role::Value | Role::Float => &VALUES[..],
                Role::Pattern | Role::Constant => &CONSTANTS,
                Role::Connection => {
                    &["conn", "flow", "len", "(ip.src, sport, ip.dst, dport, ip.proto)"]
                }
            })
            .collect();
        let mut accepted = 0;
        for args in calls(&values) {
            let text = format!("packets | project x = {}({args})\n", row.name());
            let query = Query { name: "query.weir", text: &text };
            let Ok(compiled) = compile(&query, &Options::default()) else { continue };
            accepted += 1;
            let json = match Physical::new(&compiled.program, &[]).to_json(&signatures) {
                Err(Unwritable::Key) => continue,
                json => json.unwrap_or_else(|e| panic!("{text}{e:?}")),
            };
            let read = Physical::from_json(&json, &signatures);
            let read = read.unwrap_or_else(|e| panic!("{text}{e}"));
            assert_eq!(read.program(), compiled.program, "{text}");
        }
        assert!(accepted > 0, "no call of {} is accepted", row.name());
    }
}
