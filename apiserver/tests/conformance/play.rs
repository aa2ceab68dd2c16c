//! Plays a script on a server.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use http::{Request, Response};
use http_body_util::BodyExt;
use kube_client::client::Body;
use tokio::time::{sleep, timeout};

use crate::headers;
use crate::media::{self, PROTOBUF, YAML};
use crate::normal::Normaliser;
use crate::script::{Answer, Content, Exchange, Meanwhile, Script};
use crate::server::Server;

/// Timeout of a response, with a margin for machines that compile at the same time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of repetitions of a refused request before its response is recorded: errors that follow
/// the random order of a Go map have one order in all of them once in a thousand recordings.
const REPETITIONS: usize = 10;

/// The result of an exchange: the response, or the reason for which there is none.
pub(crate) type Outcome = Result<Answer, String>;

/// The values that the script has saved.
type Variables = BTreeMap<String, String>;

/// Sees each unmasked response, with the position of its exchange and the values that have a name
/// by then, and may alter it.
pub(crate) type Alter<'a> = &'a mut dyn FnMut(usize, &Normaliser, &mut Answer);

/// Plays all exchanges of a script. Exchanges for the other server have no outcome.
pub(crate) async fn play(
    script: &Script,
    server: &mut Server,
    alter: Alter<'_>,
) -> Vec<Option<Outcome>> {
    let (mut variables, mut normaliser) = (Variables::new(), Normaliser::of(script));
    let mut outcomes = Vec::new();
    for (nth, exchange) in script.exchanges.iter().enumerate() {
        if !exchange.is_for(server.is_real()) {
            outcomes.push(None);
            continue;
        }
        let mut alter =
            |normaliser: &Normaliser, answer: &mut Answer| alter(nth, normaliser, answer);
        let played = play_one(exchange, server, &mut variables, &mut normaliser, &mut alter);
        let outcome = timeout(PATIENCE, played)
            .await
            .unwrap_or_else(|_| Err("no response within a minute".to_owned()));
        outcomes.push(Some(outcome));
    }
    outcomes
}

async fn play_one(
    exchange: &Exchange,
    server: &mut Server,
    variables: &mut Variables,
    normaliser: &mut Normaliser,
    alter: &mut dyn FnMut(&Normaliser, &mut Answer),
) -> Outcome {
    for disruption in &exchange.disruptions {
        server.disrupt(*disruption).await?;
    }
    let asked = Asked::fill(exchange, variables)?;
    // The template is recorded without the saved values, which the server chose.
    let Exchange { path, headers, body, .. } = exchange;
    normaliser.sends(&format!("{path} {body:?} {headers:?}"));
    let mut raw = exchange_once(exchange, &asked, server, variables).await?;
    while exchange.until.as_ref().is_some_and(|until| !until.is_met(&raw)) {
        sleep(Duration::from_millis(100)).await;
        raw = exchange_once(exchange, &asked, server, variables).await?;
    }
    for (name, place) in &exchange.saves {
        let saved = saved(&raw, place);
        let saved = saved.ok_or_else(|| format!("nothing to save at {place} of {raw:?}"))?;
        variables.insert(name.clone(), saved);
    }
    alter(normaliser, &mut raw);
    let answer = normaliser.normal(&raw, exchange.answer.as_ref());
    if server.is_real() && exchange.is_repeated() && (400..500).contains(&raw.status) {
        repeat(exchange, &asked, server, normaliser, &answer).await?;
    }
    Ok(answer)
}

/// Sends a refused request again, and returns an error if it has another response.
async fn repeat(
    exchange: &Exchange,
    asked: &Asked<'_>,
    server: &Server,
    normaliser: &mut Normaliser,
    first: &Answer,
) -> Result<(), String> {
    for _ in 0..REPETITIONS {
        let raw = exchange_once(exchange, asked, server, &Variables::new()).await?;
        let again = normaliser.normal(&raw, None);
        if again != *first {
            return Err(format!(
                "the same request has two responses, so none is recorded; leave one error in it: \
                 {first:?} and {again:?}"
            ));
        }
    }
    Ok(())
}

/// Returns the text at a JSON pointer, or that of a header without its quotes.
fn saved(answer: &Answer, place: &str) -> Option<String> {
    if let Some(name) = place.strip_prefix("header ") {
        let (_, value) = answer.headers.iter().find(|(known, _)| known == name)?;
        return Some(value.trim_matches('"').to_owned());
    }
    let Content::Json(values) = &answer.body else { return None };
    values.first()?.pointer(place)?.as_str().map(str::to_owned)
}

/// A request whose variables are filled in.
#[derive(Debug)]
struct Asked<'a> {
    method: &'a str,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

async fn exchange_once(
    exchange: &Exchange,
    asked: &Asked<'_>,
    server: &Server,
    variables: &Variables,
) -> Outcome {
    let response = server.send(asked.request()?).await?;
    for meanwhile in &exchange.meanwhile {
        let asked = Asked::meanwhile(meanwhile, variables)?;
        let response = server.send(asked.request()?).await?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(format!("meanwhile, {} {}: {status} {body:?}", asked.method, asked.path));
        }
    }
    read(response, exchange.events).await
}

async fn read(response: Response<Body>, events: Option<usize>) -> Outcome {
    let status = response.status().as_u16();
    let headers = headers::compared(response.headers());
    let is_protobuf =
        headers.iter().any(|(name, value)| name == "Content-Type" && value.starts_with(PROTOBUF));
    let is_watch = headers.iter().any(|(_, value)| value.ends_with("stream=watch"));
    let mut frames = response.into_body().into_data_stream().boxed();
    let mut bytes = Vec::new();
    let enough = |bytes: &[u8]| {
        events.is_some_and(|events| {
            let lines = || bytes.split(|byte| *byte == b'\n').count() - 1;
            events <= if is_protobuf { media::count_events(bytes) } else { lines() }
        })
    };
    while !enough(&bytes) {
        let Some(frame) = frames.try_next().await.map_err(|error| error.to_string())? else {
            break;
        };
        bytes.extend_from_slice(&frame);
    }
    if bytes.is_empty() {
        // A reply to HEAD may name any media type.
        return Ok(Answer { status, headers, body: Content::parse("") });
    }
    if is_protobuf {
        return Ok(Answer { status, headers, body: media::decode(&bytes, is_watch)? });
    }
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    if headers.iter().any(|(name, value)| name == "Content-Type" && value.starts_with(YAML)) {
        return Ok(Answer { status, headers, body: media::decode_yaml(&text)? });
    }
    Ok(Answer { status, headers, body: Content::parse(&text) })
}

// === impl Asked ===

impl<'a> Asked<'a> {
    fn fill(exchange: &'a Exchange, variables: &Variables) -> Result<Self, String> {
        let body = exchange.body.as_deref().unwrap_or_default();
        let fill_header = |(name, value): &(String, String)| {
            Ok::<_, String>((name.clone(), fill(value, variables)?))
        };
        Ok(Self {
            method: &exchange.method,
            path: fill(&exchange.path, variables)?,
            headers: exchange.headers.iter().map(fill_header).collect::<Result<_, _>>()?,
            body: fill(body, variables)?,
        })
    }

    fn meanwhile(meanwhile: &'a Meanwhile, variables: &Variables) -> Result<Self, String> {
        Ok(Self {
            method: &meanwhile.method,
            path: fill(&meanwhile.path, variables)?,
            headers: Vec::new(),
            body: fill(&meanwhile.body, variables)?,
        })
    }

    /// Builds the request. A script names the media type only if it is not the default.
    fn request(&self) -> Result<Request<Body>, String> {
        let mut request = Request::builder().method(self.method).uri(&self.path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let typed = self.headers.iter().any(|(name, _)| name == "Content-Type");
        if !typed && !self.body.is_empty() {
            let usual = if self.method == "PATCH" { "merge-patch+json" } else { "json" };
            request = request.header("Content-Type", format!("application/{usual}"));
        }
        let is_protobuf =
            |(name, value): &(String, String)| name == "Content-Type" && value == PROTOBUF;
        let body = if self.headers.iter().any(is_protobuf) && !self.body.is_empty() {
            media::encode(&self.body)?
        } else {
            self.body.clone().into_bytes()
        };
        request.body(Body::from(body)).map_err(|error| error.to_string())
    }
}

/// Replaces `{{name}}` by the saved value and `{{3 times the text}}` by the repeated text.
fn fill(text: &str, variables: &Variables) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("{{") {
        let (name, after) = from.split_once("}}").ok_or("a variable does not end")?;
        filled.push_str(before);
        if let Some((count, repeated)) = repeated(name) {
            filled.push_str(&repeated.repeat(count));
        } else {
            let saved = variables.get(name).ok_or_else(|| format!("nothing is saved as {name}"))?;
            filled.push_str(saved);
        }
        rest = after;
    }
    Ok(filled + rest)
}

fn repeated(text: &str) -> Option<(usize, &str)> {
    let (count, repeated) = text.split_once(" times ")?;
    Some((count.parse().ok()?, repeated))
}
