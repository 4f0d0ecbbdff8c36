//! The schema of record batches, from that of rows.

use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::collections::HashMap;
use std::sync::Arc;
use weir_base::address::AddressForm;
use weir_plan::{Column, Type};

/// The name of the extension type of addresses of IP.
pub const IP_EXTENSION: &str = "weir.ip";

/// The name of the extension type of link addresses.
pub const MAC_EXTENSION: &str = "weir.mac";

/// The schema of record batches of rows with these columns. Every column may be null.
pub fn schema_of(schema: &weir_plan::Schema, addresses: AddressForm) -> SchemaRef {
    let fields: Vec<Field> = schema.columns.iter().map(|c| field(c, addresses)).collect();
    Arc::new(Schema::new(fields))
}

fn field(column: &Column, addresses: AddressForm) -> Field {
    let extension = match (&column.ty, addresses) {
        (Type::Ip, AddressForm::Bytes) => Some(IP_EXTENSION),
        (Type::Mac, AddressForm::Bytes) => Some(MAC_EXTENSION),
        _ => None,
    };
    let field = Field::new(&column.name, data_type(&column.ty, addresses), true);
    let Some(name) = extension else { return field };
    field.with_metadata(HashMap::from([(EXTENSION_TYPE_NAME_KEY.to_owned(), name.to_owned())]))
}

fn data_type(ty: &Type, addresses: AddressForm) -> DataType {
    match ty {
        Type::Bool => DataType::Boolean,
        Type::Int => DataType::Int64,
        Type::Float => DataType::Float64,
        Type::Str => DataType::Utf8,
        Type::Bytes => DataType::Binary,
        Type::Ip | Type::Mac if addresses == AddressForm::Text => DataType::Utf8,
        Type::Ip => DataType::FixedSizeBinary(16),
        Type::Mac => DataType::FixedSizeBinary(6),
        Type::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        Type::Duration => DataType::Duration(TimeUnit::Nanosecond),
        Type::Net | Type::Tuple(_) => unreachable!("no column has the type {ty}"),
    }
}
