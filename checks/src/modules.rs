//! Ranks of the modules of one crate: a module uses only modules of a lower rank.
//!
//! A path that starts with `crate::`, or with as many `super::` as the file is deep, is an arrow
//! from the top-level module of its file to the top-level module that it names. A name that
//! `lib.rs` re-exports counts as its module. Children belong to their parent, `lib.rs` and
//! `main.rs` may use everything, and what is compiled only for tests is left out.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::Source;
use crate::lexer::Kind;
use crate::lexer::Token;
use crate::lexer::lex;

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

struct File<'a> {
    path: &'a str,
    /// Path of the module: `["store", "slab"]` for `store/slab.rs`, empty for `lib.rs`.
    module: Vec<&'a str>,
    /// The tokens that are compiled outside of tests, without comments.
    tokens: Vec<Token<'a>>,
}

// === impl Crate ===

impl<'a> Crate<'a> {
    fn read(folder: &str, sources: &'a [Source]) -> Self {
        let mut files = Vec::new();
        let mut test_files = BTreeSet::new();
        for source in sources {
            let relative =
                source.path.strip_prefix(folder).map(|path| path.trim_start_matches('/'));
            let Some(path) = relative.and_then(|path| path.strip_suffix(".rs")) else { continue };
            if path.starts_with("bin/") {
                continue;
            }
            let module: Vec<_> = match path {
                "lib" | "main" => Vec::new(),
                _ => path.split('/').collect(),
            };
            let (tokens, tests) = without_tests(&source.text);
            let own = module.join("/");
            test_files.extend(tests.iter().map(|test| format!("{own}/{test}")));
            files.push(File { path: &source.path, module, tokens });
        }
        files.retain(|file| {
            let prefix = |depth: usize| {
                let (parent, own) = file.module[..=depth].split_at(depth);
                format!("{}/{}", parent.join("/"), own[0])
            };
            !(0..file.module.len()).any(|depth| test_files.contains(&prefix(depth)))
        });
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
            arrows.extend(file.root_names().into_iter().filter_map(|(name, line)| {
                let to = self.exports.get(name).map_or(name, String::as_str);
                let is_arrow = to != from && self.modules.contains(to);
                let (from, to, file) = (from.to_owned(), to.to_owned(), file.path.to_owned());
                is_arrow.then_some(Arrow { from, to, file, line })
            }));
        }
        arrows
    }
}

// === impl File ===

impl<'a> File<'a> {
    /// Returns the names that paths of this file take from the root of the crate.
    fn root_names(&self) -> Vec<(&'a str, usize)> {
        let mut names = Vec::new();
        let mut index = 0;
        while index < self.tokens.len() {
            let after = self.after_root(index);
            match after {
                Some(after) => {
                    names.extend(heads(&self.tokens[after..]));
                    index = after;
                }
                None => index += 1,
            }
        }
        names
    }

    /// Returns the index behind `crate::`, or behind enough `super::`, if such a path starts here.
    fn after_root(&self, index: usize) -> Option<usize> {
        let is_path = |at: usize, word: &str| {
            self.tokens.get(at).is_some_and(|token| token.is(word))
                && self.tokens.get(at + 1).is_some_and(|token| token.is(":"))
                && self.tokens.get(at + 2).is_some_and(|token| token.is(":"))
        };
        if is_path(index, "crate") {
            return Some(index + 3);
        }
        let depths = 0..self.module.len();
        let supers = depths.take_while(|depth| is_path(index + 3 * depth, "super")).count();
        (supers == self.module.len()).then_some(index + 3 * supers)
    }
}

/// Returns the first names of the path, or of the paths between braces, that `tokens` start with.
fn heads<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, usize)> {
    let Some(first) = tokens.first() else { return Vec::new() };
    if !first.is("{") {
        return vec![(first.text, first.line)];
    }
    let mut heads = Vec::new();
    let mut depth = 0;
    let mut begins = false;
    for token in tokens {
        if token.is("}") {
            depth -= 1;
        } else if begins && depth == 1 {
            heads.push((token.text, token.line));
        }
        depth += usize::from(token.is("{"));
        begins = token.is("{") || token.is(",");
        if depth == 0 {
            break;
        }
    }
    heads
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

/// Returns the code of `text` without its test modules, and the names of those in other files.
fn without_tests(text: &str) -> (Vec<Token<'_>>, Vec<String>) {
    let tokens: Vec<_> = lex(text).into_iter().filter(|token| !is_comment(*token)).collect();
    let mut kept = Vec::new();
    let mut files = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        let attribute = attribute(&tokens[index..]);
        if is_for_tests(attribute) {
            let item = &tokens[index + attribute.len()..];
            let length = item_length(item);
            if let Some(at) = item[..length].iter().position(|token| token.is("mod")) {
                files.extend(item.get(at + 1).map(|name| name.text.to_owned()));
            }
            index += attribute.len() + length;
        } else {
            kept.push(tokens[index]);
            index += 1;
        }
    }
    (kept, files)
}

fn is_comment(token: Token<'_>) -> bool {
    matches!(token.kind, Kind::Comment | Kind::OuterDoc | Kind::InnerDoc)
}

/// Returns the attribute that `tokens` start with, or nothing.
fn attribute<'a, 'b>(tokens: &'b [Token<'a>]) -> &'b [Token<'a>] {
    if !(tokens[0].is("#") && tokens.get(1).is_some_and(|token| token.is("["))) {
        return &[];
    }
    let end = tokens.iter().position(|token| token.is("]"));
    end.map_or(&[], |end| &tokens[..=end])
}

fn is_for_tests(attribute: &[Token<'_>]) -> bool {
    let has = |word| attribute.iter().any(|token| token.is(word));
    has("cfg") && has("test") && !has("not") && !has("any")
}

/// Returns the number of tokens of the item that `tokens` start with: up to `;` or a closing brace.
fn item_length(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.text {
            _ if token.kind != Kind::Punctuation => {}
            "{" | "(" | "[" => depth += 1,
            "}" if depth == 1 => return index + 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            ";" if depth == 0 => return index + 1,
            _ => {}
        }
    }
    tokens.len()
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
