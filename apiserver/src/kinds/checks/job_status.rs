//! Writes of a job's status (`ValidateJobStatusUpdate`).
//!
//! Like the real server, most checks pass if the members that they are about stay as they are: the
//! spec can change first, and the job's controller follows.

use std::cmp::max;

use serde_json::{Value, json};

use super::Test::NotNegative;
use super::job_indexes::{count_indexes, is_indexed, read_interval};
use super::workloads::spec;
use super::{Causes, Check, is_empty, items, member, text};
use crate::fields::Fields;
use crate::status::Cause;

const COUNTERS: &[Check] = &[
    ("active", NotNegative),
    ("succeeded", NotNegative),
    ("failed", NotNegative),
    ("ready", NotNegative),
    ("terminating", NotNegative),
];

const CONDITIONS: &str = "status.conditions";

/// A write of the status.
struct Write<'a> {
    /// The spec of the job, which the write leaves as it is.
    spec: &'a Value,
    new: &'a Value,
    old: &'a Value,
}

/// Checks the status that a write leads to, and what it changes.
pub(super) fn status(job: &Fields, old: &Fields, causes: Causes<'_>) {
    let [new, old] = [job, old].map(|job| job.get("status").unwrap_or(&Value::Null));
    if new == old {
        return; // not a write of the status
    }
    let write = Write { spec: spec(job), new, old };
    super::run(COUNTERS, new, "status", causes);
    uncounted(member(new, "uncountedTerminatedPods"), causes);
    write.end(causes);
    write.times(causes);
    write.steps_to_end(causes);
    write.finished(causes);
    write.indexes(causes);
    write.pods(causes);
    write.success(causes);
    write.transitions(causes);
}

/// Checks the pods that are not counted yet: each has a uid of its own.
fn uncounted(pods: &Value, causes: Causes<'_>) {
    let mut known = Vec::new();
    for list in ["succeeded", "failed"] {
        for (place, uid) in items(member(pods, list)).iter().enumerate() {
            let at = format!("status.uncountedTerminatedPods.{list}[{place}]");
            if is_empty(uid) {
                causes.push(Cause::invalid(at, uid, "must not be empty"));
            } else if known.contains(&uid) {
                causes.push(Cause::duplicate(at, uid));
            } else {
                known.push(uid);
            }
        }
    }
}

/// Returns true if a status has a condition that is true.
pub(super) fn has(status: &Value, kind: &str) -> bool {
    has_as(status, kind, "True")
}

fn has_as(status: &Value, kind: &str, is: &str) -> bool {
    let conditions = items(member(status, "conditions"));
    conditions.iter().any(|one| text(one, "type") == kind && text(one, "status") == is)
}

fn is_finished(status: &Value) -> bool {
    has(status, "Complete") || has(status, "Failed")
}

fn number(status: &Value, key: &str) -> i64 {
    member(status, key).as_i64().unwrap_or(0)
}

fn conflict(detail: &str) -> Cause {
    Cause::invalid_text(CONDITIONS, detail, "")
}

// === impl Write ===

impl Write<'_> {
    fn is_changed(&self, key: &str) -> bool {
        // A number that is missing is zero, and a text is empty: they are no pointers.
        let value = |status| match (key, member(status, key)) {
            ("active", Value::Null) => json!(0),
            ("completedIndexes", Value::Null) => json!(""),
            (_, value) => value.clone(),
        };
        value(self.new) != value(self.old)
    }

    fn is_condition_changed(&self, kind: &str) -> bool {
        has(self.new, kind) != has(self.old, kind)
    }

    fn is_end_changed(&self) -> bool {
        is_finished(self.new) != is_finished(self.old)
    }

    /// Checks that a job that is complete has not failed.
    fn end(&self, causes: Causes<'_>) {
        let changed = |kinds: [&str; 2]| kinds.iter().any(|kind| self.is_condition_changed(kind));
        for other in ["Failed", "FailureTarget"] {
            let both = has(self.new, "Complete") && has(self.new, other);
            if both && changed(["Complete", other]) {
                causes.push(conflict(&format!(
                    "cannot set Complete=True and {other}=true conditions"
                )));
            }
        }
    }

    /// Checks the time of the end: a job has one if and only if it is complete.
    fn times(&self, causes: Causes<'_>) {
        const AT: &str = "status.completionTime";
        let [start, end] = ["startTime", "completionTime"].map(|key| member(self.new, key));
        let is_complete = has(self.new, "Complete");
        let is_end_new = self.is_condition_changed("Complete") || self.is_changed("completionTime");
        if is_end_new && !end.is_null() && !is_complete {
            let detail = "cannot set completionTime when there is no Complete=True condition";
            causes.push(Cause::invalid(AT, end, detail));
        }
        if is_end_new && end.is_null() && is_complete {
            causes.push(Cause::required(AT, "completionTime is required for Complete jobs"));
        }
        let is_time_new = self.is_changed("startTime") || self.is_changed("completionTime");
        // Both are stored with seconds, in UTC: their texts have the order of the times.
        if let (true, Some(start), Some(time)) = (is_time_new, start.as_str(), end.as_str())
            && time < start
        {
            causes.push(Cause::invalid(AT, end, "must be equal to or after `startTime`"));
        }
    }

    /// Checks that the condition is there that comes before the end.
    fn steps_to_end(&self, causes: Causes<'_>) {
        let mut check = |kind: &str, first: &str, is_new: bool| {
            if is_new && has(self.new, kind) && !has(self.new, first) {
                causes.push(conflict(&format!(
                    "cannot set {kind}=True condition without the {first}=true condition"
                )));
            }
        };
        let failed = self.is_condition_changed("Failed") || self.is_changed("failedIndexes");
        check("Failed", "FailureTarget", failed);
        let complete = self.is_condition_changed("Complete")
            || self.is_condition_changed("SuccessCriteriaMet");
        check("Complete", "SuccessCriteriaMet", complete);
    }

    /// Checks that a finished job has started, and has no pods left to wait for.
    fn finished(&self, causes: Causes<'_>) {
        if !is_finished(self.new) {
            return;
        }
        let is_new = |key| self.is_end_changed() || self.is_changed(key);
        if is_new("active") && number(self.new, "active") > 0 {
            let active = member(self.new, "active");
            let detail = "active>0 is invalid for finished job";
            causes.push(Cause::invalid("status.active", active, detail));
        }
        let is_empty_job = *member(self.spec, "suspend") == true
            && member(self.spec, "completions").as_i64() == Some(0);
        if is_new("startTime") && member(self.new, "startTime").is_null() && !is_empty_job {
            let detail = "startTime is required for finished job";
            causes.push(Cause::required("status.startTime", detail));
        }
        let uncounted = member(self.new, "uncountedTerminatedPods");
        let [succeeded, failed] = ["succeeded", "failed"].map(|list| member(uncounted, list));
        if is_new("uncountedTerminatedPods") && !(is_empty(succeeded) && is_empty(failed)) {
            let shown = json!({"Succeeded": succeeded, "Failed": failed});
            let detail = "must be empty for finished job";
            causes.push(Cause::invalid("status.uncountedTerminatedPods", &shown, detail));
        }
    }

    /// Checks the form of the indexes that are complete or have failed, and that none is both.
    fn indexes(&self, causes: Causes<'_>) {
        let [complete, failed] = ["completedIndexes", "failedIndexes"];
        let [is_complete_new, is_failed_new] = [complete, failed].map(|key| self.is_changed(key));
        let completions = member(self.spec, "completions").as_i64();
        let has_limit = !member(self.spec, "backoffLimitPerIndex").is_null();
        let list = |key: &str| member(self.new, key);
        let mut refuse = |key: &str, detail: &str| {
            causes.push(Cause::invalid(format!("status.{key}"), list(key), detail));
        };
        for (key, is_new) in [(complete, is_complete_new), (failed, is_failed_new && has_limit)] {
            let (Some(most), Some(text)) = (completions, list(key).as_str()) else { continue };
            if let Some(problem) = count_indexes(text, most).err().filter(|_| is_new) {
                refuse(key, &format!("error parsing {key}: {problem}"));
            }
        }
        if is_complete_new && !is_empty(list(complete)) && !is_indexed(self.spec) {
            refuse(
                complete,
                "cannot set non-empty completedIndexes when non-indexed completion mode",
            );
        }
        if is_failed_new && !list(failed).is_null() && !has_limit {
            refuse(failed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
        }
        if let Some(index) = completions
            .filter(|_| is_complete_new || is_failed_new)
            .and_then(|most| first_common(text(self.new, complete), text(self.new, failed), most))
        {
            let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
            refuse(failed, &detail);
        }
    }

    /// Checks the counts of pods that still run.
    fn pods(&self, causes: Causes<'_>) {
        let mut refuse = |key: &str, detail: &str| {
            causes.push(Cause::invalid(format!("status.{key}"), member(self.new, key), detail));
        };
        let is_end_new = self.is_end_changed() || self.is_changed("terminating");
        if is_end_new && is_finished(self.new) && number(self.new, "terminating") > 0 {
            refuse("terminating", "terminating>0 is invalid for finished job");
        }
        let is_ready_new = self.is_changed("ready") || self.is_changed("active");
        if is_ready_new && number(self.new, "ready") > number(self.new, "active") {
            refuse("ready", "cannot set more ready pods than active");
        }
    }

    /// Checks the condition of a job whose success criteria are met, which may change or not.
    fn success(&self, causes: Causes<'_>) {
        let is_met = has(self.new, "SuccessCriteriaMet");
        for kind in ["Failed", "FailureTarget"].iter().filter(|kind| is_met && has(self.new, kind))
        {
            causes.push(conflict(&format!(
                "cannot set SuccessCriteriaMet=True and {kind}=true conditions"
            )));
        }
        let has_policy = !member(self.spec, "successPolicy").is_null();
        if has_policy && !is_met && has(self.new, "Complete") {
            let detail = "cannot set Complete=True for Job with SuccessPolicy unless \
                          SuccessCriteriaMet=True";
            causes.push(conflict(detail));
        }
    }

    /// Checks what no write may take back.
    fn transitions(&self, causes: Causes<'_>) {
        for kind in ["Failed", "Complete", "FailureTarget"] {
            if has(self.old, kind) && !has(self.new, kind) {
                causes
                    .push(conflict(&format!("cannot disable the terminal {kind}=True condition")));
            }
        }
        self.counters(causes);
        let mut refuse = |key: &str, detail: &str| {
            causes.push(Cause::invalid(format!("status.{key}"), member(self.new, key), detail));
        };
        let is_set = |key: &str| !member(self.old, key).is_null() && self.is_changed(key);
        if is_set("completionTime") && !member(self.new, "completionTime").is_null() {
            refuse("completionTime", "field is immutable");
        }
        let resumes = has(self.old, "Suspended") && has_as(self.new, "Suspended", "False");
        if is_set("startTime") && !resumes && *member(self.spec, "suspend") != true {
            refuse("startTime", "field is immutable for unsuspended job once set");
        }
        let [was_met, meets] = [self.old, self.new].map(|one| has(one, "SuccessCriteriaMet"));
        if was_met && !meets {
            causes.push(conflict("cannot disable the SuccessCriteriaMet=True condition"));
        }
        if has(self.old, "Complete") && !was_met && meets {
            let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true \
                          conditions";
            causes.push(conflict(detail));
        }
    }

    /// Checks that counters do not decrease. A job whose completions follow its parallelism may be
    /// scaled down.
    fn counters(&self, causes: Causes<'_>) {
        let is_elastic = is_indexed(self.spec)
            && member(self.spec, "completions") == member(self.spec, "parallelism");
        for (key, may_decrease) in [("failed", false), ("succeeded", is_elastic)] {
            if !may_decrease && number(self.new, key) < number(self.old, key) {
                let detail = format!("cannot decrease the {key} counter");
                let shown = json!(number(self.new, key));
                causes.push(Cause::invalid(format!("status.{key}"), &shown, &detail));
            }
        }
    }
}

/// Returns the first index that is in both lists. Intervals that cannot be read count for none.
fn first_common(complete: &str, failed: &str, completions: i64) -> Option<i64> {
    let read = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|interval| read_interval(interval, completions).ok()).collect()
    };
    let (complete, failed) = (read(complete), read(failed));
    let (mut complete, mut failed) = (complete.iter().peekable(), failed.iter().peekable());
    while let (Some((first, last)), Some((start, end))) = (complete.peek(), failed.peek()) {
        if first <= end && start <= last {
            return Some(max(*first, *start));
        }
        if first <= start {
            complete.next()
        } else {
            failed.next()
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the texts of the causes against a write of the status of an indexed job of 5.
    fn refusals(new: &Value, old: &Value) -> Vec<String> {
        let spec = json!({
            "completions": 5, "parallelism": 2, "completionMode": "Indexed",
            "backoffLimitPerIndex": 1,
        });
        let job = |status: &Value| {
            Fields::from_iter([
                ("spec".to_owned(), spec.clone()),
                ("status".to_owned(), status.clone()),
            ])
        };
        let mut causes = Vec::new();
        status(&job(new), &job(old), &mut causes);
        causes.iter().map(Cause::text).collect()
    }

    fn condition(kind: &str) -> Value {
        json!({"type": kind, "status": "True"})
    }

    #[test]
    fn status_that_violates_a_rule_may_stay() {
        let old = json!({"completedIndexes": "7", "ready": 3, "active": 1});
        let new = json!({"completedIndexes": "7", "ready": 3, "active": 1, "failed": 1});
        assert_eq!(refusals(&new, &old), [""; 0]);
        let new = json!({"completedIndexes": "7,8", "ready": 3, "active": 2});
        let expected = [
            "status.completedIndexes: Invalid value: \"7,8\": error parsing completedIndexes: too \
             large index: \"7\"",
            "status.ready: Invalid value: 3: cannot set more ready pods than active",
        ];
        assert_eq!(refusals(&new, &old), expected);
    }

    #[test]
    fn index_is_complete_or_failed() {
        let new = json!({"completedIndexes": "0,2-3", "failedIndexes": "x,3-4"});
        let expected = [
            "status.failedIndexes: Invalid value: \"x,3-4\": error parsing failedIndexes: cannot \
             convert string to integer for index: \"x\"",
            "status.failedIndexes: Invalid value: \"x,3-4\": failedIndexes and completedIndexes \
             overlap at index: 3",
        ];
        assert_eq!(refusals(&new, &json!({})), expected);
        let new = json!({"completedIndexes": "0,2", "failedIndexes": "1,3-4"});
        assert_eq!(refusals(&new, &json!({})), [""; 0]);
    }

    #[test]
    fn end_is_final() {
        let [met, complete] = ["SuccessCriteriaMet", "Complete"].map(condition);
        let times = |end| {
            json!({"startTime": "2026-01-01T00:00:02Z", "completionTime": end,
                "conditions": [met, complete], "succeeded": 5})
        };
        let old = times("2026-01-01T00:00:03Z");
        assert_eq!(refusals(&old, &json!({"startTime": "2026-01-01T00:00:02Z"})), [""; 0]);
        let expected = [
            "status.completionTime: Invalid value: \"2026-01-01T00:00:01Z\": must be equal to or \
             after `startTime`",
            "status.completionTime: Invalid value: \"2026-01-01T00:00:01Z\": field is immutable",
        ];
        assert_eq!(refusals(&times("2026-01-01T00:00:01Z"), &old), expected);
        let new = json!({"startTime": "2026-01-01T00:00:02Z", "succeeded": 4});
        let expected = [
            "status.conditions: Invalid value: cannot disable the terminal Complete=True condition",
            "status.succeeded: Invalid value: 4: cannot decrease the succeeded counter",
            "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True \
             condition",
        ];
        assert_eq!(refusals(&new, &old), expected);
    }
}
