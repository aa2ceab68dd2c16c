//! Versions of definitions, and their schemas, as the real server's messages show them: Go's
//! structs, whose members have no names in JSON.

use serde_json::{Value, json};

/// The members of `JSONSchemaProps`: the name in Go, the name in JSON, and how it is shown.
const SCHEMA: [(&str, &str, Shape); 44] = [
    ("ID", "id", Shape::Text),
    ("Schema", "$schema", Shape::Text),
    ("Ref", "$ref", Shape::Plain),
    ("Description", "description", Shape::Text),
    ("Type", "type", Shape::Text),
    ("Nullable", "nullable", Shape::Flag),
    ("Format", "format", Shape::Text),
    ("Title", "title", Shape::Text),
    ("Default", "default", Shape::Plain),
    ("Maximum", "maximum", Shape::Plain),
    ("ExclusiveMaximum", "exclusiveMaximum", Shape::Flag),
    ("Minimum", "minimum", Shape::Plain),
    ("ExclusiveMinimum", "exclusiveMinimum", Shape::Flag),
    ("MaxLength", "maxLength", Shape::Plain),
    ("MinLength", "minLength", Shape::Plain),
    ("Pattern", "pattern", Shape::Text),
    ("MaxItems", "maxItems", Shape::Plain),
    ("MinItems", "minItems", Shape::Plain),
    ("UniqueItems", "uniqueItems", Shape::Flag),
    ("MultipleOf", "multipleOf", Shape::Plain),
    ("Enum", "enum", Shape::Plain),
    ("MaxProperties", "maxProperties", Shape::Plain),
    ("MinProperties", "minProperties", Shape::Plain),
    ("Required", "required", Shape::Plain),
    ("Items", "items", Shape::OrList),
    ("AllOf", "allOf", Shape::Schemas),
    ("OneOf", "oneOf", Shape::Schemas),
    ("AnyOf", "anyOf", Shape::Schemas),
    ("Not", "not", Shape::Schema),
    ("Properties", "properties", Shape::Named(Inner::Schema)),
    ("AdditionalProperties", "additionalProperties", Shape::OrFlag),
    ("PatternProperties", "patternProperties", Shape::Named(Inner::Schema)),
    ("Dependencies", "dependencies", Shape::Named(Inner::OrTexts)),
    ("AdditionalItems", "additionalItems", Shape::OrFlag),
    ("Definitions", "definitions", Shape::Named(Inner::Schema)),
    ("ExternalDocs", "externalDocs", Shape::Object(&DOCS)),
    ("Example", "example", Shape::Plain),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Shape::Plain),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Shape::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Shape::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Shape::Plain),
    ("XListType", "x-kubernetes-list-type", Shape::Plain),
    ("XMapType", "x-kubernetes-map-type", Shape::Plain),
    ("XValidations", "x-kubernetes-validations", Shape::Objects(&RULE)),
];

const DOCS: [(&str, &str, Shape); 2] =
    [("Description", "description", Shape::Text), ("URL", "url", Shape::Text)];

const RULE: [(&str, &str, Shape); 6] = [
    ("Rule", "rule", Shape::Text),
    ("Message", "message", Shape::Text),
    ("MessageExpression", "messageExpression", Shape::Text),
    ("Reason", "reason", Shape::Plain),
    ("FieldPath", "fieldPath", Shape::Text),
    ("OptionalOldSelf", "optionalOldSelf", Shape::Plain),
];

const COLUMN: [(&str, &str, Shape); 6] = [
    ("Name", "name", Shape::Text),
    ("Type", "type", Shape::Text),
    ("Format", "format", Shape::Text),
    ("Description", "description", Shape::Text),
    ("Priority", "priority", Shape::Number),
    ("JSONPath", "jsonPath", Shape::Text),
];

const SUBRESOURCES: [(&str, &str, Shape); 2] =
    [("Status", "status", Shape::Plain), ("Scale", "scale", Shape::Object(&SCALE))];

const SCALE: [(&str, &str, Shape); 3] = [
    ("SpecReplicasPath", "specReplicasPath", Shape::Text),
    ("StatusReplicasPath", "statusReplicasPath", Shape::Text),
    ("LabelSelectorPath", "labelSelectorPath", Shape::Plain),
];

const FIELD: [(&str, &str, Shape); 1] = [("JSONPath", "jsonPath", Shape::Text)];

const SCHEMA_OF_VERSION: [(&str, &str, Shape); 1] =
    [("OpenAPIV3Schema", "openAPIV3Schema", Shape::Schema)];

/// The members of a version.
const VERSION: [(&str, &str, Shape); 9] = [
    ("Name", "name", Shape::Text),
    ("Served", "served", Shape::Flag),
    ("Storage", "storage", Shape::Flag),
    ("Deprecated", "deprecated", Shape::Flag),
    ("DeprecationWarning", "deprecationWarning", Shape::Plain),
    ("Schema", "schema", Shape::Object(&SCHEMA_OF_VERSION)),
    ("Subresources", "subresources", Shape::Object(&SUBRESOURCES)),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", Shape::Objects(&COLUMN)),
    ("SelectableFields", "selectableFields", Shape::Objects(&FIELD)),
];

type Members = &'static [(&'static str, &'static str, Shape)];

/// The form of a member.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// As in JSON, or null.
    Plain,
    Text,
    Flag,
    Number,
    Object(Members),
    Objects(Members),
    Schema,
    Schemas,
    Named(Inner),
    OrFlag,
    OrList,
}

/// The form of what stands under a name.
#[derive(Debug, Clone, Copy)]
enum Inner {
    Schema,
    OrTexts,
}

/// Returns a schema as messages show it.
pub(crate) fn schema(value: &Value) -> Value {
    object(&SCHEMA, value)
}

/// Returns a version of a `CustomResourceDefinition` as the real server's messages show it: Go's
/// struct, without the members that `is_hidden` names.
///
/// # Examples
///
/// ```
/// use homeostat_schema::show_version;
/// use serde_json::json;
///
/// let version = json!({"name": "v1", "served": true, "schema": {"openAPIV3Schema": {}}});
/// let shown = show_version(&version, |member| member == "schema");
/// assert_eq!((&shown["Name"], &shown["Served"]), (&json!("v1"), &json!(true)));
/// assert_eq!((&shown["Storage"], &shown["Schema"]), (&json!(false), &json!(null)));
/// ```
pub fn show_version(value: &Value, is_hidden: impl Fn(&str) -> bool) -> Value {
    let shown = VERSION.iter().map(|(name, key, shape)| {
        let value = value.get(*key).filter(|_| !is_hidden(key));
        ((*name).to_owned(), member(*shape, value.unwrap_or(&Value::Null)))
    });
    Value::Object(shown.collect())
}

fn object(members: Members, value: &Value) -> Value {
    let shown = members.iter().map(|(name, key, shape)| {
        ((*name).to_owned(), member(*shape, value.get(*key).unwrap_or(&Value::Null)))
    });
    Value::Object(shown.collect())
}

fn member(shape: Shape, value: &Value) -> Value {
    let list = |show: &dyn Fn(&Value) -> Value| {
        value.as_array().map(|items| items.iter().map(show).collect::<Value>())
    };
    match (shape, value) {
        (Shape::Text, Value::Null) => json!(""),
        (Shape::Flag, Value::Null) => json!(false),
        (Shape::Number, Value::Null) => json!(0),
        (_, Value::Null) => Value::Null,
        (Shape::Object(members), value) => object(members, value),
        (Shape::Objects(members), _) => list(&|item| object(members, item)).unwrap_or_default(),
        (Shape::Schema, value) => schema(value),
        (Shape::Schemas, _) => list(&schema).unwrap_or_default(),
        (Shape::Named(inner), Value::Object(named)) => {
            let show = |(name, value): (&String, &Value)| (name.clone(), below(inner, value));
            Value::Object(named.iter().map(show).collect())
        }
        (Shape::OrFlag, Value::Bool(allows)) => json!({"Allows": allows, "Schema": null}),
        (Shape::OrFlag, value) => json!({"Allows": true, "Schema": schema(value)}),
        (Shape::OrList, Value::Array(_)) => json!({"Schema": null, "JSONSchemas": list(&schema)}),
        (Shape::OrList, value) => json!({"Schema": schema(value), "JSONSchemas": null}),
        (_, value) => value.clone(),
    }
}

fn below(inner: Inner, value: &Value) -> Value {
    match (inner, value) {
        (Inner::Schema, value) => schema(value),
        (Inner::OrTexts, Value::Array(_)) => json!({"Schema": null, "Property": value}),
        (Inner::OrTexts, value) => json!({"Schema": schema(value), "Property": null}),
    }
}
