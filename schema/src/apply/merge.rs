//! The merge of an applied configuration into an object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::atom::{Atom, ListAtom, MapAtom, Type};
use super::compare::{fits_either, is_empty_list, is_empty_map};
use super::errors::TypeErrors;
use super::items::item_element;
use crate::field_set::PathElement;

/// Merges `config` into `live`: the values of `config` win, and nothing is removed.
///
/// A list keeps the order of `live` for items that only `live` has, and takes the order of `config`
/// for the others.
///
/// # Errors
///
/// If an item of a list has no identity, occurs twice in `config`, or neither value fits its type.
pub(crate) fn merge(
    of: Type<'_>,
    live: &Map<String, Value>,
    config: &Map<String, Value>,
) -> Result<Value, TypeErrors> {
    let mut errors = TypeErrors::new();
    let merged = match of.atom(None) {
        Atom::Map(map) => merge_fields(&map, Some(live), Some(config), &mut errors),
        _ => None,
    };
    errors.into_result(merged.unwrap_or(Value::Null))
}

fn merge_values(
    of: Type<'_>,
    live: Option<&Value>,
    config: Option<&Value>,
    errors: &mut TypeErrors,
) -> Option<Value> {
    if let (Some(live_value), Some(config_value)) = (live, config)
        && !of.has_same_atom(live_value, config_value)
    {
        // The value changes its kind: only what is wrong by the old rules matters.
        merge_with(of.atom(live), live, config, errors);
    }
    merge_with(of.atom(config.or(live)), live, config, errors)
}

fn merge_with(
    atom: Atom<'_>,
    live: Option<&Value>,
    config: Option<&Value>,
    errors: &mut TypeErrors,
) -> Option<Value> {
    let is_leaf = match &atom {
        Atom::Scalar(kind) => {
            if !fits_either(*kind, live, config, errors) {
                return None;
            }
            true
        }
        // An empty list or object stays as it is.
        Atom::List(list) => list.is_atomic() || (is_empty_list(live) && is_empty_list(config)),
        Atom::Map(map) => map.atomic || (is_empty_map(live) && is_empty_map(config)),
    };
    match atom {
        _ if is_leaf => config.or(live).cloned(),
        Atom::Scalar(_) => None,
        Atom::List(list) => ListMerge::new(&list, live, config, errors)?.run(),
        Atom::Map(map) => {
            let (live, config) =
                (live.and_then(Value::as_object), config.and_then(Value::as_object));
            merge_fields(&map, live, config, errors)
        }
    }
}

fn merge_fields(
    map: &MapAtom<'_>,
    live: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
    errors: &mut TypeErrors,
) -> Option<Value> {
    let names: BTreeSet<&String> =
        [live, config].into_iter().flatten().flat_map(Map::keys).collect();
    let mut merged = Map::new();
    for name in names {
        let Some(field) = map.field(name) else { continue };
        let (live, config) =
            (live.and_then(|live| live.get(name)), config.and_then(|config| config.get(name)));
        let mut below = TypeErrors::new();
        if let Some(value) = merge_values(field.of, live, config, &mut below) {
            merged.insert(name.clone(), value);
        }
        errors.extend(&PathElement::field(name.as_str()), below);
    }
    (!merged.is_empty()).then_some(Value::Object(merged))
}

/// The merge of two lists whose items have identities.
struct ListMerge<'a, 'v> {
    list: &'a ListAtom<'a>,
    live: Vec<(PathElement, &'v Value)>,
    config: Vec<(PathElement, &'v Value)>,
    /// The items of `live` by identity; null for one that occurs twice.
    live_items: BTreeMap<PathElement, &'v Value>,
    /// The identities in `config`.
    configured: BTreeSet<PathElement>,
    /// The positions in `config` of items that are in both lists and not merged yet.
    shared: VecDeque<usize>,
    merged: BTreeSet<PathElement>,
    at_live: usize,
    at_config: usize,
    items: Vec<Value>,
}

// === impl ListMerge ===

impl<'a, 'v> ListMerge<'a, 'v> {
    /// Returns `None` if an item has no identity or occurs twice in `config`.
    fn new(
        list: &'a ListAtom<'a>,
        live: Option<&'v Value>,
        config: Option<&'v Value>,
        errors: &mut TypeErrors,
    ) -> Option<Self> {
        let mut found = TypeErrors::new();
        let config = identify(list, config, &mut found);
        let mut configured = BTreeSet::new();
        for (element, _) in &config {
            if !configured.insert(element.clone()) {
                found.push(format!("duplicate entries for key {element}"));
            }
        }
        let live = identify(list, live, &mut found);
        if !found.is_empty() {
            errors.extend(&"", found);
            return None;
        }
        let mut live_items: BTreeMap<PathElement, &Value> = BTreeMap::new();
        for (element, item) in &live {
            let entry = live_items.entry(element.clone());
            entry.and_modify(|item| *item = &Value::Null).or_insert(*item);
        }
        let elements = config.iter().map(|(element, _)| element).enumerate();
        let shared = elements.filter(|(_, element)| live_items.contains_key(element));
        let shared = shared.map(|(index, _)| index).collect();
        Some(Self {
            list,
            live,
            config,
            live_items,
            configured,
            shared,
            merged: BTreeSet::new(),
            at_live: 0,
            at_config: 0,
            items: Vec::new(),
        })
    }

    /// Returns the merged list; `None` if it is empty.
    fn run(mut self) -> Option<Value> {
        while self.step() {}
        (!self.items.is_empty()).then_some(Value::Array(self.items))
    }

    /// Moves on in one of the lists or in both; returns false at the end of both.
    fn step(&mut self) -> bool {
        let live = self.live.get(self.at_live).map(|(element, item)| (element, *item));
        let config = self.config.get(self.at_config).map(|(element, _)| element);
        match (live, config) {
            (None, None) => return false,
            (Some((element, _)), Some(wanted)) if element == wanted => {
                self.at_live += 1;
                self.push_configured();
                return true;
            }
            // An item of both lists that the configuration has later.
            (Some((element, _)), Some(_)) if self.is_out_of_turn(element) => {}
            (Some((element, item)), _) if !self.configured.contains(element) => {
                self.push(Some(item), None);
            }
            (Some((element, _)), Some(_)) => {
                self.at_live += usize::from(self.merged.contains(element));
                self.push_configured();
                return true;
            }
            (None, Some(_)) => {
                self.push_configured();
                return true;
            }
            // Merged before, at its place in the configuration.
            (Some(_), None) => {}
        }
        self.at_live += 1;
        true
    }

    /// Returns true if an item is in both lists, and is not the next of those to be merged.
    fn is_out_of_turn(&self, element: &PathElement) -> bool {
        let next = self.shared.front().and_then(|index| self.config.get(*index));
        self.configured.contains(element) && next.is_some_and(|(next, _)| next != element)
    }

    /// Adds the next item of the configuration, merged with the live one.
    fn push_configured(&mut self) {
        let (element, item) = &self.config[self.at_config];
        let (element, item) = (element.clone(), *item);
        if self.shared.front() == Some(&self.at_config) {
            self.shared.pop_front();
        }
        self.at_config += 1;
        let live = self.live_items.get(&element).copied();
        self.merged.insert(element);
        self.push(live, Some(item));
    }

    fn push(&mut self, live: Option<&Value>, config: Option<&Value>) {
        // As upstream, a part of an item that cannot be merged is missing from the result. A
        // validated configuration has no such part.
        let mut ignored = TypeErrors::new();
        self.items.extend(merge_values(self.list.item, live, config, &mut ignored));
    }
}

fn identify<'v>(
    list: &ListAtom<'_>,
    value: Option<&'v Value>,
    errors: &mut TypeErrors,
) -> Vec<(PathElement, &'v Value)> {
    let mut items = Vec::new();
    for (index, item) in value.and_then(Value::as_array).into_iter().flatten().enumerate() {
        match item_element(list, item) {
            Ok(element) => items.push((element, item)),
            Err(reason) => errors.push(format!("element {index}: {reason}")),
        }
    }
    items
}
