//! Splits a label selector into tokens.

/// One token; its text is kept for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    End,
    Open,
    Close,
    Comma,
    Not,
    Equals,
    NotEquals,
    GreaterThan,
    LessThan,
    In,
    NotIn,
    Word,
}

/// The next token of `rest`, and what follows it.
pub(super) fn next(rest: &str) -> (Token<'_>, &str) {
    let rest = rest.trim_start_matches(is_space);
    if rest.is_empty() {
        let kind = TokenKind::End;
        return (Token { kind, text: "" }, rest);
    }
    let (kind, length) = symbol(rest).unwrap_or_else(|| word(rest));
    let (text, rest) = rest.split_at(length);
    (Token { kind, text }, rest)
}

/// The longest symbol that `rest` begins with.
fn symbol(rest: &str) -> Option<(TokenKind, usize)> {
    let kind = match rest.as_bytes() {
        [b'=', b'=', ..] => return Some((TokenKind::Equals, 2)),
        [b'!', b'=', ..] => return Some((TokenKind::NotEquals, 2)),
        [b'=', ..] => TokenKind::Equals,
        [b'!', ..] => TokenKind::Not,
        [b'(', ..] => TokenKind::Open,
        [b')', ..] => TokenKind::Close,
        [b',', ..] => TokenKind::Comma,
        [b'>', ..] => TokenKind::GreaterThan,
        [b'<', ..] => TokenKind::LessThan,
        _ => return None,
    };
    Some((kind, 1))
}

fn word(rest: &str) -> (TokenKind, usize) {
    let length = rest
        .find(|character| is_space(character) || "=!(),><".contains(character))
        .unwrap_or(rest.len());
    let kind = match &rest[..length] {
        "in" => TokenKind::In,
        "notin" => TokenKind::NotIn,
        _ => TokenKind::Word,
    };
    (kind, length)
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}
