//! Errors in words: a server that is not there, a missing permission, a resource that never syncs.

use std::time::Duration;

use homeostat_faults::{ApiError, Calls, Faults};
use homeostat_testing::RecordedLog;
use http::StatusCode;
use serde_json::json;
use tokio::time::sleep;
use tracing::Level;
use tracing::subscriber::set_default;

use crate::world::{World, quota};

fn forbidden(verb: &str, resource: &str) -> ApiError {
    let text = format!("{resource} is forbidden: User \"jane\" cannot {verb} resource");
    ApiError::new(StatusCode::FORBIDDEN, "Forbidden", &text)
}

#[tokio::test(start_paused = true)]
async fn missing_permission_for_quotas_names_the_verb_and_the_resource() {
    let faults = Faults::seeded(7);
    faults.refuse(Calls::watch("resourcequotas").always(), forbidden("watch", "resourcequotas"));
    faults.refuse(Calls::list("resourcequotas").always(), forbidden("list", "resourcequotas"));
    let error = World::failure(faults).await;
    assert!(error.starts_with("failed to sync caches within 120s: "), "{error}");
    assert!(error.contains("resourcequotas is forbidden: User \"jane\" cannot"), "{error}");
    assert!(["cannot list", "cannot watch"].iter().any(|verb| error.contains(verb)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn server_that_is_not_there_is_an_error_with_the_verb_and_the_resource() {
    let faults = Faults::seeded(7);
    faults.drop_request(Calls::any().always());
    let error = World::failure(faults).await;
    assert!(error.starts_with("failed to sync caches within 120s: "), "{error}");
    assert!(error.contains("cannot watch resourcequotas"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn resource_that_never_syncs_is_reported_once() {
    let warnings = RecordedLog::new("homeostat_resourcequota", Level::WARN);
    let _guard = set_default(warnings.clone());
    let world = World::new().await;
    for verb in ["list", "watch"] {
        let calls = if verb == "list" { Calls::list("secrets") } else { Calls::watch("secrets") };
        world.faults.refuse(calls.always(), forbidden(verb, "secrets"));
    }
    world.create(&quota("q", &json!({"pods": "9", "secrets": "9"}))).await;
    sleep(Duration::from_secs(600)).await;
    let lines = warnings.lines();
    let late = "Timed out waiting for quota monitor sync";
    let reports: Vec<_> = lines.iter().filter(|line| line.contains(late)).collect();
    assert_eq!(reports.len(), 1, "{lines:#?}");
    assert!(reports[0].contains("secrets"), "{reports:?}");
    assert!(reports[0].contains("cannot"), "the reason is there: {reports:?}");
    assert_eq!(world.used("q").await, "pods=0", "its names wait, and no other");
    world.stop().await;
}
