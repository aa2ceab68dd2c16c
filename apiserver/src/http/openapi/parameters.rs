//! The parameters of operations, with the texts of the types that they are read into.

use homeostat_schema::built_in;
use serde_json::{Value, json};

/// The options that a parameter belongs to, and its name.
pub(super) type Parameter = (&'static str, &'static str);

const LIST: &str = "ListOptions";
const CREATE: &str = "CreateOptions";
const UPDATE: &str = "UpdateOptions";
const PATCH: &str = "PatchOptions";
const DELETE: &str = "DeleteOptions";

pub(super) const OF_LIST: &[Parameter] = &[
    (LIST, "allowWatchBookmarks"),
    (LIST, "continue"),
    (LIST, "fieldSelector"),
    (LIST, "labelSelector"),
    (LIST, "limit"),
    (LIST, "resourceVersion"),
    (LIST, "resourceVersionMatch"),
    (LIST, "sendInitialEvents"),
    (LIST, "shardSelector"),
    (LIST, "timeoutSeconds"),
    (LIST, "watch"),
];

pub(super) const OF_CREATE: &[Parameter] =
    &[(CREATE, "dryRun"), (CREATE, "fieldManager"), (CREATE, "fieldValidation")];

pub(super) const OF_UPDATE: &[Parameter] =
    &[(UPDATE, "dryRun"), (UPDATE, "fieldManager"), (UPDATE, "fieldValidation")];

pub(super) const OF_PATCH: &[Parameter] =
    &[(PATCH, "dryRun"), (PATCH, "fieldManager"), (PATCH, "fieldValidation"), (PATCH, "force")];

pub(super) const OF_DELETE: &[Parameter] = &[
    (DELETE, "dryRun"),
    (DELETE, "gracePeriodSeconds"),
    (DELETE, "ignoreStoreReadErrorWithClusterBreakingPotential"),
    (DELETE, "orphanDependents"),
    (DELETE, "propagationPolicy"),
];

/// A delete of a collection has those of a delete, and of these lists what does not watch.
pub(super) const OF_DELETE_COLLECTION: &[Parameter] = &[
    (LIST, "continue"),
    (DELETE, "dryRun"),
    (LIST, "fieldSelector"),
    (DELETE, "gracePeriodSeconds"),
    (DELETE, "ignoreStoreReadErrorWithClusterBreakingPotential"),
    (LIST, "labelSelector"),
    (LIST, "limit"),
    (DELETE, "orphanDependents"),
    (DELETE, "propagationPolicy"),
    (LIST, "resourceVersion"),
    (LIST, "resourceVersionMatch"),
    (LIST, "sendInitialEvents"),
    (LIST, "shardSelector"),
    (LIST, "timeoutSeconds"),
];

/// A read of a custom object. Reads of built-in ones have no options.
pub(super) const OF_CUSTOM_READ: &[Parameter] = &[("GetOptions", "resourceVersion")];

const PRETTY: &str = "If 'true', then the output is pretty printed. Defaults to 'false' unless the \
    user-agent indicates a browser or command-line HTTP tool (curl and wget).";
const NAMESPACE: &str = "object name and auth scope, such as for teams and projects";

/// Returns a parameter of the query.
pub(super) fn of_query(&(options, name): &Parameter) -> Value {
    let type_name = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{options}");
    let text = built_in::description(&type_name, Some(name)).unwrap_or_default();
    let schema_type = match name {
        "limit" | "timeoutSeconds" | "gracePeriodSeconds" => "integer",
        "allowWatchBookmarks"
        | "sendInitialEvents"
        | "watch"
        | "force"
        | "ignoreStoreReadErrorWithClusterBreakingPotential"
        | "orphanDependents" => "boolean",
        _ => "string",
    };
    parameter(name, "query", &text, schema_type)
}

/// Returns the parameter for indented replies, which every operation has.
pub(super) fn pretty() -> Value {
    parameter("pretty", "query", PRETTY, "string")
}

/// Returns the parameter for a namespace in the path.
pub(super) fn namespace() -> Value {
    in_path("namespace", NAMESPACE)
}

/// Returns the parameter for the name of an object in the path.
pub(super) fn name_of(kind: &str) -> Value {
    in_path("name", &format!("name of the {kind}"))
}

fn in_path(name: &str, text: &str) -> Value {
    let mut parameter = parameter(name, "path", text, "string");
    parameter["required"] = json!(true);
    parameter
}

fn parameter(name: &str, place: &str, text: &str, schema_type: &str) -> Value {
    json!({
        "name": name, "in": place, "description": text,
        "schema": {"type": schema_type, "uniqueItems": true},
    })
}
