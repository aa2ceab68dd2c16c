//! The variables of an expression, apart from those of its loops.

use std::collections::HashMap;
use std::sync::Arc;

use super::expression::{Expr, Kind, Literal, Mode, Select};
use super::types::Type;

/// The types of variables by their names.
///
/// A name with a point, such as `variables.a`, is a variable of its own: an expression that selects
/// `a` of `variables` reads it, and nothing has the value of `variables`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    types: HashMap<Arc<str>, Type>,
}

// === impl Scope ===

impl Scope {
    pub(crate) fn of(variables: &[(&str, Type)]) -> Self {
        let variables = variables.iter().map(|(name, kind)| (Arc::from(*name), kind.clone()));
        Self { types: variables.collect() }
    }

    pub(crate) fn insert(&mut self, name: &str, kind: Type) {
        self.types.insert(name.into(), kind.limited());
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }

    /// Returns the form and the type of a selection that names a variable.
    pub(super) fn selected(&self, at: usize, select: &Select) -> Option<(Kind, Type)> {
        let Kind::Ident(of) = &select.operand.kind else { return None };
        let name: Arc<str> = format!("{of}.{}", select.field).into();
        let found = self.types.get(&name)?;
        let mut ident = Expr::new(at, Kind::Ident(name));
        ident.found = found.clone();
        Some(match select.mode {
            Mode::Value => (ident.kind, found.clone()),
            Mode::Test => (Kind::Literal(Literal::Bool(true)), Type::Bool),
            Mode::Optional => {
                let call = Expr::call(at, "optional.of", vec![ident]);
                (call.kind, Type::optional(found.clone()))
            }
        })
    }
}
