//! Metrics of the first version, and their values.

use serde_json::{Value, json};

use crate::fields::Fields;

/// The sources of metrics that name a metric; the others name a resource.
const NAMED: [&str; 3] = ["object", "pods", "external"];
const SOURCES: [&str; 5] = ["object", "pods", "resource", "containerResource", "external"];

/// Converts a metric from the second version.
pub(super) fn show(mut metric: Value, values: &str) -> Value {
    for source in SOURCES {
        if let Some(Value::Object(from)) = metric.get_mut(source) {
            show_values(from, source, values);
            show_metric(from, source);
        }
    }
    metric
}

/// Moves the values of a source. Some members of the first version are zero if they are missing.
fn show_values(from: &mut Fields, source: &str, values: &str) {
    let found = from.remove(values).unwrap_or_default();
    let (value, average) = (format!("{values}Value"), format!("{values}AverageValue"));
    let percent = format!("{values}AverageUtilization");
    let is_status = values == "current";
    let members = match source {
        "object" => {
            vec![(value, "value", true), ("averageValue".to_owned(), "averageValue", false)]
        }
        "pods" => vec![(average, "averageValue", true)],
        "external" => vec![(value, "value", is_status), (average, "averageValue", false)],
        _ => vec![(percent, "averageUtilization", false), (average, "averageValue", is_status)],
    };
    for (name, member, is_needed) in members {
        match &found[member] {
            Value::Null if is_needed => from.insert(name, json!("0")),
            Value::Null => None,
            value => from.insert(name, value.clone()),
        };
    }
}

/// Moves the name and the selector of a metric, and the object it describes.
fn show_metric(from: &mut Fields, source: &str) {
    let selector = if source == "external" { "metricSelector" } else { "selector" };
    if NAMED.contains(&source) {
        let metric = from.remove("metric").unwrap_or_default();
        from.insert("metricName".to_owned(), metric["name"].clone());
        if !metric["selector"].is_null() {
            from.insert(selector.to_owned(), metric["selector"].clone());
        }
    }
    if let Some(object) = from.remove("describedObject") {
        from.insert("target".to_owned(), object);
    }
}

/// Converts a metric to the second version.
pub(super) fn read(mut metric: Value, values: &str) -> Value {
    for source in SOURCES {
        if let Some(Value::Object(from)) = metric.get_mut(source) {
            let described = from.remove("target");
            let found = read_values(from, source, values);
            read_metric(from, source);
            if let Some(object) = described {
                from.insert("describedObject".to_owned(), object);
            }
            from.insert(values.to_owned(), Value::Object(found));
        }
    }
    metric
}

fn read_values(from: &mut Fields, source: &str, values: &str) -> Fields {
    let mut found = Fields::new();
    for (name, member) in [
        (format!("{values}Value"), "value"),
        (format!("{values}AverageValue"), "averageValue"),
        (format!("{values}AverageUtilization"), "averageUtilization"),
        ("averageValue".to_owned(), "averageValue"),
    ] {
        if let Some(value) = from.remove(&name).filter(|value| !value.is_null()) {
            found.insert(member.to_owned(), value);
        }
    }
    if values == "target" {
        let kind = type_of_target(source, &mut found);
        found.insert("type".to_owned(), json!(kind));
    }
    found
}

fn read_metric(from: &mut Fields, source: &str) {
    if !NAMED.contains(&source) {
        return;
    }
    let mut named = Fields::new();
    named.insert("name".to_owned(), from.remove("metricName").unwrap_or_default());
    let selectors = [from.remove("selector"), from.remove("metricSelector")];
    for selector in selectors.into_iter().flatten() {
        named.insert("selector".to_owned(), selector);
    }
    from.insert("metric".to_owned(), Value::Object(named));
}

/// Returns the type of a target, which the first version does not name. A value of zero beside an
/// average one stands for none.
fn type_of_target(source: &str, found: &mut Fields) -> &'static str {
    let has = |name: &str| found.contains_key(name);
    match source {
        "object" if has("averageValue") => {
            if found.get("value").is_some_and(|value| *value == "0") {
                found.remove("value");
            }
            "AverageValue"
        }
        "object" => "Value",
        "external" if has("value") => "Value",
        "resource" | "containerResource" if has("averageUtilization") => "Utilization",
        _ => "AverageValue",
    }
}
