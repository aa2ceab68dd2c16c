//! The largest sizes that a schema allows, for estimates of what a rule may cost.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::identifier::escape;
use crate::open_api::{flag, members, texts};

/// The size of the largest request that the API server accepts. No value is larger.
const MAX_REQUEST: u64 = 3 * 1024 * 1024;
/// The longest name of an object.
const MAX_NAME: u64 = 253;

/// The sizes that a schema allows for a value and its parts.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// The largest number of items or entries, or of bytes of a text; 0 for what has no size.
    pub(super) most: u64,
    /// The size of the smallest value in JSON.
    least_json: u64,
    parts: Parts,
}

#[derive(Debug, Clone)]
enum Parts {
    None,
    Items(Box<Bounds>),
    Values(Box<Bounds>),
    /// The keys and the values of a map. True if a field of it is a value, too.
    Entries(Box<[Bounds; 2]>, bool),
    /// By the name that expressions use.
    Fields(BTreeMap<String, Bounds>),
}

/// The bounds of the keys of every map.
static KEYS: Bounds = Bounds::plain(0, 2);

// === impl Bounds ===

impl Bounds {
    const fn plain(most: u64, least_json: u64) -> Self {
        Self { most, least_json, parts: Parts::None }
    }

    /// Creates the bounds of a value that no schema describes.
    pub(crate) const fn of_size(most: u64) -> Self {
        Self::plain(most, 0)
    }

    /// Creates the bounds of a map that no schema describes. `has_fields` states whether a field of
    /// it counts as a value.
    pub(crate) fn of_map(most: u64, keys: Self, values: Self, has_fields: bool) -> Self {
        let parts = Parts::Entries(Box::new([keys, values]), has_fields);
        Self { most, least_json: 0, parts }
    }

    /// Creates the bounds of an object that no schema describes.
    pub(crate) fn of_fields(fields: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        let fields = fields.into_iter().map(|(name, bounds)| (name.to_owned(), bounds));
        Self { most: 0, least_json: 0, parts: Parts::Fields(fields.collect()) }
    }

    /// Reads the bounds of a part of an `openAPIV3Schema`; `None` if expressions cannot use it.
    pub(crate) fn of_schema(schema: &Json, is_root: bool) -> Option<Self> {
        let format = schema.get("format").and_then(Json::as_str).unwrap_or_default();
        let most_bytes = limit(schema, "maxLength").map(|most| most.saturating_mul(4));
        if flag(schema, "x-kubernetes-int-or-string") {
            return Some(Self::plain(most_bytes.unwrap_or(MAX_REQUEST - 2), 1));
        }
        Some(match schema.get("type").and_then(Json::as_str)? {
            "array" => {
                let items = Self::of_part(schema.get("items")?)?;
                let fit = (MAX_REQUEST - 2) / (items.least_json + 1);
                let most = limit(schema, "maxItems").unwrap_or(fit);
                Self { most, least_json: 2, parts: Parts::Items(Box::new(items)) }
            }
            "object" => {
                let values = schema.get("additionalProperties").filter(|values| values.is_object());
                let Some(values) = values else { return Some(Self::of_object(schema, is_root)) };
                let values = Self::of_part(values)?;
                let fit = (MAX_REQUEST - 2) / (values.least_json + 6);
                let most = limit(schema, "maxProperties").unwrap_or(fit);
                Self { most, least_json: 2, parts: Parts::Values(Box::new(values)) }
            }
            "string" => match format {
                // Its length counts characters of base64, each of 1 byte.
                "byte" => Self::plain(limit(schema, "maxLength").unwrap_or(MAX_REQUEST - 2), 2),
                "duration" => Self::plain(32, 3),
                "date" => Self::plain(12, 12),
                "date-time" => Self::plain(32, 21),
                _ => Self::plain(most_bytes.unwrap_or_else(|| longest_choice(schema)), 2),
            },
            "boolean" => Self::plain(0, 4),
            "number" | "integer" => Self::plain(0, 1),
            _ => return None,
        })
    }

    fn of_part(schema: &Json) -> Option<Self> {
        Self::of_schema(schema, flag(schema, "x-kubernetes-embedded-resource"))
    }

    fn of_object(schema: &Json, is_root: bool) -> Self {
        let required: Vec<&str> = texts(schema.get("required")).collect();
        let mut least_json = 2;
        let mut fields = BTreeMap::new();
        for (name, part) in members(schema, "properties").into_iter().flatten() {
            let Some(bounds) = Self::of_part(part) else { continue };
            if required.contains(&name.as_str()) && part.get("default").is_none() {
                least_json += name.len() as u64 + bounds.least_json + 4;
            }
            fields.extend(escape(name).map(|escaped| (escaped, bounds)));
        }
        if is_root {
            let text = |name: &str| (name.to_owned(), Self::plain(MAX_REQUEST - 2, 2));
            fields.extend(["apiVersion", "kind"].map(text));
            fields.insert("metadata".to_owned(), Self::of_metadata(schema));
        }
        Self { most: 0, least_json, parts: Parts::Fields(fields) }
    }

    /// Returns the bounds of the two fields of metadata that expressions may use.
    fn of_metadata(schema: &Json) -> Self {
        let stated = schema.get("properties").and_then(|fields| fields.get("metadata"));
        let name = |(name, most): (&str, u64)| {
            let stated = stated.and_then(|metadata| metadata.get("properties")?.get(name));
            let stated = stated.and_then(|field| limit(field, "maxLength"));
            let most = stated.map_or(most, |stated| stated.min(most));
            (name.to_owned(), Self::plain(most * 4, 2))
        };
        let fields = [("name", MAX_NAME), ("generateName", MAX_NAME - 1)].map(name).into();
        Self { most: 0, least_json: 2, parts: Parts::Fields(fields) }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        match &self.parts {
            Parts::Fields(fields) => fields.get(name),
            Parts::Entries(parts, true) => Some(&parts[1]),
            _ => None,
        }
    }

    /// Returns the bounds of the items of a list, or of the values of a map.
    pub(crate) fn inner(&self) -> Option<&Self> {
        match &self.parts {
            Parts::Items(inner) | Parts::Values(inner) => Some(inner),
            Parts::Entries(parts, _) => Some(&parts[1]),
            _ => None,
        }
    }

    /// Returns the bounds of the keys of a map.
    pub(super) fn keys(&self) -> Option<&Self> {
        match &self.parts {
            Parts::Values(_) => Some(&KEYS),
            Parts::Entries(parts, _) => Some(&parts[0]),
            _ => None,
        }
    }

    /// Returns how many values of this kind a request can contain.
    pub(crate) fn most_in_request(&self) -> u64 {
        MAX_REQUEST / (self.least_json + 1)
    }
}

/// Reads a limit of a schema; a negative one allows nothing.
pub(crate) fn limit(schema: &Json, name: &str) -> Option<u64> {
    let stated = schema.get(name)?;
    let whole = stated.as_i64().map(|stated| u64::try_from(stated).unwrap_or(0));
    whole.or_else(|| stated.as_u64())
}

/// Returns the length of the longest text that a schema lists; any length if it lists none.
fn longest_choice(schema: &Json) -> u64 {
    let choices = schema.get("enum").and_then(Json::as_array).filter(|list| !list.is_empty());
    let Some(choices) = choices else { return MAX_REQUEST - 2 };
    choices.iter().filter_map(Json::as_str).map(|text| text.len() as u64).max().unwrap_or(0)
}
