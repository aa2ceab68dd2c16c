//! The webhook that converts gadgets. The member `spec.mode` of an object says what it answers.

use serde_json::{Value, json};

const GROUP: &str = "conversions.example.com";

/// Returns the reply to a review: its status and its body.
pub(crate) fn convert(review: &Value) -> (u16, String) {
    let request = &review["request"];
    let objects = request["objects"].as_array().unwrap();
    let to = request["desiredAPIVersion"].as_str().unwrap();
    // Only the old version is refused: a gadget can be stored.
    let is_old = to.ends_with("/v1beta1");
    let mode = objects.iter().find_map(|object| object["spec"]["mode"].as_str());
    let mode = mode.filter(|mode| is_old || *mode == "unstorable").unwrap_or_default();
    match mode {
        "http-error" => return (500, "something \"odd\"\n".to_owned()),
        "not-found" => return (404, "something \"odd\"\n".to_owned()),
        "not-json" => return (200, "nonsense".to_owned()),
        "empty" => return (200, String::new()),
        "other-kind" => return (200, r#"{"kind":"Pod","apiVersion":"v1"}"#.to_owned()),
        _ => {}
    }
    let mut converted: Vec<Value> = objects.iter().map(|object| gadget(object, to)).collect();
    for object in &mut converted {
        spoil(object, mode);
    }
    match mode {
        "none" => converted.clear(),
        "two" => converted.extend(converted.clone()),
        _ => {}
    }
    let mut result = json!({"status": "Success"});
    match mode {
        "fail" | "unstorable" => result = json!({"status": "Failure", "message": "no way"}),
        "fail-silently" => result = json!({"status": "Failure"}),
        "no-result" => result = json!({}),
        _ => {}
    }
    let mut response =
        json!({"uid": request["uid"], "result": result, "convertedObjects": converted});
    match mode {
        "wrong-uid" => response["uid"] = json!("other"),
        "text-uid" => response["uid"] = json!(5),
        "text-objects" => response["convertedObjects"] = json!("text"),
        "text-result" => response["result"] = json!("text"),
        _ => {}
    }
    let mut answer = json!({"kind": review["kind"], "apiVersion": review["apiVersion"],
        "response": response});
    match mode {
        "no-kind" => answer = json!({"response": response}),
        "beta" => answer["apiVersion"] = json!("apiextensions.k8s.io/v1beta1"),
        "no-response" => answer["response"] = Value::Null,
        _ => {}
    }
    (200, answer.to_string())
}

/// Converts a gadget: the old version has one text for host and port.
fn gadget(object: &Value, to: &str) -> Value {
    let mut converted = object.clone();
    converted["apiVersion"] = json!(to);
    let Some(spec) = converted["spec"].as_object_mut() else { return converted };
    if to == format!("{GROUP}/v1beta1") {
        let host = spec.remove("host");
        let port = spec.remove("port");
        if let (Some(Value::String(host)), Some(Value::String(port))) = (&host, &port) {
            spec.insert("hostPort".to_owned(), json!(format!("{host}:{port}")));
        }
        if let Some(count) = spec.remove("replicas") {
            spec.insert("count".to_owned(), count);
        }
    } else {
        if let Some(Value::String(both)) = spec.remove("hostPort") {
            let (host, port) = both.split_once(':').unwrap_or((&both, ""));
            spec.insert("host".to_owned(), json!(host));
            spec.insert("port".to_owned(), json!(port));
        }
        if let Some(count) = spec.remove("count") {
            spec.insert("replicas".to_owned(), count);
        }
    }
    if object["metadata"]["name"] == "a" {
        // The schema prunes it.
        spec.insert("unknown".to_owned(), json!(true));
    }
    converted
}

/// Breaks a rule for converted objects.
fn spoil(object: &mut Value, mode: &str) {
    let metadata = &mut object["metadata"];
    match mode {
        "version" => object["apiVersion"] = json!("conversions.example.com/v1"),
        "no-version" => drop(object.as_object_mut().unwrap().remove("apiVersion")),
        "kind" => object["kind"] = json!("Other"),
        "name" => metadata["name"] = json!("other"),
        "namespace" => metadata["namespace"] = json!("other"),
        "uid" => metadata["uid"] = json!("other"),
        "no-metadata" => drop(object.as_object_mut().unwrap().remove("metadata")),
        "text-labels" => metadata["labels"] = json!("text"),
        "number-label" => metadata["labels"] = json!({"a": 1}),
        "bad-label" => metadata["labels"] = json!({"a b": "c"}),
        "bad-annotation" => metadata["annotations"] = json!({"a b": "c"}),
        "metadata" => {
            metadata["labels"] = json!({"hook": "was-here"});
            metadata["annotations"] = json!({"hook": "was here"});
            metadata["generation"] = json!(7);
            metadata["finalizers"] = json!(["example.com/f"]);
            metadata["ownerReferences"] = json!([]);
        }
        _ => {}
    }
}
