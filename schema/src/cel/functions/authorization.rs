//! The functions of the authorizer.

use std::rc::Rc;

use super::Result;
use crate::authorizer::AccessCheck;
use crate::cel::authorization::{Authorization, Stage};
use crate::cel::error::EvalError;
use crate::cel::steps::Steps;
use crate::cel::value::Value;
use crate::names;

/// The steps of one check, as upstream counts them.
const STEPS_OF_CHECK: usize = 350_000;

pub(super) fn call<'a>(steps: &Steps, name: &str, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    let (Value::Authorization(of), rest) = arguments.split_first()? else { return None };
    Some(match (of.stage, name, rest) {
        (Stage::Authorizer, "path", [Value::String(path)]) => match path.trim() {
            "" => Err(EvalError::new("path must not be empty")),
            _ => Ok(at(of, Stage::Path, |check| check.path = Some(path.to_string()))),
        },
        (Stage::Authorizer, "group", [Value::String(group)]) => {
            Ok(at(of, Stage::Group, |check| check.group = group.to_string()))
        }
        (Stage::Authorizer, "serviceAccount", [Value::String(namespace), Value::String(name)]) => {
            with_account(of, namespace, name)
        }
        (Stage::Group, "resource", [Value::String(resource)]) => match resource.trim() {
            "" => Err(EvalError::new("resource must not be empty")),
            _ => Ok(at(of, Stage::Resource, |check| check.resource = resource.to_string())),
        },
        (Stage::Resource, _, [Value::String(text)]) if name != "check" => narrowed(of, name, text)?,
        (Stage::Path | Stage::Resource, "check", [Value::String(verb)]) => decided(of, steps, verb),
        // The decision of roles has no errors.
        (Stage::Decision, "errored", []) => Ok(Value::Bool(false)),
        (Stage::Decision, "error", []) => Ok(Value::from("")),
        (Stage::Decision, "allowed", []) => Ok(Value::Bool(of.decision.allowed)),
        (Stage::Decision, "reason", []) => Ok(Value::text(of.decision.reason.as_str())),
        _ => return None,
    })
}

fn narrowed<'a>(of: &Authorization<'a>, name: &str, text: &str) -> Option<Result<'a>> {
    let text = text.to_owned();
    Some(Ok(match name {
        "subresource" => at(of, Stage::Resource, |check| check.subresource = text),
        "namespace" => at(of, Stage::Resource, |check| check.namespace = text),
        "name" => at(of, Stage::Resource, |check| check.name = text),
        // Roles do not know selectors.
        "fieldSelector" | "labelSelector" => at(of, Stage::Resource, |_| {}),
        _ => return None,
    }))
}

fn at<'a>(
    of: &Authorization<'a>,
    stage: Stage,
    change: impl FnOnce(&mut AccessCheck),
) -> Value<'a> {
    Value::Authorization(Rc::new(of.at(stage, change)))
}

fn with_account<'a>(of: &Authorization<'a>, namespace: &str, name: &str) -> Result<'a> {
    let invalid = |what: &str| Err(EvalError::new(format!("Invalid service account {what}")));
    if !names::dns_subdomain(name).is_empty() {
        return invalid("name");
    }
    if !names::dns_label(namespace).is_empty() {
        return invalid("namespace");
    }
    let account = Some((namespace.to_owned(), name.to_owned()));
    Ok(at(of, Stage::Authorizer, |check| check.account = account))
}

fn decided<'a>(of: &Authorization<'a>, steps: &Steps, verb: &str) -> Result<'a> {
    steps.spend(STEPS_OF_CHECK)?;
    Ok(Value::Authorization(Rc::new(of.decided(verb))))
}
