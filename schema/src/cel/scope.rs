//! The variables of an expression, apart from those of its loops.

use std::collections::HashMap;
use std::sync::Arc;

use super::expression::{Expr, Kind, Literal, Mode, Select};
use super::types::Type;

/// The type of a part of an object that an expression makes. A field of it has its name appended.
pub(super) const OBJECT: &str = "Object";
/// The type of an operation of a JSON patch.
pub(super) const PATCH: &str = "JSONPatch";

/// The types of variables by their names.
///
/// A name with a point, such as `variables.a`, is a variable of its own: an expression that selects
/// `a` of `variables` reads it, and nothing has the value of `variables`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    types: HashMap<Arc<str>, Type>,
    /// True if expressions may make the values of mutations: `Object{…}` and `JSONPatch{…}`.
    has_patches: bool,
}

/// Returns the type of a field; `None` if the type has no such field.
pub(super) fn field_type(name: &str, field: &str) -> Option<Type> {
    match field {
        _ if name != PATCH => Some(Type::Dyn),
        "value" => Some(Type::Dyn),
        "op" | "path" | "from" => Some(Type::String),
        _ => None,
    }
}

// === impl Scope ===

impl Scope {
    pub(crate) fn of(variables: &[(&str, Type)]) -> Self {
        let variables = variables.iter().map(|(name, kind)| (Arc::from(*name), kind.clone()));
        Self { types: variables.collect(), has_patches: false }
    }

    /// Returns the scope of expressions that make the values of mutations.
    pub(crate) fn with_patches(self) -> Self {
        Self { has_patches: true, ..self }
    }

    /// Returns true if expressions may call the functions of mutations.
    pub(super) fn has_patches(&self) -> bool {
        self.has_patches
    }

    /// Returns true if expressions may make values of a type.
    pub(super) fn has_struct(&self, name: &str) -> bool {
        self.has_patches && (name == PATCH || name == OBJECT || name.starts_with("Object."))
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
