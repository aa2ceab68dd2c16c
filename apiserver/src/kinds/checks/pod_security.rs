//! Labels of namespaces that name levels of pod security. The levels themselves are not enforced.

use serde_json::{Value, json};

use super::{member, text};
use crate::fields::Fields;
use crate::status::Cause;

const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];

/// Checks the labels, unless an update leaves their problems as they are.
pub(crate) fn labels(namespace: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    let found = problems(namespace);
    if old.is_none_or(|old| problems(old) != found) {
        causes.extend(found);
    }
}

fn problems(namespace: &Fields) -> Vec<Cause> {
    let labels = member(namespace.get("metadata").unwrap_or(&Value::Null), "labels");
    let mut found = Vec::new();
    for mode in ["enforce", "audit", "warn"] {
        let level = format!("pod-security.kubernetes.io/{mode}");
        let version = format!("{level}-version");
        let levels = format!("must be one of {}", LEVELS.join(", "));
        for (label, fits, detail) in [
            (level, is_level as fn(&str) -> bool, &*levels),
            (version, is_version, "must be \"latest\" or \"v1.x\""),
        ] {
            let value = text(labels, &label);
            if !member(labels, &label).is_null() && !fits(value) {
                let at = format!("metadata.labels[{label}]");
                found.push(Cause::invalid(at, &json!(value), detail));
            }
        }
    }
    found
}

fn is_level(level: &str) -> bool {
    LEVELS.contains(&level)
}

fn is_version(version: &str) -> bool {
    let minor = version.strip_prefix("v1.").unwrap_or_default();
    let is_number = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    version == "latest" || minor == "0" || (is_number && !minor.starts_with('0'))
}
