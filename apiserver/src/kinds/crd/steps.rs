//! The steps from a new definition to one that is served, which the API server's own controllers
//! take.

use homeostat_schema::aggregate;
use serde_json::{Value, json};

use super::conditions::{Condition, find, is_true, set, with_condition};
use super::conversion::has_wrong_bundle;
use super::names_in_use::{UsedNames, accepted, names};
use super::{Approval, is_protected, text};
use crate::fields::{Fields, read_path};
use crate::kinds::Names;

/// Returns the next state of a definition's status; `None` if nothing is left to do.
pub(crate) fn next(definition: &Fields, used: UsedNames<'_>, now: &str) -> Option<Fields> {
    name(definition, used, now)
        .or_else(|| approve(definition, now))
        .or_else(|| establish(definition, now))
}

/// Accepts the names that no other definition uses.
fn name(definition: &Fields, used: UsedNames<'_>, now: &str) -> Option<Fields> {
    let requested = names(read_path(definition, "spec.names"));
    let before = accepted(definition);
    if requested == before && find(definition, "NamesAccepted").is_some() {
        return None;
    }
    let (after, conflict) = claim(&requested, &before, used);
    let is_accepted = conflict.is_none();
    let condition = match conflict {
        Some((reason, message)) => {
            Condition::new("NamesAccepted", "False", reason).with_message(message)
        }
        None => Condition::new("NamesAccepted", "True", "NoConflicts")
            .with_message("no conflicts found"),
    };
    if after == before && condition.is_set(definition) {
        return None;
    }
    let mut new = definition.clone();
    if let Some(status) = new.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("acceptedNames".to_owned(), to_json(&after));
    }
    set(&mut new, &condition, now);
    if !is_true(definition, "Established") {
        let condition = if is_accepted {
            Condition::new("Established", "False", "Installing")
                .with_message("the initial names have been accepted")
        } else {
            Condition::new("Established", "False", "NotAccepted")
                .with_message("not all names are accepted")
        };
        set(&mut new, &condition, now);
    }
    Some(new)
}

/// Returns the names that a definition gets, and the reason and text of the last conflict.
fn claim(
    requested: &Names,
    before: &Names,
    used: UsedNames<'_>,
) -> (Names, Option<(&'static str, String)>) {
    let mut after = before.clone();
    after.categories.clone_from(&requested.categories);
    let resource = |name: &str| used.has_resource(name);
    let kind = |name: &str| used.has_kind(name);
    let conflicts = [
        ("PluralConflict", take(&requested.plural, &mut after.plural, &resource)),
        ("SingularConflict", take(&requested.singular, &mut after.singular, &resource)),
        ("ShortNamesConflict", take_short(requested, &mut after, used)),
        ("KindConflict", take(&requested.kind, &mut after.kind, &kind)),
        ("ListKindConflict", take(&requested.list_kind, &mut after.list_kind, &kind)),
    ];
    let last = conflicts.into_iter().rev().find_map(|(reason, text)| Some((reason, text?)));
    (after, last)
}

/// Gives a definition a name; returns the text of the conflict if another one uses it.
fn take(wanted: &str, own: &mut String, is_used: &dyn Fn(&str) -> bool) -> Option<String> {
    if wanted != own && is_used(wanted) {
        return Some(in_use(wanted));
    }
    wanted.clone_into(own);
    None
}

/// Gives a definition its short names; returns the text of the conflict if others use some.
fn take_short(requested: &Names, after: &mut Names, used: UsedNames<'_>) -> Option<String> {
    let new = requested.short_names.iter().filter(|name| !after.short_names.contains(name));
    let taken: Vec<String> =
        new.filter(|name| used.has_resource(name)).map(|name| in_use(name)).collect();
    if taken.is_empty() {
        after.short_names.clone_from(&requested.short_names);
        return None;
    }
    Some(aggregate(taken))
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", homeostat_core::go_quote(name))
}

fn to_json(names: &Names) -> Value {
    let mut accepted = json!({"plural": names.plural, "kind": names.kind});
    for (key, value) in [("singular", &names.singular), ("listKind", &names.list_kind)] {
        if !value.is_empty() {
            accepted[key] = json!(value);
        }
    }
    for (key, list) in [("shortNames", &names.short_names), ("categories", &names.categories)] {
        if !list.is_empty() {
            accepted[key] = json!(list);
        }
    }
    accepted
}

/// Reports the approval of a definition in a group of Kubernetes.
fn approve(definition: &Fields, now: &str) -> Option<Fields> {
    if !is_protected(text(definition, "spec.group")) {
        return None;
    }
    let (status, reason, message) = match Approval::of(definition) {
        Approval::Missing(message) => ("False", "MissingAnnotation", message),
        Approval::Invalid(message) => ("False", "InvalidAnnotation", message),
        Approval::Bypassed(message) => ("False", "UnapprovedAnnotation", message),
        Approval::Approved(message) => ("True", "ApprovedAnnotation", message),
    };
    let kind = "KubernetesAPIApprovalPolicyConformant";
    with_condition(definition, &Condition::new(kind, status, reason).with_message(message), now)
}

/// Establishes a definition whose names are accepted, unless its webhook cannot be verified.
fn establish(definition: &Fields, now: &str) -> Option<Fields> {
    if !is_true(definition, "NamesAccepted") || is_true(definition, "Established") {
        return None;
    }
    let condition = if has_wrong_bundle(definition) {
        Condition::new("Established", "False", "InvalidCABundle")
            .with_message("The conversion webhook CABundle is invalid")
    } else {
        Condition::new("Established", "True", "InitialNamesAccepted")
            .with_message("the initial names have been accepted")
    };
    with_condition(definition, &condition, now)
}

#[cfg(test)]
mod tests {
    use super::super::names_in_use::NamesInUse;
    use super::*;

    #[test]
    fn conflict_of_short_names_hides_that_of_the_singular() {
        let used = json!({"status": {"acceptedNames": {
            "plural": "bars", "singular": "bar", "shortNames": ["s"], "kind": "Bar",
        }}});
        let mut names = NamesInUse::default();
        names.record("bars.example.com", used.as_object());
        let requested = Names {
            plural: "foos".to_owned(),
            singular: "bar".to_owned(),
            short_names: vec!["s".to_owned()],
            kind: "Foo".to_owned(),
            ..Names::default()
        };
        let of_others = names.of_others("foos.example.com");
        let (after, conflict) = claim(&requested, &Names::default(), of_others);
        let text = "\"s\" is already in use".to_owned();
        assert_eq!(conflict, Some(("ShortNamesConflict", text)));
        assert_eq!((after.plural.as_str(), after.singular.as_str()), ("foos", ""));

        let twice = Names { short_names: vec!["s".to_owned(); 2], ..requested.clone() };
        let (_, conflict) = claim(&twice, &Names::default(), of_others);
        let text = "\"s\" is already in use".to_owned();
        assert_eq!(conflict, Some(("ShortNamesConflict", text)));

        let requested = Names { kind: "Bar".to_owned(), ..requested };
        let (_, conflict) = claim(&requested, &Names::default(), of_others);
        assert_eq!(conflict.map(|(reason, _)| reason), Some("KindConflict"));
    }
}
