//! The owners of an object's replicas as owners of the fields of its scale, and back: upstream's
//! `ScaleHandler`.

use super::{ManagedFields, Manager, Operation, Owned};
use crate::field_set::{FieldSet, PathElement};

/// The version of every scale.
const API_VERSION: &str = "autoscaling/v1";

// === impl ManagedFields ===

impl ManagedFields {
    /// Returns the owners of the scale of an object. `replicas` returns the path of the replicas in
    /// a version of the object; `None` if that has no scale.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_schema::{ManagedFields, PathElement};
    /// use serde_json::json;
    ///
    /// let path = |_version: &str| Some(["spec", "replicas"].map(PathElement::field).to_vec());
    /// let owners = ManagedFields::decode(&json!([{
    ///     "manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1",
    ///     "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:paused": {}, "f:replicas": {}}},
    /// }]))?;
    /// let scale = owners.of_scale(&path);
    /// let (_, owned) = scale.iter().next().unwrap();
    /// assert_eq!(owned.fields().to_string(), ".spec.replicas");
    /// assert_eq!(owned.api_version(), "autoscaling/v1");
    /// // A scale without owners takes the replicas from theirs.
    /// let left = owners.with_scale(&ManagedFields::new(), &path, "apps/v1");
    /// assert_eq!(left.iter().next().unwrap().1.fields().to_string(), ".spec.paused");
    /// # Ok::<(), homeostat_schema::ManagedFieldsError>(())
    /// ```
    #[must_use]
    pub fn of_scale(&self, replicas: &dyn Fn(&str) -> Option<Vec<PathElement>>) -> Self {
        let owners = self.entries.iter().filter(|(_, owned)| {
            replicas(&owned.api_version).is_some_and(|path| owned.fields.contains(&path))
        });
        let entries = owners.map(|(manager, owned)| {
            let time = owned.time.clone();
            let owned = Owned::only(&replicas_of_scale(), API_VERSION, time);
            (manager.in_version(API_VERSION), owned)
        });
        Self { entries: entries.collect() }
    }

    /// Returns the owners of an object after a write to its scale in a version. Who lost the
    /// replicas of the scale loses those of the object. An owner by the scale has no time, as
    /// upstream, and an entry of its own even if the same manager owns other fields: the next
    /// write to the object drops it. `replicas` is as in [`of_scale`](Self::of_scale).
    #[must_use]
    pub fn with_scale(
        &self,
        scale: &Self,
        replicas: &dyn Fn(&str) -> Option<Vec<PathElement>>,
        api_version: &str,
    ) -> Self {
        let path = replicas_of_scale();
        let mut left = scale.clone();
        let mut merged = Self::new();
        for (manager, owned) in &self.entries {
            let mut owned = owned.clone();
            let own = replicas(&owned.api_version).filter(|path| owned.fields.contains(path));
            // An updater of the scale has another version, and so is another manager.
            if let Some(own) = own
                && left.entries.remove(manager).is_none()
            {
                let mut lost = FieldSet::new();
                lost.insert(&own);
                owned.fields = owned.fields.difference(&lost);
            }
            merged.entries.insert(manager.clone(), owned);
        }
        let own = replicas(api_version).unwrap_or_default();
        for (manager, owned) in left.entries {
            if owned.fields.contains(&path) {
                let mut manager = manager.in_version(api_version);
                let others = merged.entries.get(&manager);
                manager.is_second = manager.operation == Operation::Update
                    && others.is_some_and(|owned| !owned.fields.is_empty());
                merged.entries.insert(manager, Owned::only(&own, api_version, None));
            }
        }
        merged.drop_empty();
        merged
    }
}

impl Manager {
    /// Returns the manager of a write in another version, which an apply does not depend on.
    fn in_version(&self, api_version: &str) -> Self {
        match self.operation {
            Operation::Apply => self.clone(),
            Operation::Update => Self { api_version: api_version.to_owned(), ..self.clone() },
        }
    }
}

impl Owned {
    fn only(path: &[PathElement], api_version: &str, time: Option<String>) -> Self {
        let mut fields = FieldSet::new();
        fields.insert(path);
        Self { fields, api_version: api_version.to_owned(), time }
    }
}

fn replicas_of_scale() -> [PathElement; 2] {
    ["spec", "replicas"].map(PathElement::field)
}
