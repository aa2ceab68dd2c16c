//! The parsed form of an expression. Macros are nodes of their own, not expanded.

use std::sync::Arc;

use super::signature::Signature;
use super::types::Type;

/// An expression and the byte of the source where its errors are reported.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expr {
    pub(crate) at: usize,
    pub(crate) kind: Kind,
    /// The levels of its parts, itself included: what reads it recurses as deep.
    pub(crate) height: usize,
    /// The type of its value; `Dyn` until the checker has found it.
    pub(crate) found: Type,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Literal(Literal),
    Ident(Arc<str>),
    Select(Box<Select>),
    /// A call of a function or an operator, which has the name that cel-go gives it.
    Call(Box<Call>),
    /// `a && b && …`
    And(Vec<Expr>),
    /// `a || b || …`
    Or(Vec<Expr>),
    /// `a ? b : c`
    Conditional(Box<[Expr; 3]>),
    /// The items; true for one that is left out if it is an empty optional (`?a`).
    List(Vec<(Expr, bool)>),
    /// The entries; true for one that is left out if its value is an empty optional.
    Map(Vec<(Expr, Expr, bool)>),
    Struct(Box<Struct>),
    Macro(Box<Macro>),
    Bind(Box<Bind>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// A field of an operand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Select {
    pub(crate) operand: Expr,
    pub(crate) field: Arc<str>,
    pub(crate) mode: Mode,
}

/// The result of a [`Select`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `a.b`: the value.
    Value,
    /// `has(a.b)`: true if the field is set.
    Test,
    /// `a.?b`: an optional.
    Optional,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) function: Arc<str>,
    pub(crate) target: Option<Box<Expr>>,
    pub(crate) arguments: Vec<Expr>,
    /// The forms that fit the arguments; none until the checker has found them.
    pub(crate) forms: Vec<&'static Signature>,
}

/// A value of a type that has a name, such as `Object.spec{replicas: 1}`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Struct {
    pub(crate) name: Arc<str>,
    pub(crate) fields: Vec<StructField>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StructField {
    /// The byte of the colon.
    pub(crate) at: usize,
    pub(crate) name: Arc<str>,
    pub(crate) value: Expr,
    /// True for a field that is left out if its value is an empty optional (`?a`).
    pub(crate) optional: bool,
}

/// A loop over a list or the keys of a map.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Macro {
    pub(crate) loop_kind: Loop,
    pub(crate) range: Expr,
    /// The item or key; with a second variable, the index or key.
    pub(crate) first: Arc<str>,
    /// The item or value.
    pub(crate) second: Option<Arc<str>>,
    /// Items for which this is false are left out.
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loop {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    TransformMap,
    TransformMapEntry,
    SortBy,
}

/// `optMap` and `optFlatMap` of an optional, and `cel.bind`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bind {
    pub(crate) kind: BindKind,
    pub(crate) name: Arc<str>,
    pub(crate) value: Expr,
    pub(crate) body: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BindKind {
    OptMap,
    OptFlatMap,
    /// `cel.bind(name, value, body)`
    Value,
}

// === impl Expr ===

impl Expr {
    pub(crate) fn new(at: usize, kind: Kind) -> Self {
        let height = 1 + kind.parts().iter().map(|part| part.height).max().unwrap_or(0);
        Self { at, kind, height, found: Type::Dyn }
    }

    pub(crate) fn call(at: usize, function: &str, arguments: Vec<Self>) -> Self {
        Self::new(at, Kind::Call(Box::new(Call::new(function, None, arguments))))
    }

    /// Calls a function with the name of each variable that the expression reads.
    pub(crate) fn visit_idents(&self, visit: &mut dyn FnMut(&str)) {
        if let Kind::Ident(name) = &self.kind {
            visit(name);
        }
        self.kind.parts().iter().for_each(|part| part.visit_idents(visit));
    }

    /// Returns true if the expression uses a variable, also one that a macro hides.
    pub(crate) fn uses(&self, name: &str) -> bool {
        matches!(&self.kind, Kind::Ident(ident) if ident.as_ref() == name)
            || self.kind.parts().iter().any(|part| part.uses(name))
    }
}

// === impl Call ===

impl Call {
    pub(crate) fn new(function: &str, target: Option<Box<Expr>>, arguments: Vec<Expr>) -> Self {
        Self { function: function.into(), target, arguments, forms: Vec::new() }
    }
}

// === impl Kind ===

impl Kind {
    /// Returns the expressions that this one consists of.
    pub(super) fn parts(&self) -> Vec<&Expr> {
        match self {
            Self::Literal(_) | Self::Ident(_) => Vec::new(),
            Self::Select(select) => vec![&select.operand],
            Self::Call(call) => call.target.as_deref().into_iter().chain(&call.arguments).collect(),
            Self::And(list) | Self::Or(list) => list.iter().collect(),
            Self::Conditional(parts) => parts.iter().collect(),
            Self::List(items) => items.iter().map(|(item, _)| item).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(key, value, _)| [key, value]).collect(),
            Self::Struct(inner) => inner.fields.iter().map(|field| &field.value).collect(),
            Self::Macro(inner) => {
                [&inner.range, &inner.body].into_iter().chain(&inner.filter).collect()
            }
            Self::Bind(bind) => vec![&bind.value, &bind.body],
        }
    }
}
