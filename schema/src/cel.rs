//! The Common Expression Language, as `x-kubernetes-validations` and admission policies use it.
//!
//! An expression is parsed, checked against the types of the schema, and evaluated on JSON without
//! copying it. Messages and positions are those of cel-go. The decision against a crate:
//! `docs/decisions/0008-cel.md`.

mod authorization;
mod bounds;
mod checker;
mod constants;
mod error;
mod estimate;
mod evaluator;
mod expression;
mod functions;
mod identifier;
mod ip;
mod lazy;
mod lexer;
mod literals;
mod named_format;
mod parser;
mod scope;
mod semver;
mod signature;
mod steps;
#[cfg(test)]
mod tests;
mod time;
mod types;
mod unify;
mod value;

pub(crate) use authorization::Authorization;
pub(crate) use bounds::{Bounds, limit};
pub(crate) use checker::check;
pub(crate) use constants::instantiate;
pub(crate) use error::{EvalError, Issues};
pub(crate) use estimate::estimate;
pub(crate) use evaluator::Evaluator;
pub(crate) use expression::Expr;
pub(crate) use identifier::escape;
pub use identifier::is_cel_identifier;
pub(crate) use lazy::Lazy;
pub(crate) use parser::{MAX_DEPTH, parse, parse_bindings};
pub(crate) use scope::Scope;
pub(crate) use signature::{AUTHORIZER, RESOURCE_CHECK};
pub(crate) use types::Type;
pub(crate) use value::{StructValue, Value};
