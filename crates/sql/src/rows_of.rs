//! `weir('QUERY', 'CAPTURE')`: the rows that a query makes of captures, as a table.

use crate::options::SqlOptions;
use crate::scan::{Ended, PacketScan, Packets};
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::scalar::ScalarValue;
use std::path::Path;
use std::sync::Arc;
use weir_engine::rows::Output;
use weir_lang::{Options, Query};
use weir_stream::{Stream, StreamProgram};

/// The name of the function.
pub(crate) const NAME: &str = "weir";

/// The function.
#[derive(Clone, Debug)]
pub(crate) struct RowsOf {
    pub(crate) options: SqlOptions,
    pub(crate) ended: Ended,
}

/// The rows of a query.
#[derive(Debug)]
struct RowsTable(PacketScan);

impl TableFunctionImpl for RowsOf {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let texts: Option<Vec<&str>> = args.exprs().iter().map(text).collect();
        self.table(&texts.unwrap_or_default())
    }
}

impl RowsOf {
    /// The rows of a query over captures. Texts such as `interval=1s` set its parameters.
    pub(crate) fn table(&self, texts: &[&str]) -> Result<Arc<dyn TableProvider>> {
        let Some((query, rest)) = texts.split_first() else {
            return plan_err!("{NAME} takes texts: {NAME}('packets | …', 'x.pcap')");
        };
        let is_param = |text: &&&str| text.contains('=') && !Path::new(text).exists();
        let captures: Vec<&str> = rest.iter().filter(|text| !is_param(text)).copied().collect();
        if captures.is_empty() {
            return plan_err!("{NAME} reads no capture: {NAME}('packets | …', 'x.pcap')");
        }
        let packets = Packets::new(&captures, &self.options, &self.ended)?;
        let mut program = StreamProgram::from(self.stream(query)?);
        for (name, value) in rest.iter().filter(is_param).filter_map(|p| p.split_once('=')) {
            program = program.param(name.trim(), value.trim());
        }
        Ok(Arc::new(RowsTable(PacketScan::new(packets, program, query)?)))
    }

    /// A query by its name in the library, with `.OUTPUT` where it has several, by the name of a
    /// file that ends in `.weir`, or as a text.
    fn stream(&self, query: &str) -> Result<Stream> {
        let (text, output) = match query.rsplit_once('.') {
            _ if query.contains('|') => (Some(query.to_owned()), None),
            Some((_, "weir")) => {
                let read = std::fs::read_to_string(query);
                (Some(read.map_err(|e| plan_datafusion_err!("{query}: {e}"))?), None)
            }
            Some((name, output)) => ((self.options.library)(name), Some(output)),
            None => ((self.options.library)(query), None),
        };
        let text = text.unwrap_or_else(|| query.to_owned());
        let outputs =
            match weir_lang::compile(&Query { name: "query", text: &text }, &Options::default()) {
                Ok(compiled) => Output::of(&compiled.program),
                // Mistakes are drawn when the stream is compiled.
                Err(_) => return Ok(Stream::of_query(&text)),
            };
        let names: Vec<&str> = outputs.iter().filter_map(|o| o.name.as_deref()).collect();
        match output.or(names.first().copied().filter(|_| outputs.len() == 1)) {
            Some(output) if names.contains(&output) => Ok(Stream::of_named(&text, output)),
            _ if outputs.len() == 1 => Ok(Stream::of_query(&text)),
            _ if names.is_empty() => {
                plan_err!("the query prints rows of several pipelines: name one")
            }
            _ => plan_err!(
                "{query} has several outputs: {}",
                names
                    .iter()
                    .map(|name| { format!("{}.{name}", query.split('.').next().unwrap_or(query)) })
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        }
    }
}

fn text(argument: &Expr) -> Option<&str> {
    match argument {
        Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
            _,
        ) => Some(text),
        _ => None,
    }
}

#[async_trait]
impl TableProvider for RowsTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match projection {
            Some(projection) => Ok(Arc::new(self.0.project(projection)?)),
            None => Ok(Arc::new(self.0.clone())),
        }
    }
}
