//! Finds the type of an expression and reports what does not fit.

mod loops;

use std::collections::HashMap;
use std::sync::Arc;

use super::error::Issues;
use super::expression::{Call, Expr, Kind, Literal, Mode, Select, Struct};
use super::literals;
use super::scope::{Scope, field_type};
use super::signature::{PATCH_FUNCTIONS, Signature, is_namespace, signatures};
use super::types::{TYPE_NAMES, Type};
use super::unify::{common, merged, substitute, unify};

/// Returns the type of an expression whose variables have these types, and notes the type of each
/// part and the form of each call in the expression.
///
/// # Errors
///
/// Returns the errors with the texts of cel-go.
pub(crate) fn check(expr: &mut Expr, scope: &Scope) -> Result<Type, Issues> {
    let mut checker = Checker { scope, variables: Vec::new(), issues: Issues::default() };
    let found = checker.check(expr);
    if checker.issues.is_empty() {
        literals::check(expr, &mut checker.issues);
    }
    if checker.issues.is_empty() { Ok(found) } else { Err(checker.issues) }
}

#[derive(Debug)]
struct Checker<'a> {
    scope: &'a Scope,
    /// The variables of loops. The innermost is the last one.
    variables: Vec<(Arc<str>, Type)>,
    issues: Issues,
}

impl Checker<'_> {
    fn variable(&self, name: &str) -> Option<&Type> {
        self.inner_variable(name).or_else(|| self.scope.get(name))
    }

    fn inner_variable(&self, name: &str) -> Option<&Type> {
        let mut inner = self.variables.iter().rev();
        inner.find(|(known, _)| known.as_ref() == name).map(|(_, found)| found)
    }

    fn check(&mut self, expr: &mut Expr) -> Type {
        let found = self.type_of(expr).limited().or_dyn();
        expr.found = found.clone();
        found
    }

    fn type_of(&mut self, expr: &mut Expr) -> Type {
        if let Some((kind, found)) = self.selected(expr) {
            expr.kind = kind;
            return found;
        }
        if let Some(kind) = self.type_name(expr) {
            expr.kind = kind;
            return Type::OfTypes;
        }
        match &mut expr.kind {
            Kind::Literal(literal) => type_of_literal(literal),
            Kind::Ident(name) => match self.variable(name) {
                Some(found) => found.clone(),
                None if TYPE_NAMES.contains(&name.as_ref()) => Type::OfTypes,
                None => self.undeclared(expr.at, name),
            },
            Kind::Select(select) => self.select(expr.at, select),
            Kind::Call(call) => self.call(expr.at, call),
            Kind::And(parts) | Kind::Or(parts) => {
                for part in parts {
                    self.condition(part);
                }
                Type::Bool
            }
            Kind::Conditional(parts) => self.conditional(expr.at, parts),
            Kind::List(items) => {
                let items: Vec<Type> = items
                    .iter_mut()
                    .map(|(item, optional)| unwrapped(self.check(item), *optional))
                    .collect();
                Type::list(common(items))
            }
            Kind::Map(entries) => {
                let mut keys = Vec::new();
                let mut values = Vec::new();
                for (key, value, optional) in entries {
                    keys.push(self.check(key));
                    values.push(unwrapped(self.check(value), *optional));
                }
                Type::map(common(keys), common(values))
            }
            Kind::Struct(inner) => self.structure(expr.at, inner),
            Kind::Macro(inner) => self.comprehension(expr.at, inner),
            Kind::Bind(bind) => self.bind(expr.at, bind),
        }
    }

    /// Returns the form and the type of an expression that selects a variable.
    fn selected(&self, expr: &Expr) -> Option<(Kind, Type)> {
        let Kind::Select(select) = &expr.kind else { return None };
        let Kind::Ident(of) = &select.operand.kind else { return None };
        let is_hidden = self.inner_variable(of).is_some();
        if is_hidden { None } else { self.scope.selected(expr.at, select) }
    }

    /// Returns the form of an expression that names a type with dots, such as `net.IP`.
    fn type_name(&self, expr: &Expr) -> Option<Kind> {
        let Kind::Select(select) = &expr.kind else { return None };
        let (mut name, mut operand) = (select.field.to_string(), &select.operand);
        let first = loop {
            match &operand.kind {
                Kind::Ident(first) => break first,
                Kind::Select(outer) if outer.mode == Mode::Value => {
                    name = format!("{}.{name}", outer.field);
                    operand = &outer.operand;
                }
                _ => return None,
            }
        };
        let name = format!("{first}.{name}");
        let is_type = select.mode == Mode::Value && TYPE_NAMES.contains(&name.as_str());
        (is_type && self.variable(first).is_none()).then(|| Kind::Ident(name.into()))
    }

    fn undeclared(&mut self, at: usize, name: &str) -> Type {
        self.issues.add(at, format!("undeclared reference to '{name}' (in container '')"));
        Type::Dyn
    }

    fn select(&mut self, at: usize, select: &mut Select) -> Type {
        let operand = self.check(&mut select.operand);
        let (operand, is_optional) = match operand {
            Type::Optional(inner) => (inner.as_ref().clone(), true),
            other => (other, false),
        };
        let found = match &operand {
            Type::Dyn | Type::Any => Type::Dyn,
            Type::Map(_, values) => values.as_ref().clone(),
            Type::Struct(name) => field_type(name, &select.field).unwrap_or(Type::Dyn),
            Type::Object(object) => {
                let field = object.field(select.field.as_ref());
                if field.is_none() {
                    self.issues.add(at, format!("undefined field '{}'", select.field));
                }
                field.map_or(Type::Dyn, |field| field.value.clone())
            }
            other => {
                self.issues.add(at, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        match select.mode {
            Mode::Test => Type::Bool,
            Mode::Optional => Type::optional(found),
            Mode::Value if is_optional => Type::optional(found),
            Mode::Value => found,
        }
    }

    fn call(&mut self, at: usize, call: &mut Call) -> Type {
        // A function of a library, such as `sets.contains`.
        if let Some(target) = &call.target
            && let Kind::Ident(name) = &target.kind
            && (is_namespace(name) || self.scope.has_patches() && &**name == PATCH_FUNCTIONS)
            && self.variable(name).is_none()
        {
            call.function = format!("{name}.{}", call.function).into();
            call.target = None;
        }
        let parts = call.target.iter_mut().map(AsMut::as_mut).chain(&mut call.arguments);
        let arguments: Vec<Type> = parts.map(|part| self.check(part)).collect();
        self.resolve(at, call, &arguments)
    }

    fn resolve(&mut self, at: usize, call: &mut Call, arguments: &[Type]) -> Type {
        let (name, is_member) = (call.function.as_ref(), call.target.is_some());
        let known = signatures(name);
        if known.is_empty() {
            return self.undeclared(at, name);
        }
        let fits = |signature: &&Signature| {
            signature.is_member == is_member && signature.arguments.len() == arguments.len()
        };
        let results = known.iter().filter(fits).filter_map(|signature| {
            let mut bound = HashMap::new();
            let pairs = signature.arguments.iter().zip(arguments);
            let fits = pairs.into_iter().all(|(wanted, found)| unify(wanted, found, &mut bound));
            fits.then(|| (signature, substitute(&signature.result, &bound)))
        });
        let (forms, results): (Vec<_>, Vec<_>) = results.unzip();
        let Some(first) = results.first().cloned() else {
            let shown = shown(is_member, arguments);
            let text = format!("found no matching overload for '{name}' applied to '{shown}'");
            self.issues.add(at, text);
            return Type::Dyn;
        };
        call.forms = forms;
        if results.iter().all(|other| *other == first) { first } else { Type::Dyn }
    }

    fn conditional(&mut self, at: usize, parts: &mut [Expr; 3]) -> Type {
        let [condition, yes, no] = parts.each_mut().map(|part| self.check(part));
        let fits = matches!(condition, Type::Bool | Type::Dyn | Type::Any);
        if let Some(found) = merged(&yes, &no).filter(|_| fits) {
            return found;
        }
        let shown = shown(false, &[condition, yes, no]);
        let text = format!("found no matching overload for '_?_:_' applied to '{shown}'");
        self.issues.add(at, text);
        Type::Dyn
    }

    fn structure(&mut self, at: usize, inner: &mut Struct) -> Type {
        let is_known = self.scope.has_struct(&inner.name);
        if !is_known && !TYPE_NAMES.contains(&inner.name.as_ref()) {
            return self.undeclared(at, &inner.name);
        }
        if !is_known {
            self.issues.add(at, format!("'{}' is not a message type", inner.name));
        }
        for field in &mut inner.fields {
            let mut found = self.check(&mut field.value);
            if !is_known {
                self.issues.add(field.at, format!("undefined field '{}'", field.name));
                continue;
            }
            let wanted = field_type(&inner.name, &field.name);
            if field.optional {
                found = self.unwrapped(field.value.at, found, wanted.as_ref());
            }
            let fits = match &wanted {
                Some(wanted) => unify(wanted, &found, &mut HashMap::new()),
                None => found == Type::Dyn,
            };
            if !fits {
                // Upstream shows no type for a field that does not exist.
                let wanted = wanted.map(|wanted| wanted.to_string()).unwrap_or_default();
                let text = format!(
                    "expected type of field '{}' is '{wanted}' but provided type is '{found}'",
                    field.name
                );
                self.issues.add(field.at, text);
            }
        }
        Type::Struct(Arc::clone(&inner.name))
    }

    /// Returns the type of the value of an optional; reports a value that is none.
    fn unwrapped(&mut self, at: usize, found: Type, wanted: Option<&Type>) -> Type {
        match found {
            Type::Optional(inner) => inner.as_ref().clone(),
            Type::Dyn => Type::Dyn,
            other => {
                let wanted = wanted.filter(|wanted| **wanted != Type::Dyn).unwrap_or(&other);
                let wanted = Type::optional(wanted.clone());
                self.issues.add(at, format!("expected type '{wanted}' but found '{other}'"));
                other
            }
        }
    }

    fn condition(&mut self, expr: &mut Expr) {
        let found = self.check(expr);
        if !matches!(found, Type::Bool | Type::Dyn | Type::Any) {
            self.issues.add(expr.at, format!("expected type 'bool' but found '{found}'"));
        }
    }
}

fn type_of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

fn unwrapped(found: Type, optional: bool) -> Type {
    match found {
        Type::Optional(inner) if optional => inner.as_ref().clone(),
        other => other,
    }
}

fn shown(is_member: bool, arguments: &[Type]) -> String {
    let list = |types: &[Type]| {
        let names: Vec<String> = types.iter().map(ToString::to_string).collect();
        names.join(", ")
    };
    match arguments.split_first() {
        Some((target, rest)) if is_member => format!("{target}.({})", list(rest)),
        _ => format!("({})", list(arguments)),
    }
}
