//! Splits an expression into tokens.

use std::sync::Arc;

use super::error::Issues;
use super::expression::Literal;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Literal(Literal),
    Ident(Arc<str>),
    /// The name of a field in backticks.
    Quoted(Arc<str>),
    /// An operator or a bracket.
    Symbol(&'static str),
    End,
}

const SYMBOLS: [&str; 26] = [
    "&&", "||", "==", "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "+", "-",
    "*", "/", "%", "!", "<", ">", "=", "|",
];

/// Reads the tokens and the byte at which each begins. The last one is [`Token::End`].
pub(super) fn tokens(source: &str, issues: &mut Issues) -> Vec<(usize, Token)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let Some(c) = rest.chars().next() else { break };
        if c.is_ascii_whitespace() || c == '\u{b}' {
            at += 1;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some((token, length)) = read(rest) {
            if matches!(token, Token::Literal(Literal::Double(number)) if number.is_infinite()) {
                issues.add(at, "invalid double literal");
            }
            found.push((at, token));
            at += length;
        } else {
            let shown = unreadable(rest, c);
            issues.add(at, format!("Syntax error: token recognition error at: '{shown}'"));
            at += shown.len();
        }
    }
    found.push((source.len(), Token::End));
    found
}

/// Returns what the lexer cannot read: an unclosed text up to its end, or a character.
fn unreadable(rest: &str, c: char) -> &str {
    if matches!(c, '\'' | '"') {
        let end = rest.find('\n').unwrap_or(rest.len());
        return &rest[..end];
    }
    &rest[..c.len_utf8()]
}

fn read(rest: &str) -> Option<(Token, usize)> {
    if let Some(read) = read_text(rest) {
        return Some(read);
    }
    let c = rest.chars().next()?;
    if c.is_ascii_alphabetic() || c == '_' {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &rest[..end.unwrap_or(rest.len())];
        let token = match word {
            "true" => Token::Literal(Literal::Bool(true)),
            "false" => Token::Literal(Literal::Bool(false)),
            "null" => Token::Literal(Literal::Null),
            "in" => Token::Symbol("in"),
            _ => Token::Ident(word.into()),
        };
        return Some((token, word.len()));
    }
    if c == '`' {
        let name = rest[1..].split('`').next().filter(|name| rest.len() > name.len() + 1)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
        let is_name = !name.is_empty() && name.chars().all(is_plain);
        return is_name.then(|| (Token::Quoted(name.into()), name.len() + 2));
    }
    if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
        return read_number(rest);
    }
    let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol))?;
    // `=` and `|` alone mean nothing.
    (!matches!(symbol, "=" | "|")).then_some((Token::Symbol(symbol), symbol.len()))
}

fn read_number(rest: &str) -> Option<(Token, usize)> {
    if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        let number = u64::from_str_radix(&hex[..end], 16).ok()?;
        if hex[end..].starts_with(['u', 'U']) {
            return Some((Token::Literal(Literal::Uint(number)), end + 3));
        }
        return Some((Token::Literal(Literal::Int(i64::try_from(number).ok()?)), end + 2));
    }
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mut end = digits(rest);
    let mut is_double = false;
    if rest[end..].starts_with('.') && digits(&rest[end + 1..]) > 0 {
        is_double = true;
        end += 1 + digits(&rest[end + 1..]);
    }
    if rest[end..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
        let exponent = digits(&rest[end + 1 + sign..]);
        if exponent > 0 {
            is_double = true;
            end += 1 + sign + exponent;
        }
    }
    let text = &rest[..end];
    if is_double {
        return Some((Token::Literal(Literal::Double(text.parse().ok()?)), end));
    }
    if rest[end..].starts_with(['u', 'U']) {
        return Some((Token::Literal(Literal::Uint(text.parse().ok()?)), end + 1));
    }
    // The smallest number is written with a minus: one more than the largest is read, too.
    let number: u64 = text.parse().ok()?;
    let number = i64::try_from(number).ok().or_else(|| (number == 1 << 63).then_some(i64::MIN))?;
    Some((Token::Literal(Literal::Int(number)), end))
}

fn read_text(rest: &str) -> Option<(Token, usize)> {
    // A text begins with at most two letters: the rest is not searched.
    let prefix = rest.bytes().take(3).position(|byte| matches!(byte, b'\'' | b'"'))?;
    let flags = &rest[..prefix];
    let is_raw = flags.contains(['r', 'R']);
    let is_bytes = flags.contains(['b', 'B']);
    if flags.len() != usize::from(is_raw) + usize::from(is_bytes) {
        return None;
    }
    let body = &rest[prefix..];
    let mark = &body[..1];
    let triple = mark.repeat(3);
    let (quote, is_triple) =
        if body.starts_with(&triple) { (triple.as_str(), true) } else { (mark, false) };
    let body = &body[quote.len()..];
    let mut bytes = Vec::new();
    let mut at = 0;
    while !body[at..].starts_with(quote) {
        let c = body[at..].chars().next()?;
        if c == '\n' && !is_triple {
            return None;
        }
        if c == '\\' && !is_raw {
            at += unescape(&body[at..], is_bytes, &mut bytes)?;
        } else {
            let from = at;
            at += c.len_utf8();
            // A raw text may quote its mark.
            if c == '\\' && body[at..].starts_with(mark) {
                at += 1;
            }
            bytes.extend_from_slice(&body.as_bytes()[from..at]);
        }
    }
    let literal = if is_bytes {
        Literal::Bytes(bytes.into())
    } else {
        Literal::String(String::from_utf8(bytes).ok()?.into())
    };
    Some((Token::Literal(literal), prefix + at + 2 * quote.len()))
}

/// Reads one escape sequence; returns its length.
fn unescape(text: &str, is_bytes: bool, bytes: &mut Vec<u8>) -> Option<usize> {
    let kind = text[1..].chars().next()?;
    let simple = match kind {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' | '\'' | '"' | '`' | '?' => u8::try_from(kind).ok()?,
        _ => 0,
    };
    if simple != 0 {
        bytes.push(simple);
        return Some(2);
    }
    let (radix, from, length) = match kind {
        'x' | 'X' => (16, 2, 2),
        'u' => (16, 2, 4),
        'U' => (16, 2, 8),
        '0'..='3' => (8, 1, 3),
        _ => return None,
    };
    let code = u32::from_str_radix(text.get(from..from + length)?, radix).ok()?;
    if is_bytes && matches!(kind, 'x' | 'X' | '0'..='3') {
        bytes.push(u8::try_from(code).ok()?);
    } else {
        let mut buffer = [0; 4];
        bytes.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut buffer).as_bytes());
    }
    Some(from + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_reads(source: &str, expected: &Literal) {
        let mut issues = Issues::default();
        let found = tokens(source, &mut issues);
        assert!(issues.is_empty(), "{source}: {issues:?}");
        assert_eq!(found[0], (0, Token::Literal(expected.clone())), "{source}");
        assert_eq!(found.len(), 2, "{source}");
    }

    #[test]
    fn literals_are_read() {
        for (source, expected) in [
            ("12", Literal::Int(12)),
            ("0x1F", Literal::Int(31)),
            ("3u", Literal::Uint(3)),
            ("0x1fu", Literal::Uint(31)),
            ("1.5", Literal::Double(1.5)),
            (".5e2", Literal::Double(50.0)),
            ("1e3", Literal::Double(1000.0)),
            ("null", Literal::Null),
            ("'a\\n\\x41\\u00e9'", Literal::String("a\nAé".into())),
            ("r'\\d'", Literal::String("\\d".into())),
            ("'''a\n'b'''", Literal::String("a\n'b".into())),
            ("b'\\xff'", Literal::Bytes([0xff].into())),
        ] {
            assert_reads(source, &expected);
        }
    }

    #[test]
    fn unreadable_text_is_reported_at_its_start() {
        let mut issues = Issues::default();
        tokens("a == 'x", &mut issues);
        let shown = issues.show("a == 'x");
        assert!(shown.contains(":1:6: Syntax error: token recognition error at: ''x'"), "{shown}");
    }
}
