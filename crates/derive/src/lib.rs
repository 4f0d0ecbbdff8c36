//! Derives `weir_stream::FromRow`, which has the documentation.

#![forbid(unsafe_code)]

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Field, Fields, LitStr, parse_macro_input, parse_quote};

/// Reads rows as a struct whose fields have the names of columns, or say them by
/// `#[column("name")]`. The crate has to be known as `weir_stream`.
#[proc_macro_derive(FromRow, attributes(column))]
pub fn from_row(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    read(input).unwrap_or_else(Error::into_compile_error).into()
}

fn read(input: DeriveInput) -> Result<TokenStream, Error> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "rows are read as structs"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "fields need the names of columns"));
    };
    if fields.named.is_empty() {
        return Err(Error::new_spanned(&input.ident, "a row has a column at least"));
    }
    let (mut columns, mut cells) = (Vec::new(), Vec::new());
    let mut generics = input.generics;
    for field in &fields.named {
        let (name, ty, column) = (&field.ident, &field.ty, column(field)?);
        if !generics.params.is_empty() {
            let is_cell = parse_quote!(#ty: ::weir_stream::RowCell);
            generics.make_where_clause().predicates.push(is_cell);
        }
        columns.push(quote! { ::weir_stream::ColumnOf::named::<#ty>(#column) });
        cells.push(quote! { #name: cells.next_cell::<#ty>()? });
    }
    let name = &input.ident;
    let (parameters, arguments, conditions) = generics.split_for_impl();
    Ok(quote! {
        impl #parameters ::weir_stream::FromRow for #name #arguments #conditions {
            fn columns() -> ::std::vec::Vec<::weir_stream::ColumnOf> {
                ::std::vec![#(#columns),*]
            }

            fn read(cells: &mut ::weir_stream::Cells<'_>) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(#name { #(#cells),* })
            }
        }
    })
}

/// The name of a field's column.
fn column(field: &Field) -> Result<String, Error> {
    let mut said = field.attrs.iter().filter(|attribute| attribute.path().is_ident("column"));
    if let Some(attribute) = said.next() {
        if let Some(second) = said.next() {
            return Err(Error::new_spanned(second, "a field has one column"));
        }
        return Ok(attribute.parse_args::<LitStr>()?.value());
    }
    let name = field.ident.as_ref().expect("fields of a struct have names").to_string();
    Ok(name.strip_prefix("r#").unwrap_or(&name).to_owned())
}
