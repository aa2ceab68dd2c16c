//! The validation of a definition, with the texts of `apiextensions-apiserver`.

use homeostat_schema::FieldError;
use serde_json::{Value, json};

use super::{APPROVED, Approval, conditions, conversion, is_protected, schemas, text};
use crate::fields::{Fields, read_path};
use crate::names::{self, Problems};
use crate::status::Cause;

/// Checks a definition, except for its metadata. An unchanged `spec` is not checked again.
pub(crate) fn validate(new: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    let mut errors = Vec::new();
    let is_same = old.is_some_and(|old| old.get("spec") == new.get("spec"));
    if !is_same && let Some(spec) = new.get("spec").and_then(Value::as_object) {
        if old.is_none() {
            check_name(new, &mut errors);
        }
        check_spec(spec, &mut errors);
        causes.extend(errors.drain(..).map(Cause::from));
        conversion::check(spec, old, causes);
        if let Some(old) = old {
            check_immutable(new, old, &mut errors);
        }
    }
    if let Some(accepted) = read_path(new, "status.acceptedNames").and_then(Value::as_object) {
        check_names(accepted, "status.acceptedNames", &mut errors);
    }
    if !is_same {
        check_stored_versions(new, &mut errors);
    }
    check_approval(new, old, &mut errors);
    if !is_same {
        check_preservation(new, &mut errors);
    }
    causes.extend(errors.into_iter().map(Cause::from));
}

fn check_name(definition: &Fields, errors: &mut Vec<FieldError>) {
    let (plural, group) = (text(definition, "spec.names.plural"), text(definition, "spec.group"));
    let detail = "must be spec.names.plural+\".\"+spec.group";
    for path in ["metadata.generateName", "metadata.name"] {
        let name = text(definition, path);
        if !name.is_empty() && name != format!("{plural}.{group}") {
            errors.push(FieldError::invalid(path, &name.into(), detail));
        }
    }
}

fn check_spec(spec: &Fields, errors: &mut Vec<FieldError>) {
    check_group(text(spec, "group"), errors);
    match text(spec, "scope") {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => {
            let allowed = [json!("Cluster"), json!("Namespaced")];
            errors.push(FieldError::not_supported("spec.scope", &other.into(), &allowed));
        }
    }
    let no_versions = Vec::new();
    let stated = spec.get("versions").and_then(Value::as_array);
    let versions = stated.unwrap_or(&no_versions);
    schemas::check_presence(versions, errors);
    let preserves = spec.get("preserveUnknownFields") == Some(&json!(true));
    if preserves && versions.iter().any(schemas::has_default) {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &json!(true), detail));
    }
    schemas::check(versions, errors);
    check_version_list(stated, errors);
    let first = versions.first().and_then(|first| first.get("name"));
    if let Some(first) = first.filter(|first| **first != json!("")) {
        let problems = names::rfc_1035_label(first.as_str().unwrap_or_default());
        if !problems.is_empty() {
            // The real server keeps the first version in a field of its own, too.
            errors.push(FieldError::invalid("spec.version", first, &problems.join(",")));
        }
    }
    let no_names = Fields::new();
    let names = spec.get("names").and_then(Value::as_object).unwrap_or(&no_names);
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(names, key).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{key}"), ""));
        }
    }
    check_names(names, "spec.names", errors);
    schemas::check_shared(versions, errors);
}

fn check_preservation(definition: &Fields, errors: &mut Vec<FieldError>) {
    let path = "spec.preserveUnknownFields";
    if read_path(definition, path) == Some(&json!(true)) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.push(FieldError::invalid(path, &json!(true), detail));
    }
}

fn check_group(group: &str, errors: &mut Vec<FieldError>) {
    let problems = names::dns_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !problems.is_empty() {
        errors.push(FieldError::invalid("spec.group", &group.into(), &problems.join(",")));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", &group.into(), detail));
    }
}

fn check_version_list(stated: Option<&Vec<Value>>, errors: &mut Vec<FieldError>) {
    let versions = stated.map(Vec::as_slice).unwrap_or_default();
    let name = |version: &Value| version.get("name").and_then(Value::as_str).map(str::to_owned);
    let mut names: Vec<_> = versions.iter().map(name).collect();
    names.sort();
    let count = names.len();
    names.dedup();
    let shown = stated.map(|versions| schemas::internal(versions)).unwrap_or_default();
    if names.len() < count {
        let detail = "must contain unique version names";
        errors.push(FieldError::invalid("spec.versions", &shown, detail));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", &shown, detail));
    }
}

/// Checks the names that are given. An empty element of a list is a name, too.
fn check_names(names: &Fields, at: &str, errors: &mut Vec<FieldError>) {
    let wrong = |path: String, name: &str, problems: Problems, prefix: &str| {
        let detail = format!("{prefix}{}", problems.join(","));
        (!problems.is_empty()).then(|| FieldError::invalid(path, &name.into(), &detail))
    };
    let given = |key: &&str| !text(names, key).is_empty();
    errors.extend(["plural", "singular"].into_iter().filter(given).filter_map(|key| {
        let name = text(names, key);
        wrong(format!("{at}.{key}"), name, names::rfc_1035_label(name), "")
    }));
    let mixed = "may have mixed case, but should otherwise match: ";
    errors.extend(["kind", "listKind"].into_iter().filter(given).filter_map(|key| {
        let name = text(names, key);
        wrong(format!("{at}.{key}"), name, names::rfc_1035_label(&name.to_lowercase()), mixed)
    }));
    let list = |key: &str| {
        let list = names.get(key).and_then(Value::as_array).into_iter().flatten();
        let texts = list.filter_map(Value::as_str).enumerate().filter_map(|(index, name)| {
            wrong(format!("{at}.{key}[{index}]"), name, names::rfc_1035_label(name), "")
        });
        texts.collect::<Vec<_>>()
    };
    errors.extend(list("shortNames"));
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(format!("{at}.listKind"), &list_kind.into(), detail));
    }
    errors.extend(list("categories"));
}

fn check_immutable(new: &Fields, old: &Fields, errors: &mut Vec<FieldError>) {
    let established = ["spec.scope", "spec.names.kind"];
    let is_established = conditions::is_true(old, "Established");
    let paths = established.iter().filter(|_| is_established);
    for path in paths.chain(&["spec.group", "spec.names.plural"]) {
        let (value, before) = (read_path(new, path), read_path(old, path));
        if value != before {
            let value = value.unwrap_or(&Value::Null);
            errors.push(FieldError::invalid(*path, value, "field is immutable"));
        }
    }
}

fn check_stored_versions(definition: &Fields, errors: &mut Vec<FieldError>) {
    let path = "status.storedVersions";
    let stored = read_path(definition, path).and_then(Value::as_array);
    let Some(stored) = stored.filter(|stored| !stored.is_empty()) else {
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid(path, &Value::Null, detail));
        return;
    };
    for version in super::versions(definition).filter(|version| version["storage"] == true) {
        if let Some(name) = version.get("name").filter(|name| !stored.contains(name)) {
            let shown = name.as_str().unwrap_or_default();
            let detail = format!("must have the storage version {shown}");
            errors.push(FieldError::invalid(path, &json!(stored), &detail));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if super::versions(definition).all(|version| version.get("name") != Some(name)) {
            let shown = name.as_str().unwrap_or_default();
            let detail = format!(
                "missing from spec.versions; {shown} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {shown} and removes {shown} from status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("{path}[{index}]"), name, &detail));
        }
    }
}

fn check_approval(new: &Fields, old: Option<&Fields>, errors: &mut Vec<FieldError>) {
    if !is_protected(text(new, "spec.group")) {
        return;
    }
    let approval = Approval::of(new);
    let same = |old: &Fields| {
        std::mem::discriminant(&Approval::of(old)) == std::mem::discriminant(&approval)
    };
    if old.is_some_and(same) {
        return;
    }
    let path = format!("metadata.annotations[{APPROVED}]");
    let annotations = read_path(new, "metadata.annotations");
    let value = annotations.and_then(|annotations| annotations.get(APPROVED)).cloned();
    match approval {
        Approval::Missing(reason) => errors.push(FieldError::required(path, &reason)),
        Approval::Invalid(reason) => {
            errors.push(FieldError::invalid(path, &value.unwrap_or_default(), &reason));
        }
        Approval::Bypassed(_) | Approval::Approved(_) => {}
    }
}
