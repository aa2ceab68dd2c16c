//! [`Finalizer`]: keeps an object until the controller has cleaned up after it.

use homeostat_informer::{Object, ObjectMeta};
use kube_client::api::Patch;
use kube_client::{Client, Error, Resource};
use serde_json::json;

use crate::live::Live;
use crate::outcome::has_code;

/// The number of times that a change is tried against a newer version of the object.
const TRIES: usize = 5;

/// A finalizer: the server keeps an object with it after a deletion, until a controller has cleaned
/// up and removes it.
///
/// 1. An object without it that is not being deleted: [`add`](Self::add), then act.
/// 2. An object that is being deleted: clean up, then [`remove`](Self::remove). Cleaning up must be
///    repeatable: the process may end between the two.
///
/// Changes carry the object's `resourceVersion`, so that no finalizer of another controller is
/// lost. After a conflict the live object is read and the change is tried again, up to five times
/// in all.
///
/// If the controller's cache is limited to a label, an object that loses the label is reported as
/// deleted: it is not, and its finalizer is still there. Read the live object before it is
/// forgotten.
///
/// # Examples
///
/// ```no_run
/// use homeostat::kube_client::{Client, Error};
/// use homeostat::{Action, Finalizer};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// # async fn remove_bucket(_: &ConfigMap) -> Result<(), Error> { Ok(()) }
/// async fn pass(client: &Client, map: &ConfigMap) -> Result<Action, Error> {
///     let cleanup = Finalizer::new("example.com/bucket");
///     if map.metadata.deletion_timestamp.is_some() {
///         if cleanup.is_on(map) {
///             remove_bucket(map).await?;
///             cleanup.remove(client, map).await?;
///         }
///         return Ok(Action::AwaitChange);
///     }
///     cleanup.add(client, map).await?;
///     // The bucket may be created from here on.
///     Ok(Action::AwaitChange)
/// }
/// ```
#[doc(alias = "AddFinalizer")]
#[doc(alias = "controllerutil")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finalizer {
    name: String,
}

// === impl Finalizer ===

impl Finalizer {
    /// Returns the finalizer of this name, which must be qualified: `example.com/bucket`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Returns true if `object` has the finalizer.
    #[doc(alias = "ContainsFinalizer")]
    pub fn is_on<K: Object>(&self, object: &K) -> bool {
        object.metadata().finalizers.iter().flatten().any(|name| *name == self.name)
    }

    /// Adds the finalizer to the object at the server. Returns the new metadata, or `None` if there
    /// was nothing to change: the object has the finalizer, is being deleted, or is gone.
    ///
    /// # Errors
    ///
    /// Returns the server's error, and its last conflict after five of them.
    ///
    /// # Cancel safety
    ///
    /// The server may carry out a request that was sent. Calling it again is safe.
    pub async fn add<K: Object>(
        &self,
        client: &Client,
        object: &K,
    ) -> Result<Option<ObjectMeta>, Error>
    where
        K::Kind: Resource<DynamicType = ()>,
    {
        self.change::<K>(client, object, |metadata, mut finalizers| {
            // The server accepts no new finalizer on an object that is being deleted.
            if metadata.deletion_timestamp.is_some() || finalizers.contains(&self.name) {
                return None;
            }
            finalizers.push(self.name.clone());
            Some(finalizers)
        })
        .await
    }

    /// Removes the finalizer from the object at the server. Returns the new metadata, or `None` if
    /// there was nothing to change: the object does not have the finalizer, or is gone.
    ///
    /// # Errors
    ///
    /// Returns the server's error, and its last conflict after five of them.
    ///
    /// # Cancel safety
    ///
    /// The server may carry out a request that was sent. Calling it again is safe.
    pub async fn remove<K: Object>(
        &self,
        client: &Client,
        object: &K,
    ) -> Result<Option<ObjectMeta>, Error>
    where
        K::Kind: Resource<DynamicType = ()>,
    {
        self.change::<K>(client, object, |_, mut finalizers| {
            let before = finalizers.len();
            finalizers.retain(|name| *name != self.name);
            (finalizers.len() < before).then_some(finalizers)
        })
        .await
    }

    /// Writes the finalizers that `change` returns for the cached object, and after a conflict for
    /// the live one. An object without a version is read first: the change would have no
    /// precondition.
    async fn change<K: Object>(
        &self,
        client: &Client,
        object: &K,
        change: impl Fn(&ObjectMeta, Vec<String>) -> Option<Vec<String>>,
    ) -> Result<Option<ObjectMeta>, Error>
    where
        K::Kind: Resource<DynamicType = ()>,
    {
        let mut metadata = object.metadata().clone();
        let live = Live::beside::<K::Kind>(client, &metadata);
        let name = metadata.name.clone().unwrap_or_default();
        let uid = metadata.uid.clone();
        let mut is_current = metadata.resource_version.is_some();
        let mut tries = 1;
        loop {
            if !is_current {
                match live.metadata(&name).await {
                    Ok(current) if uid.is_none() || current.uid == uid => metadata = current,
                    // Another object has the name now.
                    Ok(_) => return Ok(None),
                    Err(error) if has_code(&error, 404) => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
            let finalizers = metadata.finalizers.clone().unwrap_or_default();
            let Some(finalizers) = change(&metadata, finalizers) else { return Ok(None) };
            let version = &metadata.resource_version;
            let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
            match live.patch(&name, &Patch::Merge(patch)).await {
                Ok(changed) => return Ok(Some(changed)),
                Err(error) if has_code(&error, 404) => return Ok(None),
                Err(error) if has_code(&error, 409) && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
            is_current = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::Value;

    use super::*;
    use crate::scripted_server::{Answer, refusal, server};

    const PATCH: &str = "PATCH /api/v1/namespaces/shop/configmaps/a";
    const GET: &str = "GET /api/v1/namespaces/shop/configmaps/a";

    fn map(version: &str, finalizers: &[&str]) -> Value {
        json!({"metadata": {"namespace": "shop", "name": "a", "uid": "u",
            "resourceVersion": version, "finalizers": finalizers}})
    }

    fn object(value: Value) -> ConfigMap {
        serde_json::from_value(value).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn finalizer_of_another_controller_survives_a_conflict() {
        let patches = AtomicUsize::new(0);
        let (client, log) = server(move |asked| match asked.line.as_str() {
            GET => Answer::Said(200, map("2", &["theirs"])),
            _ if patches.fetch_add(1, Ordering::Relaxed) == 0 => refusal(409, "modified"),
            _ => Answer::Said(200, map("3", &["theirs", "ours"])),
        });
        let cached = object(map("1", &[]));
        let added = Finalizer::new("ours").add(&client, &cached).await.unwrap().unwrap();
        assert_eq!(added.resource_version.as_deref(), Some("3"));
        assert_eq!(log.lines(), [PATCH, GET, PATCH]);
        let sent = r#"{"metadata":{"finalizers":["theirs","ours"],"resourceVersion":"2"}}"#;
        assert_eq!(log.all()[2].text, sent);
    }

    #[tokio::test(start_paused = true)]
    async fn object_without_a_version_is_read_before_it_is_changed() {
        let (client, log) = server(|asked| match asked.line.as_str() {
            GET => Answer::Said(200, map("2", &["theirs"])),
            _ => Answer::Said(200, map("3", &["theirs", "ours"])),
        });
        let made = object(json!({"metadata": {"namespace": "shop", "name": "a"}}));
        Finalizer::new("ours").add(&client, &made).await.unwrap();
        assert_eq!(log.lines(), [GET, PATCH]);
        let sent = r#"{"metadata":{"finalizers":["theirs","ours"],"resourceVersion":"2"}}"#;
        assert_eq!(log.all()[1].text, sent);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_sent_if_there_is_nothing_to_change() {
        let (client, log) = server(|asked| panic!("{asked:?}"));
        let ours = Finalizer::new("ours");
        let has_it = object(map("1", &["ours"]));
        assert!(ours.is_on(&has_it));
        assert_eq!(ours.add(&client, &has_it).await.unwrap(), None);
        assert_eq!(ours.remove(&client, &object(map("1", &["theirs"]))).await.unwrap(), None);
        let mut leaving = map("1", &[]);
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(ours.add(&client, &object(leaving)).await.unwrap(), None);
        assert!(log.lines().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn removal_leaves_another_object_of_the_name_alone() {
        let (client, log) = server(|asked| match asked.line.as_str() {
            GET => {
                let mut newer = map("2", &["ours"]);
                newer["metadata"]["uid"] = json!("newer");
                Answer::Said(200, newer)
            }
            _ => refusal(409, "modified"),
        });
        let removed = Finalizer::new("ours").remove(&client, &object(map("1", &["ours"]))).await;
        assert_eq!(removed.unwrap(), None);
        assert_eq!(log.lines(), [PATCH, GET]);
    }

    #[tokio::test(start_paused = true)]
    async fn endless_conflicts_end_with_an_error() {
        let (client, log) = server(|asked| match asked.line.as_str() {
            GET => Answer::Said(200, map("2", &[])),
            _ => refusal(409, "modified"),
        });
        let added = Finalizer::new("ours").add(&client, &object(map("1", &[]))).await;
        assert!(has_code(&added.unwrap_err(), 409));
        assert_eq!(log.lines().iter().filter(|line| *line == PATCH).count(), TRIES);
    }
}
