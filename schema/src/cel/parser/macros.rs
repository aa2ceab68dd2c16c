//! The macros: calls that declare variables, and `has`.

use std::sync::Arc;

use super::Parser;
use crate::cel::expression::{Bind, BindKind, Call, Expr, Kind, Loop, Macro, Mode};

impl Parser<'_> {
    pub(super) fn global_call(
        &mut self,
        open: usize,
        name: &str,
        mut arguments: Vec<Expr>,
    ) -> Option<Expr> {
        if name == "has" && arguments.len() == 1 {
            let argument = arguments.pop()?;
            return match argument.kind {
                Kind::Select(mut select) if select.mode == Mode::Value => {
                    select.mode = Mode::Test;
                    Some(Expr::new(open, Kind::Select(select)))
                }
                _ => {
                    self.issues.add(argument.at, "invalid argument to has() macro");
                    None
                }
            };
        }
        Some(Expr::call(open, name, arguments))
    }

    pub(super) fn member_call(
        &mut self,
        open: usize,
        target: Expr,
        name: &str,
        arguments: Vec<Expr>,
    ) -> Option<Expr> {
        if let Some(loop_kind) = loop_of(name, arguments.len()) {
            return self.comprehension(open, loop_kind, target, arguments);
        }
        let is_cel = matches!(&target.kind, Kind::Ident(of) if **of == *"cel");
        if self.has_bind && is_cel && name == "bind" && arguments.len() == 3 {
            return self.value_binding(open, arguments);
        }
        let kind = match (name, arguments.len()) {
            ("optMap", 2) => BindKind::OptMap,
            ("optFlatMap", 2) => BindKind::OptFlatMap,
            _ => {
                let call = Call::new(name, Some(Box::new(target)), arguments);
                return Some(Expr::new(open, Kind::Call(Box::new(call))));
            }
        };
        let mut arguments = arguments.into_iter();
        let name = self.variable(&arguments.next()?)?;
        let body = arguments.next()?;
        Some(Expr::new(open, Kind::Bind(Box::new(Bind { kind, name, value: target, body }))))
    }

    /// Reads `cel.bind(name, value, body)`.
    fn value_binding(&mut self, open: usize, arguments: Vec<Expr>) -> Option<Expr> {
        let mut arguments = arguments.into_iter();
        let name = arguments.next()?;
        let (Kind::Ident(name), kind) = (&name.kind, BindKind::Value) else {
            self.issues.add(name.at, "cel.bind() variable names must be simple identifiers");
            return None;
        };
        let (name, value, body) = (Arc::clone(name), arguments.next()?, arguments.next()?);
        Some(Expr::new(open, Kind::Bind(Box::new(Bind { kind, name, value, body }))))
    }

    fn comprehension(
        &mut self,
        open: usize,
        loop_kind: (Loop, bool, bool),
        range: Expr,
        arguments: Vec<Expr>,
    ) -> Option<Expr> {
        let (loop_kind, has_two, has_filter) = loop_kind;
        let mut arguments = arguments.into_iter();
        let first = self.variable(&arguments.next()?)?;
        let second = if has_two { Some(self.variable(&arguments.next()?)?) } else { None };
        let filter = if has_filter { Some(arguments.next()?) } else { None };
        let body = arguments.next()?;
        let inner = Macro { loop_kind, range, first, second, filter, body };
        Some(Expr::new(open, Kind::Macro(Box::new(inner))))
    }

    /// Returns the name of the variable that a macro declares.
    fn variable(&mut self, expr: &Expr) -> Option<Arc<str>> {
        if let Kind::Ident(name) = &expr.kind {
            return Some(Arc::clone(name));
        }
        self.issues.add(expr.at, "argument must be a simple name");
        None
    }
}

/// Returns the loop of a macro, whether it has two variables, and whether it has a filter.
fn loop_of(name: &str, arguments: usize) -> Option<(Loop, bool, bool)> {
    Some(match (name, arguments) {
        ("all", 2) => (Loop::All, false, false),
        ("all", 3) => (Loop::All, true, false),
        ("exists", 2) => (Loop::Exists, false, false),
        ("exists", 3) => (Loop::Exists, true, false),
        ("exists_one", 2) => (Loop::ExistsOne, false, false),
        ("existsOne", 3) => (Loop::ExistsOne, true, false),
        ("map", 2) => (Loop::Map, false, false),
        ("map", 3) => (Loop::Map, false, true),
        ("filter", 2) => (Loop::Filter, false, false),
        ("transformList", 3) => (Loop::Map, true, false),
        ("transformList", 4) => (Loop::Map, true, true),
        ("transformMap", 3) => (Loop::TransformMap, true, false),
        ("transformMap", 4) => (Loop::TransformMap, true, true),
        ("transformMapEntry", 3) => (Loop::TransformMapEntry, true, false),
        ("transformMapEntry", 4) => (Loop::TransformMapEntry, true, true),
        ("sortBy", 2) => (Loop::SortBy, false, false),
        _ => return None,
    })
}
