//! `join` and `union`: the columns of several pipelines.

use super::words::a;
use super::{Built, Checker};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lower;
use crate::names::{EventTime, Meaning, Scope};
use crate::suggest;
use crate::tree::{Expr as TreeExpr, Item, Join, JoinKey, Member, Name};
use weir_packet::fields::FieldId;
use weir_plan::limits::{JOIN_ROWS_MAX, UNION_OTHERS_MAX};
use weir_plan::{
    Expr, Input, JoinColumn, JoinKind, Schema, Stage, Union, UnionColumn, Value, Within,
};

/// The rows on one side of a join.
struct Side<'a> {
    scope: &'a Scope,
    /// The pipeline's name, on the right.
    name: Option<&'a str>,
}

impl Side<'_> {
    /// The rows, in words.
    fn rows(&self) -> String {
        match self.name {
            None => "the rows on the left".to_owned(),
            Some(name) => format!("the rows of `{name}`"),
        }
    }
}

impl<'t> Checker<'t> {
    pub(super) fn join(&mut self, built: &mut Built, join: &Join, word: Span) -> Option<Stage> {
        let number = self.side(&join.right, "join");
        let columns = self.has_columns(&built.scope, word, "join");
        let Some((number, ())) = number.zip(columns) else {
            built.scope.lenient = true;
            built.scope.packets = false;
            return None;
        };
        let (before, scope) = (built.scope.clone(), self.built[number].scope.clone());
        let left = Side { scope: &before, name: None };
        let right = Side { scope: &scope, name: Some(&join.right.node) };
        let keys = self.join_keys(&left, &right, &join.keys);
        let within = match &join.within {
            Some(member) => self.within(&before, member).map(Some),
            None => Some(None),
        };
        let timed = self.join_time(&left, &right, join, word);
        let kind = join.kind.unwrap_or(JoinKind::Inner);
        let max = self.max_or(&before, join.max.as_ref(), JOIN_ROWS_MAX);
        let windows = join.within.is_none() && scope.time == EventTime::Window;
        let equal: Vec<usize> = keys.iter().flatten().map(|(_, r)| *r).collect();
        // The start of the window is the same on both sides.
        let start = |i: usize| windows && scope.schema.columns[i].name == "ts";
        let goes = |i: &usize| !(equal.contains(i) || start(*i));
        let mut columns: Vec<usize> = (0..scope.schema.columns.len()).filter(goes).collect();
        if kind == JoinKind::Anti {
            columns.clear();
        }
        let defaults = self.defaults(&right, kind, &columns, &join.defaults, word);
        let sound = keys.is_some();
        let clash = sound && self.join_clash(&left, &right, &columns, join.right.span);

        built.scope.lenient |= scope.lenient || !sound;
        for &i in &columns {
            let column = &scope.schema.columns[i];
            let ty = Some(column.ty.clone()).filter(|_| !scope.poisoned.contains(&column.name));
            built.scope.put(&column.name, ty);
        }
        let (keys, within, max_rows, defaults) = (keys?, within?, max?, defaults?);
        timed?;
        if clash {
            return None;
        }
        let column = |from: usize| {
            let default = defaults.iter().find(|(i, _)| *i == from).map(|(_, v)| v.clone());
            JoinColumn { from, default }
        };
        let columns = columns.into_iter().map(column).collect();
        self.cut(built, before);
        let schema = scope.schema;
        Some(Stage::Join(weir_plan::Join {
            kind,
            right: number,
            schema,
            keys,
            columns,
            within,
            max_rows,
        }))
    }

    /// The pipeline of a name, whose rows are taken.
    fn side(&mut self, name: &Name, stage: &'static str) -> Option<usize> {
        let word = name.node.as_str();
        if word == self.source.name() {
            self.packets_still(name.span, stage, None);
            return None;
        }
        let found = self.definitions.find(word).map(|d| (d.meaning.clone(), d.span));
        let found = found.or_else(|| {
            self.imported(word, name.span).map(|number| (Meaning::Pipeline(number), Span::NOWHERE))
        });
        match found {
            Some((Meaning::Pipeline(number), defined)) => {
                let built = &mut self.built[number];
                built.read = true;
                if built.scope.packets {
                    if !built.scope.lenient {
                        self.packets_still(name.span, stage, Some(defined));
                    }
                    return None;
                }
                built.rows_read = true;
                Some(number)
            }
            Some((Meaning::Unknown, _)) => None,
            Some((_, defined)) => {
                let message = format!("`{word}` is a value; a `{stage}` takes rows");
                let d = Diagnostic::new(Code::NotAValue, name.span, message);
                self.report(d.note_at(defined, "defined here"));
                None
            }
            None => {
                self.unknown_source(name);
                None
            }
        }
    }

    /// Whether rows have columns, and are no packets any more.
    fn has_columns(&mut self, scope: &Scope, word: Span, stage: &'static str) -> Option<()> {
        if scope.packets && !scope.lenient {
            self.packets_still(word, stage, None);
        }
        (!scope.packets).then_some(())
    }

    fn packets_still(&mut self, span: Span, stage: &str, defined: Option<Span>) {
        let message = format!("a `{stage}` takes rows of columns, and these are packets still");
        let d = Diagnostic::new(Code::NeedsColumns, span, message)
            .help("say which columns they have: `| project ts, ip.src, …`, or `summarize` them");
        self.report(match defined {
            Some(defined) => d.note_at(defined, "defined here"),
            None => d,
        });
    }

    /// The columns that are equal on both sides.
    fn join_keys(
        &mut self,
        left: &Side<'_>,
        right: &Side<'_>,
        keys: &[JoinKey],
    ) -> Option<Vec<(usize, usize)>> {
        let mut out = Vec::new();
        let mut sound = true;
        for key in keys {
            let other = key.right.as_ref().unwrap_or(&key.left);
            for (name, other) in self.spread(left.scope, &key.left, other) {
                let l = self.side_column(left, &name);
                let r = self.side_column(right, &other);
                let Some((l, r)) = l.zip(r) else {
                    sound = false;
                    continue;
                };
                let [lt, rt] = [(left, l), (right, r)].map(|(s, i)| &s.scope.schema.columns[i].ty);
                if lt != rt {
                    let (on_left, on_right) = (a(lt), a(rt));
                    let message = format!(
                        "`{}` is {on_left} on the left, and in {} `{}` is {on_right}",
                        name.node,
                        right.rows(),
                        other.node
                    );
                    self.report(Diagnostic::new(Code::TypeMismatch, other.span, message));
                    sound = false;
                }
                out.push((l, r));
            }
        }
        let column =
            |&(l, _): &(usize, usize)| Expr::column(l, left.scope.schema.columns[l].ty.clone());
        let exprs: Vec<Expr> = out.iter().map(column).collect();
        if let (Some(first), true) = (keys.first(), sound) {
            self.key_fits(&exprs, first.left.span);
        }
        sound.then_some(out)
    }

    /// The position of a column on one side; `None` after a mistake.
    fn side_column(&mut self, side: &Side<'_>, name: &Name) -> Option<usize> {
        let (scope, word) = (side.scope, name.node.as_str());
        if scope.poisoned.contains(word) {
            return None;
        }
        let found = scope.schema.position(word);
        if found.is_none() && !scope.lenient {
            let message = format!("{} have no column `{word}`", side.rows());
            let columns: Vec<&str> = scope.schema.columns.iter().map(|c| c.name.as_str()).collect();
            let near = suggest::did_you_mean(word, columns.iter().copied());
            let d = Diagnostic::new(Code::UnknownName, name.span, message).maybe_help(near);
            self.report(d.note(format!("their columns: {}", columns.join(" "))));
        }
        found
    }

    /// The interval that partners come in.
    fn within(&mut self, scope: &Scope, member: &Member) -> Option<Within> {
        let (from, to) = match member {
            Member::Value(e) => {
                let to_ns = self.span_of_time(scope, e, "`within`")?;
                return Some(Within { from_ns: 0, to_ns });
            }
            Member::Range(from, to) => (from, to),
        };
        let (from_ns, to_ns) = (self.distance(scope, from), self.distance(scope, to));
        let (from_ns, to_ns) = (from_ns?, to_ns?);
        if from_ns > to_ns {
            let message = "this interval ends before it starts";
            let d = Diagnostic::new(Code::BadConstant, member.span(), message);
            self.report(d.help("the earlier end comes first: `within -1s..3s`"));
            return None;
        }
        Some(Within { from_ns, to_ns })
    }

    /// A duration of any sign.
    fn distance(&mut self, scope: &Scope, e: &TreeExpr) -> Option<i64> {
        match self.constant(scope, e, "an end of `within`")? {
            Value::Duration(ns) => Some(ns),
            v => {
                let found = v.ty().map_or_else(String::new, |ty| a(&ty));
                let message = format!("`within` takes durations, and this is {found}");
                let d = Diagnostic::new(Code::BadConstant, e.span, message);
                self.report(d.help("durations are written `10s`, `250ms`, `1.5h`"));
                None
            }
        }
    }

    /// Whether the times of both sides go together.
    fn join_time(
        &mut self,
        left: &Side<'_>,
        right: &Side<'_>,
        join: &Join,
        word: Span,
    ) -> Option<()> {
        use EventTime::{None as Whole, Packet, Session, Window};
        let message = match (left.scope.time, right.scope.time, &join.within) {
            (Packet | Session | Window, Packet | Session | Window, Some(_)) => return Some(()),
            (Window, Window, None) | (Whole(_), Whole(_), None) => return Some(()),
            (Packet | Session, _, None) | (_, Packet | Session, None) => {
                let message = "rows without windows meet within some time of each other";
                let d = Diagnostic::new(Code::NoEventTime, word, message);
                self.report(d.help(
                    "say how long after a row on the left its partner may come: `within 3s`",
                ));
                return None;
            }
            (_, _, Some(_)) => "rows that have no time are not within some time of each other",
            (_, _, None) => "one side has windows, and the other takes the whole input together",
        };
        let mut d = Diagnostic::new(Code::NoEventTime, word, message);
        for side in [left, right] {
            if let Whole(span) = side.scope.time {
                d = d.note_at(span, "this takes the whole input together");
            }
        }
        self.report(d.help("give that `summarize` an `every` too"));
        None
    }

    /// The values in columns of the right side where a left row met none.
    fn defaults(
        &mut self,
        right: &Side<'_>,
        kind: JoinKind,
        columns: &[usize],
        items: &[Item],
        word: Span,
    ) -> Option<Vec<(usize, Value)>> {
        let Some(first) = items.first() else { return Some(Vec::new()) };
        if kind != JoinKind::Left {
            let message = "only a `left` join puts out rows that met none";
            let d = Diagnostic::new(Code::Unexpected, first.span(), message);
            self.report(d.note_at(word, format!("this is an {} join", kind.name())).help(
                match kind {
                    JoinKind::Anti => "leave `default` out: there are no columns of the right side",
                    _ => "write `join left …`, or leave `default` out",
                },
            ));
            return None;
        }
        let mut out = Vec::new();
        let mut sound = true;
        for item in items {
            let Some(name) = &item.name else { continue };
            let value = self.constant(&Scope::default(), &item.expr, "a default");
            let found = self.side_column(right, name);
            let Some((i, value)) = found.zip(value) else {
                sound = false;
                continue;
            };
            let ty = &right.scope.schema.columns[i].ty;
            let given = value.ty();
            if !columns.contains(&i) {
                let message =
                    format!("`{}` is equal on both sides, so it is always there", name.node);
                self.report(Diagnostic::new(Code::UnknownName, name.span, message));
                sound = false;
            } else if !given.as_ref().is_some_and(|given| lower::fits(given, ty)) {
                let found = given.map_or_else(|| "absent".to_owned(), |ty| a(&ty));
                let message = format!("`{}` is {}, and its default is {found}", name.node, a(ty));
                self.report(Diagnostic::new(Code::TypeMismatch, item.expr.span, message));
                sound = false;
            } else if out.iter().any(|(other, _)| *other == i) {
                let message = format!("`{}` has two defaults", name.node);
                self.report(Diagnostic::new(Code::ColumnClash, name.span, message));
                sound = false;
            } else {
                out.push((i, lower::cast_value(value, ty)));
            }
        }
        sound.then_some(out)
    }

    /// Whether columns of the right side have names of the left one, which is reported.
    fn join_clash(
        &mut self,
        left: &Side<'_>,
        right: &Side<'_>,
        columns: &[usize],
        span: Span,
    ) -> bool {
        let names = columns.iter().map(|&i| right.scope.schema.columns[i].name.as_str());
        let twice: Vec<&str> = names.filter(|n| left.scope.schema.position(n).is_some()).collect();
        let Some(first) = twice.first() else { return false };
        let side = right.name.unwrap_or_default();
        let other = format!("{side}_{}", first.replace('.', "_"));
        let all = twice.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        let what = if twice.len() > 1 { "columns" } else { "a column" };
        let message = format!("both sides have {what} {all}");
        let d = Diagnostic::new(Code::ColumnClash, span, message).help(format!(
            "give it another name in `{side}`: `project …, {other} = {first}`; or join by it"
        ));
        self.report(d);
        true
    }

    /// Ends a pipeline before a stage that takes its rows together with others, so that what
    /// comes before the stage is a pipeline of its own.
    fn cut(&mut self, built: &mut Built, scope: Scope) {
        if built.stages.is_empty() && matches!(built.input, Input::Pipeline(_)) {
            return;
        }
        let before = Built {
            name: None,
            is_imported: false,
            input: built.input,
            stages: std::mem::take(&mut built.stages),
            scope,
            read: true,
            rows_read: true,
            print: None,
            end: None,
            idle_edit: None,
        };
        self.built.push(before);
        built.input = Input::Pipeline(self.built.len() - 1);
    }

    pub(super) fn union(&mut self, built: &mut Built, names: &[Name], word: Span) -> Option<Stage> {
        let columns = self.has_columns(&built.scope, word, "union");
        let others: Vec<Option<usize>> = names.iter().map(|n| self.side(n, "union")).collect();
        let others: Option<Vec<usize>> = others.into_iter().collect();
        if let Some(beyond) = names.get(UNION_OTHERS_MAX) {
            let message = format!("a union takes at most {UNION_OTHERS_MAX} other pipelines");
            self.report(Diagnostic::new(Code::TooLarge, beyond.span, message));
        }
        let Some((others, ())) = others.zip(columns) else {
            built.scope.lenient = true;
            built.scope.packets = false;
            return None;
        };
        let before = built.scope.clone();
        let mut sides = vec![before.clone()];
        sides.extend(others.iter().map(|&n| self.built[n].scope.clone()));
        let columns = self.union_columns(&sides, names);
        let mut schema = Schema::default();
        for column in &columns {
            schema.put(&column.name, column.ty.clone());
        }
        let scope = &mut built.scope;
        scope.schema = schema;
        for side in &sides {
            scope.lenient |= side.lenient;
            scope.poisoned.extend(side.poisoned.iter().cloned());
        }
        let untimed = sides.iter().find(|s| matches!(s.time, EventTime::None(_)));
        scope.time = match untimed {
            Some(side) => side.time,
            None if sides.iter().all(|s| s.time == EventTime::Window) => EventTime::Window,
            None => EventTime::Packet,
        };
        let timed = untimed.is_none();
        self.cut(built, before);
        Some(Stage::Union(Union { others, columns, timed }))
    }

    /// The columns of all sides by name.
    fn union_columns(&mut self, sides: &[Scope], names: &[Name]) -> Vec<UnionColumn> {
        let mut columns: Vec<UnionColumn> = Vec::new();
        for (s, side) in sides.iter().enumerate() {
            for (i, column) in side.schema.columns.iter().enumerate() {
                let known = columns.iter_mut().find(|known| known.name == column.name);
                let Some(known) = known else {
                    let mut from = vec![None; sides.len()];
                    from[s] = Some(i);
                    let (name, ty) = (column.name.clone(), column.ty.clone());
                    columns.push(UnionColumn { name, ty, from });
                    continue;
                };
                known.from[s] = Some(i);
                let sound = |side: &Scope| !side.poisoned.contains(&column.name);
                if known.ty != column.ty && sides.iter().all(sound) {
                    let name = &names[s - 1];
                    let message = format!(
                        "the column `{}` is {} in `{}`, and {} before",
                        column.name,
                        a(&column.ty),
                        name.node,
                        a(&known.ty)
                    );
                    let d = Diagnostic::new(Code::TypeMismatch, name.span, message);
                    self.report(d.help("make it of one type, or give one another name"));
                }
            }
        }
        columns
    }

    /// A key such as `flow` stands for its columns, unless a column has its name.
    fn spread(&self, scope: &Scope, left: &Name, right: &Name) -> Vec<(Name, Name)> {
        let plain = scope.schema.position(&left.node).is_some() || left.node != right.node;
        match self.key_fields(scope, &left.node).filter(|_| !plain) {
            Some(key) => {
                let name = |id: FieldId| Name::new(id.info().name.to_owned(), left.span);
                key.into_iter().map(|id| (name(id), name(id))).collect()
            }
            None => vec![(left.clone(), right.clone())],
        }
    }
}
