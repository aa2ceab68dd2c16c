//! [`RefManager`]: adopts and releases objects at the server.
//!
//! For each object the pure [`ControllerRefs`] decide, and the manager carries the decision out:
//!
//! | Object | Selector matches | Step |
//! |---|---|---|
//! | controlled by this owner | yes | keep |
//! | controlled by this owner | no | release |
//! | controlled by another owner | | ignore |
//! | no controller | yes | adopt, unless the object or the live owner is being deleted |
//! | no controller | no | ignore |
//!
//! The texts of errors are those of `controller_ref_manager.go`.

use std::sync::Arc;

use homeostat_informer::{Object, ObjectMeta};
use kube_client::api::Patch;
use kube_client::{Client, Error, Resource};

use crate::live::Live;
use crate::outcome::{has_code, message};

use super::{Claim, ControllerRefs, OwnerPatch};

/// Claims objects for one owner: adopts the orphans that its selector matches, and releases its
/// objects that the selector no longer matches.
///
/// The live owner is read before the first adoption of a pass: the cache may be late, and the
/// garbage collector would delete what a deleted owner adopts. Patches carry the object's UID, so
/// that they change no other object of its name. An object that is gone by then is not counted and
/// no error.
///
/// Make a new one for each reconcile. Use [`ControllerRefs`] alone if the program sends the patches
/// itself.
///
/// It costs no request if all objects belong to the owner already; otherwise one read of the owner
/// per pass and one patch per object.
///
/// # Examples
///
/// ```no_run
/// use std::sync::Arc;
///
/// use homeostat::kube_client::Client;
/// use homeostat::owner::{ClaimErrors, RefManager};
/// use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
///
/// async fn claim(
///     client: &Client,
///     set: &ReplicaSet,
///     pods: Vec<Arc<Pod>>,
/// ) -> Result<Vec<Arc<Pod>>, ClaimErrors> {
///     let Some(mut refs) = RefManager::new(client, set) else { return Ok(Vec::new()) };
///     let wanted = set.spec.selector.match_labels.as_ref();
///     let matches = |pod: &Pod| match (wanted, &pod.metadata.labels) {
///         (Some(wanted), Some(labels)) => wanted.iter().all(|it| labels.get(it.0) == Some(it.1)),
///         _ => false,
///     };
///     refs.claim(pods, matches).await
/// }
/// ```
#[doc(alias = "PodControllerRefManager")]
pub struct RefManager<'a> {
    client: &'a Client,
    refs: ControllerRefs,
    owner: &'a ObjectMeta,
    /// Returns the requests for the owner, which most passes do not need.
    live_owner: fn(&'a Client, &ObjectMeta) -> Live<'a>,
    /// The permission of the live owner to adopt. It is read at most once, and only if there is an
    /// object to adopt.
    may_adopt: Option<Result<(), String>>,
    patched: Box<dyn FnMut(&ObjectMeta) + Send + Sync + 'a>,
}

/// The error of one object that could not be adopted or released.
///
/// The objects of the other candidates were still processed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The live owner must not adopt: it is deleted, being deleted, or could not be read.
    #[error("can't adopt {kind} {object} ({uid}): {why}")]
    #[non_exhaustive]
    Adopt {
        /// The object's kind.
        kind: String,
        /// Namespace and name.
        object: String,
        /// The object's UID.
        uid: String,
        /// The reason.
        why: String,
    },
    /// The server refused the patch.
    #[error("failed to patch the owner of {kind} {object} ({uid}): {why}")]
    #[non_exhaustive]
    Patch {
        /// The object's kind.
        kind: String,
        /// Namespace and name.
        object: String,
        /// The object's UID.
        uid: String,
        /// The server's message.
        why: String,
    },
}

/// The errors of all objects of a [claim](RefManager::claim). The number of objects is unknown, and
/// the pass must not create or delete any.
///
/// Return it from the reconciler: the key is then retried with back-off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimErrors(pub Vec<ClaimError>);

// === impl RefManager ===

impl<'a> RefManager<'a> {
    /// Returns the manager of the objects of `owner`, or `None` if it has no name or no UID.
    pub fn new<K: Object>(client: &'a Client, owner: &'a K) -> Option<Self>
    where
        K::Kind: Resource<DynamicType = ()>,
    {
        Some(Self {
            client,
            refs: ControllerRefs::new(owner)?,
            owner: owner.metadata(),
            live_owner: Live::beside::<K::Kind>,
            may_adopt: None,
            patched: Box::new(|_| {}),
        })
    }

    /// Adds a finalizer to each object that is adopted, and removes it from each that is released,
    /// in the same patch.
    ///
    /// Use it for a finalizer that holds an object until its owner has seen the end of it, as the
    /// Job controller's `batch.kubernetes.io/job-tracking` does for pods.
    #[must_use]
    pub fn finalizer(mut self, name: impl Into<String>) -> Self {
        self.refs = self.refs.with_finalizer(name);
        self
    }

    /// Calls `patched` with the metadata of each object that was patched, as the server returns it:
    /// for read-your-writes.
    #[must_use]
    pub fn on_patched(mut self, patched: impl FnMut(&ObjectMeta) + Send + Sync + 'a) -> Self {
        self.patched = Box::new(patched);
        self
    }

    /// Adopts and releases objects of `candidates`, one after the other. Returns the objects that
    /// belong to the owner.
    ///
    /// `matches` is the owner's selector. It is called only if the decision depends on it.
    ///
    /// # Errors
    ///
    /// Returns the errors of all objects.
    ///
    /// # Cancel safety
    ///
    /// The server may carry out a patch that was sent. Claiming again is safe.
    pub async fn claim<P: Object>(
        &mut self,
        candidates: Vec<Arc<P>>,
        matches: impl Fn(&P) -> bool,
    ) -> Result<Vec<Arc<P>>, ClaimErrors>
    where
        P::Kind: Resource<DynamicType = ()>,
    {
        let mut claimed = Vec::with_capacity(candidates.len());
        let mut errors = Vec::new();
        for object in candidates {
            let metadata = object.metadata();
            let is_owned = match self.refs.claim(metadata, |_| matches(&object)) {
                Claim::Owned => Ok(true),
                Claim::Ignore => Ok(false),
                Claim::Adopt => self.adopt::<P::Kind>(metadata).await,
                Claim::Release => self.release::<P::Kind>(metadata).await,
            };
            match is_owned {
                Ok(true) => claimed.push(object),
                Ok(false) => {}
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(claimed) } else { Err(ClaimErrors(errors)) }
    }

    /// Adopts one object. Returns false if it is gone.
    ///
    /// The permission is read once per manager, also if the answer was an error.
    async fn adopt<Kind: Resource<DynamicType = ()>>(
        &mut self,
        object: &ObjectMeta,
    ) -> Result<bool, ClaimError> {
        if self.may_adopt.is_none() {
            self.may_adopt = Some(self.may_adopt().await);
        }
        if let Some(Err(why)) = &self.may_adopt {
            let (kind, object, uid) = described::<Kind>(object);
            return Err(ClaimError::Adopt { kind, object, uid, why: why.clone() });
        }
        let patch = self.refs.adopt(object);
        match self.send::<Kind>(object, patch, "adopted the object").await {
            Ok(()) => Ok(true),
            Err(error) if has_code(&error, 404) => Ok(false),
            Err(error) => Err(patch_error::<Kind>(object, &error)),
        }
    }

    /// Releases one object. Returns false: it no longer belongs to the owner.
    ///
    /// 422 means that the object of this name has another uid, or that it no longer has the
    /// reference.
    async fn release<Kind: Resource<DynamicType = ()>>(
        &mut self,
        object: &ObjectMeta,
    ) -> Result<bool, ClaimError> {
        let patch = self.refs.release(object);
        match self.send::<Kind>(object, patch, "released the object").await {
            Ok(()) => Ok(false),
            // It is gone, another object has its name, or it was released before.
            Err(error) if has_code(&error, 404) || has_code(&error, 422) => Ok(false),
            Err(error) => Err(patch_error::<Kind>(object, &error)),
        }
    }

    /// Sends a strategic merge patch with the object's uid, and passes the answer to `on_patched`.
    /// `effect` is the line of the log.
    async fn send<Kind: Resource<DynamicType = ()>>(
        &mut self,
        object: &ObjectMeta,
        patch: OwnerPatch,
        effect: &'static str,
    ) -> Result<(), Error> {
        let name = object.name.as_deref().unwrap_or_default();
        let live = Live::beside::<Kind>(self.client, object);
        let patched = live.patch(name, &Patch::Strategic(patch)).await?;
        (self.patched)(&patched);
        let (kind, object, _) = described::<Kind>(object);
        let owner = self.owner.name.as_deref().unwrap_or_default();
        tracing::info!(kind, object, owner, "{effect}");
        Ok(())
    }

    /// Reads the live owner.
    ///
    /// # Errors
    ///
    /// The text for [`ClaimError::Adopt`]: the owner could not be read, has another uid, or is
    /// being deleted.
    async fn may_adopt(&self) -> Result<(), String> {
        let name = self.owner.name.as_deref().unwrap_or_default();
        let full_name = full_name(self.owner);
        let live_owner = (self.live_owner)(self.client, self.owner);
        let live = match live_owner.metadata(name).await {
            Ok(live) => live,
            Err(error) => {
                return Err(format!("can't recheck DeletionTimestamp: {}", message(&error)));
            }
        };
        if live.uid != self.owner.uid {
            let [got, wanted] = [&live.uid, &self.owner.uid].map(|it| it.as_deref().unwrap_or(""));
            return Err(format!(
                "can't recheck DeletionTimestamp: original {} {full_name} is gone: got uid {got}, \
                 wanted {wanted}",
                self.refs.reference().kind
            ));
        }
        match live.deletion_timestamp {
            Some(at) => Err(format!("{full_name} has just been deleted at {}", at.0)),
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for RefManager<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RefManager").field("refs", &self.refs).finish_non_exhaustive()
    }
}

// === impl ClaimErrors ===

impl std::fmt::Display for ClaimErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // As Kubernetes prints an aggregate: one error alone, several in brackets.
        match self.0.as_slice() {
            [error] => error.fmt(f),
            errors => {
                let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", texts.join(", "))
            }
        }
    }
}

impl std::error::Error for ClaimErrors {}

/// Returns the error with the server's message.
fn patch_error<Kind: Resource<DynamicType = ()>>(object: &ObjectMeta, error: &Error) -> ClaimError {
    let (kind, object, uid) = described::<Kind>(object);
    ClaimError::Patch { kind, object, uid, why: message(error) }
}

/// Returns the kind, the full name and the UID of an object for an error.
fn described<Kind: Resource<DynamicType = ()>>(object: &ObjectMeta) -> (String, String, String) {
    let uid = object.uid.clone().unwrap_or_default();
    (Kind::kind(&()).into_owned(), full_name(object), uid)
}

/// Returns `NAMESPACE/NAME`, or the name of an object without a namespace.
fn full_name(object: &ObjectMeta) -> String {
    let name = object.name.as_deref().unwrap_or_default();
    match object.namespace.as_deref() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
