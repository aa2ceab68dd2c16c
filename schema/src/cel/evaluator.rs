//! Evaluates an expression on the values of its variables.
//!
//! Each step costs 1, and a function that reads a text or a list costs more with its size, so that
//! every evaluation ends. cel-go counts almost the same steps.

use std::rc::Rc;

use super::error::EvalError;
use super::expression::{
    Bind, BindKind, Call, Expr, Kind, Literal, Loop, Macro, Mode, Select, Struct, StructField,
};
use super::functions;
use super::lazy::Lazy;
use super::steps::Steps;
use super::types::TYPE_NAMES;
use super::value::{StructValue, Value};

type Result<T> = std::result::Result<T, EvalError>;

/// The variables and the remaining steps of an evaluation.
#[derive(Debug)]
pub(crate) struct Evaluator<'a> {
    /// The innermost variable is the last one.
    variables: Vec<(&'a str, Value<'a>)>,
    /// The number of variables that are not of a loop.
    outer: usize,
    lazy: Lazy<'a>,
    steps: Steps,
}

impl<'a> Evaluator<'a> {
    /// Creates an evaluator that ends after `limit` steps.
    pub(crate) fn new(variables: Vec<(&'a str, Value<'a>)>, limit: usize) -> Self {
        let outer = variables.len();
        Self { variables, outer, lazy: Lazy::default(), steps: Steps::new(limit) }
    }

    /// Returns the evaluator with variables that are evaluated when an expression reads them.
    pub(crate) fn with_lazy(self, lazy: Lazy<'a>) -> Self {
        Self { lazy, ..self }
    }

    /// Starts to count steps again, up to another limit. All lazy variables together may take
    /// `steps_of_lazy`.
    pub(crate) fn restart(&mut self, limit: usize, steps_of_lazy: usize) {
        self.steps = Steps::new(limit);
        self.lazy.restart(steps_of_lazy);
    }

    /// Returns the steps of lazy variables since the last start.
    pub(crate) fn steps_of_lazy(&self) -> usize {
        self.lazy.steps()
    }

    /// Returns the steps since the evaluator was created.
    pub(crate) fn steps(&self) -> usize {
        self.steps.spent()
    }

    /// Evaluates an expression that was checked.
    ///
    /// # Errors
    ///
    /// Returns the reason if the expression has no value, or takes too many steps.
    pub(crate) fn evaluate(&mut self, expr: &'a Expr) -> Result<Value<'a>> {
        match &expr.kind {
            Kind::Literal(literal) => Ok(value_of(literal)),
            Kind::Ident(name) => self.variable(name),
            Kind::Select(select) => self.select(select),
            Kind::Call(call) => self.call(call),
            Kind::And(parts) => self.logical(parts, false),
            Kind::Or(parts) => self.logical(parts, true),
            Kind::Conditional(parts) => match self.evaluate(&parts[0])? {
                Value::Bool(true) => self.evaluate(&parts[1]),
                Value::Bool(false) => self.evaluate(&parts[2]),
                _ => Err(EvalError::no_such_overload()),
            },
            Kind::List(items) => {
                self.spend(10)?;
                let mut list = Vec::with_capacity(items.len());
                for (item, optional) in items {
                    list.extend(kept(self.evaluate(item)?, *optional));
                }
                Ok(Value::list(list))
            }
            Kind::Map(entries) => self.map(entries),
            Kind::Struct(inner) => self.structure(inner),
            Kind::Macro(inner) => self.comprehension(inner),
            Kind::Bind(bind) => self.bind(bind),
        }
    }

    fn spend(&self, steps: usize) -> Result<()> {
        self.steps.spend(steps)
    }

    fn variable(&mut self, name: &str) -> Result<Value<'a>> {
        self.spend(1)?;
        if let Some((_, value)) = self.variables.iter().rev().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        if let Some(at) = self.lazy.position(name) {
            return self.lazy_variable(at);
        }
        let found = TYPE_NAMES.into_iter().find(|known| *known == name);
        found
            .map(Value::Type)
            .ok_or_else(|| EvalError::new(format!("no such attribute(s): {name}")))
    }

    /// Returns the value of a lazy variable, which is evaluated once, with a limit of its own.
    fn lazy_variable(&mut self, at: usize) -> Result<Value<'a>> {
        if let Some(known) = self.lazy.known(at) {
            return known;
        }
        let evaluated = match self.lazy.start(at) {
            Err(error) => Err(error),
            Ok((expr, limit)) => {
                let loops = self.variables.split_off(self.outer);
                let before = std::mem::replace(&mut self.steps, Steps::new(limit));
                let evaluated = self.evaluate(expr);
                self.lazy.spend(self.steps.spent());
                self.steps = before;
                self.variables.extend(loops);
                evaluated
            }
        };
        self.lazy.keep(at, evaluated)
    }

    fn select(&mut self, select: &'a Select) -> Result<Value<'a>> {
        let operand = self.evaluate(&select.operand)?;
        self.spend(1)?;
        let (operand, is_optional) = match operand {
            Value::Optional(None) => {
                return Ok(match select.mode {
                    Mode::Test => Value::Bool(false),
                    _ => Value::Optional(None),
                });
            }
            Value::Optional(Some(inner)) => (inner.as_ref().clone(), true),
            other => (other, false),
        };
        if operand.items().is_some() {
            return Err(EvalError::new("unsupported index type 'string' in list"));
        }
        self.spend(operand.search())?;
        let found = operand.field(&select.field);
        match select.mode {
            Mode::Test => Ok(Value::Bool(found.is_some())),
            Mode::Optional => Ok(Value::optional(found)),
            Mode::Value if is_optional => Ok(Value::optional(found)),
            Mode::Value => {
                found.ok_or_else(|| EvalError::new(format!("no such key: {}", select.field)))
            }
        }
    }

    /// Evaluates `||` if `decisive` is true, else `&&`. An error counts only if no part decides.
    fn logical(&mut self, parts: &'a [Expr], decisive: bool) -> Result<Value<'a>> {
        let mut failed = None;
        for part in parts {
            match self.evaluate(part) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failed = failed.or_else(|| Some(EvalError::no_such_overload())),
                Err(EvalError::Limit) => return Err(EvalError::Limit),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn map(&mut self, entries: &'a [(Expr, Expr, bool)]) -> Result<Value<'a>> {
        self.spend(30)?;
        let mut map: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let (key, value) = (self.evaluate(key)?, self.evaluate(value)?);
            self.spend(map.len())?;
            let Some(value) = kept(value, *optional) else { continue };
            let is_same =
                |known: &Value<'a>| known.type_name() == key.type_name() && known.equals(&key);
            // As upstream, the last of two equal keys stays.
            match map.iter_mut().find(|(known, _)| is_same(known)) {
                Some((_, before)) => *before = value,
                None => map.push((key, value)),
            }
        }
        Ok(Value::Map(Rc::new(map)))
    }

    fn structure(&mut self, inner: &'a Struct) -> Result<Value<'a>> {
        self.spend(40)?;
        let mut fields: Vec<(&'a str, Value<'a>)> = Vec::with_capacity(inner.fields.len());
        for StructField { name, value, optional, .. } in &inner.fields {
            let value = self.evaluate(value)?;
            self.spend(fields.len())?;
            let Some(value) = kept(value, *optional) else { continue };
            // As upstream, the last of two equal fields stays.
            match fields.iter_mut().find(|(known, _)| *known == &**name) {
                Some((_, before)) => *before = value,
                None => fields.push((name, value)),
            }
        }
        StructValue::new(&inner.name, fields).map(|inner| Value::Struct(Rc::new(inner)))
    }

    fn call(&mut self, call: &'a Call) -> Result<Value<'a>> {
        let mut arguments = Vec::with_capacity(call.arguments.len() + 1);
        if let Some(target) = &call.target {
            arguments.push(self.evaluate(target)?);
        }
        arguments.extend(self.all(&call.arguments)?);
        functions::call(&self.steps, &call.function, call.target.is_some(), &arguments)
    }

    fn all(&mut self, list: &'a [Expr]) -> Result<Vec<Value<'a>>> {
        list.iter().map(|expr| self.evaluate(expr)).collect()
    }

    fn bind(&mut self, bind: &'a Bind) -> Result<Value<'a>> {
        let value = self.evaluate(&bind.value)?;
        let value = match value {
            value if bind.kind == BindKind::Value => value,
            Value::Optional(Some(inner)) => inner.as_ref().clone(),
            Value::Optional(None) => return Ok(Value::Optional(None)),
            _ => return Err(EvalError::no_such_overload()),
        };
        let body = self.within(&bind.name, value, None, &bind.body)?;
        Ok(if bind.kind == BindKind::OptMap { Value::optional(Some(body)) } else { body })
    }

    /// Evaluates an expression that has one or two more variables.
    fn within(
        &mut self,
        name: &'a str,
        value: Value<'a>,
        second: Option<(&'a str, Value<'a>)>,
        body: &'a Expr,
    ) -> Result<Value<'a>> {
        let before = self.variables.len();
        self.variables.push((name, value));
        self.variables.extend(second);
        let result = self.evaluate(body);
        self.variables.truncate(before);
        result
    }

    fn comprehension(&mut self, inner: &'a Macro) -> Result<Value<'a>> {
        let range = self.evaluate(&inner.range)?;
        self.spend(range.weight())?;
        let mut state = Outcome::default();
        for (first, second) in pairs(&range, inner.second.is_some())? {
            self.spend(1)?;
            let both = || inner.second.as_deref().zip(second.clone());
            let kept = match &inner.filter {
                Some(filter) => self.within(&inner.first, first.clone(), both(), filter)?,
                None => Value::Bool(true),
            };
            let Value::Bool(kept) = kept else { return Err(EvalError::no_such_overload()) };
            if !kept {
                continue;
            }
            let body = self.within(&inner.first, first.clone(), both(), &inner.body);
            if inner.loop_kind == Loop::TransformMapEntry {
                self.spend(state.list.len())?;
            }
            if state.add(inner.loop_kind, first, body)? {
                break;
            }
        }
        self.spend(state.list.len())?;
        state.result(inner.loop_kind)
    }
}

/// The result of a loop so far.
#[derive(Debug, Default)]
struct Outcome<'a> {
    list: Vec<(Value<'a>, Value<'a>)>,
    matches: usize,
    decided: bool,
    failed: Option<EvalError>,
}

impl<'a> Outcome<'a> {
    /// Adds the result for one item. Returns true if the loop is decided.
    fn add(&mut self, kind: Loop, item: Value<'a>, body: Result<Value<'a>>) -> Result<bool> {
        let body = match body {
            Err(error) if error == EvalError::Limit => return Err(error),
            // A later item may decide.
            Err(error) if matches!(kind, Loop::All | Loop::Exists) => {
                self.failed.get_or_insert(error);
                return Ok(false);
            }
            body => body?,
        };
        let is_true = match (kind, &body) {
            (Loop::Map | Loop::TransformMap | Loop::TransformMapEntry | Loop::SortBy, _) => true,
            (_, Value::Bool(value)) => *value,
            _ => return Err(EvalError::no_such_overload()),
        };
        match kind {
            Loop::All => self.decided |= !is_true,
            Loop::Exists => self.decided |= is_true,
            Loop::ExistsOne => self.matches += usize::from(is_true),
            Loop::Filter if !is_true => {}
            Loop::TransformMapEntry => self.insert(&body)?,
            Loop::Filter | Loop::Map | Loop::TransformMap | Loop::SortBy => {
                self.list.push((item, body));
            }
        }
        Ok(self.decided)
    }

    /// Adds the entries of a map, whose keys must be new.
    fn insert(&mut self, map: &Value<'a>) -> Result<()> {
        for (key, value) in map.entries().ok_or_else(EvalError::no_such_overload)? {
            if self.list.iter().any(|(known, _)| known.equals(&key)) {
                let text = format!("insert failed: key {} already exists", key.show());
                return Err(EvalError::new(text));
            }
            self.list.push((key, value));
        }
        Ok(())
    }

    fn result(self, kind: Loop) -> Result<Value<'a>> {
        if let Some(error) = self.failed.filter(|_| !self.decided) {
            return Err(error);
        }
        let bodies = |list: Vec<(Value<'a>, Value<'a>)>| {
            Value::list(list.into_iter().map(|(_, body)| body).collect())
        };
        let items = |list: Vec<(Value<'a>, Value<'a>)>| {
            Value::list(list.into_iter().map(|(item, _)| item).collect())
        };
        Ok(match kind {
            Loop::All => Value::Bool(!self.decided),
            Loop::Exists => Value::Bool(self.decided),
            Loop::ExistsOne => Value::Bool(self.matches == 1),
            Loop::Map => bodies(self.list),
            Loop::Filter => items(self.list),
            Loop::TransformMap | Loop::TransformMapEntry => Value::Map(Rc::new(self.list)),
            Loop::SortBy => {
                let mut list = self.list;
                let first = list.first().map(|(_, key)| key.clone());
                if let Some(first) = first
                    && list.iter().any(|(_, key)| key.type_name() != first.type_name())
                {
                    return Err(EvalError::new("list elements must have the same type"));
                }
                list.sort_by(|(_, a), (_, b)| a.compare(b).unwrap_or(std::cmp::Ordering::Equal));
                items(list)
            }
        })
    }
}

/// Returns the values of the variables of a loop, round by round.
fn pairs<'a>(range: &Value<'a>, has_two: bool) -> Result<Vec<(Value<'a>, Option<Value<'a>>)>> {
    if let Some(items) = range.items() {
        let indexed = items.into_iter().zip(0..);
        return Ok(indexed
            .map(
                |(item, index)| {
                    if has_two { (Value::Int(index), Some(item)) } else { (item, None) }
                },
            )
            .collect());
    }
    let entries = range.entries().ok_or_else(|| {
        EvalError::new(format!("got '{}', expected iterable type", range.go_type_name()))
    })?;
    Ok(entries.into_iter().map(|(key, value)| (key, has_two.then_some(value))).collect())
}

fn kept(value: Value<'_>, optional: bool) -> Option<Value<'_>> {
    match value {
        Value::Optional(inner) if optional => inner.map(|inner| inner.as_ref().clone()),
        other => Some(other),
    }
}

fn value_of(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::from(text.as_ref()),
        Literal::Bytes(bytes) => Value::Bytes(bytes.as_ref().into()),
    }
}
