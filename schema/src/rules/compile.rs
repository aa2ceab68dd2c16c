//! Compiles the rules of a schema.

use serde_json::Value;

use super::{Place, Rule, field_path};
use crate::cel::{self, Expr, Type};
use crate::open_api::{flag, members, texts};

pub(super) const RULES: &str = "x-kubernetes-validations";

/// Levels of nesting of a schema whose rules are compiled, as of those that are read.
pub(super) const MAX_DEPTH: usize = 100;

/// Returns the rules of a schema; `None` if it has none.
pub(super) fn compile(schema: &Value) -> Option<Place> {
    place(schema, Type::of_schema(schema, true), MAX_DEPTH)
}

/// Returns the rules of the schema of a part; `None` if it has none.
pub(super) fn compile_part(schema: &Value) -> Option<Place> {
    let is_object = flag(schema, "x-kubernetes-embedded-resource");
    place(schema, Type::of_schema(schema, is_object), MAX_DEPTH)
}

pub(super) fn has_rules(schema: &Value, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    rules_of(schema).next().is_some() || parts(schema).any(|(_, part)| has_rules(part, depth))
}

pub(super) fn rules_of(schema: &Value) -> impl Iterator<Item = &Value> {
    schema.get(RULES).and_then(Value::as_array).into_iter().flatten()
}

/// The position of a schema inside of another one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    Field(&'a str),
    Values,
    Items,
}

pub(super) fn parts(schema: &Value) -> impl Iterator<Item = (Part<'_>, &Value)> {
    let fields = members(schema, "properties").into_iter().flatten();
    let fields = fields.map(|(name, part)| (Part::Field(name), part));
    let of = |name: &str| schema.get(name).filter(|part| part.is_object());
    let values = of("additionalProperties").map(|part| (Part::Values, part));
    fields.chain(values).chain(of("items").map(|part| (Part::Items, part)))
}

/// Returns the type of a part of a value.
pub(super) fn type_of(part: Part<'_>, schema: &Value, around: Option<&Type>) -> Option<Type> {
    match (part, around?) {
        (Part::Field(name), Type::Object(object)) => {
            match cel::escape(name) {
                Some(escaped) => object.fields.get(&escaped).map(|field| field.value.clone()),
                // Expressions cannot write the name, but rules of the value itself can run.
                None => Type::of_schema(schema, flag(schema, "x-kubernetes-embedded-resource")),
            }
        }
        (Part::Values, Type::Map(_, values)) => Some(values.as_ref().clone()),
        (Part::Items, Type::List(items)) => Some(items.as_ref().clone()),
        _ => None,
    }
}

fn place(schema: &Value, kind: Option<Type>, depth: usize) -> Option<Place> {
    let depth = depth.checked_sub(1)?;
    let stated = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_map = schema.get("x-kubernetes-list-type").and_then(Value::as_str) == Some("map");
    let rules = kind
        .iter()
        .flat_map(|kind| rules_of(schema).filter_map(move |rule| compile_rule(rule, schema, kind)));
    let mut found = Place {
        type_name: stated.to_owned(),
        rules: rules.collect(),
        fields: Vec::new(),
        values: None,
        items: None,
        keys: is_map
            .then(|| texts(schema.get("x-kubernetes-list-map-keys")).map(str::to_owned).collect()),
        is_untyped: kind.is_none() && rules_of(schema).next().is_some(),
        kind: None,
    };
    for (part, inner) in parts(schema) {
        let inner_kind = type_of(part, inner, kind.as_ref());
        if inner_kind.is_none() && matches!(part, Part::Field(_)) {
            continue;
        }
        let Some(inner) = place(inner, inner_kind, depth) else { continue };
        match part {
            Part::Field(name) => found.fields.push((name.to_owned(), inner)),
            Part::Values => found.values = Some(Box::new(inner)),
            Part::Items => found.items = Some(Box::new(inner)),
        }
    }
    found.kind = kind;
    let is_empty = found.rules.is_empty()
        && !found.is_untyped
        && found.fields.is_empty()
        && found.values.is_none()
        && found.items.is_none();
    (!is_empty).then_some(found)
}

pub(super) fn text<'a>(rule: &'a Value, name: &str) -> &'a str {
    rule.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn compile_rule(rule: &Value, schema: &Value, kind: &Type) -> Option<Rule> {
    let expr = compile_expr(text(rule, "rule"), kind, rule, &Type::Bool).ok()?;
    let message = text(rule, "messageExpression");
    let message =
        (!message.is_empty()).then(|| compile_expr(message, kind, rule, &Type::String).ok());
    let stated = text(rule, "message").trim();
    Some(Rule {
        uses_old: expr.uses("oldSelf"),
        expr,
        text: if stated.is_empty() { text(rule, "rule").trim() } else { stated }.to_owned(),
        has_message: !stated.is_empty(),
        message: message.flatten(),
        reason: rule.get("reason").and_then(Value::as_str).map(str::to_owned),
        path: field_path::normalized(text(rule, "fieldPath"), schema),
        old_is_optional: flag(rule, "optionalOldSelf"),
    })
}

/// Compiles an expression whose value has the type `wanted`.
pub(super) fn compile_expr(
    source: &str,
    kind: &Type,
    rule: &Value,
    wanted: &Type,
) -> Result<Expr, String> {
    let (subject, prefix) = match wanted {
        Type::Bool => ("cel expression must evaluate to a bool", ""),
        _ => ("messageExpression must evaluate to a string", "messageExpression "),
    };
    let failed =
        |issues: cel::Issues| format!("{prefix}compilation failed: {}", issues.show(source));
    let mut expr = cel::parse(source).map_err(failed)?;
    let is_optional = flag(rule, "optionalOldSelf");
    let old = if is_optional { Type::optional(kind.clone()) } else { kind.clone() };
    let scope = cel::Scope::of(&[("self", kind.clone()), ("oldSelf", old)]);
    let found = cel::check(&mut expr, &scope).map_err(failed)?;
    if found != *wanted {
        return Err(subject.to_owned());
    }
    let step = if *wanted == Type::Bool { "program" } else { "messageExpression" };
    cel::instantiate(&expr).map_err(|problem| format!("{step} instantiation failed: {problem}"))?;
    Ok(expr)
}
