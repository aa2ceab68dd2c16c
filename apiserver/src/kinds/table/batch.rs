//! The group `batch`.

use super::pod_spec::POD_SPEC;
use super::{ALL, KEEPS_SPEC, OF_SPEC, SPEC_TEMPLATE, label, named};
use crate::kinds::DefaultValue::{From, Json};
use crate::kinds::{DefaultValue, Defaults, Dependents, Kind, Secured, checks, job, warnings};
use crate::names;
use crate::object::FieldLabel;

/// The defaults of a job that its template in a `CronJob` does not have.
const JOB: &[(&str, DefaultValue)] = &[
    ("completions", From(job::completions)),
    ("parallelism", Json("1")),
    ("backoffLimit", From(job::backoff_limit)),
    ("completionMode", Json("\"NonIndexed\"")),
    ("suspend", Json("false")),
    ("podReplacementPolicy", From(job::replacement_policy)),
    ("manualSelector", Json("false")),
    ("podFailurePolicy.rules[].onPodConditions[].status", Json("\"True\"")),
];

pub(super) fn rows() -> Vec<Kind> {
    vec![job(), cron_job()]
}

fn job() -> Kind {
    Kind {
        dependents: Dependents::Orphaned,
        no_policy_warning: Some(
            "child pods are preserved by default when jobs are deleted; set \
             propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
             suppress this warning",
        ),
        categories: ALL,
        status: KEEPS_SPEC,
        generation: OF_SPEC,
        fields: const {
            &[FieldLabel { missing: "0", ..label("status.successful", &["status.succeeded"]) }]
        },
        defaults: &[
            Defaults { under: "spec", rules: JOB },
            Defaults { under: "spec.template.spec", rules: POD_SPEC },
        ],
        prepare: job::prepare,
        derive: job::derive,
        validate: checks::jobs::job,
        warn: warnings::job,
        secured: SPEC_TEMPLATE,
        ..named("batch", "Job", "jobs")
    }
}

fn cron_job() -> Kind {
    Kind {
        short_names: &["cj"],
        name: names::cron_job,
        categories: ALL,
        status: KEEPS_SPEC,
        status_checks_finalizers: false,
        generation: OF_SPEC,
        defaults: &[
            Defaults {
                under: "spec",
                rules: &[
                    ("concurrencyPolicy", Json("\"Allow\"")),
                    ("suspend", Json("false")),
                    ("successfulJobsHistoryLimit", Json("3")),
                    ("failedJobsHistoryLimit", Json("1")),
                    (
                        "jobTemplate.spec.podFailurePolicy.rules[].onPodConditions[].status",
                        Json("\"True\""),
                    ),
                ],
            },
            Defaults { under: "spec.jobTemplate.spec.template.spec", rules: POD_SPEC },
        ],
        validate: checks::cron_jobs::cron_job,
        secured: Some(Secured::Template("spec.jobTemplate.spec.template")),
        warn: warnings::cron_job,
        ..named("batch", "CronJob", "cronjobs")
    }
}
