//! Cron jobs.

use serde_json::{Value, json};

use crate::table::Subject;
use crate::table::text::{age, members, selector};

const JOB_TEMPLATE: &str = "spec.jobTemplate.spec.template.spec.containers";

pub(in crate::table) fn containers(job: &Subject<'_>) -> Value {
    json!(members(job.list(JOB_TEMPLATE), "name"))
}

pub(in crate::table) fn images(job: &Subject<'_>) -> Value {
    json!(members(job.list(JOB_TEMPLATE), "image"))
}

pub(in crate::table) fn pod_selector(job: &Subject<'_>) -> Value {
    json!(selector(job.get("spec.jobTemplate.spec.selector")))
}

pub(in crate::table) fn suspend(job: &Subject<'_>) -> Value {
    json!(match job.get("spec.suspend").and_then(Value::as_bool) {
        None => "<unset>",
        Some(true) => "True",
        Some(false) => "False",
    })
}

pub(in crate::table) fn active(job: &Subject<'_>) -> Value {
    json!(job.list("status.active").len())
}

pub(in crate::table) fn last(job: &Subject<'_>) -> Value {
    json!(match job.time("status.lastScheduleTime") {
        None => "<none>".to_owned(),
        last => age(last, job.now),
    })
}
