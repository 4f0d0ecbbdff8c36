//! Rules of size, of names and of imports.

use crate::circles::in_circles;
use crate::common::{files, text};
use crate::source::{Crate, attributes, crates, is_test_item};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// Lines of a function.
const FUNCTION_LINES_MAX: usize = 70;

/// Finds long functions.
struct Functions {
    place: String,
    long: BTreeSet<String>,
}

impl Functions {
    fn note(&mut self, name: &syn::Ident, block: &syn::Block) {
        let lines = block.span().end().line - name.span().start().line + 1;
        if lines > FUNCTION_LINES_MAX {
            self.long.insert(format!("{} {name}", self.place));
        }
    }
}

impl<'a> Visit<'a> for Functions {
    fn visit_item_fn(&mut self, f: &'a syn::ItemFn) {
        self.note(&f.sig.ident, &f.block);
        visit::visit_item_fn(self, f);
    }

    fn visit_impl_item_fn(&mut self, f: &'a syn::ImplItemFn) {
        self.note(&f.sig.ident, &f.block);
        visit::visit_impl_item_fn(self, f);
    }

    fn visit_trait_item_fn(&mut self, f: &'a syn::TraitItemFn) {
        f.default.iter().for_each(|block| self.note(&f.sig.ident, block));
        visit::visit_trait_item_fn(self, f);
    }
}

#[test]
fn functions_fit_on_a_screen() {
    let mut long = BTreeSet::new();
    for Crate { name, modules } in crates() {
        for module in modules.values() {
            let place = format!("{name} {}", module.file);
            let mut functions = Functions { place, long: BTreeSet::new() };
            module.items.iter().for_each(|item| functions.visit_item(item));
            long.append(&mut functions.long);
        }
    }
    assert!(long.is_empty(), "functions of more than 70 lines: {long:#?}");
}

/// The name of a type that other files can see.
fn seen_type(item: &syn::Item) -> Option<String> {
    let (name, seen) = match item {
        syn::Item::Struct(i) => (&i.ident, &i.vis),
        syn::Item::Enum(i) => (&i.ident, &i.vis),
        syn::Item::Union(i) => (&i.ident, &i.vis),
        syn::Item::Trait(i) => (&i.ident, &i.vis),
        syn::Item::Type(i) => (&i.ident, &i.vis),
        _ => return None,
    };
    (!matches!(seen, syn::Visibility::Inherited)).then(|| name.to_string())
}

/// The place that an attribute gives the file of a module.
fn told_place(attribute: &syn::Attribute) -> Option<String> {
    let syn::Meta::NameValue(told) = &attribute.meta else { return None };
    match &told.value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(place), .. }) => Some(place.value()),
        _ => None,
    }
}

/// Notes the modules of a file that only tests have and whose files do not say so by their place.
fn note_tests(file: &Path, misplaced: &mut BTreeSet<String>) {
    let parsed = syn::parse_file(&text(file)).expect("Rust");
    for item in parsed.items.iter().filter(|item| is_test_item(item)) {
        let syn::Item::Mod(syn::ItemMod { ident, content: None, attrs, .. }) = item else {
            continue;
        };
        let told = attrs.iter().filter(|a| a.path().is_ident("path")).find_map(told_place);
        let place = told.unwrap_or_else(|| format!("{ident}.rs"));
        let says = ["tests.rs", "testing.rs"].iter().any(|end| place.ends_with(end));
        if !says && !place.contains("tests/") {
            misplaced.insert(format!("{}: {place}", file.display()));
        }
    }
}

/// So that nobody need look into a file to know whether it is of the product.
#[test]
fn files_that_only_tests_have_stand_in_tests() {
    let mut misplaced = BTreeSet::new();
    let all = files("crates", &[".rs"]).into_iter().chain(files("bench", &[".rs"]));
    all.for_each(|file| note_tests(&file, &mut misplaced));
    assert!(misplaced.is_empty(), "neither in tests.rs nor below tests/: {misplaced:#?}");
}

#[test]
fn a_type_name_is_found_once() {
    let mut twice = BTreeSet::new();
    for Crate { name, modules } in crates() {
        let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for module in modules.values() {
            // Two systems may have a type each, of which one is compiled.
            let items = module.items.iter().filter(|i| !attributes(i).iter().any(is_choice));
            for ty in items.filter_map(seen_type) {
                found.entry(ty).or_default().push(&module.file);
            }
        }
        let many = found.into_iter().filter(|(_, files)| files.len() > 1);
        twice.extend(many.map(|(ty, files)| format!("{name} {ty}: {}", files.join(" "))));
    }
    assert!(twice.is_empty(), "types that other files see, with one name in a crate: {twice:#?}");
}

/// Whether an attribute chooses what is compiled.
fn is_choice(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg")
}

#[test]
fn modules_do_not_import_in_a_circle() {
    let circles: Vec<String> = crates().iter().flat_map(in_circles).collect();
    assert!(circles.is_empty(), "files that import each other in a circle: {circles:#?}");
}
