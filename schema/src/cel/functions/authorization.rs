//! The authorizer: checks of what a user may do.

use std::rc::Rc;

use super::Result;
use crate::authorizer::{AccessCheck, AccessDecision, Authorizer};
use crate::cel::error::EvalError;
use crate::cel::steps::Steps;
use crate::cel::value::Value;
use crate::names;

/// The steps of one check, as upstream counts them.
const STEPS_OF_CHECK: usize = 350_000;

/// A value of the library of the authorizer.
#[derive(Debug, Clone)]
pub(crate) struct Authorization<'a> {
    stage: Stage,
    authorizer: &'a dyn Authorizer,
    check: AccessCheck,
    decision: AccessDecision,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Authorizer,
    Path,
    Group,
    Resource,
    Decision,
}

// === impl Authorization ===

impl<'a> Authorization<'a> {
    /// Creates the value of the variable `authorizer`.
    pub(crate) fn new(authorizer: &'a dyn Authorizer) -> Self {
        let (check, decision) = Default::default();
        Self { stage: Stage::Authorizer, authorizer, check, decision }
    }

    /// Creates the value of the variable `authorizer.requestResource`.
    pub(crate) fn of_request(authorizer: &'a dyn Authorizer, check: AccessCheck) -> Self {
        Self { stage: Stage::Resource, check, ..Self::new(authorizer) }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self.stage {
            Stage::Authorizer => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
            Stage::Decision => "kubernetes.authorization.Decision",
        }
    }

    fn at(&self, stage: Stage, change: impl FnOnce(&mut AccessCheck)) -> Value<'a> {
        let mut next = self.clone();
        next.stage = stage;
        change(&mut next.check);
        Value::Authorization(Rc::new(next))
    }

    fn with_account(&self, namespace: &str, name: &str) -> Result<'a> {
        let invalid = |what: &str| Err(EvalError::new(format!("Invalid service account {what}")));
        if !names::dns_subdomain(name).is_empty() {
            return invalid("name");
        }
        if !names::dns_label(namespace).is_empty() {
            return invalid("namespace");
        }
        let account = Some((namespace.to_owned(), name.to_owned()));
        Ok(self.at(Stage::Authorizer, |check| check.account = account))
    }

    fn decided(&self, steps: &Steps, verb: &str) -> Result<'a> {
        steps.spend(STEPS_OF_CHECK)?;
        let mut next = self.clone();
        next.stage = Stage::Decision;
        verb.clone_into(&mut next.check.verb);
        next.decision = self.authorizer.authorize(&next.check);
        Ok(Value::Authorization(Rc::new(next)))
    }
}

pub(super) fn call<'a>(steps: &Steps, name: &str, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    let (Value::Authorization(of), rest) = arguments.split_first()? else { return None };
    Some(match (of.stage, name, rest) {
        (Stage::Authorizer, "path", [Value::String(path)]) => match path.trim() {
            "" => Err(EvalError::new("path must not be empty")),
            _ => Ok(of.at(Stage::Path, |check| check.path = Some(path.to_string()))),
        },
        (Stage::Authorizer, "group", [Value::String(group)]) => {
            Ok(of.at(Stage::Group, |check| check.group = group.to_string()))
        }
        (Stage::Authorizer, "serviceAccount", [Value::String(namespace), Value::String(name)]) => {
            of.with_account(namespace, name)
        }
        (Stage::Group, "resource", [Value::String(resource)]) => match resource.trim() {
            "" => Err(EvalError::new("resource must not be empty")),
            _ => Ok(of.at(Stage::Resource, |check| check.resource = resource.to_string())),
        },
        (Stage::Resource, _, [Value::String(text)]) if name != "check" => narrowed(of, name, text)?,
        (Stage::Path | Stage::Resource, "check", [Value::String(verb)]) => of.decided(steps, verb),
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
        "subresource" => of.at(Stage::Resource, |check| check.subresource = text),
        "namespace" => of.at(Stage::Resource, |check| check.namespace = text),
        "name" => of.at(Stage::Resource, |check| check.name = text),
        // Roles do not know selectors.
        "fieldSelector" | "labelSelector" => of.at(Stage::Resource, |_| {}),
        _ => return None,
    }))
}
