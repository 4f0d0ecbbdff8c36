//! Names with dots: `ip.src` is a column here, and no column `src` of a table `ip`.

use crate::rows_of;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, Query, SelectItem, SetExpr,
    Statement as SqlStatement, TableFactor, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use std::collections::{BTreeMap, BTreeSet};
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
    /// The columns that are addresses as bytes in every table that has them, and the function that
    /// makes such an address of a text.
    pub(crate) addresses: BTreeMap<String, &'static str>,
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
    /// Names with dots that it gives to columns.
    pub(crate) dotted: BTreeSet<String>,
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
            Expr::BinaryOp { left, op, right } => {
                let Some(mirrored) = mirrored(op) else { return ControlFlow::Continue(()) };
                // DataFusion takes `1 = a and a = 1` for two values of `a`, where what is on the
                // left becomes a constant only later.
                if is_column(right) && !is_column(left) {
                    *op = mirrored;
                    std::mem::swap(left, right);
                }
                self.read(left, [&mut **right]);
            }
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.read(left, [&mut **right]);
            }
            Expr::InList { expr, list, .. } => self.read(expr, list),
            Expr::Between { expr, low, high, .. } => {
                self.read(expr, [&mut **low, &mut **high]);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Resolving<'_> {
    /// Makes addresses of texts that are compared with a column of addresses as bytes.
    fn read<'e>(&self, column: &Expr, texts: impl IntoIterator<Item = &'e mut Expr>) {
        let name = match column {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        if let Some(function) = name.and_then(|name| self.columns.addresses.get(&name.value)) {
            texts.into_iter().for_each(|text| read_address(function, text));
        }
    }

    /// Makes one column of the parts of its name.
    fn join(&self, e: &mut Expr) {
        let Expr::CompoundIdentifier(parts) = e else { return };
        // A part in quotes is a name of its own.
        if parts.iter().any(|part| part.quote_style.is_some()) {
            return;
        }
        let given: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
        let lower = given.join(".").to_lowercase();
        let lower: Vec<&str> = lower.split('.').collect();
        let is_table = self.tables.names.contains(lower[0]);
        // The table has a column of that name itself, or else the statement is wrong.
        let first = usize::from(is_table);
        let starts = || first..parts.len().saturating_sub(1);
        let found =
            |names: &[&str], from: &usize| self.columns.all.contains(&names[*from..].join("."));
        let family = format!("{}.", lower[0]);
        let is_like_columns = || {
            let mut after = self.columns.all.range(family.clone()..);
            !is_table && after.next().is_some_and(|name| name.starts_with(&family))
        };
        let column = if let Some(from) = starts().find(|from| found(&given, from)) {
            Some((from, given[from..].join(".")))
        } else if let Some(from) = starts().find(|from| found(&lower, from)) {
            Some((from, lower[from..].join(".")))
        } else {
            // A name like those of columns, which is none, is to be missed as a column.
            is_like_columns().then(|| (0, lower.join(".")))
        };
        if let Some((from, name)) = column {
            let mut column: Vec<Ident> = parts[..from].to_vec();
            column.push(Ident::with_quote('"', name));
            *e = match <[Ident; 1]>::try_from(column) {
                Ok([alone]) => Expr::Identifier(alone),
                Err(several) => Expr::CompoundIdentifier(several),
            };
        }
    }
}

fn is_column(e: &Expr) -> bool {
    matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// The comparison that says the same with its sides swapped; none for what is no comparison.
fn mirrored(op: &BinaryOperator) -> Option<BinaryOperator> {
    Some(match op {
        BinaryOperator::Eq | BinaryOperator::NotEq => op.clone(),
        BinaryOperator::Lt => BinaryOperator::Gt,
        BinaryOperator::LtEq => BinaryOperator::GtEq,
        BinaryOperator::Gt => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::LtEq,
        _ => return None,
    })
}

/// Makes an address of a text, by a function.
fn read_address(function: &str, e: &mut Expr) {
    let Expr::Value(value) = &*e else { return };
    let Value::SingleQuotedString(_) = &value.value else { return };
    let call = format!("{function}({value})");
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
        if let SetExpr::Select(select) = &*query.body {
            let given = select.projection.iter().filter_map(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => Some(&alias.value),
                _ => None,
            });
            self.dotted.extend(given.filter(|name| name.contains('.')).cloned());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let alias = match factor {
            TableFactor::Table { name, args, alias, .. } => {
                self.names.insert(name.to_string().to_lowercase());
                if let Some(args) = args
                    && name.to_string() == rows_of::NAME
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
