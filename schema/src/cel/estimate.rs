//! Estimates the largest number of steps that an expression may take, from the sizes that the
//! schema allows.
//!
//! The estimate decides which rules the API server accepts, so it has the rules of
//! `cel-go/checker/cost.go` down to its oddities. Upstream expands a macro before it looks at the
//! costs; here [`Estimator::comprehension`] has the sums of the expansions.

mod calls;
mod path;
mod size;

use super::bounds::Bounds;
use super::expression::{Bind, BindKind, Call, Expr, Kind, Literal, Loop, Macro, Mode, Select};
use super::types::Type;
use path::{Path, Step};
use size::Size;

/// The cost of a new list.
const LIST: u64 = 10;
/// The cost of a new map.
const MAP: u64 = 30;
/// The cost of a new value with fields.
const STRUCT: u64 = 40;

/// Returns the most steps that a checked expression may take, whose variables have these bounds.
pub(crate) fn estimate(expr: &Expr, root: &Bounds) -> u64 {
    Estimator { root, variables: Vec::new() }.visit(expr).cost
}

#[derive(Debug)]
struct Estimator<'a> {
    root: &'a Bounds,
    /// The variables of loops. The innermost is the last one.
    variables: Vec<(&'a str, Path<'a>)>,
}

/// The estimate for a part of an expression.
#[derive(Debug, Clone)]
struct Part<'a> {
    cost: u64,
    kind: &'a Type,
    path: Path<'a>,
    size: Option<Size>,
    /// The sizes of the items or values of a list or map that the expression makes.
    items: Option<Size>,
    /// The number, if the part is a literal that is one.
    number: Option<i64>,
}

// === impl Part ===

impl<'a> Part<'a> {
    /// Creates the estimate for a computed value.
    fn new(expr: &'a Expr, cost: u64) -> Self {
        let size = is_scalar(&expr.found).then_some(Size::of(1));
        let path = Path::computed();
        Self { cost, kind: &expr.found, path, size, items: None, number: None }
    }

    /// Returns the estimate of a list or map that the expression states.
    fn literal(expr: &'a Expr, own: u64, parts: &[Self], values: &[Self]) -> Self {
        let cost = parts.iter().fold(own, |cost, part| cost.saturating_add(part.cost));
        let sizes = values.iter().map(Part::size);
        let items = sizes.reduce(Size::union).unwrap_or(Size::of(0));
        Part::new(expr, cost).with_size(Some(Size::of(values.len() as u64))).with_items(Some(items))
    }

    fn with_path(self, path: Path<'a>, root: &Bounds) -> Self {
        let size = path.size(root).or(self.size);
        Self { path, size, ..self }
    }

    fn with_size(self, size: Option<Size>) -> Self {
        Self { size: size.or(self.size), ..self }
    }

    fn with_items(self, items: Option<Size>) -> Self {
        Self { items, ..self }
    }

    fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }
}

// === impl Estimator ===

impl<'a> Estimator<'a> {
    fn visit(&mut self, expr: &'a Expr) -> Part<'a> {
        match &expr.kind {
            Kind::Literal(literal) => Part {
                number: match literal {
                    Literal::Int(number) => Some(*number),
                    _ => None,
                },
                ..Part::new(expr, 0).with_size(Some(Size::of_literal(literal)))
            },
            Kind::Ident(name) => self.ident(expr, name),
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr, call),
            Kind::And(parts) | Kind::Or(parts) => {
                let cost = parts.iter().map(|part| self.visit(part).cost);
                Part::new(expr, cost.fold(0, u64::saturating_add))
            }
            Kind::Conditional(parts) => {
                let [condition, yes, no] = parts.each_ref().map(|part| self.visit(part));
                let cost = condition.cost.saturating_add(yes.cost.max(no.cost));
                let items = yes.items.zip(no.items).map(|(yes, no)| yes.union(no));
                Part::new(expr, cost).with_size(Some(yes.size().union(no.size()))).with_items(items)
            }
            Kind::List(items) => {
                let parts: Vec<_> = items.iter().map(|(item, _)| self.visit(item)).collect();
                Part::literal(expr, LIST, &parts, &parts)
            }
            Kind::Map(entries) => {
                let keys: Vec<_> = entries.iter().map(|(key, ..)| self.visit(key)).collect();
                let values: Vec<_> =
                    entries.iter().map(|(_, value, _)| self.visit(value)).collect();
                let both: Vec<_> = keys.into_iter().chain(values.iter().cloned()).collect();
                Part::literal(expr, MAP, &both, &values)
            }
            Kind::Struct(inner) => {
                let cost = inner.fields.iter().map(|field| self.visit(&field.value).cost);
                Part::new(expr, cost.fold(STRUCT, u64::saturating_add))
            }
            Kind::Macro(inner) => self.comprehension(expr, inner),
            Kind::Bind(bind) => self.bind(expr, bind),
        }
    }

    fn ident(&self, expr: &'a Expr, name: &'a str) -> Part<'a> {
        let found = self.variables.iter().rev().find(|(known, _)| *known == name);
        let path = match found {
            Some((_, path)) => path.clone(),
            None => Path::computed().step(Step::Field(name)),
        };
        Part::new(expr, 1).with_path(path, self.root)
    }

    fn select(&mut self, expr: &'a Expr, select: &'a Select) -> Part<'a> {
        let operand = self.visit(&select.operand);
        match select.mode {
            Mode::Test => Part::new(expr, operand.cost),
            // A call of an operator.
            Mode::Optional => Part::new(expr, operand.cost.saturating_add(1)),
            Mode::Value => {
                let is_costly = matches!(operand.kind, Type::Map(..) | Type::Object(_));
                let path = operand.path.step(Step::Field(&select.field));
                let cost = operand.cost.saturating_add(u64::from(is_costly));
                Part::new(expr, cost).with_path(path, self.root)
            }
        }
    }

    fn call(&mut self, expr: &'a Expr, call: &'a Call) -> Part<'a> {
        let arguments: Vec<Part<'a>> =
            call.arguments.iter().map(|argument| self.visit(argument)).collect();
        let target = call.target.as_deref().map(|target| self.visit(target));
        let sum = |sum: u64, part: &Part<'_>| sum.saturating_add(part.cost);
        let given = arguments.iter().chain(&target).fold(0, sum);
        if let ("dyn", [argument]) = (call.function.as_ref(), arguments.as_slice()) {
            return Part::new(expr, given.saturating_add(1))
                .with_size(argument.size)
                .with_items(argument.items);
        }
        let mut result = Part::new(expr, 0);
        let mut size: Option<Size> = None;
        for form in &call.forms {
            let (cost, own) = self.cost_of(&call.function, form, target.as_ref(), &arguments);
            result.cost = result.cost.max(cost);
            size = match (size, own) {
                (Some(size), Some(own)) => Some(size.union(own)),
                (size, own) => size.or(own),
            };
            if let ("_[_]", [Type::List(_) | Type::Map(..), _], [range, _]) =
                (call.function.as_ref(), form.arguments.as_slice(), arguments.as_slice())
            {
                size = range.items;
                result = result.with_path(range.path.step(Step::Inner), self.root);
            }
            size = size.or(result.size);
        }
        if let ("_+_", [a, b]) = (call.function.as_ref(), arguments.as_slice()) {
            result.items = a.items.zip(b.items).map(|(a, b)| a.union(b));
        }
        result.cost = result.cost.saturating_add(given);
        result.with_size(size)
    }

    /// Returns the estimate of `cel.bind`, or that of
    /// `value.hasValue() ? optional.of(body) : optional.none()`, where the body reads a variable
    /// with `value.value()`.
    fn bind(&mut self, expr: &'a Expr, bind: &'a Bind) -> Part<'a> {
        let value = self.visit(&bind.value);
        let before = self.variables.len();
        let is_value = bind.kind == BindKind::Value;
        let path = if is_value { value.path.clone() } else { Path::computed() };
        self.variables.push((&bind.name, path));
        let body = self.visit(&bind.body);
        self.variables.truncate(before);
        if is_value {
            // Upstream makes a loop over an empty list of it.
            let cost = value.cost.saturating_add(body.cost).saturating_add(LIST);
            return Part::new(expr, cost).with_size(body.size).with_items(body.items);
        }
        let wrapped = u64::from(bind.kind == BindKind::OptMap);
        let read = value.cost.saturating_add(1);
        let inner = read.saturating_add(body.cost).saturating_add(LIST + wrapped);
        Part::new(expr, read.saturating_add(inner)).with_size(Some(Size::UNKNOWN))
    }

    /// Returns the estimate of a loop. The sums are those of the macros' expansions, such as
    /// `@result && body` for each round of `all`.
    fn comprehension(&mut self, expr: &'a Expr, inner: &'a Macro) -> Part<'a> {
        let range = self.visit(&inner.range);
        let of = |step| range.path.step(step);
        let (key, single) = match range.kind {
            Type::List(_) => (Step::Index, Step::Inner),
            _ => (Step::Key, Step::Key),
        };
        let before = self.variables.len();
        let first = if inner.second.is_some() { of(key) } else { of(single) };
        let second = inner.second.as_deref().map(|name| (name, of(Step::Inner)));
        self.variables.push((&inner.first, first));
        self.variables.extend(second);
        let filter = inner.filter.as_ref().map_or(0, |filter| self.visit(filter).cost);
        let body = self.visit(&inner.body);
        let item = self.variables[before].1.size(self.root);
        self.variables.truncate(before);

        let (outside, own) = loop_costs(inner.loop_kind);
        // Upstream looks at the bounds of a field after the loop.
        let rounds = match &inner.range.kind {
            Kind::Select(_) | Kind::Ident(_) => range.path.size(self.root).or(range.size),
            _ => range.size,
        };
        let rounds = rounds.unwrap_or(Size::UNKNOWN);
        let step = filter.saturating_add(body.cost).saturating_add(own);
        let cost = rounds.most.saturating_mul(step).saturating_add(outside);
        let cost = cost.saturating_add(range.cost);
        let part = Part::new(expr, cost);
        match inner.loop_kind {
            Loop::All | Loop::Exists | Loop::ExistsOne => part.with_size(Some(Size::of(1))),
            Loop::Map => {
                part.with_size(Some(rounds)).with_items(Some(Size::up_to(body.size().most)))
            }
            Loop::Filter => {
                let item = item.unwrap_or(Size::UNKNOWN);
                part.with_size(Some(rounds)).with_items(Some(Size::up_to(item.most)))
            }
            Loop::TransformMap | Loop::TransformMapEntry => part.with_size(Some(rounds)),
            Loop::SortBy => {
                let (own, size) = calls::sort(rounds, Some(body.kind));
                let cost = cost.saturating_add(own).saturating_add(LIST + 2);
                Part { cost, ..part }.with_size(Some(size))
            }
        }
    }
}

/// Returns the costs of the operators that upstream expands a macro to: outside of the rounds, and
/// in each round.
fn loop_costs(kind: Loop) -> (u64, u64) {
    match kind {
        Loop::All => (1, 3),
        Loop::Exists => (1, 4),
        Loop::ExistsOne => (2, 2),
        Loop::Map | Loop::SortBy => (LIST + 1, LIST + 2),
        Loop::Filter => (LIST + 1, LIST + 3),
        Loop::TransformMap => (MAP + 1, 3),
        Loop::TransformMapEntry => (MAP + 1, 2),
    }
}

/// Returns true if each value of a type has the size 1.
fn is_scalar(kind: &Type) -> bool {
    match kind {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}
