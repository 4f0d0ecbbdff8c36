//! The form of a program's rows in JSON, as a JSON Schema (draft 2020-12).

use crate::json::{PIPELINE, pipelines};
use crate::options::TimeFormat;
use serde_json::{Map, Value, json};
use weir_engine::rows::Output;
use weir_plan::Type;

/// The version of JSON Schema.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of the rows that these outputs have in JSON. With several outputs, rows are of any
/// of them.
pub fn json_schema(outputs: &[Output], time: TimeFormat) -> Value {
    let mut all: Vec<Value> = outputs
        .iter()
        .zip(pipelines(outputs))
        .map(|(output, pipeline)| of_output(output, pipeline.as_deref(), time))
        .collect();
    let mut schema = match all.len() {
        1 => all.remove(0),
        _ => json!({ "oneOf": all }),
    };
    schema["$schema"] = DRAFT.into();
    schema
}

fn of_output(output: &Output, pipeline: Option<&str>, time: TimeFormat) -> Value {
    let mut properties = Map::new();
    if let Some(pipeline) = pipeline {
        properties.insert(PIPELINE.to_owned(), json!({ "const": pipeline }));
    }
    for column in &output.schema.columns {
        properties.insert(column.name.clone(), of_type(&column.ty, time));
    }
    let names: Vec<String> = pipeline
        .map(|_| PIPELINE.to_owned())
        .into_iter()
        .chain(output.schema.columns.iter().map(|column| column.name.clone()))
        .collect();
    let keys: Vec<&str> =
        output.keys.iter().map(|&at| output.schema.columns[at].name.as_str()).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": false,
        "x-weir-key": keys,
    })
}

/// A value of this type, or `null` where it is absent.
fn of_type(ty: &Type, time: TimeFormat) -> Value {
    let int = |least: i64, most: i64| json!({ "minimum": least, "maximum": most });
    let (name, rest) = match ty {
        Type::Bool => ("boolean", json!({})),
        Type::Int => ("integer", int(i64::MIN, i64::MAX)),
        Type::Float => ("number", json!({})),
        Type::Duration => ("number", json!({ "description": "seconds" })),
        Type::Time => match time {
            TimeFormat::Rfc3339 | TimeFormat::Local(_) => {
                ("string", json!({ "format": "date-time" }))
            }
            TimeFormat::Epoch => ("number", json!({ "description": "seconds since 1970" })),
            TimeFormat::EpochNs => ("integer", json!({ "description": "nanoseconds since 1970" })),
        },
        Type::Str => ("string", json!({})),
        Type::Bytes => ("string", json!({ "pattern": "^([0-9a-f]{2})*$" })),
        Type::Mac => ("string", json!({ "pattern": "^([0-9a-f]{2}:){5}[0-9a-f]{2}$" })),
        Type::Ip => (
            "string",
            json!({ "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }, { "type": "null" }] }),
        ),
        // No column has them.
        Type::Net | Type::Tuple(_) => ("string", json!({})),
    };
    let mut schema = rest;
    schema["type"] = json!([name, "null"]);
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{every_type, output};

    #[test]
    fn every_type_has_a_schema() {
        let (mut output, _) = every_type();
        output.keys = vec![5];
        insta::assert_json_snapshot!(json_schema(&[output], TimeFormat::Rfc3339));
    }

    #[test]
    fn several_outputs_are_told_apart() {
        let one = output(Some("a"), &[("n", Type::Int)]);
        let two = output(None, &[("ts", Type::Time)]);
        let schema = json_schema(&[one, two], TimeFormat::EpochNs);
        assert_eq!(schema["oneOf"][0]["properties"]["_pipeline"]["const"], "a");
        assert_eq!(schema["oneOf"][1]["properties"]["_pipeline"]["const"], "2");
        assert_eq!(schema["oneOf"][1]["properties"]["ts"]["type"][0], "integer");
    }
}
