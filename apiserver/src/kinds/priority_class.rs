//! The default priority class, by the plugin `Priority`.

use serde_json::{Value, json};

use super::columns::{Guard, GuardedWrite};
use crate::fields::{Fields, meta_text};
use crate::plugin::AdmissionPlugin;

/// The checks of priority classes.
pub(super) const GUARDS: &[Guard] =
    &[Guard { plugin: AdmissionPlugin::Priority, subresource: "", check: check_single_default }];

/// Returns the default class: of several, the one with the lowest value.
pub(super) fn default_of(mut classes: Vec<Fields>) -> Option<Fields> {
    classes.retain(is_default);
    classes.into_iter().min_by_key(value)
}

/// Returns the priority of a class.
pub(super) fn value(class: &Fields) -> i64 {
    class.get("value").and_then(Value::as_i64).unwrap_or(0)
}

/// Refuses a default class beside another one.
fn check_single_default(write: &GuardedWrite<'_>) -> Result<(), String> {
    if !is_default(write.new) {
        return Ok(());
    }
    let Some(default) = default_of((write.list)("scheduling.k8s.io", "priorityclasses")) else {
        return Ok(());
    };
    let name = meta_text(&default, "name");
    if write.old.is_some() && name == meta_text(write.new, "name") {
        return Ok(());
    }
    Err(format!("PriorityClass {name} is already marked as default. Only one default can exist"))
}

fn is_default(class: &Fields) -> bool {
    class.get("globalDefault") == Some(&json!(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_class_is_the_one_with_the_lowest_value() {
        let class = |name: &str, value: i64, is_default: bool| {
            let class = json!({"metadata": {"name": name}, "value": value,
                "globalDefault": is_default});
            class.as_object().unwrap().clone()
        };
        let classes = vec![class("a", 5, true), class("b", 3, true), class("c", 1, false)];
        assert_eq!(meta_text(&default_of(classes).unwrap(), "name"), "b");
        assert_eq!(default_of(vec![class("c", 1, false)]), None);
    }
}
