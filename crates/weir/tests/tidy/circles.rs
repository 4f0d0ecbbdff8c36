//! Which files of a crate import each other in a circle. A file imports another where a path in it
//! leads to an item of that one, whether up to a parent or down to a child.

use crate::source::{Crate, Module};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

type Path = Vec<String>;

/// Re-exports that lead to others; more than that is a mistake of this test.
const HOPS_MAX: usize = 8;

/// By module, those whose items it names.
type Imports<'a> = BTreeMap<&'a Path, BTreeSet<Path>>;

/// The files of a crate that stand in circles.
pub(crate) fn in_circles(krate: &Crate) -> Vec<String> {
    let imports = imports(krate);
    let reach: Imports<'_> = imports.keys().map(|path| (*path, reached(path, &imports))).collect();
    let circle = |path: &&Path| reach[*path].contains(*path);
    let line = |path: &Path| format!("{} {}", krate.name, krate.modules[path].file);
    imports.keys().copied().filter(circle).map(line).collect()
}

/// The modules that each module of a crate imports.
pub(crate) fn imports(krate: &Crate) -> Imports<'_> {
    let names = Names::of(krate);
    let of = |(path, module)| (path, imports_of(&names, path, module));
    krate.modules.iter().map(of).collect()
}

/// All modules that a module imports, and those that these do.
fn reached(start: &Path, imports: &Imports<'_>) -> BTreeSet<Path> {
    let (mut all, mut todo) = (BTreeSet::new(), vec![start.clone()]);
    while let Some(path) = todo.pop() {
        for next in &imports[&path] {
            if all.insert(next.clone()) {
                todo.push(next.clone());
            }
        }
    }
    all
}

/// The meaning of names in the modules of a crate.
struct Names<'a> {
    krate: &'a Crate,
    /// By module, the names that it imports, and the full paths that these stand for.
    imported: BTreeMap<&'a Path, BTreeMap<String, Path>>,
}

impl<'a> Names<'a> {
    fn of(krate: &'a Crate) -> Names<'a> {
        let mut names = Names { krate, imported: BTreeMap::new() };
        for (path, module) in &krate.modules {
            let mut uses = Uses { all: Vec::new() };
            module.items.iter().for_each(|item| uses.visit_item(item));
            let full = |(name, to): (String, Path)| {
                Some((name, absolute(krate, path, &to)?)).filter(|(name, _)| name != "*")
            };
            let named = uses.all.into_iter().filter_map(full).collect();
            names.imported.insert(path, named);
        }
        names
    }

    /// The module whose file has the item that a path leads to from a module; `None` where it leads
    /// out of the crate, or only to a module.
    fn file_of(&self, from: &Path, path: &Path) -> Option<Path> {
        let mut full = match absolute(self.krate, from, path) {
            Some(full) => full,
            None => {
                let mut full = self.imported.get(from)?.get(path.first()?)?.clone();
                full.extend_from_slice(&path[1..]);
                full
            }
        };
        for _ in 0..HOPS_MAX {
            let is_module = |n: &usize| self.krate.modules.contains_key(&full[..*n]);
            let depth = (0..=full.len()).rev().find(is_module)?;
            let (module, rest) = full.split_at(depth);
            let item = rest.first()?;
            let module = module.to_vec();
            match self.imported.get(&module).and_then(|names| names.get(item)) {
                Some(to) if *to != full => {
                    let mut next = to.clone();
                    next.extend_from_slice(&rest[1..]);
                    full = next;
                }
                _ => return Some(module),
            }
        }
        None
    }
}

/// A path from the root of the crate; `None` where it begins with neither a keyword nor a child.
fn absolute(krate: &Crate, from: &Path, path: &Path) -> Option<Path> {
    let (first, rest) = path.split_first()?;
    let mut full = match first.as_str() {
        "crate" => Vec::new(),
        "self" => from.clone(),
        "super" => {
            let parent = from[..from.len().checked_sub(1)?].to_vec();
            if rest.first().is_some_and(|next| next == "super") {
                return absolute(krate, &parent, &rest.to_vec());
            }
            parent
        }
        name => {
            let mut child = from.clone();
            child.push(name.to_owned());
            if !krate.modules.contains_key(&child) {
                return None;
            }
            child
        }
    };
    full.extend_from_slice(rest);
    Some(full)
}

/// The modules whose items a module names.
fn imports_of(names: &Names<'_>, path: &Path, module: &Module) -> BTreeSet<Path> {
    let mut uses = Uses { all: Vec::new() };
    module.items.iter().for_each(|item| uses.visit_item(item));
    let mut paths = Paths { all: uses.all.into_iter().map(|(_, to)| to).collect() };
    module.items.iter().for_each(|item| paths.visit_item(item));
    let files = paths.all.iter().filter_map(|to| names.file_of(path, to));
    files.filter(|file| file != path).collect()
}

/// The imports by `use` items of a module: the name here, and the path.
struct Uses {
    all: Vec<(String, Path)>,
}

impl Uses {
    fn add(&mut self, mut before: Path, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(p) => {
                before.push(p.ident.to_string());
                self.add(before, &p.tree);
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add(before.clone(), tree));
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                self.all.extend(before.last().cloned().map(|name| (name, before)));
            }
            syn::UseTree::Name(name) => {
                before.push(name.ident.to_string());
                self.all.push((name.ident.to_string(), before));
            }
            syn::UseTree::Rename(renamed) => {
                before.push(renamed.ident.to_string());
                self.all.push((renamed.rename.to_string(), before));
            }
            syn::UseTree::Glob(_) => {
                before.push("*".to_owned());
                self.all.push(("*".to_owned(), before));
            }
        }
    }
}

impl<'a> Visit<'a> for Uses {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.add(Vec::new(), &item.tree);
    }
}

/// The paths of expressions and types, and those within macros.
struct Paths {
    all: Vec<Path>,
}

impl Paths {
    /// The paths in the text of a macro.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 && !path.is_empty() {
                        self.all.push(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(p) if p.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                _ => {}
            }
            self.all.push(std::mem::take(&mut path));
            colons = 0;
        }
        self.all.push(path);
        self.all.retain(|path| !path.is_empty());
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_path(&mut self, path: &'a syn::Path) {
        self.all.push(path.segments.iter().map(|s| s.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, one: &'a syn::Macro) {
        self.add_tokens(one.tokens.clone());
        visit::visit_macro(self, one);
    }

    fn visit_item_use(&mut self, _: &'a syn::ItemUse) {}
}
