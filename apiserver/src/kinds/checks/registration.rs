//! Flow schemas, priority levels and runtime classes.

use serde_json::Value;

use super::Check;
use super::Test::{Between, Has, OneOf, Required, Text};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

type Causes<'a> = &'a mut Vec<Cause>;

fn run(checks: &[Check], object: &Fields, causes: Causes<'_>) {
    super::run(checks, &Value::Object(object.clone()), "", causes);
}

pub(crate) fn flow_schema(schema: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const SPEC: &[Check] = &[
        ("matchingPrecedence", Between(1, 10_000)),
        ("distinguisherMethod.type", OneOf(&["ByNamespace", "ByUser"])),
        ("priorityLevelConfiguration.name", Required("must reference a priority level")),
    ];
    run(&[("spec", Has(SPEC))], schema, causes);
}

pub(crate) fn priority_level(level: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const TYPES: &[&str] = &["Exempt", "Limited"];
    run(&[("spec.type", Required("")), ("spec.type", OneOf(TYPES))], level, causes);
}

pub(crate) fn runtime_class(class: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    run(&[("handler", Required("")), ("handler", Text(names::dns_label))], class, causes);
    super::unchanged(&["handler"], class, old, causes);
}
