//! Names with dots: `ip.src` is a column here, and no column `src` of a table `ip`.

use crate::functions::IP;
use crate::rows_of;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, Query, Statement as SqlStatement, TableFactor,
    Value, Visit, VisitMut, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The statement of SQL that another explains, or is.
fn inner(statement: &mut Statement) -> Option<&mut SqlStatement> {
    match statement {
        Statement::Statement(statement) => Some(statement),
        Statement::Explain(explain) => inner(&mut explain.statement),
        _ => None,
    }
}

/// The columns of tables that a statement reads.
#[derive(Default, Debug)]
pub(crate) struct ColumnNames {
    /// All of them.
    pub(crate) all: BTreeSet<String>,
    /// The columns that are addresses as bytes.
    pub(crate) addresses: BTreeSet<String>,
}

/// Takes names whose parts make the name of a column for that column, and texts that are compared
/// with addresses for addresses.
pub(crate) fn resolve(statement: &mut Statement, tables: &TableNames, columns: &ColumnNames) {
    if let Some(statement) = inner(statement) {
        let _ = statement.visit(&mut Resolving { tables, columns });
    }
}

/// The tables of a statement, as it names them.
#[derive(Default, Debug)]
pub(crate) struct TableNames {
    /// The texts that calls of `weir(…)` are given.
    pub(crate) calls: Vec<Vec<String>>,
    /// The names that tables have in the statement.
    names: BTreeSet<String>,
}

/// The tables of a statement.
pub(crate) fn tables(statement: &mut Statement) -> TableNames {
    let mut tables = TableNames::default();
    if let Some(statement) = inner(statement) {
        let _ = Visit::visit(statement, &mut tables);
    }
    tables
}

struct Resolving<'a> {
    tables: &'a TableNames,
    columns: &'a ColumnNames,
}

impl VisitorMut for Resolving<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, e: &mut Expr) -> ControlFlow<()> {
        match e {
            Expr::CompoundIdentifier(_) => self.join(e),
            Expr::BinaryOp { left, right, .. } if self.is_address(left) => read_address(right),
            Expr::BinaryOp { left, right, .. } if self.is_address(right) => read_address(left),
            Expr::InList { expr, list, .. } if self.is_address(expr) => {
                list.iter_mut().for_each(read_address);
            }
            Expr::Between { expr, low, high, .. } if self.is_address(expr) => {
                read_address(low);
                read_address(high);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Resolving<'_> {
    /// Whether an expression, whose parts are resolved, is a column of addresses as bytes.
    fn is_address(&self, e: &Expr) -> bool {
        let name = match e {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        name.is_some_and(|name| self.columns.addresses.contains(&name.value))
    }

    /// Makes one column of the parts of its name.
    fn join(&self, e: &mut Expr) {
        let Expr::CompoundIdentifier(parts) = e else { return };
        // A part in quotes is a name of its own.
        let is_plain = parts.iter().all(|part| part.quote_style.is_none());
        let lower: Vec<String> = parts.iter().map(|part| part.value.to_lowercase()).collect();
        let is_column = |from: &usize| self.columns.all.contains(&lower[*from..].join("."));
        let from = (0..parts.len() - 1).filter(|_| is_plain).find(is_column);
        // A name like those of columns, which is none, is to be missed as a column.
        let family = format!("{}.", lower[0]);
        let is_like_columns = || {
            let mut after = self.columns.all.range(family.clone()..);
            is_plain
                && !self.tables.names.contains(&lower[0])
                && after.next().is_some_and(|name| name.starts_with(&family))
        };
        let from = from.or_else(|| is_like_columns().then_some(0));
        if let Some(from) = from {
            let mut column: Vec<Ident> = parts[..from].to_vec();
            column.push(Ident::with_quote('"', lower[from..].join(".")));
            *e = match <[Ident; 1]>::try_from(column) {
                Ok([alone]) => Expr::Identifier(alone),
                Err(several) => Expr::CompoundIdentifier(several),
            };
        }
    }
}

/// Makes an address of a text.
fn read_address(e: &mut Expr) {
    let Expr::Value(value) = &*e else { return };
    let Value::SingleQuotedString(_) = &value.value else { return };
    let call = format!("{IP}({value})");
    let parser = Parser::new(&GenericDialect {}).try_with_sql(&call);
    if let Ok(call) = parser.and_then(|mut parser| parser.parse_expr()) {
        *e = call;
    }
}

impl Visitor for TableNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let named = query.with.iter().flat_map(|with| &with.cte_tables);
        self.names.extend(named.map(|table| table.alias.name.value.to_lowercase()));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let alias = match factor {
            TableFactor::Table { name, args, alias, .. } => {
                self.names.insert(name.to_string().to_lowercase());
                if let Some(args) = args
                    && name.to_string().eq_ignore_ascii_case(rows_of::NAME)
                {
                    self.calls.push(args.args.iter().filter_map(text).collect());
                }
                alias
            }
            TableFactor::Derived { alias, .. } => alias,
            _ => &None,
        };
        self.names.extend(alias.iter().map(|alias| alias.name.value.to_lowercase()));
        ControlFlow::Continue(())
    }
}

fn text(argument: &FunctionArg) -> Option<String> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}
