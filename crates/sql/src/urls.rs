//! Files as tables: captures, stored rows, and the formats that DataFusion reads.

use crate::capture::CaptureTable;
use crate::options::SqlOptions;
use crate::scan::{Ended, Packets};
use async_trait::async_trait;
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::{TableProvider, UrlTableFactory};
use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Endings of files that DataFusion reads.
const TABLES: &[&str] = &["parquet", "csv", "json", "arrow"];

/// The file in a folder of stored rows that keeps their columns.
const STORED: &str = "_columns";

/// Makes a table of the name of a file.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) options: SqlOptions,
    pub(crate) ended: Ended,
    pub(crate) others: Arc<DynamicListTableFactory>,
}

#[async_trait]
impl UrlTableFactory for Files {
    async fn try_new(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let path = Path::new(name);
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        let is_table = TABLES.iter().any(|known| ending.eq_ignore_ascii_case(known));
        let file = match std::fs::metadata(path) {
            Ok(file) => file,
            Err(e) if name.contains(['.', '/']) && !name.contains(['*', '?', '[']) => {
                return plan_err!("{name}: {e}");
            }
            Err(_) => return self.others.try_new(name).await,
        };
        if file.is_dir() && path.join(STORED).is_file() {
            return Ok(Some(self.stored(name)?));
        }
        if file.is_dir() || is_table {
            let table = self.others.try_new(name).await?;
            let wrong = || plan_datafusion_err!("{name}: there are no rows that can be read");
            return table.ok_or_else(wrong).map(Some);
        }
        let packets = Packets::new(&[name], &self.options, &self.ended)?;
        Ok(Some(Arc::new(CaptureTable::new(packets))))
    }
}

impl Files {
    /// The rows of an output that `--store` has stored. `date` and `hour` are texts: those of rows
    /// without a time are no date.
    fn stored(&self, folder: &str) -> Result<Arc<dyn TableProvider>> {
        let session = self.others.session_store().get_session().upgrade();
        let session = session.expect("the session asks");
        let state = session.read().as_any().downcast_ref::<SessionState>().cloned();
        let state = state.expect("the session is one of DataFusion");
        let format = ParquetFormat::default().with_options(state.default_table_options().parquet);
        let days = ["date", "hour"].map(|name| (name.to_owned(), DataType::Utf8));
        let options = ListingOptions::new(Arc::new(format))
            .with_file_extension(".parquet")
            .with_table_partition_cols(days.into());
        let url = ListingTableUrl::parse(format!("{}/", folder.trim_end_matches('/')))?;
        let config = ListingTableConfig::new(url).with_listing_options(options);
        // They stand in one file: no other has to be opened before its rows are read.
        let columns = File::open(Path::new(folder).join(STORED)).map_err(DataFusionError::from)?;
        let schema = weir_arrow::schema_of_file(&columns).map_err(DataFusionError::from)?;
        Ok(Arc::new(ListingTable::try_new(config.with_schema(schema))?))
    }
}
