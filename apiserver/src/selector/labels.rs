//! Label selectors: `a=b`, `a!=b`, `a in (x,y)`, `a notin (x)`, `a`, `!a`, `a>1`, `a<1`.

use std::collections::BTreeSet;

use super::{
    SelectorError,
    lexer::{self, Token, TokenKind},
    validation::{check_key, problem_of_value},
};

/// A parsed label selector: all its requirements must hold. The empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

/// What is asked of the value of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    DoesNotExist,
    In(BTreeSet<String>),
    /// Holds for a label that is not there, too.
    NotIn(BTreeSet<String>),
    GreaterThan(i64),
    LessThan(i64),
}

/// Reads tokens one by one, knowing the next.
struct Parser<'a> {
    next: Token<'a>,
    rest: &'a str,
}

// === impl Labels ===

impl Labels {
    /// Parses the requirements of a selector, which commas join.
    ///
    /// # Errors
    ///
    /// When the text does not follow the grammar, or no label can have such a key or value.
    pub fn parse(selector: &str) -> Result<Self, SelectorError> {
        // The real server reads as far as a null byte.
        let selector = selector.split('\0').next().unwrap_or("");
        let mut parser = Parser::new(selector);
        let mut requirements = Vec::new();
        loop {
            match parser.peek().kind {
                TokenKind::Word | TokenKind::Not => {}
                TokenKind::End => break,
                _ => return Err(parser.unexpected(", expected: !, identifier, or 'end of string'")),
            }
            let requirement = parser.requirement().map_err(|SelectorError(reason)| {
                SelectorError(format!("unable to parse requirement: {reason}"))
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
        Ok(Self { requirements })
    }

    /// True if every object matches.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.test.holds(label(&requirement.key)))
    }
}

// === impl Test ===

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(parse_integer);
        match self {
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::In(values) => value.is_some_and(|value| values.contains(value)),
            Self::NotIn(values) => !value.is_some_and(|value| values.contains(value)),
            Self::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Self::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

// === impl Parser ===

impl<'a> Parser<'a> {
    fn new(selector: &'a str) -> Self {
        let (next, rest) = lexer::next(selector);
        Self { next, rest }
    }

    /// The next token, where `in` and `notin` are words like any other.
    fn peek(&self) -> Token<'a> {
        match self.next.kind {
            TokenKind::In | TokenKind::NotIn => Token { kind: TokenKind::Word, ..self.next },
            _ => self.next,
        }
    }

    /// Goes to the next token, and hands back the one that was next.
    fn advance(&mut self) -> Token<'a> {
        let token = self.peek();
        (self.next, self.rest) = lexer::next(self.rest);
        token
    }

    fn unexpected(&self, expected: &str) -> SelectorError {
        SelectorError(format!("found '{}'{expected}", self.next.text))
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let negated = self.peek().kind == TokenKind::Not;
        if negated {
            self.advance();
        }
        if self.peek().kind != TokenKind::Word {
            return Err(self.unexpected(", expected: identifier"));
        }
        let key = self.advance().text;
        check_key(key)?;
        let test = if negated {
            Test::DoesNotExist
        } else if matches!(self.peek().kind, TokenKind::End | TokenKind::Comma) {
            Test::Exists
        } else {
            self.test(key)?
        };
        let key = key.to_owned();
        Ok(Requirement { key, test })
    }

    /// Operator and values.
    fn test(&mut self, key: &str) -> Result<Test, SelectorError> {
        let operator = self.next.kind;
        let values = match operator {
            TokenKind::In | TokenKind::NotIn => {
                self.advance();
                self.values()?
            }
            TokenKind::Equals
            | TokenKind::NotEquals
            | TokenKind::GreaterThan
            | TokenKind::LessThan => {
                self.advance();
                BTreeSet::from([self.exact_value()?])
            }
            _ => return Err(self.unexpected(", expected: in, notin, =, ==, !=, gt, lt")),
        };
        let bound = values.first().and_then(|value| parse_integer(value));
        let wants_integer = matches!(operator, TokenKind::GreaterThan | TokenKind::LessThan);
        check_values(key, &values, wants_integer && bound.is_none())?;
        let values = values.into_iter().map(str::to_owned).collect();
        Ok(match (operator, bound) {
            (TokenKind::GreaterThan, Some(bound)) => Test::GreaterThan(bound),
            (TokenKind::LessThan, Some(bound)) => Test::LessThan(bound),
            (TokenKind::NotIn | TokenKind::NotEquals, _) => Test::NotIn(values),
            _ => Test::In(values),
        })
    }

    /// `(x,y)`. Where a value is missing, as in `(,x)`, it is the empty one.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, SelectorError> {
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

    /// One value of a list with the comma after it, or the comma before it.
    fn listed_value(&mut self, values: &mut BTreeSet<&'a str>) -> Result<(), SelectorError> {
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
            // Two commas make one missing value, and do not end the list: real servers refuse `(x,,)`.
            if self.peek().kind == TokenKind::Close {
                return Err(self.unexpected(", expected: ',', or identifier"));
            }
        }
        Ok(())
    }

    fn exact_value(&mut self) -> Result<&'a str, SelectorError> {
        match self.peek().kind {
            TokenKind::End | TokenKind::Comma => Ok(""),
            TokenKind::Word => Ok(self.advance().text),
            _ => Err(self.unexpected(", expected: identifier")),
        }
    }
}

/// Tells all that is wrong with the values.
fn check_values(
    key: &str,
    values: &BTreeSet<&str>,
    lacks_integer: bool,
) -> Result<(), SelectorError> {
    let mut problems = Vec::new();
    for (at, value) in values.iter().enumerate() {
        if lacks_integer {
            problems.push(format!(
                "values[{at}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            ));
        }
        problems.extend(problem_of_value(key, at, value));
    }
    match problems.as_slice() {
        [] => Ok(()),
        [problem] => Err(SelectorError(problem.clone())),
        problems => Err(SelectorError(format!("[{}]", problems.join(", ")))),
    }
}

/// A decimal integer with an optional sign.
fn parse_integer(value: &str) -> Option<i64> {
    value.parse().ok()
}

#[cfg(test)]
mod tests;
