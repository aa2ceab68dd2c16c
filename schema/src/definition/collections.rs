//! The extensions of the schemas of lists and maps.

use serde_json::{Value, json};

use crate::field_error::FieldError;
use crate::open_api::{flag, members, texts, type_of};

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";
const MAP_TYPE: &str = "x-kubernetes-map-type";

/// Checks the map type of a schema.
pub(super) fn check_map_type(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(map_type) = schema.get(MAP_TYPE).and_then(Value::as_str) else { return };
    let detail = "must be object if x-kubernetes-map-type is specified";
    check_expected_type(schema, "object", detail, at, errors);
    if !matches!(map_type, "atomic" | "granular") {
        let allowed = [json!("atomic"), json!("granular")];
        let path = format!("{at}.{MAP_TYPE}");
        errors.push(FieldError::not_supported(path, &map_type.into(), &allowed));
    }
}

/// Reports a type that an extension does not allow; returns whether there was one.
fn check_expected_type(
    schema: &Value,
    expected: &str,
    detail: &str,
    at: &str,
    errors: &mut Vec<FieldError>,
) -> bool {
    let (path, found) = (format!("{at}.type"), type_of(schema));
    if found == expected {
        return false;
    }
    errors.push(match found {
        "" => FieldError::required(path, detail),
        found => FieldError::invalid(path, &found.into(), detail),
    });
    true
}

/// Checks the list type of a schema, and the keys of its items.
pub(super) fn check_list_type(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let list_type = schema.get(LIST_TYPE).and_then(Value::as_str);
    let path = format!("{at}.{LIST_TYPE}");
    if let Some(list_type) = list_type {
        let detail = "must be array if x-kubernetes-list-type is specified";
        let wrong = check_expected_type(schema, "array", detail, at, errors);
        if !wrong && list_type == "set" {
            check_set_items(schema, at, errors);
        }
        if !matches!(list_type, "atomic" | "set" | "map") {
            let allowed = [json!("atomic"), json!("set"), json!("map")];
            errors.push(FieldError::not_supported(path.as_str(), &list_type.into(), &allowed));
        }
    }
    let has_keys = texts(schema.get(MAP_KEYS)).next().is_some();
    if has_keys && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(path, detail),
            Some(other) => FieldError::invalid(path, &other.into(), detail),
        });
    }
    if list_type == Some("map") {
        check_keys(schema, at, errors);
    }
    if let Some(list_type @ ("set" | "map")) = list_type {
        check_key_values(schema, list_type, at, errors);
    }
}

fn check_set_items(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(items) = schema.get("items") else { return };
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let stated = |name: &str| items.get(name).and_then(Value::as_str);
    let shown = json!(stated(LIST_TYPE));
    let name = match type_of(items) {
        "array" if stated(LIST_TYPE).is_some_and(|is| is != "atomic") => LIST_TYPE,
        "object" if stated(MAP_TYPE) != Some("atomic") => MAP_TYPE,
        _ => return,
    };
    errors.push(FieldError::invalid(format!("{at}.items.{name}"), &shown, detail));
}

fn check_keys(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let path = format!("{at}.{MAP_KEYS}");
    let keys: Vec<&str> = texts(schema.get(MAP_KEYS)).collect();
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(path.as_str(), detail));
    }
    let Some(items) = schema.get("items") else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(format!("{at}.items"), detail));
        return;
    };
    if type_of(items) != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let path = format!("{at}.items.type");
        errors.push(FieldError::invalid(path, &type_of(items).into(), detail));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        check_key(items, key, at, errors, &keys);
        if keys[..index].contains(key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(path.as_str(), &json!(keys), detail));
        }
    }
}

/// Reports a key that is no property of the items, or that is not a scalar.
fn check_key(items: &Value, key: &str, at: &str, errors: &mut Vec<FieldError>, keys: &[&str]) {
    match members(items, "properties").and_then(|fields| fields.get(key)) {
        Some(field) if matches!(type_of(field), "array" | "object") => {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            let path = format!("{at}.items.properties[{key}].type");
            errors.push(FieldError::invalid(path, &type_of(items).into(), detail));
        }
        Some(_) => {}
        None => {
            let detail = "entries must all be names of item properties";
            errors.push(FieldError::invalid(format!("{at}.{MAP_KEYS}"), &json!(keys), detail));
        }
    }
}

/// Reports keys that an item may lack.
fn check_key_values(schema: &Value, list_type: &str, at: &str, errors: &mut Vec<FieldError>) {
    let Some(items) = schema.get("items") else { return };
    if flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(format!("{at}.items.nullable"), &detail));
    }
    if list_type != "map" {
        return;
    }
    let required: Vec<&str> = texts(items.get("required")).collect();
    for key in texts(schema.get(MAP_KEYS)) {
        let Some(field) = members(items, "properties").and_then(|fields| fields.get(key)) else {
            continue;
        };
        let path = format!("{at}.items.properties[{key}]");
        if !required.contains(&key) && field.get("default").is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a \
                          default or be a required property";
            errors.push(FieldError::required(format!("{path}.default"), detail));
        }
        if flag(field, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{path}.nullable"), detail));
        }
    }
}
