//! The product code of a crate, parsed: its files as modules, without their tests.

use crate::common::{root, text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The product code of a crate.
pub(crate) struct Crate {
    pub(crate) name: String,
    /// By module path: `["ops", "scan"]` is `ops/scan.rs`.
    pub(crate) modules: BTreeMap<Vec<String>, Module>,
}

/// A file of it.
pub(crate) struct Module {
    /// Below the crate's `src`, such as `ops/scan.rs`.
    pub(crate) file: String,
    pub(crate) items: Vec<syn::Item>,
}

/// Parses the product code of all crates.
pub(crate) fn crates() -> Vec<Crate> {
    let folders = std::fs::read_dir(root().join("crates")).expect("crates/");
    let folders = folders.map(|entry| entry.expect("an entry of crates/").path());
    let mut folders: Vec<_> = folders.chain([root().join("bench")]).collect();
    folders.sort();
    let parse = |folder: PathBuf| {
        let source = folder.join("src");
        let mut modules = BTreeMap::new();
        for start in ["lib.rs", "main.rs"] {
            if source.join(start).exists() {
                load(&source, start.to_owned(), Vec::new(), &mut modules);
            }
        }
        assert!(!modules.is_empty(), "no code in {}", folder.display());
        let name = folder.file_name().expect("a folder's name");
        Crate { name: name.to_string_lossy().into_owned(), modules }
    };
    folders.into_iter().map(parse).collect()
}

/// Parses a file and those of its modules.
fn load(
    source: &Path,
    file: String,
    path: Vec<String>,
    modules: &mut BTreeMap<Vec<String>, Module>,
) {
    let parsed = syn::parse_file(&text(source.join(&file)));
    let parsed = parsed.unwrap_or_else(|e| panic!("{file}: {e}"));
    let items: Vec<_> = parsed.items.into_iter().filter(|i| !is_test_item(i)).collect();
    for item in &items {
        let syn::Item::Mod(syn::ItemMod { ident, content: None, .. }) = item else { continue };
        let mut path = path.clone();
        path.push(ident.to_string());
        // Another system's file of the same name.
        if modules.contains_key(&path) {
            continue;
        }
        let stem = path.join("/");
        let places = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
        let file = places.into_iter().find(|file| source.join(file).exists());
        load(source, file.unwrap_or_else(|| panic!("no file of {stem}")), path, modules);
    }
    // A binary beside a library is a module of its own name.
    let is_binary = path.is_empty() && modules.contains_key(&path);
    let path = if is_binary { vec!["main".to_owned()] } else { path };
    modules.insert(path, Module { file, items });
}

/// Whether an attribute keeps what it stands at for tests.
fn is_test_only(attribute: &syn::Attribute) -> bool {
    let words = match &attribute.meta {
        syn::Meta::Path(path) if path.is_ident("test") => return true,
        syn::Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string(),
        _ => return false,
    };
    let words = words.replace(' ', "");
    words == "test" || words.starts_with("all(test") || words.starts_with("any(test,")
}

/// The attributes of an item.
pub(crate) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(i) => &i.attrs,
        syn::Item::Enum(i) => &i.attrs,
        syn::Item::Fn(i) => &i.attrs,
        syn::Item::Impl(i) => &i.attrs,
        syn::Item::Macro(i) => &i.attrs,
        syn::Item::Mod(i) => &i.attrs,
        syn::Item::Static(i) => &i.attrs,
        syn::Item::Struct(i) => &i.attrs,
        syn::Item::Trait(i) => &i.attrs,
        syn::Item::Type(i) => &i.attrs,
        syn::Item::Union(i) => &i.attrs,
        syn::Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// Whether only tests have an item.
pub(crate) fn is_test_item(item: &syn::Item) -> bool {
    attributes(item).iter().any(is_test_only)
}
