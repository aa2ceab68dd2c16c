//! Evaluates the constant parts of an expression, as cel-go does when it instantiates a program.

use super::error::EvalError;
use super::evaluator::Evaluator;
use super::expression::{Expr, Kind, Literal};
use crate::go_pattern;

/// The functions that cel-go evaluates before the program runs.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];
/// The largest number of steps of a conversion.
const MAX_STEPS: usize = 100_000;

/// Checks that the constants of an expression can be converted, and that its constant patterns
/// compile.
///
/// # Errors
///
/// Returns the reason of the first one that cannot.
pub(crate) fn instantiate(expr: &Expr) -> Result<(), String> {
    is_constant(expr).map(|_| ())
}

/// Checks the parts of an expression, and returns whether it is a constant itself.
fn is_constant(expr: &Expr) -> Result<bool, String> {
    let mut all = true;
    for part in expr.kind.parts() {
        all &= is_constant(part)?;
    }
    let call = match &expr.kind {
        Kind::Literal(_) => return Ok(true),
        Kind::List(_) | Kind::Map(_) => return Ok(all),
        Kind::Call(call) => call,
        _ => return Ok(false),
    };
    let name = call.function.as_ref();
    if matches!(name, "matches" | "find" | "findAll")
        && let Some(pattern) = call.arguments.first().and_then(text)
    {
        go_pattern::compile(pattern).map_err(|error| error.to_string())?;
    }
    let is_conversion = call.target.is_none() && CONVERSIONS.contains(&name);
    if !(all && is_conversion && call.arguments.len() == 1) {
        return Ok(false);
    }
    match Evaluator::new(Vec::new(), MAX_STEPS).evaluate(expr) {
        Err(EvalError::Failed(problem)) => Err(problem),
        _ => Ok(true),
    }
}

/// Returns a constant text, also one that is given as a value of any type.
fn text(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        Kind::Literal(Literal::String(text)) => Some(text),
        Kind::Call(call) if call.function.as_ref() == "dyn" => {
            call.arguments.first().and_then(text)
        }
        _ => None,
    }
}
