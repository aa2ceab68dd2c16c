//! Ranks of the modules of one crate: a module uses only modules of a lower rank.
//!
//! A path that starts with `crate::`, or with as many `super::` as the file is deep, is an arrow
//! from the top-level module of its file to the top-level module that it names. A name that
//! `lib.rs` re-exports counts as its module. Children belong to their parent, `lib.rs` and
//! `main.rs` may use everything, and what is compiled only for tests is left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::File;
use crate::lexer::{Kind, Token};
use crate::{Source, imports};

/// An arrow between two top-level modules of a crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    /// Module that holds the path.
    pub from: String,
    /// Module that the path names.
    pub to: String,
    /// File that holds the path.
    pub file: String,
    /// Line of the path.
    pub line: usize,
}

/// Returns what contradicts `ranks` in the crate whose `src` folder is `folder`.
///
/// `ranks` lists the top-level modules, the lowest rank first. A module uses only lower ranks:
/// neither a higher one nor another module of its own. Modules that are not listed, and names that
/// are no module, are reported too.
pub fn violations(folder: &str, sources: &[Source], ranks: &[&[&str]]) -> Vec<String> {
    let krate = Crate::read(folder, sources);
    let rank = |module: &str| ranks.iter().position(|rank| rank.contains(&module));
    let listed: BTreeSet<&str> = ranks.iter().flat_map(|rank| rank.iter().copied()).collect();
    let present: BTreeSet<&str> = krate.modules.iter().map(String::as_str).collect();
    let unknown = present.difference(&listed).map(|module| format!("{module} has no rank"));
    let absent = listed.difference(&present).map(|module| format!("there is no module {module}"));
    let mut violations: Vec<String> = unknown.chain(absent).collect();
    for arrow in krate.arrows() {
        let Arrow { from, to, file, line } = &arrow;
        if rank(to).zip(rank(from)).is_some_and(|(to, from)| to >= from) {
            violations.push(format!("{file}:{line}: {from} may not use {to}"));
        }
    }
    violations
}

/// The sources of one crate.
struct Crate<'a> {
    modules: BTreeSet<String>,
    /// Names that `lib.rs` re-exports, with the module that each comes from.
    exports: BTreeMap<String, String>,
    files: Vec<File<'a>>,
}

// === impl Crate ===

impl<'a> Crate<'a> {
    fn read(folder: &str, sources: &'a [Source]) -> Self {
        let files = imports::files(folder, sources);
        let modules = files.iter().filter_map(|file| file.module.first());
        let modules: BTreeSet<String> = modules.map(|module| (*module).to_owned()).collect();
        let root = files.iter().filter(|file| file.module.is_empty());
        let exports = root.flat_map(|file| exports(&file.tokens)).collect();
        Self { modules, exports, files }
    }

    fn arrows(&self) -> BTreeSet<Arrow> {
        let mut arrows = BTreeSet::new();
        for file in self.files.iter().filter(|file| !file.module.is_empty()) {
            let from = file.module[0];
            arrows.extend(file.paths().into_iter().filter_map(|path| {
                let name = *path.names.first()?;
                let to = self.exports.get(name).map_or(name, String::as_str);
                let is_arrow = to != from && self.modules.contains(to);
                let (from, to, file) = (from.to_owned(), to.to_owned(), file.path.to_owned());
                is_arrow.then_some(Arrow { from, to, file, line: path.line })
            }));
        }
        arrows
    }
}

/// Returns the names that the root re-exports (`pub use store::{Entry, Store};`) with their module.
fn exports(tokens: &[Token<'_>]) -> Vec<(String, String)> {
    let mut exports = Vec::new();
    for (index, _) in tokens.iter().enumerate().filter(|(_, token)| token.is("use")) {
        let item: Vec<_> = tokens[index + 1..].iter().take_while(|token| !token.is(";")).collect();
        let is_relative = item.first().is_some_and(|token| token.is("crate") || token.is("self"));
        let path = if is_relative { item.get(3..).unwrap_or_default() } else { &item };
        let Some((module, names)) = path.split_first() else { continue };
        let words = names.iter().filter(|token| token.kind == Kind::Word);
        exports.extend(words.map(|name| (name.text.to_owned(), module.text.to_owned())));
    }
    exports
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANKS: &[&[&str]] = &[&["low", "base"], &["high"]];

    fn check(files: &[(&str, &str)]) -> Vec<String> {
        let present = [("lib", ""), ("low", ""), ("base", ""), ("high", "")];
        let absent =
            present.iter().filter(|(name, _)| !files.iter().any(|(other, _)| other == name));
        let sources: Vec<_> = files
            .iter()
            .chain(absent)
            .map(|(name, text)| Source {
                path: format!("c/src/{name}.rs"),
                text: (*text).to_owned(),
            })
            .collect();
        violations("c/src", &sources, RANKS)
    }

    #[test]
    fn arrow_up_is_reported_with_its_place() {
        let found = check(&[("low", "\nuse crate::high::High;")]);
        assert_eq!(found, ["c/src/low.rs:2: low may not use high"]);
    }

    #[test]
    fn arrow_down_and_use_of_itself_are_allowed() {
        assert!(check(&[("high", "use crate::low::Low;\nuse crate::high::part;")]).is_empty());
    }

    #[test]
    fn modules_of_one_rank_do_not_use_each_other() {
        assert_eq!(check(&[("low", "use crate::base;")]), ["c/src/low.rs:1: low may not use base"]);
    }

    #[test]
    fn paths_in_expressions_and_braces_count() {
        let expected = ["c/src/low.rs:1: low may not use high"];
        assert_eq!(check(&[("low", "fn f() { crate::high::g() }")]), expected);
        assert_eq!(check(&[("low", "use crate::{low::A, high::{B, C}};")]), expected);
        assert_eq!(check(&[("low", "use super::high::A;")]), expected);
    }

    #[test]
    fn children_belong_to_their_parent() {
        let expected = ["c/src/low/part.rs:1: low may not use high"];
        assert_eq!(check(&[("low/part", "use crate::high;")]), expected);
        assert_eq!(check(&[("low/part", "use super::super::high;")]), expected);
        assert!(check(&[("low/part", "use super::high;")]).is_empty());
        assert!(check(&[("high/part", "use crate::low::part;")]).is_empty());
    }

    #[test]
    fn name_at_the_root_counts_as_its_module() {
        let lib = ("lib", "pub use high::{High, Higher};\npub use low::Low;");
        let found = check(&[lib, ("low", "use crate::Higher;\nuse crate::Low;")]);
        assert_eq!(found, ["c/src/low.rs:1: low may not use high"]);
    }

    #[test]
    fn tests_may_use_everything() {
        let inline = "#[cfg(test)]\nmod tests { use crate::high; }\nuse crate::high;";
        assert_eq!(check(&[("low", inline)]), ["c/src/low.rs:3: low may not use high"]);
        let file = [("low", "#[cfg(test)]\nmod tests;"), ("low/tests", "use crate::high;")];
        assert!(check(&file).is_empty());
        let nested = [("low", "#[cfg(test)]\nmod tests;"), ("low/tests/a", "use crate::high;")];
        assert!(check(&nested).is_empty());
    }

    #[test]
    fn comments_and_strings_are_no_arrows() {
        assert!(check(&[("low", "// crate::high\nconst A: &str = \"crate::high\";")]).is_empty());
    }

    #[test]
    fn table_lists_each_module_once() {
        let found = check(&[("new", "")]);
        assert_eq!(found, ["new has no rank"]);
        let sources = [Source { path: "c/src/low.rs".to_owned(), text: String::new() }];
        let found = violations("c/src", &sources, RANKS);
        assert_eq!(found, ["there is no module base", "there is no module high"]);
    }
}
