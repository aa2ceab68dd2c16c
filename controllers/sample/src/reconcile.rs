//! [`FooReconciler`]: one pass over one Foo.

use std::sync::Arc;

use homeostat::{Action, EventRecorder, Lister, Reconciler, Request, TerminalError};
use k8s_openapi::api::apps::v1::Deployment;
use tower::BoxError;

use crate::error::SyncError;
use crate::foo::Foo;
use crate::plan::{Plan, plan};
use crate::reported::Reported;
use crate::requests::Requests;

/// The largest number of writes of one pass: create, scale, status. A webhook that undoes each
/// write ends the pass, and causes no loop.
const WRITES: usize = 3;

/// The author's part of the controller: reads the caches, plans, and writes.
pub(crate) struct FooReconciler {
    pub(crate) foos: Lister<Foo>,
    pub(crate) deployments: Lister<Deployment>,
    pub(crate) requests: Requests,
    pub(crate) events: EventRecorder,
    pub(crate) reported: Reported,
}

// === impl FooReconciler ===

impl Reconciler<Foo> for FooReconciler {
    type Error = BoxError;

    async fn reconcile(&self, request: &Request<Foo>) -> Result<Action, BoxError> {
        let Some(foo) = self.foos.get(request.key()) else {
            self.reported.forget(request.key());
            return Ok(Action::AwaitChange);
        };
        if self.reported.is_refused(&foo) {
            return Ok(Action::AwaitChange);
        }
        match self.sync(&foo).await {
            Ok(has_written) => {
                self.reported.forget(request.key());
                if has_written {
                    self.events.normal(&foo, "Synced", "Foo synced successfully");
                }
                Ok(Action::AwaitChange)
            }
            Err(error) if error.is_terminal() => self.report(&foo, error),
            Err(error) => Err(error.into()),
        }
    }
}

impl FooReconciler {
    /// Takes the steps that `foo` needs. Each step plans again with the server's last answer.
    /// Returns true if something was written.
    async fn sync(&self, foo: &Foo) -> Result<bool, SyncError> {
        let mut deployment = self.cached_deployment(foo)?;
        for written in 0..WRITES {
            let next = match plan(foo, deployment.as_deref()) {
                Plan::Nothing | Plan::Settled(None) => return Ok(written > 0),
                Plan::Unnamed => return Err(SyncError::Unnamed),
                Plan::Taken => return Err(SyncError::Taken(foo.spec.deployment_name.clone())),
                Plan::Create(new) => self.requests.create(&new).await?,
                Plan::Scale(scale) => self.requests.scale(&scale).await?,
                Plan::Settled(Some(status)) => {
                    let written = self.requests.write_status(foo, &status).await;
                    return written.map(|_| true).map_err(SyncError::of_status);
                }
            };
            deployment = Some(Arc::new(next));
        }
        Ok(true)
    }

    /// Returns the Deployment that `foo` names, if the cache has it.
    fn cached_deployment(&self, foo: &Foo) -> Result<Option<Arc<Deployment>>, SyncError> {
        let namespace = foo.metadata.namespace.as_deref().unwrap_or_default();
        let name = foo.spec.deployment_name.as_str();
        if self.deployments.opaque((namespace, name)).is_some() {
            return Err(SyncError::Undecodable(name.to_owned()));
        }
        Ok(self.deployments.get((namespace, name)))
    }

    /// Returns `error` as one that is not retried, or nothing if it has been reported.
    fn report(&self, foo: &Arc<Foo>, error: SyncError) -> Result<Action, BoxError> {
        if !self.reported.is_new(foo, &error) {
            return Ok(Action::AwaitChange);
        }
        if let SyncError::Taken(_) = &error {
            self.events.warning(foo, "ErrResourceExists", error.to_string());
        }
        Err(TerminalError::new(error).into())
    }
}

#[cfg(test)]
mod tests;
