//! Values with fields that an expression makes: parts of an object, and operations of a patch.

use super::Value;
use crate::cel::error::EvalError;
use crate::cel::scope::{OBJECT, PATCH};

/// A value of a type that has a name, such as `Object.spec{replicas: 1}`.
#[derive(Debug, Clone)]
pub(crate) struct StructValue<'a> {
    name: &'a str,
    fields: Vec<(&'a str, Value<'a>)>,
}

// === impl StructValue ===

impl<'a> StructValue<'a> {
    /// Creates a value.
    ///
    /// # Errors
    ///
    /// If a field of a patch is unknown or has a value of another type. The checker does not know
    /// the types of all values.
    pub(in crate::cel) fn new(
        name: &'a str,
        fields: Vec<(&'a str, Value<'a>)>,
    ) -> Result<Self, EvalError> {
        for (field, value) in fields.iter().filter(|_| name == PATCH) {
            match (*field, value) {
                ("value", _) | ("op" | "path" | "from", Value::String(_)) => {}
                ("op" | "path" | "from", value) => {
                    return Err(EvalError::new(format!(
                        "unexpected type {} for JSONPatchType '{field}' field",
                        value.go_value_type()
                    )));
                }
                (unknown, _) => {
                    let text = format!("unexpected JSONPatchType field: {unknown}");
                    return Err(EvalError::new(text));
                }
            }
        }
        Ok(Self { name, fields })
    }

    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    pub(crate) fn fields(&self) -> &[(&'a str, Value<'a>)] {
        &self.fields
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Value<'a>> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Returns the name of the type without those of the fields that lead to it.
    pub(super) fn kind(&self) -> &'static str {
        if self.name == PATCH { PATCH } else { OBJECT }
    }
}
