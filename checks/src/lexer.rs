//! A lexer for Rust source: as much of the language as is needed to separate comments, string
//! literals and code.

/// The kind of a [`Token`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A line of an outer doc comment (`///`), without the slashes.
    OuterDoc,
    /// A line of an inner doc comment (`//!`), without the slashes.
    InnerDoc,
    /// A line comment or a block comment, without its delimiters.
    Comment,
    /// The content of a string literal, with its escapes.
    Text,
    /// The content of a raw string literal.
    RawText,
    /// An identifier, a keyword, a number, a lifetime or a character literal.
    Word,
    /// One character of punctuation.
    Punctuation,
}

/// One piece of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Kind of the piece.
    pub kind: Kind,
    /// The piece itself.
    pub text: &'a str,
    /// The line on which the piece starts. The first line is 1.
    pub line: usize,
}

/// Splits `source` into tokens.
///
/// Source that does not compile gives some tokens, never an error: an open string or comment
/// reaches to the end.
pub fn lex(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { source, at: 0, line: 1, tokens: Vec::new() };
    while lexer.at < source.len() {
        lexer.step();
    }
    lexer.tokens
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: usize,
    tokens: Vec<Token<'a>>,
}

// === impl Token ===

impl Token<'_> {
    /// Returns true for the word or the punctuation `text`.
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Punctuation) && self.text == text
    }
}

// === impl Lexer ===

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    /// Adds a token of `length` bytes, of which `content` is the part that is kept.
    fn take(&mut self, kind: Kind, length: usize, content: std::ops::Range<usize>) {
        let whole = &self.rest()[..length];
        self.tokens.push(Token { kind, text: &whole[content], line: self.line });
        self.line += whole.matches('\n').count();
        self.at += length;
    }

    fn step(&mut self) {
        let rest = self.rest();
        let first = rest.chars().next().expect("the rest is not empty");
        if first.is_whitespace() {
            self.line += usize::from(first == '\n');
            self.at += first.len_utf8();
        } else if rest.starts_with("//") {
            self.line_comment();
        } else if rest.starts_with("/*") {
            self.block_comment();
        } else if !self.string() {
            self.word_or_punctuation(first);
        }
    }

    fn line_comment(&mut self) {
        let comment = self.rest().lines().next().unwrap_or_default();
        let length = comment.len();
        let (kind, skip) = match comment.as_bytes().get(2) {
            Some(b'!') => (Kind::InnerDoc, 3),
            Some(b'/') if !comment.starts_with("////") => (Kind::OuterDoc, 3),
            _ => (Kind::Comment, 2),
        };
        self.take(kind, length, skip..length);
    }

    fn block_comment(&mut self) {
        let rest = self.rest();
        let mut depth = 0;
        let mut end = 0;
        while end < rest.len() {
            if rest[end..].starts_with("/*") {
                depth += 1;
                end += 2;
            } else if rest[end..].starts_with("*/") {
                depth -= 1;
                end += 2;
            } else {
                end += rest[end..].chars().next().map_or(1, char::len_utf8);
            }
            if depth == 0 {
                break;
            }
        }
        let closed = end - if depth == 0 { 2 } else { 0 };
        self.take(Kind::Comment, end, 2..closed.max(2));
    }

    /// Takes a string literal, if one starts here.
    fn string(&mut self) -> bool {
        let rest = self.rest();
        let Some(prefix) = string_prefix(rest) else { return false };
        let raw = prefix.ends_with('r');
        let after = &rest[prefix.len()..];
        let hashes = after.len() - after.trim_start_matches('#').len();
        let start = prefix.len() + hashes + 1;
        let (end, length) = if raw {
            let close = format!("\"{}", "#".repeat(hashes));
            let end = rest[start..].find(&close).map_or(rest.len(), |found| start + found);
            (end, (end + close.len()).min(rest.len()))
        } else {
            let end = closing_quote(rest, start);
            (end, (end + 1).min(rest.len()))
        };
        self.take(if raw { Kind::RawText } else { Kind::Text }, length, start..end);
        true
    }

    fn word_or_punctuation(&mut self, first: char) {
        let rest = self.rest();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        if first == '\'' {
            let lifetime = || rest[1..].find(|c| !is_word(c)).map_or(rest.len(), |end| end + 1);
            let length = character(rest).unwrap_or_else(lifetime);
            self.take(Kind::Word, length, 0..length);
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            self.take(Kind::Word, length, 0..length);
        } else {
            let length = first.len_utf8();
            self.take(Kind::Punctuation, length, 0..length);
        }
    }
}

/// Returns the letters before the quote of the string literal that `text` starts with.
fn string_prefix(text: &str) -> Option<&'static str> {
    let is_prefix = |prefix: &&str| {
        let rest = text.strip_prefix(prefix).unwrap_or_default();
        let rest = if prefix.ends_with('r') { rest.trim_start_matches('#') } else { rest };
        rest.starts_with('"')
    };
    ["br", "cr", "r", "b", "c", ""].into_iter().find(is_prefix)
}

/// Returns the index of the quote that ends a string literal whose content begins at `start`.
fn closing_quote(text: &str, start: usize) -> usize {
    let mut escaped = false;
    for (index, c) in text[start..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return start + index,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of the character literal at the start of `text`; `None` for a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut inside = text[1..].chars();
    let first = inside.next()?;
    if first == '\\' {
        let escape = 2 + inside.next()?.len_utf8();
        return text[escape..].find('\'').map(|end| escape + end + 1);
    }
    (inside.next() == Some('\'')).then(|| 2 + first.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<(Kind, &str, usize)> {
        lex(source).iter().map(|token| (token.kind, token.text, token.line)).collect()
    }

    #[test]
    fn comments_keep_their_kind_and_line() {
        let source = "//! In.\n/// Out.\n// Plain.\n//// Plain too.\n/* a /* b */ c */ x";
        assert_eq!(
            kinds(source),
            [
                (Kind::InnerDoc, " In.", 1),
                (Kind::OuterDoc, " Out.", 2),
                (Kind::Comment, " Plain.", 3),
                (Kind::Comment, "// Plain too.", 4),
                (Kind::Comment, " a /* b */ c ", 5),
                (Kind::Word, "x", 5),
            ]
        );
    }

    #[test]
    fn strings_hide_comments_and_quotes() {
        let source = "\"a // \\\" b\" r#\"c \" // d\"# b\"e\"\nf";
        assert_eq!(
            kinds(source),
            [
                (Kind::Text, "a // \\\" b", 1),
                (Kind::RawText, "c \" // d", 1),
                (Kind::Text, "e", 1),
                (Kind::Word, "f", 2),
            ]
        );
    }

    #[test]
    fn characters_and_lifetimes_are_words() {
        let words: Vec<_> = lex("'a' '\\'' '\"' &'static 'ä' x").iter().map(|t| t.text).collect();
        assert_eq!(words, ["'a'", "'\\''", "'\"'", "&", "'static", "'ä'", "x"]);
    }

    #[test]
    fn unterminated_token_extends_to_the_end_of_the_file() {
        assert_eq!(kinds("\"open"), [(Kind::Text, "open", 1)]);
        assert_eq!(kinds("/* open"), [(Kind::Comment, " open", 1)]);
        assert_eq!(kinds("r#\"open\""), [(Kind::RawText, "open\"", 1)]);
    }
}
