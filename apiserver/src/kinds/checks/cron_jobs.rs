//! Cron jobs.

use serde_json::Value;

use super::Test::{By, NotNegative, OneOf};
use super::{Causes, Check, is_empty, jobs, member, text, workloads};
use crate::fields::Fields;
use crate::kinds::cron;
use crate::status::Cause;

/// The time zone of the machine.
const LOCAL: &str = "Local";
/// The longest part of the name of a time zone.
const MAX_PART: usize = 14;

pub(crate) fn cron_job(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const DEADLINE: &[Check] = &[("startingDeadlineSeconds", NotNegative)];
    const ZONE: &[Check] = &[("timeZone", By(time_zone))];
    const POLICY: &[Check] = &[("concurrencyPolicy", OneOf(&["Allow", "Forbid", "Replace"]))];
    const HISTORY: &[Check] =
        &[("successfulJobsHistoryLimit", NotNegative), ("failedJobsHistoryLimit", NotNegative)];
    const JOB: &str = "spec.jobTemplate.spec";
    let spec = workloads::spec(object);
    let old = old.map(workloads::spec);
    schedule(spec, old, causes);
    super::run(DEADLINE, spec, "spec", causes);
    if old.is_none_or(|old| member(old, "timeZone") != member(spec, "timeZone")) {
        super::run(ZONE, spec, "spec", causes);
    }
    super::run(POLICY, spec, "spec", causes);
    let job = member(member(spec, "jobTemplate"), "spec");
    jobs::job_spec(job, JOB, causes);
    by_hand(job, JOB, causes);
    super::run(HISTORY, spec, "spec", causes);
    if is_empty(member(spec, "schedule")) {
        causes.push(Cause::required("spec.schedule", ""));
    }
    jobs::dependent(job, JOB, causes);
}

fn schedule(spec: &Value, old: Option<&Value>, causes: Causes<'_>) {
    const AT: &str = "spec.schedule";
    let shown = member(spec, "schedule");
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        return;
    }
    if let Err(problem) = cron::check(schedule) {
        causes.push(Cause::invalid(AT, shown, &problem));
    }
    let had_zone = old.is_some_and(|old| text(old, "schedule").contains("TZ"));
    let detail = match schedule.contains("TZ") {
        true if !had_zone => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        true if !member(spec, "timeZone").is_null() => {
            "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        }
        _ => return,
    };
    causes.push(Cause::invalid(AT, shown, detail));
}

/// Checks that the template of jobs leaves the selector to the server.
fn by_hand(job: &Value, at: &str, causes: Causes<'_>) {
    let (selector, by_hand) = (member(job, "selector"), member(job, "manualSelector"));
    if !selector.is_null() {
        let detail = "`selector` will be auto-generated";
        causes.push(Cause::invalid(format!("{at}.selector"), selector, detail));
    }
    if *by_hand == true {
        causes.push(Cause::unsupported(format!("{at}.manualSelector"), by_hand, &["nil", "false"]));
    }
}

fn time_zone(_: &Value, zone: &Value, at: &str, causes: Causes<'_>) {
    let Some(name) = zone.as_str() else { return };
    let mut refuse = |detail: &str| causes.push(Cause::invalid(at, zone, detail));
    if name.is_empty() {
        refuse("timeZone must be nil or non-empty string");
    } else if name.split('/').any(|part| !is_part_of_zone(part)) {
        refuse(&format!("unknown time zone {name}"));
    } else {
        if name.eq_ignore_ascii_case(LOCAL) {
            let database = "https://www.iana.org/time-zones";
            refuse(&format!("timeZone must be an explicit time zone as defined in {database}"));
        }
        if name != LOCAL && !cron::is_zone(name) {
            refuse(&format!("unknown time zone {name}"));
        }
    }
}

fn is_part_of_zone(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    (1..=MAX_PART).contains(&part.len())
        && part.bytes().all(plain)
        && !part.starts_with('-')
        && !matches!(part, "." | "..")
}
