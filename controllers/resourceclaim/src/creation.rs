//! The creation of a claim from its template.

use std::fmt::Display;
use std::sync::Arc;

use homeostat::outcome::{is_namespace_terminating, message};
use homeostat::owner::owner_reference;
use homeostat::{Object as _, kube_client};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::claim::is_for_entry;
use crate::error::Error;
use crate::names::claim_name;
use crate::pod::{Pod, PodClaim};
use crate::reconciler::ClaimController;
use crate::template::{Template, TemplateError};

/// The number of names that are tried for one claim. Another object can have a name only if a
/// client chose it on purpose.
const SALTS: u32 = 16;

impl ClaimController {
    /// Creates the claim for an entry, and returns its name.
    ///
    /// A create that an earlier pass sent and whose reply was lost is found by its name.
    pub(crate) async fn create_claim(&self, pod: &Pod, entry: &PodClaim) -> Result<String, Error> {
        let template_name = entry.resource_claim_template_name.as_deref().unwrap_or_default();
        let template = self.template(pod, template_name)?;
        let admin_access = template.check(&self.gates).map_err(|error| match error {
            TemplateError::Json(error) => invalid(template_name, &error),
            gate => Error::retry(gate.to_string()),
        })?;
        let Some(reference) = owner_reference(pod) else {
            return Err(Error::terminal("the pod has no name or no UID"));
        };
        let owner = OwnerReference { controller: Some(true), ..reference };
        for salt in 0..SALTS {
            let name = claim_name(pod.name(), pod.uid(), &entry.name, salt);
            let body = template.claim(&name, &entry.name, &owner);
            let body = body.map_err(|error| invalid(template_name, &error))?;
            let error = match self.requests.create_claim(pod.namespace(), body).await {
                Ok(claim) => {
                    self.creates.count(true, admin_access);
                    tracing::debug!(claim = name, pod = %pod.key(), "Created ResourceClaim");
                    claim.map(|claim| self.caches.written(claim));
                    return Ok(name);
                }
                Err(error) => error,
            };
            if !is_already_exists(&error) {
                self.creates.count(false, admin_access);
                return Err(create_failed(&error));
            }
            if self.is_own(pod, entry, &name, &error).await? {
                return Ok(name);
            }
            tracing::warn!(pod = %pod.key(), claim = name, "another object has the name");
        }
        Err(Error::retry(format!("create ResourceClaim : other objects have all {SALTS} names")))
    }

    fn template(&self, pod: &Pod, name: &str) -> Result<Arc<Template>, Error> {
        let key = (pod.namespace(), name);
        let templates = &self.caches.templates;
        templates.get(key).ok_or_else(|| {
            if templates.opaque(key).is_some() {
                return invalid(name, &"it does not decode");
            }
            let error = format!("resourceclaimtemplate.resource.k8s.io {name:?} not found");
            invalid(name, &error)
        })
    }

    /// Returns true if the object that has the name is the claim of this entry: the reply to its
    /// create was lost. `error` is the answer to the repeated create.
    async fn is_own(
        &self,
        pod: &Pod,
        entry: &PodClaim,
        name: &str,
        error: &kube_client::Error,
    ) -> Result<bool, Error> {
        match self.requests.live_claim(pod.namespace(), name).await {
            Ok(Some(live)) => {
                let is_own = is_for_entry(&live.metadata, pod.uid(), &entry.name);
                if is_own {
                    self.caches.written(live);
                }
                Ok(is_own)
            }
            Ok(None) => Err(create_failed(error)), // It was deleted since. The retry creates it.
            Err(error) => Err(create_failed(&error)),
        }
    }
}

fn invalid(template: &str, error: &dyn Display) -> Error {
    Error::retry(format!("resource claim template {template:?}: {error}"))
}

/// Returns the error with upstream's text. The name is empty there, because the server generates
/// it.
fn create_failed(error: &kube_client::Error) -> Error {
    let text = format!("create ResourceClaim : {}", message(error));
    if is_namespace_terminating(error) { Error::terminal(text) } else { Error::retry(text) }
}

fn is_already_exists(error: &kube_client::Error) -> bool {
    let kube_client::Error::Api(status) = error else { return false };
    status.code == 409 && status.reason == "AlreadyExists"
}
