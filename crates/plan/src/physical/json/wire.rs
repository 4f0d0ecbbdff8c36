//! How values become JSON and back: the one trait, and macros that write both ways down at once.

use super::error::{Mistake, Unwritable};
use crate::expr::Member;
use crate::functions::Signatures;
use crate::table::SharedTable;
use serde_json::{Map, Value as Json};
use std::cell::Cell;

/// A value that has a form in JSON.
pub(super) trait Wire: Sized {
    /// Its form.
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable>;

    /// The value that has this form.
    fn read(json: &Json, from: &Reader<'_>) -> Result<Self, Mistake>;
}

/// The signatures, tables and sets as a plan is written.
pub(super) struct Writer<'a> {
    pub(super) signatures: &'a Signatures,
    /// The tables so far.
    pub(super) tables: Vec<SharedTable>,
    /// The large sets so far.
    pub(super) sets: Vec<Vec<Member>>,
}

/// The signatures, tables and sets as a plan is read.
pub(super) struct Reader<'a> {
    pub(super) signatures: &'a Signatures,
    pub(super) tables: Vec<SharedTable>,
    pub(super) sets: Vec<Vec<Member>>,
    /// How many members of sets may still be copied.
    pub(super) members_left: Cell<usize>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(signatures: &'a Signatures) -> Writer<'a> {
        Writer { signatures, tables: Vec::new(), sets: Vec::new() }
    }

    /// An object with what `fill` puts into it.
    pub(super) fn members(
        &mut self,
        fill: impl FnOnce(&mut Self, &mut Map<String, Json>) -> Result<(), Unwritable>,
    ) -> Result<Json, Unwritable> {
        let mut object = Map::new();
        fill(self, &mut object)?;
        Ok(Json::Object(object))
    }

    /// Adds a member, unless it is `None`.
    pub(super) fn member(
        &mut self,
        object: &mut Map<String, Json>,
        key: &str,
        value: &impl Wire,
    ) -> Result<(), Unwritable> {
        let json = value.write(self)?;
        if !json.is_null() {
            object.insert(key.to_owned(), json);
        }
        Ok(())
    }

    /// An array.
    pub(super) fn list<'v, T: Wire + 'v>(
        &mut self,
        values: impl IntoIterator<Item = &'v T>,
    ) -> Result<Json, Unwritable> {
        values.into_iter().map(|value| value.write(self)).collect::<Result<_, _>>().map(Json::Array)
    }
}

/// An object whose members are all known.
pub(super) struct Members<'j>(&'j Map<String, Json>);

impl<'j> Members<'j> {
    pub(super) fn new(json: &'j Json, known: &[&str]) -> Result<Members<'j>, Mistake> {
        let object = json.as_object().ok_or_else(|| expected("an object", json))?;
        match object.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(Mistake::new(format!("it has an unknown member `{key}`"))),
            None => Ok(Members(object)),
        }
    }

    pub(super) fn read<T: Wire>(&self, key: &str, from: &Reader<'_>) -> Result<T, Mistake> {
        let json = self.0.get(key).unwrap_or(&Json::Null);
        T::read(json, from).map_err(|mistake| mistake.within(format!(".{key}")))
    }
}

/// Says what stands where something else is expected.
pub(super) fn expected(what: &str, json: &Json) -> Mistake {
    let found = match json {
        Json::Null => "it is missing".to_owned(),
        Json::Bool(_) => "found a bool".to_owned(),
        Json::Number(n) => format!("found {n}"),
        Json::String(text) => format!("found {:?}", text.chars().take(40).collect::<String>()),
        Json::Array(_) => "found an array".to_owned(),
        Json::Object(_) => "found an object".to_owned(),
    };
    Mistake::new(format!("expected {what}; {found}"))
}

/// A choice as JSON: its tag alone, or an object with the tag as its only key.
pub(super) fn tagged(tag: &str, body: Option<Json>) -> Json {
    match body {
        None => tag.into(),
        Some(body) => Json::Object(Map::from_iter([(tag.to_owned(), body)])),
    }
}

/// Tag and body of a choice.
pub(super) fn untag(json: &Json) -> Result<(&str, Option<&Json>), Mistake> {
    match json {
        Json::String(tag) => Ok((tag, None)),
        Json::Object(object) if object.len() == 1 => {
            let (tag, body) = object.iter().next().expect("it has one");
            Ok((tag, Some(body)))
        }
        other => Err(expected("a word, or an object with one member", other)),
    }
}

/// The body of a choice, below its tag.
pub(super) fn read_body<T: Wire>(
    tag: &str,
    body: Option<&Json>,
    from: &Reader<'_>,
) -> Result<T, Mistake> {
    let body = body.unwrap_or(&Json::Null);
    T::read(body, from).map_err(|mistake| mistake.within(format!(".{tag}")))
}

/// The form of a struct: an object with a member for each field.
macro_rules! record {
    ($type:ident { $($field:ident: $key:literal),* $(,)? }) => {
        impl Wire for $type {
            fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
                let $type { $($field),* } = self;
                to.members(|to, object| {
                    $(to.member(object, $key, $field)?;)*
                    Ok(())
                })
            }

            fn read(json: &Json, from: &Reader<'_>) -> Result<Self, Mistake> {
                let object = Members::new(json, &[$($key),*])?;
                Ok($type { $($field: object.read($key, from)?),* })
            }
        }
    };
}

/// The form of an enum: a word, or an object with a word as its only key.
macro_rules! choice {
    ($type:ident { $(
        $variant:ident
            $(($inner:ident $(as $wrapped:ident)?))?
            $({ $($field:ident: $key:literal),* $(,)? })?
            = $tag:literal
    ),* $(,)? }) => {
        impl Wire for $type {
            #[allow(unused_mut, unused_assignments, unused_variables)]
            fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
                match self {
                    $($type::$variant $(($inner))? $({ $($field),* })? => {
                        let mut body = None;
                        $(body = Some($($wrapped)? ($inner.clone()).write(to)?);)?
                        $(body = Some(to.members(|to, object| {
                            $(to.member(object, $key, $field)?;)*
                            Ok(())
                        })?);)?
                        Ok(tagged($tag, body))
                    })*
                }
            }

            #[allow(unused_parens, unused_variables)]
            fn read(json: &Json, from: &Reader<'_>) -> Result<Self, Mistake> {
                let (tag, body) = untag(json)?;
                match tag {
                    $($tag => {
                        let names: &[&str] =
                            &[$(stringify!($inner),)? $($(stringify!($field),)*)?];
                        if names.is_empty() && body.is_some() {
                            return Err(Mistake::new(format!("`{tag}` stands alone")));
                        }
                        $(let $($wrapped)? ($inner) = read_body(tag, body, from)?;)?
                        $(
                            let object = Members::new(body.unwrap_or(&Json::Null), &[$($key),*])?;
                            $(let $field = object.read($key, from)?;)*
                        )?
                        Ok($type::$variant $(($inner))? $({ $($field),* })?)
                    })*
                    other => Err(Mistake::new(format!(
                        "`{other}` is unknown here; known are {}",
                        [$($tag),*].join(", ")
                    ))),
                }
            }
        }
    };
}

pub(super) use {choice, record};

/// Small numbers are numbers.
macro_rules! number {
    ($($type:ty),*) => {$(
        impl Wire for $type {
            fn write(&self, _: &mut Writer<'_>) -> Result<Json, Unwritable> {
                Ok(Json::from(*self))
            }

            fn read(json: &Json, _: &Reader<'_>) -> Result<Self, Mistake> {
                let number = json.as_u64().and_then(|n| <$type>::try_from(n).ok());
                number.ok_or_else(|| expected("a small whole number", json))
            }
        }
    )*};
}

number!(u8, u16, u32, usize);

/// Wide numbers are strings: other languages read numbers of JSON as floats.
macro_rules! wide {
    ($($type:ty),*) => {$(
        impl Wire for $type {
            fn write(&self, _: &mut Writer<'_>) -> Result<Json, Unwritable> {
                Ok(self.to_string().into())
            }

            fn read(json: &Json, _: &Reader<'_>) -> Result<Self, Mistake> {
                let number = json.as_str().and_then(|text| text.parse().ok());
                number.ok_or_else(|| expected("a whole number as a string", json))
            }
        }
    )*};
}

wide!(u64, i64);

impl Wire for bool {
    fn write(&self, _: &mut Writer<'_>) -> Result<Json, Unwritable> {
        Ok((*self).into())
    }

    fn read(json: &Json, _: &Reader<'_>) -> Result<bool, Mistake> {
        json.as_bool().ok_or_else(|| expected("true or false", json))
    }
}

impl Wire for String {
    fn write(&self, _: &mut Writer<'_>) -> Result<Json, Unwritable> {
        Ok(self.as_str().into())
    }

    fn read(json: &Json, _: &Reader<'_>) -> Result<String, Mistake> {
        json.as_str().map(str::to_owned).ok_or_else(|| expected("a string", json))
    }
}

impl Wire for Box<str> {
    fn write(&self, _: &mut Writer<'_>) -> Result<Json, Unwritable> {
        Ok((**self).into())
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<Box<str>, Mistake> {
        String::read(json, from).map(String::into_boxed_str)
    }
}

impl<T: Wire> Wire for Box<T> {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        (**self).write(to)
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<Box<T>, Mistake> {
        T::read(json, from).map(Box::new)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        self.as_ref().map_or(Ok(Json::Null), |value| value.write(to))
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<Option<T>, Mistake> {
        if json.is_null() { Ok(None) } else { T::read(json, from).map(Some) }
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        to.list(self)
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<Vec<T>, Mistake> {
        let items = json.as_array().ok_or_else(|| expected("an array", json))?.iter();
        let item = |(i, item)| T::read(item, from).map_err(|e: Mistake| e.within(format!("[{i}]")));
        items.enumerate().map(item).collect()
    }
}

/// Several values as an array of so many.
macro_rules! tuple {
    ($n:literal: $($type:ident $at:tt),*) => {
        impl<$($type: Wire),*> Wire for ($($type),*) {
            fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
                Ok(Json::Array(vec![$(self.$at.write(to)?),*]))
            }

            fn read(json: &Json, from: &Reader<'_>) -> Result<Self, Mistake> {
                let items = json.as_array().filter(|items| items.len() == $n);
                let what = concat!("an array of ", $n);
                let items = items.ok_or_else(|| expected(what, json))?;
                Ok(($(<$type>::read(&items[$at], from)
                    .map_err(|e| e.within(concat!("[", $at, "]")))?),*))
            }
        }
    };
}

tuple!(2: A 0, B 1);
tuple!(3: A 0, B 1, C 2);
