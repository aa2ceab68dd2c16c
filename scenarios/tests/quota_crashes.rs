//! The `ResourceQuota` controller crashes before and after each of its writes, and loses the reply
//! to each. Its successor brings the quota to the same final state, without a periodic recount. So
//! does the controller whose events are late, repeated or lost.

use std::time::Duration;

use homeostat::kube_client::Client;
use homeostat_resourcequota::Options;
use homeostat_testing::{Outcome, Simulation, crash_at_every_call, disturb_every_event};
use http::Request;
use serde_json::{Value, json};

const SHOP: &str = "/api/v1/namespaces/shop";

#[test]
fn successor_of_quota_controller_crashed_at_any_write_reaches_same_state() {
    let sweep = crash_at_every_call(5, world, controller).unwrap();
    // The first status, the additions, the deletion and the changed limit.
    assert!(sweep.calls >= 4, "{sweep:?}");
    assert_eq!(sweep.state["used"], json!({"pods": "1", "secrets": "1"}));
}

#[test]
fn quota_controller_that_sees_late_repeated_or_lost_events_reaches_same_state() {
    let sweep = disturb_every_event(5, world, controller).unwrap();
    assert!(sweep.runs >= 30 && sweep.missed * 4 < sweep.runs, "{sweep:?}");
    assert_eq!(sweep.state["used"], json!({"pods": "1", "secrets": "1"}));
}

async fn controller(client: Client) {
    let options = Options { seed: Some(3), sync_period: None, ..Options::default() };
    let ended = homeostat_resourcequota::run(client, options, std::future::pending()).await;
    panic!("the controller ended: {ended:?}");
}

async fn send(user: &Client, method: &str, path: &str, body: &Value) -> Outcome {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let answer = user.request_text(request.body(serde_json::to_vec(body)?)?).await?;
    Ok(serde_json::from_str(&answer)?)
}

async fn wait_for_used(user: &Client, expected: &Value) -> Outcome {
    let path = format!("{SHOP}/resourcequotas/q");
    let mut quota = Value::Null;
    for _ in 0..2400 {
        quota = send(user, "GET", &path, &Value::Null).await?;
        if quota["status"]["used"] == *expected {
            return Ok(quota["status"].clone());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(format!("expected {expected}, got {}", quota["status"]).into())
}

async fn world(simulation: &Simulation) -> Outcome {
    let user = simulation.user();
    send(user, "POST", "/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await?;
    let quota = json!({"metadata": {"name": "q"},
                       "spec": {"hard": {"pods": "9", "secrets": "9"}}});
    send(user, "POST", &format!("{SHOP}/resourcequotas"), &quota).await?;
    wait_for_used(user, &json!({"pods": "0", "secrets": "0"})).await?;
    for name in ["a", "b"] {
        let pod = json!({"metadata": {"name": name},
                         "spec": {"containers": [{"name": "c", "image": "i"}]}});
        send(user, "POST", &format!("{SHOP}/pods"), &pod).await?;
    }
    let secret = json!({"metadata": {"name": "s"}});
    send(user, "POST", &format!("{SHOP}/secrets"), &secret).await?;
    wait_for_used(user, &json!({"pods": "2", "secrets": "1"})).await?;
    let now = json!({"gracePeriodSeconds": 0});
    send(user, "DELETE", &format!("{SHOP}/pods/a"), &now).await?;
    wait_for_used(user, &json!({"pods": "1", "secrets": "1"})).await?;
    let raised = json!({"spec": {"hard": {"pods": "10"}}});
    send(user, "PATCH", &format!("{SHOP}/resourcequotas/q"), &raised).await?;
    for _ in 0..800 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let status = wait_for_used(user, &json!({"pods": "1", "secrets": "1"})).await?;
        if status["hard"]["pods"] == "10" {
            return Ok(status);
        }
    }
    Err("the raised limit is not in the status".into())
}
