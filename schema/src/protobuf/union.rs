//! The types of `JSONSchemaProps` that have several forms in JSON, and one message in protobuf.

use crate::node::Field;

/// A schema, or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Union {
    /// `JSONSchemaPropsOrArray`: a schema is field 1, a list of schemas is field 2.
    OrSchemas,
    /// `JSONSchemaPropsOrBool`: a boolean is field 1, a schema is field 2.
    OrBoolean,
    /// `JSONSchemaDependencies`: a map; in each value a schema is field 1, a list of texts field 2.
    DependenciesOrTexts,
}

// === impl Union ===

impl Union {
    /// Returns the union that a field of `JSONSchemaProps` is, if it is one.
    pub(super) fn of(field: &Field) -> Option<Self> {
        match &*field.go_type {
            "v1.JSONSchemaPropsOrArray" => Some(Self::OrSchemas),
            "v1.JSONSchemaPropsOrBool" => Some(Self::OrBoolean),
            "v1.JSONSchemaDependencies" => Some(Self::DependenciesOrTexts),
            _ => None,
        }
    }
}
