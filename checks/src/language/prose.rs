//! Prose, cut out of Rust, Markdown and scripts.

use crate::lexer::{Kind, Token};

/// The place that a block of prose was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Doc,
    Comment,
    /// The text of a log line or of an error.
    Log,
    /// Any other string literal.
    Text,
    Markdown,
}

/// Consecutive lines of one kind.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) origin: Origin,
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) words: Vec<Word>,
}

/// One word, in lower case. Code between backquotes is the word `` ` ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) line: usize,
    /// The word begins a sentence.
    pub(super) starts: bool,
    /// Punctuation or the block's end follows.
    pub(super) ends: bool,
}

/// Splits text into words, character by character.
#[derive(Default)]
struct Splitter {
    words: Vec<Word>,
    word: String,
    line: usize,
    starts: bool,
    in_code: bool,
}

/// Macros whose string literals are log lines.
const LOG_MACROS: &[&str] = &["trace", "debug", "info", "warn", "error"];

pub(super) fn of_rust(tokens: &[Token<'_>]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines: Vec<(usize, &str)> = Vec::new();
    let mut before: Option<Token<'_>> = None;
    for (index, &token) in tokens.iter().enumerate() {
        let continues = before.is_some_and(|last| {
            last.kind == token.kind && last.line + 1 == token.line && is_comment(token.kind)
        });
        if !continues && let Some(last) = before.take() {
            flush(&mut blocks, last.kind, &mut lines);
        }
        if is_comment(token.kind) {
            lines.push((token.line, token.text));
            before = Some(token);
        } else if matches!(token.kind, Kind::Text | Kind::RawText) {
            let origin = if is_log(&tokens[..index]) { Origin::Log } else { Origin::Text };
            let text = unescaped(token);
            let lines = text.split('\n').enumerate();
            let lines: Vec<_> = lines.map(|(n, text)| (token.line + n, text)).collect();
            blocks.extend(block(origin, &lines).filter(|block| block.words.len() > 1));
        }
    }
    if let Some(last) = before {
        flush(&mut blocks, last.kind, &mut lines);
    }
    blocks
}

pub(super) fn of_markdown(text: &str) -> Vec<Block> {
    let lines: Vec<_> = text.lines().enumerate().map(|(n, line)| (n + 1, line)).collect();
    paragraphs(Origin::Markdown, &lines)
}

/// Prose of a script: lines that begin with `marker`.
pub(super) fn of_comments(text: &str, marker: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let comment = line
            .trim_start()
            .strip_prefix(marker)
            .or_else(|| line.split_once(&format!(" {marker} ")).map(|(_, comment)| comment));
        match comment {
            Some(comment) if !comment.starts_with('!') => lines.push((index + 1, comment)),
            _ => blocks.extend(paragraphs(Origin::Comment, &std::mem::take(&mut lines))),
        }
    }
    blocks.extend(paragraphs(Origin::Comment, &lines));
    blocks
}

/// Returns `line` without the targets of its links: they are no words, and cannot be broken.
pub(super) fn without_link_targets(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        kept.push_str(before);
        kept.push(']');
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    let is_address = |word: &&str| !word.trim_start_matches(['<', '(']).starts_with("http");
    if kept.contains("http") {
        kept = kept.split(' ').filter(is_address).collect::<Vec<_>>().join(" ");
    }
    kept
}

fn is_comment(kind: Kind) -> bool {
    matches!(kind, Kind::OuterDoc | Kind::InnerDoc | Kind::Comment)
}

/// Returns true if the string literal after `tokens` is the text of a log line or of an error.
fn is_log(tokens: &[Token<'_>]) -> bool {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().rev().take(60) {
        match token.text {
            ")" | "}" | "]" if token.kind == Kind::Punctuation => depth += 1,
            "(" | "{" | "[" if token.kind == Kind::Punctuation && depth > 0 => depth -= 1,
            "(" if token.kind == Kind::Punctuation => {
                let text = |back: usize| index.checked_sub(back).map_or("", |at| tokens[at].text);
                let is_macro = text(1) == "!" && LOG_MACROS.contains(&text(2));
                return is_macro || (text(1) == "error" && text(2) == "[" && text(3) == "#");
            }
            ";" | "{" if token.kind == Kind::Punctuation => return false,
            _ => {}
        }
    }
    false
}

fn flush(blocks: &mut Vec<Block>, kind: Kind, lines: &mut Vec<(usize, &str)>) {
    let origin = if kind == Kind::Comment { Origin::Comment } else { Origin::Doc };
    let mut parts = paragraphs(origin, lines);
    // Only the first paragraph of rustdoc is its summary.
    for part in parts.iter_mut().skip(1).filter(|_| origin == Origin::Doc) {
        part.origin = Origin::Comment;
    }
    blocks.append(&mut parts);
    lines.clear();
}

/// Splits lines at empty ones, at headings and at fences; leaves out what is between fences.
fn paragraphs(origin: Origin, lines: &[(usize, &str)]) -> Vec<Block> {
    let mut found = Vec::new();
    let mut paragraph = Vec::new();
    let mut inside = false;
    for &(number, text) in lines {
        let trimmed = text.trim();
        let is_fence = trimmed.starts_with("```");
        let is_item = ["* ", "- ", "|", "#"].iter().any(|start| trimmed.starts_with(start));
        if trimmed.is_empty() || is_fence || is_item {
            found.extend(block(origin, &std::mem::take(&mut paragraph)));
        }
        inside ^= is_fence;
        if !inside && !is_fence {
            paragraph.push((number, text));
        }
    }
    found.extend(block(origin, &paragraph));
    found
}

fn block(origin: Origin, lines: &[(usize, &str)]) -> Option<Block> {
    let mut splitter = Splitter { starts: true, ..Splitter::default() };
    for &(line, text) in lines {
        splitter.line = line;
        for c in without_link_targets(text).chars().chain([' ']) {
            splitter.step(c);
        }
    }
    splitter.punctuate();
    let text = lines.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n");
    let line = lines.first()?.0;
    let words = splitter.words;
    (!words.is_empty()).then_some(Block { origin, line, text, words })
}

/// Returns the text of a literal with spaces in place of its escapes.
fn unescaped(token: Token<'_>) -> String {
    if token.kind == Kind::RawText {
        return token.text.to_owned();
    }
    let mut text = String::new();
    let mut characters = token.text.chars();
    while let Some(c) = characters.next() {
        if c == '\\' {
            let escaped = characters.next();
            text.push(if escaped == Some('\n') { '\n' } else { ' ' });
        } else {
            text.push(c);
        }
    }
    text
}

// === impl Splitter ===

impl Splitter {
    fn step(&mut self, c: char) {
        let is_part =
            c.is_alphanumeric() || (matches!(c, '\'' | '-' | '_') && !self.word.is_empty());
        match c {
            '`' => self.quote(),
            _ if self.in_code => {}
            _ if is_part => self.word.extend(c.to_lowercase()),
            _ => {
                self.finish();
                if !matches!(c, ' ' | '*' | '"' | '(' | '[' | ']' | '/') {
                    self.punctuate();
                }
                self.starts |= matches!(c, '.' | ':' | '!' | '?' | '|');
            }
        }
    }

    fn quote(&mut self) {
        self.in_code = !self.in_code;
        if self.in_code {
            self.finish();
            self.word.push('`');
            self.finish();
        }
    }

    /// Ends the word that is being read.
    fn finish(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.word);
        let text = text.trim_end_matches(['\'', '-', '_']).to_owned();
        let starts = std::mem::take(&mut self.starts);
        self.words.push(Word { text, line: self.line, starts, ends: false });
    }

    fn punctuate(&mut self) {
        if let Some(word) = self.words.last_mut() {
            word.ends = true;
        }
    }
}
