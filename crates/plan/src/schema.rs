//! The columns of rows.

use crate::types::Type;

/// The columns of rows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Schema {
    /// The columns, in output order; names are unique.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Name, such as `bytes` or `ip.src`.
    pub name: String,
    /// Type; never a tuple or net.
    pub ty: Type,
}

impl Column {
    /// A column of this name and type.
    pub fn new(name: &str, ty: &Type) -> Column {
        Column { name: name.to_owned(), ty: ty.clone() }
    }
}

impl Schema {
    /// The position of the column called `name`.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// Appends a column and returns its position; a column of the same name is replaced in place.
    pub fn put(&mut self, name: &str, ty: Type) -> usize {
        match self.position(name) {
            Some(i) => {
                self.columns[i].ty = ty;
                i
            }
            None => {
                self.columns.push(Column { name: name.to_owned(), ty });
                self.columns.len() - 1
            }
        }
    }
}
