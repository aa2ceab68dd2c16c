//! The root of a schema.

use serde_json::Value;

use super::support::is_given;
use crate::field_error::FieldError;
use crate::open_api::type_of;
use crate::shown;

/// The fields that may stand at the root if the status is a subresource: the name in JSON, and the
/// name in messages.
const AT_ROOT: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// Reports what may not stand at the root if the status is a subresource: a check of the status
/// alone would not see it.
pub(super) fn check_root(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let type_name = type_of(schema);
    if !type_name.is_empty() && type_name != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the \
                      status subresource is enabled";
        errors.push(FieldError::invalid(format!("{at}.type"), &type_name.into(), detail));
        return;
    }
    let known = |name: &String| AT_ROOT.iter().any(|(known, _)| known == name);
    let fields = schema.as_object().into_iter().flatten();
    if fields.filter(|(name, value)| is_given(name, value)).any(|(name, _)| !known(name)) {
        let names: Vec<&str> = AT_ROOT.iter().map(|(_, name)| *name).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is \
             enabled",
            names.join(" ")
        );
        errors.push(FieldError::invalid(at, &shown::schema(schema), &detail));
    }
}
