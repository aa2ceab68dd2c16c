//! The metadata of the objects inside of a custom object (`x-kubernetes-embedded-resource`).

use std::convert::Infallible;

use homeostat_schema::{FieldError, Schema, aggregate};
use serde_json::{Value, json};

use crate::fields::Fields;
use crate::go_json::kind_of;
use crate::kinds::metadata::check_inner;
use crate::status::Cause;
use crate::types::{Types, normalize_type, unknown_below, wrong_member};

/// Normalizes the metadata of embedded objects, as the real server's decoder does. Reports the
/// unknown fields, which are removed.
///
/// # Errors
///
/// Fails if an embedded object has a type or metadata of a wrong type.
pub(super) fn normalize(schema: &Schema, object: &mut Value) -> Result<Vec<String>, FieldError> {
    let mut unknown = Vec::new();
    schema.visit_embedded(object, &mut |path, fields| {
        for name in ["apiVersion", "kind"] {
            if let Some(value) = fields.get(name).filter(|value| !value.is_string()) {
                let path = format!("{path}.{name}");
                return Err(FieldError::invalid(path, value, "must be a string"));
            }
        }
        let Some(metadata) = fields.get_mut("metadata") else { return Ok(()) };
        let path = format!("{path}.metadata");
        unknown.extend(normalize_metadata(&path, metadata)?);
        Ok(())
    })?;
    unknown.sort();
    Ok(unknown)
}

/// Returns the problem of the metadata of an object, which may be a part of another one.
pub(crate) fn problem_of_metadata(object: &Fields) -> Option<String> {
    let mut metadata = object.get("metadata")?.clone();
    if let Err(error) = normalize_metadata("metadata", &mut metadata) {
        return Some(error.to_string());
    }
    let Value::Object(metadata) = metadata else { return None };
    let causes = check_inner(metadata);
    (!causes.is_empty()).then(|| aggregate(causes.iter().map(Cause::text)))
}

fn normalize_metadata(path: &str, metadata: &mut Value) -> Result<Vec<String>, FieldError> {
    let known = Types::all().metadata();
    let fields = match metadata {
        Value::Object(fields) => fields,
        Value::Null => {
            *metadata = json!({});
            return Ok(Vec::new());
        }
        other => {
            let found = kind_of(other);
            let detail =
                format!("json: cannot unmarshal {found} into Go value of type v1.ObjectMeta");
            return Err(FieldError::invalid(path, other, &detail));
        }
    };
    if let Some(wrong) = wrong_member(known, fields) {
        return Err(FieldError::invalid(path, metadata, &wrong.decoded));
    }
    let unknown = unknown_below(path.to_owned(), known, fields);
    normalize_type(known, fields);
    if fields.get("creationTimestamp").is_some_and(Value::is_null) {
        fields.remove("creationTimestamp");
    }
    Ok(unknown)
}

/// Returns the paths and the metadata of embedded objects.
pub(super) fn metadata(schema: &Schema, object: &Fields) -> Vec<(String, Fields)> {
    let mut object = Value::Object(object.clone());
    let mut found = Vec::new();
    let visited: Result<(), Infallible> =
        schema.visit_embedded(&mut object, &mut |path, fields| {
            if let Some(Value::Object(metadata)) = fields.get("metadata") {
                found.push((format!("{path}.metadata"), metadata.clone()));
            }
            Ok(())
        });
    let Ok(()) = visited;
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(object: Value) -> (Result<Vec<String>, String>, Value) {
        let pod = json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true});
        let schema = Schema::from_open_api(&json!({"type": "object", "properties": {"pod": pod}}));
        let mut object = object;
        let result = normalize(&schema, &mut object).map_err(|error| error.to_string());
        (result, object)
    }

    #[test]
    fn embedded_metadata_keeps_only_known_fields() {
        let owner = json!([{"kind": "A", "x": 1}]);
        let (unknown, object) = normalized(json!({"pod": {"x": 1, "metadata": {"name": "a",
            "bogus": 1, "labels": {}, "ownerReferences": owner}}}));
        let expected = ["pod.metadata.bogus", "pod.metadata.ownerReferences[0].x"];
        let expected = expected.map(|path| format!("unknown field \"{path}\""));
        assert_eq!(unknown.unwrap(), expected);
        assert_eq!(object["pod"]["metadata"]["name"], "a");
        assert_eq!(object["pod"]["metadata"].get("bogus"), None);
        assert_eq!(object["pod"]["x"], 1);
        let (unknown, object) = normalized(json!({"pod": {"metadata": null}}));
        assert_eq!((unknown, object), (Ok(Vec::new()), json!({"pod": {"metadata": {}}})));
    }

    #[test]
    fn embedded_value_of_wrong_type_is_an_error() {
        let number = "json: cannot unmarshal number into Go";
        for (pod, expected) in [
            (json!({"kind": 7}), "pod.kind: Invalid value: 7: must be a string".to_owned()),
            (
                json!({"metadata": 7}),
                format!("pod.metadata: Invalid value: 7: {number} value of type v1.ObjectMeta"),
            ),
            (
                json!({"metadata": {"name": 1}}),
                format!(
                    "pod.metadata: Invalid value: {{\"name\":1}}: {number} struct field \
                     ObjectMeta.name of type string"
                ),
            ),
        ] {
            assert_eq!(normalized(json!({"pod": pod})).0, Err(expected));
        }
    }
}
