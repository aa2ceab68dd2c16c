//! Parses paths.

use serde_json::Value;

use super::{Comparison, End, Filter, Slice, Step};

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// Parses the actions of a template that starts inside of the first one.
pub(super) fn actions(text: &str) -> Option<Vec<Vec<Step>>> {
    let closed = format!("{text}}}");
    let mut parser = Parser { rest: &closed };
    let mut actions = vec![parser.action()?];
    while let Some((_, rest)) = parser.rest.split_once('{') {
        parser.rest = rest;
        actions.push(parser.action()?);
    }
    Some(actions)
}

/// Parses a part of an action.
fn part(text: &str) -> Option<Vec<Step>> {
    actions(text)?.into_iter().next()
}

struct Parser<'t> {
    rest: &'t str,
}

// === impl Parser ===

impl<'t> Parser<'t> {
    /// Parses steps up to the bracket that closes the action.
    fn action(&mut self) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        while !self.skip("}") {
            self.steps(&mut steps)?;
        }
        Some(steps)
    }

    /// Parses the next step, or skips what has no effect.
    fn steps(&mut self, steps: &mut Vec<Step>) -> Option<()> {
        if self.skip("[?(") {
            steps.push(Step::Filter(self.filter()?));
            return Some(());
        }
        if self.skip("..") {
            return self.descend(steps);
        }
        match self.rest.chars().next()? {
            ' ' | '@' | '$' => self.rest = &self.rest[1..],
            '[' => steps.extend(self.brackets()?),
            '"' | '\'' => steps.push(Step::Literal(self.quoted()?.into())),
            '.' => {
                self.rest = &self.rest[1..];
                steps.push(self.field());
            }
            c if matches!(c, '+' | '-') || c.is_numeric() => steps.push(self.number()?),
            c if is_word(c) => steps.push(self.word()),
            _ => return None,
        }
        Some(())
    }

    /// Parses what follows two dots.
    fn descend(&mut self, steps: &mut Vec<Step>) -> Option<()> {
        if steps.last() == Some(&Step::Descend) {
            return None;
        }
        steps.push(Step::Descend);
        if self.rest.starts_with(is_word) {
            steps.push(self.field());
        }
        Some(())
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Reads a name up to the next terminator without a backslash.
    fn field(&mut self) -> Step {
        let mut is_escaped = false;
        let end = self.rest.find(|c: char| {
            let ends = !is_escaped && is_terminator(c);
            is_escaped = !is_escaped && c == '\\';
            ends
        });
        match self.take(end.unwrap_or(self.rest.len())) {
            "*" => Step::All,
            name => Step::Field(name.replace('\\', "")),
        }
    }

    fn word(&mut self) -> Step {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        match self.take(end) {
            "true" => Step::Literal(true.into()),
            "false" => Step::Literal(false.into()),
            _ => Step::Word,
        }
    }

    fn number(&mut self) -> Option<Step> {
        let digits = self.rest.strip_prefix(['+', '-']).unwrap_or(self.rest);
        let end = digits.find(|c: char| c != '.' && !c.is_numeric()).unwrap_or(digits.len());
        let text = self.take(self.rest.len() - digits.len() + end);
        let whole = text.parse().ok().map(|whole: i64| Value::from(whole));
        let number = whole.or_else(|| text.parse().ok().map(|number: f64| Value::from(number)));
        number.map(Step::Literal)
    }

    fn quoted(&mut self) -> Option<String> {
        let quote = self.rest.chars().next()?;
        let inner = &self.rest[1..];
        let ends = |at: &usize| !inner[..*at].ends_with('\\');
        let end = inner.match_indices(quote).map(|(at, _)| at).find(ends)?;
        let text = &self.take(end + 2)[1..=end];
        (!text.contains('\n')).then(|| unescape(text, quote)).flatten()
    }

    /// Reads what stands in brackets and is no filter.
    fn brackets(&mut self) -> Option<Vec<Step>> {
        let end = self.rest.find([']', '\n']).filter(|at| self.rest[*at..].starts_with(']'))?;
        let text = &self.take(end + 1)[1..end];
        if text.contains(',') {
            let paths = text.split(',').map(|one| part(&format!("[{}]", one.trim_matches(' '))));
            return Some(vec![Step::Union(paths.collect::<Option<_>>()?)]);
        }
        let name = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        match name.filter(|name| !name.contains('\'')) {
            Some(name) => part(&format!(".{name}")),
            None => Slice::parse(if text == "*" { ":" } else { text })
                .map(|slice| vec![Step::Slice(slice)]),
        }
    }

    /// Reads a filter up to the `)` that is outside of its first quotes.
    fn filter(&mut self) -> Option<Filter> {
        let (mut opened, mut is_closed, mut before) = (None, false, ' ');
        let end = self.rest.find(|c: char| {
            let is_end = matches!((c, opened, is_closed), (')', None, _) | (')', Some(_), true));
            match opened {
                None if matches!(c, '"' | '\'') => opened = Some(c),
                Some(quote) if c == quote && before != '\\' => is_closed = true,
                _ => {}
            }
            before = c;
            is_end || c == '\n'
        })?;
        let text = self.take(end);
        if !self.skip(")]") {
            return None;
        }
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let split = text.find(is_operator).filter(|at| *at > 0).and_then(|at| {
            let length = text[at..].find(|c| !is_operator(c)).unwrap_or(text.len() - at);
            // The right side takes the last sign if it has nothing else.
            let length = if at + length == text.len() { length - 1 } else { length };
            (length > 0).then(|| (&text[..at], &text[at..at + length], &text[at + length..]))
        });
        let Some((left, operator, right)) = split else {
            return Some(Filter { left: part(text)?, condition: None });
        };
        let comparison = COMPARISONS.iter().find(|(sign, _)| *sign == operator);
        let comparison = comparison.map(|(_, comparison)| *comparison);
        Some(Filter { left: part(left)?, condition: Some((comparison, part(right)?)) })
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

/// Resolves the escapes of a quoted text.
fn unescape(text: &str, quote: char) -> Option<String> {
    let mut resolved = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        resolved.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                c if c == '\\' || c == quote => c,
                _ => return None,
            },
            c => c,
        });
    }
    Some(resolved)
}

// === impl Slice ===

impl Slice {
    /// Parses `from:to:step`, of which each may be missing.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(':').map(|number| match number {
            "" => Some(None),
            number if number.starts_with('+') => None,
            number => number.parse::<i64>().ok().map(Some),
        });
        let from = numbers.next()??;
        let to = match numbers.next() {
            None => End::Next(from.unwrap_or(0).saturating_add(1)),
            Some(to) => to?.map_or(End::Open, End::At),
        };
        let step = numbers.next().unwrap_or(Some(None))?;
        numbers.next().is_none().then_some(Self { from, to, step })
    }
}
