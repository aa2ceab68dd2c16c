//! Fields and resources of a pod that its environment and its volumes show.

use serde_json::{Value, json};

use super::{check_text, member, text};
use crate::status::Cause;
use crate::{names, quantity};

/// The fields of a pod that a path may name.
const LABELS: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "spec.host",
];

const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// The units of amounts in bytes.
const UNITS: [&str; 13] =
    ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Checks the path of a field, which must be one of the known ones
/// (`validateObjectFieldSelector`).
pub(super) fn field(field: &Value, known: &[&str], at: &str, causes: &mut Vec<Cause>) {
    let [version, path] = ["apiVersion", "fieldPath"].map(|key| text(field, key));
    let path_at = format!("{at}.fieldPath");
    if version.is_empty() {
        causes.push(Cause::required(format!("{at}.apiVersion"), ""));
        return;
    }
    if path.is_empty() {
        causes.push(Cause::required(path_at, ""));
        return;
    }
    let subscripted = subscripted(path);
    let problem = match subscripted {
        _ if version != "v1" => format!("unsupported pod version: {version}"),
        Some(("metadata.annotations" | "metadata.labels", _)) => String::new(),
        Some(_) => format!("field label does not support subscript: {path}"),
        None if LABELS.contains(&path) => String::new(),
        None => format!("field label not supported: {path}"),
    };
    if !problem.is_empty() {
        let detail = format!("error converting fieldPath: {problem}");
        causes.push(Cause::invalid(path_at, &json!(path), &detail));
        return;
    }
    let path = if path == "spec.host" { "spec.nodeName" } else { path };
    match subscripted {
        Some(("metadata.annotations", key)) => {
            check_text(&json!(key.to_lowercase()), names::qualified, at, causes);
        }
        Some((_, key)) => check_text(&json!(key), names::qualified, at, causes),
        None if known.contains(&path) => {}
        None => causes.push(Cause::unsupported(path_at, &json!(path), known)),
    }
}

/// Splits a path such as `metadata.labels['app']`.
fn subscripted(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(path, _)| !path.is_empty())
}

/// Checks the name of a container's resource (`validateContainerResourceFieldSelector`).
pub(super) fn resource(selector: &Value, needs_container: bool, at: &str, causes: &mut Vec<Cause>) {
    let resource = text(selector, "resource");
    let is_huge = ["requests.hugepages-", "limits.hugepages-"]
        .iter()
        .any(|prefix| resource.starts_with(prefix));
    if needs_container && text(selector, "containerName").is_empty() {
        causes.push(Cause::required(format!("{at}.containerName"), ""));
    } else if resource.is_empty() {
        causes.push(Cause::required(format!("{at}.resource"), ""));
    } else if !is_huge && !RESOURCES.contains(&resource) {
        causes.push(Cause::unsupported(format!("{at}.resource"), &json!(resource), RESOURCES));
    }
    let Some(divisor) = quantity::read(member(selector, "divisor")) else { return };
    if divisor.is_zero() {
        return;
    }
    let (units, what): (&[&str], &str) = match resource {
        "limits.cpu" | "requests.cpu" => (&["1m", "1"], "cpu"),
        "limits.memory" | "requests.memory" => (&UNITS, "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => {
            (&UNITS, "local ephemeral storage")
        }
        _ if is_huge => (&UNITS, "hugepages"),
        _ => return,
    };
    if !units.contains(&divisor.to_string().as_str()) {
        let listed = if what == "cpu" { "1m and 1".to_owned() } else { UNITS.join(", ") };
        let detail =
            format!("only divisor's values {listed} are supported with the {what} resource");
        causes.push(Cause::invalid(format!("{at}.divisor"), &json!(resource), &detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscript_is_in_quotes() {
        assert_eq!(subscripted("metadata.labels['a']"), Some(("metadata.labels", "a")));
        assert_eq!(subscripted("metadata.labels['a['b']"), Some(("metadata.labels", "a['b")));
        assert_eq!(subscripted("metadata.labels"), None);
        assert_eq!(subscripted("metadata.labels[a]"), None);
        assert_eq!(subscripted("['a']"), None);
    }
}
