//! Calls of scalar functions.

use super::Checker;
use super::words::{a, say};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::foreign;
use crate::limits::PATTERNS_MAX;
use crate::lower;
use crate::names::Scope;
use crate::suggest;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree, Name};
use weir_packet::fields::FieldType;
use weir_plan::aggregates::{self, AGGREGATES};
use weir_plan::functions::{BUILTINS, Builtin, Gives, Role, by_name};
use weir_plan::pattern;
use weir_plan::{Expr, ExprKind, Func, Type, UnaryOp, Value};

impl<'t> Checker<'t> {
    /// Whether `summarize` knows the name.
    pub(super) fn is_aggregate(&self, name: &str) -> bool {
        aggregates::by_name(name).next().is_some()
            || self.signatures.aggregates.iter().any(|f| f.name == name)
    }

    pub(super) fn call(
        &mut self,
        scope: &Scope,
        func: &Name,
        args: &[TreeExpr],
        span: Span,
    ) -> Option<Expr> {
        let name = func.node.as_str();
        match name {
            "if" => return self.if_call(scope, args, span),
            "lookup" => return self.lookup(scope, args, span),
            "file" => {
                self.misplaced_file(span);
                return None;
            }
            _ => {}
        }
        let built_in = by_name(name);
        let user = self.signatures.scalars.iter().position(|f| f.name == name);
        let wanted = match (built_in.map(|row| (&row.func, row)), user) {
            (Some((Func::CommunityId { .. }, _)), _) => {
                return self.community_id(scope, args, span);
            }
            (Some((Func::Prefix { .. }, _)), _) if args.len() == 3 => 3,
            (Some((_, row)), _) => row.takes.len(),
            (None, Some(i)) => self.signatures.scalars[i].args.len(),
            (None, None) => {
                self.no_function(func, args);
                return None;
            }
        };
        let checked: Vec<Option<Expr>> = args.iter().map(|arg| self.expr(scope, arg)).collect();
        if wanted != args.len() {
            self.wrong_arity(name, wanted, args.len(), span);
            return None;
        }
        let checked: Vec<Expr> = checked.into_iter().collect::<Option<_>>()?;
        match (built_in, user) {
            (Some(Builtin { func: Func::Exists, .. }), _) => self.exists(&checked[0], &args[0]),
            (Some(row), _) => self.built_in(row, checked, args),
            (None, user) => self.user_call(user?, checked, args),
        }
    }

    pub(super) fn wrong_arity(&mut self, name: &str, wanted: usize, found: usize, span: Span) {
        let plural = if wanted == 1 { "" } else { "s" };
        let message = format!("`{name}` takes {wanted} argument{plural}, not {found}");
        self.report(Diagnostic::new(Code::WrongArity, span, message));
    }

    fn no_function(&mut self, func: &Name, args: &[TreeExpr]) {
        let name = func.node.as_str();
        if self.is_aggregate(name) {
            let message = format!("`{name}` is an aggregate: it stands directly in a `summarize`");
            let d = Diagnostic::new(Code::MisplacedAggregate, func.span, message);
            return self.report(match (name, args.len()) {
                ("min" | "max", 2) => d.help(format!("did you mean `{name}_of`?")),
                _ => d.help(format!(
                    "write `| summarize NAME = {name}(…) by …`, and use NAME in a stage after it"
                )),
            });
        }
        if self.work_of_another(func) {
            return;
        }
        let d = Diagnostic::new(
            Code::UnknownFunction,
            func.span,
            format!("there is no function called `{name}`"),
        );
        let users = self.signatures.scalars.iter().map(|f| f.name.as_str());
        let known =
            BUILTINS.iter().map(|row| row.name()).chain(users).chain(["if", "lookup", "file"]);
        let aggregates = AGGREGATES.iter().map(|row| row.name());
        let near = suggest::function(name).or(suggest::closest(name, known.chain(aggregates)));
        let near = near.map(|near| format!("did you mean `{near}`?"));
        let no_clock = foreign::field(name).filter(|_| args.is_empty()).map(str::to_owned);
        self.report(match no_clock.or(near) {
            Some(help) => d.help(help),
            None => d.note("functions and aggregates are listed in the language reference"),
        });
    }

    /// Whether other stages and functions do the work of such a function; reports it then.
    pub(super) fn work_of_another(&mut self, func: &Name) -> bool {
        let Some(help) = foreign::function(&func.node) else { return false };
        let message = format!("there is no function called `{}`", func.node);
        self.report(Diagnostic::new(Code::UnknownFunction, func.span, message).help(help));
        true
    }

    fn exists(&mut self, e: &Expr, tree: &TreeExpr) -> Option<Expr> {
        if e.ty == Type::Net {
            self.one_value(e.clone(), tree.span)?;
        }
        if let Some(question) = lower::exists(e) {
            return Some(question);
        }
        let shown = say(self.text, tree.span);
        let message = format!("{shown} always has a value");
        let d = Diagnostic::new(Code::AlwaysPresent, tree.span, message);
        let protocol = match &e.kind {
            ExprKind::Field(id) => id.info().ty == FieldType::Bool,
            _ => false,
        };
        self.report(match protocol {
            true => d.label("true or false").help(format!("ask it by itself: {shown}")),
            false => d,
        });
        Some(Expr::constant(Value::Bool(true)))
    }

    fn user_call(&mut self, i: usize, checked: Vec<Expr>, args: &[TreeExpr]) -> Option<Expr> {
        let signature = &self.signatures.scalars[i];
        let mut out = Vec::new();
        let mut sound = true;
        for ((e, wanted), tree) in checked.into_iter().zip(&signature.args).zip(args) {
            if lower::fits(&e.ty, wanted) {
                out.push(lower::cast(e, wanted));
            } else {
                self.wrong_argument(&signature.name, &a(wanted), &e, tree);
                sound = false;
            }
        }
        let kind = ExprKind::Call(Func::User(i), out);
        sound.then(|| Expr { ty: signature.ret.clone(), kind })
    }

    pub(super) fn wrong_argument(&mut self, name: &str, wanted: &str, e: &Expr, tree: &TreeExpr) {
        let message =
            format!("`{name}` takes {wanted}, and {} is {}", say(self.text, tree.span), a(&e.ty));
        let d = Diagnostic::new(Code::WrongArgument, tree.span, message);
        self.report(match (wanted, &e.ty) {
            (wanted, Type::Bool) if wanted.contains("int") => {
                d.help("`count(x)` counts the rows where a condition holds")
            }
            (_, Type::Duration) if name == "variance" => {
                d.help("its unit would be that of time squared: `stddev(x)` is a duration again")
            }
            ("a string", Type::Bytes) => {
                let shown = crate::excerpt::one_line(tree.span.of(self.text));
                d.help(format!("`text({shown})` gives bytes as a string"))
            }
            ("a string" | "a string or bytes", _) => d.help("`string(x)` gives any value as text"),
            _ => d,
        });
    }

    /// A call of a built-in function with the right number of arguments.
    fn built_in(
        &mut self,
        row: &'static Builtin,
        mut args: Vec<Expr>,
        trees: &[TreeExpr],
    ) -> Option<Expr> {
        let name = row.name();
        for (i, arg) in args.iter().enumerate() {
            let takes = row.parameter(i);
            if !takes.types.contains(&arg.ty) {
                self.wrong_argument(name, takes.words, arg, &trees[i]);
                return None;
            }
        }
        if let Gives::Conversion(ty) = &row.gives
            && args[0].ty == *ty
        {
            return args.pop();
        }
        match row.func {
            Func::Prefix { .. } => return self.prefix(args, trees),
            Func::Anonymize(_) => return self.anonymize(args, &trees[1]),
            Func::Clamp => return self.clamp(args, trees),
            Func::ToFloat if args[0].ty == Type::Int => {
                self.warn_of_whole_in_float(&args[0], &trees[0]);
                let float = lower::unary(UnaryOp::ToFloat, Type::Float, args.pop()?);
                return Some(lower::fold(float));
            }
            Func::Contains | Func::StartsWith | Func::EndsWith => {
                self.text_and_part(name, &args, trees)?;
            }
            Func::Matches | Func::Extract => self.regex(name, &args, &trees[1])?,
            Func::Coalesce | Func::MinOf | Func::MaxOf => {
                let (b, a) = (args.pop()?, args.pop()?);
                args = self.same_type(name, a, b, &trees[1]).map(|(a, b)| vec![a, b])?;
            }
            Func::Bin => self.bin(&args, trees)?,
            _ => {}
        }
        let cast = |(i, e)| match row.parameter(i).role {
            Role::Float => lower::cast(e, &Type::Float),
            _ => e,
        };
        let args: Vec<Expr> = args.into_iter().enumerate().map(cast).collect();
        let types: Vec<&Type> = args.iter().map(|arg| &arg.ty).collect();
        let ty = row.result(&types).expect("all that the table asks was checked");
        Some(Expr { ty, kind: self.in_zone(row.func.clone(), args) })
    }

    /// A call in the time zone of the query.
    fn in_zone(&self, func: Func, mut args: Vec<Expr>) -> ExprKind {
        match (func, self.rules.zone) {
            (Func::Bin, _) if args[0].ty == Type::Time => {
                ExprKind::Call(self.bin_of_time(&args[1]), args)
            }
            (Func::Part(part), Some(zone)) => {
                let local = ExprKind::Call(Func::LocalTime(zone), vec![args.swap_remove(0)]);
                ExprKind::Call(Func::Part(part), vec![Expr { ty: Type::Time, kind: local }])
            }
            (func, _) => ExprKind::Call(func, args),
        }
    }

    /// The function that gives the start of a step of time: by the clock of the query's zone, if
    /// that differs from UTC's for such a step.
    pub(super) fn bin_of_time(&self, step: &Expr) -> Func {
        let Some(zone) = self.rules.zone else { return Func::Bin };
        match lower::constant(step) {
            Some(Value::Duration(step)) if zone.moves(step) => Func::LocalBin(zone.by(step)),
            Some(Value::Duration(_)) => Func::Bin,
            _ => Func::LocalBin(zone),
        }
    }

    fn same_type(&mut self, name: &str, x: Expr, y: Expr, tree: &TreeExpr) -> Option<(Expr, Expr)> {
        if let Some(ty) = lower::common_type(&x.ty, &y.ty) {
            return Some((lower::cast(x, &ty), lower::cast(y, &ty)));
        }
        let (x, y) = (a(&x.ty), a(&y.ty));
        let message = format!("`{name}` takes two values of one type; these are {x} and {y}");
        self.report(Diagnostic::new(Code::WrongArgument, tree.span, message).label(y));
        None
    }

    fn regex(&mut self, name: &str, args: &[Expr], tree: &TreeExpr) -> Option<()> {
        let whose = format!("the pattern of `{name}`");
        let value = self.constant_value(&args[1], tree.span, &whose)?;
        let Value::Str(text) = value else { unreachable!("the pattern is a string") };
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            // The first one over the limit tells.
            if self.patterns == PATTERNS_MAX + 1 {
                let message = format!("a query has at most {PATTERNS_MAX} regular expressions");
                let d = Diagnostic::new(Code::TooLarge, tree.span, message);
                let d = d.note("those of a `let` count wherever it is used");
                self.report(d.help("put several into one, as in \"one|two|three\""));
            }
            return None;
        }
        let tried = match args[0].ty {
            Type::Bytes => pattern::of_bytes(&text).map(|_| ()),
            _ => pattern::of_text(&text).map(|_| ()),
        };
        let fault = match tried {
            Ok(()) => return Some(()),
            Err(regex::Error::Syntax(report)) => {
                let reason = report.lines().last().unwrap_or("").trim_start_matches("error: ");
                reason.to_owned()
            }
            Err(regex::Error::CompiledTooBig(most)) => {
                format!("it takes more than {} MiB of memory", most >> 20)
            }
            Err(e) => e.to_string(),
        };
        let message = format!("this regular expression cannot be read: {fault}");
        let d = Diagnostic::new(Code::BadRegex, tree.span, message);
        self.report(d.note("the syntax is that of the Rust `regex` crate; `\\` is written `\\\\`"));
        None
    }

    /// Checks that a text is searched for a text, and bytes for bytes.
    fn text_and_part(&mut self, name: &str, args: &[Expr], trees: &[TreeExpr]) -> Option<()> {
        let (whole, part) = (&args[0].ty, &args[1].ty);
        if whole == part {
            return Some(());
        }
        let message = format!(
            "`{name}` takes two strings, or twice bytes; these are {} and {}",
            a(whole),
            a(part)
        );
        let d = Diagnostic::new(Code::WrongArgument, trees[1].span, message).label(a(part));
        let shown = trees[1].span.of(self.text);
        self.report(match (whole, &trees[1].node) {
            (Type::Bytes, Tree::Literal { .. }) => d.help(format!("bytes are written `b{shown}`")),
            (Type::Bytes, _) => d.help(format!("`bytes({shown})` are the bytes of a string")),
            _ => d.help("`text(b)` gives bytes as a string"),
        });
        None
    }

    fn clamp(&mut self, mut args: Vec<Expr>, trees: &[TreeExpr]) -> Option<Expr> {
        let (high, low, x) = (args.pop()?, args.pop()?, args.pop()?);
        let (x, low) = self.same_type("clamp", x, low, &trees[1])?;
        let (x, high) = self.same_type("clamp", x, high, &trees[2])?;
        let low = lower::cast(low, &high.ty);
        if let (Some(least), Some(most)) = (lower::constant(&low), lower::constant(&high))
            && least > most
        {
            let message = format!(
                "`clamp` has its bounds the wrong way round: {least} is above \
                                   {most}"
            );
            let span = trees[1].span.to(trees[2].span);
            self.report(Diagnostic::new(Code::BadConstant, span, message));
            return None;
        }
        let ty = x.ty.clone();
        Some(Expr { ty, kind: ExprKind::Call(Func::Clamp, vec![x, low, high]) })
    }

    fn bin(&mut self, args: &[Expr], trees: &[TreeExpr]) -> Option<()> {
        let (value, step) = (&args[0], &args[1]);
        let wanted = if value.ty == Type::Int { Type::Int } else { Type::Duration };
        if step.ty != wanted {
            let words = format!("{} as the step for {}", a(&wanted), a(&value.ty));
            self.wrong_argument("bin", &words, step, &trees[1]);
            return None;
        }
        if let Some(Value::Int(..=0) | Value::Duration(..=0)) = lower::constant(step) {
            let message = "the step of `bin` must be more than 0";
            self.report(Diagnostic::new(Code::BadConstant, trees[1].span, message));
            return None;
        }
        Some(())
    }

    /// Whether the expression calls an aggregate somewhere.
    pub(super) fn calls_aggregate(&self, e: &TreeExpr) -> bool {
        match &e.node {
            Tree::Call { func, args } => {
                self.is_aggregate(&func.node) || args.iter().any(|e| self.calls_aggregate(e))
            }
            Tree::Unary(_, e) | Tree::Paren(e) => self.calls_aggregate(e),
            Tree::Compare(a, _, b) => self.calls_aggregate(a) || self.calls_aggregate(b),
            Tree::Chain { first, rest } => {
                self.calls_aggregate(first) || rest.iter().any(|(_, e)| self.calls_aggregate(e))
            }
            _ => false,
        }
    }
}
