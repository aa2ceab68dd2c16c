//! Jobs.

use serde_json::{Value, json};

use crate::fields::text;
use crate::table::{Subject, duration};

pub(in crate::table) fn status(job: &Subject<'_>) -> Value {
    let conditions = job.list("status.conditions");
    let holds = |kind: &str| {
        conditions.iter().any(|one| text(one, "type") == kind && text(one, "status") == "True")
    };
    json!(if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if job.is_terminating() {
        "Terminating"
    } else if holds("Suspended") {
        "Suspended"
    } else if holds("FailureTarget") {
        "FailureTarget"
    } else if holds("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    })
}

pub(in crate::table) fn completions(job: &Subject<'_>) -> Value {
    let done = job.number("status.succeeded");
    if job.get("spec.completions").is_some() {
        return json!(format!("{done}/{}", job.number("spec.completions")));
    }
    json!(match job.number("spec.parallelism") {
        several if several > 1 => format!("{done}/1 of {several}"),
        _ => format!("{done}/1"),
    })
}

pub(in crate::table) fn duration(job: &Subject<'_>) -> Value {
    let Some(start) = job.time("status.startTime") else { return json!("") };
    json!(duration::between(start, job.time("status.completionTime").unwrap_or(job.now)))
}
