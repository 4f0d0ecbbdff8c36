//! The bytes of record batches.

use crate::limits::{ROW_GROUP_BYTES, ROW_GROUP_ROWS};
use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use std::error::Error;
use std::fs::File;
use std::io;

/// A way to write record batches. Its bytes gather in its memory.
pub trait Encoding: Sized {
    /// Whether rows can be read before the end is written.
    const IS_READ_BEFORE_ITS_END: bool;

    /// Writes what stands before all rows.
    ///
    /// # Errors
    /// Where it can't hold such columns.
    fn begin(schema: &SchemaRef) -> io::Result<Self>;

    /// Writes a record batch, or keeps it to be written with others.
    ///
    /// # Errors
    /// Where it can't be encoded.
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()>;

    /// Writes what is left, and what stands after all rows. Nothing is written after that.
    ///
    /// # Errors
    /// As for [`Encoding::write`].
    fn finish(&mut self) -> io::Result<()>;

    /// The bytes that were written and not taken out yet.
    fn bytes(&mut self) -> &mut Vec<u8>;
}

fn failed(e: impl Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(e)
}

/// The streaming format of Arrow's IPC.
pub struct Stream(StreamWriter<Vec<u8>>);

impl Encoding for Stream {
    const IS_READ_BEFORE_ITS_END: bool = true;

    fn begin(schema: &SchemaRef) -> io::Result<Stream> {
        StreamWriter::try_new(Vec::new(), schema).map(Stream).map_err(failed)
    }

    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.0.write(batch).map_err(failed)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish().map_err(failed)
    }

    fn bytes(&mut self) -> &mut Vec<u8> {
        self.0.get_mut()
    }
}

/// Parquet, compressed by Zstandard.
pub struct ParquetFile(ArrowWriter<Vec<u8>>);

impl ParquetFile {
    /// A file that has a Bloom filter for some columns, so that a reader who looks for one of their
    /// values skips row groups without it.
    ///
    /// # Errors
    /// As for [`Encoding::begin`].
    pub fn with_filters<'a>(
        schema: &SchemaRef,
        columns: impl Iterator<Item = &'a str>,
    ) -> io::Result<ParquetFile> {
        let enabled = |properties: WriterPropertiesBuilder, column: &str| {
            properties.set_column_bloom_filter_enabled(ColumnPath::from(column), true)
        };
        ParquetFile::by(schema, columns.fold(properties(), enabled))
    }

    fn by(schema: &SchemaRef, properties: WriterPropertiesBuilder) -> io::Result<ParquetFile> {
        let writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties.build()));
        writer.map(ParquetFile).map_err(failed)
    }

    /// Bytes of memory that it takes, about.
    pub fn memory(&self) -> usize {
        self.0.memory_size() + self.0.inner().len()
    }
}

/// Our choices for Parquet.
fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .set_created_by(concat!("weir version ", env!("CARGO_PKG_VERSION")).to_owned())
}

/// The schema of a Parquet file.
///
/// # Errors
/// Where it is none, or can't be read.
pub fn schema_of_file(file: &File) -> io::Result<SchemaRef> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file.try_clone()?).map_err(failed)?;
    Ok(reader.schema().clone())
}

impl Encoding for ParquetFile {
    const IS_READ_BEFORE_ITS_END: bool = false;

    fn begin(schema: &SchemaRef) -> io::Result<ParquetFile> {
        ParquetFile::by(schema, properties())
    }

    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.0.write(batch).map_err(failed)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish().map(drop).map_err(failed)
    }

    fn bytes(&mut self) -> &mut Vec<u8> {
        self.0.inner_mut()
    }
}
