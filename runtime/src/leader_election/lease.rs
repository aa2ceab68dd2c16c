//! Reads and writes one `Lease` of `coordination.k8s.io/v1`.
//!
//! Every request has a timeout. Without one, a server that accepts a connection and never answers
//! would keep a candidate from its next attempt.
//!
//! Reads go to the server, never to a cache: a candidate that decides on an old lease would compete
//! for one that is held. A replacement names the `resourceVersion` that was read, so that one of
//! two candidates gets a conflict.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube_client::api::PostParams;
use kube_client::{Api, Client, Error};

use super::state::{Record, Stored, Written};
use crate::client::describe_error;
use crate::events::reference;

/// The lease that candidates compete for (client-go's `resourcelock.LeaseLock`).
///
/// One task owns it. A clone has its own copy of the last object.
#[derive(Clone)]
pub(super) struct LeaseLock {
    /// The client of the election alone, without a fence.
    api: Api<Lease>,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The longest that one request may take.
    timeout: Duration,
    /// The object as last read or written: its labels, annotations and other members stay as they
    /// are.
    ///
    /// It comes from the server only; a write that failed does not change it.
    last: Option<Lease>,
}

/// A request about the lease failed.
///
/// The candidate treats all of them alike: the outcome is unknown, and it tries again later.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum LeaseError {
    /// The server refused the request, or the connection failed.
    #[error("{}", describe_error(.0))]
    Request(#[from] Error),
    /// The request was dropped after this time. The server may have carried it out.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
}

// === impl LeaseLock ===

impl LeaseLock {
    /// Sends no request.
    pub(super) fn new(client: Client, namespace: &str, name: &str, timeout: Duration) -> Self {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Self { api: Api::namespaced(client, &namespace), namespace, name, timeout, last: None }
    }

    /// Returns the reference to the lease as it was last read or written.
    pub(super) fn reference(&self) -> ObjectReference {
        let unread = || {
            let (namespace, name) = (Some(self.namespace.clone()), Some(self.name.clone()));
            let metadata = ObjectMeta { namespace, name, ..ObjectMeta::default() };
            Lease { metadata, ..Lease::default() }
        };
        reference(&self.last.clone().unwrap_or_else(unread))
    }

    /// Returns the lease, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the server refuses the read or does not answer in time. A missing lease is no
    /// error.
    pub(super) async fn read(&mut self) -> Result<Option<Stored>, LeaseError> {
        let lease = self.within(self.api.get_opt(&self.name)).await?;
        let stored = lease.as_ref().map(stored);
        self.last = lease;
        Ok(stored)
    }

    /// Creates the lease. If another candidate was faster, the outcome is a conflict.
    ///
    /// # Errors
    ///
    /// Fails if the outcome is unknown, or the server refuses the write for another reason than a
    /// conflict.
    pub(super) async fn create(&mut self, record: &Record) -> Result<Written, LeaseError> {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            ..ObjectMeta::default()
        };
        let lease = Lease { metadata, spec: Some(spec(record, None)) };
        let params = PostParams::default();
        let answer = self.within(self.api.create(&params, &lease)).await;
        // 404 is an error here: the namespace does not exist.
        self.outcome(answer, &[409])
    }

    /// Replaces the lease that has `version`.
    ///
    /// Labels, annotations and unknown members of the spec stay as they were read.
    ///
    /// # Errors
    ///
    /// Fails if the outcome is unknown, or the server refuses the write for another reason than a
    /// conflict.
    pub(super) async fn replace(
        &mut self,
        record: &Record,
        version: &str,
    ) -> Result<Written, LeaseError> {
        let mut lease = self.last.clone().unwrap_or_default();
        lease.metadata.name = Some(self.name.clone());
        lease.metadata.namespace = Some(self.namespace.clone());
        lease.metadata.resource_version = Some(version.to_owned());
        lease.metadata.managed_fields = None;
        lease.spec = Some(spec(record, lease.spec.take()));
        let params = PostParams::default();
        let answer = self.within(self.api.replace(&self.name, &params, &lease)).await;
        // 404: the lease was deleted. 409: another party has written it.
        self.outcome(answer, &[404, 409])
    }

    /// Turns an answer into an outcome. The codes `changed` mean that the lease is not as it was
    /// read.
    ///
    /// The object of a successful answer is kept for the next replacement.
    fn outcome(
        &mut self,
        answer: Result<Lease, LeaseError>,
        changed: &[u16],
    ) -> Result<Written, LeaseError> {
        match answer {
            Ok(lease) => {
                let version = lease.metadata.resource_version.clone().unwrap_or_default();
                self.last = Some(lease);
                Ok(Written::Stored(version))
            }
            Err(LeaseError::Request(Error::Api(status))) if changed.contains(&status.code) => {
                Ok(Written::Conflict)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends `request` with the timeout of the lock.
    ///
    /// Dropping the request at the timeout does not undo it: the server may still carry it out. The
    /// candidate remembers each record that it tried to write for that reason.
    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, LeaseError> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(LeaseError::TimedOut(self.timeout)),
        }
    }
}

/// Returns the members of `lease` that the election reads. Missing ones are empty or zero.
///
/// A lease that another program has written may lack any member.
fn stored(lease: &Lease) -> Stored {
    let spec = lease.spec.clone().unwrap_or_default();
    let record = Record {
        holder: spec.holder_identity.unwrap_or_default(),
        lease_seconds: spec.lease_duration_seconds.unwrap_or_default(),
        acquired: spec.acquire_time.map(|MicroTime(time)| time),
        renewed: spec.renew_time.map(|MicroTime(time)| time),
        transitions: spec.lease_transitions.unwrap_or_default(),
    };
    Stored { record, version: lease.metadata.resource_version.clone().unwrap_or_default() }
}

/// Returns `old` with the members of `record`; the others stay.
///
/// The other members are those of coordinated leader election, such as `strategy`.
fn spec(record: &Record, old: Option<LeaseSpec>) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(record.holder.clone()),
        lease_duration_seconds: Some(record.lease_seconds),
        acquire_time: record.acquired.map(MicroTime),
        renew_time: record.renewed.map(MicroTime),
        lease_transitions: Some(record.transitions),
        ..old.unwrap_or_default()
    }
}

impl fmt::Debug for LeaseLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseLock")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Cuts `time` to what a `MicroTime` keeps, so that a record compares equal after its way through
/// the server.
///
/// The server stores microseconds; a record with nanoseconds would differ from the stored one.
pub(super) fn micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use kube_client::core::Status;

    use super::*;
    use crate::scripted_server::{refusal, server};

    #[tokio::test(start_paused = true)]
    async fn missing_namespace_is_an_error_and_a_missing_lease_a_change() {
        let (client, _) = server(|asked| match asked.line.as_str() {
            "GET /apis/coordination.k8s.io/v1/namespaces/typo/leases/a" => refusal(404, "none"),
            "PUT /apis/coordination.k8s.io/v1/namespaces/typo/leases/a" => refusal(404, "gone"),
            _ => refusal(404, "namespaces \"typo\" not found"),
        });
        let mut lock = LeaseLock::new(client, "typo", "a", Duration::from_secs(5));
        assert_eq!(lock.read().await.unwrap(), None);
        let error = lock.create(&Record::default()).await.unwrap_err().to_string();
        assert_eq!(error, "namespaces \"typo\" not found (404 NotFound)");
        let replaced = lock.replace(&Record::default(), "1").await.unwrap();
        assert_eq!(replaced, Written::Conflict);
    }

    #[test]
    fn refused_request_is_reported_with_the_servers_own_text() {
        let status = Status::failure("leases \"a\" is forbidden: no", "Forbidden");
        let error = LeaseError::from(Error::Api(status.with_code(403).boxed()));
        assert_eq!(error.to_string(), "leases \"a\" is forbidden: no (403 Forbidden)");
    }
}
