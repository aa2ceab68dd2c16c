//! The types of loops and bindings, which have variables of their own.

use std::sync::Arc;

use super::{Checker, shown};
use crate::cel::expression::{Bind, BindKind, Loop, Macro};
use crate::cel::types::Type;

impl Checker<'_> {
    pub(super) fn comprehension(&mut self, at: usize, inner: &mut Macro) -> Type {
        let range = self.check(&mut inner.range);
        let (first, second) = self.variable_types(inner, &range);
        let before = self.variables.len();
        self.variables.push((Arc::clone(&inner.first), first.clone()));
        if let Some(name) = &inner.second {
            self.variables.push((Arc::clone(name), second));
        }
        let filter = inner.filter.as_mut().map(|filter| self.check(filter));
        let body = self.check(&mut inner.body);
        self.variables.truncate(before);
        self.check_body(at, inner, (&first, &body), filter.as_ref());
        match inner.loop_kind {
            Loop::All | Loop::Exists | Loop::ExistsOne => Type::Bool,
            Loop::Map => Type::list(body),
            Loop::Filter => Type::list(first),
            Loop::SortBy => range,
            Loop::TransformMap => Type::map(first, body),
            Loop::TransformMapEntry => match body {
                Type::Map(..) => body,
                _ => Type::map(Type::Dyn, Type::Dyn),
            },
        }
    }

    /// Returns the types of the variables of a loop.
    fn variable_types(&mut self, inner: &Macro, range: &Type) -> (Type, Type) {
        match range {
            Type::Dyn => (Type::Dyn, Type::Dyn),
            Type::List(items) if inner.second.is_some() => {
                (Type::Int, items.as_ref().clone().or_dyn())
            }
            Type::List(items) => (items.as_ref().clone().or_dyn(), Type::Dyn),
            Type::Map(keys, values) => {
                (keys.as_ref().clone().or_dyn(), values.as_ref().clone().or_dyn())
            }
            other => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.issues.add(inner.range.at, text);
                (Type::Dyn, Type::Dyn)
            }
        }
    }

    /// Reports conditions and keys of a loop that have a wrong type, as errors of the operators
    /// that upstream expands the macro to.
    fn check_body(
        &mut self,
        at: usize,
        inner: &Macro,
        (item, body): (&Type, &Type),
        filter: Option<&Type>,
    ) {
        let is_bool = |found: &Type| matches!(found, Type::Bool | Type::Dyn | Type::Any);
        let result = Type::list(if filter.is_some() { body.clone() } else { item.clone() });
        let (condition, result) = match inner.loop_kind {
            Loop::All | Loop::Exists => {
                if !is_bool(body) {
                    let text = format!("expected type 'bool' but found '{body}'");
                    self.issues.add(at.max(inner.body.at), text);
                }
                return;
            }
            Loop::SortBy => {
                if !is_comparable(body) {
                    let shown = shown(true, &[Type::list(item.clone()), Type::list(body.clone())]);
                    let text = format!(
                        "found no matching overload for '@sortByAssociatedKeys' applied to \
                         '{shown}'"
                    );
                    self.issues.add(at, text);
                }
                return;
            }
            Loop::ExistsOne => (Some(body), Type::Int),
            Loop::Filter => (Some(body), result),
            Loop::Map => (filter, result),
            Loop::TransformMap | Loop::TransformMapEntry => {
                (filter, Type::map(item.clone(), body.clone()))
            }
        };
        if let Some(condition) = condition.filter(|condition| !is_bool(condition)) {
            let shown = shown(false, &[condition.clone(), result.clone(), result]);
            let text = format!("found no matching overload for '_?_:_' applied to '{shown}'");
            self.issues.add(at, text);
        }
    }

    pub(super) fn bind(&mut self, at: usize, bind: &mut Bind) -> Type {
        let value = match self.check(&mut bind.value) {
            found if bind.kind == BindKind::Value => found,
            Type::Optional(inner) => inner.as_ref().clone(),
            Type::Dyn => Type::Dyn,
            other => {
                // The macro calls both.
                for function in ["hasValue", "value"] {
                    let text = format!(
                        "found no matching overload for '{function}' applied to '{other}.()'"
                    );
                    self.issues.add(at, text);
                }
                Type::Dyn
            }
        };
        let before = self.variables.len();
        self.variables.push((Arc::clone(&bind.name), value));
        let body = self.check(&mut bind.body);
        self.variables.truncate(before);
        if bind.kind == BindKind::OptMap { Type::optional(body) } else { body }
    }
}

/// Returns true if values of a type have an order.
fn is_comparable(found: &Type) -> bool {
    matches!(
        found,
        Type::Dyn
            | Type::Bool
            | Type::Int
            | Type::Uint
            | Type::Double
            | Type::String
            | Type::Bytes
            | Type::Timestamp
            | Type::Duration
    )
}
