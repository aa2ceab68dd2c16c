//! Cells that show the first of several things: addresses, ports and metrics.

use serde_json::{Value, json};

use super::Subject;
use super::text::unless_empty;
use crate::fields::text;

/// The number of addresses and ports that a cell shows.
const MAX: usize = 3;
/// The number of metrics that a cell shows.
const MAX_METRICS: usize = 2;
const UNKNOWN: &str = "<unknown>";

/// Joins the first `max` texts, and counts the others.
fn first(texts: &[String], max: usize, separator: &str) -> String {
    let shown = texts[..texts.len().min(max)].join(separator);
    if texts.len() > max { format!("{shown} + {} more...", texts.len() - max) } else { shown }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The addresses of an Endpoints, each with each port.
pub(super) fn endpoints(endpoints: &Subject<'_>) -> Value {
    let mut shown = Vec::new();
    for subset in endpoints.list("subsets") {
        let addresses = list(subset, "addresses").iter().map(|address| text(address, "ip"));
        let ports = list(subset, "ports");
        if ports.is_empty() {
            shown.extend(addresses.map(str::to_owned));
            continue;
        }
        for port in ports {
            let port = port.get("port").and_then(Value::as_i64).unwrap_or_default();
            shown.extend(addresses.clone().map(|address| with_port(address, port)));
        }
    }
    let is_empty = endpoints.list("subsets").is_empty();
    json!(if is_empty { "<none>".to_owned() } else { first(&shown, MAX, ",") })
}

fn with_port(address: &str, port: i64) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

/// The ports of an endpoint slice.
pub(super) fn slice_ports(slice: &Subject<'_>) -> Value {
    let shown = |port: &Value| match (port.get("port").and_then(Value::as_i64), port.get("name")) {
        (Some(port), _) => port.to_string(),
        (None, Some(Value::String(name))) => name.clone(),
        (None, _) => "*".to_owned(),
    };
    let ports: Vec<String> = slice.list("ports").iter().map(shown).collect();
    json!(unless_empty(first(&ports, MAX, ","), "<unset>"))
}

/// The addresses of an endpoint slice.
pub(super) fn slice_addresses(slice: &Subject<'_>) -> Value {
    let addresses = slice.list("endpoints").iter().flat_map(|endpoint| list(endpoint, "addresses"));
    let addresses = addresses.filter_map(Value::as_str).map(str::to_owned);
    let addresses: Vec<String> = addresses.collect();
    json!(unless_empty(first(&addresses, MAX, ","), "<unset>"))
}

/// The object that an autoscaler scales.
pub(super) fn scaled(autoscaler: &Subject<'_>) -> Value {
    let [kind, name] =
        ["kind", "name"].map(|key| autoscaler.text(&format!("spec.scaleTargetRef.{key}")));
    json!(format!("{kind}/{name}"))
}

/// The least replicas of an autoscaler.
pub(super) fn least_replicas(autoscaler: &Subject<'_>) -> Value {
    let least = autoscaler.get("spec.minReplicas").and_then(Value::as_i64);
    json!(least.map_or_else(|| "<unset>".to_owned(), |least| least.to_string()))
}

/// The metrics of an autoscaler: each present value, and its target.
pub(super) fn metrics(autoscaler: &Subject<'_>) -> Value {
    let present = autoscaler.list("status.currentMetrics");
    let metrics = autoscaler.list("spec.metrics").iter().enumerate();
    let shown: Vec<String> =
        metrics.map(|(at, metric)| metric_text(metric, present.get(at))).collect();
    json!(if shown.is_empty() { "<none>".to_owned() } else { first(&shown, MAX_METRICS, ", ") })
}

fn metric_text(metric: &Value, present: Option<&Value>) -> String {
    let kind = text(metric, "type");
    let (source, is_resource) = match kind {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let Some(spec) = metric.get(source) else { return "<unknown type>".to_owned() };
    let target = spec.get("target").unwrap_or(&Value::Null);
    let current = present.and_then(|present| present.get(source)?.get("current"));
    let amount = |of: Option<&Value>, key: &str, missing: &str| {
        of.and_then(|of| of.get(key)?.as_str()).unwrap_or(missing).to_owned()
    };
    // A quantity that is missing from a value that is there is zero.
    let missing = if current.is_some() { "0" } else { UNKNOWN };
    let has_average = target.get("averageValue").is_some_and(|value| !value.is_null());
    if is_resource {
        let name = text(spec, "name");
        if has_average {
            let current = amount(current, "averageValue", missing);
            return format!("{name}: {current}/{}", text(target, "averageValue"));
        }
        let percent = |of: Option<&Value>, missing: &str| {
            let share = of.and_then(|of| of.get("averageUtilization")?.as_i64());
            share.map_or_else(|| missing.to_owned(), |share| format!("{share}%"))
        };
        return format!(
            "{name}: {}/{}",
            percent(current, UNKNOWN),
            percent(Some(target), "<auto>")
        );
    }
    if kind == "Pods" {
        let current = amount(current, "averageValue", missing);
        return format!("{current}/{}", amount(Some(target), "averageValue", "0"));
    }
    if has_average {
        let current = amount(current, "averageValue", UNKNOWN);
        return format!("{current}/{} (avg)", text(target, "averageValue"));
    }
    format!("{}/{}", amount(current, "value", missing), amount(Some(target), "value", "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_than_the_first_are_counted() {
        let texts = ["a", "b", "c", "d", "e"].map(str::to_owned);
        assert_eq!(first(&texts[..3], 3, ","), "a,b,c");
        assert_eq!(first(&texts, 3, ","), "a,b,c + 2 more...");
        assert_eq!(first(&[], 3, ","), "");
    }

    #[test]
    fn metric_shows_its_present_value_and_its_target() {
        let shown = |metric: Value, present: Value| {
            metric_text(&metric, Some(&present).filter(|present| !present.is_null()))
        };
        let of_cpu = |target: Value| json!({"name": "cpu", "target": target});
        let cpu = |target: Value| json!({"type": "Resource", "resource": of_cpu(target)});
        let share = || cpu(json!({"averageUtilization": 70}));
        assert_eq!(shown(share(), json!(null)), "cpu: <unknown>/70%");
        let present =
            json!({"resource": {"current": {"averageUtilization": 5, "averageValue": "1"}}});
        assert_eq!(shown(share(), present.clone()), "cpu: 5%/70%");
        assert_eq!(shown(cpu(json!({"averageValue": "2"})), present), "cpu: 1/2");
        assert_eq!(shown(cpu(json!({})), json!(null)), "cpu: <unknown>/<auto>");
        let external = |target: Value| json!({"type": "External", "external": {"target": target}});
        let present = json!({"external": {"current": {"value": "7"}}});
        assert_eq!(shown(external(json!({"value": "9"})), present.clone()), "7/9");
        assert_eq!(shown(external(json!({"averageValue": "9"})), present), "<unknown>/9 (avg)");
        assert_eq!(shown(json!({"type": "Else"}), json!(null)), "<unknown type>");
    }
}
