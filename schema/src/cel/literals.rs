//! Checks what an expression states: literals that are no value of their type, lists and maps with
//! values of several types, and texts with clauses.

use super::error::Issues;
use super::expression::{Call, Expr, Kind, Literal};
use super::functions::formatting::{Clause, Piece, pieces};
use super::time;
use super::types::Type;

/// Reports the literals of an expression with the texts of cel-go's validators.
pub(super) fn check(expr: &Expr, issues: &mut Issues) {
    visit(expr, false, issues);
}

/// Visits an expression; `mixed` if a list inside may have items of several types.
fn visit(expr: &Expr, mixed: bool, issues: &mut Issues) {
    match &expr.kind {
        Kind::List(items) if !mixed => {
            check_types(items.iter().map(|(item, optional)| (item, *optional)), issues);
        }
        Kind::Map(entries) if !mixed => {
            check_types(entries.iter().map(|(key, ..)| (key, false)), issues);
            check_types(entries.iter().map(|(_, value, optional)| (value, *optional)), issues);
        }
        Kind::Call(call) => check_call(expr.at, call, issues),
        _ => {}
    }
    let mixed = mixed || matches!(&expr.kind, Kind::Call(call) if is_format(call));
    for part in expr.kind.parts() {
        visit(part, mixed, issues);
    }
}

fn check_types<'e>(items: impl Iterator<Item = (&'e Expr, bool)>, issues: &mut Issues) {
    let mut first: Option<&Type> = None;
    for (item, optional) in items {
        let found = match &item.found {
            Type::Optional(inner) if optional => inner,
            found => found,
        };
        let wanted = *first.get_or_insert(found);
        if !is_same(wanted, found) {
            issues.add(item.at, format!("expected type '{wanted}' but found '{found}'"));
            return;
        }
    }
}

/// Returns true if two types are the same. An empty part may be one of any type.
fn is_same(a: &Type, b: &Type) -> bool {
    let is_any = |part: &Type| matches!(part, Type::Dyn | Type::Empty);
    let inner = |a: &Type, b: &Type| is_any(a) || is_any(b) || is_same(a, b);
    match (a, b) {
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => inner(a, b),
        (Type::Map(a, x), Type::Map(b, y)) => inner(a, b) && inner(x, y),
        (a, b) => a == b,
    }
}

fn check_call(at: usize, call: &Call, issues: &mut Issues) {
    if is_format(call) {
        check_format(at, call, issues);
    }
    let Some(Expr { at, kind: Kind::Literal(literal), .. }) = call.arguments.first() else {
        return;
    };
    let name = call.function.as_ref();
    let is_valid = match (name, literal) {
        ("duration", Literal::String(text)) => time::duration(text).is_some(),
        ("timestamp", Literal::String(text)) => time::timestamp(text).is_some(),
        ("timestamp", Literal::Int(seconds)) => time::of_seconds(*seconds).is_some(),
        ("matches", Literal::String(text)) => crate::constraints::Pattern::new(text).is_ok(),
        _ => true,
    };
    if !is_valid {
        issues.add(*at, format!("invalid {name} argument"));
    }
}

fn is_format(call: &Call) -> bool {
    call.function.as_ref() == "format" && call.target.is_some()
}

/// Checks a text whose clauses and arguments are both known.
fn check_format(at: usize, call: &Call, issues: &mut Issues) {
    let Some(Kind::Literal(Literal::String(text))) = call.target.as_ref().map(|text| &text.kind)
    else {
        return;
    };
    let [Expr { kind: Kind::List(items), .. }] = call.arguments.as_slice() else { return };
    let pieces = match pieces(text, items.len()) {
        Ok(pieces) => pieces,
        Err(problem) => return issues.add(at, problem),
    };
    let clauses = pieces.into_iter().filter_map(|piece| match piece {
        Piece::Clause(clause) => Some(clause),
        Piece::Text(_) => None,
    });
    let mut used = 0;
    for (clause, (item, _)) in clauses.zip(items) {
        used += 1;
        if let Some(wrong) = mismatch(clause, item) {
            return issues.add(wrong.at, clause.mismatch(&type_name(&wrong.found)));
        }
    }
    if items.len() > used {
        let given = items.len();
        let text =
            format!("too many arguments supplied to string.format (expected {used}, got {given})");
        issues.add(at, text);
    }
}

/// Returns the part of an argument that does not fit a clause.
fn mismatch(clause: Clause, item: &Expr) -> Option<&Expr> {
    if !clause.takes(&item.found) {
        return Some(item);
    }
    if clause != Clause::Any {
        return None;
    }
    match &item.kind {
        Kind::List(items) => items.iter().find_map(|(item, _)| mismatch(clause, item)),
        Kind::Map(entries) => entries
            .iter()
            .find_map(|(key, value, _)| mismatch(clause, key).or_else(|| mismatch(clause, value))),
        _ => None,
    }
}

/// Returns the name of a type without its parameters.
fn type_name(found: &Type) -> String {
    match found {
        Type::List(_) => "list".to_owned(),
        Type::Map(..) => "map".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::Null => "null_type".to_owned(),
        other => other.to_string(),
    }
}
