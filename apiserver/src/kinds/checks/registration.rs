//! Kinds that configure an API server, and runtime classes.

use serde_json::Value;

use super::Test::{Between, Has, OneOf, Required, Text};
use super::{Check, member};
use crate::fields::{Fields, text};
use crate::names;
use crate::status::Cause;

type Causes<'a> = &'a mut Vec<Cause>;

fn run(checks: &[Check], object: &Fields, causes: Causes<'_>) {
    super::run(checks, &Value::Object(object.clone()), "", causes);
}

pub(crate) fn api_service(service: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const SPEC: &[Check] = &[
        ("version", Required("")),
        ("version", Text(names::rfc_1035_label)),
        ("groupPriorityMinimum", Between(1, 20_000)),
        ("versionPriority", Between(1, 1_000)),
    ];
    let object = Value::Object(service.clone());
    let (spec, metadata) = (member(&object, "spec"), member(&object, "metadata"));
    let required = format!("{}.{}", text(spec, "version"), text(spec, "group"));
    if text(metadata, "name") != required {
        let detail = format!("must be `spec.version+\".\"+spec.group`: \"{required}\"");
        causes.push(Cause::invalid("metadata.name", member(metadata, "name"), &detail));
    }
    super::run(SPEC, spec, "spec", causes);
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
