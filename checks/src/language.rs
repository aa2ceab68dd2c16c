//! Finds prose that breaks the rules of `docs/style.md`.
//!
//! The rules look at rustdoc, at comments, at string literals of at least two words (log lines,
//! errors, help, assertions) and at Markdown; code in prose, between backquotes or in a fence, is
//! left alone. Each [`Finding`] names its place, its rule, and what to write instead.

mod code;
mod exceptions;
mod prose;
mod words;

use std::fmt;

pub use exceptions::Exceptions;

use crate::Source;
use crate::lexer::lex;
use prose::{Block, Origin};

/// One place that breaks one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path of the file from the repository's root.
    pub path: String,
    /// Line, from 1.
    pub line: usize,
    /// Name of the rule.
    pub rule: &'static str,
    /// The words that were found.
    pub found: String,
    /// Advice on the wording.
    pub hint: String,
}

/// Most characters in a line of code.
const CODE_WIDTH: usize = 100;

/// Most characters in a line of Markdown.
const PROSE_WIDTH: usize = 120;

/// Returns what breaks a rule in `source`, in the order of its lines.
pub fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |line, rule, found: &str, hint: &str| {
        let (path, found, hint) = (source.path.clone(), found.to_owned(), hint.to_owned());
        findings.push(Finding { path, line, rule, found, hint });
    };
    let blocks = match source.path.rsplit('.').next() {
        Some("rs") => {
            let tokens = lex(&source.text);
            code::check(&source.text, &tokens, &mut report);
            prose::of_rust(&tokens)
        }
        Some("md") => {
            markdown_width(&source.text, &mut report);
            prose::of_markdown(&source.text)
        }
        Some("go") => prose::of_comments(&source.text, "//"),
        _ => prose::of_comments(&source.text, "#"),
    };
    for block in &blocks {
        check_block(block, &mut report);
    }
    findings.sort();
    findings
}

fn check_block(block: &Block, report: &mut impl FnMut(usize, &'static str, &str, &str)) {
    if matches!(block.origin, Origin::Doc)
        && let Some(word) = block.words.first()
        && let Some(hint) = words::bad_start(&word.text)
    {
        report(word.line, "doc-start", &word.text, hint);
    }
    for found in words::search(&block.words) {
        report(found.line, found.rule, &found.text, found.hint);
    }
    if matches!(block.origin, Origin::Log) {
        let text = block.text.trim_end();
        if text.ends_with('.') && !text.ends_with("..") {
            report(block.line, "log-stop", text, "a log line or an error has no full stop");
        }
    }
}

/// Reports lines of Markdown that are too long. Code, tables and links may be as long as they are.
fn markdown_width(text: &str, report: &mut impl FnMut(usize, &'static str, &str, &str)) {
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        let is_free = in_fence || line.trim_start().starts_with('|');
        let width = prose::without_link_targets(line).chars().count();
        if !is_free && width > PROSE_WIDTH {
            report(
                index + 1,
                "width",
                &format!("{width} columns"),
                "break the line at 120 columns",
            );
        }
    }
}

// === impl Finding ===

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, found, hint } = self;
        write!(f, "{path}:{line}: {rule}: \"{found}\": {hint}")
    }
}

#[cfg(test)]
mod tests;
