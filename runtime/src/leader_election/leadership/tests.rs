//! Leadership under slow answers, and the tasks that it remembers.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request};
use kube_client::Client;
use kube_client::client::Body;
use tokio::time::{Instant, sleep};

use super::*;
use crate::scripted_server::{Answer, refusal, server};

/// Returns a client that waits for `seconds` of the method before each request.
fn slow(client: Client, seconds: impl Fn(&Method) -> u64 + Send + 'static) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, pause) = (client.clone(), Duration::from_secs(seconds(request.method())));
        async move {
            sleep(pause).await;
            client.send(request).await
        }
    });
    Client::new(service, "default")
}

fn elector(client: Client) -> LeaderElector {
    let builder = LeaderElector::builder(client, "shop", "lease");
    builder.in_virtual_time(jiff::Timestamp::UNIX_EPOCH, 7).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn fence_stays_closed_after_a_late_renewal() {
    let (client, _) = server(|asked| match asked.text.as_str() {
        "" => refusal(404, "not found"),
        lease => Answer::Said(200, serde_json::from_str(lease).unwrap()),
    });
    let renewals = AtomicUsize::new(0);
    let client = slow(client, move |method| match *method {
        Method::PUT => [6, 2].get(renewals.fetch_add(1, Ordering::Relaxed)).map_or(0, |it| *it),
        _ => 0,
    });
    let elector = elector(client);
    let fence = elector.fence();
    let leadership = elector.acquire().await;
    let start = Instant::now();
    assert_eq!(leadership.lost().await, LeadershipLost::DeadlinePassed);
    assert_eq!(start.elapsed().as_secs(), 10);
    for _ in 0..10 {
        sleep(Duration::from_millis(500)).await;
        assert!(!fence.is_open(), "open after {:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_that_have_ended_are_not_remembered() {
    let (client, _) = server(|asked| match asked.text.as_str() {
        "" => refusal(404, "not found"),
        lease => Answer::Said(200, serde_json::from_str(lease).unwrap()),
    });
    let leadership = elector(client).acquire().await;
    let (mut lasting, mut short) = (JoinSet::new(), JoinSet::new());
    leadership.abort_on_loss(lasting.spawn(std::future::pending::<()>()));
    for _ in 0..1000 {
        leadership.abort_on_loss(short.spawn(std::future::ready(())));
        short.join_next().await.unwrap().unwrap();
    }
    let known = leadership.shared.end.lock().aborts.len();
    assert!(known < 20, "{known}");
    drop(leadership);
    assert!(lasting.join_next().await.unwrap().unwrap_err().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn slow_release_is_no_loss_of_leadership() {
    let lease = Mutex::new(None::<String>);
    let (client, _) = server(move |asked| match asked.line.split(' ').next() {
        Some("GET") => match &*lease.lock() {
            Some(lease) => Answer::Said(200, serde_json::from_str(lease).unwrap()),
            None => refusal(404, "not found"),
        },
        Some("POST") => {
            *lease.lock() = Some(asked.text.clone());
            Answer::Said(201, serde_json::from_str(&asked.text).unwrap())
        }
        _ => refusal(409, "modified"),
    });
    let reads = AtomicUsize::new(0);
    let client = slow(client, move |method| match *method {
        Method::POST => 0,
        Method::GET if reads.fetch_add(1, Ordering::Relaxed) == 0 => 0,
        _ => 4,
    });
    let leadership = elector(client).acquire().await;
    sleep(Duration::from_secs(1)).await;
    let shared = Arc::clone(&leadership.shared);
    leadership.release().await;
    assert!(!shared.lost.is_cancelled());
    assert_eq!(shared.end.lock().reason, None);
}
