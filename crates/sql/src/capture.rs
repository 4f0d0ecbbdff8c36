//! A capture as a table: a row for each packet, a column for each field of the catalogue.

use crate::condition::condition;
use crate::limits::TERMS_MAX;
use crate::scan::{PacketScan, Packets};
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;
use weir_arrow::schema_of;
use weir_packet::fields::FieldId;
use weir_plan::{Column, Schema, Type};
use weir_stream::packets;

/// The packets of captures.
#[derive(Debug)]
pub(crate) struct CaptureTable {
    packets: Packets,
    fields: Schema,
    schema: SchemaRef,
}

impl CaptureTable {
    pub(crate) fn new(packets: Packets) -> CaptureTable {
        let fields = Schema { columns: fields().collect() };
        CaptureTable { schema: schema_of(&fields, packets.addresses), packets, fields }
    }
}

/// The columns of a capture.
pub(crate) fn fields() -> impl Iterator<Item = Column> {
    FieldId::all().map(|field| Column::new(&field.name(), &Type::from(field.info().ty)))
}

#[async_trait]
impl TableProvider for CaptureTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let conditions: Option<Vec<String>> = filters
            .iter()
            .map(|filter| condition(filter, &self.fields).map(|condition| condition.text))
            .collect();
        let conditions = conditions.expect("only what was taken comes back");
        let mut stages: Vec<String> = Vec::new();
        if !conditions.is_empty() {
            stages.push(format!("where {}", conditions.join(" and ")));
        }
        let names = |c: &[usize]| {
            let names = c.iter().map(|&c| self.fields.columns[c].name.as_str());
            format!("project {}", names.collect::<Vec<_>>().join(", "))
        };
        stages.push(match projection.map(Vec::as_slice) {
            None => names(&(0..self.fields.columns.len()).collect::<Vec<_>>()),
            // Nothing but the number of packets is wanted, but rows have a column.
            Some([]) => "project is_there = true".to_owned(),
            Some(columns) => names(columns),
        });
        stages.extend(limit.map(|limit| format!("limit {limit}")));
        let stages = stages.join(" | ");
        let shown = format!("packets | {stages}");
        let scan = PacketScan::new(self.packets.clone(), packets().query(&stages).into(), &shown)?;
        Ok(Arc::new(match projection.map(Vec::as_slice) {
            Some([]) => scan.project(&[])?,
            _ => scan,
        }))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let mut terms = 0;
        let taken = |filter: &&Expr| match condition(filter, &self.fields) {
            Some(condition) if terms + condition.terms <= TERMS_MAX => {
                terms += condition.terms;
                TableProviderFilterPushDown::Exact
            }
            _ => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(taken).collect())
    }
}
