//! The language and the check of plans agree about aggregates: both read one table.

use weir_lang::{Options, Query, compile};
use weir_plan::aggregates::{AGGREGATES, BuiltinAggregate};
use weir_plan::functions::{Role, Signatures};
use weir_plan::physical::Physical;

/// A value of each type, none of them constant, and a tuple.
const VALUES: [&str; 10] = [
    "tcp",
    "len",
    "float(len)",
    "string(len)",
    "bytes(string(len))",
    "ip.src",
    "eth.src",
    "ts",
    "duration_ns(len)",
    "(ip.src, sport)",
];

/// Constants that some argument takes.
const CONSTANTS: [&str; 3] = ["7", "0.5", "1ms"];

/// All arguments of one way to call an aggregate, each of which may be anything of its kind.
fn arguments(row: &BuiltinAggregate) -> Vec<String> {
    row.takes.iter().fold(vec![String::new()], |calls, parameter| {
        let values = if parameter.role == Role::Constant { &CONSTANTS[..] } else { &VALUES };
        let longer = |call: &String| {
            let comma = if call.is_empty() { "" } else { ", " };
            values.iter().map(|value| format!("{call}{comma}{value}")).collect::<Vec<_>>()
        };
        calls.iter().flat_map(longer).collect()
    })
}

#[test]
fn an_aggregate_that_is_accepted_is_sound_in_the_plan() {
    let signatures = Signatures::default();
    for row in AGGREGATES {
        let mut accepted = 0;
        for args in arguments(row) {
            let window = if row.name() == "end_reason" { "session 1s" } else { "every 1s" };
            let text = format!("packets | summarize x = {}({args}) {window}\n", row.name());
            let query = Query { name: "query.weir", text: &text };
            let Ok(compiled) = compile(&query, &Options::default()) else { continue };
            accepted += 1;
            let json = Physical::new(&compiled.program, &[]).to_json(&signatures);
            let json = json.unwrap_or_else(|e| panic!("{text}{e:?}"));
            let read = Physical::from_json(&json, &signatures);
            let read = read.unwrap_or_else(|e| panic!("{text}{e}"));
            assert_eq!(read.program(), compiled.program, "{text}");
        }
        assert!(accepted > 0, "no call of {} is accepted", row.call);
    }
}
