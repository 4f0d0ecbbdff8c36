//! `weir fields`: the catalogue of what a query can ask of a packet, or of a flow record.

use crate::args::FieldsArgs;
use crate::exit::{Status, usage_try};
use crate::term::Term;
use crate::{output, remedy};
use weir_packet::fields::{FIELDS, Field, KEYS, Key, RECORD_FIELDS, record_field_by_name};
use weir_packet::repeated::REPEATED;
use weir_plan::Type;

/// Prints the fields, keys and parts whose name or description contains the pattern.
pub(crate) fn run(args: &FieldsArgs, term: &Term) -> anyhow::Result<Status> {
    let pattern = args.pattern.as_deref().unwrap_or("").to_lowercase();
    let all: Vec<[String; 3]> = match args.flows {
        true => of_records().collect(),
        false => catalogue().collect(),
    };
    let rows: Vec<[String; 3]> = all
        .into_iter()
        .filter(|[name, _, doc]| name.contains(&pattern) || doc.to_lowercase().contains(&pattern))
        .collect();
    if rows.is_empty() {
        let message = format!("no field's name or description contains `{pattern}`");
        let parts = FIELDS.iter().flat_map(|field| field.name.split('.').chain([field.name]));
        let near = weir_lang::closest(&pattern, parts);
        let line = near.and_then(|near| remedy::with_word(&pattern, near));
        return Err(usage_try(message, line.or_else(|| Some(remedy::line(["fields"])))));
    }
    output::print(["name", "type", "doc"], &rows, args.output, term)?;
    Ok(Status::Ok)
}

/// The fields of flow records, and the keys that they have.
fn of_records() -> impl Iterator<Item = [String; 3]> {
    let fields = RECORD_FIELDS.iter().map(field);
    let has = |k: &&Key| k.fields.iter().all(|f| record_field_by_name(f.info().name).is_some());
    fields.chain(KEYS.iter().filter(has).map(key))
}

fn field(f: &Field) -> [String; 3] {
    [f.name.to_owned(), Type::from(f.ty).to_string(), f.doc.to_owned()]
}

fn key(k: &Key) -> [String; 3] {
    let parts: Vec<_> = k.fields.iter().map(|id| id.info().name).collect();
    [k.name.to_owned(), "key".to_owned(), format!("{} Parts: {}.", k.doc, parts.join(", "))]
}

fn catalogue() -> impl Iterator<Item = [String; 3]> {
    let (fields, keys) = (FIELDS.iter().map(field), KEYS.iter().map(key));
    let parts = REPEATED.iter().map(|info| {
        let columns: Vec<_> =
            info.parts.iter().map(|part| format!("{}.{}", info.prefix(), part.name)).collect();
        let doc = format!("{} For `each`; columns: {}.", info.doc, columns.join(", "));
        [info.name.to_owned(), "part".to_owned(), doc]
    });
    fields.chain(keys).chain(parts)
}
