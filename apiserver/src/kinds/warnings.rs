//! The warnings about new and changed objects of each kind (upstream's `WarningsOnCreate` and
//! `WarningsOnUpdate`).

use serde_json::Value;

use super::checks::{items, member};
use super::pod_warnings;
use crate::fields::{Fields, read_path, text};
use crate::names;

const NULL: &Value = &Value::Null;

/// Returns the warnings about a new pod. Updates have none.
pub(super) fn pod(pod: &Fields, old: Option<&Fields>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let mut warnings = label_warning(pod, "the Pod's hostname");
    let [metadata, spec] = ["metadata", "spec"].map(|key| pod.get(key).unwrap_or(NULL));
    warnings.extend(pod_warnings::of_spec(metadata, spec, ""));
    warnings
}

/// Returns the warnings about an object whose name starts those of pods, with a template of pods.
pub(super) fn namesake(object: &Fields, old: Option<&Fields>) -> Vec<String> {
    if !has_changed(object, old) {
        return Vec::new();
    }
    let mut warnings = if old.is_none() { label_warning(object, NAMES) } else { Vec::new() };
    warnings.extend(template(object, "spec.template"));
    warnings
}

/// Returns the warnings about a replication controller. As in upstream, those about a changed one
/// are about its old template.
pub(super) fn replication_controller(object: &Fields, old: Option<&Fields>) -> Vec<String> {
    match old {
        Some(old) if has_changed(object, Some(old)) => template(old, "spec.template"),
        Some(_) => Vec::new(),
        None => namesake(object, None),
    }
}

/// Returns the warnings about a job.
pub(super) fn job(job: &Fields, old: Option<&Fields>) -> Vec<String> {
    job_at(job, old, "spec")
}

/// Returns the warnings about a cron job.
pub(super) fn cron_job(job: &Fields, old: Option<&Fields>) -> Vec<String> {
    let mut warnings = job_at(job, old, "spec.jobTemplate.spec");
    let schedule = read_path(job, "spec.schedule").and_then(Value::as_str).unwrap_or_default();
    if old.is_some() && schedule.contains("TZ") {
        warnings.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        );
    }
    warnings
}

/// Returns the warnings about a daemon set.
pub(super) fn daemon_set(set: &Fields, old: Option<&Fields>) -> Vec<String> {
    const PATH: &str = "spec.template";
    if old.is_some_and(|old| read_path(old, PATH) == read_path(set, PATH)) {
        return Vec::new();
    }
    template(set, PATH)
}

/// Returns the warnings about a stateful set.
pub(super) fn stateful_set(set: &Fields, old: Option<&Fields>) -> Vec<String> {
    let mut warnings = Vec::new();
    if has_changed(set, old) {
        warnings = template(set, "spec.template");
    }
    let limit = read_path(set, "spec.revisionHistoryLimit").and_then(Value::as_i64);
    if limit.is_some_and(|limit| limit < 0) {
        warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value \
             >= 0 is recommended"
                .to_owned(),
        );
    }
    warnings
}

/// Returns the warnings about a template of pods, which is an object of its own.
pub(super) fn pod_template(object: &Fields, old: Option<&Fields>) -> Vec<String> {
    if has_changed(object, old) { template(object, "template") } else { Vec::new() }
}

/// Returns the warnings about a node.
pub(super) fn node(node: &Fields, _: Option<&Fields>) -> Vec<String> {
    let spec = node.get("spec").unwrap_or(NULL);
    let mut warnings = Vec::new();
    if !member(spec, "configSource").is_null() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !text(spec, "externalID").is_empty() {
        let text = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
        warnings.push(text.to_owned());
    }
    warnings
}

/// Returns the warnings about a persistent volume.
pub(super) fn persistent_volume(volume: &Fields, _: Option<&Fields>) -> Vec<String> {
    // In this order, which is not that of pods.
    const SOURCES: [&str; 6] =
        ["cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"];
    let spec = volume.get("spec").unwrap_or(NULL);
    let mut warnings = Vec::new();
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. \
             Instead, the recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let required = member(member(spec, "nodeAffinity"), "required");
    for (place, term) in items(member(required, "nodeSelectorTerms")).iter().enumerate() {
        let at = format!("spec.nodeAffinity.required.nodeSelectorTerms[{place}]");
        warnings.extend(pod_warnings::of_node_term(term, &at));
    }
    warnings.extend(pod_warnings::of_sources(spec, SOURCES, "spec"));
    warnings
}

/// Returns the warnings about a storage class.
pub(super) fn storage_class(class: &Fields, _: Option<&Fields>) -> Vec<String> {
    let topologies = items(class.get("allowedTopologies").unwrap_or(NULL)).iter().enumerate();
    let warnings = topologies.flat_map(|(place, topology)| {
        let expressions = items(member(topology, "matchLabelExpressions")).iter().enumerate();
        expressions.filter_map(move |(number, expression)| {
            let why = pod_warnings::label_text(text(expression, "key"))?;
            let at = format!("allowedTopologies[{place}].matchLabelExpressions[{number}].key");
            Some(format!("{at}: {why}"))
        })
    });
    warnings.collect()
}

/// Returns the warnings about a capacity of storage.
pub(super) fn storage_capacity(capacity: &Fields, _: Option<&Fields>) -> Vec<String> {
    const AT: &str = "nodeTopology";
    let selector = capacity.get(AT).unwrap_or(NULL);
    let mut warnings = pod_warnings::of_node_term(selector, AT);
    let labels = member(selector, "matchLabels").as_object().into_iter().flatten();
    warnings.extend(labels.filter_map(|(key, _)| {
        Some(format!("{AT}.matchLabels.{key}: {}", pod_warnings::label_text(key)?))
    }));
    warnings
}

fn job_at(job: &Fields, old: Option<&Fields>, at: &str) -> Vec<String> {
    const MOST_COMPLETIONS: i64 = 100_000;
    const MOST_PARALLEL: i64 = 10_000;
    if !has_changed(job, old) {
        return Vec::new();
    }
    let mut warnings = if old.is_none() { label_warning(job, NAMES) } else { Vec::new() };
    let spec = read_path(job, at).unwrap_or(NULL);
    let number = |key: &str| member(spec, key).as_i64().unwrap_or_default();
    let is_large =
        number("completions") > MOST_COMPLETIONS && number("parallelism") > MOST_PARALLEL;
    if text(spec, "completionMode") == "Indexed" && is_large {
        warnings.push(format!(
            "{at}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism \
             higher than 10^4, Kubernetes might not be able to track completedIndexes when a big \
             number of indexes fail"
        ));
    }
    warnings.extend(template(job, &format!("{at}.template")));
    warnings
}

/// The names that start with that of an object with a template.
const NAMES: &str = "Pod names and hostnames";

fn template(object: &Fields, path: &str) -> Vec<String> {
    let template = read_path(object, path).unwrap_or(NULL);
    let [metadata, spec] = ["metadata", "spec"].map(|key| member(template, key));
    pod_warnings::of_spec(metadata, spec, &format!("{path}."))
}

/// Returns true if an object is new, or has another generation.
fn has_changed(object: &Fields, old: Option<&Fields>) -> bool {
    const PATH: &str = "metadata.generation";
    old.is_none_or(|old| read_path(old, PATH) != read_path(object, PATH))
}

/// Returns the warning about a name that is no DNS label.
fn label_warning(object: &Fields, used_in: &str) -> Vec<String> {
    let name = read_path(object, "metadata.name").and_then(Value::as_str).unwrap_or_default();
    let problems = names::dns_label(name);
    if problems.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS \
         label is recommended: [{}]",
        problems.join(" ")
    )]
}
