//! Selectors that are resolved against a kind, once per request.

use homeostat_core::LabelSelector;

use crate::field_selector::{FieldOperator, FieldSelector};
use crate::kinds::Kind;
use crate::object::Selectable;
use crate::status::{Failure, Result};

/// Selectors that are not resolved yet.
#[derive(Debug)]
pub(crate) struct Selectors {
    labels: LabelSelector,
    fields: FieldSelector,
}

/// The restriction of a list or a watch to some objects.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: Vec<Requirement>,
}

#[derive(Debug)]
struct Requirement {
    field: Field,
    operator: FieldOperator,
    value: String,
}

#[derive(Debug)]
enum Field {
    Name,
    Namespace,
    /// The position in the kind's list of field labels.
    Of(usize),
}

// === impl Selectors ===

impl Selectors {
    pub(crate) fn parse(labels: &str, fields: &str) -> Result<Self> {
        let labels = LabelSelector::parse(labels)
            .map_err(|error| Failure::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(fields)
            .map_err(|error| Failure::bad_request(error.to_string()))?;
        Ok(Self { labels, fields })
    }

    /// Resolves the selectors against a kind.
    ///
    /// # Errors
    ///
    /// Fails if the kind is not selected by one of the fields.
    pub(crate) fn resolve(self, kind: &Kind) -> Result<Selection> {
        // The empty requirement is ignored, as in the real server.
        let requested =
            |(path, _, value): &(&str, FieldOperator, &str)| !path.is_empty() || !value.is_empty();
        let fields = self.fields.requirements().filter(requested);
        let fields = fields.map(|(path, operator, value)| {
            Ok(Requirement { field: Field::find(kind, path)?, operator, value: value.to_owned() })
        });
        let fields = fields.collect::<Result<_>>()?;
        Ok(Selection { labels: self.labels, fields })
    }
}

// === impl Selection ===

impl Selection {
    pub(crate) fn matches_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns true if at most one object of a namespace can match: the real server then reads only
    /// that object.
    pub(crate) fn selects_one_name(&self) -> bool {
        let is_name = |requirement: &Requirement| {
            matches!(requirement.field, Field::Name)
                && requirement.operator == FieldOperator::Equals
        };
        self.fields.iter().any(is_name)
    }

    /// Returns the namespace whose objects alone can match.
    pub(crate) fn namespace(&self) -> Option<&str> {
        let is_namespace = |requirement: &&Requirement| {
            matches!(requirement.field, Field::Namespace)
                && requirement.operator == FieldOperator::Equals
        };
        self.fields.iter().find(is_namespace).map(|requirement| requirement.value.as_str())
    }

    pub(crate) fn matches(&self, object: &Selectable) -> bool {
        self.fields.iter().all(|requirement| requirement.holds(object))
            && self.labels.matches(&object.labels)
    }
}

// === impl Requirement ===

impl Requirement {
    fn holds(&self, object: &Selectable) -> bool {
        let value = match self.field {
            Field::Name => object.name.as_str(),
            Field::Namespace => object.namespace.as_str(),
            // An object that an earlier definition has written may have fewer.
            Field::Of(at) => object.fields.get(at).map_or("", String::as_str),
        };
        (value == self.value) == (self.operator == FieldOperator::Equals)
    }
}

// === impl Field ===

impl Field {
    fn find(kind: &Kind, path: &str) -> Result<Self> {
        match path {
            "metadata.name" => Ok(Self::Name),
            "metadata.namespace" if kind.namespaced => Ok(Self::Namespace),
            other => match kind.label_position(other) {
                Some(at) => Ok(Self::Of(at)),
                None if kind.custom || kind.has_labels() => {
                    Err(Failure::bad_request(not_supported(kind, other)))
                }
                None => Err(Failure::bad_request(format!(
                    "\"{other}\" is not a known field selector: only \"metadata.name\", \
                     \"metadata.namespace\""
                ))),
            },
        }
    }
}

/// Returns the text for a field that a kind with fields of its own does not select by.
fn not_supported(kind: &Kind, field: &str) -> String {
    match (&*kind.group, &*kind.kind) {
        ("batch", "Job") => format!("field label \"{field}\" not supported for Job"),
        ("resource.k8s.io", "ResourceSlice") => {
            let of = format!("{}, Kind=ResourceSlice", kind.api_version());
            format!("field label not supported for {of}: {field}")
        }
        _ => format!("field label not supported: {field}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_field_label_is_rejected() {
        let kinds = crate::kinds::built_in();
        let kind = kinds.iter().find(|kind| kind.kind == "Pod").unwrap();
        let parse = |labels, fields| Selectors::parse(labels, fields)?.resolve(kind);
        let selection = parse("app=a", "spec.nodeName!=,metadata.name=p").unwrap();
        let mut pod = Selectable { name: "p".into(), ..Selectable::default() };
        pod.fields = vec![String::new(); kind.fields.len()];
        pod.labels.insert("app".into(), "a".into());
        assert!(!selection.matches(&pod), "not on a node");
        pod.fields[0] = "n1".into();
        assert!(selection.matches(&pod));
        let refusal = parse("", "spec.replicas=1").unwrap_err();
        assert_eq!(refusal.message, "field label not supported: spec.replicas");
    }
}
