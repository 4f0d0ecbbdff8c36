//! Sets and tables from files.

use super::Checker;
use super::words::{a, say};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::files::{self, Fault};
use crate::names::Scope;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree};
use std::rc::Rc;
use std::sync::Arc;
use weir_plan::table::{SharedTable, Table};
use weir_plan::{Expr, ExprKind, Func, Member, Type, Value};

/// The arguments of `file(…)`, if that is what an expression is.
pub(super) fn file_call(e: &TreeExpr) -> Option<&[TreeExpr]> {
    match e.node.unbracketed() {
        Tree::Call { func, args } if func.node == "file" => Some(args),
        _ => None,
    }
}

impl<'t> Checker<'t> {
    /// The members of `file("path")`, for a value of the type.
    pub(super) fn set_file(
        &mut self,
        scope: &Scope,
        args: &[TreeExpr],
        span: Span,
        ty: &Type,
    ) -> Option<Vec<Member>> {
        let [path] = args else {
            self.wrong_arity("file", 1, args.len(), span);
            return None;
        };
        let file = self.text_constant(scope, path, "the name of a file")?;
        if !matches!(ty, Type::Ip | Type::Int | Type::Str | Type::Mac) {
            let message = format!("a file holds ips, ints, strings or macs, not {}", a(ty));
            self.report(Diagnostic::new(Code::BadSet, span, message));
            return None;
        }
        let bytes = self.read_file(&file, path.span)?;
        match files::set(&bytes, ty) {
            Ok(members) => Some(members),
            Err(fault) => {
                self.bad_file(&file, path.span, fault);
                None
            }
        }
    }

    /// `lookup("file.csv", key, "column")`.
    pub(super) fn lookup(&mut self, scope: &Scope, args: &[TreeExpr], span: Span) -> Option<Expr> {
        let [path, key, column] = args else {
            self.wrong_arity("lookup", 3, args.len(), span);
            return None;
        };
        let file = self.text_constant(scope, path, "the name of a file");
        let checked = self.expr(scope, key);
        let name = self.text_constant(scope, column, "the name of a column");
        let (file, checked, name) = (file?, checked?, name?);
        if !matches!(checked.ty, Type::Ip | Type::Int | Type::Str | Type::Mac) {
            self.wrong_argument(
                "lookup",
                "an ip, an int, a string or a mac as its key",
                &checked,
                key,
            );
            return None;
        }
        let known =
            |(ty, t): &&(Type, Arc<Table>)| *ty == checked.ty && t.file == file && t.column == name;
        let table = match self.read.tables.iter().find(known) {
            Some((_, table)) => Arc::clone(table),
            None => {
                let bytes = self.read_file(&file, path.span)?;
                match files::table((&file, &bytes), &name, &checked.ty) {
                    Ok(table) => {
                        let table = Arc::new(table);
                        self.read.tables.push((checked.ty.clone(), Arc::clone(&table)));
                        table
                    }
                    Err(fault) => {
                        // A missing column is the query's fault as likely as the file's.
                        let at = if fault.line == Some(1) { column.span } else { path.span };
                        self.bad_file(&file, at, fault);
                        return None;
                    }
                }
            }
        };
        let kind = ExprKind::Call(Func::Lookup(SharedTable(table)), vec![checked]);
        Some(Expr { ty: Type::Str, kind })
    }

    /// `file` where no set is wanted.
    pub(super) fn misplaced_file(&mut self, span: Span) {
        let d = Diagnostic::new(Code::BadSet, span, "the members of a file are a set, not a value");
        self.report(d.help("it stands on the right of `in`; `lookup` takes values from a file"));
    }

    fn text_constant(&mut self, scope: &Scope, tree: &TreeExpr, whose: &str) -> Option<String> {
        let e = self.expr(scope, tree)?;
        match self.constant_value(&e, tree.span, whose)? {
            Value::Str(text) => Some(text.into_string()),
            _ => {
                let shown = say(self.text, tree.span);
                let message = format!("{whose} is a string, and {shown} is {}", a(&e.ty));
                self.report(Diagnostic::new(Code::WrongArgument, tree.span, message));
                None
            }
        }
    }

    /// The bytes of a file; a mistake is reported once.
    fn read_file(&mut self, file: &str, span: Span) -> Option<Rc<Vec<u8>>> {
        if let Some((_, bytes)) = self.read.files.iter().find(|(known, _)| known == file) {
            return bytes.clone();
        }
        let found = match self.files {
            Some(files) => files.read(file),
            None => Err("no files are read here".to_owned()),
        };
        let bytes = match found {
            Ok(bytes) => Some(Rc::new(bytes)),
            Err(cause) => {
                self.bad_file(file, span, Fault { line: None, cause, help: None });
                None
            }
        };
        self.read.files.push((file.to_owned(), bytes.clone()));
        bytes
    }

    fn bad_file(&mut self, file: &str, span: Span, fault: Fault) {
        let message = match fault.line {
            Some(line) => format!("{file}, line {line}: {}", fault.cause),
            None => format!("{file}: {}", fault.cause),
        };
        self.report(Diagnostic::new(Code::BadFile, span, message).maybe_help(fault.help));
    }
}
