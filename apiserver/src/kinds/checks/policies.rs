//! Policies of admission.

use homeostat_schema::{Policy, is_cel_identifier};
use serde_json::{Value, json};

use super::Test::{By, Each, OneOf, Required};
use super::admission_rules::{self as rules, FAILURE_POLICY, MATCH, REINVOCATION, is_blank};
use super::{Causes, Check, check_text, conditions, is_empty, items, join, member, text};
use crate::fields::{Fields, read_path};
use crate::names::{self, Problems};
use crate::status::Cause;

/// The most annotations of a policy, and the longest expression of one.
const MAX_ANNOTATIONS: usize = 20;
const MAX_ANNOTATION: usize = 5 * 1024;

const NOTHING: &str = "validations or auditAnnotations must contain at least one item";
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// The checks that both kinds of policies start with.
const COMMON: &[Check] = &[
    FAILURE_POLICY,
    ("paramKind", By(param_kind)),
    ("matchConstraints", Required("")),
    ("matchConstraints", By(constraints)),
];
const VARIABLE: &[Check] = &[("name", By(variable_name)), ("expression", By(specified))];

pub(crate) fn validating(policy: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const REST: &[Check] =
        &[("matchConditions", By(rules::conditions)), ("variables", Each(VARIABLE))];
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    super::run(COMMON, spec, "spec", causes);
    super::run(REST, spec, "spec", causes);
    let (validations, annotations) =
        (member(spec, "validations"), member(spec, "auditAnnotations"));
    if is_empty(validations) && is_empty(annotations) {
        causes.push(Cause::required("spec.validations", NOTHING));
        causes.push(Cause::required("spec.auditAnnotations", NOTHING));
    }
    super::run(&[("validations", Each(VALIDATION))], spec, "spec", causes);
    let name = read_path(policy, "metadata.name").and_then(Value::as_str).unwrap_or_default();
    audit_annotations(name, items(annotations), causes);
    compile(spec, causes);
    rules::name(policy, old, causes);
    let status: &[Check] =
        &[("typeChecking.expressionWarnings", Each(WARNING)), ("conditions", By(conditions::list))];
    super::run(status, policy.get("status").unwrap_or(&Value::Null), "status", causes);
}

/// A warning of the type checker. Its path is not parsed.
const WARNING: &[Check] = &[("warning", Required("")), ("fieldRef", By(rules::expression))];

pub(crate) fn mutating(policy: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const REST: &[Check] = &[
        ("matchConditions", By(rules::conditions)),
        ("variables", Each(VARIABLE)),
        ("mutations", Required("mutations must contain at least one item")),
        ("mutations", Each(&[("", By(mutation))])),
    ];
    const LAST: &[Check] =
        &[("reinvocationPolicy", Required("")), ("reinvocationPolicy", OneOf(REINVOCATION))];
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    super::run(COMMON, spec, "spec", causes);
    super::run(&[("matchConstraints", By(no_deletes))], spec, "spec", causes);
    super::run(REST, spec, "spec", causes);
    compile(spec, causes);
    super::run(LAST, spec, "spec", causes);
    rules::name(policy, old, causes);
}

// === what policies apply to ===

fn constraints(_: &Value, constraints: &Value, at: &str, causes: Causes<'_>) {
    if constraints.is_null() {
        return;
    }
    super::run(MATCH, constraints, at, causes);
    super::run(&[("resourceRules", Required(""))], constraints, at, causes);
}

/// Checks that rules name only operations that can be mutated. As in upstream, the path has no
/// place.
pub(super) fn no_deletes(_: &Value, constraints: &Value, at: &str, causes: Causes<'_>) {
    const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];
    let rules = items(member(constraints, "resourceRules")).iter();
    for operation in rules.flat_map(|rule| items(member(rule, "operations"))) {
        if !OPERATIONS.iter().any(|known| operation == known) {
            let at = join(at, "resourceRules.operations");
            causes.push(Cause::unsupported(at, operation, OPERATIONS));
        }
    }
}

fn param_kind(_: &Value, kind: &Value, at: &str, causes: Causes<'_>) {
    if kind.is_null() {
        return;
    }
    let at_version = join(at, "apiVersion");
    match text(kind, "apiVersion") {
        "" => causes.push(Cause::required(at_version, "")),
        version => group_version(version, &at_version, causes),
    }
    let at = join(at, "kind");
    let name = text(kind, "kind");
    let problems = names::rfc_1035_label(&name.to_lowercase());
    if name.is_empty() {
        causes.push(Cause::required(at, ""));
    } else if !problems.is_empty() {
        let problems = problems.join(",");
        let detail = format!("may have mixed case, but should otherwise match: {problems}");
        causes.push(Cause::invalid(at, &json!(name), &detail));
    }
}

fn group_version(text: &str, at: &str, causes: Causes<'_>) {
    if text.matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {text}");
        causes.push(Cause::invalid(at, &json!(text), &detail));
        return;
    }
    let (group, version) = text.split_once('/').unwrap_or(("", text));
    let mut joined = |shown: &str, problems: Problems| {
        if !problems.is_empty() {
            causes.push(Cause::invalid(at, &json!(shown), &problems.join(",")));
        }
    };
    if !group.is_empty() {
        joined(group, names::dns_subdomain(group));
    }
    if version.is_empty() {
        joined(text, vec!["version must be specified".into()]);
    } else {
        joined(version, names::rfc_1035_label(version));
    }
}

// === expressions ===

/// The lists of expressions with their members, in the order in which errors are reported.
const EXPRESSIONS: [(&str, &[&str]); 5] = [
    ("matchConditions", &["expression", "name"]),
    ("variables", &["name", "expression"]),
    ("validations", &["expression", "messageExpression", "message", "reason"]),
    ("auditAnnotations", &["key", "valueExpression"]),
    ("mutations", MUTATION),
];
/// The members of a mutation. An error about the member of another type comes last.
const MUTATION: &[&str] =
    &["applyConfiguration.expression", "jsonPatch.expression", "applyConfiguration", "jsonPatch"];

/// Reports the expressions that do not compile, each among the other errors of its list.
fn compile(spec: &Value, causes: Causes<'_>) {
    for problem in Policy::problems(spec) {
        let problem = Cause::from(problem);
        let place = place(problem.field());
        let next = causes.iter().position(|cause| self::place(cause.field()) > place);
        causes.insert(next.unwrap_or(causes.len()), problem);
    }
}

/// Returns the position of an error about an expression: its list, item and member. `None`, for
/// other fields, comes first.
fn place(field: &str) -> Option<(usize, usize, usize)> {
    let (list, rest) = field.strip_prefix("spec.")?.split_once('[')?;
    let (item, member) = rest.split_once("].")?;
    let list = EXPRESSIONS.iter().position(|(name, _)| *name == list)?;
    let member = EXPRESSIONS[list].1.iter().position(|name| *name == member)?;
    Some((list, item.parse().ok()?, member))
}

fn specified(_: &Value, expression: &Value, at: &str, causes: Causes<'_>) {
    if is_blank(expression) {
        causes.push(Cause::required(at, "expression is not specified"));
    }
}

fn variable_name(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    if is_blank(name) {
        causes.push(Cause::required(at, "name is not specified"));
    } else if !name.as_str().is_some_and(is_cel_identifier) {
        causes.push(Cause::invalid(at, name, "must be a valid CEL identifier"));
    }
}

const VALIDATION: &[Check] = &[
    ("expression", By(specified)),
    ("messageExpression", By(not_blank)),
    ("message", By(not_blank)),
    ("message", By(one_line)),
    ("reason", OneOf(REASONS)),
];

fn not_blank(_: &Value, text: &Value, at: &str, causes: Causes<'_>) {
    if !is_empty(text) && is_blank(text) {
        causes.push(Cause::invalid(at, text, "must be non-empty if specified"));
    }
}

fn one_line(_: &Value, text: &Value, at: &str, causes: Causes<'_>) {
    if text.as_str().is_some_and(|text| text.trim().contains(['\n', '\r'])) {
        causes.push(Cause::invalid(at, text, "must not contain line breaks"));
    }
}

fn audit_annotations(policy: &str, all: &[Value], causes: Causes<'_>) {
    const AT: &str = "spec.auditAnnotations";
    if all.len() > MAX_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_ANNOTATIONS} auditAnnotations");
        let shown = all.iter().map(|one| {
            json!({"Key": member(one, "key"), "ValueExpression": member(one, "valueExpression")})
        });
        causes.push(Cause::invalid(AT, &shown.collect(), &detail));
    }
    let mut known = Vec::new();
    for (place, annotation) in all.iter().enumerate() {
        let at = format!("{AT}[{place}]");
        let key = text(annotation, "key");
        let full = json!(format!("{policy}/{key}"));
        check_text(&full, names::qualified, &join(&at, "key"), causes);
        let expression = text(annotation, "valueExpression").trim();
        let mut refuse = |detail: &str| {
            causes.push(Cause::required(join(&at, "valueExpression"), detail));
        };
        if expression.is_empty() {
            refuse("valueExpression is not specified");
        } else if expression.len() > MAX_ANNOTATION {
            refuse(&format!("must not exceed {MAX_ANNOTATION} bytes in length"));
        }
        if known.contains(&key) {
            causes.push(Cause::duplicate(join(&at, "key"), &json!(key)));
        }
        known.push(key);
    }
}

// === mutations ===

/// The types of mutations, their members, and how a message shows them.
const PATCHES: [(&str, &str, &str); 2] = [
    ("ApplyConfiguration", "applyConfiguration", "{applyConfiguration}"),
    ("JSONPatch", "jsonPatch", "{jsonPatch}"),
];

fn mutation(_: &Value, mutation: &Value, at: &str, causes: Causes<'_>) {
    const TYPES: &[&str] = &[PATCHES[0].0, PATCHES[1].0];
    const PATCH: &[Check] = &[("expression", By(rules::expression))];
    let of_type = text(mutation, "patchType");
    let own = PATCHES.iter().find(|(name, ..)| *name == of_type);
    let Some((_, own, _)) = own else {
        super::run(&[("patchType", Required(""))], mutation, at, causes);
        if !of_type.is_empty() {
            causes.push(Cause::unsupported(join(at, "patchType"), &json!(of_type), TYPES));
        }
        return;
    };
    if member(mutation, own).is_null() {
        let detail = format!("must be specified when patchType is {of_type}");
        causes.push(Cause::required(join(at, own), &detail));
    } else {
        super::run(PATCH, member(mutation, own), &join(at, own), causes);
    }
    for (_, other, shown) in PATCHES.iter().filter(|(_, name, _)| name != own) {
        if !member(mutation, other).is_null() {
            let detail = format!("must not be specified when patchType is {of_type}");
            causes.push(Cause::invalid(join(at, other), &json!(shown), &detail));
        }
    }
}
