//! `alert` as the last stage of a pipeline: SQL computes what its rows say, and an operator of the
//! job tells when keys begin to fire and when they have ended.

use crate::expr::value;
use crate::node::columns;
use crate::term::ident;
use serde_json::{Value as Json, json};
use weir_plan::alert::{Peak, TextPart};
use weir_plan::{Alert, Expr, Schema};

/// An alert over the rows of a view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct JobAlert {
    /// A query for the columns of rows, then for what they say, then `$order`.
    pub(crate) sql: String,
    /// What the rule is called.
    pub(crate) rule: String,
    /// The settings of the operator, as JSON.
    pub(crate) plan: Json,
}

impl JobAlert {
    /// That of a plan over rows of a table; the watermark of these rows is ahead of their time by
    /// `lag_ns` at most.
    ///
    /// # Errors
    /// Names what a job does not do.
    pub(crate) fn new(
        plan: &Alert,
        input: &Schema,
        table: &str,
        lag_ns: i64,
    ) -> Result<JobAlert, String> {
        let mut select: Vec<String> = input.columns.iter().map(|c| ident(&c.name)).collect();
        let mut say = |e: &Expr, name: &str| -> Result<(), String> {
            select.push(format!("{} AS {}", value(e, input)?, ident(name)));
            Ok(())
        };
        let mut text = Vec::new();
        for (number, part) in plan.text.iter().enumerate() {
            text.push(match part {
                TextPart::Text(text) => json!({ "text": text }),
                TextPart::Value(e) => {
                    say(e, &format!("$said{number}"))?;
                    json!({ "type": e.ty.to_string() })
                }
            });
        }
        let compared = match &plan.compared {
            Some(c) => {
                say(&c.value, "$value")?;
                say(&c.threshold, "$threshold")?;
                let peak = match c.peak {
                    Peak::Most => "most",
                    Peak::Least => "least",
                };
                json!({ "field": c.field, "peak": peak })
            }
            None => Json::Null,
        };
        if let Some(community) = &plan.community {
            say(community, "$community")?;
        }
        let keys = plan.keys.iter().map(|(name, at)| json!({ "name": name, "column": at }));
        let rule = &plan.rule;
        let plan = json!({
            "rule": rule,
            "severity": plan.severity.name(),
            "text": text,
            "compared": compared,
            "community": plan.community.is_some(),
            "keys": keys.collect::<Vec<_>>(),
            "ts": plan.ts,
            "completeness": plan.completeness,
            "over_ns": plan.over_ns.to_string(),
            "hold_ns": plan.hold_ns.to_string(),
            "repeat_ns": plan.repeat_ns.map(|ns| ns.to_string()),
            "max_keys": plan.max_keys.to_string(),
            "tick_ns": plan.tick_ns().to_string(),
            "lag_ns": lag_ns.to_string(),
            "input": columns(input),
        });
        let sql = format!("SELECT {},\n  `$order`\nFROM {table}", select.join(",\n  "));
        Ok(JobAlert { sql, rule: rule.clone(), plan })
    }
}
