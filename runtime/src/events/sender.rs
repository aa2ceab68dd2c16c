//! Sends events, patiently while nobody wants to end.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::Event;
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_client::client::Body;
use kube_client::core::Request;
use kube_client::{Client, Resource};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::correlator::Post;

/// client-go's numbers: two minutes of patience with a server that is away.
const ATTEMPTS: u32 = 12;
const PAUSE: Duration = Duration::from_secs(10);

pub(super) struct Sender {
    client: Client,
    /// Makes the first pauses differ, so that the controllers of a cluster do not come back all at once.
    chance: u64,
    closing: CancellationToken,
}

/// How an attempt ended.
enum Sent {
    Done,
    /// The event is not on the server (any more): it has to be created.
    NotThere,
    /// The server answered, and said no. Asking again would not help.
    Refused(String),
    /// No answer came.
    Lost(String),
}

/// What changes when an event happens again.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Again<'a> {
    count: &'a Option<i32>,
    last_timestamp: &'a Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
    message: &'a Option<String>,
}

// === impl Sender ===

impl Sender {
    pub(super) fn new(client: Client, seed: u64, closing: CancellationToken) -> Self {
        Self { client, chance: seed, closing }
    }

    /// Ready once the recorder is shut down.
    pub(super) async fn closing(&self) {
        self.closing.cancelled().await;
    }

    /// Sends one event: again after a pause while there is no answer, but not when the recorder is shut down.
    pub(super) async fn send(&mut self, mut post: Post) {
        for attempt in 1..=ATTEMPTS {
            let why = match self.attempt(&post).await {
                Sent::Done => return,
                Sent::Refused(why) => {
                    tracing::warn!("an event was refused: {why}");
                    return;
                }
                Sent::NotThere => {
                    // Its time was up. What was counted stays.
                    let (Post::Update(event) | Post::Create(event)) = post;
                    post = Post::Create(event);
                    match self.attempt(&post).await {
                        Sent::Lost(why) => why,
                        _ => return,
                    }
                }
                Sent::Lost(why) => why,
            };
            tracing::debug!(attempt, "an event was not answered: {why}");
            if attempt == ATTEMPTS || !self.pause(attempt).await {
                tracing::warn!("an event is lost: {why}");
                return;
            }
        }
    }

    async fn attempt(&self, post: &Post) -> Sent {
        let request = match request(post) {
            Ok(request) => request,
            Err(error) => return Sent::Refused(error.to_string()),
        };
        let mut request = request.map(Body::from);
        request.extensions_mut().insert("event");
        let response = match self.client.send(request).await {
            Ok(response) => response,
            Err(error) => return Sent::Lost(error.to_string()),
        };
        let status = response.status();
        // The answer is the event again: nobody needs it, and reading it keeps the connection.
        let body = response.into_body().collect_bytes().await;
        match status {
            _ if status.is_success() => Sent::Done,
            // An earlier attempt arrived, and its answer did not.
            StatusCode::CONFLICT if matches!(post, Post::Create(_)) => Sent::Done,
            StatusCode::NOT_FOUND if matches!(post, Post::Update(_)) => Sent::NotThere,
            _ => Sent::Refused(format!(
                "{status}: {}",
                String::from_utf8_lossy(&body.unwrap_or_default())
            )),
        }
    }

    /// Whether it may go on after the pause.
    async fn pause(&mut self, attempt: u32) -> bool {
        let pause = if attempt == 1 { PAUSE.mul_f64(self.next_chance()) } else { PAUSE };
        tokio::select! {
            biased;
            () = self.closing.cancelled() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }

    /// A number from zero up to one (splitmix64).
    fn next_chance(&mut self) -> f64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let top = u32::try_from(mixed >> 32).expect("32 bits");
        f64::from(top) / (f64::from(u32::MAX) + 1.0)
    }
}

fn request(post: &Post) -> Result<http::Request<Vec<u8>>, kube_client::core::request::Error> {
    let (Post::Create(event) | Post::Update(event)) = post;
    let url = Event::url_path(&(), event.metadata.namespace.as_deref());
    match post {
        Post::Create(event) => {
            let body = serde_json::to_vec(event)
                .map_err(kube_client::core::request::Error::SerializeBody)?;
            Request::new(url).create(&PostParams::default(), body)
        }
        Post::Update(event) => {
            let name = event.metadata.name.as_deref().unwrap_or_default();
            let again = Again {
                count: &event.count,
                last_timestamp: &event.last_timestamp,
                message: &event.message,
            };
            Request::new(url).patch(name, &PatchParams::default(), &Patch::Strategic(again))
        }
    }
}
