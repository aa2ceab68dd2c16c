//! The rules for the defaults in the schema of a `CustomResourceDefinition`.

use serde_json::{Map as JsonMap, Value, json};

use crate::embedded;
use crate::field_error::FieldError;
use crate::open_api::{flag, members, read_part};
use crate::path::Path;
use crate::rules::{Rules, Verdict};
use crate::schema::{NodeRef, Schema};
use crate::validate::Validator;

/// Returns the problem of the metadata of an object.
pub type MetadataCheck<'a> = dyn Fn(&JsonMap<String, Value>) -> Option<String> + 'a;

/// The check of the defaults of a schema.
pub(crate) struct Defaults<'a> {
    pub(crate) check_metadata: &'a MetadataCheck<'a>,
}

/// The place of a schema whose default is checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// True inside `apiVersion`, `kind` and `metadata` of an object.
    is_meta: bool,
    is_root: bool,
    /// The last step of the way from the object around to the schema; `None` at the object itself.
    step: Option<&'a Step<'a>>,
}

/// A step from a value to a value inside of it.
#[derive(Debug, Clone, Copy)]
struct Step<'a> {
    before: Option<&'a Self>,
    /// The name of the field; `None` for an item of a list.
    field: Option<&'a str>,
}

// === impl Place ===

impl Place<'_> {
    /// The root of a custom object.
    pub(crate) const ROOT: Self = Place { is_meta: false, is_root: true, step: None };

    /// Returns the object around a value that stands at this place. It states a type.
    fn object_around(self, value: &Value) -> JsonMap<String, Value> {
        let (mut value, mut step) = (value.clone(), self.step);
        while let Some(Step { before, field }) = step {
            value = match field {
                Some(name) => json!({*name: value}),
                None => json!([value]),
            };
            step = *before;
        }
        let mut object = match value {
            Value::Object(object) => object,
            _ => JsonMap::new(),
        };
        for (name, text) in [("apiVersion", "validation/v1"), ("kind", "Validation")] {
            object.entry(name).or_insert_with(|| text.into());
        }
        object
    }
}

// === impl Defaults ===

impl Defaults<'_> {
    /// Checks that each default fits its schema. One of metadata must be valid there; any other
    /// one has no unknown fields.
    pub(crate) fn check(
        &self,
        schema: &Value,
        place: Place<'_>,
        at: &str,
        errors: &mut Vec<FieldError>,
    ) {
        let is_object = place.is_root || flag(schema, "x-kubernetes-embedded-resource");
        let is_meta = place.is_meta && !is_object;
        let step = place.step.filter(|_| !is_object);
        if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            let place = Place { is_meta, step, ..place };
            errors.extend(self.check_default(schema, place, default, &format!("{at}.default")));
        }
        if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
            let step = Some(&Step { before: step, field: None });
            let place = Place { is_meta, is_root: false, step };
            self.check(items, place, &format!("{at}.items"), errors);
        }
        for (name, field) in members(schema, "properties").into_iter().flatten() {
            let of_object =
                is_object && matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
            let step = Some(&Step { before: step, field: Some(name) });
            let place = Place { is_meta: is_meta || of_object, is_root: false, step };
            self.check(field, place, &format!("{at}.properties[{name}]"), errors);
        }
    }

    /// Checks a default as a value of its schema: the first kind of error hides the others.
    fn check_default(
        &self,
        schema: &Value,
        place: Place<'_>,
        default: &Value,
        at: &str,
    ) -> Vec<FieldError> {
        let part = Schema::of_part(read_part(schema));
        let mut errors = Vec::new();
        let found = if place.is_meta {
            let problem = self.problem_of(&place.object_around(default));
            let detail = problem.map(|text| format!("must result in valid metadata: {text}"));
            detail.iter().map(|detail| FieldError::invalid(at, default, detail)).collect()
        } else {
            let mut pruned = default.clone();
            if !part.prune_part(&mut pruned).is_empty() {
                errors.push(FieldError::invalid(at, default, "must not have unknown fields"));
            }
            embedded::check_part(part.root(), place.is_root, default, at)
        };
        let is_valid = found.is_empty();
        errors.extend(found);
        if is_valid {
            errors.extend(check_value(schema, part.root(), default, at));
        }
        errors
    }

    /// Returns the problem of the type or the metadata of an object.
    fn problem_of(&self, object: &JsonMap<String, Value>) -> Option<String> {
        let mut errors = Vec::new();
        embedded::check_type(object, &mut Path::default(), &mut errors);
        match errors.first() {
            Some(error) => Some(error.to_string()),
            None => (self.check_metadata)(object),
        }
    }
}

/// Checks a default against its schema, then against its rules.
fn check_value(schema: &Value, node: NodeRef<'_>, default: &Value, at: &str) -> Vec<FieldError> {
    let found = Validator::check_part(node, default, None, at);
    if !found.is_empty() {
        return found;
    }
    // As upstream: an update that changes nothing, then a create.
    let rules = Rules::of_part(schema);
    let Verdict { mut errors, warnings } = rules.check(default, Some(default));
    errors.extend(warnings);
    if errors.is_empty() {
        errors = rules.check(default, None).errors;
    }
    errors.into_iter().map(|error| error.below(at)).collect()
}
