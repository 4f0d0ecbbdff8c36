//! Statements one after another.

use crate::answer::Answer;
use crate::capture::fields;
use crate::functions::{self, IP, MAC};
use crate::limits::{COLUMNS_LISTED, STACK_BYTES};
use crate::names::{self, ColumnNames, TableNames};
use crate::options::{SqlError, SqlOptions, SqlRun};
use crate::rows_of::{NAME, RowsOf};
use crate::scan::Ended;
use crate::urls::Files;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::DynamicFileCatalog;
use datafusion::common::{SchemaError, plan_err};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::prelude::{DataFrame, SQLOptions, SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use futures::StreamExt as _;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, Receiver, Sender};
use weir_arrow::{IP_EXTENSION, MAC_EXTENSION};
use weir_engine::rows::Sink;

/// A session: statements see the tables and views that those before them made.
pub struct SqlSession {
    runtime: Option<Runtime>,
    context: SessionContext,
    rows_of: RowsOf,
}

/// One statement, that has been read.
#[derive(Debug)]
pub struct SqlStatement(Statement);

impl fmt::Debug for SqlSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlSession").field("rows_of", &self.rows_of).finish_non_exhaustive()
    }
}

impl Drop for SqlSession {
    fn drop(&mut self) {
        // A thread that still reads a capture is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl SqlSession {
    /// A new session.
    ///
    /// # Errors
    /// If the system has no more threads.
    pub fn new(options: SqlOptions) -> io::Result<SqlSession> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.workers.max(1))
            .thread_name("sql")
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()?;
        let rows_of = RowsOf { options, ended: Ended::default() };
        let context = context(&rows_of).map_err(io::Error::other)?;
        Ok(SqlSession { runtime: Some(runtime), context, rows_of })
    }

    /// Reads statements, with `;` between them.
    ///
    /// # Errors
    /// If that is no SQL.
    pub fn read(&self, text: &str) -> Result<Vec<SqlStatement>, SqlError> {
        let parser = DFParserBuilder::new(text).build();
        let statements = parser.and_then(|mut parser| parser.parse_statements());
        let statements = statements.map_err(refused)?;
        Ok(statements.into_iter().map(SqlStatement).collect())
    }

    /// Answers a statement: `sink` is opened, and gets its rows. It is left alone where a statement
    /// has no rows, as `CREATE VIEW` has none. Ctrl-C ends it early, with an error.
    ///
    /// # Errors
    /// If the statement is wrong, a table can't be read, or rows can't be written.
    pub fn answer(&self, statement: SqlStatement, sink: &mut dyn Sink) -> Result<(), SqlError> {
        let runtime = self.runtime.as_ref().expect("it is there until the end");
        let (to, mut batches) = mpsc::channel(1);
        let planner = Planner { context: self.context.clone(), rows_of: self.rows_of.clone() };
        // Long statements nest deep: threads of the runtime have room for that.
        let task = runtime.spawn(planner.answer(statement, to));
        let answer = runtime.block_on(async {
            tokio::select! {
                answer = self.write(&mut batches, sink) => answer,
                _ = tokio::signal::ctrl_c() => Err(SqlError::Interrupted),
            }
        });
        drop(batches);
        task.abort();
        match runtime.block_on(task) {
            Err(e) if e.is_panic() => std::panic::resume_unwind(e.into_panic()),
            _ => answer,
        }
    }

    /// Writes the rows of record batches; the first message is their schema.
    async fn write(
        &self,
        from: &mut Receiver<Message>,
        sink: &mut dyn Sink,
    ) -> Result<(), SqlError> {
        let mut answer = None;
        let mut result = Ok(());
        while let Some(message) = from.recv().await {
            result = match (message, &mut answer) {
                (Ok(Part::Schema(schema)), _) => {
                    let (rows, output) = Answer::new(&schema, self.rows_of.options.is_shown);
                    sink.open(&[output]).map(|()| answer = Some(rows)).map_err(SqlError::Rows)
                }
                (Ok(Part::Rows(batch)), Some(answer)) => answer.write(&batch, sink),
                (Ok(Part::Rows(_)), None) => Ok(()),
                (Err(e), _) => Err(refused(e)),
            };
            if result.is_err() {
                break;
            }
        }
        // Rows before the error are written.
        let finished = if answer.is_some() { sink.finish() } else { Ok(()) };
        result.and(finished.map_err(SqlError::Rows))
    }

    /// The runs over captures that have come to their end since this was asked last. One that was
    /// left before, as by `LIMIT`, is none of them.
    pub fn ended(&self) -> Vec<SqlRun> {
        std::mem::take(&mut self.rows_of.ended.lock())
    }
}

/// A part of an answer, or the error that ends it.
type Message = Result<Part, DataFusionError>;

/// A part of an answer.
enum Part {
    /// The columns, where there are any.
    Schema(SchemaRef),
    Rows(RecordBatch),
}

/// Plans and runs statements.
struct Planner {
    context: SessionContext,
    rows_of: RowsOf,
}

impl Planner {
    /// Hands the answer on, for as long as somebody takes it.
    async fn answer(self, statement: SqlStatement, to: Sender<Message>) {
        let mut batches = match self.batches(statement).await {
            Ok(batches) => batches,
            Err(e) => return drop(to.send(Err(e)).await),
        };
        let schema = batches.schema();
        if !schema.fields().is_empty() && to.send(Ok(Part::Schema(schema))).await.is_err() {
            return;
        }
        while let Some(batch) = batches.next().await {
            if to.send(batch.map(Part::Rows)).await.is_err() {
                return;
            }
        }
    }

    async fn batches(
        &self,
        statement: SqlStatement,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        self.plan(statement).await?.execute_stream().await
    }

    async fn plan(
        &self,
        SqlStatement(mut statement): SqlStatement,
    ) -> Result<DataFrame, DataFusionError> {
        let tables = names::tables(&mut statement);
        let columns = self.columns(&statement, &tables).await?;
        names::resolve(&mut statement, &tables, &columns);
        let plan = self.context.state().statement_to_plan(statement).await?;
        let is_external = matches!(&plan, LogicalPlan::Ddl(DdlStatement::CreateExternalTable(_)));
        if is_external {
            return plan_err!("a file is a table by its name, as in from 'x.parquet'");
        }
        let allowed = SQLOptions::new().with_allow_dml(false).with_allow_statements(false);
        if allowed.verify_plan(&plan).is_err() {
            let where_to = "rows are written by -o, and `weir run --store` stores them";
            return plan_err!("a statement here changes no file and no setting: {where_to}");
        }
        self.context.execute_logical_plan(plan).await
    }

    /// The columns that a statement may mean: of its tables, and the fields of packets.
    async fn columns(
        &self,
        statement: &Statement,
        tables: &TableNames,
    ) -> Result<ColumnNames, DataFusionError> {
        let mut schemas = Vec::new();
        for table in self.context.state().resolve_table_references(statement)? {
            // Planning reports a table that does not exist.
            if let Ok(table) = self.context.table_provider(table).await {
                schemas.push(table.schema());
            }
        }
        for call in &tables.calls {
            let call: Vec<&str> = call.iter().map(String::as_str).collect();
            schemas.extend(self.rows_of.table(&call).map(|table| table.schema()).ok());
        }
        let mut columns = ColumnNames::default();
        // Mistakes in names of fields are missed as columns.
        columns.all.extend(fields().map(|column| column.name));
        columns.all.extend(tables.dotted.iter().cloned());
        let all = || schemas.iter().flat_map(|schema| schema.fields());
        for field in all() {
            columns.all.insert(field.name().clone());
            let function = match field.extension_type_name() {
                Some(IP_EXTENSION) => IP,
                Some(MAC_EXTENSION) => MAC,
                _ => continue,
            };
            columns.addresses.insert(field.name().clone(), function);
        }
        for text in all().filter(|field| field.extension_type_name().is_none()) {
            columns.addresses.remove(text.name());
        }
        Ok(columns)
    }
}

fn context(rows_of: &RowsOf) -> Result<SessionContext, DataFusionError> {
    let options = &rows_of.options;
    let mut config = SessionConfig::new()
        .with_target_partitions(options.workers.max(1))
        .with_information_schema(true);
    config.options_mut().explain.physical_plan_only = true;
    let parquet = &mut config.options_mut().execution.parquet;
    parquet.pushdown_filters = true;
    parquet.schema_force_view_types = false;
    // It says which columns are addresses.
    parquet.skip_metadata = false;
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(memory) = options.memory {
        runtime = runtime.with_memory_limit(memory, 1.0);
    }
    let plain = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
    let others = Arc::new(DynamicListTableFactory::default());
    let files = Files {
        options: options.clone(),
        ended: Arc::clone(&rows_of.ended),
        others: Arc::clone(&others),
    };
    let known = Arc::clone(plain.state().catalog_list());
    let catalog = Arc::new(DynamicFileCatalog::new(known, Arc::new(files)));
    let state = plain.into_state_builder().with_catalog_list(catalog).build();
    let context = SessionContext::new_with_state(state);
    others.session_store().with_state(context.state_weak_ref());
    functions::all().into_iter().for_each(|f| context.register_udf(f));
    context.register_udtf(NAME, Arc::new(rows_of.clone()));
    Ok(context)
}

/// Why a statement has no answer, in the words of DataFusion or of Weir.
fn refused(e: DataFusionError) -> SqlError {
    let root = e.find_root();
    let text = match root {
        DataFusionError::SchemaError(e, _) => schema_mistake(e),
        DataFusionError::Plan(text) | DataFusionError::Execution(text) => text.clone(),
        DataFusionError::External(e) => e.to_string(),
        DataFusionError::SQL(e, _) => e.to_string(),
        _ => root.to_string(),
    };
    // The names of its catalogue and its schema say nothing here.
    let table = text.strip_prefix("table 'datafusion.");
    let table = table.and_then(|text| text.strip_suffix("' not found"));
    let table = table.map(|table| table.strip_prefix("public.").unwrap_or(table));
    SqlError::Statement(match table {
        Some(table) => format!("there is no table `{table}`; a file is one, as in from 'x.pcap'"),
        None => text,
    })
}

/// A column that is not there, and the one that may have been meant: captures have too many to list
/// them all.
fn schema_mistake(e: &SchemaError) -> String {
    let SchemaError::FieldNotFound { field, valid_fields } = e else { return e.to_string() };
    let names: Vec<&str> = valid_fields.iter().map(|field| field.name.as_str()).collect();
    let help = match weir_lang::closest(&field.name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "there is no table".to_owned(),
        None if names.len() > COLUMNS_LISTED => "`describe 'x.pcap'` lists the columns".to_owned(),
        None => format!("there are {}", names.join(", ")),
    };
    format!("there is no column `{}`; {help}", field.name)
}
