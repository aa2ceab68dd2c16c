//! Server-side apply against a model: flat maps whose entries have owners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use homeostat_schema::{
    ApplyError, Field, FieldSet, FieldWriter, List, ListType, ManagedFields, Map, Object,
    Operation, Scalar, Schema, Types,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};
use serde_json::{Value, json};

/// The entries of an object: `labels` by name, and the items of the set `colors`, without value.
type Entries = BTreeMap<String, String>;

/// The model: each entry has a value and owners.
#[derive(Debug, Default)]
struct Model {
    values: Entries,
    owners: BTreeMap<&'static str, BTreeSet<String>>,
}

/// The library's view of the same object.
struct Real {
    schema: Schema,
    live: serde_json::Map<String, Value>,
    managed: ManagedFields,
}

#[derive(Debug, Clone)]
struct Apply {
    manager: &'static str,
    entries: Entries,
    force: bool,
}

// === impl Model ===

impl Model {
    /// Returns the entries in conflict, or applies.
    fn apply(&mut self, apply: &Apply) -> Result<(), usize> {
        let changed = |name: &String, value: &String| self.values.get(name) != Some(value);
        let others = || self.owners.iter().filter(|(manager, _)| **manager != apply.manager);
        let conflicts = others()
            .flat_map(|(_, owned)| owned)
            .filter(|name| apply.entries.get(*name).is_some_and(|value| changed(name, value)))
            .count();
        if conflicts > 0 && !apply.force {
            return Err(conflicts);
        }
        let taken: BTreeSet<String> = apply
            .entries
            .iter()
            .filter(|(name, value)| changed(name, value))
            .map(|(name, _)| name.clone())
            .collect();
        for (_, owned) in self.owners.iter_mut().filter(|(manager, _)| **manager != apply.manager) {
            owned.retain(|name| !taken.contains(name));
        }
        let last = self.owners.insert(apply.manager, apply.entries.keys().cloned().collect());
        self.values.extend(apply.entries.clone());
        for name in last.unwrap_or_default() {
            if self.owners.values().all(|owned| !owned.contains(&name)) {
                self.values.remove(&name);
            }
        }
        Ok(())
    }
}

// === impl Real ===

impl Real {
    fn new() -> Self {
        let root = Object::new([
            Field::new("labels", Map::new(Scalar::String)),
            Field::new("colors", List::new(Scalar::String, ListType::Set)),
        ]);
        let schema = Schema::new(Arc::new(Types::new()), root);
        Self { schema, live: serde_json::Map::new(), managed: ManagedFields::new() }
    }

    fn write<T>(&self, manager: &str, now: &str, write: impl FnOnce(FieldWriter<'_>) -> T) -> T {
        write(FieldWriter {
            manager,
            api_version: "v1",
            subresource: "",
            now,
            schema: &self.schema,
            other_versions: &[],
            converter: None,
            empty: &serde_json::Map::new(),
            reset: &FieldSet::new(),
        })
    }

    fn apply(&mut self, apply: &Apply) -> Result<(), usize> {
        let config = config(&apply.entries);
        let applied = self.write(apply.manager, "2026-01-02T03:04:05Z", |writer| {
            writer.apply(self.managed.clone(), &self.live, &config, apply.force)
        });
        match applied {
            Ok(applied) => {
                self.managed = applied.owners;
                self.live = applied.object.unwrap_or_else(|| self.live.clone());
                Ok(())
            }
            Err(ApplyError::Conflicts(conflicts)) => Err(conflicts.iter().count()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Replaces the object. Returns the owners' text, as it is made from their text before: `None`
    /// if the object had none.
    fn update(&mut self, manager: &str, now: &str, entries: &Entries) -> Option<String> {
        let (before, new) = (self.encoded_owners(), config(entries));
        let updated = self
            .write(manager, now, |writer| writer.update(self.managed.clone(), &self.live, &new));
        let text = before.and_then(|before| {
            self.write(manager, now, |writer| writer.update_json(&before, &self.live, &new))
        });
        self.managed = updated.expect("the object fits its type");
        self.live = new;
        text
    }

    fn encoded_owners(&self) -> Option<String> {
        self.managed.encode().map(|owners| owners.to_string())
    }

    fn entries(&self) -> Entries {
        let labels = self.live.get("labels").and_then(Value::as_object).into_iter().flatten();
        let labels = labels.map(|(name, value)| {
            (format!("label {name}"), value.as_str().expect("a text").to_owned())
        });
        let colors = self.live.get("colors").and_then(Value::as_array).into_iter().flatten();
        let colors = colors
            .map(|color| (format!("color {}", color.as_str().expect("a text")), String::new()));
        labels.chain(colors).collect()
    }

    /// Returns the number of fields that two managers own together.
    fn shared(&self, one: &str, other: &str) -> usize {
        let of = |name: &str| {
            let mut owned = self.managed.iter().filter(|(manager, _)| manager.name() == name);
            owned.next().map(|(_, owned)| owned.fields().clone()).unwrap_or_default()
        };
        of(one).intersection(&of(other)).paths().len()
    }

    fn owners(&self) -> BTreeMap<String, usize> {
        let owned = self.managed.iter().filter(|(m, _)| m.operation() == Operation::Apply);
        owned.map(|(m, owned)| (m.name().to_owned(), owned.fields().paths().len())).collect()
    }
}

fn config(entries: &Entries) -> serde_json::Map<String, Value> {
    let mut config = json!({});
    for (entry, value) in entries {
        match entry.split_once(' ').expect("a type") {
            ("label", name) => config["labels"][name] = json!(value),
            (_, color) => {
                if !config["colors"].is_array() {
                    config["colors"] = json!([]);
                }
                config["colors"].as_array_mut().expect("a list").push(json!(color));
            }
        }
    }
    config.as_object().expect("an object").clone()
}

fn entries() -> impl Strategy<Value = Entries> {
    let label = ("label [a-d]", "[xy]");
    let color = ("color [a-d]", Just(String::new()));
    let entry = prop_oneof![label, color];
    vec(entry, 0..5).prop_map(|entries| entries.into_iter().collect())
}

fn apply() -> impl Strategy<Value = Apply> {
    let manager = prop_oneof![Just("one"), Just("two"), Just("three")];
    (manager, entries(), any::<bool>()).prop_map(|(manager, entries, force)| Apply {
        manager,
        entries,
        force,
    })
}

proptest! {
    #[test]
    fn any_applies_give_what_the_model_gives(applies in vec(apply(), 1..12)) {
        let (mut model, mut real) = (Model::default(), Real::new());
        for apply in &applies {
            prop_assert_eq!(real.apply(apply), model.apply(apply), "{:?}", apply);
            prop_assert_eq!(real.entries(), model.values.clone(), "{:?}", apply);
            let owners = model.owners.iter().filter(|(_, owned)| !owned.is_empty());
            let owners: BTreeMap<String, usize> =
                owners.map(|(manager, owned)| ((*manager).to_owned(), owned.len())).collect();
            prop_assert_eq!(real.owners(), owners, "{:?}", apply);
        }
    }

    #[test]
    fn owners_as_text_change_as_decoded_ones(
        applied in apply(),
        updates in vec((prop_oneof![Just("one"), Just("two")], entries(), 0..4), 1..12),
    ) {
        let mut real = Real::new();
        real.apply(&applied).expect("a first apply has no conflicts");
        for (index, (manager, entries, kept)) in updates.into_iter().enumerate() {
            // Most writes remove nothing.
            let mut new = if kept > 0 { real.entries() } else { Entries::new() };
            new.extend(entries);
            let has_owners = !real.managed.is_empty();
            let text = real.update(manager, &format!("2026-01-02T03:05:{index:02}Z"), &new);
            prop_assert!(!has_owners || text == real.encoded_owners());
        }
    }

    #[test]
    fn second_apply_of_one_configuration_changes_nothing(
        before in vec(apply(), 0..6),
        apply in apply(),
    ) {
        let mut real = Real::new();
        for apply in &before {
            let _ = real.apply(apply);
        }
        let forced = Apply { force: true, ..apply };
        real.apply(&forced).expect("a forced apply has no conflicts");
        let (live, managed) = (real.live.clone(), real.managed.clone());
        real.apply(&Apply { force: false, ..forced }).expect("nothing changes");
        prop_assert_eq!((real.live, real.managed), (live, managed));
    }

    #[test]
    fn apply_of_nothing_restores_the_object(first in entries(), more in entries()) {
        let mut real = Real::new();
        real.apply(&Apply { manager: "one", entries: first, force: false }).expect("no conflict");
        let (live, managed) = (real.entries(), real.managed.clone());
        let second = Apply { manager: "two", entries: more, force: false };
        if real.apply(&second).is_ok() {
            let nothing = Apply { entries: Entries::new(), ..second };
            real.apply(&nothing).expect("nothing changes");
        }
        prop_assert_eq!(real.entries(), live);
        prop_assert!(real.managed.is_same_except_times(&managed));
    }

    #[test]
    fn values_differ_from_no_unforced_configuration(applies in vec(apply(), 1..8)) {
        let mut real = Real::new();
        let mut wanted: BTreeMap<&str, Entries> = BTreeMap::new();
        for apply in applies.into_iter().map(|apply| Apply { force: false, ..apply }) {
            if real.apply(&apply).is_ok() {
                wanted.insert(apply.manager, apply.entries);
            }
        }
        let live = real.entries();
        let wanted: BTreeMap<_, _> = wanted.into_values().flatten().collect();
        prop_assert_eq!(live, wanted);
    }

    #[test]
    fn managers_share_a_field_only_with_equal_values(applies in vec(apply(), 1..12)) {
        let mut real = Real::new();
        let mut wanted: BTreeMap<&str, Entries> = BTreeMap::new();
        for apply in applies {
            if real.apply(&apply).is_err() {
                continue;
            }
            for (_, other) in wanted.iter_mut().filter(|(manager, _)| **manager != apply.manager) {
                // A forced apply takes the entries that it changes.
                other.retain(|name, value| apply.entries.get(name).is_none_or(|new| new == value));
            }
            wanted.insert(apply.manager, apply.entries);
            for (one, other) in [("one", "two"), ("one", "three"), ("two", "three")] {
                let entries = |name: &str| wanted.get(name).cloned().unwrap_or_default();
                let (of_one, of_other) = (entries(one), entries(other));
                let equal = of_one.iter();
                let equal = equal.filter(|(name, value)| of_other.get(*name) == Some(value));
                prop_assert_eq!(real.shared(one, other), equal.count());
            }
        }
    }

    #[test]
    fn difference_and_intersection_of_sets_make_the_set(
        a in btree_map("f[a-c]", btree_set("g[a-c]", 0..3), 0..3),
        b in btree_map("f[a-c]", btree_set("g[a-c]", 0..3), 0..3),
    ) {
        let set = |of: &BTreeMap<String, BTreeSet<String>>| {
            let fields = of.iter().map(|(name, below)| {
                let below: serde_json::Map<String, Value> =
                    below.iter().map(|name| (format!("f:{name}"), json!({}))).collect();
                (format!("f:{name}"), Value::Object(below))
            });
            FieldSet::from_fields_v1(&Value::Object(fields.collect())).expect("a set")
        };
        let (a, b) = (set(&a), set(&b));
        let (only, both) = (a.difference(&b), a.intersection(&b));
        prop_assert!(only.intersection(&b).is_empty());
        prop_assert_eq!(only.union(&both), a.clone());
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(FieldSet::from_fields_v1(&a.to_fields_v1()).expect("a set"), a);
    }
}
