//! [`install`]: creates or updates a custom resource definition, and waits until it is served.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_client::{Api, Client, Error};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::describe_error;
use crate::outcome::{self, Outcome, has_code};

/// The period of the looks at the definition.
///
/// A definition is served within about a second in most clusters; the wait is short and has a
/// timeout, so that a watch would cost more than it saves.
const PERIOD: Duration = Duration::from_millis(100);

/// The pause after a request without an answer.
const PAUSE: Duration = Duration::from_secs(1);

/// The time after which the wait is logged for the first time, and the period of further lines:
/// those of a manager that waits for its caches.
const FIRST_REPORT_AFTER: Duration = Duration::from_secs(2);
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// The error of a definition that could not be installed.
///
/// Both variants name the definition. A program logs the error and exits: its informers would list
/// a resource that does not exist.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrdError {
    /// The server refused a request, or did not answer until the timeout.
    #[error("failed to install the definition {name}: {}", describe_error(.source))]
    #[non_exhaustive]
    Refused {
        /// The definition's name.
        name: String,
        /// The error of the request.
        #[source]
        source: Box<Error>,
    },
    /// The definition is not served yet, or never will be: its names are taken.
    #[error("the definition {name} is not served after {timeout:?}: {missing}")]
    #[non_exhaustive]
    NotServed {
        /// The definition's name.
        name: String,
        /// The timeout.
        timeout: Duration,
        /// The condition that is missing, with its message.
        missing: String,
    },
}

/// `APIResourceList`, of which only the names are read.
#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
}

/// Creates `crd`, or updates the definition of its name, and waits until each of its versions is
/// served, for at most `timeout`.
///
/// An update replaces the spec's fields that `crd` has, and keeps others, such as the CA bundle of
/// a conversion webhook that another program sets. Replicas that install the same definition at the
/// same time do no harm. A definition that is being deleted is created again when it is gone. A
/// server that does not answer is tried again until the timeout; after 2 s, and each 10 s, the log
/// says what is missing.
///
/// Call it before the informers of the kind start. A process that may only read definitions should
/// leave the installation to its operator (`kubectl apply`): the permission to change definitions
/// is a wide one.
///
/// # Errors
///
/// Returns an error if the server refuses the definition, or if it is not served in time. The text
/// names the condition that is missing.
///
/// # Cancel safety
///
/// The definition may have been written. Calling it again is safe.
///
/// # Examples
///
/// ```no_run
/// # use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as definitions;
/// # use definitions::CustomResourceDefinition;
/// use std::time::Duration;
///
/// use homeostat::crd;
///
/// # async fn doc(definition: CustomResourceDefinition) -> Result<(), Box<dyn std::error::Error>> {
/// // `definition` is `Foo::crd()` of a type with `#[derive(CustomResource)]`.
/// let client = homeostat::client::builder().infer().await?.build();
/// crd::install(&client, &definition, Duration::from_secs(30)).await?;
/// # Ok(())
/// # }
/// ```
pub async fn install(
    client: &Client,
    crd: &CustomResourceDefinition,
    timeout: Duration,
) -> Result<(), CrdError> {
    let name = crd.metadata.name.clone().unwrap_or_default();
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let deadline = Instant::now() + timeout.min(Duration::from_secs(24 * 3600));
    let mut next_report = Instant::now() + FIRST_REPORT_AFTER;
    let mut is_written = false;
    loop {
        // The last look has the time of an answer.
        let limit = deadline.max(Instant::now() + PERIOD);
        let looked = timeout_at(limit, look(&api, &name, crd, &mut is_written)).await;
        let (missing, pause) = match looked {
            Ok(Ok(None)) => return Ok(()),
            Ok(Ok(Some(missing))) => (missing, PERIOD),
            Err(_) => ("the server does not answer".to_owned(), PERIOD),
            Ok(Err(error)) if may_pass(&error) && Instant::now() < deadline => {
                (describe_error(&error), PAUSE)
            }
            Ok(Err(error)) => return Err(CrdError::Refused { name, source: Box::new(error) }),
        };
        if Instant::now() >= deadline {
            return Err(CrdError::NotServed { name, timeout, missing });
        }
        if Instant::now() >= next_report {
            tracing::warn!(definition = %name, %missing, "still waiting for the definition");
            next_report = Instant::now() + REPORT_EVERY;
        }
        sleep(pause).await;
    }
}

/// Writes the definition unless that is done, and returns what is missing for it to be served.
///
/// # Errors
///
/// The first error of a request.
async fn look(
    api: &Api<CustomResourceDefinition>,
    name: &str,
    crd: &CustomResourceDefinition,
    is_written: &mut bool,
) -> Result<Option<String>, Error> {
    if !*is_written {
        write(api, name, crd).await?;
        *is_written = true;
    }
    let live = match api.get(name).await {
        Err(error) if has_code(&error, 404) => {
            *is_written = false;
            return Ok(Some("it was deleted".to_owned()));
        }
        live => live?,
    };
    // It is served to its end, and then gone.
    if live.metadata.deletion_timestamp.is_some() {
        return Ok(Some("it is being deleted".to_owned()));
    }
    match missing_condition(&live) {
        None => unserved_version(&api.clone().into_client(), &live).await,
        missing => Ok(missing),
    }
}

/// Returns true if the request may succeed later: the server was not reached, did not answer, or
/// has an error of its own.
fn may_pass(error: &Error) -> bool {
    match error {
        Error::Api(status) => status.code == 429 || outcome::of(error) == Outcome::Unknown,
        Error::Service(_) => true,
        _ => false,
    }
}

/// Creates the definition, or updates it if it exists.
///
/// Update first, create if there is none: a start of the program is an update in most cases. If
/// another replica is faster, the create is answered with 409, and the update follows.
///
/// # Errors
///
/// The first answer that is neither 404 for the update nor 409 for the create.
async fn write(
    api: &Api<CustomResourceDefinition>,
    name: &str,
    crd: &CustomResourceDefinition,
) -> Result<(), Error> {
    // A member that is null would be removed: those of other programs stay.
    let (labels, annotations) = (&crd.metadata.labels, &crd.metadata.annotations);
    let patch = json!({
        "metadata": {
            "labels": labels.clone().unwrap_or_default(),
            "annotations": annotations.clone().unwrap_or_default(),
        },
        "spec": crd.spec,
    });
    let updated = async || api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    match updated().await {
        Err(error) if has_code(&error, 404) => {}
        updated => return updated.map(drop),
    }
    match api.create(&PostParams::default(), crd).await {
        // Another replica has created it meanwhile.
        Err(error) if has_code(&error, 409) => updated().await.map(drop),
        created => created.map(drop),
    }
}

/// Returns the first condition that is not true yet, with its message.
///
/// `NamesAccepted` comes first: with a name that is taken, `Established` never becomes true, and
/// its message does not say why.
fn missing_condition(crd: &CustomResourceDefinition) -> Option<String> {
    let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_ref());
    ["NamesAccepted", "Established"].into_iter().find_map(|type_| {
        let condition = conditions.into_iter().flatten().find(|it| it.type_ == type_);
        match condition {
            Some(condition) if condition.status == "True" => None,
            Some(condition) => {
                let message = condition.message.as_deref().unwrap_or("no message");
                Some(format!("condition {type_} is {}: {message}", condition.status))
            }
            None => Some(format!("condition {type_} is missing")),
        }
    })
}

/// Returns the first version whose resource discovery does not list yet.
///
/// A definition that is established is served a moment later: an API server updates its discovery
/// on its own, and 404 and 503 mean "not yet".
async fn unserved_version(
    client: &Client,
    crd: &CustomResourceDefinition,
) -> Result<Option<String>, Error> {
    let (group, plural) = (&crd.spec.group, &crd.spec.names.plural);
    for version in crd.spec.versions.iter().filter(|version| version.served) {
        let request = http::Request::get(format!("/apis/{group}/{}", version.name))
            .body(Vec::new())
            .map_err(Error::HttpError)?;
        let is_served = match client.request::<Resources>(request).await {
            Ok(listed) => listed.resources.iter().any(|resource| resource.name == *plural),
            Err(error) if has_code(&error, 404) || has_code(&error, 503) => false,
            Err(error) => return Err(error),
        };
        if !is_served {
            return Ok(Some(format!(
                "discovery does not list {plural} in {group}/{}",
                version.name
            )));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::Value;

    use super::*;
    use crate::scripted_server::{Answer, refusal, server};

    const DEFINITION: &str =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.example.com";
    const DISCOVERY: &str = "GET /apis/example.com/v1";

    fn definition(conditions: &Value) -> Value {
        json!({
            "metadata": {"name": "foos.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Foo", "plural": "foos"},
                "versions": [{"name": "v1", "served": true, "storage": true}]},
            "status": {"conditions": conditions},
        })
    }

    fn conditions(established: &str, names: (&str, &str)) -> Value {
        json!([
            {"type": "Established", "status": established, "message": "not yet"},
            {"type": "NamesAccepted", "status": names.0, "message": names.1},
        ])
    }

    fn crd() -> CustomResourceDefinition {
        serde_json::from_value(definition(&json!([]))).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn new_definition_is_created_and_waited_for_until_it_is_served() {
        let (gets, looks) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (client, log) = server(move |asked| match asked.line.split_once(' ').unwrap() {
            ("PATCH", _) => refusal(404, "not found"),
            ("GET", DEFINITION) => match gets.fetch_add(1, Ordering::Relaxed) {
                0 => Answer::Said(200, definition(&conditions("False", ("True", "")))),
                _ => Answer::Said(200, definition(&conditions("True", ("True", "")))),
            },
            ("GET", _) => match looks.fetch_add(1, Ordering::Relaxed) {
                0 => refusal(404, "not found"),
                _ => Answer::Said(200, json!({"resources": [{"name": "foos"}]})),
            },
            _ => Answer::Said(201, definition(&json!([]))),
        });
        install(&client, &crd(), Duration::from_secs(30)).await.unwrap();
        let created = log.lines().iter().filter(|line| line.starts_with("POST")).count();
        let looked = log.lines().iter().filter(|line| *line == DISCOVERY).count();
        assert_eq!((created, looked), (1, 2), "{:?}", log.lines());
    }

    #[tokio::test(start_paused = true)]
    async fn definition_that_is_being_deleted_is_created_again() {
        let gets = Arc::new(AtomicUsize::new(0));
        let is_gone = {
            let gets = Arc::clone(&gets);
            move || gets.load(Ordering::Relaxed) > 2
        };
        let served = definition(&conditions("True", ("True", "")));
        let mut leaving = served.clone();
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let (client, log) = server(move |asked| match asked.line.split_once(' ').unwrap() {
            ("GET", DEFINITION) => match gets.fetch_add(1, Ordering::Relaxed) {
                0 | 1 => Answer::Said(200, leaving.clone()),
                2 => refusal(404, "not found"),
                _ => Answer::Said(200, served.clone()),
            },
            ("GET", _) => Answer::Said(200, json!({"resources": [{"name": "foos"}]})),
            ("PATCH", _) if is_gone() => refusal(404, "not found"),
            _ => Answer::Said(200, served.clone()),
        });
        install(&client, &crd(), Duration::from_secs(30)).await.unwrap();
        let written = |method: &str| log.lines().iter().filter(|it| it.starts_with(method)).count();
        assert_eq!((written("PATCH"), written("POST")), (2, 1), "{:?}", log.lines());
    }

    #[tokio::test(start_paused = true)]
    async fn update_keeps_the_labels_and_annotations_of_other_programs() {
        let (client, log) = server(|asked| match asked.line.as_str() {
            DISCOVERY => Answer::Said(200, json!({"resources": [{"name": "foos"}]})),
            _ => Answer::Said(200, definition(&conditions("True", ("True", "")))),
        });
        install(&client, &crd(), Duration::from_secs(30)).await.unwrap();
        let sent: Value = serde_json::from_str(&log.all()[0].text).unwrap();
        assert_eq!(sent["metadata"], json!({"labels": {}, "annotations": {}}), "null removes all");
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_is_away_is_tried_again_until_the_timeout() {
        let requests = AtomicUsize::new(0);
        let (client, _) = server(move |asked| match requests.fetch_add(1, Ordering::Relaxed) {
            0 | 2 => Answer::Lost,
            1 | 3 => refusal(503, "starting"),
            _ if asked.line == DISCOVERY => {
                Answer::Said(200, json!({"resources": [{"name": "foos"}]}))
            }
            _ => Answer::Said(200, definition(&conditions("True", ("True", "")))),
        });
        install(&client, &crd(), Duration::from_secs(30)).await.unwrap();

        let (client, log) = server(|_| Answer::Lost);
        let error = install(&client, &crd(), Duration::from_secs(5)).await.unwrap_err();
        let text = "failed to install the definition foos.example.com: the connection is reset";
        assert_eq!(error.to_string(), text);
        assert_eq!(log.lines().len(), 6, "one request per second");
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_never_answers_is_waited_for_until_the_timeout() {
        let service = tower::service_fn(|_: http::Request<kube_client::client::Body>| {
            std::future::pending::<
                Result<http::Response<http_body_util::Full<bytes::Bytes>>, tower::BoxError>,
            >()
        });
        let client = crate::client::builder().service(service).build();
        let start = Instant::now();
        let error = install(&client, &crd(), Duration::from_secs(5)).await.unwrap_err();
        assert!(start.elapsed() <= Duration::from_millis(5_100), "{:?}", start.elapsed());
        assert_eq!(
            error.to_string(),
            "the definition foos.example.com is not served after 5s: the server does not answer"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn refusal_is_not_waited_for() {
        let (client, log) = server(|_| refusal(403, "forbidden"));
        let error = install(&client, &crd(), Duration::from_secs(5)).await.unwrap_err();
        assert!(matches!(error, CrdError::Refused { .. }), "{error}");
        assert_eq!(log.lines().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn condition_that_is_missing_is_named() {
        let taken = "\"foos\" is already in use";
        let (client, log) =
            server(move |_| Answer::Said(200, definition(&conditions("False", ("False", taken)))));
        let error = install(&client, &crd(), Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the definition foos.example.com is not served after 5s: condition NamesAccepted is \
             False: \"foos\" is already in use"
        );
        assert!(!log.lines().iter().any(|line| line.starts_with("POST")), "it exists");
    }
}
