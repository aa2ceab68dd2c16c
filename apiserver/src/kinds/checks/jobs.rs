//! Jobs (`ValidateJobCreate`, `ValidateJobSpec`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::Test::{By, NotNegative, OneOf};
use super::job_indexes::is_indexed;
use super::{
    Causes, Check, job_policies as policies, job_status, job_updates as updates, join, member,
    paths, pod_spec, selectors, text, workloads,
};
use crate::fields::{Fields, read_path};
use crate::kinds::label_selector;
use crate::names;
use crate::status::Cause;

const NUMBERS: &[Check] = &[
    ("parallelism", NotNegative),
    ("completions", NotNegative),
    ("activeDeadlineSeconds", NotNegative),
    ("backoffLimit", NotNegative),
    ("ttlSecondsAfterFinished", NotNegative),
    ("backoffLimitPerIndex", NotNegative),
    ("maxFailedIndexes", NotNegative),
    ("managedBy", By(manager)),
    ("completionMode", OneOf(&["NonIndexed", "Indexed"])),
];

const ONCE: [&str; 2] = ["OnFailure", "Never"];

/// The limits of jobs with indexes: of their pods at once and of failed indexes. The smaller ones
/// are those of a job with more completions than `MANY`.
const MOST: i64 = 100_000;
const MANY: i64 = 100_000;
const MOST_OF_MANY: i64 = 10_000;

/// The longest name of a manager.
const MAX_MANAGER: usize = 63;

pub(crate) fn job(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const SELECTOR: &[Check] = &[("selector", By(selectors::selector))];
    let spec = workloads::spec(object);
    if old.is_none() {
        generated(object, spec, causes);
    }
    job_spec(spec, "spec", causes);
    let selector = member(spec, "selector");
    if selector.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    } else {
        super::run(SELECTOR, spec, "spec", causes);
    }
    if label_selector::read(selector).is_some() {
        selectors::matches(spec, causes);
    }
    // Most writes are those of a status, which leave the spec.
    if let Some(old) = old.filter(|old| workloads::spec(old) != spec) {
        updates::spec(spec, old, causes);
    }
    name(object, spec, causes);
    if let Some(old) = old {
        job_status::status(object, old, causes);
    }
    dependent(spec, "spec", causes);
}

/// Checks what the server has generated: the labels of the pods, and the selector of them.
fn generated(job: &Fields, spec: &Value, causes: Causes<'_>) {
    const AT: &str = "spec.template.metadata.labels";
    let selector = member(spec, "selector");
    if *member(spec, "manualSelector") == true || selector.is_null() {
        return;
    }
    let own = |path| read_path(job, path).and_then(Value::as_str).unwrap_or_default();
    let (uid, name) = (own("metadata.uid"), own("metadata.name"));
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    let labels = member(member(member(spec, "template"), "metadata"), "labels");
    for (key, value) in expected.iter().filter(|(key, value)| text(labels, key) != *value) {
        let (at, detail) = (format!("{AT}[{key}]"), format!("must be '{value}'"));
        causes.push(Cause::invalid(at, labels, &detail));
    }
    let expected: BTreeMap<String, String> =
        expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    if label_selector::read(selector).is_some_and(|selector| !selector.matches(&expected)) {
        causes.push(Cause::invalid("spec.selector", selector, "`selector` not auto-generated"));
    }
}

/// Checks that the name leaves room for the index in the names of pods.
fn name(job: &Fields, spec: &Value, causes: Causes<'_>) {
    let completions = member(spec, "completions").as_i64().unwrap_or(0);
    let shown = read_path(job, "metadata.name").unwrap_or(&Value::Null);
    let longest = format!("{}-{}", shown.as_str().unwrap_or_default(), completions - 1);
    if is_indexed(spec) && completions > 0 && !names::dns_label(&longest).is_empty() {
        let detail = format!("will not able to create pod with invalid DNS label: {longest}");
        causes.push(Cause::invalid("metadata.name", shown, &detail));
    }
}

/// Checks the spec of a job, or of the template of one.
pub(super) fn job_spec(spec: &Value, at: &str, causes: Causes<'_>) {
    const REPLACEMENTS: &[&str] = &["Failed", "TerminatingOrFailed"];
    super::run(NUMBERS, spec, at, causes);
    if is_indexed(spec) {
        indexed(spec, at, causes);
    } else if matches!(text(spec, "completionMode"), "" | "NonIndexed") {
        for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            let value = member(spec, name);
            if !value.is_null() {
                let detail = "requires indexed completion mode";
                causes.push(Cause::invalid(join(at, name), value, detail));
            }
        }
    }
    policies::failures(spec, at, causes);
    policies::success(spec, at, causes);
    let (replacement, limited) = (member(spec, "podReplacementPolicy"), policies::is_set(spec));
    let known = if limited { &REPLACEMENTS[..1] } else { REPLACEMENTS };
    if replacement.as_str().is_some_and(|policy| !known.contains(&policy)) {
        causes.push(Cause::unsupported(join(at, "podReplacementPolicy"), replacement, known));
    }
    let (template, at) = (member(spec, "template"), join(at, "template"));
    pod_spec::template(template, &at, ("Job", &ONCE), causes);
    let restarts = member(member(template, "spec"), "restartPolicy");
    if limited && *restarts == "OnFailure" {
        let detail = "only \"Never\" is supported when podFailurePolicy is specified";
        causes.push(Cause::invalid(format!("{at}.spec.restartPolicy"), restarts, detail));
    }
}

/// Checks what depends on another member. The real server reports it after all others.
pub(super) fn dependent(spec: &Value, at: &str, causes: Causes<'_>) {
    let is_missing = member(spec, "backoffLimitPerIndex").is_null();
    if is_missing && !member(spec, "maxFailedIndexes").is_null() {
        let detail = "when maxFailedIndexes is specified";
        causes.push(Cause::required(join(at, "backoffLimitPerIndex"), detail));
    }
}

/// A limit of a member: its name, the largest number, and how a message shows it.
type Limit<'a> = (&'a str, i64, &'a str);

/// Checks the numbers of a job with indexes.
fn indexed(spec: &Value, at: &str, causes: Causes<'_>) {
    let when_indexed = format!("{MOST} when completion mode is Indexed");
    let when_many = format!(
        "{MOST_OF_MANY} when completions are above {MANY} and used with backoff limit per index"
    );
    let completions = member(spec, "completions").as_i64();
    if completions.is_none() {
        causes.push(Cause::required(join(at, "completions"), "when completion mode is Indexed"));
    }
    let all = completions.unwrap_or(i64::MAX);
    let limits = [
        ("parallelism", MOST, &*when_indexed),
        ("maxFailedIndexes", all, "completions"),
        ("maxFailedIndexes", MOST, &MOST.to_string()),
    ];
    at_most(spec, &limits, at, causes);
    let has_many = completions.is_some_and(|completions| completions > MANY);
    if !has_many || member(spec, "backoffLimitPerIndex").is_null() {
        return;
    }
    if member(spec, "maxFailedIndexes").is_null() {
        let detail = format!("must be specified when completions is above {MANY}");
        causes.push(Cause::required(join(at, "maxFailedIndexes"), &detail));
    }
    let limits = ["parallelism", "maxFailedIndexes"].map(|name| (name, MOST_OF_MANY, &*when_many));
    at_most(spec, &limits, at, causes);
}

fn at_most(spec: &Value, limits: &[Limit<'_>], at: &str, causes: Causes<'_>) {
    for (name, most, shown) in limits {
        let value = member(spec, name);
        if value.as_i64().is_some_and(|value| value > *most) {
            let detail = format!("must be less than or equal to {shown}");
            causes.push(Cause::invalid(join(at, name), value, &detail));
        }
    }
}

/// Checks the controller that a job names.
fn manager(_: &Value, manager: &Value, at: &str, causes: Causes<'_>) {
    let Some(text) = manager.as_str() else { return };
    paths::of_domain(text, at, causes);
    if text.len() > MAX_MANAGER {
        causes.push(Cause::too_long(at, MAX_MANAGER));
    }
}
