//! The kinds of the stories: a garden, and a plot for each of its beds.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state of a garden.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[kube(group = "kubers.example.com", version = "v1", kind = "Garden", namespaced)]
#[kube(status = "GardenStatus", derive = "PartialEq", shortname = "gd")]
#[kube(scale(spec_replicas_path = ".spec.beds", status_replicas_path = ".status.beds"))]
#[kube(selectable = ".spec.owner")]
#[kube(printcolumn(name = "Beds", type_ = "integer", json_path = ".spec.beds"))]
#[kube(validation = "self.metadata.name != 'forbidden'")]
#[x_kube(validation = Rule::new("self.beds <= self.limit").message(Message::Expression(
    "'%d beds are more than %d'.format([self.beds, self.limit])".into()
)))]
#[serde(rename_all = "camelCase")]
pub(super) struct GardenSpec {
    /// The owner, who never changes.
    #[x_kube(validation = Rule::new("self != ''").message("no owner"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("the owner stays"))]
    pub(super) owner: String,
    #[serde(default = "three")]
    #[schemars(range(max = 100))]
    pub(super) beds: i32,
    #[serde(default = "ten")]
    pub(super) limit: i32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub(super) plants: Vec<Plant>,
}

/// A plant of a garden.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Plant {
    pub(super) name: String,
    #[serde(default)]
    pub(super) count: i32,
}

/// The observed state of a garden.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct GardenStatus {
    #[serde(default)]
    pub(super) ready: bool,
    #[serde(default)]
    pub(super) beds: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) phase: Option<String>,
}

/// The desired state of a plot.
#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[kube(group = "kubers.example.com", version = "v1", kind = "Plot", namespaced)]
pub(super) struct PlotSpec {
    pub(super) bed: i32,
}

fn three() -> i32 {
    3
}

fn ten() -> i32 {
    10
}
