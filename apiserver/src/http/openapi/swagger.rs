//! `OpenAPI` v2: the document of all kinds, made from that of v3.

use serde_json::{Map, Value, json};

/// The members of a schema that the real server publishes in `OpenAPI` v2: no defaults.
const SCHEMA: &[&str] = &[
    "$ref",
    "additionalProperties",
    "allOf",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
];
/// The place of the schemas in a document of v3.
const COMPONENTS: &str = "#/components/schemas/";
/// The member of a schema whose objects have further members.
const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
/// The member that only the schema of a kind has.
const KIND: &str = "x-kubernetes-group-version-kind";

/// Turns a document of v3 into one of v2.
pub(super) fn from_v3(document: &Value) -> Value {
    let members = |pointer: &str| document.pointer(pointer).and_then(Value::as_object);
    let definitions: Map<String, Value> = members("/components/schemas")
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.clone(), definition(name, schema)))
        .collect();
    let paths: Map<String, Value> = members("/paths")
        .into_iter()
        .flatten()
        .map(|(path, item)| (path.clone(), path_item(item)))
        .collect();
    json!({
        "swagger": "2.0", "info": document["info"], "paths": paths, "definitions": definitions,
    })
}

/// Returns a schema of the document. Scalars with several types are texts, as in the real document.
fn definition(name: &str, schema: &Value) -> Value {
    let mut definition = match name.rsplit('.').next().unwrap_or_default() {
        "IntOrString" => json!({"type": "string", "format": "int-or-string"}),
        "Quantity" => json!({"type": "string"}),
        _ => return convert(schema),
    };
    if let Some(text) = schema.get("description") {
        definition["description"] = text.clone();
    }
    definition
}

fn convert(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    if let Some(reference) = reference(members) {
        let beside = |name: &str| name == "description" || is_rule(name);
        let beside = members.iter().filter(|(name, _)| beside(name));
        let own = beside.map(|(name, value)| (name.clone(), value.clone()));
        return own.chain([("$ref".to_owned(), json!(reference))]).collect();
    }
    let omitted = omitted(members);
    let mut converted = Map::new();
    for (name, value) in members {
        let known = SCHEMA.contains(&name.as_str()) || is_rule(name);
        if !known || omitted.contains(&name.as_str()) {
            continue;
        }
        let value = match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, schema)| (name.clone(), convert(schema))).collect()
            }
            ("items" | "additionalProperties", schema) => convert(schema),
            ("allOf", Value::Array(schemas)) => schemas.iter().map(convert).collect(),
            (_, value) => value.clone(),
        };
        converted.insert(name.clone(), value);
    }
    Value::Object(converted)
}

/// Returns true if a member is an extension by Kubernetes.
fn is_rule(name: &str) -> bool {
    name.starts_with("x-kubernetes-")
}

/// Returns the members of a schema that version 2 cannot have beside the others: kubectl refuses
/// every member that the properties do not list.
fn omitted(members: &Map<String, Value>) -> &'static [&'static str] {
    let is = |name: &str| members.get(name) == Some(&Value::Bool(true));
    match (is(PRESERVES), is("nullable")) {
        // A kind has no other schema, so that its objects need some type.
        (true, _) if members.contains_key(KIND) => &["properties", "items", "required", PRESERVES],
        // A schema of version 2 is not nullable. Without a type any value fits.
        (true, _) | (_, true) => &["type", "properties", "items", "allOf"],
        // Nor has it several types.
        _ if members.contains_key("oneOf") || members.contains_key("anyOf") => &["type", "allOf"],
        _ => &[],
    }
}

/// Returns the reference that a schema is. In v3 it stands alone in `allOf`.
fn reference(members: &Map<String, Value>) -> Option<String> {
    let single = match members.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([Value::Object(single)]) => single,
        _ => members,
    };
    let name = single.get("$ref")?.as_str()?.strip_prefix(COMPONENTS)?;
    Some(format!("#/definitions/{name}"))
}

fn path_item(item: &Value) -> Value {
    let Value::Object(members) = item else { return Value::Null };
    let convert = |(name, value): (&String, &Value)| {
        let value = if name == "parameters" { parameters(value) } else { operation(value) };
        (name.clone(), value)
    };
    Value::Object(members.iter().map(convert).collect())
}

fn operation(operation: &Value) -> Value {
    let mut converted = Map::new();
    let mut list = parameters(&operation["parameters"]);
    let content = &operation["requestBody"]["content"];
    if let (Value::Object(content), Value::Array(list)) = (content, &mut list) {
        let schema = content.values().next().map(|body| convert(&body["schema"]));
        list.push(json!({"name": "body", "in": "body", "required": true, "schema": schema}));
        let consumes: Vec<&String> = content.keys().collect();
        converted.insert("consumes".to_owned(), json!(consumes));
    }
    converted.insert("parameters".to_owned(), list);
    let responses = operation["responses"].as_object().into_iter().flatten();
    let responses: Map<String, Value> =
        responses.map(|(code, answer)| (code.clone(), response(answer))).collect();
    converted.insert("responses".to_owned(), Value::Object(responses));
    for (name, value) in operation.as_object().into_iter().flatten() {
        if is_rule(name) || matches!(name.as_str(), "description" | "operationId" | "tags") {
            converted.insert(name.clone(), value.clone());
        }
    }
    Value::Object(converted)
}

fn response(response: &Value) -> Value {
    let mut converted = json!({"description": response["description"]});
    if let Some(schema) = response.pointer("/content/application~1json/schema") {
        converted["schema"] = convert(schema);
    }
    converted
}

/// Returns the parameters, whose type stands beside their name.
fn parameters(list: &Value) -> Value {
    let convert = |parameter: &Value| {
        let mut converted = parameter.clone();
        if let Value::Object(members) = &mut converted
            && let Some(Value::Object(schema)) = members.remove("schema")
        {
            members.extend(schema);
        }
        converted
    };
    list.as_array().into_iter().flatten().map(convert).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_keeps_what_version_2_has() {
        let schema = json!({
            "type": "object",
            "properties": {
                "port": {"allOf": [{"$ref": "#/components/schemas/a.IntOrString"}]},
                "any": {"type": "string", "nullable": true},
                "list": {"type": "array", "items": {"$ref": "#/components/schemas/b.Item"}},
            },
            "x-kubernetes-group-version-kind": [{"kind": "A"}],
        });
        let document = json!({
            "info": {"title": "Kubernetes"},
            "paths": {"/a/{name}": {"get": {"responses": {"200": {"content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}}}},
            "components": {"schemas": {"A": schema, "a.IntOrString": {"oneOf": []}}},
        });
        let converted = from_v3(&document);
        let properties = &converted["definitions"]["A"]["properties"];
        assert_eq!(properties["port"], json!({"$ref": "#/definitions/a.IntOrString"}));
        assert_eq!(properties["any"], json!({}));
        assert_eq!(properties["list"]["items"], json!({"$ref": "#/definitions/b.Item"}));
        let port = &converted["definitions"]["a.IntOrString"];
        assert_eq!(*port, json!({"type": "string", "format": "int-or-string"}));
        let get = &converted["paths"]["/a/{name}"]["get"];
        assert_eq!(get["responses"]["200"]["schema"], json!({"$ref": "#/definitions/A"}));
    }

    #[test]
    fn schema_that_preserves_unknown_fields_lists_none() {
        let text = json!({"type": "string"});
        let kind = convert(&json!({
            "type": "object", "properties": {"kind": text}, "required": ["spec"],
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-group-version-kind": [{"kind": "A"}],
        }));
        let expected =
            json!({"type": "object", "x-kubernetes-group-version-kind": [{"kind": "A"}]});
        assert_eq!(kind, expected);
        let member = convert(&json!({
            "type": "object", "properties": {"a": text}, "description": "d",
            "x-kubernetes-preserve-unknown-fields": true,
        }));
        let expected = json!({"description": "d", "x-kubernetes-preserve-unknown-fields": true});
        assert_eq!(member, expected);
        let nullable = convert(&json!({
            "type": "object", "properties": {"a": text}, "nullable": true,
        }));
        assert_eq!(nullable, json!({}));
    }

    #[test]
    fn parameter_has_its_type_beside_its_name() {
        let operation = operation(&json!({
            "parameters": [{"name": "dryRun", "in": "query", "schema": {"type": "string"}}],
            "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
        }));
        let expected = json!([
            {"name": "dryRun", "in": "query", "type": "string"},
            {"name": "body", "in": "body", "required": true, "schema": {"type": "object"}},
        ]);
        assert_eq!(operation["parameters"], expected);
        assert_eq!(operation["consumes"], json!(["application/json"]));
    }
}
