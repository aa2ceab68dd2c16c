//! Parses an expression and recognizes the macros in it.

mod macros;
mod structs;

use std::sync::Arc;

use super::error::Issues;
use super::expression::{Expr, Kind, Literal, Mode, Select};
use super::identifier::RESERVED;
use super::lexer::{Token, tokens};

/// Levels of nesting that an expression may have, as in cel-go.
pub(crate) const MAX_DEPTH: usize = 250;

/// Binary operators other than `&&` and `||`, with their rank and cel-go's name.
const OPERATORS: [(&str, u8, &str); 12] = [
    ("==", 1, "_==_"),
    ("!=", 1, "_!=_"),
    ("<=", 1, "_<=_"),
    (">=", 1, "_>=_"),
    ("<", 1, "_<_"),
    (">", 1, "_>_"),
    ("in", 1, "@in"),
    ("+", 2, "_+_"),
    ("-", 2, "_-_"),
    ("*", 3, "_*_"),
    ("/", 3, "_/_"),
    ("%", 3, "_%_"),
];

/// Parses an expression.
///
/// # Errors
///
/// Returns the syntax errors, with the texts of cel-go where its grammar has the same ones.
pub(crate) fn parse(source: &str) -> Result<Expr, Issues> {
    parse_macros(source, false)
}

/// Parses an expression, which may use the macro `cel.bind`.
///
/// # Errors
///
/// Returns the syntax errors, as [`parse`] does.
pub(crate) fn parse_bindings(source: &str) -> Result<Expr, Issues> {
    parse_macros(source, true)
}

fn parse_macros(source: &str, has_bind: bool) -> Result<Expr, Issues> {
    let mut issues = Issues::default();
    let tokens = tokens(source, &mut issues);
    let mut parser = Parser { source, tokens, next: 0, depth: 0, failed: false, has_bind, issues };
    let parsed = parser.expression();
    if let Some(parsed) = parsed {
        if *parser.peek() != Token::End {
            parser.unexpected::<()>("<EOF>");
        }
        if parser.issues.is_empty() {
            return Ok(parsed);
        }
    }
    Err(parser.issues)
}

#[derive(Debug)]
struct Parser<'a> {
    source: &'a str,
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
    /// True after a syntax error: what follows from it is not reported.
    failed: bool,
    /// True if there is the macro `cel.bind`.
    has_bind: bool,
    issues: Issues,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    fn peek_second(&self) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.next + 1).min(last)].1
    }

    fn at(&self) -> usize {
        self.tokens[self.next].0
    }

    fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(found) if *found == symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Option<()> {
        if self.take(symbol) {
            return Some(());
        }
        self.unexpected(&format!("'{symbol}'"))
    }

    /// Returns the text of the next token.
    fn shown(&self) -> &str {
        let end = self.tokens.get(self.next + 1).map_or(self.source.len(), |next| next.0);
        let is_end = *self.peek() == Token::End;
        if is_end { "<EOF>" } else { self.source[self.at()..end].trim_end() }
    }

    /// Reports the next token where the grammar has no place for it.
    fn unexpected<T>(&mut self, expected: &str) -> Option<T> {
        if !std::mem::replace(&mut self.failed, true) {
            let (at, shown) = (self.at(), self.shown());
            let is_last =
                self.tokens.get(self.next + 1).is_some_and(|(_, next)| *next == Token::End);
            let is_quoted = matches!(self.peek(), Token::Quoted(_));
            let is_extra = is_quoted || expected == "<EOF>" && is_last;
            let problem = if is_extra { "extraneous" } else { "mismatched" };
            let expected = if expected.is_empty() { FIRST } else { expected };
            let text = format!("Syntax error: {problem} input '{shown}' expecting {expected}");
            self.issues.add(at, text);
        }
        None
    }

    fn expression(&mut self) -> Option<Expr> {
        if self.depth >= MAX_DEPTH {
            return self.too_deep(self.at());
        }
        self.depth += 1;
        let parsed = self.conditional();
        self.depth -= 1;
        parsed
    }

    fn too_deep<T>(&mut self, at: usize) -> Option<T> {
        self.issues.add(at, format!("expression recursion limit exceeded: {MAX_DEPTH}"));
        None
    }

    fn conditional(&mut self) -> Option<Expr> {
        let condition = self.or()?;
        let at = self.at();
        if !self.take("?") {
            return Some(condition);
        }
        let yes = self.or()?;
        self.expect(":")?;
        let no = self.expression()?;
        Some(Expr::new(at, Kind::Conditional(Box::new([condition, yes, no]))))
    }

    fn or(&mut self) -> Option<Expr> {
        self.logical("||", Self::and, Kind::Or)
    }

    fn and(&mut self) -> Option<Expr> {
        self.logical("&&", |parser| parser.binary(1), Kind::And)
    }

    fn logical(
        &mut self,
        symbol: &str,
        part: impl Fn(&mut Self) -> Option<Expr>,
        kind: impl Fn(Vec<Expr>) -> Kind,
    ) -> Option<Expr> {
        let first = part(self)?;
        let at = self.at();
        let mut parts = vec![first];
        while self.take(symbol) {
            parts.push(part(self)?);
        }
        if parts.len() == 1 {
            return parts.pop();
        }
        Some(Expr::new(at, kind(parts)))
    }

    fn binary(&mut self, rank: u8) -> Option<Expr> {
        let mut left = self.unary()?;
        loop {
            let operator = match self.peek() {
                Token::Symbol(symbol) => OPERATORS.iter().find(|(known, ..)| known == symbol),
                _ => None,
            };
            let Some((_, found, name)) = operator.filter(|(_, found, _)| *found >= rank) else {
                return Some(left);
            };
            let at = self.at();
            self.advance();
            let right = self.binary(found + 1)?;
            left = Expr::call(at, name, vec![left, right]);
            if left.height > MAX_DEPTH {
                return self.too_deep(at);
            }
        }
    }

    fn unary(&mut self) -> Option<Expr> {
        if matches!(self.peek(), Token::Symbol("!" | "-")) {
            return self.negation();
        }
        let at = self.at();
        let parsed = self.member()?;
        if let Kind::Literal(Literal::Int(i64::MIN)) = parsed.kind {
            self.issues.add(at, "invalid int literal");
        }
        Some(parsed)
    }

    fn negation(&mut self) -> Option<Expr> {
        let at = self.at();
        let (symbol, name) =
            if self.peek() == &Token::Symbol("!") { ("!", "!_") } else { ("-", "-_") };
        let mut count = 0;
        while self.take(symbol) {
            count += 1;
        }
        // Pairs cancel each other.
        let (operand_at, operand) = (self.at(), self.member()?);
        Some(match (count % 2, name) {
            (0, _) => operand,
            (_, "-_") if operand_at == at + 1 => negated(at, operand),
            _ => Expr::call(at, name, vec![operand]),
        })
    }

    /// Parses a value and the fields, calls and indices that follow it.
    fn member(&mut self) -> Option<Expr> {
        let mut parsed = self.primary()?;
        loop {
            let at = self.at();
            if self.take(".") {
                parsed = self.field(at, parsed)?;
            } else if self.take("[") {
                parsed = self.index(at, parsed)?;
            } else if let Some(name) = self.struct_name(&parsed) {
                parsed = self.struct_literal(at, name)?;
            } else {
                return Some(parsed);
            }
            // An expression in brackets may be the first part of a chain: its height counts, too.
            if parsed.height > MAX_DEPTH {
                return self.too_deep(at);
            }
        }
    }

    fn index(&mut self, at: usize, operand: Expr) -> Option<Expr> {
        let optional = self.take("?");
        let index = self.expression()?;
        self.expect("]")?;
        let name = ["_[_]", "_[?_]"][usize::from(optional)];
        Some(Expr::call(at, name, vec![operand, index]))
    }

    fn field(&mut self, at: usize, operand: Expr) -> Option<Expr> {
        let mode = if self.take("?") { Mode::Optional } else { Mode::Value };
        let (Token::Ident(name) | Token::Quoted(name)) = self.peek().clone() else {
            return self.unexpected("IDENTIFIER");
        };
        self.advance();
        let open = self.at();
        if mode == Mode::Value && self.take("(") {
            let arguments = self.arguments()?;
            return self.member_call(open, operand, &name, arguments);
        }
        Some(Expr::new(at, Kind::Select(Box::new(Select { operand, field: name, mode }))))
    }

    fn arguments(&mut self) -> Option<Vec<Expr>> {
        let mut arguments = Vec::new();
        while self.has_next(")", arguments.is_empty())? {
            arguments.push(self.expression()?);
        }
        Some(arguments)
    }

    /// Returns true if another part follows before `close`. A literal may end with a comma.
    fn has_next(&mut self, close: &str, is_first: bool) -> Option<bool> {
        if self.take(close) {
            return Some(false);
        }
        if !is_first {
            self.expect(",")?;
        }
        Some(is_first || close == ")" || !self.take(close))
    }

    fn primary(&mut self) -> Option<Expr> {
        if self.take("(") {
            let parsed = self.expression()?;
            self.expect(")")?;
            return Some(parsed);
        }
        let at = self.at();
        // A name may begin with a dot: there is no container around it.
        if matches!(self.peek(), Token::Symbol("."))
            && matches!(self.peek_second(), Token::Ident(_))
        {
            self.advance();
        }
        match self.peek().clone() {
            Token::Literal(literal) => {
                self.advance();
                Some(Expr::new(at, Kind::Literal(literal)))
            }
            Token::Ident(name) => self.name(at, name),
            Token::Symbol("[") => self.list_literal(at),
            Token::Symbol("{") => self.map_literal(at),
            _ => self.unexpected(""),
        }
    }

    /// Parses a variable or the call of a function.
    fn name(&mut self, at: usize, name: Arc<str>) -> Option<Expr> {
        self.advance();
        let open = self.at();
        if self.take("(") {
            let arguments = self.arguments()?;
            return self.global_call(open, &name, arguments);
        }
        if RESERVED.contains(&name.as_ref()) {
            self.issues.add(at, format!("reserved identifier: {name}"));
        }
        Some(Expr::new(at, Kind::Ident(name)))
    }

    fn list_literal(&mut self, at: usize) -> Option<Expr> {
        self.advance();
        let mut items = Vec::new();
        while self.has_next("]", items.is_empty())? {
            let optional = self.take("?");
            items.push((self.expression()?, optional));
        }
        Some(Expr::new(at, Kind::List(items)))
    }

    fn map_literal(&mut self, at: usize) -> Option<Expr> {
        self.advance();
        let mut entries = Vec::new();
        while self.has_next("}", entries.is_empty())? {
            let optional = self.take("?");
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?, optional));
        }
        Some(Expr::new(at, Kind::Map(entries)))
    }
}

/// The tokens that an expression can begin with, as ANTLR lists them.
const FIRST: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
                     NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Joins a minus and the number after it.
fn negated(at: usize, operand: Expr) -> Expr {
    match operand.kind {
        // The lexer reads the smallest number as if it had its minus already.
        Kind::Literal(Literal::Int(i64::MIN)) => {
            Expr::new(at, Kind::Literal(Literal::Int(i64::MIN)))
        }
        Kind::Literal(Literal::Int(number)) => Expr::new(at, Kind::Literal(Literal::Int(-number))),
        Kind::Literal(Literal::Double(number)) => {
            Expr::new(at, Kind::Literal(Literal::Double(-number)))
        }
        _ => Expr::call(at, "-_", vec![operand]),
    }
}
