//! The parser of the text form: a lexer, and one function for each rule of the grammar.
//!
//! It follows apimachinery's `labels.Parser`, including what that accepts by accident: a missing
//! value in a list, and `in` as the name of a label.

use std::collections::BTreeSet;

use super::LabelSelectorError;
use super::requirement::{Operator, Requirement};
use super::validation::check_key;

/// One token; error messages show its text.
///
/// The text is a slice of the selector, so that the lexer allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'a> {
    kind: TokenKind,
    text: &'a str,
}

/// The kinds of tokens (apimachinery's `labels.Token`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    /// The end of the text. The lexer returns it any number of times.
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
    /// A key or a value: everything up to white space or a symbol.
    Word,
}

/// A parser with one token of look-ahead.
///
/// The parser never goes back: each rule decides by the next token alone.
struct Parser<'a> {
    /// The token that the next rule reads; [`TokenKind::End`] at the end.
    next: Token<'a>,
    /// The text after `next`.
    rest: &'a str,
}

/// Parses the requirements of a selector, in the order of the text.
pub(super) fn requirements(selector: &str) -> Result<Vec<Requirement>, LabelSelectorError> {
    // The API server reads up to the first null byte.
    let selector = selector.split('\0').next().unwrap_or("");
    let mut parser = Parser::new(selector);
    let mut requirements = Vec::new();
    loop {
        match parser.peek().kind {
            TokenKind::Word | TokenKind::Not => {}
            TokenKind::End => break,
            _ => return Err(parser.unexpected(", expected: !, identifier, or 'end of string'")),
        }
        let requirement = parser.requirement().map_err(|LabelSelectorError(reason)| {
            LabelSelectorError(format!("unable to parse requirement: {reason}"))
        })?;
        requirements.push(requirement);
        match parser.peek().kind {
            TokenKind::End => break,
            TokenKind::Comma => parser.advance(),
            _ => return Err(parser.unexpected(", expected: ',' or 'end of string'")),
        };
        if !matches!(parser.peek().kind, TokenKind::Word | TokenKind::Not) {
            return Err(parser.unexpected(", expected: identifier after ','"));
        }
    }
    Ok(requirements)
}

// === impl Token ===

impl<'a> Token<'a> {
    /// Splits `rest` into its first token and the text after it.
    fn split_first(rest: &'a str) -> (Self, &'a str) {
        let rest = rest.trim_start_matches(is_space);
        if rest.is_empty() {
            return (Self { kind: TokenKind::End, text: "" }, rest);
        }
        let (kind, length) = symbol(rest).unwrap_or_else(|| word(rest));
        let (text, rest) = rest.split_at(length);
        (Self { kind, text }, rest)
    }
}

/// Returns the longest symbol at the start of `rest`, with its length in bytes.
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

/// Returns the word at the start of `rest`, with its length in bytes. `rest` starts with neither a
/// space nor a symbol, so the length is at least 1.
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

// === impl Parser ===

impl<'a> Parser<'a> {
    fn new(selector: &'a str) -> Self {
        let (next, rest) = Token::split_first(selector);
        Self { next, rest }
    }

    /// Returns the next token. `in` and `notin` count as plain words here; only an operator's place
    /// gives them meaning.
    fn peek(&self) -> Token<'a> {
        match self.next.kind {
            TokenKind::In | TokenKind::NotIn => Token { kind: TokenKind::Word, ..self.next },
            _ => self.next,
        }
    }

    /// Consumes the next token and returns it.
    fn advance(&mut self) -> Token<'a> {
        let token = self.peek();
        (self.next, self.rest) = Token::split_first(self.rest);
        token
    }

    /// Returns upstream's error for the next token; `expected` is the end of its text.
    fn unexpected(&self, expected: &str) -> LabelSelectorError {
        LabelSelectorError(format!("found '{}'{expected}", self.next.text))
    }

    /// Parses one requirement up to the comma or the end. The key is checked before the operator is
    /// read, as upstream does.
    fn requirement(&mut self) -> Result<Requirement, LabelSelectorError> {
        let negated = self.peek().kind == TokenKind::Not;
        if negated {
            self.advance();
        }
        if self.peek().kind != TokenKind::Word {
            return Err(self.unexpected(", expected: identifier"));
        }
        let key = self.advance().text;
        // A selector in a query has no field path, which the API server prints as nil.
        check_key("<nil>", key).map_err(LabelSelectorError)?;
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, &[]);
        }
        if matches!(self.peek().kind, TokenKind::End | TokenKind::Comma) {
            return Requirement::new(key, Operator::Exists, &[]);
        }
        let (operator, values) = self.operator_and_values()?;
        Requirement::new(key, operator, &values.into_iter().collect::<Vec<_>>())
    }

    /// Parses the operator after a key, and its values. Only here are `in` and `notin` operators.
    fn operator_and_values(&mut self) -> Result<(Operator, BTreeSet<&'a str>), LabelSelectorError> {
        let operator = match self.next.kind {
            TokenKind::In => Operator::In,
            TokenKind::NotIn => Operator::NotIn,
            TokenKind::Equals => Operator::Equals,
            TokenKind::NotEquals => Operator::NotEquals,
            TokenKind::GreaterThan => Operator::GreaterThan,
            TokenKind::LessThan => Operator::LessThan,
            _ => return Err(self.unexpected(", expected: in, notin, =, ==, !=, gt, lt")),
        };
        self.advance();
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => BTreeSet::from([self.exact_value()?]),
        };
        Ok((operator, values))
    }

    /// Parses `(x,y)`. A missing value, as in `(,x)`, is the empty one.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, LabelSelectorError> {
        if self.peek().kind != TokenKind::Open {
            return Err(self.unexpected(" expected: '('"));
        }
        self.advance();
        let mut values = BTreeSet::new();
        match self.peek().kind {
            TokenKind::Word | TokenKind::Comma => {}
            TokenKind::Close => {
                self.advance();
                return Ok(BTreeSet::from([""]));
            }
            _ => return Err(self.unexpected(", expected: ',', ')' or identifier")),
        }
        while self.peek().kind != TokenKind::Close {
            self.listed_value(&mut values)?;
        }
        self.advance();
        Ok(values)
    }

    /// Parses a value of a list, or a comma and the missing value beside it.
    fn listed_value(&mut self, values: &mut BTreeSet<&'a str>) -> Result<(), LabelSelectorError> {
        let token = self.peek();
        if !matches!(token.kind, TokenKind::Word | TokenKind::Comma) {
            return Err(self.unexpected(", expected: ',', or identifier"));
        }
        self.advance();
        let next = self.peek().kind;
        if token.kind == TokenKind::Word {
            values.insert(token.text);
            return match next {
                TokenKind::Comma | TokenKind::Close => Ok(()),
                _ => Err(self.unexpected(", expected: ',' or ')'")),
            };
        }
        let is_missing = matches!(next, TokenKind::Comma | TokenKind::Close);
        if values.is_empty() || is_missing {
            values.insert("");
        }
        if next == TokenKind::Comma {
            self.advance();
            // Two commas make one missing value and do not end the list: the API server rejects
            // `(x,,)`.
            if self.peek().kind == TokenKind::Close {
                return Err(self.unexpected(", expected: ',', or identifier"));
            }
        }
        Ok(())
    }

    /// Parses the value after `=`, `!=`, `>` or `<`. A missing value is the empty one.
    fn exact_value(&mut self) -> Result<&'a str, LabelSelectorError> {
        match self.peek().kind {
            TokenKind::End | TokenKind::Comma => Ok(""),
            TokenKind::Word => Ok(self.advance().text),
            _ => Err(self.unexpected(", expected: identifier")),
        }
    }
}
