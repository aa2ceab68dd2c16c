//! Runtime classes.

use serde_json::{Value, json};

use super::Test::{By, Each, Required, Text};
use super::tolerations::TOLERATION;
use super::{Causes, Check, items, quantities, selectors, text};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

pub(crate) fn runtime_class(class: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    // The real server finds a wrong handler in a later pass.
    const CLASS: &[Check] = &[
        ("overhead", By(overhead)),
        ("scheduling.nodeSelector", By(selectors::labels)),
        ("scheduling.tolerations", Each(TOLERATION)),
        ("scheduling.tolerations", By(unique)),
        ("handler", Required("")),
        ("handler", Text(names::dns_label)),
    ];
    super::run(CLASS, &Value::Object(class.clone()), "", causes);
    super::unchanged(&["handler"], class, old, causes);
}

/// Checks the overhead as the limits of a container.
fn overhead(_: &Value, overhead: &Value, at: &str, causes: Causes<'_>) {
    if let Some(fixed) = overhead.get("podFixed") {
        quantities::resources(&Value::Null, &json!({"limits": fixed}), at, causes);
    }
}

/// Checks that no toleration is there twice.
fn unique(_: &Value, tolerations: &Value, at: &str, causes: Causes<'_>) {
    let key =
        |one: &Value| ["key", "operator", "value", "effect"].map(|name| text(one, name).to_owned());
    let tolerations = items(tolerations);
    for (place, one) in tolerations.iter().enumerate() {
        let [name, operator, value, effect] = key(one);
        if tolerations[..place].iter().any(|other| key(other) == key(one)) {
            let shown = json!({
                "Key": name, "Operator": operator, "Value": value, "Effect": effect,
                "TolerationSeconds": one.get("tolerationSeconds"),
            });
            causes.push(Cause::duplicate(format!("{at}[{place}]"), &shown));
        }
    }
}
