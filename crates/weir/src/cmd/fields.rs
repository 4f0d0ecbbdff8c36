//! `weir fields`: the catalogue of what a query can ask of a packet.

use crate::args::FieldsArgs;
use crate::exit::{Status, usage};
use crate::output;
use crate::term::Term;
use weir_packet::fields::{FIELDS, KEYS};
use weir_packet::repeated::REPEATED;
use weir_plan::Type;

/// Prints the fields, keys and parts whose name or description contains the pattern.
pub(crate) fn run(args: &FieldsArgs, term: &Term) -> anyhow::Result<Status> {
    let pattern = args.pattern.as_deref().unwrap_or("").to_lowercase();
    let rows: Vec<[String; 3]> = catalogue()
        .filter(|[name, _, doc]| name.contains(&pattern) || doc.to_lowercase().contains(&pattern))
        .collect();
    if rows.is_empty() {
        return Err(usage(format!("no field's name or description contains `{pattern}`")));
    }
    output::print(["name", "type", "doc"], &rows, args.output, term)?;
    Ok(Status::Ok)
}

fn catalogue() -> impl Iterator<Item = [String; 3]> {
    let fields =
        FIELDS.iter().map(|f| [f.name.to_owned(), Type::from(f.ty).to_string(), f.doc.to_owned()]);
    let keys = KEYS.iter().map(|k| {
        let parts: Vec<_> = k.fields.iter().map(|id| id.info().name).collect();
        [k.name.to_owned(), "key".to_owned(), format!("{} Parts: {}.", k.doc, parts.join(", "))]
    });
    let parts = REPEATED.iter().map(|info| {
        let columns: Vec<_> =
            info.parts.iter().map(|part| format!("{}.{}", info.prefix(), part.name)).collect();
        let doc = format!("{} For `each`; columns: {}.", info.doc, columns.join(", "));
        [info.name.to_owned(), "part".to_owned(), doc]
    });
    fields.chain(keys).chain(parts)
}
