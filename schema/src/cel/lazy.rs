//! Variables that are evaluated when an expression reads them, and once.

use std::collections::HashMap;

use super::error::EvalError;
use super::expression::Expr;
use super::value::Value;

type Result<T> = std::result::Result<T, EvalError>;

/// The steps that one lazy variable may take, as those of one expression.
const STEPS: usize = 1_000_000;

/// The lazy variables of an evaluation, and the values of those that were read.
#[derive(Debug, Default)]
pub(crate) struct Lazy<'a> {
    positions: HashMap<&'a str, usize>,
    entries: Vec<Entry<'a>>,
    /// The steps that the variables took, and the most that they may take.
    steps: usize,
    limit: usize,
}

#[derive(Debug)]
struct Entry<'a> {
    /// The name in errors.
    shown: &'a str,
    /// The expression, or the reason why it does not compile.
    expr: std::result::Result<&'a Expr, &'a str>,
    value: Option<Result<Value<'a>>>,
}

// === impl Lazy ===

impl<'a> Lazy<'a> {
    /// Adds a variable. Expressions call it `name`, errors `shown`.
    pub(crate) fn add(
        &mut self,
        name: &'a str,
        shown: &'a str,
        expr: std::result::Result<&'a Expr, &'a str>,
    ) {
        self.positions.insert(name, self.entries.len());
        self.entries.push(Entry { shown, expr, value: None });
    }

    pub(super) fn restart(&mut self, limit: usize) {
        self.steps = 0;
        self.limit = limit;
    }

    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    pub(super) fn spend(&mut self, steps: usize) {
        self.steps = self.steps.saturating_add(steps);
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    pub(super) fn known(&self, at: usize) -> Option<Result<Value<'a>>> {
        self.entries[at].value.clone()
    }

    /// Returns the expression of a variable, and the steps that it may take.
    pub(super) fn start(&mut self, at: usize) -> Result<(&'a Expr, usize)> {
        let Entry { shown, expr, value } = &mut self.entries[at];
        // Two variables of one name may read each other.
        *value = Some(Err(EvalError::new("a variable reads itself")));
        let left = self.limit.saturating_sub(self.steps);
        if left == 0 {
            return Err(EvalError::Limit);
        }
        let expr = expr.map_err(|error| {
            let shown = homeostat_core::go_quote(shown);
            EvalError::new(format!("composited variable {shown} fails to compile: {error}"))
        })?;
        Ok((expr, left.min(STEPS)))
    }

    /// Keeps the value of a variable, and returns what its reader sees.
    pub(super) fn keep(&mut self, at: usize, value: Result<Value<'a>>) -> Result<Value<'a>> {
        let is_spent = self.steps >= self.limit;
        let entry = &mut self.entries[at];
        let shown = value.map_err(|error| match (error, entry.expr) {
            (error, Err(_)) => error,
            (EvalError::Limit, _) if is_spent => EvalError::Limit,
            (error, Ok(_)) => {
                let name = homeostat_core::go_quote(entry.shown);
                EvalError::new(format!("composited variable {name} fails to evaluate: {error}"))
            }
        });
        entry.value = Some(shown.clone());
        shown
    }
}
