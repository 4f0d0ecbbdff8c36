//! Rows that become one record batch.

use crate::cells::Cells;
use crate::limits::{ROWS_MAX, TEXT_BYTES_MAX};
use crate::schema::schema_of;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use weir_base::address::AddressForm;
use weir_engine::rows::Rows;

/// Gathers rows until they make a record batch.
#[derive(Debug)]
pub struct Gathering {
    schema: SchemaRef,
    columns: Vec<Cells>,
    rows: usize,
}

impl Gathering {
    /// Of rows with these columns.
    pub fn new(schema: &weir_plan::Schema, addresses: AddressForm) -> Gathering {
        let cells = |column: &weir_plan::Column| Cells::new(&column.ty, addresses);
        Gathering {
            schema: schema_of(schema, addresses),
            columns: schema.columns.iter().map(cells).collect(),
            rows: 0,
        }
    }

    /// The schema of its record batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows since the last record batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of memory that they take.
    pub fn memory(&self) -> usize {
        self.columns.iter().map(Cells::memory).sum()
    }

    /// Takes rows in.
    pub fn append(&mut self, rows: &Rows) {
        for (cells, column) in self.columns.iter_mut().zip(&rows.columns) {
            cells.append(column, rows.len, &rows.arena);
        }
        self.rows += rows.len;
    }

    /// Whether there are enough rows for a record batch.
    pub fn is_full(&self) -> bool {
        self.rows >= ROWS_MAX || self.columns.iter().any(|c| c.text_bytes() >= TEXT_BYTES_MAX)
    }

    /// The rows as a record batch; none are left.
    pub fn take(&mut self) -> RecordBatch {
        let columns = self.columns.iter_mut().map(Cells::take).collect();
        // Rows may have no columns, but there are so many.
        let options =
            RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .expect("the columns are those of the schema")
    }
}
