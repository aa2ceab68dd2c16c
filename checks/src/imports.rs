//! The modules of one crate, and the paths that each names.
//!
//! What is compiled only for tests is left out.

use std::collections::BTreeSet;

use crate::Source;
use crate::lexer::{Kind, Token, lex};

/// A source file of a crate.
pub(crate) struct File<'a> {
    /// Path from the root of the repository.
    pub(crate) path: &'a str,
    /// Path of the module: `["store", "slab"]` for `store/slab.rs`, empty for `lib.rs`.
    pub(crate) module: Vec<&'a str>,
    /// The tokens that are compiled outside of tests, without comments.
    pub(crate) tokens: Vec<Token<'a>>,
}

/// A path in a source file that starts with `crate`, `self` or `super`.
pub(crate) struct Path<'a> {
    /// Names from the root of the crate.
    pub(crate) names: Vec<&'a str>,
    /// Line of its last name.
    pub(crate) line: usize,
}

/// Returns the files of the crate whose `src` folder is `folder`.
pub(crate) fn files<'a>(folder: &str, sources: &'a [Source]) -> Vec<File<'a>> {
    let mut files = Vec::new();
    let mut test_files = BTreeSet::new();
    for source in sources {
        let relative = source.path.strip_prefix(folder).map(|path| path.trim_start_matches('/'));
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
    files
}

// === impl File ===

impl<'a> File<'a> {
    /// Returns the paths of the file, those between braces one by one.
    pub(crate) fn paths(&self) -> Vec<Path<'a>> {
        let mut paths = Vec::new();
        let mut index = 0;
        while index < self.tokens.len() {
            index = match self.start(index) {
                Some((names, after)) => self.read(after, &names, &mut paths).max(index + 1),
                None => index + 1,
            };
        }
        paths
    }

    /// Returns the module that `crate::`, `self::` or some `super::` name, and the index behind
    /// them, if a path starts here.
    fn start(&self, index: usize) -> Option<(Vec<&'a str>, usize)> {
        if self.is_before_colons(index, "crate") {
            return Some((Vec::new(), index + 3));
        }
        if self.is_before_colons(index, "self") {
            return Some((self.module.clone(), index + 3));
        }
        let depths = 0..self.module.len();
        let supers = depths.take_while(|depth| self.is_before_colons(index + 3 * depth, "super"));
        let supers = supers.count();
        let parent = self.module[..self.module.len() - supers].to_vec();
        (supers > 0).then_some((parent, index + 3 * supers))
    }

    fn is_before_colons(&self, index: usize, word: &str) -> bool {
        self.is(index, word) && self.is(index + 1, ":") && self.is(index + 2, ":")
    }

    fn is(&self, index: usize, text: &str) -> bool {
        self.tokens.get(index).is_some_and(|token| token.is(text))
    }

    /// Reads the rest of a path, or of several between braces; returns the index behind it.
    fn read(&self, mut index: usize, names: &[&'a str], paths: &mut Vec<Path<'a>>) -> usize {
        let Some(token) = self.tokens.get(index) else { return index };
        if token.is("{") {
            index += 1;
            while index < self.tokens.len() && !self.is(index, "}") {
                index = self.read(index, names, paths).max(index + 1);
            }
            return index + 1;
        }
        if token.kind != Kind::Word || token.is("self") {
            paths.push(Path { names: names.to_vec(), line: token.line });
            return index;
        }
        let mut names = names.to_vec();
        names.push(token.text);
        if self.is_before_colons(index, token.text) {
            return self.read(index + 3, &names, paths);
        }
        paths.push(Path { names, line: token.line });
        // A name after `as` is no path of its own.
        if self.is(index + 1, "as") { index + 3 } else { index + 1 }
    }
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
