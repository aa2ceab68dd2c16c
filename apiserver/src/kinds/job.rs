//! Jobs.

use serde_json::{Map, Value, json};

use super::workload;
use crate::fields::{Fields, read_path};

/// The label by which a job finds its pods.
const UID: &str = "batch.kubernetes.io/controller-uid";

pub(super) fn completions(spec: &Fields) -> Value {
    if spec.contains_key("parallelism") { Value::Null } else { json!(1) }
}

pub(super) fn backoff_limit(spec: &Fields) -> Value {
    json!(if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 })
}

pub(super) fn replacement_policy(spec: &Fields) -> Value {
    json!(if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" })
}

/// Makes the selector and the labels that it matches, unless the client made them. Labels of the
/// client stay: checks compare them.
pub(super) fn prepare(job: &mut Fields) {
    // The labels of a job without any are those of its template by now.
    let of_template = read_path(job, "spec.template.metadata.labels");
    let is_shared = of_template.is_some() && read_path(job, "metadata.labels") == of_template;
    if read_path(job, "spec.manualSelector") == Some(&json!(true)) {
        return;
    }
    let text = |path| read_path(job, path).and_then(Value::as_str).unwrap_or("").to_owned();
    let (uid, name) = (text("metadata.uid"), text("metadata.name"));
    let template = read_path(job, "spec.template.metadata.labels").and_then(Value::as_object);
    let mut labels = template.cloned().unwrap_or_default();
    for (key, value) in [
        (UID, &uid),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("job-name", &name),
    ] {
        labels.entry(key).or_insert_with(|| json!(value));
    }
    if is_shared {
        // The real server's job shares one map with its template.
        set(job, &["metadata"], "labels", json!(labels));
    }
    set(job, &["spec", "template", "metadata"], "labels", json!(labels));
    let selected = read_path(job, "spec.selector.matchLabels").and_then(|labels| labels.get(UID));
    if selected.is_none() {
        set(job, &["spec", "selector", "matchLabels"], UID, json!(uid));
    }
}

fn set(object: &mut Fields, parents: &[&str], key: &str, value: Value) {
    let mut target = object;
    for parent in parents {
        let inner = target.entry(*parent).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(inner) = inner else { return };
        target = inner;
    }
    target.insert(key.to_owned(), value);
}

/// A job without labels gets those of its pods.
pub(super) fn derive(job: &mut Fields) {
    workload::default_labels_from_template(job);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_gets_the_labels_that_the_server_makes_later() {
        let job = json!({"metadata": {"name": "a b", "uid": "u"}, "spec": {"template": {}}});
        let mut job = job.as_object().unwrap().clone();
        prepare(&mut job);
        assert_eq!(read_path(&job, "metadata.labels"), None, "no cause names them");
        derive(&mut job);
        let labels = read_path(&job, "metadata.labels").and_then(|all| all.get("job-name"));
        assert_eq!(labels, Some(&json!("a b")));
    }
}
