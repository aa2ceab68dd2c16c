//! Classes of devices.

use serde_json::Value;

use super::Test::By;
use super::device_parts::{MAX_ITEMS, config, few};
use super::devices::{SELECTORS, at_most, declared_configs};
use super::{Check, check_text, member};
use crate::fields::{Fields, read_path};
use crate::names::{self, Problems};
use crate::status::Cause;

/// The start of the name by which a quota limits the requests of a resource.
const REQUESTS: &str = "requests.";

pub(crate) fn class(class: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    const DECLARED: &[Check] = &[
        ("selectors", By(at_most)),
        ("config", By(declared_configs)),
        ("extendedResourceName", By(|_, name, at, causes| check_text(name, resource, at, causes))),
    ];
    let spec = class.get("spec").unwrap_or(&Value::Null);
    let before = old.and_then(|old| read_path(old, "spec.selectors"));
    // Selectors that are stored were valid when they were.
    if before.is_none_or(|before| before != member(spec, "selectors")) {
        super::run(SELECTORS, spec, "spec", causes);
    }
    for (place, setting) in few(member(spec, "config"), MAX_ITEMS).iter().enumerate() {
        config(setting, &format!("spec.config[{place}]"), causes);
    }
    super::run(DECLARED, spec, "spec", causes);
}

/// Checks the name of a resource of another domain.
fn resource(name: &str) -> Problems {
    let mut found = Problems::new();
    if !name.contains('/') {
        found.push("a name must be a domain-prefixed path, such as 'example.com/my-prop'".into());
    } else if name.contains("kubernetes.io/") {
        found.push("must not have \"kubernetes.io/\" domain".into());
    }
    if name.starts_with(REQUESTS) {
        found.push(format!("must not have \"{REQUESTS}\" prefix").into());
    }
    found.extend(names::qualified(&format!("{REQUESTS}{name}")));
    found
}
