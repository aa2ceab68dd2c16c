//! Types that hold named fields of a kind.

use serde::{Deserialize, Deserializer};

use crate::object::Object;

/// A part of a kind: the fields that an author names. `#[derive(Projection)]` implements it, with
/// [`Object`] and serde's `Deserialize`.
///
/// A controller that reads five fields of a pod need not cache the other two hundred. serde skips
/// them while it parses, without building them: the cache is a tenth of the size, and an event
/// costs about half. A projection has the keys of its kind, so it shares indices, listers
/// and queues with the full type.
///
/// The derive macro needs the feature `derive` of this crate; `homeostat` has it on.
///
/// # Attributes
///
/// * On the struct: `#[projection(kind = Pod)]`, the kind whose objects are listed and watched.
/// * On each field: `#[projection(path = "spec.nodeName")]`, the names of the members in JSON. A
///   member that is absent or `null` is the type's default, as in Go. Two fields cannot have the
///   same path, and no path can be a part of another one.
/// * Optional on a field: `with = function`, which decodes the value, as serde's
///   `deserialize_with`. The function also receives `null`.
///
/// The struct has a field `metadata: ObjectMeta` without an attribute.
///
/// A path is not checked against the kind: a field with a wrong name always has its default.
///
/// # Examples
///
#[cfg_attr(feature = "derive", doc = "```")]
#[cfg_attr(not(feature = "derive"), doc = "```ignore")]
/// use homeostat_informer::{Object, ObjectKey, ObjectMeta, Projection};
/// use k8s_openapi::api::core::v1::Pod;
///
/// #[derive(Projection)]
/// #[projection(kind = Pod)]
/// struct PodState {
///     metadata: ObjectMeta,
///     #[projection(path = "spec.nodeName")]
///     node: Option<String>,
///     #[projection(path = "status.phase")]
///     phase: String,
///     #[projection(path = "status.containerStatuses")]
///     containers: Vec<Container>,
/// }
///
/// #[derive(serde::Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Container {
///     restart_count: u32,
/// }
///
/// let json = r#"{
///     "metadata": {"namespace": "shop", "name": "web"},
///     "spec": {"nodeName": "node-1", "volumes": [{"name": "data"}]},
///     "status": {"phase": null, "containerStatuses": [{"restartCount": 2, "ready": true}]}
/// }"#;
/// let pod: PodState = serde_json::from_str(json)?;
/// let key: ObjectKey<Pod> = pod.key();
/// assert_eq!(key.to_string(), "shop/web");
/// assert_eq!((pod.node.as_deref(), pod.phase.as_str()), (Some("node-1"), ""));
/// assert_eq!(pod.containers[0].restart_count, 2);
/// assert_eq!(PodState::PATHS[1..3], ["spec.nodeName", "status.phase"]);
/// # Ok::<_, serde_json::Error>(())
/// ```
///
/// A struct without a kind does not compile:
///
/// ```compile_fail
/// # use homeostat_informer::{ObjectMeta, Projection};
/// #[derive(Projection)]
/// struct PodState {
///     metadata: ObjectMeta,
/// }
/// ```
///
/// Neither does a field without a path:
///
/// ```compile_fail
/// # use homeostat_informer::{ObjectMeta, Projection};
/// #[derive(Projection)]
/// #[projection(kind = k8s_openapi::api::core::v1::Pod)]
/// struct PodState {
///     metadata: ObjectMeta,
///     node: Option<String>,
/// }
/// ```
///
/// Nor a path inside of another one:
///
/// ```compile_fail
/// # use homeostat_informer::{ObjectMeta, Projection};
/// #[derive(Projection)]
/// #[projection(kind = k8s_openapi::api::core::v1::Pod)]
/// struct PodState {
///     metadata: ObjectMeta,
///     #[projection(path = "spec.nodeName")]
///     node: Option<String>,
///     #[projection(path = "spec")]
///     spec: serde_json::Value,
/// }
/// ```
pub trait Projection: Object {
    /// The paths of the members that are decoded, `metadata` first.
    const PATHS: &'static [&'static str];
}

/// Decodes `null`, which Go writes for an empty value, as the default. Called by generated code.
#[doc(hidden)]
pub fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
