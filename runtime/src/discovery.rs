//! [`Discovery`]: the resources that an API server serves.
//!
//! An answer is read in two steps. The requests produce [`Group`]s, either from one aggregated
//! answer or from one answer per group and version. The groups then become [`Discovered`], without
//! a request.
//!
//! The first request asks for aggregated discovery (KEP-3352, on by default since Kubernetes 1.27).
//! An aggregated answer has an `ETag`; the next discovery sends it back, and an unchanged server
//! answers 304 without a body.

mod answer;
mod group;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube_client::client::Body;
use kube_client::core::Status;
use kube_client::{Client, Error};
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tower::BoxError;

use self::answer::{AggregatedGroups, CoreVersions, LegacyGroups, LegacyResources};
pub use self::group::{Discovered, ServedResource};
use self::group::{Group, Version};
use crate::client::{describe_chain, describe_error};

/// Aggregated answers, and the plain ones of servers that have no aggregated ones.
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                      application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                      application/json";

/// The number of concurrent requests to a server without aggregated answers.
const CONCURRENT: usize = 8;

/// The limit of an answer: 64 MiB. The answer for 1,000 custom resources takes about 1 MiB.
const MAX_BODY: usize = 64 << 20;

/// Reads the resources that an API server serves, and keeps what did not change.
///
/// It requests aggregated answers: two requests in all. Each carries the `ETag` of the
/// last answer, so that an unchanged answer has no body. From a server without aggregated answers
/// it reads each group and version, 8 at a time.
///
/// A group and version that cannot be read does not hide the others: it is in
/// [`Discovered::failed`].
///
/// # Examples
///
/// ```no_run
/// use homeostat::Discovery;
///
/// # async fn doc(client: homeostat::kube_client::Client)
/// #     -> Result<(), homeostat::DiscoveryError> {
/// let discovery = Discovery::new(client);
/// let discovered = discovery.discover().await?;
/// for served in discovered.preferred().filter(|it| it.supports(&["list", "watch"])) {
///     println!("{} {}", served.resource.version, served.group_resource());
/// }
/// for (group_version, error) in &discovered.failed {
///     eprintln!("{group_version}: {error}");
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "DiscoveryClient")]
#[doc(alias = "ServerPreferredResources")]
pub struct Discovery {
    client: Client,
    /// The last answers. Locked for a discovery, so that two do not overlap.
    last: Mutex<Last>,
}

/// The last answers of the two roots, `/api` and `/apis`.
///
/// An answer with a body replaces its entry, or removes it if it has no tag or cannot be read.
#[derive(Default)]
struct Last {
    roots: [Option<Answered>; 2],
}

/// An aggregated answer with its tag.
///
/// The groups are shared with the results, so that an unchanged server costs one `Arc` per root.
#[derive(Clone)]
struct Answered {
    tag: String,
    groups: Arc<Vec<Group>>,
}

/// The error of a discovery without any result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The server did not answer.
    #[error("failed to discover resources: GET {path}: {}", describe_error(.source))]
    #[non_exhaustive]
    Unreachable {
        /// The path of the request.
        path: String,
        /// The reason.
        #[source]
        source: Box<Error>,
    },
    /// The server refused the request.
    #[error(
        "failed to discover resources: GET {path}: the server answers {status}{}{message}",
        if message.is_empty() { "" } else { ": " }
    )]
    #[non_exhaustive]
    Refused {
        /// The path of the request.
        path: String,
        /// The status code.
        status: StatusCode,
        /// The server's reason; empty if it gives none.
        message: String,
    },
    /// The answer is cut, too long, or not what was requested.
    #[error("failed to discover resources: GET {path}: {}", describe_chain(.source.as_ref()))]
    #[non_exhaustive]
    Malformed {
        /// The path of the request.
        path: String,
        /// The reason.
        #[source]
        source: BoxError,
    },
}

// === impl Discovery ===

impl Discovery {
    /// Returns a discovery that has read nothing yet. It sends no request.
    pub fn new(client: Client) -> Self {
        Self { client, last: Mutex::default() }
    }

    /// Reads the resources that the server serves.
    ///
    /// Two calls at the same time run one after the other; the second finds the tags of the first.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the two roots, `/api` and `/apis`, cannot be read. A group and
    /// version that cannot be read is no error: see [`Discovered::failed`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the running requests. The next call starts again.
    pub async fn discover(&self) -> Result<Discovered, DiscoveryError> {
        let mut last = self.last.lock().await;
        let core = self.root("/api", &mut last.roots[0]).await?;
        let named = self.root("/apis", &mut last.roots[1]).await?;
        drop(last);
        Ok(Discovered::of(core.iter().chain(named.iter())))
    }

    /// Reads the groups below a root.
    ///
    /// A 304 that was not requested by a tag counts as a refusal.
    async fn root(
        &self,
        root: &str,
        last: &mut Option<Answered>,
    ) -> Result<Arc<Vec<Group>>, DiscoveryError> {
        let tag = last.as_ref().map(|answered| answered.tag.clone());
        let response = self.send(root, ACCEPT, tag.as_deref()).await?;
        if response.status() == StatusCode::NOT_MODIFIED
            && let Some(answered) = last
        {
            return Ok(Arc::clone(&answered.groups));
        }
        *last = None;
        let is_aggregated = text(&response, &header::CONTENT_TYPE)
            .is_some_and(|kind| kind.contains("as=APIGroupDiscoveryList"));
        let tag = text(&response, &header::ETAG);
        if !is_aggregated {
            return self.legacy(root, response).await.map(Arc::new);
        }
        let answer: AggregatedGroups = read(root, response).await?;
        let groups = Arc::new(answer.into_groups());
        *last = tag.map(|tag| Answered { tag, groups: Arc::clone(&groups) });
        Ok(groups)
    }

    /// Reads each group and version of a root by a request of its own.
    ///
    /// A version that cannot be read is no error of this function: the reason is in the version.
    async fn legacy(
        &self,
        root: &str,
        response: Response<Body>,
    ) -> Result<Vec<Group>, DiscoveryError> {
        let mut groups = if root == "/api" {
            read::<CoreVersions>(root, response).await?.into_groups()
        } else {
            read::<LegacyGroups>(root, response).await?.into_groups()
        };
        let versions = groups.iter_mut().flat_map(|group| {
            let name = group.name.clone();
            group.versions.iter_mut().map(move |version| (name.clone(), version))
        });
        // Boxed, so that the future of this function is `Send` for every lifetime.
        let requests: Vec<BoxFuture<'_, ()>> =
            versions.map(|(group, version)| self.fill(group, version).boxed()).collect();
        stream::iter(requests).for_each_concurrent(CONCURRENT, |request| request).await;
        Ok(groups)
    }

    /// Reads the resources of one version.
    async fn fill(&self, group: String, version: &mut Version) {
        let path = match group.as_str() {
            "" => format!("/api/{}", version.version),
            group => format!("/apis/{group}/{}", version.version),
        };
        version.resources = self.legacy_version(&path).await.map_err(|it| it.to_string());
    }

    /// # Errors
    ///
    /// If the request fails or the answer is no `APIResourceList`.
    async fn legacy_version(&self, path: &str) -> Result<Vec<ServedResource>, DiscoveryError> {
        let response = self.send(path, "application/json", None).await?;
        let list: LegacyResources = read(path, response).await?;
        // `/api/v1` or `/apis/GROUP/VERSION`.
        let group_version = path.trim_start_matches('/').split_once('/').map_or("", |(_, it)| it);
        Ok(list.into_resources(group_version))
    }

    /// Sends a request. The answer is a success, or says that nothing changed since `tag`.
    async fn send(
        &self,
        path: &str,
        accept: &'static str,
        tag: Option<&str>,
    ) -> Result<Response<Body>, DiscoveryError> {
        let unreachable = |source| DiscoveryError::Unreachable {
            path: path.to_owned(),
            source: Box::new(source),
        };
        let mut request = Request::get(path).header(header::ACCEPT, accept);
        if let Some(tag) = tag {
            request = request.header(header::IF_NONE_MATCH, tag);
        }
        let request =
            request.body(Body::empty()).map_err(|it| unreachable(Error::HttpError(it)))?;
        let response = self.client.send(request).await.map_err(unreachable)?;
        let status = response.status();
        if status.is_success() || (status == StatusCode::NOT_MODIFIED && tag.is_some()) {
            return Ok(response);
        }
        let refusal = read::<Status>(path, response).await;
        let message = refusal.map(|refusal| refusal.message).unwrap_or_default();
        Err(DiscoveryError::Refused { path: path.to_owned(), status, message })
    }
}

impl fmt::Debug for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery").finish_non_exhaustive()
    }
}

/// Returns the text of a header.
fn text(response: &Response<Body>, name: &header::HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// Reads the body of an answer.
///
/// # Errors
///
/// `Malformed` if the body is longer than 64 MiB, is cut off, or is not the expected JSON.
async fn read<T: DeserializeOwned>(
    path: &str,
    response: Response<Body>,
) -> Result<T, DiscoveryError> {
    let malformed = |source| DiscoveryError::Malformed { path: path.to_owned(), source };
    let body = Limited::new(response.into_body(), MAX_BODY).collect().await.map_err(malformed)?;
    serde_json::from_slice(&body.to_bytes()).map_err(|error| malformed(error.into()))
}
