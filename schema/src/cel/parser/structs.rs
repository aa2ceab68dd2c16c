//! Values of types that have names, such as `Object.spec{replicas: 1}`.

use std::sync::Arc;

use super::Parser;
use crate::cel::expression::{Expr, Kind, Mode, Struct, StructField};
use crate::cel::lexer::Token;

impl Parser<'_> {
    /// Returns the name of the type whose fields begin at the next token; `None` if they do not
    /// begin there, or if an expression is no name.
    pub(super) fn struct_name(&self, expr: &Expr) -> Option<Arc<str>> {
        if *self.peek() != Token::Symbol("{") {
            return None;
        }
        qualified_name(expr).map(Arc::from)
    }

    pub(super) fn struct_literal(&mut self, at: usize, name: Arc<str>) -> Option<Expr> {
        self.advance();
        let fields = self.struct_fields()?;
        Some(Expr::new(at, Kind::Struct(Box::new(Struct { name, fields }))))
    }

    fn struct_fields(&mut self) -> Option<Vec<StructField>> {
        let mut fields = Vec::new();
        // The list may end with a comma, also if it is empty.
        if self.take(",") {
            return self.expect("}").map(|()| fields);
        }
        while !self.take("}") {
            if !self.is_at_field() {
                let expected = [FIRST_FIELD, "'}'"][usize::from(!fields.is_empty())];
                return self.unexpected(expected);
            }
            fields.push(self.struct_field()?);
            if !self.take(",") && *self.peek() != Token::Symbol("}") {
                return self.unexpected("{'}', ','}");
            }
        }
        Some(fields)
    }

    fn is_at_field(&self) -> bool {
        matches!(self.peek(), Token::Symbol("?") | Token::Ident(_) | Token::Quoted(_))
    }

    fn struct_field(&mut self) -> Option<StructField> {
        let optional = self.take("?");
        let (Token::Ident(name) | Token::Quoted(name)) = self.peek().clone() else {
            return self.unexpected("{IDENTIFIER, ESC_IDENTIFIER}");
        };
        self.advance();
        let at = self.at();
        if !self.take(":") {
            return self.missing_colon();
        }
        Some(StructField { at, name, value: self.expression()?, optional })
    }

    /// Reports a field without a colon.
    fn missing_colon<T>(&mut self) -> Option<T> {
        let is_value = match self.peek() {
            Token::Literal(_) | Token::Ident(_) => true,
            Token::Symbol(symbol) => ["[", "{", "(", ".", "-", "!"].contains(symbol),
            _ => false,
        };
        if !is_value {
            return self.unexpected("':'");
        }
        let (at, token) = (self.at(), self.shown());
        self.issues.add(at, format!("Syntax error: missing ':' at '{token}'"));
        None
    }
}

/// The tokens that the fields of a value can begin with, as ANTLR lists them.
const FIRST_FIELD: &str = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}";

/// Returns the name that an expression is, such as `a.b.c`.
fn qualified_name(expr: &Expr) -> Option<String> {
    match &expr.kind {
        Kind::Ident(name) => Some(name.to_string()),
        Kind::Select(select) if select.mode == Mode::Value => {
            Some(format!("{}.{}", qualified_name(&select.operand)?, select.field))
        }
        _ => None,
    }
}
