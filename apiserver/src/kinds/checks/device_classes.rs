//! Classes of devices.

use serde_json::Value;

use super::Test::{By, Each};
use super::devices::{CONFIG, DRIVERS, SELECTORS, at_most};
use super::{Check, check_text};
use crate::fields::Fields;
use crate::names::{self, Problems};
use crate::status::Cause;

/// The start of the name by which a quota limits the requests of a resource.
const REQUESTS: &str = "requests.";

pub(crate) fn class(class: &Fields, _: Option<&Fields>, causes: &mut Vec<Cause>) {
    // The real server finds the sizes of lists and the names in a second pass.
    const SPEC: &[Check] = &[
        ("config", Each(CONFIG)),
        ("selectors", By(at_most)),
        ("config", By(at_most)),
        ("config", Each(DRIVERS)),
        ("extendedResourceName", By(|_, name, at, causes| check_text(name, resource, at, causes))),
    ];
    let spec = class.get("spec").unwrap_or(&Value::Null);
    super::run(SELECTORS, spec, "spec", causes);
    super::run(SPEC, spec, "spec", causes);
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
